"""Runs everything that was asked for in this process, without pytest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import CONTRACTS
from vmm_conformance.interrupts import Interrupts
from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.reporting.conclusion import driver_info
from vmm_conformance.reporting.model import Report
from vmm_conformance.reporting.progress import Progress
from vmm_conformance.reporting.report import build
from vmm_conformance.running.results import ItemResult
from vmm_conformance.running.session import Item, Options, end_children, know, part, run_item
from vmm_conformance.waivers.listed import planned

Done = Callable[[Item, ItemResult], None]


def known_contracts(names: Iterable[str] | None) -> tuple[str, ...] | None:
    """The contracts of those names, or None for all of them. Raises `BadInvocation` for a name that is none."""
    chosen = None if names is None else tuple(names)
    for name in chosen or ():
        if name not in CONTRACTS:
            raise BadInvocation(f"unknown contract {name!r}; accepted: {', '.join(CONTRACTS)}")
    return chosen


def run_all(
    invocation: Invocation,
    subjects: dict[str, object],
    *,
    contracts: tuple[str, ...] | None = None,
    done: Done | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run every item for ``subjects`` (spec to object) and report.

    ``contracts`` leaves others out, which makes the run partial if the subject offers them. ``done`` is
    called after each item; ``progress`` shows how far the programs are. After an interrupt (Ctrl-C) the
    report on what was done is returned.
    """
    for spec, subject in subjects.items():
        know(spec, subject)
    options, waivers = invocation.options(), invocation.waiver_objects()
    items = planned(subjects, options, waivers)
    start = time.monotonic()
    chosen = [item for item in part(items, options) if contracts is None or item.contract in contracts]
    try:
        results = _results(chosen, options, done, progress)
    finally:
        end_children()
    driver, seconds = driver_info(options.driver), time.monotonic() - start
    return build(results, items, options, subjects, catalogue(), driver=driver, waivers=waivers, seconds=seconds)


def _results(
    items: Sequence[Item], options: Options, done: Done | None, progress: Progress | None
) -> list[ItemResult]:
    results: list[ItemResult] = []
    if progress is not None:
        progress.tally.planned = sum(item.planned for item in items)
    with Interrupts() as interrupts, suppress(KeyboardInterrupt):
        for item in items:
            results.append(run_item(item, options, progress=_watched(item, interrupts, progress)))
            if progress is not None:
                progress.tally.finished(failure.invariant for failure in results[-1].failures)
            if done is not None:
                done(item, results[-1])
            if results[-1].state == "stopped" or interrupts.seen:
                break
    return results


def _watched(item: Item, interrupts: Interrupts, progress: Progress | None) -> Callable[[int, int, int], None]:
    """What is to happen after each program."""
    if progress is None:
        return interrupts.check
    progress.begin(item.id)

    def after(done: int, planned: int, broken: int) -> None:
        interrupts.check()
        progress.programs(done, planned, broken)

    return after
