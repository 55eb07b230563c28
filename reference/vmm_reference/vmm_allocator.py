"""The VMM allocator: deferred frees on the stream's timeline, reuse, aliases, budgets, reclaim.

Read it from `DeviceVmmAllocator` down; `vmm_device`, `timeline` and `vmm_records` are what it is made of. What
it promises is the catalogue's ALLOC area; the numbers in comments are ids there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from vmm_conformance.contracts import (
    HOST_SPACE,
    NULL,
    AddressReservation,
    Code,
    DeviceConfig,
    Driver,
    DriverError,
    Range,
    RawAllocation,
    Status,
    SubjectError,
)
from vmm_reference.timeline import BYTES, ENTRIES, Timeline
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_ranges import Reserved, shown, slice_of
from vmm_reference.vmm_records import Alias, Allocation, Key, Record, State

WAITS: Final = 2
"""A call waits for stale records in its way so often, then gives up. Alone it needs no more: one for its
destination, one for its source."""


class DeviceVmmAllocator:
    """Memory of several devices, each with its stream, its budget and its lock.

    - A size is rounded up to the recommended granularity; that much is committed, and charged (69).
    - ``deallocate`` and ``unmap`` defer: see `timeline`. Nothing else looks at what is deferred, but who
      needs it: an equal request takes it back (50, 55, 67), one that it is in the way of waits for it (57,
      59), one that memory is too short for reclaims it (70), and ``synchronize_pending_operations`` (53).
    - Whoever waits gives back the device's lock, and looks at everything anew afterwards (80).
    - A call that fails changes nothing.

    ``markers``: "batched", or "per-operation". ``second_alias``: the code for a second alias of an address.
    """

    def __init__(
        self,
        driver: Driver,
        devices: Sequence[DeviceConfig],
        *,
        markers: str = "batched",
        second_alias: str = Code.ALREADY_EXISTS.value,
        limits: tuple[int, int] = (ENTRIES, BYTES),
    ) -> None:
        self.driver = driver
        self.second_alias = Code(second_alias)
        self.batched = markers == "batched"
        self.limits = limits
        self.devices = {config.ordinal: self.new_device(config) for config in devices}
        self.closed = False
        self._thread = threading.local()

    def new_device(self, config: DeviceConfig) -> Device:
        """The state of one device."""
        return Device(self.driver, config, self.new_timeline(config))

    def new_timeline(self, config: DeviceConfig) -> Timeline:
        """The timeline of one device's stream."""
        return Timeline(self.driver, config.ordinal, config.stream, batched=self.batched, limits=self.limits)

    # -- allocations

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        """``size`` bytes. ``retry`` is there for callers that know other allocators: it changes nothing (70)."""
        if size == 0:
            return NULL
        device = self.device("allocate", ordinal)
        if space == HOST_SPACE:
            raise SubjectError(
                Code.FAILED_PRECONDITION, f"allocate: space {space} is the host's, and there is no host allocator"
            )
        return self.obtain(device, Key(False, self.tag, space, device.rounded(size, space)), size, None)

    def allocate_mapped(
        self,
        ordinal: int,
        alloc_size: int,
        *,
        reservation: AddressReservation | None,
        offset: int,
        map_size: int,
        retry: bool = True,
        space: int = 0,
    ) -> Range:
        """``alloc_size`` bytes at exactly a slice of ``reservation``."""
        call = "allocate_mapped"
        if alloc_size != map_size:
            raise SubjectError(Code.INVALID_ARGUMENT, f"{call}: {alloc_size} bytes to allocate and {map_size} to map")
        if alloc_size == 0:
            return NULL
        device = self.device(call, ordinal)
        slice = self.slice(call, reservation, offset, map_size)
        if space == HOST_SPACE:
            raise SubjectError(Code.INVALID_ARGUMENT, f"{call}: space {space} is the host's, and is never mapped")
        return self.obtain(device, Key(True, self.tag, space, device.rounded(alloc_size, space)), alloc_size, slice)

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        """Take back a stale allocation, or make one: at ``slice``, or at addresses of its own."""
        made: list[Allocation] = []

        def attempt() -> Record | None:
            found = device.reusable(key, slice)
            if found is not None:
                device.take_back(found)
                found.size = size
            else:
                obstacle = self.obstacle(device, "allocate_mapped", slice) if slice else None
                if obstacle is not None:
                    return obstacle
                found = device.build(key, size, slice)
            made.append(found)
            return None

        with device.lock:
            self.persist(device, "allocate", attempt, key.committed)
            return made[0].range

    def deallocate(self, ordinal: int, address: Range) -> None:
        """Free an allocator address, in the order of the device's stream."""
        if address.address == NULL.address:
            return
        device = self.device("deallocate", ordinal)
        with device.lock:
            found = self.active("deallocate", device, address)
            if found.alias is not None and found.alias.state is State.ACTIVE:
                raise SubjectError(
                    Code.FAILED_PRECONDITION,
                    f"deallocate: {shown(address)} has an alias at {shown(found.alias.extent)}; unmap that first",
                )
            device.defer(found)

    # -- aliases

    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None:
        """Make a slice of ``reservation`` an alias of ``address``."""
        device = self.device("map", ordinal)
        if size == 0:
            return
        if address.address == NULL.address:
            raise SubjectError(Code.INVALID_ARGUMENT, "map: the source is null; pass what allocate returned")
        slice = self.slice("map", reservation, offset, size)
        with device.lock:
            self.persist(device, "map", lambda: self.try_map(device, address, slice), 0)

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        """Install or reactivate the alias, or say which stale record is in the way."""
        source = self.active("map", device, address)
        if slice.size > source.key.committed:
            raise SubjectError(
                Code.INVALID_ARGUMENT,
                f"map: {slice.size} bytes to map, and {source.key.committed} committed behind {shown(address)}",
            )
        alias = source.alias
        if alias is not None and alias.state is State.ACTIVE:
            raise SubjectError(
                self.second_alias, f"map: {shown(address)} has an alias at {shown(alias.extent)}; unmap that first"
            )
        if alias is not None and alias.state is State.STALE and alias.extent == slice:
            device.take_back(alias)
            return None
        obstacle = self.obstacle(device, "map", slice) or alias
        if obstacle is None:
            device.install(source, slice)
        return obstacle

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        """End an alias, in the order of the device's stream."""
        device = self.device("unmap", ordinal)
        if size == 0:
            return
        slice = self.slice("unmap", reservation, offset, size)
        with device.lock:
            alias = device.table.at(slice.address)
            if not isinstance(alias, Alias):
                raise SubjectError(Code.NOT_FOUND, f"unmap: no alias begins at {slice.address:#x}")
            if alias.state is not State.ACTIVE:
                raise SubjectError(Code.FAILED_PRECONDITION, f"unmap: the alias at {shown(slice)} is unmapped already")
            if alias.extent != slice:
                raise SubjectError(
                    Code.INVALID_ARGUMENT, f"unmap: {slice.size} bytes at {shown(alias.extent)}; unmap all of it"
                )
            device.defer(alias)

    # -- what is in the way

    def obstacle(self, device: Device, call: str, slice: Range) -> Record | None:
        """The stale record at exactly ``slice``. Raises where it may not be waited for (60, 62).

        What is left of a record that could not be completed is nobody's, and is in the way wherever it lies.
        """
        records = list(device.table.overlapping(slice))
        for record in records:
            if record.state is State.DYING:
                return record
        for record in records:
            if record.extent != slice:
                raise SubjectError(
                    Code.FAILED_PRECONDITION,
                    f"{call}: {shown(slice)} overlaps {record.state.value} {shown(record.extent)} in part",
                )
            if record.state is State.ACTIVE:
                raise SubjectError(Code.ALREADY_EXISTS, f"{call}: {shown(slice)} is in use")
        return records[0] if records else None

    def persist(self, device: Device, call: str, attempt: Callable[[], Record | None], size: int) -> None:
        """Try, and clear away what is in the way, until ``attempt`` has done it.

        A stale record in the way is waited for, and nothing else is touched (58). If memory is short for
        ``size`` bytes, first what has passed is given back, then the oldest is waited for.
        """
        waits = 0
        relief = [lambda: device.complete_passed(), lambda: self.reclaim(device, size)]
        while True:
            try:
                obstacle = attempt()
            except (SubjectError, DriverError) as error:
                if not _short(error) or not relief:
                    raise
                relief.pop(0)()
                continue
            if obstacle is None:
                return
            if waits == WAITS:
                raise SubjectError(
                    Code.ABORTED, f"{call}: gave up after waiting {waits} times for {shown(obstacle.extent)}"
                )
            waits += 1
            self.clear(device, obstacle)

    def clear(self, device: Device, record: Record) -> None:
        """Wait for exactly this stale record, and complete it if it is still the one that was waited for."""
        batch = record.batch
        if batch is not None:
            device.wait(batch)
        if record.batch is batch and record.state is not State.ACTIVE:
            device.complete(record)

    def reclaim(self, device: Device, size: int) -> None:
        """Wait for the oldest stale allocations that have memory enough, and complete exactly those (71)."""
        chosen = [(record, record.batch) for record in device.choose(size)]
        if not chosen:
            return
        last = chosen[-1][1]
        assert last is not None
        device.wait(last)
        device.bury_all([record for record, batch in chosen if record.batch is batch])

    def synchronize_pending_operations(self, ordinal: int) -> None:
        """Wait for all that is deferred so far, and complete it."""
        device = self.device("synchronize_pending_operations", ordinal)
        with device.lock:
            device.timeline.flush()
            last = device.timeline.last()
            if last is not None:
                device.wait(last)
                batches = [batch for batch in device.timeline.marked.values() if batch.seqno <= last.seqno]
                device.bury_all([record for batch in batches for record in batch.records])
            device.bury_all(list(device.dying))

    # -- look-ups

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        """The memory behind exactly this range, unless it is a stale alias (54)."""
        device = self.devices.get(ordinal)
        if device is None:
            return None
        with device.lock:
            record = device.table.at(address.address)
            if isinstance(record, Alias):
                seen = record.state is State.ACTIVE and record.extent == address
                return RawAllocation(record.source.handle, record.source.key.committed) if seen else None
            found = device.table.allocation(address)
            if found is None or found.state is State.DYING:
                return None
            return RawAllocation(found.handle, found.key.committed)

    def reservation_of(self, ordinal: int, address: Range) -> Range | None:
        """The allocator's own addresses behind an active allocation that is not in somebody's reservation."""
        device = self.devices.get(ordinal)
        if device is None:
            return None
        with device.lock:
            found = device.table.allocation(address)
            own = found is not None and found.state is State.ACTIVE and not found.key.mapped
            return found.extent if found is not None and own else None

    def granularity(self, ordinal: int) -> int:
        """The recommended granularity of a device in bytes, 0 for an unknown one."""
        device = self.devices.get(ordinal)
        return device.granularity() if device else 0

    def stream(self, ordinal: int) -> int:
        """The stream that a device's deferred operations follow."""
        return self.device("stream", ordinal).stream

    def create_reservation(self, ordinal: int, size: int) -> Reserved:
        """Addresses for at least ``size`` bytes, in whole granules. They are the caller's to release."""
        device = self.device("create_reservation", ordinal)
        rounded = device.rounded(size, 0)
        return Reserved(self.driver, Range(self.driver.reserve(rounded), rounded))

    # -- the tag

    @property
    def tag(self) -> bool:
        """Whether the calling thread allocates for a program over several devices."""
        return getattr(self._thread, "tag", False)

    @contextmanager
    def device_tag(self, multi_device: bool) -> Iterator[None]:
        """Set the tag, and put back afterwards whatever it was before (79)."""
        before = self.tag
        self._thread.tag = multi_device
        try:
            yield
        finally:
            self._thread.tag = before

    # -- the end

    def close(self) -> None:
        """Wait for every device, and only then give back anything of any of them (76).

        Streams may be gone by now, so none is used. Raises the first error of the driver after trying
        everything; closing again tries what was refused again.
        """
        if not self.closed:
            for device in self.devices.values():
                self.driver.device_synchronize(device.ordinal)
        self.closed = True
        errors: list[DriverError] = []
        for device in self.devices.values():
            with device.lock:
                errors += device.end()
        if errors:
            raise errors[0]

    # -- arguments

    def device(self, call: str, ordinal: int) -> Device:
        """The device with that ordinal (43)."""
        found = self.devices.get(ordinal)
        if found is None:
            raise SubjectError(
                Code.NOT_FOUND, f"{call}: device {ordinal} is not one of the allocator's: {sorted(self.devices)}"
            )
        if self.closed:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{call}: this allocator is closed")
        return found

    def active(self, call: str, device: Device, address: Range) -> Allocation:
        """The active allocation that its owner knows by exactly this range (46, 47, 49, 63)."""
        found = device.table.allocation(address)
        if found is None or found.state is not State.ACTIVE:
            raise SubjectError(
                Code.NOT_FOUND, f"{call}: {shown(address)} is no active allocation on device {device.ordinal}"
            )
        return found

    def slice(self, call: str, reservation: AddressReservation | None, offset: int, size: int) -> Range:
        """The addresses of a slice. Raises INVALID_ARGUMENT if there is no such slice (65)."""
        return slice_of(call, reservation, offset, size)


def _short(error: Exception) -> bool:
    """Whether a call failed because memory is short."""
    if isinstance(error, DriverError):
        return error.status == Status.OUT_OF_MEMORY and error.call == "create"
    return isinstance(error, SubjectError) and error.code is Code.RESOURCE_EXHAUSTED
