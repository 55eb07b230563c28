"""Allocators that do not do what they declare."""

from __future__ import annotations

from typing import ClassVar

from vmm_conformance.contracts import Block
from vmm_reference.allocator import ADDRESSES, PATHS, Pages, VmmAllocator
from vmm_reference.expandable import ExpandableAllocator, Segment

# -- ALLOCATOR-22: no more address space than declared


class ReservesAhead(VmmAllocator):
    """Reserves room to grow behind each block, as if there were no end of it."""

    DECLARES: ClassVar = {"address_space": ADDRESSES}

    def reserve(self, pages: Pages) -> None:
        alignment = self.driver.space_alignment(self.device, pages.space)
        room = ADDRESSES * self.driver.mem_info(self.device).total // 4
        pages.address = self.driver.reserve(room, alignment=alignment)
        pages.addresses.later(self.driver.address_free, pages.address, room)


class SegmentForEach(ExpandableAllocator):
    """Takes a segment of its own for each block, and looks at no budget."""

    def gap(self, segment: Segment, taken: int, unit: int) -> int:
        return segment.size

    def make_room(self, size: int) -> None:
        pass


# -- ALLOCATOR-23: paths are told as they are taken


class NeverInPlace(VmmAllocator):
    """Says that blocks grow in place, and always moves them."""

    DECLARES: ClassVar = {"paths": PATHS}

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        pages = self._pages("grow", block)
        grown = self.move(pages, self.rounded(max(size, pages.committed + 1), pages.space), stream)
        self.paths["grow/in place"] += 1
        return Block(grown.address, size, grown.committed)


class CountsNothing(VmmAllocator):
    """Declares paths and counts none."""

    DECLARES: ClassVar = {"paths": PATHS}

    def taken(self) -> dict[str, int]:
        return dict.fromkeys(PATHS, 0)
