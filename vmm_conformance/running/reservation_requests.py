"""Which descriptors a program's mapping and remapping operations ask for, given what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import DriverCapabilities
from vmm_conformance.programs.reservation import MapOne, MapTo, Odd, Remap

NULL: Final = 0
"""Instead of an allocation's number: none at all."""
FOREIGN: Final = -1
"""Instead of an allocation's number: an object that the subject has not made."""
LOGICAL: Final = 100
"""Bytes that a size which is no multiple of the granularity lacks."""


class Memory:
    """An allocation. ``object`` is the subject's; ``held`` until it was released."""

    __slots__ = ("device", "held", "id", "object", "size")

    def __init__(self, identity: int, device: int, made: Any, size: int) -> None:
        self.id = identity
        self.device = device
        self.object = made
        self.size = size
        self.held = True


class Slice(NamedTuple):
    """One descriptor: ``memory`` is an allocation's number, `NULL` or `FOREIGN`."""

    offset: int
    skip: int
    size: int
    memory: int
    required: bool = True


class Piece(NamedTuple):
    """What one slice of a live mapping shows: ``size`` bytes of ``memory`` from ``skip``, at ``offset``."""

    offset: int
    skip: int
    size: int
    memory: Memory


class Room:
    """What a request is made from: the device's memory, its granularities, and what its driver maps."""

    __slots__ = ("capabilities", "held", "minimum", "released", "unit")

    def __init__(
        self, memories: Sequence[Memory], device: int, minimum: int, unit: int, capabilities: DriverCapabilities
    ) -> None:
        own = [memory for memory in memories if memory.device == device]
        self.held = [memory for memory in own if memory.held]
        self.released = [memory for memory in own if not memory.held]
        self.minimum = minimum
        self.unit = unit
        self.capabilities = capabilities

    def part(self, memory: Memory) -> tuple[int, int]:
        """Half of ``memory``, as skip and size, where the driver maps halves; else all of it."""
        half = memory.size // 2 // self.minimum * self.minimum
        if not half:
            return 0, memory.size
        if self.capabilities.map_offset:
            return half, memory.size - half
        return (0, half) if self.capabilities.partial_map else (0, memory.size)

    def filling(self, size: int) -> list[tuple[Memory, int]]:
        """The allocations that fill ``size`` bytes on this driver, and the skip with which each does."""
        found = []
        for memory in self.held:
            if memory.size == size or (memory.size > size and self.capabilities.partial_map):
                found.append((memory, 0))
            elif memory.size > size and self.capabilities.map_offset:
                found.append((memory, memory.size - size))
        return found


# -- mapping


def mapping_request(
    operation: MapOne | MapTo, room: Room, size: int, taken: Sequence[tuple[int, int]]
) -> list[Slice] | None:
    """The slices to map in a reservation of ``size`` bytes; ``taken`` are the places in use, ascending.

    None if there is no memory to map.
    """
    if not room.held:
        return None
    chosen = operation.allocations if isinstance(operation, MapTo) else (operation.allocation,)
    memories = [room.held[number % len(room.held)] for number in chosen] or room.held[:1]
    parts = [(memory.id, *(room.part(memory) if operation.part else (0, memory.size))) for memory in memories]
    starts: list[int] = []
    while not starts:
        total = sum(part[2] for part in parts)
        starts = _starts(total, size, taken, room.unit)
        if starts or len(parts) == 1:
            break
        parts.pop()
    start = starts[operation.place % len(starts)] if starts else operation.place * room.unit % size
    at = operation.at if isinstance(operation, MapTo) else 0
    slices = _lay(start, [Slice(0, skip, length, memory) for memory, skip, length in parts])
    spoil = _MAP_ODDS.get(operation.odd)
    return spoil(slices, at % len(slices), room, size, taken) if spoil else slices


def _starts(total: int, size: int, taken: Sequence[tuple[int, int]], unit: int) -> list[int]:
    """The offsets, ``unit`` bytes apart, where ``total`` bytes are free."""
    starts: list[int] = []
    free = 0
    for begin, end in (*taken, (size, size)):
        starts += range(free, begin - total + 1, unit)
        free = max(free, end)
    return starts


