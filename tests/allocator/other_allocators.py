"""Correct allocators that are built in other ways than the reference: the checker must have no word on them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from vmm_conformance.contracts import Allocator, Block, Code, Driver, DriverError, SubjectError
from vmm_conformance.running.recorded import RecordedDriver
from vmm_reference.allocator import Pages, Undo, VmmAllocator


class Plain:
    """Takes plain memory, and waits for the stream in deallocate. Grows by copying."""

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.live: dict[int, tuple[Block, int]] = {}

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if size <= 0:
            raise SubjectError(Code.INVALID_ARGUMENT, f"size {size}")
        address = self.driver.alloc(size, device=self.device, space=space)
        block = Block(address, size, size)
        self.live[address] = block, space
        return block

    def deallocate(self, block: Block, *, stream: int) -> None:
        self.driver.stream_synchronize(stream)
        self.driver.free(block.address)
        del self.live[block.address]

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        grown = self.allocate(size, stream=stream, space=self.live[block.address][1])
        try:
            self.driver.copy(grown.address, block.address, block.size, stream=stream)
            self.driver.stream_synchronize(stream)
            self.driver.free(block.address)
        except DriverError:
            self.driver.stream_synchronize(stream)
            self.deallocate(grown, stream=stream)
            raise
        del self.live[block.address]
        return grown

    def close(self) -> None:
        if self.live:
            self.driver.device_synchronize(self.device)
        for address in list(self.live):
            self.driver.free(address)
            del self.live[address]


class Waiting(VmmAllocator):
    """Waits for the stream in deallocate and grow, and gives back at once."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        self.driver.stream_synchronize(stream)
        self.leftover.append(undo)
        with suppress(DriverError):
            self.give_back_leftover()


class Caching(VmmAllocator):
    """Keeps what was freed for the same stream until memory is short, or until it closes."""

    def give_back_passed(self) -> None:
        with suppress(DriverError):
            self.give_back_leftover()


class Sharing(Caching):
    """Hands memory from stream to stream, and lets the new one wait for the old one."""

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        for retired in self.retired:
            if retired.pages and (retired.pages.committed, retired.pages.space) == (committed, space):
                if retired.stream != stream:
                    self.driver.stream_wait_event(stream, retired.event)
                retired.stream = stream
                break
        return super().reuse(committed, space, stream)


class Roomy(VmmAllocator):
    """Reserves four times the size, and grows in place as long as there is room."""

    def reserve(self, pages: Pages) -> None:
        alignment = self.driver.space_alignment(self.device, pages.space)
        pages.address = self.driver.reserve(4 * pages.committed, alignment=alignment)
        pages.addresses.later(self.driver.address_free, pages.address, 4 * pages.committed)

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        _, (_, room) = pages.addresses.steps[0]
        if committed > room:
            return super().move(pages, committed, stream)
        before = pages.pieces, list(pages.addresses.steps), list(pages.memory.steps)
        more = committed - pages.committed
        try:
            self.map(pages, self.create(pages, more), more)
            self.grant(pages)
        except DriverError:
            pages.pieces, kept, handles = before
            new = Undo(pages.addresses.steps[len(kept) :]), Undo(pages.memory.steps[len(handles) :])
            pages.addresses.steps, pages.memory.steps = kept, handles
            self.abandon(*new)
            raise
        pages.committed = committed
        return pages


class Segment:
    """Cuts blocks of 256 bytes and more from segments of four granules, for one stream each."""

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.pages = VmmAllocator(driver, device)
        self.segments: dict[int, tuple[Block, int, list[Block]]] = {}
        """By address: the segment, its stream and the blocks cut from it, in order."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if size <= 0:
            raise SubjectError(Code.INVALID_ARGUMENT, f"size {size}")
        committed = -(-size // 256) * 256
        for segment, owner, blocks in self.segments.values():
            start = blocks[-1].address + blocks[-1].committed if blocks else segment.address
            if owner == stream and start + committed <= segment.address + segment.committed:
                blocks.append(Block(start, size, committed))
                return blocks[-1]
        segment = self._segment(committed, stream)
        block = Block(segment.address, size, committed)
        self.segments[segment.address] = segment, stream, [block]
        return block

    def _segment(self, committed: int, stream: int) -> Block:
        try:
            return self.pages.allocate(max(committed, 4 * 4096), stream=stream)
        except DriverError:
            return self.pages.allocate(committed, stream=stream)

    def deallocate(self, block: Block, *, stream: int) -> None:
        for segment, owner, blocks in self.segments.values():
            if block in blocks:
                if stream != owner:
                    self.driver.stream_synchronize(stream)
                if blocks == [block]:
                    self.pages.deallocate(segment, stream=owner)
                    del self.segments[segment.address]
                else:
                    blocks.remove(block)
                return
        raise SubjectError(Code.INVALID_ARGUMENT, f"no block at {block.address:#x}")

    def close(self) -> None:
        self.pages.close()


class Subject:
    """A subject with one of these allocators."""

    def __init__(self, kind: type[Any], *, traced: bool = True, **capabilities: Any) -> None:
        self.name = kind.__name__
        self.kind = kind
        self.traced = traced
        self.capabilities: Mapping[str, Any] = {"spaces": (0, 1, 5), "traced": traced, **capabilities}

    def allocator(self, driver: Driver, device: int) -> Allocator:
        if not self.traced:
            assert isinstance(driver, RecordedDriver)
            driver = driver.unrecorded
        allocator: Allocator = self.kind(driver, device)
        return allocator


CORRECT = (
    Subject(Plain, waits=("deallocate", "grow")),
    Subject(Waiting, waits=("deallocate", "grow")),
    Subject(Caching),
    Subject(Sharing),
    Subject(Roomy),
    Subject(Segment, grow=False, spaces=(0,), waits=("deallocate",)),
    Subject(VmmAllocator, traced=False),
    Subject(VmmAllocator, spaces=(0,)),
)
