"""Judges the histories of a bundle again, and compares what is found with what the report says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from vmm_conformance.bundling.bounded import Task, bounded
from vmm_conformance.bundling.result import Piece, differs, same
from vmm_conformance.history.events import History
from vmm_conformance.programs.codec import ProgramError
from vmm_conformance.programs.files import from_data
from vmm_conformance.programs.program import Program
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.running.evidence import address_map, outcomes
from vmm_conformance.running.histories import HistoryError, load_history
from vmm_conformance.running.pictures.picture import picture
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.results import Failure

SECONDS: Final = 60
"""For one history."""
MEMORY: Final = 4 << 30
"""Bytes of address space of the judging process."""


class Case(NamedTuple):
    """A failure as the report has it, and the text of the history it was found in."""

    what: str
    failure: dict[str, Any]
    history: str


def rejudge(cases: Sequence[Case], seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[Piece]:
    """Each case judged again. One that breaks the judge, or takes too long, is a difference."""
    return bounded([Task(case.what, judged_again, (case,)) for case in cases], seconds, memory)


def judged_again(case: Case) -> Piece:
    """The finding of ``case`` compared with what its history says now."""
    said = case.failure
    try:
        program, history = from_data(said["program"]), load_history(case.history)
    except (ProgramError, HistoryError) as error:
        return differs(case.what, str(error))
    wrong = _another_program(program, history)
    if wrong:
        return differs(case.what, wrong)
    findings = plug(program.contract).judge(history).findings
    finding = next((each for each in findings if each.invariant == said["invariant"]), None)
    if finding is None:
        return differs(case.what, f"{said['invariant']} is not broken in its history")
    found = symbolic(Failure(
        finding.invariant, finding.message, finding.expected, finding.actual, finding.op, said["program"],
        outcomes(history), address_map(history, finding), picture=picture(history, finding),
    ))  # fmt: skip
    names = ("message", "expected", "actual", "op", "outcomes")
    changed = [name for name in names if getattr(found, name) != said[name]]
    also = {each.invariant for each in findings}
    if not set(said["consequences"]) <= also:
        changed.append("consequences")
    if changed:
        return differs(case.what, f"the history says otherwise on {', '.join(changed)}")
    return same(case.what, "judged again from its history")


def _another_program(program: Program, history: History) -> str:
    """Why ``history`` is none of ``program``; empty if it is one."""
    if history.header.get("contract") != program.contract:
        return f"its history is one of the contract {history.header.get('contract')!r}"
    if history.header.get("configuration") != program.configuration:
        return "its history was made under another configuration"
    begun = [event.args[0] for event in history.events if event.kind == "begin"]
    rounds = getattr(program.configuration, "rounds", 1)
    if begun != [*program.operations * rounds][: len(begun)]:
        return "its history is one of other operations"
    return ""