def _lay(start: int, slices: Sequence[Slice]) -> list[Slice]:
    """``slices`` one behind the other from ``start``."""
    laid = []
    for one in slices:
        laid.append(one._replace(offset=start))
        start += one.size
    return laid


Spoil = Callable[[list[Slice], int, Room, int, Sequence[tuple[int, int]]], list[Slice]]


def _changed(slices: list[Slice], at: int, **fields: Any) -> list[Slice]:
    """``slices`` with fields of one of them changed, and laid anew."""
    start = slices[0].offset
    return _lay(start, [one._replace(**fields) if i == at else one for i, one in enumerate(slices)])


def _moved(slices: list[Slice], at: int, by: int) -> list[Slice]:
    """The slices from ``at`` on moved; the first one never is."""
    at = max(at, 1)
    return [one._replace(offset=one.offset + by) if i >= at else one for i, one in enumerate(slices)]


def _map_offset(slices: list[Slice], at: int, room: Room) -> list[Slice]:
    """A skip: with as much less size, if that leaves any."""
    one = slices[at]
    return _changed(slices, at, skip=room.unit, size=one.size - room.unit if one.size > room.unit else one.size)


_MAP_ODDS: Final[dict[Odd, Spoil]] = {
    Odd.EMPTY: lambda slices, at, room, size, taken: [],
    Odd.GAP: lambda slices, at, room, size, taken: _moved(slices, at, room.unit),
    Odd.BACK: lambda slices, at, room, size, taken: _moved(slices, at, -room.unit),
    Odd.FOREIGN: lambda slices, at, room, size, taken: _changed(slices, at, memory=FOREIGN),
    Odd.UNALIGNED: lambda slices, at, room, size, taken: _changed(slices, at, size=slices[at].size - LOGICAL),
    Odd.NO_BYTES: lambda slices, at, room, size, taken: _changed(slices, at, size=0),
    Odd.TOO_LARGE: lambda slices, at, room, size, taken: _changed(slices, at, size=slices[at].size + room.unit),
    Odd.OFFSET: lambda slices, at, room, size, taken: _map_offset(slices, at, room),
    Odd.OUTSIDE: lambda slices, at, room, size, taken: _lay(size - slices[-1].size + room.unit, slices),
    Odd.OCCUPIED: lambda slices, at, room, size, taken: _lay(taken[at % len(taken)][0] if taken else 0, slices),
    Odd.GONE: lambda slices, at, room, size, taken: (
        _changed(slices, at, memory=room.released[0].id) if room.released else slices
    ),
}


# -- remapping


def pieces_of(slices: Iterable[Slice], before: Iterable[Piece], memories: Iterable[Memory]) -> list[Piece]:
    """What is shown behind a call that went well; ``before`` is what was."""
    known = {memory.id: memory for memory in memories}
    required = [one for one in slices if one.required]
    pieces = [Piece(s.offset, s.skip, s.size, known[s.memory]) for s in required if s.memory in known]
    pieces += [p for p in before if not any(s.offset <= p.offset < s.offset + s.size for s in required)]
    return sorted(pieces, key=lambda piece: piece.offset)


def remapping_request(operation: Remap, room: Room, pieces: Sequence[Piece]) -> list[Slice]:
    """The slices that describe a mapping of ``pieces``."""
    chosen = operation.allocations or (0,)
    slices: list[Slice] = []
    for number, piece in enumerate(pieces):
        filling = room.filling(piece.size) if operation.required >> number & 1 else []
        pick = chosen[number % len(chosen)]
        if filling:
            memory, skip = filling[pick % len(filling)]
            slices.append(Slice(piece.offset, skip, piece.size, memory.id))
        else:
            slices.append(_unchanged(piece, room, pick if operation.lie else None))
    if operation.merge:
        slices = _merged(slices, room, chosen[0])
    if operation.split:
        slices = _split(slices, room, chosen[-1])
    spoil = _REMAP_ODDS.get(operation.odd)
    return spoil(slices, operation.at % len(slices), room, chosen[0]) if spoil else slices


def _unchanged(piece: Piece, room: Room, lie: int | None) -> Slice:
    """A slice that stays: described as it is, or by other memory that is held."""
    true = Slice(piece.offset, piece.skip, piece.size, piece.memory.id, False)
    others = [memory for memory in room.held if memory is not piece.memory]
    return true if lie is None or not others else true._replace(skip=0, memory=others[lie % len(others)].id)


