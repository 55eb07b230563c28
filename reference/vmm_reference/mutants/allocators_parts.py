"""Allocators that get one thing wrong each in an optional part."""

from __future__ import annotations

from vmm_conformance.contracts import Block, Code, Statistics, SubjectError
from vmm_reference.allocator import Pages, Undo
from vmm_reference.allocator_parts import PausingAllocator

# -- ALLOCATOR-11: a shrunk block keeps its first bytes


class ShrinksEmpty(PausingAllocator):
    """Shrinks by freeing the block and allocating a smaller one, whose bytes are other ones."""

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        space = self._pages("shrink", block).space
        made = self.allocate(size, stream=stream, space=space)
        self.deallocate(block, stream=stream)
        return made


class ShrinksInName(PausingAllocator):
    """Cuts the block's tail off, and says that it has its old size."""

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        return super().shrink(block, size, stream=stream)._replace(size=block.size)


class ShrinksUnseen(PausingAllocator):
    """Unmaps a shrunk block's tail at once."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        if pages is None and any(call == self.driver.release for call, _ in undo.steps):
            self.abandon(undo)
        else:
            super().retire(undo, stream, pages)


# -- ALLOCATOR-12: trim gives back what nothing needs


class TrimsNothing(PausingAllocator):
    """Takes a request to trim for advice."""

    def trim(self) -> None:
        self._check_open("trim")


class TrimsOldest(PausingAllocator):
    """Trims what was freed first, and stops there."""

    def trim(self) -> None:
        kept, self.retired = self.retired[1:], self.retired[:1]
        super().trim()
        self.retired += kept


class TrimsUnseen(PausingAllocator):
    """Trims what is freed, whether its work is over or not."""

    def trim(self) -> None:
        self.leftover += [retired.undo for retired in self.retired]
        self.retired.clear()
        super().trim()


# -- ALLOCATOR-13, 14 and 15: pause and resume


class PausesInName(PausingAllocator):
    """Does nothing but say that it is paused."""

    def pause(self, *, backup: bool) -> None:
        self._check_open("pause")

    def resume(self) -> None:
        self._check_open("resume")


class PausesMappedOnly(PausingAllocator):
    """Unmaps when it pauses, and keeps the handles for now."""

    pausing = False

    def pause(self, *, backup: bool) -> None:
        self.pausing = True
        try:
            super().pause(backup=backup)
        finally:
            self.pausing = False

    def give_back_leftover(self) -> None:
        if not self.pausing:
            super().give_back_leftover()


class PausesUnseen(PausingAllocator):
    """Unmaps without waiting for the device."""

    def pause(self, *, backup: bool) -> None:
        driver, self.driver = self.driver, _Impatient(self.driver)  # type: ignore[assignment]
        try:
            super().pause(backup=backup)
        finally:
            self.driver = driver


class _Impatient:
    """A driver whose device is never waited for."""

    def __init__(self, driver: object) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> object:
        return getattr(self._driver, name)

    def device_synchronize(self, device: int) -> None:
        """Does nothing."""


class BackupSkipped(PausingAllocator):
    """Backs nothing up."""

    def write(self, address: int, contents: bytes) -> None:
        pass


class BackupShort(PausingAllocator):
    """Backs up the first piece of a block that has grown."""

    def read(self, pages: Pages) -> bytes:
        return super().read(pages)[: pages.pieces[0][1]]


class ResumesForItself(PausingAllocator):
    """Grants rights to its own device alone when it resumes."""

    resuming = False

    def resume(self) -> None:
        self.resuming = True
        try:
            super().resume()
        finally:
            self.resuming = False

    def users(self) -> list[int]:
        return [self.device] if self.resuming else super().users()


class RefusesAgain(PausingAllocator):
    """Refuses to pause when it is paused."""

    def pause(self, *, backup: bool) -> None:
        if self.paused:
            raise SubjectError(Code.FAILED_PRECONDITION, "pause: this allocator is paused")
        super().pause(backup=backup)


class ResumesAgain(PausingAllocator):
    """Grants all rights anew when it is resumed without having been paused."""

    def resume(self) -> None:
        if not self.paused:
            self.grant_live()
        super().resume()


# -- ALLOCATOR-16: peers that are enabled later


class LatePeerIgnored(PausingAllocator):
    """Lets a peer into the blocks to come, and not into those that there are."""

    def grant_live(self) -> None:
        pass


class LatePeerForgotten(PausingAllocator):
    """Lets a peer into the blocks that there are, and not into those to come."""

    def enable_peer(self, peer: int) -> None:
        super().enable_peer(peer)
        self.peers.clear()


class ImpossiblePeer(PausingAllocator):
    """Says yes to a peer that cannot reach its memory, and grants it nothing."""

    def enable_peer(self, peer: int) -> None:
        if self.driver.can_access_peer(peer, self.device):
            super().enable_peer(peer)


# -- ALLOCATOR-17: statistics


class CountsRequested(PausingAllocator):
    """Takes the bytes that were asked for for those that are committed."""

    def statistics(self) -> Statistics:
        told = super().statistics()
        return told._replace(committed=told.requested)


class CountsLive(PausingAllocator):
    """Forgets what is freed and not given back yet."""

    def statistics(self) -> Statistics:
        retired, self.retired = self.retired, []
        told = super().statistics()
        self.retired = retired
        return told
