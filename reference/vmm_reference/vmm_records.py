"""What a VMM allocator keeps book of: allocations, aliases, and where they lie."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sortedcontainers import SortedDict

from vmm_conformance.contracts import Range

if TYPE_CHECKING:
    from vmm_reference.timeline import Batch

Step = tuple[Callable[..., None], tuple[int, ...]]
"""One driver call that gives something back, and its arguments."""


class State(Enum):
    """Of a record. ``DYING``: it is being completed, and can never be taken back."""

    ACTIVE = "active"
    STALE = "stale"
    DYING = "dying"


class Key(NamedTuple):
    """What two allocations must have in common for one to take the place of the other (51).

    ``mapped``: made by allocate_mapped. ``tag``: for a program over several devices. ``committed`` is the
    rounded size in bytes.
    """

    mapped: bool
    tag: bool
    space: int
    committed: int


class Record:
    """A tracked range: ``extent`` is the addresses that are taken. ``batch`` while it is deferred.

    ``undo`` gives back what the record holds, the last step first.
    """

    __slots__ = ("batch", "extent", "state", "undo")

    def __init__(self, extent: Range) -> None:
        self.extent = extent
        self.state = State.ACTIVE
        self.batch: Batch | None = None
        self.undo: list[Step] = []


class Allocation(Record):
    """An allocator address: ``size`` bytes were asked for. It has one alias at most (61), active or stale."""

    __slots__ = ("alias", "handle", "key", "size")

    def __init__(self, extent: Range, size: int, key: Key) -> None:
        super().__init__(extent)
        self.size = size
        self.key = key
        self.handle = 0
        self.alias: Alias | None = None

    @property
    def range(self) -> Range:
        """The range that its owner knows."""
        return Range(self.extent.address, self.size)


class Alias(Record):
    """A slice of a reservation that shows ``source``."""

    __slots__ = ("source",)

    def __init__(self, extent: Range, source: Allocation) -> None:
        super().__init__(extent)
        self.source = source


class Table:
    """The records of one device: all of them by address, and stale allocations by key and by age.

    Extents never overlap. A look-up by address takes logarithmic time.
    """

    def __init__(self) -> None:
        self.by_address: SortedDict[int, Record] = SortedDict()
        self.stale: OrderedDict[Allocation, None] = OrderedDict()
        """Deferred allocations, the oldest first."""
        self._by_key: dict[Key, OrderedDict[Allocation, None]] = {}

    def add(self, record: Record) -> None:
        """Track a new record."""
        self.by_address[record.extent.address] = record

    def remove(self, record: Record) -> None:
        """Nothing is left of ``record``."""
        if self.by_address.get(record.extent.address) is record:
            del self.by_address[record.extent.address]

    def at(self, address: int) -> Record | None:
        """The record that begins exactly at ``address``."""
        found: Record | None = self.by_address.get(address)
        return found

    def allocation(self, address: Range) -> Allocation | None:
        """The allocation, active or not, whose owner knows it by exactly this range (47, 63)."""
        record = self.by_address.get(address.address)
        return record if isinstance(record, Allocation) and record.size == address.size else None

    def overlapping(self, extent: Range) -> Iterator[Record]:
        """The records with an address in common with ``extent``; ranges that touch have none (62)."""
        keys = self.by_address.keys()
        first = max(self.by_address.bisect_right(extent.address) - 1, 0)
        for index in range(first, len(keys)):
            record = self.by_address.peekitem(index)[1]
            if record.extent.address >= extent.end:
                return
            if record.extent.end > extent.address:
                yield record

    # -- stale allocations

    def defer(self, allocation: Allocation) -> None:
        """``allocation`` may be taken back from now on."""
        self.stale[allocation] = None
        self._by_key.setdefault(allocation.key, OrderedDict())[allocation] = None

    def take_back(self, allocation: Allocation) -> None:
        """``allocation`` is not to be had any more."""
        del self.stale[allocation]
        same = self._by_key[allocation.key]
        del same[allocation]
        if not same:
            del self._by_key[allocation.key]

    def reusable(self, key: Key) -> Allocation | None:
        """The oldest stale allocation with that key."""
        same = self._by_key.get(key)
        return next(iter(same)) if same else None
