"""VMM allocators that get waiting and locking wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from vmm_conformance.contracts import DeviceConfig, Driver, Range
from vmm_reference.mutants.vmm_registry import Registry
from vmm_reference.timeline import Batch
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_records import Key, Record, State

mutant = Registry()


@mutant(77, 80)
class OneLock(DeviceVmmAllocator):
    """Has one lock for all devices."""

    def __init__(self, driver: Driver, devices: Sequence[DeviceConfig], **revision: Any) -> None:
        super().__init__(driver, devices, **revision)
        lock = threading.Lock()
        for device in self.devices.values():
            device.lock = lock


class _NoLock:
    """Looks like a lock, and keeps nobody out."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *error: object) -> None:
        pass


@mutant(80)
class NoLock(Device):
    """Has no lock."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lock = _NoLock()  # type: ignore[assignment] # it looks like one


@mutant(80)
class UnlocksToMap(Device):
    """Gives its lock back while it maps, before the books say what is there."""

    def show(self, record: Record, handle: int) -> None:
        self.lock.release()
        try:
            super().show(record, handle)
        finally:
            self.lock.acquire()


@mutant(80)
class HoldsLock(Device):
    """Keeps its lock while it waits."""

    def wait(self, batch: Batch) -> None:
        if batch.event is None:
            self.timeline.flush()
        batch.waiting += 1
        try:
            self.timeline.wait(batch)
        finally:
            batch.waiting -= 1
            self.timeline.settle(batch)
        self.timeline.passed = max(self.timeline.passed, batch.seqno)


@mutant(80)
class CompletesAnyway(DeviceVmmAllocator):
    """Completes the record that it waited for, whatever became of it meanwhile."""

    def clear(self, device: Device, record: Record) -> None:
        batch = record.batch
        if batch is not None:
            device.wait(batch)
        if record.state is State.ACTIVE:
            record.state = State.DYING
        device.complete(record)


@mutant(80)
class ReclaimsAnyway(DeviceVmmAllocator):
    """Completes the allocations that it chose, whatever became of them meanwhile."""

    def reclaim(self, device: Device, size: int) -> None:
        chosen = [(record, record.batch) for record in device.choose(size)]
        last = chosen[-1][1] if chosen else None
        if last is not None:
            device.wait(last)
            for record, _ in chosen:
                if record.state is State.ACTIVE:
                    record.state = State.DYING
                device.complete(record)


@mutant(80)
class MapsWithoutLooking(DeviceVmmAllocator):
    """Maps after a wait without looking at source and slice again."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        obstacle = super().try_map(device, address, slice)
        if obstacle is not None and obstacle.extent == slice:
            source = self.active("map", device, address)
            self.clear(device, obstacle)
            if device.table.at(slice.address) is None:
                device.install(source, slice)
                return None
        return obstacle if obstacle is not None and obstacle.state is not State.DYING else None


@mutant(80)
class SynchronizesSnapshot(DeviceVmmAllocator):
    """Synchronizes what was deferred before it waited, whatever became of it meanwhile."""

    def synchronize_pending_operations(self, ordinal: int) -> None:
        device = self.device("synchronize_pending_operations", ordinal)
        with device.lock:
            device.timeline.flush()
            batches = list(device.timeline.marked.values())
            records = [record for batch in batches for record in batch.records]
            if batches:
                device.wait(batches[-1])
            for record in records:
                if record.state is State.ACTIVE:
                    record.state = State.DYING
                if record.undo:
                    device.complete(record)


@mutant(80)
class LooksUnlocked(DeviceVmmAllocator):
    """Chooses what to take back before it has the lock."""

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        found = device.reusable(key, slice)
        if found is None:
            return super().obtain(device, key, size, slice)
        with device.lock:
            if found.batch is not None:
                device.take_back(found)
            found.size = size
            return found.range


@mutant(80)
class FreesUnlocked(DeviceVmmAllocator):
    """Looks at an allocation before it has the lock, and defers it after."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        device = self.devices.get(ordinal)
        found = device.table.allocation(address) if device is not None else None
        if device is None or found is None or found.state is not State.ACTIVE or found.alias is not None:
            super().deallocate(ordinal, address)
            return
        with device.lock:
            if found.state is State.ACTIVE:
                device.defer(found)


MUTANTS = mutant.mutants
