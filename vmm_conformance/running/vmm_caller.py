"""The caller of a VMM allocator: what it holds, what it asks for, and its own queued work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import NULL, AddressReservation, Range, Write
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.running.caller import TokenSource, marks, round_up
from vmm_conformance.running.recorder import Recorder

FOREIGN: Final = Range(1 << 45, 4096)
"""A range that nobody allocates."""

REMEMBERED: Final = 6
"""So many blocks and aliases that are gone are remembered, of each kind."""


class Slice(NamedTuple):
    """A slice of a reservation: which one (None is null), and where in it, in bytes."""

    reservation: AddressReservation | None
    offset: int
    size: int

    @property
    def range(self) -> Range:
        """Its addresses; those of a null reservation begin at 0."""
        base = self.reservation.range.address if self.reservation is not None else 0
        return Range(base + self.offset, self.size)


class Block:
    """Memory that the allocator gave. ``slice``: where it was to be mapped, if anywhere."""

    __slots__ = ("alias", "device", "number", "range", "slice", "written")

    def __init__(self, number: int, device: int, range: Range, slice: Slice | None) -> None:
        self.number = number
        self.device = device
        self.range = range
        self.slice = slice
        self.alias: Alias | None = None
        self.written: tuple[Range, ...] = ()


class Alias:
    """A slice that shows a block."""

    __slots__ = ("block", "slice")

    def __init__(self, block: Block, slice: Slice) -> None:
        self.block = block
        self.slice = slice


class Request(NamedTuple):
    """One call, worked out: its name, what is recorded of it, what to do, and what follows if it goes well.

    ``before`` is done before the call: the caller's last work on what it is about to give up.
    """

    name: str
    details: dict[str, Any]
    action: Callable[[], object]
    settle: Callable[[Any], None] = lambda answer: None
    before: Callable[[], None] = lambda: None


class Caller:
    """What a program holds of one allocator, by device."""

    def __init__(self, configuration: ops.Configuration, recorder: Recorder, streams: Sequence[int]) -> None:
        self.configuration = configuration
        self.granule = recorder.driver.granularity(0, 0).recommended
        self.recorder = recorder
        self.driver = recorder.harness
        self.streams = streams
        self.tokens = TokenSource()
        self.blocks: list[Block] = []
        self.gone: list[Block] = []
        self.aliases: list[Alias] = []
        self.unmapped: list[Alias] = []
        self.reservations: dict[tuple[int, int], AddressReservation] = {}
        self.tags: list[bool] = []
        self.restored = False
        self._numbers = 0

    # -- what there is

    def block(self, number: int) -> Block | None:
        """The block that a number means."""
        return self.blocks[number % len(self.blocks)] if self.blocks else None

    def alias(self, number: int) -> Alias | None:
        """The alias that a number means."""
        return self.aliases[number % len(self.aliases)] if self.aliases else None

    def committed(self, block: Block) -> int:
        """Bytes behind a block, as the contract says."""
        return round_up(block.range.size, self.granule)

    def elsewhere(self, device: int) -> int:
        """Another device, or one that the allocator does not have."""
        return (device + 1) % len(self.streams) if len(self.streams) > 1 else device + 1

    # -- which address a request is about

    def source(self, block: Block | None, kind: ops.Source) -> tuple[int, Range] | None:
        """The device and the address that a request names; None where there is nothing of the kind."""
        if kind is ops.Source.GONE:
            return self._gone()
        if block is None:
            return (0, FOREIGN) if kind is ops.Source.FOREIGN else None
        address, size = block.range
        step = self.granule if size > self.granule else 1
        made: dict[ops.Source, Callable[[], tuple[int, Range] | None]] = {
            ops.Source.OWN: lambda: (block.device, block.range),
            ops.Source.SIZE: lambda: (block.device, Range(address, size + 1)),
            ops.Source.INTERIOR: lambda: (block.device, Range(address + step, max(1, size - step))),
            ops.Source.ALIAS: lambda: self._alias_of(block),
            ops.Source.DEVICE: lambda: (self.elsewhere(block.device), block.range),
            ops.Source.NULL: lambda: (block.device, NULL),
            ops.Source.FOREIGN: lambda: (block.device, FOREIGN),
        }
        return made[kind]()

    def _gone(self) -> tuple[int, Range] | None:
        """The last block that is gone, and whose address is nobody else's now."""
        taken = {block.range.address for block in self.blocks}
        gone = next((block for block in reversed(self.gone) if block.range.address not in taken), None)
        return (gone.device, gone.range) if gone else None

    def _alias_of(self, block: Block) -> tuple[int, Range] | None:
        alias = block.alias or (self.aliases[-1] if self.aliases else None)
        return (alias.block.device, alias.slice.range) if alias else None

    # -- which slice a request is about

    def slice(self, device: int, number: int, offset: int, size: int, place: ops.Place) -> Slice | None:
        """``size`` bytes from granule ``offset`` of a reservation, or a slice that is in none. None: there is none."""
        if place is ops.Place.NONE:
            return Slice(None, 0, size)
        device = device if device < len(self.streams) else 0
        reservation = self.reservations.get((device, number % self.configuration.reservations))
        if reservation is None:
            return None
        whole = reservation.range.size
        if place is ops.Place.OVERFLOW:
            return Slice(reservation, (1 << 64) - size, size)
        if place is ops.Place.BEYOND:
            return Slice(reservation, whole - size + self.granule, size)
        return Slice(reservation, offset % self.configuration.slots * self.granule, size)

    def target(self, alias: Alias | None, kind: ops.Target) -> tuple[int, Slice] | None:
        """The device and the slice that an unmap names; None where there is nothing of the kind."""
        others = {
            ops.Target.AGAIN: self._unmapped, ops.Target.ALLOCATION: self._mapped_block, ops.Target.FREE: self._free,
        }  # fmt: skip
        if kind in others:
            return others[kind]()
        if alias is None:
            return None
        device, (reservation, offset, size) = alias.block.device, alias.slice
        room = reservation.range.size - offset - size if reservation is not None else 0
        part = size > self.granule  # of a larger alias a part, of one granule more than it has
        other = size - self.granule if part else size + self.granule
        step = self.granule if part else 1
        made: dict[ops.Target, Callable[[], tuple[int, Slice] | None]] = {
            ops.Target.ALIAS: lambda: (device, alias.slice),
            ops.Target.SIZE: lambda: (device, Slice(reservation, offset, other)) if other - size <= room else None,
            ops.Target.INTERIOR: lambda: (device, Slice(reservation, offset + step, max(1, size - step))),
            ops.Target.DEVICE: lambda: (self.elsewhere(device), alias.slice),
        }
        return made[kind]()

    def _begins(self) -> set[int]:
        """Addresses at which something of the program's begins."""
        return {block.range.address for block in self.blocks} | {a.slice.range.address for a in self.aliases}

    def _unmapped(self) -> tuple[int, Slice] | None:
        taken = self._begins()
        alias = next((a for a in reversed(self.unmapped) if a.slice.range.address not in taken), None)
        return (alias.block.device, alias.slice) if alias else None

    def _mapped_block(self) -> tuple[int, Slice] | None:
        return next(((b.device, b.slice) for b in reversed(self.blocks) if b.slice is not None), None)

    def _free(self) -> tuple[int, Slice] | None:
        """A granule of a reservation at which nothing begins, and nothing has begun that is remembered."""
        taken = self._begins() | {a.slice.range.address for a in self.unmapped} | {b.range.address for b in self.gone}
        for (device, _), reservation in self.reservations.items():
            for slot in range(self.configuration.slots):
                slice = Slice(reservation, slot * self.granule, self.granule)
                if slice.range.address not in taken:
                    return device, slice
        return None

    # -- what became of it

    def gained(self, device: int, range: Range, slice: Slice | None, *, used: bool = True) -> None:
        """The allocator gave ``range``."""
        if range.size <= 0 or device >= len(self.streams):
            return
        self._numbers += 1
        block = Block(self._numbers, device, range, slice)
        self.blocks.append(block)
        self.recorder.note("block", number=block.number, ordinal=device, address=range)
        if used:
            self.use(block, write=True)

    def lost(self, device: int, range: Range) -> None:
        """The allocator took ``range`` back."""
        for block in self.blocks:
            if (block.device, block.range) == (device, range):
                self.blocks.remove(block)
                self.gone = [*self.gone[1 - REMEMBERED :], block]
                return

    def showed(self, device: int, range: Range, slice: Slice) -> None:
        """``slice`` is an alias of ``range``."""
        block = next((b for b in self.blocks if (b.device, b.range) == (device, range)), None)
        if block is not None and slice.size:
            alias = block.alias = Alias(block, slice)
            self.aliases.append(alias)
            self.use(block, alias=alias, write=True)

    def hid(self, device: int, slice: Slice) -> None:
        """``slice`` is no alias any more."""
        for alias in self.aliases:
            if (alias.block.device, alias.slice.range) == (device, slice.range):
                self.aliases.remove(alias)
                self.unmapped = [*self.unmapped[1 - REMEMBERED :], alias]
                if alias.block.alias is alias:
                    alias.block.alias = None
                return

    # -- the caller's work

    def use(self, block: Block, *, alias: Alias | None = None, write: bool = False) -> None:
        """Queue work that reads the block's tokens, and may write new ones, through an alias or its own address."""
        size = min(block.range.size, alias.slice.size) if alias else block.range.size
        base = alias.slice.range.address if alias else block.range.address
        seen = [mark for mark in block.written if mark.end <= size]
        written = [(mark, self.tokens.take(mark.size)) for mark in marks(size)] if write else []
        if not seen and not written:
            return
        work = self.driver.launch(
            self.streams[block.device],
            reads=[Range(base + mark.address, mark.size) for mark in seen],
            writes=[Write(base + mark.address, token) for mark, token in written],
        )
        self.recorder.note(
            "work", work=work.id, block=block.number, alias=alias is not None,
            reads=tuple((mark.address, mark.size) for mark in seen),
            writes=tuple((mark.address, token) for mark, token in written),
        )  # fmt: skip
        if write:
            new = tuple(mark for mark, _ in written)
            kept = [mark for mark in block.written if all(mark.end <= n.address or n.end <= mark.address for n in new)]
            block.written = (*kept, *new)


def looked_up(caller: Caller) -> list[tuple[int, Range]]:
    """All that is worth looking up: what is there, what was, and what never was; with its device, and another."""
    places = [(block.device, block.range) for block in (*caller.blocks[-20:], *caller.gone)]
    places += [(alias.block.device, alias.slice.range) for alias in (*caller.aliases, *caller.unmapped)]
    places += [(device, Range(range.address + 1, range.size)) for device, range in places[:1]]
    places += [(caller.elsewhere(device), range) for device, range in places[:2]]
    return [*dict.fromkeys(places), (0, FOREIGN)]
