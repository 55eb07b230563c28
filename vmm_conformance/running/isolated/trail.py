"""A history that outlives its process: each event is written where the parent reads it as soon as it is recorded.

An event is recorded when its call has returned. So the last one is the last that came back, and the one that never
did is not among them.
"""

from __future__ import annotations

import os
from typing import Final

from vmm_conformance.history.events import Event, History, follow
from vmm_conformance.history.files import event_line, head_line

LONGEST: Final = 64 << 20
"""Bytes of a trail that are read."""


class Trail:
    """The child's side: the file that what is recorded goes to."""

    def __init__(self, file: int) -> None:
        self._file = file

    def begin(self, *, kept: bool) -> None:
        """Another program begins; with ``kept`` its history is written down as it is made."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        follow(self._follow if kept else None)

    def _follow(self, history: History) -> None:
        history.events = _Told(history, self._file)


class _Told(list[Event]):
    """The events of a history, each written down. A header may grow after the first ones, so the last one counts."""

    def __init__(self, history: History, file: int) -> None:
        super().__init__(history.events)
        self._history = history
        self._file = file
        self._head = ""

    def append(self, event: Event) -> None:
        super().append(event)
        head = head_line(self._history)
        text = event_line(event) if head == self._head else f"{head}\n{event_line(event)}"
        self._head = head
        os.write(self._file, f"{text}\n".encode())

    def __reduce__(self) -> tuple[type, tuple[list[Event]]]:
        return list, (list(self),)  # travels as the plain list that it is


def trail_in(file: int) -> str:
    """The parent's side: the text of the history in ``file``, empty if nothing was recorded."""
    lines = os.pread(file, LONGEST, 0).decode("utf-8", "replace").split("\n")[:-1]  # the last one may be cut
    heads = [line for line in lines if line.startswith("{")]
    events = [line for line in lines if line.startswith("[")]
    return "\n".join([heads[-1], *events, ""]) if heads else ""
