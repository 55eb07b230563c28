"""From the results of a run to what a user sees of it: screens, files, the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from vmm_conformance.catalogue import Catalogue
from vmm_conformance.contracts import DriverOptions
from vmm_conformance.drivers.opening import facts
from vmm_conformance.reporting import badge, json_report, junit
from vmm_conformance.reporting.endings import describe_ending, write_ending, write_endings
from vmm_conformance.reporting.html import page
from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.model import Report
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.programs import DEFAULT_DIRECTORY, write_program, write_programs
from vmm_conformance.reporting.report import failure_order
from vmm_conformance.reporting.screen import Scene, failure_screen
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.text import clip, count
from vmm_conformance.reporting.verdicts import ALL
from vmm_conformance.running.results import Failure, ItemResult


def driver_info(name: str) -> DriverInfo:
    """What a report says of a driver, and the options that it gets where a program sets none."""
    found = facts(name)
    return DriverInfo(name, real=found.real, options=_plain(DriverOptions()), versions=found.versions)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def publish(report: Report, directory: Path | None) -> str:
    """Write the report into ``directory``; without one, only the programs of failures, below ``.vmm``.

    Returns the folder that holds the programs.
    """
    if directory is None:
        if _any_failures(report):
            write_programs(report, own_directory())
            write_endings(report, own_directory())
        return DEFAULT_DIRECTORY
    json_report.write(report, directory)
    junit.write(report, directory)
    badge.write(report, directory)
    if page.available():
        page.write([Document(directory.absolute().name, json_report.to_json(report))], directory / page.FILE)
    return str(directory)


def _any_failures(report: Report) -> bool:
    failed = any(entry.failures for section in report.subjects for entry in section.invariants)
    return failed or any(row.endings for section in report.subjects for row in section.items)


def own_directory() -> Path:
    """``.vmm`` below the current folder, made if need be, and ignored by git."""
    directory = Path(DEFAULT_DIRECTORY)
    directory.mkdir(exist_ok=True)
    (directory / ".gitignore").write_text("*\n", "utf-8")
    return directory


def scene(spec: str, subject: object, *, driver: str, seed: int) -> Scene:
    """Where failures of ``subject``, asked for as ``spec``, are found."""
    info = SubjectInfo.of(spec, subject)
    return Scene(f"{info.name} {info.version}".strip(), driver, spec, "", seed)


def decisive(catalogue: Catalogue, *, prefix: str, hardened: bool) -> frozenset[str]:
    """The invariants that fail a run when they are broken: the documented musts among those asked for.

    With ``hardened`` the inferred ones too.
    """
    return frozenset(
        entry.id
        for entry in catalogue.matching(prefix)
        if entry.level == "must" and (hardened or entry.evidence == "documented")
    )


def complaint(
    result: ItemResult,
    counted: Container[str],
    catalogue: Catalogue,
    scene: Scene,
    directory: Path | None,
    width: int = 80,
) -> str:
    """What is to be said of an item that did not come out well, in ``width`` columns; empty if there is nothing.

    Of the failures those of ``counted`` invariants count: the first gets its screen, the others a line
    each. Their programs are written into ``directory``, or below ``.vmm``.
    """
    failures = [failure for failure in result.failures if failure.invariant in counted]
    target = (directory or own_directory()) if failures or result.endings else Path()
    files = {failure.invariant: str(write_program(target, failure, scene.spec)) for failure in failures}
    lines = describe(failures, catalogue, scene, files, width)
    for id, reason in sorted(result.unknown.items()):
        lines.append(f"{result.item}: {'judging' if id == ALL else f'the checker of {id}'} broke: {reason}")
    if result.state in ("crash", "timeout"):
        ended = "crashed" if result.state == "crash" else "ran out of time"
        lines.append(f"{result.item} {ended} after {_done(result)}")
    for ending in result.endings:
        file = str(write_ending(target, ending, result.item, scene.spec))
        lines += describe_ending(ending, result.item, file, scene.spec, scene.driver, width)
    return "\n".join(lines)


def _done(result: ItemResult) -> str:
    """How far an item came: of failure points more programs are run than points are planned."""
    if result.kind == "points":
        return count(result.executed, "program")
    return f"{result.executed:,} of {count(result.planned, 'program')}"


def describe(
    failures: Sequence[Failure], catalogue: Catalogue, scene: Scene, files: Mapping[str, str], width: int = 80
) -> list[str]:
    """The screen of the failure with the shortest program, and two lines for each other, in ``width`` columns.

    ``files`` holds by invariant where the program lies.
    """
    if not failures:
        return []
    first, *others = sorted(failures, key=failure_order)
    place = dataclasses.replace(scene, file=files[first.invariant])
    lines = [failure_screen(first, catalogue[first.invariant], place, width=width)]
    for other in others:
        lines.append(clip(f"also {other.invariant}: {symbolic(other).message}", width))
        operations = count(len(other.program["operations"]), "operation")
        lines.append(f"     {operations} in {files[other.invariant]}")
    return lines
