"""An allocator that is told of captures: what captured work uses stays where it is until it is dropped.

Numbers in comments are ids of the catalogue's ALLOCATOR area.
"""

from __future__ import annotations

from vmm_conformance.contracts import Block, Code, Driver, SubjectError
from vmm_reference.allocator import Pages, Retired, Undo, VmmAllocator
from vmm_reference.allocator_parts import PausingAllocator


class CapturingAllocator(PausingAllocator):
    """Captured work runs later, and more than once, with the addresses and the memory that it was captured with.

    - While a capture is under way nothing is given back, and the captured stream is neither asked nor given
      anything (19). What a failing call has taken is the exception: nobody has seen it.
    - Blocks that are allocated, freed or resized meanwhile are *pinned*: when they are freed or moved, what they leave
      is kept (20).
    - ``drop_capture`` retires what was kept behind the captured stream, where the last launches may still be queued.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.captured: int | None = None
        """The stream that is being captured."""
        self.planned = False
        """Whether there is captured work, or a capture under way."""
        self.pinned: list[Pages] = []
        self.kept: list[Retired] = []
        """What was given up of pinned blocks; event 0 stands for the captured stream's own order."""
        self.about: Pages | None = None
        """The block whose parts are being given up."""

    # -- captures

    def begin_capture(self, *, stream: int) -> None:
        """What the caller submits to ``stream`` from now on is captured."""
        self._check_open("begin_capture")
        self._check_awake("begin_capture")
        if self.planned:
            raise SubjectError(Code.FAILED_PRECONDITION, "begin_capture: there is a capture already; drop it first")
        self.captured, self.planned = stream, True

    def end_capture(self, *, stream: int) -> None:
        """The capture is complete; its work may be launched at any time from now on."""
        self._check_open("end_capture")
        self.captured = None

    def drop_capture(self, *, stream: int) -> None:
        """Captured work is not launched again; what was launched on ``stream`` may still run."""
        self._check_open("drop_capture")
        self.captured = None
        for kept in self.kept:
            if kept.event:
                self.driver.stream_wait_event(stream, kept.event)
        if self.kept:
            oldest_last = reversed(self.kept)  # what was given up first goes first
            VmmAllocator.retire(self, Undo(step for kept in oldest_last for step in kept.undo.steps), stream)
            self.kept.clear()
        self.pinned.clear()
        self.planned = False
        self.give_back_passed()

    # -- what a capture changes for the other calls

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """As ever."""
        return self.pinned_now(super().allocate(size, stream=stream, space=space))

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """As ever."""
        return self.pinned_now(super().grow(block, size, stream=stream))

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        """As ever."""
        return self.pinned_now(super().shrink(block, size, stream=stream))

    def deallocate(self, block: Block, *, stream: int) -> None:
        """As ever, but what is pinned is kept."""
        self.about = self.live.get(block.address)
        super().deallocate(block, stream=stream)

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        """As ever; a pinned block is pinned where it is now."""
        self.about = pages
        grown = super().move(pages, committed, stream)
        if self.is_pinned(pages):
            self.pin(grown)
        return grown

    def cut(self, pages: Pages, kept: int, stream: int) -> None:
        """As ever."""
        self.about = pages
        super().cut(pages, kept, stream)

    def pause(self, *, backup: bool) -> None:
        """Refused while there is captured work, which needs its memory."""
        if self.planned:
            raise SubjectError(Code.FAILED_PRECONDITION, "pause: there is captured work; drop it first")
        super().pause(backup=backup)

    def undos(self) -> list[Undo]:
        """As ever, with what is kept (17)."""
        return [*super().undos(), *(kept.undo for kept in self.kept)]

    def close(self) -> None:
        """As ever. Whoever closes has dropped what was captured, or will never launch it."""
        self.captured = None
        self.retired += self.kept
        self.kept.clear()
        super().close()

    # -- giving back

    def pinned_now(self, block: Block) -> Block:
        """A block that a capture sees made or resized is pinned."""
        if self.captured is not None:
            self.pin(self.live[block.address])
        return block

    def pin(self, pages: Pages) -> None:
        """Keep what stands behind a block from now on, until the capture is dropped."""
        if not self.is_pinned(pages):
            self.pinned.append(pages)

    def is_pinned(self, pages: Pages) -> bool:
        """Whether a block is, by what it is and not by what it is like."""
        return any(pages is other for other in self.pinned)

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        """Keep it if it is of a pinned block, or if it cannot be marked, since its stream is captured (19, 20)."""
        about = self.about
        if stream == self.captured:
            self.kept.append(Retired(undo, 0, stream))
        elif about and (self.captured is not None or self.is_pinned(about)):
            super().retire(undo, stream)
            self.kept.append(self.retired.pop())
        else:
            super().retire(undo, stream, pages)

    def give_back_passed(self) -> None:
        """Not while a capture is under way (19)."""
        if self.captured is None:
            super().give_back_passed()

    def give_back_idle(self) -> None:
        """Not while a capture is under way (19)."""
        if self.captured is None:
            super().give_back_idle()

    def reclaim(self) -> bool:
        """Not while a capture is under way (19): memory is short then."""
        return self.captured is None and super().reclaim()

    def abandon(self, *undos: Undo) -> None:
        """Give back what a failing call has taken, and nothing else while a capture is under way (7, 19)."""
        before = self.leftover
        if self.captured is not None:
            self.leftover = []
        super().abandon(*undos)
        if self.captured is not None:
            self.leftover += before
