"""One vector: a program, what the right subject makes of it, and the invariants that it puts to the test."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs.compounds import kebab
from vmm_conformance.programs.files import to_data
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import Bench
from vmm_conformance.vectors.neutral import Neutral

LEFT_OUT: Final = frozenset({"observe", "contents", "variant", "granularity", "done", "drained"})
"""Notes that say nothing which the calls around them do not."""

Vector = dict[str, Any]


class Reached(NamedTuple):
    """What a program reaches: the invariants with a witness, and how each kind of operation ended.

    Vectors that reach the same are one too many.
    """

    invariants: frozenset[str]
    outcomes: frozenset[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Made:
    """A program that was run: what it reached, and what happened."""

    program: Program
    reached: Reached
    history: History


class WrongSubject(Exception):
    """The subject that vectors are made from breaks an invariant."""


def run(bench: Bench, program: Program) -> Made:
    """Run ``program``. Raises `WrongSubject` if there is a finding."""
    history, judge = bench.run(program)
    if judge.findings:
        raise WrongSubject(f"{judge.findings[0]} in {json.dumps(to_data(program))}")
    return Made(program, reached(program, history, judge), history)


def reached(program: Program, history: History, judge: Judge) -> Reached:
    """What was reached in one run."""
    ends = {event.op: event.args[0] for event in history if event.kind == "end"}
    kinds = {
        (kebab(type(program.operations[op]).__name__), end["status"], end["code"])
        for op, end in ends.items()
        if op < len(program.operations)
    }
    return Reached(frozenset(id for id, count in judge.witnesses.items() if count), frozenset(kinds))


def vector(made: Made) -> Vector:
    """The vector of a run. Its id is made of the program, so that it stays what it is."""
    program = to_data(made.program)
    digest = hashlib.sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()
    return {
        "id": f"{made.program.contract}-{digest[:10]}",
        "reaches": sorted(made.reached.invariants),
        "program": {name: value for name, value in program.items() if name not in ("version", "contract")},
        **outcomes(made.history, len(made.program.operations)),
    }


def outcomes(history: History, operations: int) -> dict[str, Any]:
    """``before`` (the first operation), ``outcomes`` (one for each), and ``after`` (at the end)."""
    neutral = Neutral()
    events: dict[int, list[Any]] = {}
    ends: dict[int, dict[str, Any]] = {}
    for event in history:
        if event.kind == "end":
            ends[event.op] = _ending(event)
        elif event.kind != "begin" and not _left_out(event):
            shown = neutral.event(event)
            if shown is not None:
                events.setdefault(event.op, []).append(shown)
    parts = [{**ends.get(op, {"status": "not run"}), "events": events.get(op, [])} for op in range(operations)]
    return {"before": events.get(-1, []), "outcomes": parts, "after": events.get(operations, [])}


def _left_out(event: Event) -> bool:
    return event.kind == "note" and event.who == HARNESS and event.args[0] in LEFT_OUT


def _ending(event: Event) -> dict[str, Any]:
    """How an operation ended: its status, and the code of a refusal. Texts are each implementation's own."""
    outcome = event.args[0]
    return {name: outcome[name] for name in ("status", "code") if outcome.get(name)}
