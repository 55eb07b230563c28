"""Which call an operation of the contract ``driver`` stands for, given what the driver holds by now.

Every method returns the arguments of a call, in the order of ``history.events.FIELDS``, or None where
nothing exists that the operation could be about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.state import Mapping, Memory, Reservation, State
from vmm_conformance.programs import driver_operations as ops

T = TypeVar("T")
Arguments = tuple[Any, ...]

_FAR = 1 << 30
_UNKNOWN_SPACE = 77
_BAD_FLAGS = (2, -1, 4, 7)
_LARGEST_SHIFT = 14
_LARGEST_ALIGNMENT = 1 << 30
"""Where granules are megabytes, more than this is asked of no driver that is known."""


def nth(things: Sequence[T], number: int) -> T | None:
    """``things[number]``, counted in a circle; None of none."""
    return things[number % len(things)] if things else None


class Operands:
    """Picks operands among what ``state`` holds. ``granule`` is the minimum granularity in bytes.

    ``freed``, ``unmapped`` and ``dead`` are reservations, ranges and handles of the past; ``free`` and
    ``total`` what `mem_info` said last, by device.
    """

    def __init__(self, state: State, granule: int, devices: int, *, peers: bool) -> None:
        self.state = state
        self.granule = granule
        self.devices = devices
        self.peers = peers
        self.freed: list[Range] = []
        self.unmapped: list[Range] = []
        self.dead: list[int] = []
        self.free: dict[int, int] = {}
        self.total: dict[int, int] = {}

    # -- reservations and handles

    def reserve(self, op: ops.Reserve) -> Arguments | None:
        """(size, alignment, hint)."""
        size = op.granules * self.granule
        alignment = self.granule << min(op.alignment, _LARGEST_SHIFT) if op.alignment > 0 else 0
        alignment = min(alignment, _LARGEST_ALIGNMENT)
        if op.twist in ("hint-free", "hint-taken"):
            near = nth(list(self.state.reservations.values()), -1)
            if near is None:
                return None
            hint = near.address + (near.size if op.twist == "hint-free" else 0)
            return size, alignment, hint
        sizes = {"empty": 0, "less": size - 1, "more": size + 1}
        return sizes.get(op.twist, size), 3 if op.twist == "odd-alignment" else alignment, 0

    def address_free(self, op: ops.AddressFree) -> Arguments | None:
        """(address, size)."""
        if op.twist == "stale":
            gone = [r for r in self.freed if self.state.reservation_at(r.address) is None]
            return nth(gone, op.reservation)
        if op.twist == "both":
            pair = nth(list(self._neighbours()), op.reservation)
            return (pair[0].address, pair[0].size + pair[1].size) if pair else None
        empty, used = self._by_use()
        if op.twist in ("exact", "mapped"):
            chosen = nth(used if op.twist == "mapped" else empty, op.reservation)
        else:
            chosen = nth(empty or used, op.reservation)
        return self._bad_free(chosen, op.twist) if chosen else None

    def _bad_free(self, reservation: Reservation, twist: str) -> Arguments:
        address, size = reservation.address, reservation.size
        step = self.granule if size > self.granule else self.granule // 2
        return {
            "interior": (address + step, size - step),
            "inside": (address + step, size),
            "short": (address, size - step),
            "long": (address, size + self.granule),
            "empty": (address, 0),
        }.get(twist, (address, size))

    def _by_use(self) -> tuple[list[Reservation], list[Reservation]]:
        """Reservations with nothing mapped in them, and the others."""
        empty: list[Reservation] = []
        used: list[Reservation] = []
        for reservation in self.state.reservations.values():
            mapped = self.state.mappings_in(reservation.address, reservation.size)
            (used if mapped else empty).append(reservation)
        return empty, used

    def _neighbours(self) -> Iterator[tuple[Reservation, Reservation]]:
        """Pairs of empty reservations, the second beginning where the first ends."""
        empty, _ = self._by_use()
        by_address = {reservation.address: reservation for reservation in empty}
        for reservation in empty:
            behind = by_address.get(reservation.address + reservation.size)
            if behind is not None:
                yield reservation, behind

    def create(self, op: ops.Create) -> Arguments | None:
        """(size, device, space)."""
        device = op.device % self.devices
        size = op.granules * self.granule
        if op.twist == "bad-device":
            return size, self.devices, op.space
        if op.twist == "negative-device":
            return size, -1, op.space
        if op.twist == "bad-space":
            return size, device, _UNKNOWN_SPACE
        sizes = {
            "empty": 0,
            "less": size - 1,
            "more": size + 1,
            "over-capacity": _round_up(self.total[device], self.granule) + self.granule,
            "over-free": _round_up(self.free[device] + 1, self.granule),
        }
        return sizes.get(op.twist, size), device, op.space

    def retain(self, op: ops.Retain) -> Arguments | None:
        """(address,)."""
        if op.twist == "plain":
            allocation = nth(self.state.allocations, op.mapping)
            return (allocation.address,) if allocation else None
        return self._address(op.mapping, op.where, op.twist)

    def release(self, op: ops.Release) -> Arguments | None:
        """(handle,)."""
        if op.twist == "null":
            return (0,)
        if op.twist == "stale":
            stale = nth([handle for handle in self.dead if not self.references(handle)], op.handle)
            return None if stale is None else (stale,)
        held = nth(self.held(), op.handle)
        return (held.handle,) if held else None

    def references(self, handle: int) -> int:
        """How many references the program holds on ``handle``."""
        memory = self.state.handles.get(handle)
        return memory.references if memory else 0

    def held(self) -> list[Memory]:
        """The handles that the program holds references on."""
        return [memory for memory in self.state.handles.values() if memory.references > 0]

    # -- queries

    def get_access(self, op: ops.GetAccess) -> Arguments | None:
        """(address, device)."""
        if op.twist == "end":
            mapping = nth(self.state.mappings, op.mapping)
            place: Arguments | None = (mapping.address + mapping.size,) if mapping else None
        else:
            place = self._address(op.mapping, op.where, op.twist)
        return (*place, op.device % self.devices) if place else None

    def address_range(self, op: ops.AddressRange) -> Arguments | None:
        """(address,)."""
        return self._address(op.mapping, op.where, ops.EXACT)

    def _address(self, number: int, where: ops.Where, twist: str) -> Arguments | None:
        if twist == "reserved":
            gap = nth(list(self.gaps()), number)
            return (gap.address,) if gap else None
        if twist == "unmapped":
            gone = nth(self.bare(), number)
            return (gone.address,) if gone else None
        mapping = nth(self.state.mappings, number)
        return (mapping.address + self.offset(mapping.size, where, 1),) if mapping else None

    def offset(self, size: int, where: ops.Where, length: int) -> int:
        """Where ``length`` bytes begin in ``size`` bytes of memory."""
        last = max(size - length, 0)
        places = {
            "last": last,
            "middle": size // 2,
            "granule": self.granule,
            "before-granule": self.granule - length,
        }
        return max(min(places.get(where, 0), last), 0)

    def bare(self) -> list[Range]:
        """Ranges that were unmapped and have nothing mapped in them now."""
        return [r for r in self.unmapped if not self.state.mappings_in(r.address, r.size)]

    def gaps(self) -> Iterator[Range]:
        """The unmapped stretches of every reservation."""
        for reservation in self.state.reservations.values():
            yield from self.gaps_of(reservation)

    def gaps_of(self, reservation: Reservation) -> Iterator[Range]:
        """The unmapped stretches of one reservation, by address."""
        at = reservation.address
        for mapping in self.state.mappings_in(at, reservation.size):
            if mapping.address > at:
                yield Range(at, mapping.address - at)
            at = mapping.address + mapping.size
        end = reservation.address + reservation.size
        if end > at:
            yield Range(at, end - at)

    # -- rights

    def rights(self, op: ops.SetAccess, owner: int) -> tuple[tuple[int, Access], ...]:
        """Device and right, of those that ``op`` names on memory of device ``owner``."""
        if op.twist == "nobody":
            return ()
        bits = [n for n in range(3) if op.devices >> n & 1] if self.peers else [0]
        named: dict[int, Any] = {(owner + n) % self.devices: op.access for n in bits or [0]}
        if op.twist == "bad-flag":
            named = dict.fromkeys(named, _BAD_FLAGS[op.mapping % len(_BAD_FLAGS)])
        elif op.twist == "bad-device":
            named[self.devices if op.mapping % 2 else -1] = op.access
        return tuple(sorted(named.items()))


def far_behind(reservations: Sequence[Reservation]) -> int:
    """An address that lies in none of ``reservations``, at a multiple of a large power of two."""
    end = max((r.address + r.size for r in reservations), default=_FAR)
    return _round_up(end, _FAR) + _FAR


def run_of(state: State, mapping: Mapping, count: int) -> list[Mapping]:
    """Up to ``count`` adjacent mappings of one reservation, from ``mapping`` on."""
    run = [mapping]
    while len(run) < count:
        behind = state.mapping_at(run[-1].address + run[-1].size)
        if behind is None or behind.reservation is not mapping.reservation:
            break
        run.append(behind)
    return run


def _round_up(size: int, granule: int) -> int:
    return -(-size // granule) * granule
