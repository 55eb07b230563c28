"""Verifies a bundle: what it says is computed again, piece by piece, and every difference is named."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from vmm_conformance.bundling import rerun
from vmm_conformance.bundling.archive import KILLS, REPORT, Bundle, BundleError, read
from vmm_conformance.bundling.consistency import consistency, options_of
from vmm_conformance.bundling.pack import history_of
from vmm_conformance.bundling.rejudge import Case, rejudge
from vmm_conformance.bundling.result import Piece, differs, left_out, same
from vmm_conformance.reporting.html.documents import document
from vmm_conformance.reporting.schema_check import Mismatch
from vmm_conformance.running.session import BUDGETS, Progress

Data = dict[str, Any]


def verify(
    path: Path,
    *,
    trusted: Collection[str] = (),
    quick: bool = False,
    isolated: bool = False,
    progress: Progress | None = None,
) -> Iterator[Piece]:
    """Each piece of the bundle in ``path``, computed again.

    ``trusted`` are subjects to import and run besides the installed ones; with ``quick`` programs are not
    generated again, with ``isolated`` they are run in a child process. Raises
    `BundleError` for a file that is no bundle or was damaged.
    """
    bundle = read(path)
    yield same("members", f"{len(bundle.members)}, as the manifest lists them")
    if REPORT in bundle.members:
        yield from _report(bundle, _checked(bundle, REPORT), trusted, quick, isolated, progress)
    if KILLS in bundle.members:
        yield from _kills(_checked(bundle, KILLS), quick, isolated, progress)


def _checked(bundle: Bundle, name: str) -> Data:
    try:
        made = document(bundle.data(name), name)
    except Mismatch as error:
        raise BundleError(f"{name}: {error}") from None
    if made.kills != (name == KILLS):
        raise BundleError(f"{name} is something else")
    return made.data


def _report(
    bundle: Bundle, report: Data, trusted: Collection[str], quick: bool, isolated: bool, progress: Progress | None
) -> Iterator[Piece]:
    yield from consistency(report)
    cases: list[Case] = []
    for section in report["subjects"]:
        for entry in section["invariants"]:
            if entry["failures"]:
                yield from _evidence(bundle, section, entry, cases)
    yield from rejudge(cases)
    for section in report["subjects"]:
        yield from rerun.programs(section, report["driver"], trusted)
        yield from rerun.endings(section, report["driver"], trusted)
        if quick:
            yield left_out(f"programs of {section['subject']['spec']}", "not asked for")
        else:
            yield from _passes(section, report, trusted, isolated, progress)


def _passes(
    section: Data, report: Data, trusted: Collection[str], isolated: bool, progress: Progress | None
) -> Iterator[Piece]:
    try:
        options = options_of(report)
    except (TypeError, ValueError):
        return  # said before
    options = replace(options, isolation="process") if isolated else options
    yield from rerun.passes(section, options, report, trusted, progress)


def _evidence(bundle: Bundle, section: Data, entry: Data, cases: list[Case]) -> Iterator[Piece]:
    """The program's file is the report's program; its history becomes a case."""
    what = f"{entry['id']} of {section['subject']['spec']}"
    name, failure = str(entry["program"]), entry["failures"][0]
    for file in (name, history_of(name)):
        if file not in bundle.members:
            yield differs(what, f"{file} is missing")
            return
    if bundle.data(name) != failure["program"]:
        yield differs(f"{what}, its program", f"{name} is not the program of the report")
    if failure["invariant"] != entry["id"]:
        yield differs(what, f"its failure is one of {failure['invariant']}")
    cases.append(Case(f"{what}, its history", failure, bundle.text(history_of(name))))


def _kills(matrix: Data, quick: bool, isolated: bool, progress: Progress | None) -> Iterator[Piece]:
    said = f"{matrix['killed']} of {matrix['of']}"
    found = f"{sum(kill['killed'] for kill in matrix['kills'])} of {len(matrix['kills'])}"
    yield same("totals", f"{found} killed") if said == found else differs("totals", f"says {said}, has {found}")
    if quick or matrix["budget"] not in BUDGETS:
        yield left_out("kills", "not asked for" if quick else f"unknown budget {matrix['budget']!r}")
        return
    yield from rerun.kills(matrix, progress, isolated=isolated)
