"""Allocators that get captures wrong, one thing each."""

from __future__ import annotations

from vmm_reference.allocator import Pages, Undo
from vmm_reference.allocator_captures import CapturingAllocator
from vmm_reference.allocator_parts import PausingAllocator

# -- ALLOCATOR-19: while a capture is under way nothing is given back


class FreesUnderCapture(CapturingAllocator):
    """Gives back what has passed at every call, under capture too."""

    def give_back_passed(self) -> None:
        PausingAllocator.give_back_passed(self)


class TrimsUnderCapture(CapturingAllocator):
    """Trims whenever it is told to."""

    def give_back_idle(self) -> None:
        PausingAllocator.give_back_idle(self)


class WaitsUnderCapture(CapturingAllocator):
    """Waits for freed memory and gives it back when memory is short, under capture too."""

    def reclaim(self) -> bool:
        return PausingAllocator.reclaim(self)


class MarksCapturedStream(CapturingAllocator):
    """Records an event on the captured stream for what is freed there."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        if stream == self.captured:
            PausingAllocator.retire(self, undo, stream)
            self.kept.append(self.retired.pop())
        else:
            super().retire(undo, stream, pages)


# -- ALLOCATOR-20: what captured work uses stays


class RetiresPlanned(CapturingAllocator):
    """Retires what captured work uses like anything else, once the capture has ended."""

    def is_pinned(self, pages: Pages) -> bool:
        return False


class ReusesPlanned(CapturingAllocator):
    """Hands out again what was freed under capture: its stream is the same."""

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        for pages in self.freed:
            if (pages.committed, pages.space) == (committed, space):
                self.kept = [kept for kept in self.kept if kept.pages is not pages]
                return pages
        return super().reuse(committed, space, stream)

    @property
    def freed(self) -> list[Pages]:
        """The blocks in what is kept."""
        return [kept.pages for kept in self.kept if kept.pages]

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        before = len(self.kept)
        super().retire(undo, stream, pages)
        if len(self.kept) > before and not self.kept[-1].event:
            self.kept[-1].pages = pages


class DropsAtEnd(CapturingAllocator):
    """Takes the end of a capture for the end of what was captured."""

    def end_capture(self, *, stream: int) -> None:
        super().end_capture(stream=stream)
        self.drop_capture(stream=stream)
        self.planned = True
