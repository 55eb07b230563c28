"""VMM allocators that defer wrongly: too short, on the wrong stream, with too many markers or too few."""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import DriverError, Range
from vmm_reference.mutants.vmm_registry import Registry
from vmm_reference.timeline import Batch, Timeline
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_records import Alias, Allocation, Key, Record, State

mutant = Registry()

# -- 44 and 45: not before the stream has passed a marker behind it


@mutant(44)
class FreesAtOnce(Device):
    """Gives memory back as soon as it is deallocated."""

    def defer(self, record: Record) -> None:
        super().defer(record)
        if isinstance(record, Allocation):
            self.complete(record)


@mutant(44)
class UnmapsAtOnce(Device):
    """Unmaps an alias as soon as it is asked to."""

    def defer(self, record: Record) -> None:
        super().defer(record)
        if isinstance(record, Alias):
            self.complete(record)


@mutant(44, 53)
class NeverWaits(Timeline):
    """Marks, and does not wait for the marker."""

    def wait(self, batch: Batch) -> None:
        pass


@mutant(45)
class OtherStream(Timeline):
    """Marks a stream of its own."""

    def mark(self) -> int:
        stream = self.stream
        self.stream = self.driver.stream_create(self.device)
        event = super().mark()
        self.driver.stream_destroy(self.stream)
        self.stream = stream
        return event


@mutant(45, 44)
class ReusedNumber(Timeline):
    """Takes the marker of the last batch for that of the next one."""

    def __init__(self, *arguments: object, **rest: object) -> None:
        super().__init__(*arguments, **rest)  # type: ignore[arg-type]
        self.once: int | None = None

    def mark(self) -> int:
        if self.once is None:
            self.once = super().mark()
        return self.once

    def settle(self, batch: Batch) -> None:
        if batch.event is not None and not batch.records and not batch.waiting:
            del self.marked[batch.seqno]
            batch.event = None

    def end(self) -> list[DriverError]:
        if self.once is not None:
            self.spare.append(self.once)
            self.once = None
        return super().end()


@mutant(45, 44)
class OneAhead(Device):
    """Takes the marker before the one that it needs."""

    def has_passed(self, record: Record) -> bool:
        batch = record.batch
        return batch is not None and batch.seqno <= self.timeline.passed + 1

    def wait(self, batch: Batch) -> None:
        before = next(iter(self.timeline.marked.values()), batch)
        super().wait(before if before.event is not None else batch)


# -- 50 to 53: what is taken back, and what is not


@mutant(50)
class AlwaysFresh(Device):
    """Takes nothing back."""

    def reusable(self, key: Key, slice: Range | None) -> Allocation | None:
        return super().reusable(key, slice) if slice is not None else None


@mutant(50, 74)
class MarksReuse(Device):
    """Marks the stream when it takes something back."""

    def take_back(self, record: Record) -> None:
        if isinstance(record, Allocation) and not record.key.mapped:
            self.timeline.spare.append(self.timeline.mark())
        super().take_back(record)


@mutant(50)
class FreedThoughReused(Device):
    """Takes an allocation back, and does not call its completion off."""

    def take_back(self, record: Record) -> None:
        batch = record.batch
        super().take_back(record)
        if batch is not None and isinstance(record, Allocation):
            self.timeline.add(batch, record, record.key.committed)
            record.batch = None

    def complete(self, record: Record) -> None:
        for batch in (self.timeline.open, *self.timeline.marked.values()):
            if record in batch.records and record.batch is None:
                record.batch = batch
                self.timeline.remove(record)
        super().complete(record)


class _Likes(Device):
    """Takes back whatever is alike in what counts for it."""

    def alike(self, key: Key, other: Key) -> bool:
        raise NotImplementedError

    def reusable(self, key: Key, slice: Range | None) -> Allocation | None:
        found = super().reusable(key, slice)
        if found is not None:
            return found
        stale = (record for record in self.table.stale if self.alike(key, record.key))
        return next((record for record in stale if slice is None or record.extent == slice), None)


@mutant(51)
class SpacesMixed(_Likes):
    """Takes back memory of another memory space."""

    def alike(self, key: Key, other: Key) -> bool:
        return key._replace(space=0) == other._replace(space=0)


@mutant(51, 79)
class TagsMixed(_Likes):
    """Takes back memory whatever its tag."""

    def alike(self, key: Key, other: Key) -> bool:
        return key._replace(tag=False) == other._replace(tag=False)


@mutant(51)
class KindsMixed(_Likes):
    """Takes back a mapped allocation for a plain one."""

    def alike(self, key: Key, other: Key) -> bool:
        return key._replace(mapped=False) == other._replace(mapped=False)


@mutant(51)
class LargerWillDo(_Likes):
    """Takes back memory that is larger than it must be."""

    def alike(self, key: Key, other: Key) -> bool:
        return key._replace(committed=0) == other._replace(committed=0) and other.committed > key.committed


