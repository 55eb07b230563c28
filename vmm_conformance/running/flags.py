"""Runs programs for the contract ``flags``.

Each operation is a ``begin``, for a read a ``note`` of what came of it, and an ``end`` with its outcome.
The notes: ``settings`` with ``skip_remap``, ``copy_threshold`` and ``warnings``; ``refused`` (the subject
raised `SubjectError`) and ``raised`` (it raised anything else), both with ``code`` and ``message``.
"""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import FlagReader, Revision, capability
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs.flags import CONTRACT, Read
from vmm_conformance.programs.program import Program
from vmm_conformance.running import journal
from vmm_conformance.running.outcome import Outcome, attempt


def run(program: Program, subject: Any, open_driver: object = None) -> History:
    """What ``subject`` (which offers ``flags(revision)``) answers to ``program``. No driver is opened.

    A revision that the subject does not declare (capability ``revisions``) is not run: the history is empty.
    """
    history = History({"contract": CONTRACT, "configuration": program.configuration})
    if program.configuration.revision not in capability(subject, "revisions"):
        return history
    events = history.events

    def record(op: int, kind: str, *arguments: Any) -> None:
        events.append(Event(len(events), op, 0, HARNESS, kind, arguments))

    process = _Process(subject, program.configuration.revision)
    for op, operation in enumerate(program.operations):
        journal.began(op)
        record(op, "begin", operation)
        if isinstance(operation, Read):
            outcome, note = process.read(operation)
            record(op, "note", *note)
        else:
            process = _Process(subject, program.configuration.revision)
            outcome = _OK
        record(op, "end", outcome)
    return history


_OK: Final[Outcome] = attempt(lambda: None)


class _Process:
    """One process. Its reader is made at the first read: a subject that cannot make it fails there."""

    def __init__(self, subject: Any, revision: Revision) -> None:
        self._subject = subject
        self._revision = revision
        self._reader: FlagReader | None = None

    def read(self, operation: Read) -> tuple[Outcome, tuple[str, dict[str, Any]]]:
        """Read the settings: how that ended, and the note of it."""
        settings: dict[str, Any] = {}
        outcome = attempt(lambda: self._read(operation, settings))
        if outcome["status"] == "ok":
            return outcome, ("settings", settings)
        what = "refused" if outcome["status"] == "refused" else "raised"
        return outcome, (what, {"code": outcome["code"], "message": outcome["message"]})

    def _read(self, operation: Read, into: dict[str, Any]) -> None:
        if self._reader is None:
            self._reader = self._subject.flags(self._revision)
        # copies: a reader that changes what it is given must not change the program
        got = self._reader.read(operation.platform, dict(operation.environment), dict(operation.options))
        warnings = tuple(str(warning) for warning in got.warnings)
        into |= {"skip_remap": got.skip_remap, "copy_threshold": got.copy_threshold, "warnings": warnings}
