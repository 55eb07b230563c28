"""The command ``points``: failure points of a subject's contracts, as many as are asked for."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import CONTRACTS, contracts_of
from vmm_conformance.interrupts import Interrupts
from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.programs.failing import NO_POINTS
from vmm_conformance.reporting.conclusion import describe, own_directory, scene
from vmm_conformance.reporting.programs import write_program
from vmm_conformance.reporting.progress import Progress
from vmm_conformance.running.results import ALL, Coverage, Failure, ItemResult
from vmm_conformance.running.session import Item, end_children, point_items, run_item
from vmm_conformance.running.suites import load_suites
from vmm_conformance.width import terminal_width

PARTIAL: Final = 3
"""Exit status if nothing is wrong as far as it went."""


def points(
    invocation: Invocation, contract: str | None, bound: int, directory: Path | None, *, as_json: bool = False
) -> int:
    """Cover up to ``bound`` failure points of each contract, print what was covered and what is broken.

    Returns 1 if an invariant is broken or a process ended, 3 after an interrupt or where nothing could be run.
    """
    if contract is not None and contract not in CONTRACTS:
        raise BadInvocation(f"unknown contract {contract!r}; accepted: {', '.join(CONTRACTS)}")
    if bound < 1:
        raise BadInvocation(f"bound must be at least 1 point, got {bound}")
    invocation.check_names()
    worst = 0
    told = []
    for spec, subject in invocation.subject_objects().items():
        for name in _asked(spec, subject, contract):
            if name in NO_POINTS:
                told.append(_none(spec, name, as_json=as_json))
                continue
            results, seconds = _run(invocation, spec, name, bound)
            data = _data(spec, name, results, seconds)
            lines = [json.dumps(data)] if as_json else _lines(data, results, invocation, subject, directory)
            told.append("\n".join(lines))
            worst = max(worst, _status(results), key=(0, PARTIAL, 1).index)
    print("\n".join(told))
    return worst


def _asked(spec: str, subject: object, contract: str | None) -> Sequence[str]:
    """The contracts in question. Raises `BadInvocation` for one that is not offered, unless it has no points."""
    offered = contracts_of(subject)
    if contract is None or contract in offered:
        return offered if contract is None else (contract,)
    raise BadInvocation(f"{spec} does not offer the contract {contract}; it offers {', '.join(offered)}")


def _run(invocation: Invocation, spec: str, contract: str, bound: int) -> tuple[list[ItemResult], float]:
    items = [
        item
        for suite in load_suites()
        if suite.contract == contract
        for item in point_items(suite, spec, invocation.driver, bound)
    ]
    start, results = time.monotonic(), []
    with Progress(sys.stderr, sum(item.planned for item in items), noun="point") as progress, Interrupts() as stop:
        try:
            for item in items:
                results.append(_watched(item, invocation, progress, stop))
                if stop.seen:
                    break
        finally:
            end_children()
    return results, time.monotonic() - start


def _watched(item: Item, invocation: Invocation, progress: Progress, stop: Interrupts) -> ItemResult:
    def after(done: int, planned: int, broken: int) -> None:
        stop.check()
        progress.programs(done, planned, broken)

    progress.begin(item.id)
    result = run_item(item, invocation.options(), progress=after)
    progress.tally.finished()
    return result


def _status(results: Sequence[ItemResult]) -> int:
    if any(result.failures or result.endings or result.unknown for result in results):
        return 1
    return 0 if all(result.state == "done" for result in results) else PARTIAL


def _data(spec: str, contract: str, results: Sequence[ItemResult], seconds: float) -> dict[str, Any]:
    total = sum((result.points for result in results if result.points), Coverage())
    broken = sorted({failure.invariant for result in results for failure in result.failures})
    states = sorted({result.state for result in results})
    return {
        "subject": spec, "contract": contract, **asdict(total), "seconds": round(seconds, 1), "broken": broken,
        "states": states,
    }  # fmt: skip


def _none(spec: str, contract: str, *, as_json: bool) -> str:
    why = NO_POINTS[contract]
    return json.dumps({"subject": spec, "contract": contract, "none": why}) if as_json else f"{contract}: none: {why}"


def _lines(
    data: dict[str, Any], results: Sequence[ItemResult], invocation: Invocation, subject: object, directory: Path | None
) -> list[str]:
    total = Coverage(*(data[name] for name in ("reached", "covered", "undo_reached", "undo_covered")))
    done = total.covered + total.undo_covered
    lines = [f"{data['contract']}: {total.text()} ({done / max(data['seconds'], 0.1):,.0f} a second)"]
    for result in results:
        lines += [f"{result.item}: {why}" for why in result.unknown.values()]
        if result.state != "done":
            why = result.untested.get(ALL, "")
            lines.append(f"{result.item}: {result.state}{': ' if why else ''}{why}")
    failures = list(_first(results).values())
    if failures:
        target = directory or own_directory()
        files = {failure.invariant: str(write_program(target, failure, data["subject"])) for failure in failures}
        where = scene(data["subject"], subject, driver=invocation.driver, seed=invocation.seed)
        lines += describe(failures, catalogue(), where, files, terminal_width())
    return lines


def _first(results: Sequence[ItemResult]) -> dict[str, Failure]:
    """Of each broken invariant the failure with the shortest program."""
    shortest: dict[str, Failure] = {}
    for failure in sorted(
        (failure for result in results for failure in result.failures),
        key=lambda failure: len(failure.program["operations"]),
    ):
        shortest.setdefault(failure.invariant, failure)
    return shortest
