"""Allocators that get one thing wrong each in giving back: too early, too much, too little, twice."""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import Block, Code, Driver, DriverError, SubjectError
from vmm_reference.allocator import Pages, Undo, VmmAllocator

# -- ALLOCATOR-5: nothing is taken away or handed on before its last use is over


class UnmapsAtOnce(VmmAllocator):
    """Unmaps in deallocate, without waiting for the stream."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        if pages is None:
            super().retire(undo, stream)
        else:
            self.abandon(undo)


class AnyStream(VmmAllocator):
    """Hands memory that was freed on one stream to another, ordering nothing."""

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        for retired in self.retired:
            retired.stream = stream
        return super().reuse(committed, space, stream)


class FirstStream(VmmAllocator):
    """Records every event on the stream of the first allocation."""

    first: int | None = None

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        self.first = self.first or stream
        return super().allocate(size, stream=stream, space=space)

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        super().retire(undo, self.first or stream, pages)
        self.retired[-1].stream = stream


class OneEvent(VmmAllocator):
    """Has one event for all, and records it anew at every free, whatever the stream."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        super().retire(undo, stream, pages)
        for retired in self.retired:
            retired.event = self.retired[-1].event

    def give_back_passed(self) -> None:
        for retired in self.retired[:-1]:
            if self.driver.event_query(self.retired[-1].event):
                self.retired.remove(retired)
                self.leftover.append(retired.undo)
        self.abandon()


class ReclaimsUnseen(VmmAllocator):
    """Takes pending memory back when memory is short, without waiting for it."""

    def reclaim(self) -> bool:
        if not self.retired:
            return False
        self.abandon(self.retired.pop(0).undo)
        return True


class ClosesUnseen(VmmAllocator):
    """Closes without waiting for anything."""

    def close(self) -> None:
        for pages in self.live.values():
            self.leftover += [pages.addresses, pages.memory]
        self.live.clear()
        super().close()


class GrowsUnseen(VmmAllocator):
    """Unmaps a block's old addresses as soon as it has grown."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        if pages is None:
            self.abandon(undo)
        else:
            super().retire(undo, stream, pages)


# -- ALLOCATOR-7: a failed call changes nothing


class NoUndo(VmmAllocator):
    """Undoes nothing."""

    def abandon(self, *undos: Undo) -> None:
        pass


class UndoesMapsOnly(VmmAllocator):
    """Unmaps what it had mapped, and keeps the reservation and the memory."""

    def abandon(self, *undos: Undo) -> None:
        unmap = self.driver.unmap
        super().abandon(*(Undo(step for step in undo.steps if step[0] == unmap) for undo in undos))


class UndoesTooMuch(VmmAllocator):
    """When growing fails, clears the block that was to grow as well."""

    def build(self, committed: int, space: int, kept: Pages | None = None) -> Pages:
        try:
            return super().build(committed, space, kept)
        except DriverError:
            if kept:
                self.abandon(kept.addresses)
            raise


class RemapsWithoutRights(VmmAllocator):
    """Moves a block's memory when it grows, and puts it back without rights when that fails."""

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        self.driver.stream_synchronize(stream)
        reserved, *mapped = pages.addresses.steps
        Undo(mapped).run()
        pages.addresses = Undo([reserved])
        try:
            return super().move(pages, committed, stream)
        except DriverError:
            address = pages.address
            for handle, size in pages.pieces:
                self.driver.map(address, size, handle)
                pages.addresses.later(self.driver.unmap, address, size)
                address += size
            raise


class LastErrorWins(VmmAllocator):
    """Reports the error that it met while undoing."""

    def abandon(self, *undos: Undo) -> None:
        self.leftover += undos
        self.give_back_leftover()


class UndoGivesUp(VmmAllocator):
    """Gives up undoing at the first thing that the driver does not take back, and forgets the rest."""

    def abandon(self, *undos: Undo) -> None:
        with suppress(DriverError):
            for undo in undos:
                for call, arguments in reversed(undo.steps):
                    call(*arguments)


