"""Quirk profiles of memory, its accounting and its bytes; see `quirks`."""

from __future__ import annotations

import os
from typing import Final

from vmm_conformance.contracts import Access, DriverError, DriverOptions, Granularity, MemoryInfo, Range, Status
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.known_bad_courses import HandlesCostDescriptors, MapsOneAtATime, UsesAddressesOnce
from vmm_conformance.drivers.host.objects import Handle, Mapping, Part, Region, Reservation, Rights
from vmm_conformance.drivers.host.streams import Task
from vmm_conformance.drivers.host.system import PUNCH_HOLE

_LARGE: Final = 4
"""Granules from which on a reservation is large."""
_HANDLES: Final = 8
"""Handles that there are descriptors for; a thousand on the driver in question."""
_MAPS: Final = 500


class _ChargesReservations(HostDriver):
    """Reserving costs memory of the first device, by `_price`, until the addresses are freed."""

    def _price(self, size: int) -> int:
        return 0

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        address = super().reserve(size, alignment=alignment, hint=hint)
        self._used[0] += self._price(size)
        return address

    def _check_free(self, address: int, size: int) -> Reservation:
        reservation = super()._check_free(address, size)
        self._used[0] -= self._price(reservation.size)
        return reservation


class LargeReservationsCost(_ChargesReservations):
    """Q-02."""

    def _price(self, size: int) -> int:
        return self._minimum if size >= _LARGE * self._minimum else 0


class AddressesAreMemory(_ChargesReservations):
    """Q-20."""

    def _price(self, size: int) -> int:
        return size


class OneBudget(UsesAddressesOnce):
    """Q-17."""

    def mem_info(self, device: int = 0) -> MemoryInfo:
        free, total = super().mem_info(device)
        return MemoryInfo(max(free - sum(r.size for r in self._reservations.values()), 0), total)

    def _check_create(self, size: int, device: int, space: int) -> int:
        size = super()._check_create(size, device, space)
        if size > self.mem_info(device).free:
            raise DriverError(Status.OUT_OF_MEMORY, "create", "reservations have used up the budget of this driver")
        return size


class MemoryWaitsForAddresses(HostDriver):
    """Q-07. Memory that was never mapped comes back at once."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._places: dict[int, int] = {}
        self._waiting: dict[int, list[Handle]] = {}

    def _add_region(self, region: Region) -> None:
        super()._add_region(region)
        if isinstance(region, Mapping):
            self._places[region.handle.id] = region.reservation.start

    def _return_memory(self, handle: Handle) -> None:
        super()._return_memory(handle)
        place = self._places.pop(handle.id, None)
        if place in self._reservations:
            self._used[handle.device] += handle.size
            self._waiting.setdefault(place, []).append(handle)

    def address_free(self, address: int, size: int) -> None:
        super().address_free(address, size)
        for handle in self._waiting.pop(address, ()):
            self._used[handle.device] -= handle.size


class RecommendsTheMinimum(HostDriver):
    """Q-09."""

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        minimum, _ = super().granularity(device, space)
        return Granularity(minimum, minimum)


class FewHandles(HandlesCostDescriptors):
    """Q-10."""

    def _check_create(self, size: int, device: int, space: int) -> int:
        size = super()._check_create(size, device, space)
        if len(self._handles) >= _HANDLES:
            raise DriverError(Status.OUT_OF_MEMORY, "create", "a quirk of this driver: no descriptor is left")
        return size


class FirstWorkIsLost(HostDriver):
    """Q-13. Queued work alone; copies by the host come late enough."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._fresh: set[int] = set()

    def _store(self, part: Part, new: Rights, most: Access) -> None:
        super()._store(part, new, most)
        if most:
            self._fresh.add(part.start)

    def _run_task(self, task: Task, device: int) -> None:
        touched = {region.start for _, uses in task.jobs for use in uses for region in use.regions}
        fresh = touched & self._fresh
        if not fresh:
            super()._run_task(task, device)
            return
        self._fresh -= fresh
        work = task.work
        work.data = tuple(bytes(operation.size) for operation, _ in task.jobs if isinstance(operation, Range))
        work.done = True
        if self._listener is not None:
            self._listener(work)


class SecondMappingShowsFirst(HostDriver):
    """Q-15."""

    def _add_region(self, region: Region) -> None:
        if isinstance(region, Mapping):
            others = [r for r in self._regions.values() if isinstance(r, Mapping)]
            inside = [other for other in others if other.reservation is region.reservation]
            first = min(inside, key=lambda other: other.start, default=None)
            if first is not None and region.size <= first.size:
                region.memory, region.offset = first.memory, first.offset
        super()._add_region(region)


class MapsRunOut(MapsOneAtATime):
    """Q-22."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._lost: list[int] = []

    def _check_map_target(self, address: int, size: int) -> Reservation:
        reservation = super()._check_map_target(address, size)
        if len(self._lost) >= _MAPS:
            raise DriverError(Status.OUT_OF_MEMORY, "map", "a quirk of this driver: no descriptor is left")
        self._lost.append(os.dup(self._file))
        return reservation

    def _close_backing(self) -> None:
        for descriptor in self._lost:
            os.close(descriptor)
        super()._close_backing()


class UnmapDestroys(HostDriver):
    """Q-25."""

    def _remove_mapping(self, mapping: Mapping) -> None:
        handle = mapping.handle
        self._fallocate(self._file, PUNCH_HOLE, handle.start, handle.size)
        handle.touched, handle.complete = None, False
        super()._remove_mapping(mapping)
