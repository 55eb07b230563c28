"""Allocators that get one thing wrong each."""

from __future__ import annotations

import random

from vmm_conformance.contracts import Access, Block, Code, Driver, DriverError, SubjectError
from vmm_reference.allocator import Pages, Undo, VmmAllocator

# -- ALLOCATOR-1: live blocks have nothing in common


class HandedOutTwice(VmmAllocator):
    """Takes a live block for a freed one and hands it out again."""

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        for pages in self.live.values():
            if (pages.committed, pages.space) == (committed, space):
                return pages
        return super().reuse(committed, space, stream)


class SharedMemory(VmmAllocator):
    """Maps the memory of a live block of the same size behind a new one."""

    def create(self, pages: Pages, size: int) -> int:
        for other in self.live.values():
            if other.space == pages.space and other.pieces[0][1] == size:
                return other.pieces[0][0]
        return super().create(pages, size)


# -- ALLOCATOR-2: live blocks are mapped, with rights


class ReadOnly(VmmAllocator):
    """Grants the right to read alone."""

    def grant(self, pages: Pages) -> None:
        for address, size in placed(pages):
            self.driver.set_access(address, size, dict.fromkeys(self.users(), Access.READ))


class RightsForFirstPiece(VmmAllocator):
    """Grants rights on a block's first mapping, so what it grows by has none."""

    def grant(self, pages: Pages) -> None:
        self.driver.set_access(
            pages.address, pages.pieces[0][1], dict.fromkeys(self.users(), Access.READ_WRITE)
        )


class LyingCommitted(VmmAllocator):
    """Says that twice as many bytes are committed as there are."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        block = super().allocate(size, stream=stream, space=space)
        return block._replace(committed=2 * block.committed)


class MinimumBehind(VmmAllocator):
    """Reports whole recommended granules, and backs whole minimum ones."""

    def rounded(self, size: int, space: int) -> int:
        granularity = self.driver.granularity(self.device, space).minimum
        return -(-size // granularity) * granularity

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        block = super().allocate(size, stream=stream, space=space)
        return block._replace(committed=super().rounded(size, space))


# -- ALLOCATOR-3: of the right memory space, and aligned for it


class SpaceDropped(VmmAllocator):
    """Creates all memory in memory space 0."""

    def create(self, pages: Pages, size: int) -> int:
        asked, pages.space = pages.space, 0
        try:
            return super().create(pages, size)
        finally:
            pages.space = asked


class AlignmentIgnored(VmmAllocator):
    """Aligns every block to 256 bytes, whatever its memory space."""

    def reserve(self, pages: Pages) -> None:
        pages.address = self.driver.reserve(pages.committed, alignment=256)
        pages.addresses.later(self.driver.address_free, pages.address, pages.committed)


class FirstDevice(VmmAllocator):
    """Creates memory on device 0, the current one, and not on its own."""

    def create(self, pages: Pages, size: int) -> int:
        own, self.device = self.device, 0
        try:
            return super().create(pages, size)
        finally:
            self.device = own


# -- ALLOCATOR-4: contents are kept


class ScrubsLate(VmmAllocator):
    """Clears the start of a block not when it is allocated, but at the next call."""

    fresh: tuple[int, int] | None = None

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if self.fresh and self.fresh[0] in self.live:
            self.driver.fill(self.fresh[0], 0, 1, stream=self.fresh[1])
        block = super().allocate(size, stream=stream, space=space)
        self.fresh = block.address, stream
        return block


class ScrubsAnother(VmmAllocator):
    """Clears the memory of a block that is freed, and takes the oldest block for it."""

    def deallocate(self, block: Block, *, stream: int) -> None:
        super().deallocate(block, stream=stream)
        for address in list(self.live)[:1]:
            self.driver.device_synchronize(self.device)
            self.driver.fill(address, 0, 1)


# -- ALLOCATOR-6: growth keeps what was there


class GrowsEmpty(VmmAllocator):
    """Grows by allocating new memory, and copies nothing."""

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        grown = self.build(committed, pages.space)
        try:
            self.carry(pages, grown, stream)
            self.retire(Undo([*pages.memory.steps, *pages.addresses.steps]), stream)
        except DriverError:
            self.driver.stream_synchronize(stream)
            self.abandon(grown.addresses, grown.memory)
            raise
        del self.live[pages.address]
        self.live[grown.address] = grown
        return grown

    def carry(self, pages: Pages, grown: Pages, stream: int) -> None:
        """Copy what the block holds."""


class CopiesShort(GrowsEmpty):
    """Grows by allocating new memory, and copies half of what was committed."""

    def carry(self, pages: Pages, grown: Pages, stream: int) -> None:
        self.driver.copy(grown.address, pages.address, pages.committed // 2, stream=stream)


class PeersAtFirst(VmmAllocator):
    """Grants peers rights on a new block, and not again when it has grown."""

    growing = False

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        self.growing = True
        try:
            return super().move(pages, committed, stream)
        finally:
            self.growing = False

    def users(self) -> list[int]:
        return [self.device] if self.growing else super().users()


class OldCommitted(VmmAllocator):
    """Reports a grown block with the bytes that were committed before."""

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        return super().grow(block, size, stream=stream)._replace(committed=block.committed)


# -- ALLOCATOR-9: what nothing stands against succeeds


class Null(VmmAllocator):
    """Does nothing and returns nothing."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        return None  # type: ignore[return-value]


