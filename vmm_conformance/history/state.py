"""What a driver holds, as far as a history tells: replayed from its events alone.

The checkers' picture of reservations, mappings, rights, handles and allocations. It believes what
the driver answered (a refused call changes nothing) and never asks a driver.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from vmm_conformance.history.events import Event

OPEN: Final = -1
"""In a record's ``ended``: it has not ended yet."""
_ANSWERS: Final = 4096
"""So many answers of `State.parts` are kept at most."""


class Reservation:
    """An address range that is reserved; ``made`` and ``ended`` are event numbers."""

    __slots__ = ("address", "ended", "made", "size", "who")

    def __init__(self, address: int, size: int, made: int, who: str) -> None:
        self.address = address
        self.size = size
        self.made = made
        self.ended = OPEN
        self.who = who


class Memory:
    """Physical memory: a handle's, or a plain allocation's (then ``handle`` is 0).

    Its identity is the object; addresses and handle numbers may come back. ``references`` and
    ``mappings`` are counted apart.
    """

    __slots__ = ("address", "device", "ended", "handle", "made", "mappings", "references", "size", "space", "who")

    def __init__(self, event: Event, size: int, device: int, space: int, *, handle: int, address: int) -> None:
        self.size = size
        self.device = device
        self.space = space
        self.handle = handle
        self.address = address
        self.made = event.seq
        self.ended = OPEN
        self.who = event.who
        self.references = 1
        self.mappings = 0


class Mapping:
    """``size`` bytes of ``memory`` from ``offset``, visible at ``address`` with rights per device."""

    __slots__ = ("address", "ended", "made", "memory", "offset", "reservation", "rights", "size", "who")

    def __init__(
        self, event: Event, address: int, size: int, memory: Memory, offset: int, reservation: Reservation | None
    ) -> None:
        self.address = address
        self.size = size
        self.memory = memory
        self.offset = offset
        self.reservation = reservation
        self.rights: dict[int, int] = {}
        self.made = event.seq
        self.ended = OPEN
        self.who = event.who


class Part:
    """The piece of an address range that lies in one mapping or plain allocation.

    ``low`` and ``high`` are offsets in ``memory``; ``mapping`` is None for a plain allocation.
    """

    __slots__ = ("high", "low", "mapping", "memory")

    def __init__(self, memory: Memory, mapping: Mapping | None, low: int, high: int) -> None:
        self.memory = memory
        self.mapping = mapping
        self.low = low
        self.high = high


