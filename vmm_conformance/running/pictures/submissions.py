"""Which calls give work to a stream, and what that work touches; captured work runs with its graph."""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses

_STREAM: Final = {"launch": 0, "copy": 3, "fill": 3, "write": 2, "read": 2, "graph_launch": 1}
NEAR: Final = 64
"""Bytes between two accesses that are shown as one."""


class Touch(NamedTuple):
    """``size`` bytes at ``address`` that work uses."""

    address: int
    size: int
    writes: bool


class Submission(NamedTuple):
    """One work item. ``stream`` is None for the host itself, which does it at once."""

    event: Event
    stream: int | None
    touches: tuple[Touch, ...]


class Submissions:
    """Follows a history; `take` tells for each successful call what work it queues."""

    def __init__(self) -> None:
        self._capturing: dict[int, list[Event]] = {}
        self._graphs: dict[int, list[Event]] = {}

    def captures(self, event: Event) -> bool:
        """Whether the call belongs to a capture: it queues nothing now."""
        if event.kind in ("graph_begin", "graph_end", "graph_instantiate"):
            return True
        return event.kind in _STREAM and event.args[_STREAM[event.kind]] in self._capturing

    def take(self, event: Event) -> Submission | None:
        """The work that ``event`` queues, if it does."""
        if event.status:
            return None
        if event.kind in _STREAM and event.kind != "graph_launch":
            stream = event.args[_STREAM[event.kind]]
            if stream in self._capturing:
                self._capturing[stream].append(event)
                return None
            return Submission(event, stream, _together([event]))
        if event.kind == "graph_launch":
            return Submission(event, event.args[1], _together(self._graphs.get(event.args[0], [])))
        self._capture(event)
        return None

    def _capture(self, event: Event) -> None:
        if event.kind == "graph_begin":
            self._capturing[event.args[0]] = []
        elif event.kind == "graph_end":
            self._graphs[event.result] = self._capturing.pop(event.args[0], [])
        elif event.kind == "graph_instantiate":
            self._graphs[event.result] = self._graphs.get(event.args[0], [])


def _together(events: list[Event]) -> tuple[Touch, ...]:
    """What the submissions touch, near pieces joined, by address."""
    pieces = sorted((address, size, writes) for event in events for address, size, writes in accesses(event) if size)
    joined: list[Touch] = []
    for address, size, writes in pieces:
        last = joined[-1] if joined else None
        if last is not None and address <= last.address + last.size + NEAR:
            end = max(last.address + last.size, address + size)
            joined[-1] = Touch(last.address, end - last.address, last.writes or writes)
        else:
            joined.append(Touch(address, size, writes))
    return tuple(joined)
