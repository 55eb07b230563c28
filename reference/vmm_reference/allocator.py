"""A small VMM allocator: one reservation and whole granules of physical memory behind each block.

Read it from `VmmAllocator` down. What it promises is the catalogue's ALLOCATOR area; the numbers in
comments are ids there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from vmm_conformance.contracts import Access, Block, Code, Driver, DriverError, Status, SubjectError

Step = tuple[Callable[..., None], tuple[int, ...]]
"""One driver call that gives something back, and its arguments."""


class Undo:
    """Driver calls that give back what was taken, last taken first. Each succeeds once."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: list[Step] = list(steps)

    def later(self, call: Callable[..., None], *arguments: int) -> None:
        """Something was taken: ``call`` gives it back."""
        self.steps.append((call, arguments))

    def run(self) -> None:
        """Give back all that the driver takes. Raises its first refusal; the refused rest stays for another run."""
        refused: list[Step] = []
        first: DriverError | None = None
        for call, arguments in reversed(self.steps):
            try:
                call(*arguments)
            except DriverError as error:
                refused.append((call, arguments))
                first = first or error
        self.steps = refused[::-1]
        if first:
            raise first


@dataclass(slots=True)
class Pages:
    """What stands behind a block: ``committed`` bytes at ``address``, all in memory space ``space``.

    ``pieces`` are the handles mapped there, in order, with their sizes: one for each time it grew.
    ``addresses`` gives the mappings and the reservation back, ``memory`` the handles.
    """

    address: int
    committed: int
    space: int
    pieces: tuple[tuple[int, int], ...] = ()
    addresses: Undo = field(default_factory=Undo)
    memory: Undo = field(default_factory=Undo)


@dataclass(slots=True)
class Retired:
    """Something to give back once ``event`` has passed. ``pages``: a block's, which may be used again."""

    undo: Undo
    event: int
    stream: int
    pages: Pages | None = None


PATHS = ("grow/in place", "grow/moved")
"""The two ways in which a block grows: what is committed is enough, or it moves (23)."""
ADDRESSES = 16
"""So many times the device's memory is reserved at most (22)."""


