"""One device of a VMM allocator: its records, its budget, and what its driver calls must do."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Final

from vmm_conformance.contracts import Access, Code, DeviceConfig, Driver, DriverError, Range, SubjectError
from vmm_reference.timeline import Batch, Timeline
from vmm_reference.vmm_records import Alias, Allocation, Key, Record, State, Table

HEADROOM: Final = (11, 10)
"""Reclaim frees 1.1 times what is asked for, where there is as much."""


class Device:
    """State and primitives of one device. Whoever calls a method holds ``lock``, which is the device's own (77)."""

    def __init__(self, driver: Driver, config: DeviceConfig, timeline: Timeline) -> None:
        self.driver = driver
        self.ordinal = config.ordinal
        self.stream = config.stream
        self.budget = config.budget
        self.exempt = config.exempt
        self.timeline = timeline
        self.lock = threading.Lock()
        self.table = Table()
        self.committed = 0
        """Physical bytes that the device's budget is charged with."""
        self.dying: dict[Record, None] = {}
        """Records of which the driver has refused to take back something."""

    def granularity(self, space: int = 0) -> int:
        """The recommended one, in bytes."""
        return self.driver.granularity(self.ordinal, space).recommended

    def rounded(self, size: int, space: int) -> int:
        """``size`` in whole granules, in bytes."""
        granularity = self.granularity(space)
        return -(-size // granularity) * granularity

    # -- taking

    def build(self, key: Key, size: int, slice: Range | None) -> Allocation:
        """A new allocation, at ``slice`` or at addresses of its own.

        Raises RESOURCE_EXHAUSTED or `DriverError`; what was taken is given back first (72).
        """
        self.charge(key.committed)
        allocation = Allocation(slice or Range(0, key.committed), size, key)
        try:
            allocation.handle = self.create(allocation)
            if slice is None:
                self.reserve(allocation)
            self.show(allocation, allocation.handle)
        except DriverError:
            self.abandon(allocation)
            raise
        self.table.add(allocation)
        return allocation

    def charge(self, size: int) -> None:
        """Is there room for ``size`` more bytes? Numbers here have no largest one to overflow (69)."""
        if size > self.budget - self.committed:
            raise SubjectError(
                Code.RESOURCE_EXHAUSTED,
                f"allocate: {size} bytes, with {self.committed} committed on device {self.ordinal}, "
                f"exceed its budget of {self.budget}; free something, or wait for what is in use",
            )

    def create(self, allocation: Allocation) -> int:
        """Memory of the right space. The budget is charged with what is really committed (69)."""
        size = allocation.key.committed
        handle = self.driver.create(size, device=self.ordinal, space=allocation.key.space)
        self.committed += size
        allocation.undo.append((self.release, (handle, size)))
        return handle

    def release(self, handle: int, size: int) -> None:
        """Give memory back, and its part of the budget."""
        self.driver.release(handle)
        self.committed -= size

    def reserve(self, allocation: Allocation) -> None:
        """Addresses of its own for an allocation, aligned as its memory space wants."""
        size, space = allocation.key.committed, allocation.key.space
        address = self.driver.reserve(size, alignment=self.driver.space_alignment(self.ordinal, space))
        allocation.undo.append((self.driver.address_free, (address, size)))
        allocation.extent = Range(address, size)

    def show(self, record: Record, handle: int) -> None:
        """Map ``handle`` at the record's addresses, from its start, and grant rights; a new mapping has none."""
        address, size = record.extent
        self.driver.map(address, size, handle)
        record.undo.append((self.hide, (address, size)))
        self.driver.set_access(address, size, dict.fromkeys(self.users(), Access.READ_WRITE))

    def hide(self, address: int, size: int) -> None:
        """Take a mapping away."""
        self.driver.unmap(address, size)

    def users(self) -> list[int]:
        """The device and the peers that can reach its memory; naming another is an error."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.ordinal)
        return [self.ordinal, *(peer for peer in peers if self.driver.can_access_peer(peer, self.ordinal))]

    def install(self, source: Allocation, slice: Range) -> None:
        """Make ``slice`` an alias of ``source``. Raises `DriverError`; the slice is free again then."""
        alias = Alias(slice, source)
        try:
            self.show(alias, source.handle)
        except DriverError:
            self.abandon(alias)
            raise
        self.table.add(alias)
        source.alias = alias

    # -- deferring, and taking back

    def defer(self, record: Record) -> None:
        """Make ``record`` stale: nothing is taken away before the stream has passed this point (44)."""
        bytes_back = record.key.committed if isinstance(record, Allocation) else 0
        self.timeline.defer(record, bytes_back)
        record.state = State.STALE
        if isinstance(record, Allocation):
            self.table.defer(record)

    def take_back(self, record: Record) -> None:
        """A stale record is active again, as it is; its completion is called off (50, 55)."""
        self.timeline.remove(record)
        record.state = State.ACTIVE
        if isinstance(record, Allocation):
            self.table.take_back(record)

    def reusable(self, key: Key, slice: Range | None) -> Allocation | None:
        """A stale allocation that may be taken back: the oldest with that key, or the one at exactly ``slice`` (67)."""
        if slice is None:
            return self.table.reusable(key)
        record = self.table.at(slice.address)
        if isinstance(record, Allocation) and record.state is State.STALE:
            return record if (record.key, record.extent) == (key, slice) else None
        return None

    # -- completing

    def complete(self, record: Record) -> None:
        """Give back what a stale record holds: its alias first, for that shows the same memory (73).

        Raises `DriverError`. What the driver refuses to take back is kept, and tried again later.
        """
        if isinstance(record, Allocation) and record.alias is not None:
            self.complete(record.alias)
        if record.state is State.STALE:
            self.timeline.remove(record)
            if isinstance(record, Allocation):
                self.table.take_back(record)
        self.bury(record)

    def bury(self, record: Record) -> None:
        """Run what is left of the record's ``undo``; nobody can take it back any more."""
        record.state = State.DYING
        self.dying[record] = None
        while record.undo:
            call, arguments = record.undo[-1]
            call(*arguments)
            record.undo.pop()
        del self.dying[record]
        self.table.remove(record)
        if isinstance(record, Alias) and record.source.alias is record:
            record.source.alias = None

    def abandon(self, record: Record) -> None:
        """Give back what a call that fails has taken; its own error goes first, whatever happens here.

        Addresses that cannot be unmapped stay taken.
        """
        try:
            self.bury(record)
        except DriverError:
            if any(call == self.hide for call, _ in record.undo):
                self.table.add(record)

    def bury_all(self, records: Iterable[Record]) -> None:
        """Complete all of ``records``. Raises the first error of the driver after trying each."""
        first: DriverError | None = None
        for record in records:
            try:
                self.complete(record)
            except DriverError as error:
                first = first or error
        if first:
            raise first

    def retry_dying(self) -> None:
        """Try again to give back what the driver has refused so far; an error here is no caller's."""
        with suppress(DriverError):
            self.bury_all(list(self.dying))

    # -- memory is short

    def reclaimable(self) -> Iterator[Allocation]:
        """Stale allocations whose memory may be taken when it is short, the oldest first (71)."""
        return (record for record in self.table.stale if record.key.space not in self.exempt)

    def choose(self, size: int) -> list[Allocation]:
        """The oldest of them that together have 1.1 times ``size`` bytes, or all."""
        chosen: list[Allocation] = []
        found = 0
        for record in self.reclaimable():
            chosen.append(record)
            found += record.key.committed
            if found * HEADROOM[1] >= size * HEADROOM[0]:
                break
        return chosen

    def complete_passed(self) -> None:
        """Complete the allocations that the stream has passed already; mark those that are not marked yet."""
        self.retry_dying()
        if any(record.batch is self.timeline.open for record in reversed(self.table.stale)):
            self.timeline.flush()
        self.bury_all(list(takewhile(self.has_passed, self.reclaimable())))

    def has_passed(self, record: Record) -> bool:
        """Whether the stream has passed the marker of a stale record."""
        return record.batch is not None and self.timeline.has_passed(record.batch)

    # -- waiting

    def wait(self, batch: Batch) -> None:
        """Wait for the marker of a batch. The lock is given back meanwhile, and held again after (80).

        So nothing that was known before holds any longer, not even that a record is stale.
        """
        if batch.event is None:
            self.timeline.flush()
        batch.waiting += 1
        self.lock.release()
        try:
            self.timeline.wait(batch)
        finally:
            self.lock.acquire()
            batch.waiting -= 1
            self.timeline.settle(batch)
        self.timeline.passed = max(self.timeline.passed, batch.seqno)

    # -- the end

    def end(self) -> list[DriverError]:
        """Give everything back, aliases first. Returns what the driver refused; ending again tries that again."""
        records = sorted(self.table.by_address.values(), key=lambda record: isinstance(record, Allocation))
        refused: list[DriverError] = []
        for record in dict.fromkeys([*records, *self.dying]):
            try:
                self.complete(record)
            except DriverError as error:
                refused.append(error)
        return refused + self.timeline.end()