class Poisoned(VmmAllocator):
    """Refuses everything once one call has failed."""

    failed = False

    def abandon(self, *undos: Undo) -> None:
        self.failed = True
        super().abandon(*undos)

    def _check_open(self, call: str) -> None:
        if self.failed:
            raise SubjectError(Code.INTERNAL, f"{call}: an earlier call has failed")
        super()._check_open(call)


class ForgetsFirst(VmmAllocator):
    """Strikes a block off its list before it knows that it can be freed."""

    def deallocate(self, block: Block, *, stream: int) -> None:
        pages = self._pages("deallocate", block)
        del self.live[block.address]
        self.retire(Undo([*pages.memory.steps, *pages.addresses.steps]), stream, pages)


# -- ALLOCATOR-8: close gives everything back, once


class KeepsLive(VmmAllocator):
    """Closes without giving back what is still live."""

    def close(self) -> None:
        self.live.clear()
        super().close()


class KeepsEvents(VmmAllocator):
    """Never destroys the events that it records."""

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        super().retire(undo, stream, pages)
        self.retired[-1].undo.steps.pop()


class KeepsReference(VmmAllocator):
    """Keeps the reference that create returned."""

    def create(self, pages: Pages, size: int) -> int:
        handle = super().create(pages, size)
        pages.memory.steps.pop()
        return handle


class FreesTwice(VmmAllocator):
    """Frees every reservation twice."""

    def reserve(self, pages: Pages) -> None:
        super().reserve(pages)
        pages.addresses.later(self.driver.address_free, pages.address, pages.committed)


class UnmapsRequested(VmmAllocator):
    """Records the size that was asked for, and unmaps that many bytes."""

    asked = 0

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        self.asked = size
        return super().allocate(size, stream=stream, space=space)

    def map(self, pages: Pages, handle: int, size: int) -> None:
        super().map(pages, handle, size)
        call, (address, _) = pages.addresses.steps.pop()
        pages.addresses.later(call, address, min(size, self.asked))


class UnmapsTogether(VmmAllocator):
    """Unmaps all mappings of a block in one call, also where the driver takes one at a time."""

    def map(self, pages: Pages, handle: int, size: int) -> None:
        super().map(pages, handle, size)
        del pages.addresses.steps[1:]
        pages.addresses.later(self.driver.unmap, pages.address, sum(size for _, size in pages.pieces))


class ClosesOnce(VmmAllocator):
    """Raises when it is closed again."""

    def close(self) -> None:
        if self.closed and not self.leftover:
            raise SubjectError(Code.FAILED_PRECONDITION, "close: this allocator is closed")
        super().close()


# -- ALLOCATOR-18: repetitions leave nothing behind


class HoardsEvents(VmmAllocator):
    """Keeps the event of each deallocation and growth until it is closed."""

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.hoard = Undo()

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        super().retire(undo, stream, pages)
        self.hoard.steps.append(self.retired[-1].undo.steps.pop())

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        pages = super().reuse(committed, space, stream)
        if pages:
            self.leftover.pop()
        return pages

    def close(self) -> None:
        self.leftover.append(self.hoard)
        self.hoard = Undo()
        super().close()


class HoardsAddresses(VmmAllocator):
    """Keeps the addresses that a block has grown out of until it is closed."""

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.hoard = Undo()

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        if pages is not None:
            super().retire(undo, stream, pages)
            return
        reserved, *mapped = undo.steps
        super().retire(Undo(mapped), stream)
        self.hoard.steps.append(reserved)

    def close(self) -> None:
        self.leftover += [retired.undo for retired in self.retired]
        if self.live or self.retired:
            self.driver.device_synchronize(self.device)
        self.retired.clear()
        self.leftover.append(self.hoard)
        self.hoard = Undo()
        super().close()