class VmmAllocator:
    """Stream-ordered allocation on one device.

    - A block's size is rounded up to the recommended granularity; that many bytes are committed.
    - ``deallocate`` records an event on its stream. The block's memory is unmapped only when the event has
      passed (5); until then a request of the same shape on the same stream takes it as it is.
    - ``grow`` maps the same memory, and some more, at a larger reservation, and retires the old addresses
      like those of a freed block. Nothing is copied and nothing waits (6).
    - When memory is short, the oldest retirements are waited for and given back (9).
    - What a failed call took is given back before it raises (7). What the driver refuses to take back is
      kept, and tried again by every later call and by ``close`` (8).

    Not safe for use from several threads at once.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.live: dict[int, Pages] = {}
        """By address."""
        self.retired: list[Retired] = []
        """Oldest first."""
        self.leftover: list[Undo] = []
        """What nothing uses any more and the driver has refused to take back so far."""
        self.closed = False
        self.most = 0
        """Bytes of address space that may be reserved, once the driver has said how large the device is."""
        self.paths = dict.fromkeys(PATHS, 0)

    # -- the contract

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """``size`` bytes in memory space ``space``, for work submitted to ``stream`` from now on."""
        self._check_open("allocate")
        if size <= 0:
            raise SubjectError(Code.INVALID_ARGUMENT, f"allocate: size is {size} bytes, and must be positive")
        self.give_back_passed()
        committed = self.rounded(size, space)
        pages = self.reuse(committed, space, stream) or self.build(committed, space)
        self.live[pages.address] = pages
        return Block(pages.address, size, committed)

    def deallocate(self, block: Block, *, stream: int) -> None:
        """Free ``block``; work submitted to ``stream`` before may still use it."""
        pages = self._pages("deallocate", block)
        whole = Undo([*pages.memory.steps, *pages.addresses.steps])
        self.retire(whole, stream, pages)
        del self.live[block.address]
        self.give_back_passed()

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """A block of ``size`` bytes that begins with the bytes of ``block`` and replaces it.

        Work submitted to ``stream`` before may still use the old address.
        """
        pages = self._pages("grow", block)
        if size < block.size:
            raise SubjectError(
                Code.INVALID_ARGUMENT, f"grow: size is {size} bytes, less than the {block.size} of the block"
            )
        committed, path = self.rounded(size, pages.space), "grow/in place"
        if committed > pages.committed:
            pages, path = self.move(pages, committed, stream), "grow/moved"
        self.paths[path] += 1
        return Block(pages.address, size, pages.committed)

    def taken(self) -> dict[str, int]:
        """How often each path was taken (23)."""
        return dict(self.paths)

    def close(self) -> None:
        """Wait for the device, then give everything back, live blocks included. Again: does nothing.

        Raises the first error of the driver after trying all; closing again tries what was refused again.
        """
        if self.live or self.retired:
            self.driver.device_synchronize(self.device)
        self.leftover += [retired.undo for retired in self.retired]
        for pages in self.live.values():
            self.leftover += [pages.addresses, pages.memory]
        self.live.clear()
        self.retired.clear()
        self.closed = True
        self.give_back_leftover()

    # -- taking

    def rounded(self, size: int, space: int) -> int:
        """``size`` in whole granules, in bytes. Recommended ones: the minimum is slow on some devices."""
        granularity = self.driver.granularity(self.device, space).recommended
        return -(-size // granularity) * granularity

    def reuse(self, committed: int, space: int, stream: int) -> Pages | None:
        """Pages of that shape that were freed on ``stream``: what used them comes first there anyway (5)."""
        for retired in self.retired:
            pages = retired.pages
            if pages and (pages.committed, pages.space, retired.stream) == (committed, space, stream):
                self.retired.remove(retired)
                self.leftover.append(Undo([(self.driver.event_destroy, (retired.event,))]))
                return pages
        return None

    def build(self, committed: int, space: int, kept: Pages | None = None) -> Pages:
        """New addresses, behind them the memory of ``kept``, if any, and new memory for the rest."""
        pages = Pages(0, committed, space)
        try:
            self.reserve(pages)
            if kept:
                for handle, size in kept.pieces:
                    self.map(pages, handle, size)
            more = committed - sum(size for _, size in pages.pieces)
            self.map(pages, self.create(pages, more), more)
            self.grant(pages)
        except DriverError:
            self.abandon(pages.addresses, pages.memory)
            raise
        return pages

    def reserve(self, pages: Pages) -> None:
        """Addresses aligned as the memory space wants (3)."""
        alignment = self.driver.space_alignment(self.device, pages.space)
        self.make_room(pages.committed)
        pages.address = self.driver.reserve(pages.committed, alignment=alignment)
        pages.addresses.later(self.driver.address_free, pages.address, pages.committed)

    def make_room(self, size: int) -> None:
        """Address space for ``size`` more bytes: old addresses of blocks that have grown are waited for (22)."""
        self.most = self.most or ADDRESSES * self.driver.mem_info(self.device).total
        while self.reserved() + size > self.most:
            if not self.reclaim():
                text = f"{size} bytes of address space beside {self.reserved()} are more than {self.most}"
                raise SubjectError(Code.RESOURCE_EXHAUSTED, f"reserve: {text}")

    def reserved(self) -> int:
        """Bytes of address space that the driver has given and not got back."""
        free = self.driver.address_free
        return sum(args[1] for undo in self.undos() for call, args in undo.steps if call == free)

    def undos(self) -> list[Undo]:
        """All that is to be given back one day."""
        undos = [undo for pages in self.live.values() for undo in (pages.addresses, pages.memory)]
        return [*undos, *(retired.undo for retired in self.retired), *self.leftover]

    def create(self, pages: Pages, size: int) -> int:
        """Memory of the right space on the right device (3). If it is short, what was freed is waited for."""
        while True:
            try:
                handle = self.driver.create(size, device=self.device, space=pages.space)
            except DriverError as error:
                if error.status != Status.OUT_OF_MEMORY or not self.reclaim():
                    raise
            else:
                pages.memory.later(self.driver.release, handle)
                return handle

    def map(self, pages: Pages, handle: int, size: int) -> None:
        """``handle`` behind the pieces that are mapped already, whole: not every driver maps parts."""
        address = pages.address + sum(size for _, size in pages.pieces)
        self.driver.map(address, size, handle)
        pages.pieces += ((handle, size),)
        pages.addresses.later(self.driver.unmap, address, size)

    def grant(self, pages: Pages) -> None:
        """Read and write for the device and those that reach it (2); a new mapping has no rights.

        One call for each mapping: not every driver takes several at once.
        """
        rights = dict.fromkeys(self.users(), Access.READ_WRITE)
        address = pages.address
        for _, size in pages.pieces:
            self.driver.set_access(address, size, rights)
            address += size

    def users(self) -> list[int]:
        """The device and the peers that can reach its memory; naming another is an error."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.device)
        return [self.device, *(peer for peer in peers if self.driver.can_access_peer(peer, self.device))]

    def move(self, pages: Pages, committed: int, stream: int) -> Pages:
        """The memory of ``pages`` and some more at new addresses; the old ones retire behind ``stream``."""
        self.give_back_passed()
        grown = self.build(committed, pages.space, kept=pages)
        try:
            self.retire(pages.addresses, stream)
        except DriverError:
            self.abandon(grown.addresses, grown.memory)
            raise
        grown.memory = Undo([*pages.memory.steps, *grown.memory.steps])
        del self.live[pages.address]
        self.live[grown.address] = grown
        return grown

    # -- giving back

    def retire(self, undo: Undo, stream: int, pages: Pages | None = None) -> None:
        """Run ``undo`` when ``stream`` has passed this point, and not before (5)."""
        event = self.driver.event_create(self.device)
        try:
            self.driver.event_record(event, stream)
        except DriverError:
            self.abandon(Undo([(self.driver.event_destroy, (event,))]))
            raise
        undo = Undo([*undo.steps, (self.driver.event_destroy, (event,))])
        self.retired.append(Retired(undo, event, stream, pages))

    def give_back_passed(self) -> None:
        """Give back, without waiting, what nothing uses any more.

        Housekeeping: an error here is not the caller's, and leaves for later what it leaves.
        """
        with suppress(DriverError):
            for retired in tuple(self.retired):
                if self.driver.event_query(retired.event):
                    self.retired.remove(retired)
                    self.leftover.append(retired.undo)
            self.give_back_leftover()

    def reclaim(self) -> bool:
        """Wait for the oldest retirement and give it back. False if there is none, or it will not go."""
        if not self.retired:
            return False
        oldest = self.retired[0]
        try:
            self.driver.event_synchronize(oldest.event)
            del self.retired[0]
            self.leftover.append(oldest.undo)
            self.give_back_leftover()
        except DriverError:
            return False  # that memory is short is the error to report
        return True

    def abandon(self, *undos: Undo) -> None:
        """Give back what a failing call has taken; its own error goes first, whatever happens here (7)."""
        self.leftover += undos
        with suppress(DriverError):
            self.give_back_leftover()

    def give_back_leftover(self) -> None:
        """Try to give back all that is left over. Raises the driver's first refusal after trying all."""
        refusals: list[DriverError] = []
        for undo in self.leftover:
            try:
                undo.run()
            except DriverError as error:
                refusals.append(error)
        self.leftover = [undo for undo in self.leftover if undo.steps]
        if refusals:
            raise refusals[0]

    # -- arguments

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{call}: this allocator is closed")

    def _pages(self, call: str, block: Block) -> Pages:
        self._check_open(call)
        try:
            return self.live[block.address]
        except KeyError:
            raise SubjectError(
                Code.INVALID_ARGUMENT, f"{call}: no live block begins at {block.address:#x}"
            ) from None
