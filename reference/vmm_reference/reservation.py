"""Physical memory shown at reserved addresses: raw allocation, reservation, scoped mapping, remap.

Read it from `VmmMemory` to `ScopedMapping`; `MemoryReservation` does the work. Whatever can be refused for
what it says is refused before the first driver call, and then nothing has changed. Ids in comments are the
catalogue's, areas RAW, RES, MAP and REMAP. Not safe for use from several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Final, NamedTuple

from sortedcontainers import SortedDict

from vmm_conformance.contracts import Access, Code, Driver, DriverError, Range, SubjectError
from vmm_conformance.contracts.reservation import MappingDescriptor, RawMemory, RemappingDescriptor
from vmm_conformance.contracts.reservation import ScopedMapping as AnyMapping
from vmm_reference.descriptors import (
    Descriptor,
    changed_runs,
    check_contiguous,
    check_numbers,
    check_part,
    check_size,
    place_of,
    refused,
    round_up,
    shown,
    used_after,
)
from vmm_reference.mapping import runs
from vmm_reference.raw_memory import RawMemoryAllocation

EMPTY: Final = Range(0, 0)


class Scopes(NamedTuple):
    """How driver calls are grouped, where the driver takes several mappings at once (REMAP-34, REMAP-35).

    ``set_access`` after a remap: ``run`` once for each run of changed slices, ``full`` once over the whole
    mapping, ``slice`` for each changed slice. ``unmap``: ``run`` or ``slice``. No driver takes every form.
    """

    set_access: str = "run"
    unmap: str = "run"


BY_RUN: Final = Scopes()


class VmmMemory:
    """The memory layer of one device."""

    def __init__(self, driver: Driver, device: int, scopes: Scopes = BY_RUN) -> None:
        self.driver = driver
        self.device = device
        self.scopes = scopes

    def allocate(self, size: int, space: int = 0) -> RawMemoryAllocation:
        """At least ``size`` bytes of physical memory in memory space ``space``."""
        return RawMemoryAllocation(self.driver, self.device, size, space)

    def reserve(self, size: int, alignment: int = 0) -> MemoryReservation:
        """At least ``size`` bytes of addresses; ``alignment`` is a power of two, or 0 for any."""
        return MemoryReservation(self.driver, self.device, size, alignment, self.scopes)


class Piece(NamedTuple):
    """``size`` bytes at ``offset`` in a reservation where memory of ``allocation`` is mapped, by one call."""

    offset: int
    size: int
    allocation: RawMemoryAllocation

    @property
    def place(self) -> Range:
        """Where it lies, as offset and size."""
        return Range(self.offset, self.size)


class MemoryReservation:
    """A range of addresses, and what is mapped where in it.

    ``mapped`` says what the driver's own record says: a piece appears when it is mapped, and goes when it
    is unmapped. Each belongs to one `ScopedMapping`, save those in ``left``: these nobody owns any more,
    since the driver has refused to unmap them. They are tried again before their place is used, and at
    close.
    """

    def __init__(self, driver: Driver, device: int, size: int, alignment: int, scopes: Scopes) -> None:
        check_size("reserve", size)
        granularity = driver.granularity(device).recommended
        self.driver = driver
        self.device = device
        self.scopes = scopes
        self.size = round_up(size, granularity)  # RES-4
        self.base = driver.reserve(self.size, alignment=max(alignment, granularity))
        self.mapped: SortedDict[int, Piece] = SortedDict()
        self.left: set[int] = set()
        self.closed = False
        self.freed = False

    @property
    def address(self) -> Range:
        """Base and size, in bytes. Nothing can be read there before it is mapped."""
        self.check_open("address")
        return Range(self.base, self.size)

    def map_one(
        self, reservation_offset: int, allocation_offset: int, size: int, allocation: RawMemory
    ) -> ScopedMapping:
        """Map one slice."""
        return self.map_to((MappingDescriptor(reservation_offset, allocation_offset, size, allocation),))

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        """Map slices that touch, in order, then grant rights on all of them at once (RES-17).

        After an error nothing of it is mapped, and the error is the first one (RES-18 to RES-20).
        """
        slices = tuple(descriptors)
        self.check_open("map_to")
        place = self.check_mapping(slices)
        self.clear_left(place)
        try:
            for one in slices:
                self.map(one)
            self.grant(slices, place)
        except BaseException:
            self.withdraw(place)
            raise
        return self.own(place)

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        """Show other memory in the slices that require it; `check_remapping` has let them pass.

        All runs are unmapped before anything is mapped (REMAP-33). After an error nothing is mapped in
        ``place`` any more (REMAP-36), and the error is the first one (REMAP-39).
        """
        required = [one for one in descriptors if one.remap_required]
        if not required:
            return  # REMAP-30: not a single driver call
        try:
            for pieces in self.unmap_calls([piece for run in changed_runs(required) for piece in self.pieces(run)]):
                self.unmap(pieces)
            for one in required:
                self.map(one)
            self.grant(required, place)
        except BaseException:
            self.withdraw(place, singly=True)
            raise

    def close(self) -> None:
        """Unmap what is still mapped, then free the addresses, and not before (RES-9). Raises nothing."""
        self.closed = True
        self.withdraw(Range(0, self.size))
        if not self.mapped and not self.freed:
            with suppress(DriverError):
                self.free()
                self.freed = True

    def own(self, place: Range) -> ScopedMapping:
        """The owner of what is mapped in ``place``."""
        return ScopedMapping(self, place)

    # -- what is asked of the driver

    def map(self, one: Descriptor) -> None:
        """Map one slice: exactly the part of the allocation that its descriptor names (RES-11)."""
        allocation = one.allocation
        assert isinstance(allocation, RawMemoryAllocation), "check_memory lets nothing else pass"
        address = self.base + one.reservation_offset
        self.driver.map(address, one.size, allocation.handle, offset=one.allocation_offset)
        self.mapped[one.reservation_offset] = Piece(one.reservation_offset, one.size, allocation)
        allocation.shown(+1)

    def unmap(self, pieces: Sequence[Piece]) -> None:
        """Unmap pieces that touch, in one call; each goes whole (RES-13)."""
        start = pieces[0].offset
        self.driver.unmap(self.base + start, pieces[-1].place.end - start)
        for piece in pieces:
            del self.mapped[piece.offset]
            self.left.discard(piece.offset)
            piece.allocation.shown(-1)

    def unmap_calls(self, pieces: Sequence[Piece], *, singly: bool = False) -> list[list[Piece]]:
        """Ascending ``pieces``, grouped into the calls that unmap them.

        Those that touch go together, unless ``singly``, where scope and driver allow it (REMAP-35).
        """
        join = self.scopes.unmap == "run" and self.driver.capabilities.unmap_spans_mappings and not singly
        left = iter(pieces)
        return [list(islice(left, count)) for _, count in runs((piece.place for piece in pieces), join=join)]

    def grant(self, changed: Iterable[Descriptor], whole: Range) -> None:
        """Read and write for all that reach this device's memory, on the slices ``changed``.

        A mapping starts without rights, also where the one before it had some (REMAP-34).
        """
        spans = self.driver.capabilities.set_access_spans_mappings
        if self.scopes.set_access == "full" and spans:
            self.set_access(whole)
            return
        join = self.scopes.set_access != "slice" and spans
        for run, _ in runs((place_of(one) for one in changed), join=join):
            self.set_access(run)

    def set_access(self, place: Range) -> None:
        """The device and the peers that can reach it; naming another is an error (RES-7, RES-8)."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.device)
        users = [self.device, *(peer for peer in peers if self.driver.can_access_peer(peer, self.device))]
        self.driver.set_access(self.base + place.address, place.size, dict.fromkeys(users, Access.READ_WRITE))

    def free(self) -> None:
        """Give the addresses back, exactly as they were reserved."""
        self.driver.address_free(self.base, self.size)

    # -- giving up

    def withdraw(self, place: Range, *, singly: bool = False) -> None:
        """Unmap all that is mapped in ``place``, and no piece twice (REMAP-37).

        Raises nothing (MAP-24): what the driver refuses is left, and an error that led here comes first.
        """
        for pieces in self.unmap_calls(self.pieces(place), singly=singly):
            with suppress(DriverError):
                self.unmap(pieces)
        self.left.update(piece.offset for piece in self.pieces(place))

    def clear_left(self, place: Range) -> None:
        """Unmap at last what is left in ``place``. Raises the driver's error if it refuses again."""
        for piece in self.pieces(place):
            self.unmap((piece,))

    # -- what is mapped

    def pieces(self, place: Range) -> list[Piece]:
        """The pieces in ``place``, by offset; those that reach into it from before are among them."""
        first = self.mapped.bisect_right(place.address) - 1
        start = place.address
        if first >= 0:
            before: Piece = self.mapped.peekitem(first)[1]
            start = before.offset if before.place.end > place.address else place.address
        return [self.mapped[offset] for offset in self.mapped.irange(start, place.end, (True, False))]

    # -- checks: they come before the first driver call

    def check_open(self, call: str) -> None:
        """Refuse the use of what is closed."""
        if self.closed:
            raise used_after(f"{call}: this reservation is closed")

    def check_mapping(self, slices: Sequence[MappingDescriptor]) -> Range:
        """Refuse what map_to must not do; returns the place that the slices make up."""
        place = check_contiguous("map_to", slices)
        for one in slices:
            self.check_memory("map_to", one)
        if place.address < 0 or place.end > self.size:
            raise refused(f"map_to: {shown(place)} leaves the reservation, which has {self.size} bytes")
        for piece in self.pieces(place):
            if piece.offset not in self.left:
                raise SubjectError(
                    Code.FAILED_PRECONDITION,
                    f"map_to: {shown(place)} overlaps {shown(piece.place)}, which is mapped; release that first",
                )
        return place

    def check_remapping(self, owned: Range, slices: Sequence[RemappingDescriptor]) -> None:
        """Refuse what remap must not do (REMAP-27 to REMAP-29)."""
        place = check_contiguous("remap", slices)
        if place != owned:
            raise refused(f"remap: {shown(place)} was described, and {shown(owned)} is owned: describe all of it")
        for one in slices:
            if one.allocation is None:
                raise refused(f"remap: the slice at {one.reservation_offset} names no allocation, only null")
        required = [one for one in slices if one.remap_required]
        for one in required:  # of the others nothing is looked at (REMAP-40)
            self.check_memory("remap", one)
        for run in changed_runs(required):
            self.check_whole(run)

    def check_whole(self, run: Range) -> None:
        """A mapping goes whole or not at all (RES-13)."""
        for piece in self.pieces(run):
            if piece.offset < run.address or piece.place.end > run.end:
                raise refused(
                    f"remap: {shown(run)} cuts what one call has mapped at {shown(piece.place)}; "
                    "a mapping cannot be unmapped in part"
                )

    def check_memory(self, call: str, one: Descriptor) -> None:
        """Refuse a slice that no memory of this layer can fill (RES-6, RES-12)."""
        allocation = one.allocation
        if not isinstance(allocation, RawMemoryAllocation):
            raise refused(f"{call}: {allocation!r} is no allocation of this layer")
        if allocation.released:
            raise used_after(f"{call}: the allocation for the slice at {one.reservation_offset} was released")
        check_numbers(call, one, self.driver.granularity(self.device).minimum, allocation.size)
        check_part(call, one, allocation.size, self.driver.capabilities)


