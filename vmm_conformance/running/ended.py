"""What is known of a process that ended, or was ended, while it ran a program."""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.programs.program import Program

CRASH: Final = "crash"
TIMEOUT: Final = "timeout"


class Ended(Exception):
    """A program did not return: its process crashed, exited, was killed, or made no progress.

    ``kind`` is ``crash`` or ``timeout``, ``how`` says it in words, ``op`` is the operation that the journal
    names (-1 before the first, the program's length while the subject was closed), and ``stack`` are the
    innermost Python frames, as far as the process could tell them. ``trail`` is the history up to there as text
    (see `history.files`), empty where none was asked for.
    """

    def __init__(self, kind: str, how: str, op: int, stack: tuple[str, ...] = (), trail: str = "") -> None:
        super().__init__(how)
        self.kind = kind
        self.how = how
        self.op = op
        self.stack = stack
        self.trail = trail


class Way(NamedTuple):
    """What tells one way to end from another: crash or timeout, and the kind of operation, empty outside any."""

    kind: str
    operation: str


def way_of(ended: Ended, program: Program) -> Way:
    """How ``program`` ended its process, as far as two programs can be said to end alike."""
    inside = 0 <= ended.op < len(program.operations)
    return Way(ended.kind, type(program.operations[ended.op]).__name__ if inside else "")


class Broke(Exception):
    """A checker or the harness broke in the child; the message is that error's class and text."""


def reason(error: BaseException) -> str:
    """What broke, as a report says it: the same with and without isolation."""
    return str(error) if isinstance(error, Broke) else f"{type(error).__name__}: {error}"