def _merged(slices: list[Slice], room: Room, pick: int) -> list[Slice]:
    """The first two required slices that touch as one, where some memory fills it."""
    for at, (one, behind) in enumerate(pairwise(slices)):
        filling = room.filling(one.size + behind.size) if one.required and behind.required else []
        if filling:
            memory, skip = filling[pick % len(filling)]
            return [*slices[:at], Slice(one.offset, skip, one.size + behind.size, memory.id), *slices[at + 2 :]]
    return slices


def _split(slices: list[Slice], room: Room, pick: int) -> list[Slice]:
    """The first required slice of two granules or more as two, where some memory fills each."""
    for at, one in enumerate(slices):
        half = one.size // 2 // room.unit * room.unit
        first, second = (room.filling(size) if half else [] for size in (half, one.size - half))
        if one.required and first and second:
            parts = []
            for place, size, filling in ((one.offset, half, first), (one.offset + half, one.size - half, second)):
                memory, skip = filling[pick % len(filling)]
                parts.append(Slice(place, skip, size, memory.id))
            return [*slices[:at], *parts, *slices[at + 1 :]]
    return slices


def _set(slices: list[Slice], at: int, **fields: Any) -> list[Slice]:
    return [one._replace(**fields) if i == at else one for i, one in enumerate(slices)]


def _cut(slices: list[Slice], at: int, border: int) -> list[Slice]:
    """One slice described as two, of which the first is required."""
    one = slices[at]
    if not 0 < border < one.size:
        return slices
    first = one._replace(size=border, required=True)
    second = one._replace(offset=one.offset + border, skip=one.skip + border, size=one.size - border, required=False)
    return [*slices[:at], first, second, *slices[at + 1 :]]


def _short(slices: list[Slice], unit: int) -> list[Slice]:
    """The last slice left out; if it is the only one, the end of it."""
    if len(slices) > 1:
        return slices[:-1]
    return _set(slices, 0, size=slices[0].size - unit) if slices[0].size > unit else _longer(slices, unit)


def _longer(slices: list[Slice], size: int) -> list[Slice]:
    last = slices[-1]
    return [*slices, last._replace(offset=last.offset + last.size, size=size)]


def _too_large(slices: list[Slice], at: int, room: Room) -> list[Slice]:
    """A required slice with memory that is too small for it, if there is any such."""
    small = next((memory for memory in room.held if memory.size < slices[at].size), None)
    return _set(slices, at, skip=0, memory=small.id, required=True) if small else slices


def _gone(slices: list[Slice], at: int, room: Room) -> list[Slice]:
    return _set(slices, at, memory=room.released[0].id, required=True) if room.released else slices


_REMAP_ODDS: Final[dict[Odd, Callable[[list[Slice], int, Room, int], list[Slice]]]] = {
    Odd.EMPTY: lambda slices, at, room, pick: [],
    Odd.GAP: lambda slices, at, room, pick: _moved(slices, at, room.unit),
    Odd.BACK: lambda slices, at, room, pick: _moved(slices, at, -room.unit),
    Odd.FOREIGN: lambda slices, at, room, pick: _set(slices, at, memory=FOREIGN, required=True),
    Odd.NULL: lambda slices, at, room, pick: _set(slices, at, memory=NULL),
    Odd.UNALIGNED: lambda slices, at, room, pick: _cut(slices, at, slices[at].size - LOGICAL),
    Odd.NO_BYTES: lambda slices, at, room, pick: _set(_longer(slices, 0), len(slices), required=True),
    Odd.TOO_LARGE: lambda slices, at, room, pick: _too_large(slices, at, room),
    Odd.OFFSET: lambda slices, at, room, pick: _set(slices, at, skip=room.unit, required=True),
    Odd.GONE: lambda slices, at, room, pick: _gone(slices, at, room),
    Odd.SHORT: lambda slices, at, room, pick: _short(slices, room.unit),
    Odd.LONG: lambda slices, at, room, pick: _longer(slices, room.unit),
    Odd.SHIFTED: lambda slices, at, room, pick: [one._replace(offset=one.offset + room.unit) for one in slices],
    Odd.CUT: lambda slices, at, room, pick: _cut(slices, at, slices[at].size // 2 // room.minimum * room.minimum),
}
