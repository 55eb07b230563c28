"""Host drivers that are wrong about granularity, addresses or handles, see `known_bad_more`."""

from __future__ import annotations

from vmm_conformance.contracts import DriverError, Granularity, MemoryInfo, Status
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.objects import Allocation, Handle, Mapping, Reservation
from vmm_conformance.drivers.host.system import PUNCH_HOLE


def refusal(call: str, status: Status = Status.INVALID_VALUE) -> DriverError:
    """What a driver raises that refuses on purpose what it should take."""
    return DriverError(status, call, "wrong on purpose")


# -- discovery


class LiesAboutSupport(HostDriver):
    """Virtual memory is offered, but nothing can be mapped."""

    def _check_map_target(self, address: int, size: int) -> Reservation:
        super()._check_map_target(address, size)
        raise refusal("map", Status.NOT_SUPPORTED)


class OddGranularity(HostDriver):
    """The granularity is three pages."""

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        return Granularity(*(3 * value for value in super().granularity(device, space)))


class SwappedGranularities(HostDriver):
    """The recommended granularity is below the minimum."""

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        minimum, _ = super().granularity(device, space)
        return Granularity(minimum, minimum // 2)


class MovingGranularity(HostDriver):
    """The recommended granularity depends on what is reserved."""

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        minimum, recommended = super().granularity(device, space)
        return Granularity(minimum, 2 * recommended if self._reservations else recommended)


# -- reserve


class MisalignedBase(HostDriver):
    """A reservation begins in the middle of a granule."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        self._space.take_at(0, 1)
        return super()._choose_address(size + self._minimum, alignment, hint) + self._minimum // 2


class IgnoresAlignment(HostDriver):
    """reserve checks the alignment and then ignores it."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        return super()._choose_address(size, self._minimum, hint)


class ReservesTwice(HostDriver):
    """Now and then a reservation lies in one that is in use."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        if len(self._bases) % 3 == 2:
            return self._reservations[self._bases[0]].end - self._minimum
        return super()._choose_address(size, alignment, hint)

    def _check_map_target(self, address: int, size: int) -> Reservation:
        reservation = super()._check_map_target(address, size)
        self._check_not_mapped(address, size)  # by another reservation, whose pages would go with this one's
        return reservation


class ReserveRounds(HostDriver):
    """reserve takes any size."""

    def _check_reserve(self, size: int, alignment: int) -> None:
        super()._check_reserve(max(-(-size // self._minimum), 1) * self._minimum, alignment)


class HintIsDemand(HostDriver):
    """A hint that cannot be followed is an error."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        address = super()._choose_address(size, alignment, hint)
        if hint and address != hint:
            self._space.give(address, size)
            raise refusal("reserve", Status.OUT_OF_MEMORY)
        return address


class ChargesAddresses(HostDriver):
    """Reserved addresses count as used memory."""

    def mem_info(self, device: int = 0) -> MemoryInfo:
        free, total = super().mem_info(device)
        return MemoryInfo(free - sum(r.size for r in self._reservations.values()) // 16, total)


# -- create, retain, release


class LeaksMemory(HostDriver):
    """Released memory does not come back."""

    def _return_memory(self, handle: Handle) -> None:
        super()._return_memory(handle)
        self._used[handle.device] += handle.size


class TakesAnyDevice(HostDriver):
    """create on a device that does not exist creates on the first."""

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        return super().create(size, device=device if 0 <= device < self.device_count else 0, space=space)


class StaysExhausted(HostDriver):
    """After create was refused for want of memory, the next one is too."""

    _exhausted = False

    def _check_create(self, size: int, device: int, space: int) -> int:
        if self._exhausted:
            self._exhausted = False
            raise refusal("create", Status.OUT_OF_MEMORY)
        try:
            return super()._check_create(size, device, space)
        except DriverError as error:
            self._exhausted = error.status == Status.OUT_OF_MEMORY
            raise


class ReleaseTakesMapped(HostDriver):
    """The last release empties the memory, though it is mapped."""

    def release(self, handle: int) -> None:
        super().release(handle)
        memory = self._handles.get(handle)
        if memory is not None and not memory.references:
            self._fallocate(self._file, PUNCH_HOLE, memory.start, memory.size)


class UnmapKeepsMemory(HostDriver):
    """Memory whose handle was released first never comes back."""

    def _remove_mapping(self, mapping: Mapping) -> None:
        mapping.handle.references += 1
        super()._remove_mapping(mapping)
        mapping.handle.references -= 1


class CountsTwice(HostDriver):
    """Memory that is unmapped first and released then is given back twice."""

    def release(self, handle: int) -> None:
        memory = self._handles.get(handle)
        super().release(handle)
        if memory is not None and handle not in self._handles and self._was_mapped(memory):
            self._used[memory.device] -= memory.size

    def _was_mapped(self, memory: Handle) -> bool:
        return any(region.memory is memory for region in self._gone.values())


class StaleReleaseHitsAnother(HostDriver):
    """Releasing a stale handle releases the newest one."""

    def release(self, handle: int) -> None:
        held = [h.id for h in self._handles.values() if h.references]
        super().release(held[-1] if held and handle and handle not in held else handle)


class RetainWantsTheStart(HostDriver):
    """retain takes the first address of a mapping only."""

    def retain(self, address: int) -> int:
        if address not in self._regions:
            raise refusal("retain")
        return super().retain(address)


class RetainDoesNotCount(HostDriver):
    """retain returns the handle and adds no reference."""

    def _add_reference(self, handle: Handle) -> None:
        """Forgets to."""


class RetainTakesPlainMemory(HostDriver):
    """retain on plain memory returns some handle."""

    def retain(self, address: int) -> int:
        if isinstance(self._region_at(address), Allocation):
            return 1
        return super().retain(address)