class AlwaysFails(VmmAllocator):
    """Refuses every request."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        raise SubjectError(Code.INTERNAL, "no")


class Crashes(VmmAllocator):
    """Looks up the sizes that it knows how to serve in a table that is too small."""

    def rounded(self, size: int, space: int) -> int:
        granules = super().rounded(size, space) // super().rounded(1, space)
        return {1: 1, 2: 2, 3: 3}[min(granules, 4)] * super().rounded(1, space)


class NeverWaits(VmmAllocator):
    """Reports that memory is short while freed memory only waits for its stream."""

    def reclaim(self) -> bool:
        return False


class EveryDevice(VmmAllocator):
    """Names every device there is in set_access, whether or not it can reach the memory."""

    def users(self) -> list[int]:
        return list(range(self.driver.device_count))


class AccessTogether(VmmAllocator):
    """Sets the rights of all mappings in one call, also where the driver takes one at a time."""

    def grant(self, pages: Pages) -> None:
        self.driver.set_access(pages.address, pages.committed, dict.fromkeys(self.users(), Access.READ_WRITE))


class AccessBeforeMap(VmmAllocator):
    """Grants rights on a range in which nothing is mapped yet."""

    def map(self, pages: Pages, handle: int, size: int) -> None:
        self.driver.set_access(pages.address, size, {self.device: Access.READ_WRITE})
        super().map(pages, handle, size)


class MapsParts(VmmAllocator):
    """Creates a granule more than it maps, also where the driver maps whole handles only."""

    def create(self, pages: Pages, size: int) -> int:
        return super().create(pages, size + self.rounded(1, pages.space))


class Moody(VmmAllocator):
    """Refuses one request in twenty, never the same ones."""

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.mood = random.Random()

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if size and self.mood.random() < 0.05:
            raise SubjectError(Code.UNAVAILABLE, "not now")
        return super().allocate(size, stream=stream, space=space)


# -- ALLOCATOR-10: no block has size 0


class ZeroIsOne(VmmAllocator):
    """Serves a request for no bytes with a block."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        return super().allocate(max(size, 1), stream=stream, space=space)._replace(size=size)


class ZeroIsNull(VmmAllocator):
    """Answers a request for no bytes with a null block."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        return super().allocate(size, stream=stream, space=space) if size else Block(0, 0, 0)


class ZeroIsShort(VmmAllocator):
    """Says of a request for no bytes that memory is short."""

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if not size:
            raise SubjectError(Code.RESOURCE_EXHAUSTED, "allocate: nothing fits")
        return super().allocate(size, stream=stream, space=space)


def placed(pages: Pages) -> list[tuple[int, int]]:
    """Address and size of each mapping of a block."""
    starts = (pages.address + sum(size for _, size in pages.pieces[:n]) for n in range(len(pages.pieces)))
    return [(start, size) for start, (_, size) in zip(starts, pages.pieces, strict=True)]
