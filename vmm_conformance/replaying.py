"""Runs one program out of a file again."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import contracts_of
from vmm_conformance.invocation import BadInvocation, Invocation, read_program
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.ended import Ended
from vmm_conformance.running.endings import ending_of
from vmm_conformance.running.explore import Lost, failure_of, whole
from vmm_conformance.running.results import ItemResult
from vmm_conformance.running.session import Item, bench_of

REPLAY: Final = "replay"


def replay_items(invocation: Invocation) -> tuple[Item, ...]:
    """One item per subject for the program of ``invocation.replay``."""
    assert invocation.replay is not None
    program = read_program(invocation.replay)
    part = Scenario(invocation.replay.stem, program, (), "a program out of a file")
    return tuple(
        Item(f"replay/{part.id}[{spec}]", REPLAY, program.contract, spec, invocation.driver, 1, part)
        for spec in invocation.subjects
    )


def replayed(program: Program, spec: str, subject: object, invocation: Invocation) -> ItemResult:
    """The result of ``program`` on ``subject``, the program as it is, isolated if that was asked for.

    Raises `BadInvocation` if it does not fit.
    """
    if program.contract not in contracts_of(subject):
        offered = ", ".join(contracts_of(subject)) or "none"
        raise BadInvocation(
            f"the program is for the contract {program.contract}, which {spec} does not offer; it offers {offered}"
        )
    bench = bench_of(program.contract, spec, subject, invocation.options())
    result = ItemResult(f"replay[{spec}]", REPLAY, program.contract, spec, invocation.driver, planned=1)
    try:
        judged = bench.run(program)
    except Ended as ended:
        result.state = ended.kind
        ended.trail = ""  # there is no report that would keep it
        result.endings = [ending_of(bench, Lost(program, 1, ended), small=False)]
        return result
    result.executed = 1
    result.witnesses, _ = whole(judged.judge.witnesses, judged.history.header.get("each_of", {}))
    result.failures = [failure_of(bench, id, program, small=False) for id in judged.broken()]
    return result
