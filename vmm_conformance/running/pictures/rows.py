"""The time axis of a picture: what happened, one row below the other, calls of one kind sharing a row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from vmm_conformance.history.events import CALLS, Event

MAKES: Final = frozenset(
    {"reserve", "create", "retain", "map", "set_access", "alloc", "event_create", "stream_create"}
    | {"get_access", "mem_info", "address_range"}
)
"""Calls that bring something into being, and questions."""
ENDS: Final = frozenset(
    {"unmap", "address_free", "release", "free", "event_destroy", "stream_destroy"}
    | {"graph_destroy", "graph_exec_destroy"}
)
"""Calls that take something away."""
CALLS_SHOWN: Final = 12
"""Texts kept of one row."""


@dataclass(slots=True)
class Row:
    """One step of time. ``op`` is the operation it belongs to; ``bad`` and ``cause`` as in a finding."""

    op: int
    who: str
    thread: int
    calls: list[str] = field(default_factory=list)
    more: int = 0
    refused: bool = False
    bad: bool = False
    cause: bool = False


class Rows:
    """Gives every event its row. Those of ``apart`` (event numbers) share theirs with no other."""

    def __init__(self, apart: Collection[int]) -> None:
        self.rows: list[Row] = []
        self._apart = apart
        self._key: tuple[Any, ...] = ()
        self._seen: set[int] = set()

    def place(self, event: Event, text: str, group: str = "") -> int:
        """The row of ``event``; of one without ``group`` it is decided by the kind of call."""
        group = group or _group(event)
        lonely = event.seq in self._apart or event.status or not group
        key = (event.seq,) if lonely else (group, event.op, event.who, event.thread)
        if key != self._key:
            self._key = key
            self.rows.append(Row(event.op, event.who, event.thread))
            self._seen.add(event.op)
        row = self.rows[-1]
        if len(row.calls) < CALLS_SHOWN:
            row.calls.append(text)
        else:
            row.more += 1
        row.refused = row.refused or (event.status != 0 and event.kind in CALLS)
        return len(self.rows) - 1

    def empty(self, event: Event) -> None:
        """The operation of ``event`` is over; it gets a row of its own if it did nothing."""
        if event.op not in self._seen:
            self._key = ()
            self.rows.append(Row(event.op, event.who, event.thread))
            self._seen.add(event.op)


def _group(event: Event) -> str:
    if event.kind in MAKES:
        return "makes"
    if event.kind in ENDS:
        return "ends"
    return "ran" if event.kind == "ran" else ""
