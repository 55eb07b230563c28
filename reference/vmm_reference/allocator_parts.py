"""The optional parts of the contract ``allocator``, each a few lines more on the small allocator.

`SizedAllocator` shrinks, trims, counts and lets peers in; `PausingAllocator` gives memory away for a
while as well. Numbers in comments are ids of the catalogue's ALLOCATOR area.
"""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import Access, Block, Code, Driver, DriverError, Statistics, SubjectError
from vmm_reference.allocator import Pages, Undo, VmmAllocator


class SizedAllocator(VmmAllocator):
    """Gives back what is not needed, says what it holds, and enables peers one by one.

    ``shrink`` unmaps nothing but whole mappings, for not every driver takes parts: a block that has grown
    loses the pieces that lie behind its new size. Its first piece stays as it is.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.peers: list[int] = []
        self.sizes: dict[int, int] = {}
        """Requested bytes of each live block, by address."""
        self.memory: dict[int, int] = {}
        """Bytes of each handle that was created."""

    # -- bookkeeping

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """As ever, and remembers what was asked for."""
        block = super().allocate(size, stream=stream, space=space)
        self.sizes[block.address] = size
        return block

    def deallocate(self, block: Block, *, stream: int) -> None:
        """As ever."""
        super().deallocate(block, stream=stream)
        del self.sizes[block.address]

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """As ever."""
        grown = super().grow(block, size, stream=stream)
        del self.sizes[block.address]
        self.sizes[grown.address] = size
        return grown

    def create(self, pages: Pages, size: int) -> int:
        """As ever, and remembers the size."""
        handle = super().create(pages, size)
        self.memory[handle] = size
        return handle

    # -- the parts

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        """A block of ``size`` bytes that begins with the bytes of ``block``, at its address.

        Work submitted to ``stream`` before may still use what is cut off (5).
        """
        pages = self._pages("shrink", block)
        if not 0 < size <= block.size:
            raise SubjectError(
                Code.INVALID_ARGUMENT, f"shrink: size is {size} bytes, and must be 1 to the {block.size} of the block"
            )
        kept = self.pieces_for(pages, size)
        if kept < len(pages.pieces):
            self.cut(pages, kept, stream)
        self.sizes[pages.address] = size
        return Block(pages.address, size, pages.committed)

    def pieces_for(self, pages: Pages, size: int) -> int:
        """How many of the block's pieces hold its first ``size`` bytes."""
        covered = count = 0
        while covered < size:
            covered += pages.pieces[count][1]
            count += 1
        return count

    def cut(self, pages: Pages, kept: int, stream: int) -> None:
        """Retire the mappings and the memory behind the first ``kept`` pieces; the addresses stay reserved."""
        reserving, *mapping = pages.addresses.steps
        tail = Undo([*pages.memory.steps[kept:], *mapping[kept:]])
        self.retire(tail, stream)
        pages.addresses = Undo([reserving, *mapping[:kept]])
        pages.memory = Undo(pages.memory.steps[:kept])
        pages.pieces = pages.pieces[:kept]
        pages.committed = sum(size for _, size in pages.pieces)

    def trim(self) -> None:
        """Give back, without waiting, all that no live block needs and whose work is over (12)."""
        self._check_open("trim")
        self.give_back_idle()

    def give_back_idle(self) -> None:
        """What nothing uses any more, as far as the driver says. Raises what it refuses."""
        for retired in tuple(self.retired):
            if self.driver.event_query(retired.event):
                self.retired.remove(retired)
                self.leftover.append(retired.undo)
        self.give_back_leftover()

    def enable_peer(self, peer: int) -> None:
        """Let device ``peer`` use every block, those to come included (16)."""
        self._check_open("enable_peer")
        if peer == self.device or peer in self.peers:
            return
        if not self.driver.can_access_peer(peer, self.device):
            raise SubjectError(Code.INVALID_ARGUMENT, f"enable_peer: device {peer} cannot reach device {self.device}")
        self.peers.append(peer)
        try:
            self.grant_live()
        except DriverError:
            self.peers.remove(peer)
            raise

    def grant_live(self) -> None:
        """Grant rights on what is mapped for live blocks, and for freed ones that may be used again."""
        freed = (retired.pages for retired in self.retired)
        for pages in (*self.live.values(), *filter(None, freed)):
            self.grant(pages)

    def users(self) -> list[int]:
        """The device, and the peers that were enabled."""
        return [self.device, *self.peers]

    def statistics(self) -> Statistics:
        """What live blocks asked for, and what the driver has given and not got back (17)."""
        self._check_open("statistics")
        release = self.driver.release
        committed = sum(self.memory[args[0]] for undo in self.undos() for call, args in undo.steps if call == release)
        return Statistics(sum(self.sizes.values()), committed, self.reserved())


