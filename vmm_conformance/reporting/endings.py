"""What is shown of programs that ended their process: lines, their files, and the command that repeats it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vmm_conformance.reporting.ended import told
from vmm_conformance.reporting.model import ItemReport, Report, SubjectReport
from vmm_conformance.reporting.programs import FOLDER, HISTORIES, program_name, write_data, write_text
from vmm_conformance.reporting.screen import replay_command
from vmm_conformance.reporting.text import count, wrap
from vmm_conformance.running.results import Ending


def ending_name(ending: Ending, item: str, spec: str) -> str:
    """The name of the file with the program that ended its process in the item ``item``."""
    part = re.sub(r"[^A-Za-z0-9_.]+", "-", item.removesuffix(f"[{spec}]")).strip("-")
    number = f"-{ending.number}" if ending.number > 1 else ""
    return program_name(f"{ending.kind}{number}-{part}", spec)


def trail_name(ending: Ending, item: str, spec: str) -> str:
    """The file with what was recorded until that process ended, relative to the report."""
    return f"{HISTORIES}/{ending_name(ending, item, spec).removesuffix('.json')}.jsonl"


def replay_isolated(file: str, spec: str, driver: str) -> str:
    """The command that runs such a program again, in a child process as well."""
    return f"{replay_command(file, spec, driver)} --isolation process"


def describe_ending(ending: Ending, item: str, file: str, spec: str, driver: str, width: int = 80) -> list[str]:
    """A few lines about ``ending``, the last the command that repeats it."""
    others = f"; {count(ending.times, 'program')} of the item ended so" if ending.times > 1 else ""
    length = count(len(ending.program["operations"]), "operation")
    lines = [
        f"{ending.kind}  {item}",
        *wrap(told(ending), width, indent="  ", lines=3),
        *wrap(f"program of {length}, {ending.repeats}{others}", width, indent="  "),
    ]
    lines += [f"    {frame}" for frame in ending.stack]
    if ending.history:
        recorded = count(ending.history.count("\n") - 1, "event")
        lines.append(f"  {recorded} recorded until then, in {HISTORIES}/{Path(file).stem}.jsonl")
    return [*lines, f"  {replay_isolated(file, spec, driver)}"]


def ended_items(section: SubjectReport) -> Iterator[tuple[ItemReport, Ending]]:
    """Every ending of a subject, with its item."""
    for row in section.items:
        for ending in row.endings:
            yield row, ending


def write_endings(report: Report, directory: Path) -> list[Path]:
    """Write the program of every ending below ``directory``."""
    return [
        write_ending(directory, ending, row.id, section.subject.spec)
        for section in report.subjects
        for row, ending in ended_items(section)
    ]


def write_ending(directory: Path, ending: Ending, item: str, spec: str) -> Path:
    """Write one such program, and what was recorded of it, below ``directory``, each whole or not at all."""
    if ending.history:
        write_text(directory / trail_name(ending, item, spec), ending.history)
    return write_data(directory / FOLDER / ending_name(ending, item, spec), ending.program)


def as_data(ending: Ending, item: str, spec: str) -> dict[str, Any]:
    """An ending as JSON data, with the file of its program relative to the report."""
    return {
        "kind": ending.kind,
        "how": ending.how,
        "op": ending.op,
        "stack": ending.stack,
        "repeats": ending.repeats,
        "programs_before": ending.programs_before,
        "times": ending.times,
        "number": ending.number,
        "program": ending.program,
        "file": f"{FOLDER}/{ending_name(ending, item, spec)}",
        "trail": trail_name(ending, item, spec) if ending.history else None,
    }


def from_data(data: dict[str, Any]) -> Ending:
    """The inverse of `as_data`, without what was recorded, which is a file."""
    return Ending(**{name: value for name, value in data.items() if name not in ("file", "trail")})
