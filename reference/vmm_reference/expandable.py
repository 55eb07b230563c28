"""An expandable-segment allocator: a large reservation per stream and space, backed granule by granule.

Blocks are cut out of a segment, and what is freed is free for neighbours to merge with: a gap is what no
block stands in. Memory comes when a block needs it and goes when a granule is idle; addresses stay. Numbers
in comments are ids of the catalogue's ALLOCATOR area.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from vmm_conformance.contracts import Access, Block, Code, Driver, DriverError, Statistics, Status, SubjectError
from vmm_reference.allocator import ADDRESSES, PATHS

UNIT = 512
"""Blocks are whole multiples of so many bytes. They begin at multiples of it and of their space's alignment."""


@dataclass(slots=True)
class Granule:
    """One piece of memory, on its way to be usable: created, then mapped, then with rights."""

    handle: int
    mapped: bool = False
    granted: bool = False


@dataclass(slots=True)
class Segment:
    """One reservation. ``granules`` by number, ``blocks`` by offset: bytes asked for, and bytes taken."""

    address: int
    size: int
    granule: int
    stream: int
    space: int
    granules: dict[int, Granule] = field(default_factory=dict)
    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Freed:
    """Bytes that work may use until ``event`` has passed on ``stream``; ``marked`` once it is recorded there."""

    segment: Segment
    offset: int
    size: int
    event: int
    stream: int
    marked: bool = True