@mutant(52)
class OldSize(Device):
    """Tells the size that an allocation had before it was taken back."""

    def take_back(self, record: Record) -> None:
        super().take_back(record)
        if isinstance(record, Allocation):
            record.__class__ = _KeepsSize


class _KeepsSize(Allocation):
    """An allocation whose size stays what it was."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name != "size":
            super().__setattr__(name, value)


@mutant(53)
class WaitsOnly(DeviceVmmAllocator):
    """Synchronizes, and completes nothing."""

    def synchronize_pending_operations(self, ordinal: int) -> None:
        device = self.device("synchronize_pending_operations", ordinal)
        with device.lock:
            device.timeline.flush()
            last = device.timeline.last()
            if last is not None:
                device.wait(last)


@mutant(53)
class MarkedOnly(DeviceVmmAllocator):
    """Synchronizes what has its marker already."""

    def synchronize_pending_operations(self, ordinal: int) -> None:
        device = self.device("synchronize_pending_operations", ordinal)
        with device.lock:
            last = device.timeline.last()
            if last is not None:
                device.wait(last)
                marked = list(device.timeline.marked.values())
                device.bury_all([record for batch in marked for record in batch.records])


# -- 74: as many markers as are declared


@mutant(74)
class MarkerForEach(Timeline):
    """Marks every operation, and declares batches."""

    def defer(self, record: Record, size: int) -> None:
        super().defer(record, size)
        self.flush()


@mutant(74)
class CancelledCount(Timeline):
    """Counts what was called off."""

    def __init__(self, *arguments: object, **rest: object) -> None:
        super().__init__(*arguments, **rest)  # type: ignore[arg-type]
        self.count = 0

    def add(self, batch: Batch, record: Record, size: int) -> None:
        super().add(batch, record, size)
        self.count += 1

    def flush(self) -> None:
        batch = self.open
        if self.count:
            batch.event = self.mark()
            self.marked[batch.seqno] = batch
            self.open = self._next()
            self.settle(batch)
            self.count = 0


@mutant(74)
class BatchOf65(Timeline):
    """Puts one more into a batch than there may be."""

    def full(self, size: int) -> bool:
        batch = self.open
        return len(batch.records) > self.entries or bool(size and batch.bytes + size > self.bytes)


@mutant(74)
class BytesUncounted(Timeline):
    """Does not count the bytes of a batch."""

    def full(self, size: int) -> bool:
        return len(self.open.records) >= self.entries


@mutant(74)
class LargeOnesJoin(Timeline):
    """Lets an operation beyond the limit of bytes wait for others."""

    def defer(self, record: Record, size: int) -> None:
        if self.full(size):
            self.flush()
        self.add(self.open, record, size)


@mutant(74)
class UnmapsWeigh(Device):
    """Counts the bytes of aliases."""

    def defer(self, record: Record) -> None:
        self.timeline.defer(record, record.extent.size if isinstance(record, Alias) else record.key.committed)  # type: ignore[attr-defined] # an allocation
        record.state = State.STALE
        if isinstance(record, Allocation):
            self.table.defer(record)


@mutant(74)
class MarksNothing(Timeline):
    """Marks an empty batch."""

    def flush(self) -> None:
        if not self.open.records:
            self.spare.append(self.mark())
        super().flush()


@mutant(74, markers="per-operation")
class BatchesAnyway(Timeline):
    """Declares a marker for each operation, and batches them."""

    def __init__(self, *arguments: object, **rest: object) -> None:
        super().__init__(*arguments, **{**rest, "batched": True})  # type: ignore[arg-type]


@mutant(74, markers="per-operation")
class MarksTwice(Timeline):
    """Marks each operation before and after."""

    def defer(self, record: Record, size: int) -> None:
        self.spare.append(self.mark())
        super().defer(record, size)


# -- 75: a marker that is refused


@mutant(75)
class DropsEntries(Timeline):
    """Forgets what was in a batch whose marker is refused."""

    def flush(self) -> None:
        try:
            super().flush()
        except DriverError:
            self.open = self._next()
            raise


@mutant(75)
class SwallowsRefusal(Timeline):
    """Takes a refused marker for one that has passed."""

    def mark(self) -> int:
        event = self.spare.pop() if self.spare else self.driver.event_create(self.device)
        with suppress(DriverError):
            self.driver.event_record(event, self.stream)
        return event


@mutant(75)
class QuietFlush(DeviceVmmAllocator):
    """Says nothing when synchronizing fails."""

    def synchronize_pending_operations(self, ordinal: int) -> None:
        with suppress(DriverError):
            super().synchronize_pending_operations(ordinal)


# -- 185: repetitions leave nothing behind


@mutant(185)
class NewEventEachTime(Timeline):
    """Makes an event for each marker, and keeps those that have passed until it is closed."""

    def mark(self) -> int:
        event = self.driver.event_create(self.device)
        try:
            self.driver.event_record(event, self.stream)
        except DriverError:
            self.spare.append(event)
            raise
        return event


MUTANTS = mutant.mutants
