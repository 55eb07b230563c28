"""Allocators that wait where they must not."""

from __future__ import annotations

from vmm_reference.allocator import Pages, Undo, VmmAllocator
from vmm_reference.allocator_parts import PausingAllocator

# -- ALLOCATOR-21: nothing waits for work that the caller holds back


class WaitsToFree(VmmAllocator):
    """Waits for the stream when a block is freed or grows, instead of marking it."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        self.driver.stream_synchronize(stream)
        super().retire(undo, stream, pages)


class WaitsToTrim(PausingAllocator):
    """Trims by waiting for all that was freed."""

    def trim(self) -> None:
        for retired in self.retired:
            self.driver.event_synchronize(retired.event)
        super().trim()


class WaitsToReuse(VmmAllocator):
    """Waits for what another stream has freed rather than taking new memory."""

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        for retired in self.retired:
            pages = retired.pages
            if pages and (pages.committed, pages.space) == (committed, space):
                self.driver.event_synchronize(retired.event)
                retired.stream = stream
        return super().reuse(committed, space, stream)
