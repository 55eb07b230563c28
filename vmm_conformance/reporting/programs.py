"""The files that hold the minimal programs of failures, for replay."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from vmm_conformance.programs.files import layout
from vmm_conformance.reporting.model import Report
from vmm_conformance.running.results import Failure

FOLDER: Final = "programs"
DEFAULT_DIRECTORY: Final = ".vmm"
"""Where programs go when no report folder was asked for, below the current folder."""


def program_name(invariant: str, spec: str) -> str:
    """The file's name for an invariant broken by the subject ``spec``."""
    return f"{invariant}-{re.sub(r'[^A-Za-z0-9_.]+', '-', spec).strip('-')}.json"


def write_program(directory: Path, failure: Failure, spec: str) -> Path:
    """Write the failure's program below ``directory``, whole or not at all, and return its path.

    The content is what ``--vmm-replay`` and ``vmm-conformance replay`` read.
    """
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / program_name(failure.invariant, spec)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(layout(failure.program))
    os.replace(temporary, path)  # other processes may write the same invariant's program
    return path


def write_programs(report: Report, directory: Path) -> list[Path]:
    """Write the shortest program of every broken invariant of every subject."""
    return [
        write_program(directory, entry.failures[0], section.subject.spec)
        for section in report.subjects
        for entry in section.invariants
        if entry.failures
    ]
