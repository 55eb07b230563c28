"""What a host driver keeps book of: reservations, handles, mappings and plain allocations.

Slotted and mutable, with constructors written out rather than delegated to the parent: one of each is
made in every cycle that the benchmark times.
"""

from __future__ import annotations

from typing import TypeAlias

from vmm_conformance.contracts import Access
from vmm_conformance.drivers.host.memory import Memory

Rights: TypeAlias = dict[int, Access]
"""Rights by device; a device that is not named has none. Replaced as a whole, never changed in place."""


class Reservation:
    """An address range given out by reserve. ``mapped`` counts the mappings in it."""

    __slots__ = ("end", "mapped", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.mapped = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return self.end - self.start


class Handle(Memory):
    """Physical memory with an id. It lives while ``references`` or ``mappings`` is above zero."""

    __slots__ = ("device", "id", "mappings", "references")

    def __init__(self, start: int, size: int, identity: int, device: int) -> None:
        self.start = start
        self.size = size
        self.touched = None
        self.complete = False
        self.file = -1
        self.id = identity
        self.device = device
        self.references = 1
        self.mappings = 0


class Part:
    """Addresses with the same rights; ``most`` is the largest of them.

    ``revoked`` holds, by device, the serial number of the call that last lowered its rights.
    """

    __slots__ = ("end", "most", "revoked", "rights", "start")

    def __init__(self, start: int, end: int, rights: Rights, most: Access, revoked: dict[int, int] | None) -> None:
        self.start = start
        self.end = end
        self.rights = rights
        self.most = most
        self.revoked = revoked


class Region(Part):
    """Addresses with memory behind them: byte ``start`` is byte ``offset`` of ``memory``.

    ``removed`` is the serial number of the call that took the region away, 0 while it is there. ``parts``
    is set only where rights differ within it; they stand in ascending order and cover it.
    """

    __slots__ = ("memory", "offset", "parts", "removed", "size")
    memory: Memory
    offset: int
    parts: list[Part] | None
    removed: int
    size: int


class Mapping(Region):
    """A handle mapped into a reservation: its memory from ``offset``. Nobody has rights on it at first."""

    __slots__ = ("handle", "reservation")

    def __init__(self, start: int, size: int, handle: Handle, offset: int, reservation: Reservation) -> None:
        self.start = start
        self.size = size
        self.end = start + size
        self.memory = handle
        self.offset = offset
        self.rights = {}
        self.most = Access.NONE
        self.revoked = None
        self.removed = 0
        self.parts = None
        self.handle = handle
        self.reservation = reservation


class Allocation(Region):
    """Plain memory. ``pages`` is where the pages around it begin, which ``memory`` stands behind."""

    __slots__ = ("device", "pages")

    def __init__(self, start: int, size: int, memory: Memory, rights: Rights, device: int, pages: int) -> None:
        self.start = start
        self.size = size
        self.end = start + size
        self.memory = memory
        self.offset = start - pages
        self.rights = rights
        self.most = Access.READ_WRITE
        self.revoked = None
        self.removed = 0
        self.parts = None
        self.device = device
        self.pages = pages