class PausingAllocator(SizedAllocator):
    """Gives the memory behind live blocks to others for a while, and keeps the blocks' addresses.

    - ``pause`` waits for the device (5), reads the contents out if there is to be a ``backup``, and then
      unmaps and releases. A refused unmap puts everything back as it was (7).
    - ``resume`` maps new memory at the old addresses, grants rights anew and writes the backup back (14).
      Without a backup the new memory holds what it happens to hold.
    - Pausing twice and resuming twice do nothing (15).
    - While it is paused, blocks can be freed and the allocator closed, but nothing be allocated.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.paused = False
        self.backups: dict[int, bytes] = {}
        """Contents of live blocks by address, while paused."""
        self.shapes: dict[int, tuple[int, ...]] = {}
        """Sizes of the pieces of live blocks by address, while paused."""
        self.torn: list[tuple[int, int, int]] = []
        """Address, size and handle of mappings that a failed pause has not put back yet."""
        self.bare = False
        """Whether the first of them is mapped again, and lacks its rights."""

    def pause(self, *, backup: bool) -> None:
        """Give the device the memory behind live blocks (13)."""
        self._check_open("pause")
        if self.paused:
            return
        self.driver.device_synchronize(self.device)
        self.give_back_idle()  # old addresses of blocks that have grown would hold on to their memory
        contents = {address: self.read(pages) for address, pages in self.live.items()} if backup else {}
        self.unmap_all()
        self.backups, self.paused = contents, True
        self.shapes = {address: tuple(size for _, size in pages.pieces) for address, pages in self.live.items()}
        for pages in self.live.values():
            pages.pieces = ()
            self.leftover.append(pages.memory)
            pages.memory = Undo()
        with suppress(DriverError):
            self.give_back_leftover()

    def resume(self) -> None:
        """Put memory behind the live blocks again (14). Raises when memory is short, and stays paused."""
        self._check_open("resume")
        if not self.paused:
            return
        with suppress(DriverError):
            self.give_back_leftover()
        backed: list[Pages] = []
        try:
            for pages in self.live.values():
                backed.append(pages)
                self.back(pages)
            for address, contents in self.backups.items():
                self.write(address, contents)
        except DriverError:
            for pages in backed:
                self.strip(pages)
            raise
        self.paused = False
        self.backups = {}

    # -- contents

    def read(self, pages: Pages) -> bytes:
        """All that a block holds, by the host."""
        return self.driver.read(pages.address, pages.committed).data[0]

    def write(self, address: int, contents: bytes) -> None:
        """Put back what a block held, by the host."""
        self.driver.write(address, contents)

    # -- mappings

    def unmap_all(self) -> None:
        """Unmap all live blocks, or none."""
        done: list[tuple[int, int, int]] = []
        try:
            for address, pages in self.live.items():
                for handle, size in pages.pieces:
                    self.driver.unmap(address, size)
                    done.append((address, size, handle))
                    address += size
        except DriverError:
            self.torn += done
            with suppress(DriverError):
                self.mend()
            raise
        for pages in self.live.values():
            del pages.addresses.steps[1:]

    def mend(self) -> None:
        """Map again what a failed pause had unmapped; what the driver refuses now stays for another call (7)."""
        rights = dict.fromkeys(self.users(), Access.READ_WRITE)
        while self.torn:
            address, size, handle = self.torn[0]
            if not self.bare:
                self.driver.map(address, size, handle)
                self.bare = True
            self.driver.set_access(address, size, rights)
            del self.torn[0]
            self.bare = False

    def back(self, pages: Pages) -> None:
        """New memory at the addresses of a paused block, in pieces as before."""
        for size in self.shapes[pages.address]:
            self.map(pages, self.create(pages, size), size)
        self.grant(pages)

    def strip(self, pages: Pages) -> None:
        """Undo `back`."""
        reserving, *mapping = pages.addresses.steps
        self.abandon(Undo([*pages.memory.steps, *mapping]))
        pages.addresses, pages.memory, pages.pieces = Undo([reserving]), Undo(), ()

    # -- what a pause changes for the other calls

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """Refused while paused."""
        self._check_awake("allocate")
        return super().allocate(size, stream=stream, space=space)

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """Refused while paused."""
        self._check_awake("grow")
        return super().grow(block, size, stream=stream)

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        """Refused while paused."""
        self._check_awake("shrink")
        return super().shrink(block, size, stream=stream)

    def deallocate(self, block: Block, *, stream: int) -> None:
        """As ever; the backup of what is freed while paused is dropped."""
        super().deallocate(block, stream=stream)
        self.backups.pop(block.address, None)

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        """As ever; but while paused there is nothing behind the pages that could be used again."""
        super().retire(undo, stream, None if self.paused else pages)

    def close(self) -> None:
        """As ever, once what an undo could not put back is back."""
        self.mend()
        super().close()

    def grant_live(self) -> None:
        """While paused no live block is mapped; rights come with `resume`."""
        if not self.paused:
            super().grant_live()

    def _check_open(self, call: str) -> None:
        super()._check_open(call)
        with suppress(DriverError):
            self.mend()

    def _check_awake(self, call: str) -> None:
        if self.paused:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{call}: this allocator is paused; resume it first")
