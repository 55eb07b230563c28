"""The files that hold the minimal programs of failures, for replay."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from vmm_conformance.programs.files import layout
from vmm_conformance.reporting.model import Report
from vmm_conformance.running.results import Failure

FOLDER: Final = "programs"
HISTORIES: Final = "histories"
DEFAULT_DIRECTORY: Final = ".vmm"
"""Where programs go when no report folder was asked for, below the current folder."""


def program_name(invariant: str, spec: str) -> str:
    """The file's name for an invariant broken by the subject ``spec``."""
    return f"{invariant}-{re.sub(r'[^A-Za-z0-9_.]+', '-', spec).strip('-')}.json"


def history_name(invariant: str, spec: str) -> str:
    """The name of the file with the history in which it was broken."""
    return program_name(invariant, spec).removesuffix(".json") + ".jsonl"


def write_program(directory: Path, failure: Failure, spec: str) -> Path:
    """Write the failure's program below ``directory``, whole or not at all, and return its path.

    The content is what ``--vmm-replay`` and ``vmm-conformance replay`` read.
    """
    return write_data(directory / FOLDER / program_name(failure.invariant, spec), failure.program)


def write_data(path: Path, program: dict[str, Any]) -> Path:
    """Write a program's JSON data to ``path``, whole or not at all, and return ``path``."""
    return write_text(path, layout(program))


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` to ``path``, whole or not at all, and return ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)  # other processes may write the same invariant's program
    return path


def write_programs(report: Report, directory: Path) -> list[Path]:
    """Write the shortest program of every broken invariant of every subject."""
    return [write_program(directory, failure, spec) for spec, failure in _shortest(report)]


def write_histories(report: Report, directory: Path) -> list[Path]:
    """Write the histories in which those programs broke them, see `history.files`."""
    return [
        write_text(directory / HISTORIES / history_name(failure.invariant, spec), failure.history)
        for spec, failure in _shortest(report)
        if failure.history
    ]


def _shortest(report: Report) -> list[tuple[str, Failure]]:
    return [
        (section.subject.spec, entry.failures[0])
        for section in report.subjects
        for entry in section.invariants
        if entry.failures
    ]