class State:
    """The driver's state before the next event.

    After `apply`, ``ended`` lists the mappings and memories that the event ended, and ``lowered`` the
    mappings whose rights it reduced.
    """

    def __init__(self) -> None:
        self.reservations: dict[int, Reservation] = {}
        self.handles: dict[int, Memory] = {}
        self.ended: list[Mapping | Memory] = []
        self.lowered: list[Mapping] = []
        self._reserved: list[int] = []
        self._mappings: dict[int, Mapping] = {}
        self._mapped: list[int] = []
        self._allocations: dict[int, Memory] = {}
        self._allocated: list[int] = []
        self._parts: dict[tuple[int, int], list[Part]] = {}
        """What `parts` has answered since memory last came or went: the same ranges are asked for again and again."""

    # -- questions

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """The live mappings, by address."""
        return tuple(self._mappings[address] for address in self._mapped)

    @property
    def allocations(self) -> tuple[Memory, ...]:
        """The live plain allocations, by address."""
        return tuple(self._allocations[address] for address in self._allocated)

    def mapping_at(self, address: int) -> Mapping | None:
        """The mapping that covers ``address``."""
        at = bisect_right(self._mapped, address) - 1
        if at < 0:
            return None
        mapping = self._mappings[self._mapped[at]]
        return mapping if address < mapping.address + mapping.size else None

    def allocation_at(self, address: int) -> Memory | None:
        """The plain allocation that covers ``address``."""
        at = bisect_right(self._allocated, address) - 1
        if at < 0:
            return None
        memory = self._allocations[self._allocated[at]]
        return memory if address < memory.address + memory.size else None

    def taken_in(self, low: int, high: int) -> Memory | Reservation | None:
        """A reservation or a plain allocation with an address in ``low`` to ``high``, the latter not included."""
        for starts, held in ((self._reserved, self.reservations), (self._allocated, self._allocations)):
            before = bisect_left(starts, high) - 1
            one: Memory | Reservation | None = held[starts[before]] if before >= 0 else None
            if one is not None and one.address + one.size > low:
                return one
        return None

    def reservation_at(self, address: int) -> Reservation | None:
        """The reservation that covers ``address``."""
        at = bisect_right(self._reserved, address) - 1
        if at < 0:
            return None
        reservation = self.reservations[self._reserved[at]]
        return reservation if address < reservation.address + reservation.size else None

    def mappings_in(self, address: int, size: int) -> list[Mapping]:
        """The live mappings that overlap the range, by address."""
        mapped, end = self._mapped, address + size
        at = max(bisect_right(mapped, address) - 1, 0)
        found = []
        while at < len(mapped) and mapped[at] < end:
            mapping = self._mappings[mapped[at]]
            if mapping.address + mapping.size > address:
                found.append(mapping)
            at += 1
        return found

    def parts(self, address: int, size: int) -> list[Part]:
        """What stands behind the range, piece by piece; bytes with nothing behind them are left out.

        The list may be handed out again: do not change it.
        """
        found = self._parts.get((address, size))
        if found is None:
            if len(self._parts) >= _ANSWERS:
                self._parts.clear()
            found = self._parts[address, size] = self._find_parts(address, size)
        return found

    def _find_parts(self, address: int, size: int) -> list[Part]:
        mapping = self.mapping_at(address)
        if mapping is not None and address + size <= mapping.address + mapping.size:
            low = mapping.offset + address - mapping.address
            return [Part(mapping.memory, mapping, low, low + size)]
        memory = None if mapping else self.allocation_at(address)
        if memory is not None:
            low = address - memory.address
            return [Part(memory, None, low, min(low + size, memory.size))]
        return [
            Part(
                m.memory,
                m,
                m.offset + max(address, m.address) - m.address,
                m.offset + min(address + size, m.address + m.size) - m.address,
            )
            for m in self.mappings_in(address, size)
        ]

    # -- replay

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        if self.ended:
            self.ended = []
        if self.lowered:
            self.lowered = []
        if event.status == 0:
            change = _CHANGES.get(event.kind)
            if change is not None:
                self._parts.clear()
                change(self, event)

    def _reserve(self, event: Event) -> None:
        if event.result not in self.reservations:
            insort(self._reserved, event.result)
        self.reservations[event.result] = Reservation(event.result, event.args[0], event.seq, event.who)

    def _address_free(self, event: Event) -> None:
        reservation = self.reservations.pop(event.args[0], None)
        if reservation is not None:
            del self._reserved[bisect_left(self._reserved, reservation.address)]
            reservation.ended = event.seq

    def _create(self, event: Event) -> None:
        size, device, space = event.args
        self.handles[event.result] = Memory(event, size, device, space, handle=event.result, address=0)

    def _retain(self, event: Event) -> None:
        memory = self.handles.get(event.result)
        if memory is not None:
            memory.references += 1

    def _release(self, event: Event) -> None:
        memory = self.handles.get(event.args[0])
        if memory is not None:
            memory.references -= 1
            self._settle(memory, event)

    def _settle(self, memory: Memory, event: Event) -> None:
        """Memory ends with its last reference and its last mapping, whichever comes later."""
        if memory.references <= 0 and memory.mappings <= 0 and memory.ended == OPEN:
            memory.ended = event.seq
            self.ended.append(memory)
            self.handles.pop(memory.handle, None)

    def _map(self, event: Event) -> None:
        address, size, handle, offset = event.args
        memory = self.handles.get(handle)
        if memory is None:
            return
        mapping = Mapping(event, address, size, memory, offset, self.reservation_at(address))
        memory.mappings += 1
        if address not in self._mappings:
            self._mapped.insert(bisect_right(self._mapped, address), address)
        self._mappings[address] = mapping

    def _unmap(self, event: Event) -> None:
        for mapping in self.mappings_in(*event.args):
            mapping.ended = event.seq
            mapping.memory.mappings -= 1
            self.ended.append(mapping)
            del self._mappings[mapping.address]
            del self._mapped[bisect_left(self._mapped, mapping.address)]
            self._settle(mapping.memory, event)

    def _set_access(self, event: Event) -> None:
        address, size, rights = event.args
        for mapping in self.mappings_in(address, size):
            if any(mapping.rights.get(device, 0) & ~access for device, access in rights):
                self.lowered.append(mapping)
            mapping.rights.update(rights)

    def _alloc(self, event: Event) -> None:
        size, device, space = event.args
        memory = Memory(event, size, device, space, handle=0, address=event.result)
        if event.result not in self._allocations:
            self._allocated.insert(bisect_right(self._allocated, event.result), event.result)
        self._allocations[event.result] = memory

    def _free(self, event: Event) -> None:
        memory = self._allocations.pop(event.args[0], None)
        if memory is not None:
            del self._allocated[bisect_left(self._allocated, memory.address)]
            memory.ended = event.seq
            self.ended.append(memory)


_CHANGES: Final[dict[str, Callable[[State, Event], None]]] = {
    name: getattr(State, f"_{name}")
    for name in (
        "reserve", "address_free", "create", "retain", "release", "map", "unmap", "set_access", "alloc", "free",
    )
}  # fmt: skip
"""What each call changes. Not bound to a state: one that refers to itself is left to the garbage collector."""