class ExpandableAllocator:
    """Stream-ordered allocation on one device out of expandable segments.

    - A block lies in a gap of a segment of its stream; only granules that have no memory yet get some.
    - What was freed on the segment's own stream can be used again at once; what was freed on another
      stream when the event behind it has passed (5).
    - A block grows where it stands if the bytes behind it are free, and moves if not; what it held is copied (6).
    - A granule in which no block stands, and for which no event is awaited, is idle. `trim` gives idle
      granules back, and an allocation that finds memory short does too, waiting for events if it must (9, 12).
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.segments: list[Segment] = []
        self.freed: list[Freed] = []
        self.spent: list[int] = []
        """Events that nothing waits for any more."""
        self.handles: list[int] = []
        """Memory that is mapped nowhere any more."""
        self.closed = False
        self.paths = dict.fromkeys(PATHS, 0)

    # -- the contract

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """``size`` bytes in memory space ``space``, for work submitted to ``stream`` from now on."""
        self._check_open("allocate")
        if size <= 0:
            raise SubjectError(Code.INVALID_ARGUMENT, f"allocate: size is {size} bytes, and must be positive")
        self.poll()
        segment, offset, taken = self.take(size, stream, space)
        segment.blocks[offset] = size, taken
        return Block(segment.address + offset, size, taken)

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """A block of ``size`` bytes that begins with the bytes of ``block`` and replaces it.

        Work submitted to ``stream`` before may still use the old address.
        """
        self._check_open("grow")
        segment, offset = self.find("grow", block)
        if size < block.size:
            raise SubjectError(
                Code.INVALID_ARGUMENT, f"grow: size is {size} bytes, less than the {block.size} of the block"
            )
        self.poll()
        taken, path = -(-size // UNIT) * UNIT, "grow/in place"
        if self.room_behind(segment, offset, stream) >= taken:
            self.back(segment, offset, taken)
        else:
            segment, offset = self.move(segment, offset, size, stream)
            path = "grow/moved"
        segment.blocks[offset] = size, taken
        self.paths[path] += 1
        return Block(segment.address + offset, size, taken)

    def taken(self) -> dict[str, int]:
        """How often each path was taken (23)."""
        return dict(self.paths)

    def deallocate(self, block: Block, *, stream: int) -> None:
        """Free ``block``; work submitted to ``stream`` before may still use it."""
        self._check_open("deallocate")
        segment, offset = self.find("deallocate", block)
        event = self.driver.event_create(self.device)
        try:
            self.driver.event_record(event, stream)
        except DriverError:
            self.spent.append(event)
            self.destroy_spent()
            raise
        _, taken = segment.blocks.pop(offset)
        self.freed.append(Freed(segment, offset, taken, event, stream))
        self.poll()

    def trim(self) -> None:
        """Give back, without waiting, the memory of idle granules (12)."""
        self._check_open("trim")
        self.poll()
        for segment, number in self.idle():
            self.drop(segment, number)

    def statistics(self) -> Statistics:
        """What live blocks asked for, the memory behind segments, and their addresses (17)."""
        self._check_open("statistics")
        requested = sum(size for segment in self.segments for size, _ in segment.blocks.values())
        committed = sum(len(segment.granules) * segment.granule for segment in self.segments)
        return Statistics(requested, committed, self.reserved())

    def close(self) -> None:
        """Wait for the device, then give everything back, live blocks included. Again: does nothing.

        Raises the first error of the driver after trying all; closing again tries what was refused again.
        """
        if self.segments:
            self.driver.device_synchronize(self.device)
        self.closed = True
        self.spent += [freed.event for freed in self.freed]
        self.freed.clear()
        refusals: list[DriverError] = []
        for segment in tuple(self.segments):
            segment.blocks.clear()
            try:
                for number in tuple(segment.granules):
                    self.drop(segment, number)
                self.driver.address_free(segment.address, segment.size)
                self.segments.remove(segment)
            except DriverError as error:
                refusals.append(error)
        try:
            self.release_handles()
            while self.spent:
                self.driver.event_destroy(self.spent[-1])
                self.spent.pop()
        except DriverError as error:
            refusals.append(error)
        if refusals:
            raise refusals[0]

    # -- growing

    def room_behind(self, segment: Segment, offset: int, stream: int) -> int:
        """Bytes from ``offset`` on that the block there could have, for work on ``stream``."""
        others = self.occupied(segment, reusing=stream == segment.stream)
        return min((start for start, _ in others if start > offset), default=segment.size) - offset

    def move(self, segment: Segment, offset: int, size: int, stream: int) -> tuple[Segment, int]:
        """Copy a block to other bytes, and free the old ones behind the copy (5)."""
        grown, place, taken = self.take(size, stream, segment.space)
        size, old = segment.blocks[offset]
        made = []
        try:
            made.append(self.driver.event_create(self.device))
            self.driver.copy(grown.address + place, segment.address + offset, size, stream=stream)
        except DriverError:
            self.spent += made
            self.destroy_spent()
            self.give_up(grown, place, taken)
            raise
        del segment.blocks[offset]
        self.freed.append(Freed(segment, offset, old, made[0], stream, marked=False))
        self.mark_freed()
        return grown, place

    def mark_freed(self) -> None:
        """Record the events of freed bytes; one that is refused now is recorded later, which waits for more."""
        with suppress(DriverError):
            for freed in self.freed:
                if not freed.marked:
                    self.driver.event_record(freed.event, freed.stream)
                    freed.marked = True

    # -- addresses

    def take(self, size: int, stream: int, space: int) -> tuple[Segment, int, int]:
        """Bytes with memory behind them for ``size``: where they are, and how many."""
        unit = max(UNIT, self.driver.space_alignment(self.device, space))
        taken = -(-size // UNIT) * UNIT
        segment, offset = self.place(taken, unit, stream, space)
        try:
            self.back(segment, offset, taken)
        except DriverError:
            self.free_segment(segment)
            raise
        return segment, offset, taken

    def give_up(self, segment: Segment, offset: int, taken: int) -> None:
        """The memory that a failing call has taken goes, and the segment if it was the first in it (7)."""
        for owner, number in self.idle():
            if owner is segment and number in self.granules_of(segment, offset, taken):
                with suppress(DriverError):
                    self.drop(segment, number)
        self.free_segment(segment)

    def granules_of(self, segment: Segment, offset: int, taken: int) -> range:
        """The numbers of the granules that those bytes lie in."""
        return range(offset // segment.granule, -(-(offset + taken) // segment.granule))

    def place(self, taken: int, unit: int, stream: int, space: int) -> tuple[Segment, int]:
        """The first gap of ``taken`` bytes in a segment of that stream and space, or a new segment."""
        for segment in self.segments:
            if (segment.stream, segment.space) == (stream, space):
                offset = self.gap(segment, taken, unit)
                if offset + taken <= segment.size:
                    return segment, offset
        granule = self.driver.granularity(self.device, space).recommended
        whole = max(self.driver.mem_info(self.device).total, taken)
        size = -(-whole // granule) * granule
        self.make_room(size)
        address = self.driver.reserve(size, alignment=max(unit, granule))
        self.segments.append(Segment(address, size, granule, stream, space))
        return self.segments[-1], 0

    def make_room(self, size: int) -> None:
        """Address space for ``size`` more bytes: segments go in which nothing stands (22)."""
        most = ADDRESSES * self.driver.mem_info(self.device).total - size
        for segment in tuple(self.segments):
            if self.reserved() > most and not any(self.occupied(segment, reusing=False)):
                for number in tuple(segment.granules):
                    self.drop(segment, number)
                self.free_segment(segment)
        if self.reserved() > most:
            text = f"{size} bytes of address space beside {self.reserved()} are more than {most + size}"
            raise SubjectError(Code.RESOURCE_EXHAUSTED, f"reserve: {text}")

    def reserved(self) -> int:
        """Bytes of address space that the driver has given and not got back."""
        return sum(segment.size for segment in self.segments)

    def gap(self, segment: Segment, taken: int, unit: int) -> int:
        """Where the first gap of ``taken`` bytes begins; perhaps too near the segment's end."""
        at = 0
        for offset, size in sorted(self.occupied(segment, reusing=True)):
            if at + taken <= offset:
                break
            at = max(at, -(-(offset + size) // unit) * unit)
        return at

    def occupied(self, segment: Segment, *, reusing: bool) -> Iterator[tuple[int, int]]:
        """Offsets and sizes of what stands in a segment; ``reusing``: not what its own stream has freed (5)."""
        for offset, (_, taken) in segment.blocks.items():
            yield offset, taken
        for freed in self.freed:
            if freed.segment is segment and not (reusing and freed.stream == segment.stream):
                yield freed.offset, freed.size

    def find(self, call: str, block: Block) -> tuple[Segment, int]:
        """Where a live block is."""
        for segment in self.segments:
            if block.address - segment.address in segment.blocks:
                return segment, block.address - segment.address
        raise SubjectError(Code.INVALID_ARGUMENT, f"{call}: no live block begins at {block.address:#x}")

    def free_segment(self, segment: Segment) -> None:
        """Give up addresses in which nothing is; if the driver will not have them, keep them."""
        if segment.granules or segment.blocks:
            return
        with suppress(DriverError):
            self.driver.address_free(segment.address, segment.size)
            self.segments.remove(segment)

    # -- memory

    def back(self, segment: Segment, offset: int, taken: int) -> None:
        """Memory with rights behind those bytes. What this call has added goes if it fails (7)."""
        added = []
        try:
            for number in self.granules_of(segment, offset, taken):
                if number not in segment.granules:
                    segment.granules[number] = Granule(self.create(segment, offset, taken))
                if not segment.granules[number].granted:
                    added.append(number)
                    self.make_usable(segment, number)
        except DriverError:
            for number in added:
                with suppress(DriverError):
                    self.drop(segment, number)
            raise

    def create(self, segment: Segment, offset: int, taken: int) -> int:
        """Memory of one granule. If it is short, idle granules elsewhere are given back, and freed ones awaited."""
        wanted = self.granules_of(segment, offset, taken)
        while True:
            try:
                return self.driver.create(segment.granule, device=self.device, space=segment.space)
            except DriverError as error:
                if error.status != Status.OUT_OF_MEMORY or not self.reclaim(segment, wanted):
                    raise

    def make_usable(self, segment: Segment, number: int) -> None:
        """Map a granule and grant rights to the device and its peers, one at a time, as far as is needed (2)."""
        granule, address = segment.granules[number], segment.address + number * segment.granule
        if not granule.mapped:
            self.driver.map(address, segment.granule, granule.handle)
            granule.mapped = True
        if not granule.granted:
            self.driver.set_access(address, segment.granule, dict.fromkeys(self.users(), Access.READ_WRITE))
            granule.granted = True

    def users(self) -> list[int]:
        """The device and the peers that can reach its memory."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.device)
        return [self.device, *(peer for peer in peers if self.driver.can_access_peer(peer, self.device))]

    def drop(self, segment: Segment, number: int) -> None:
        """Give the memory of a granule back."""
        granule = segment.granules[number]
        if granule.mapped:
            self.driver.unmap(segment.address + number * segment.granule, segment.granule)
            granule.mapped = granule.granted = False
        del segment.granules[number]
        self.handles.append(granule.handle)
        self.release_handles()

    def release_handles(self) -> None:
        """Release what is mapped nowhere any more. Raises a refusal; the refused rest stays for later."""
        while self.handles:
            self.driver.release(self.handles[-1])
            self.handles.pop()

    def idle(self) -> list[tuple[Segment, int]]:
        """The granules in which nothing stands and for which nothing is awaited."""
        found = []
        for segment in self.segments:
            busy: set[int] = set()
            for offset, size in self.occupied(segment, reusing=False):
                busy.update(self.granules_of(segment, offset, size))
            found += [(segment, number) for number in segment.granules if number not in busy]
        return found

    def reclaim(self, segment: Segment, wanted: range) -> bool:
        """Give one idle granule back, save the wanted ones; or wait for what was freed first.

        False if neither helps.
        """
        try:
            for owner, number in self.idle():
                if owner is not segment or number not in wanted:
                    self.drop(owner, number)
                    return True
            if not self.freed or not self.freed[0].marked:
                return False
            self.driver.event_synchronize(self.freed[0].event)
            self.spent.append(self.freed.pop(0).event)
            self.destroy_spent()
        except DriverError:
            return False  # that memory is short is the error to report
        return True

    def poll(self) -> None:
        """See, without waiting, what has passed. Housekeeping: an error here leaves for later what it leaves."""
        self.mark_freed()
        with suppress(DriverError):
            for freed in tuple(self.freed):
                if freed.marked and self.driver.event_query(freed.event):
                    self.freed.remove(freed)
                    self.spent.append(freed.event)
            self.release_handles()
        self.destroy_spent()

    def destroy_spent(self) -> None:
        """Destroy events that are not needed; the refused ones stay for later."""
        with suppress(DriverError):
            while self.spent:
                self.driver.event_destroy(self.spent[-1])
                self.spent.pop()

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{call}: this allocator is closed")
