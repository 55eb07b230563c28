"""One event after another, with the state and the order that they make."""

from __future__ import annotations

from typing import Any

from vmm_conformance.contracts import Range, Write
from vmm_conformance.history.events import FIELDS, SUBJECT, Event
from vmm_conformance.history.ordering import Order
from vmm_conformance.history.state import State

G = 4096
A, B = 0x10_0000, 0x20_0000
"""Two reserved ranges of four granules."""
RW = 3


class Line:
    """``line(kind, *args)`` takes one more event in."""

    def __init__(self) -> None:
        self.state = State()
        self.order = Order(self.state)
        self.count = 0
        self.works = 1000

    def __call__(self, kind: str, *args: Any, result: Any = None, status: int = 0, who: str = SUBJECT) -> Event:
        assert len(args) == len(FIELDS[kind]), kind
        event = Event(self.count, 0, 0, who, kind, args, status, result)
        self.count += 1
        self.state.apply(event)
        self.order.apply(event)
        return event

    def reserve(self, *addresses: int) -> None:
        for address in addresses or (A, B):
            self("reserve", 4 * G, 0, 0, result=address)

    def back(self, address: int, handle: int, *, size: int = G, rights: int = RW, offset: int = 0) -> None:
        """Map memory, created at its first mention, with rights for device 0."""
        if handle not in self.state.handles:
            self("create", offset + size, 0, 0, result=handle)
        self("map", address, size, handle, offset)
        self("set_access", address, size, ((0, rights),))

    def work(self, stream: int, *, reads: int = 0, writes: int = 0, size: int = 8) -> Event:
        """A launch that touches up to two places."""
        self.works += 1
        read = (Range(reads, size),) if reads else ()
        write = (Write(writes, b"x" * size),) if writes else ()
        return self("launch", stream, read, (), write, result=self.works)

    def races(self) -> list[tuple[int, int]]:
        return [(race.first.event.seq, race.second.event.seq) for race in self.order.races]

    def hazards(self) -> list[tuple[int, int]]:
        return [(hazard.use.event.seq, hazard.event.seq) for hazard in self.order.hazards]