class ScopedMapping:
    """The only owner of ``place`` in a reservation, or null.

    To move it (`move`, `assign`) is to take ownership away from it; it is null from then on (MAP-22).
    """

    def __init__(self, reservation: MemoryReservation | None = None, place: Range = EMPTY) -> None:
        self._reservation = reservation
        self._place = place

    @property
    def is_null(self) -> bool:
        """Whether this owns nothing."""
        return self._reservation is None or self._reservation.closed

    @property
    def address(self) -> Range:
        """Where the mapping lies, and its size (MAP-25)."""
        reservation = self.owner("address")
        return Range(reservation.base + self._place.address, self._place.size)

    def release(self) -> None:
        """Unmap what this owns, if anything. Raises nothing (MAP-24)."""
        if not self.is_null:
            reservation, place = self.give_up()
            reservation.withdraw(place)

    def move(self) -> ScopedMapping:
        """A new owner of what this one owns, nothing included."""
        if self.is_null:
            return ScopedMapping()
        reservation, place = self.give_up()
        return reservation.own(place)

    def assign(self, other: AnyMapping) -> None:
        """Unmap what this owns, then take over what ``other`` owns (MAP-23)."""
        if not isinstance(other, ScopedMapping):
            raise refused(f"assign: {other!r} is no mapping of this layer")
        if other is self:
            return
        self.release()
        if not other.is_null:
            self._reservation, self._place = other.give_up()

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        """Show other memory in the slices that require it; the mapping that is returned replaces this one.

        A list that is refused for what it says leaves all as it is. From the first driver call on this is
        null, however it ends (REMAP-36).
        """
        reservation = self.owner("remap")  # REMAP-26
        slices = tuple(descriptors)
        reservation.check_remapping(self._place, slices)
        reservation, place = self.give_up()
        reservation.remap(place, slices)
        return reservation.own(place)

    def owner(self, call: str) -> MemoryReservation:
        """The reservation. Raises FAILED_PRECONDITION if this is null."""
        if self._reservation is None or self._reservation.closed:
            raise used_after(f"{call}: this mapping is null")
        return self._reservation

    def give_up(self) -> tuple[MemoryReservation, Range]:
        """What this owned; it is null from now on."""
        owned = self.owner("move"), self._place
        self._reservation, self._place = None, EMPTY
        return owned

    def __enter__(self) -> ScopedMapping:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
