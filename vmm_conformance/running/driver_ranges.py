"""Which range a map, an unmap, a set_access or a copy of a program is about. See `driver_operands`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.state import Mapping, Memory, Reservation
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.running.driver_operands import Arguments, Operands, far_behind, nth, run_of


class Party(NamedTuple):
    """Who touches memory: a device through a stream, or the host where ``device`` is None."""

    device: int | None


class Ranges(Operands):
    """Operands that are address ranges."""

    # -- map

    def map(self, op: ops.Map) -> Arguments | None:
        """(address, size, handle, offset)."""
        least = 2 if op.twist in ("part", "offset", "past-end", "across") else 1
        usable = [memory for memory in self.held() if memory.size >= least * self.granule]
        memory = nth(usable, op.handle)
        return _MAP[op.twist](self, op, memory) if memory else None

    def _map_whole(self, op: ops.Map, memory: Memory) -> Arguments | None:
        return self._map_at(op, memory, memory.size)

    def _map_part(self, op: ops.Map, memory: Memory) -> Arguments | None:
        return self._map_at(op, memory, memory.size - self.granule)

    def _map_uneven(self, op: ops.Map, memory: Memory) -> Arguments | None:
        return self._map_at(op, memory, memory.size - (1 if op.at % 2 else self.granule // 2))

    def _map_nothing(self, op: ops.Map, memory: Memory) -> Arguments | None:
        place = self._place(op, memory.size)
        return (place, 0, memory.handle, 0) if place else None

    def _map_offset(self, op: ops.Map, memory: Memory) -> Arguments | None:
        return self._map_at(op, memory, memory.size - self.granule, offset=self.granule)

    def _map_too_big(self, op: ops.Map, memory: Memory) -> Arguments | None:
        return self._map_at(op, memory, memory.size + self.granule)

    def _map_at(self, op: ops.Map, memory: Memory, size: int, *, offset: int = 0) -> Arguments | None:
        place = self._place(op, size)
        return (place, size, memory.handle, offset) if place else None

    def _map_askew(self, op: ops.Map, memory: Memory) -> Arguments | None:
        place = self._place(op, memory.size + self.granule) or self._place(op, memory.size)
        return (place + self.granule // 2, memory.size, memory.handle, 0) if place else None

    def _map_past_end(self, op: ops.Map, memory: Memory) -> Arguments | None:
        tails = [
            gap.end
            for reservation in self.state.reservations.values()
            for gap in self.gaps_of(reservation)
            if gap.end == reservation.address + reservation.size
        ]
        end = nth(tails, op.reservation)
        return (end - self.granule, memory.size, memory.handle, 0) if end else None

    def _map_across(self, op: ops.Map, memory: Memory) -> Arguments | None:
        pair = nth(list(self._neighbours()), op.reservation)
        return (pair[1].address - self.granule, memory.size, memory.handle, 0) if pair else None

    def _map_outside(self, op: ops.Map, memory: Memory) -> Arguments | None:
        gone = [r for r in self.freed if self.state.reservation_at(r.address) is None]
        stale = nth(gone, op.reservation)
        address = stale.address if stale and op.at % 2 == 0 else far_behind([*self.state.reservations.values()])
        return address, memory.size, memory.handle, 0

    def _map_onto(self, op: ops.Map, memory: Memory) -> Arguments | None:
        mapping = nth(self.state.mappings, op.reservation)
        if mapping is None or mapping.reservation is None:
            return None
        inside = mapping.reservation
        first = max(inside.address, mapping.address - memory.size + self.granule)
        last = min(inside.address + inside.size - memory.size, mapping.address + mapping.size - self.granule)
        if last < first:
            return None
        starts = (mapping.address, first, last)
        return min(max(starts[op.at % 3], first), last), memory.size, memory.handle, 0

    def _place(self, op: ops.Map, size: int) -> int | None:
        """The ``at``-th address at which ``size`` bytes are free, in the first reservation with room."""
        reservations = list(self.state.reservations.values())
        for step in range(len(reservations)):
            reservation = reservations[(op.reservation + step) % len(reservations)]
            address = self._place_in(reservation, op.at, size)
            if address is not None:
                return address
        return None

    def _place_in(self, reservation: Reservation, at: int, size: int) -> int | None:
        gaps = [gap for gap in self.gaps_of(reservation) if gap.size >= size]
        counts = [(gap.size - size) // self.granule + 1 for gap in gaps]
        if not gaps:
            return None
        at %= sum(counts)
        for gap, count in zip(gaps, counts, strict=True):
            if at < count:
                return gap.address + at * self.granule
            at -= count
        return None

    # -- unmap and set_access

    def unmap(self, op: ops.Unmap) -> Arguments | None:
        """(address, size)."""
        found = self._cut(op.mapping, op.count, op.twist)
        return tuple(found) if found else None

    def set_access(self, op: ops.SetAccess) -> Arguments | None:
        """(address, size, rights)."""
        found = self._cut(op.mapping, op.count, op.twist)
        if found is None:
            return None
        mapping = self.state.mapping_at(found.address)
        return (*found, self.rights(op, mapping.memory.device if mapping else 0))

    def _cut(self, number: int, count: int, twist: str) -> Range | None:
        if twist == "reserved":
            return nth(list(self.gaps()), number)
        if twist in ("twice", "unmapped"):
            return nth(self.bare(), number)
        if twist == "tail":
            mapping = nth(self._tails(), number)
        elif twist == "latest":
            mapping = max(self.state.mappings, key=lambda m: m.made, default=None)
        else:
            least = {"middle": 3, "part": 2, "left": 2, "right": 2}.get(twist, 1) * self.granule
            large = [mapping for mapping in self.state.mappings if mapping.size >= least]
            mapping = nth(large or self.state.mappings, number)
        if mapping is None:
            return None
        cut = _CUTS.get(twist)
        return cut(self, mapping, count) if cut else self._whole(mapping, count)

    def _tails(self) -> list[Mapping]:
        """Mappings that are not the first of their reservation."""
        pairs = zip(self.state.mappings, self.state.mappings[1:], strict=False)
        return [right for left, right in pairs if left.reservation is right.reservation]

    def _heads(self) -> list[Mapping]:
        """Mappings that begin a reservation right where another one ends."""
        firsts = [m for m in self.state.mappings if m.reservation and m.reservation.address == m.address]
        return [m for m in firsts if self.state.reservation_at(m.address - 1)]

    def _whole(self, mapping: Mapping, count: int) -> Range:
        last = run_of(self.state, mapping, count)[-1]
        return Range(mapping.address, last.address + last.size - mapping.address)

    def _left(self, mapping: Mapping, count: int) -> Range:
        return Range(mapping.address, self._piece(mapping))

    def _middle(self, mapping: Mapping, count: int) -> Range:
        piece = self._piece(mapping)
        start = mapping.address + (piece if mapping.size >= 2 * piece else 0)
        return Range(start, min(piece, mapping.address + mapping.size - start))

    def _right(self, mapping: Mapping, count: int) -> Range:
        piece = self._piece(mapping)
        return Range(mapping.address + mapping.size - piece, piece)

    def _any_part(self, mapping: Mapping, count: int) -> Range:
        return (self._left, self._middle, self._right)[count % 3](mapping, count)

    def _piece(self, mapping: Mapping) -> int:
        return self.granule if mapping.size > self.granule else self.granule // 2

    def _empty(self, mapping: Mapping, count: int) -> Range:
        return Range(mapping.address, 0)

    def _short(self, mapping: Mapping, count: int) -> Range:
        return Range(mapping.address, mapping.size - 1)

    def _long(self, mapping: Mapping, count: int) -> Range:
        return Range(mapping.address, mapping.size + 1)

    def _skew(self, mapping: Mapping, count: int) -> Range | None:
        run = run_of(self.state, mapping, 2)
        return Range(mapping.address, mapping.size + self._piece(run[1])) if len(run) == 2 else None

    def _hole(self, mapping: Mapping, count: int) -> Range | None:
        """The mapping, with the unmapped granule of its reservation in front of it or behind."""
        before = mapping.address - self.granule
        for start, at in ((mapping.address, mapping.address + mapping.size), (before, before)):
            inside = self.state.reservation_at(at)
            if inside is mapping.reservation and self.state.mapping_at(at) is None:
                return Range(start, mapping.size + self.granule)
        return None

    def _gap(self, mapping: Mapping, count: int) -> Range | None:
        """From the mapping to the end of the next one in its reservation, which does not touch it."""
        inside = mapping.reservation
        if inside is None:
            return None
        end = mapping.address + mapping.size
        behind = self.state.mappings_in(end, inside.address + inside.size - end)
        if not behind or behind[0].address == end:
            return None
        return Range(mapping.address, behind[0].address + behind[0].size - mapping.address)

    # -- data

    def data(self, op: ops.Write | ops.Read, party: Party, *, write: bool) -> Range | None:
        """The bytes to read or write."""
        if op.twist == "reserved":
            gap = nth(list(self.gaps()), op.mapping)
            return Range(gap.address, min(op.size, gap.size)) if gap else None
        if op.twist in ("seam", "across"):
            return self._seam(op, party, write=write)
        if op.twist == "exact":
            spots = self.spots(party, write=write)
        else:
            denied = op.twist == "denied"
            spots = [m for m in self.state.mappings if _most(m, party) == (Access.NONE if denied else Access.READ)]
        spot = nth(spots, op.mapping)
        if spot is None:
            return None
        size = min(op.size, spot.size)
        return Range(spot.address + self.offset(spot.size, op.where, size), size)

    def _seam(self, op: ops.Write | ops.Read, party: Party, *, write: bool) -> Range | None:
        needed = Access.READ_WRITE if write else Access.READ
        seams = [m for m in (self._heads() if op.twist == "across" else self._tails()) if _may(m, party, needed)]
        seams = [m for m in seams if (left := self.state.mapping_at(m.address - 1)) and _may(left, party, needed)]
        right = nth(seams, op.mapping)
        size = max(op.size, 2)
        return Range(right.address - size // 2, size) if right else None

    def spots(self, party: Party, *, write: bool) -> Sequence[Mapping | Memory]:
        """Mappings and plain allocations that ``party`` may use."""
        needed = Access.READ_WRITE if write else Access.READ
        mapped = [m for m in self.state.mappings if _may(m, party, needed)]
        plain = [m for m in self.state.allocations if party.device in (None, m.device)]
        return [*mapped, *plain]

    def copy(self, op: ops.Copy, party: Party) -> Arguments | None:
        """(target, source, size)."""
        source = nth(self.spots(party, write=False), op.source)
        target = nth(self.spots(party, write=True), op.target)
        if source is None or target is None:
            return None
        size = min(op.size, source.size, target.size)
        at = self.offset(target.size, op.where, size)
        if _memory(source) is _memory(target) and abs(_low(target) + at - _low(source)) < size:
            return None  # what a copy onto itself leaves behind is nowhere defined
        return target.address + at, source.address, size


def _memory(spot: Mapping | Memory) -> Memory:
    return spot.memory if isinstance(spot, Mapping) else spot


def _low(spot: Mapping | Memory) -> int:
    return spot.offset if isinstance(spot, Mapping) else 0


def _may(mapping: Mapping, party: Party, needed: Access) -> bool:
    """Whether rights allow it; for the host those of the memory's own device count."""
    device = mapping.memory.device if party.device is None else party.device
    return mapping.rights.get(device, 0) & needed == needed


def _most(mapping: Mapping, party: Party) -> int:
    """The rights of ``party``; the host has whatever any device has."""
    if party.device is None:
        return max(mapping.rights.values(), default=0)
    return mapping.rights.get(party.device, 0)


_MAP: Final[dict[str, Callable[[Ranges, ops.Map, Memory], Arguments | None]]] = {
    "exact": Ranges._map_whole,
    "part": Ranges._map_part,
    "unaligned-address": Ranges._map_askew,
    "unaligned-size": Ranges._map_uneven,
    "empty": Ranges._map_nothing,
    "offset": Ranges._map_offset,
    "past-end": Ranges._map_past_end,
    "across": Ranges._map_across,
    "outside": Ranges._map_outside,
    "too-big": Ranges._map_too_big,
    "onto": Ranges._map_onto,
}

_CUTS: Final[dict[str, Callable[[Ranges, Mapping, int], Range | None]]] = {
    "left": Ranges._left,
    "middle": Ranges._middle,
    "right": Ranges._right,
    "part": Ranges._any_part,
    "skew": Ranges._skew,
    "hole": Ranges._hole,
    "gap": Ranges._gap,
    "empty": Ranges._empty,
    "short": Ranges._short,
    "long": Ranges._long,
}
