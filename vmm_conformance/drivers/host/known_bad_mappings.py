"""Host drivers that are wrong about mappings, rights, work or failure, see `known_bad_more`."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence

from vmm_conformance.contracts import Access, DriverError, DriverOptions, Fault, MemoryInfo, Range, Status
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.known_bad_handles import refusal
from vmm_conformance.drivers.host.objects import Handle, Mapping, Part, Region, Reservation, Rights
from vmm_conformance.drivers.host.system import PROT_READ_WRITE, PUNCH_HOLE
from vmm_conformance.drivers.host.work import Job, Operation

# -- map and unmap


class RefusesPartialMap(HostDriver):
    """A mapping smaller than its handle is declared, and refused."""

    def _check_map_size(self, size: int, handle: Handle, offset: int) -> int:
        if size < handle.size and not offset:
            raise refusal("map")
        return super()._check_map_size(size, handle, offset)


class FailedMapHolds(HostDriver):
    """A refused map keeps the memory alive for good."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        try:
            super().map(address, size, handle, offset=offset)
        except DriverError:
            if handle in self._handles:
                self._handles[handle].mappings += 1
            raise


class SharesPages(HostDriver):
    """A new handle gets the pages of the last one of its size."""

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        others = [h for h in self._handles.values() if h.size == size]
        handle = super().create(size, device=device, space=space)
        if others:
            self._handles[handle].start = others[-1].start
        return handle


class ShowsOldMemory(HostDriver):
    """A mapping shows the memory that was mapped there before."""

    def _add_region(self, region: Region) -> None:
        old = self._gone.get(region.start)
        if isinstance(region, Mapping) and isinstance(old, Mapping) and old.size == region.size:
            region.memory, region.offset = old.memory, old.offset
        super()._add_region(region)


class UnmapEmptiesMemory(HostDriver):
    """The last unmap empties the memory, though a handle is left."""

    def _remove_mapping(self, mapping: Mapping) -> None:
        super()._remove_mapping(mapping)
        if not mapping.handle.mappings:
            self._fallocate(self._file, PUNCH_HOLE, mapping.handle.start, mapping.handle.size)


class TiresOfMapping(HostDriver):
    """After ten mappings at one address, each costs memory."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._count: dict[int, int] = {}

    def _remove_mapping(self, mapping: Mapping) -> None:
        count = self._count[mapping.start] = self._count.get(mapping.start, 0) + 1
        super()._remove_mapping(mapping)
        if count > 10:
            self._used[mapping.handle.device] += self._minimum


class HoldsMemoryForAddresses(HostDriver):
    """Memory comes back when its addresses are freed, and not before."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._held: dict[int, list[Handle]] = {}

    def _remove_mapping(self, mapping: Mapping) -> None:
        super()._remove_mapping(mapping)
        if mapping.handle.id not in self._handles:
            self._used[mapping.handle.device] += mapping.handle.size
            self._held.setdefault(mapping.reservation.start, []).append(mapping.handle)

    def address_free(self, address: int, size: int) -> None:
        super().address_free(address, size)
        for handle in self._held.pop(address, ()):
            self._used[handle.device] -= handle.size


# -- access


class WritesReadOnly(HostDriver):
    """Read-only mappings are declared to be enforced, and can be written."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._protections[Access.READ] = PROT_READ_WRITE

    def _refusal(self, right: Access, write: bool) -> str:
        return super()._refusal(right, False)


class SetAccessFirstOnly(HostDriver):
    """set_access over several mappings changes the first."""

    def _check_access_range(self, address: int, size: int) -> list[Mapping]:
        return super()._check_access_range(address, size)[:1]


class SetAccessRefusesTail(HostDriver):
    """set_access looks at the first mapping of the reservation."""

    def _check_access_range(self, address: int, size: int) -> list[Mapping]:
        mappings = super()._check_access_range(address, size)
        if any(m.reservation is mappings[0].reservation and m.start < address for m in self._mappings()):
            raise refusal("set_access")
        return mappings

    def _mappings(self) -> list[Mapping]:
        return [region for region in self._regions.values() if isinstance(region, Mapping)]


class SetAccessWidens(HostDriver):
    """set_access on a part changes the whole mapping."""

    def _parts_within(self, region: Region, start: int, end: int) -> Sequence[Part]:
        return super()._parts_within(region, region.start, region.end)


class EndBelongsToMapping(HostDriver):
    """The address behind a mapping answers for it."""

    def get_access(self, address: int, device: int) -> Access:
        try:
            return super().get_access(address, device)
        except DriverError:
            return super().get_access(address - 1, device)


class AccessByHandle(HostDriver):
    """Rights belong to the handle, so that aliases share them."""

    def set_access(self, address: int, size: int, rights: Dictionary[int, Access]) -> None:
        super().set_access(address, size, rights)
        changed = self._regions.get(address)
        if isinstance(changed, Mapping) and changed.parts is None:
            for other in list(self._regions.values()):
                if other.memory is changed.memory and other is not changed:
                    super().set_access(other.start, other.size, rights)


class SeamsSplitCopies(HostDriver):
    """A copy may not reach from one mapping into the next."""

    def _may_span(self, left: Region, right: Region) -> bool:
        return False


class RangeIsReservation(HostDriver):
    """An address-range query answers with the reservation."""

    def _range_of(self, region: Region) -> Range:
        inside = region.reservation if isinstance(region, Mapping) else None
        return Range(inside.start, inside.size) if inside else super()._range_of(region)


# -- order and failure


class StreamsLeak(HostDriver):
    """A destroyed stream costs memory for good."""

    def stream_destroy(self, stream: int) -> None:
        super().stream_destroy(stream)
        self._used[0] += self._minimum


class SeesMappingsLate(HostDriver):
    """Streams see a mapping only after the next wait."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._new: set[int] = set()

    def _store(self, part: Part, new: Rights, most: Access) -> None:
        super()._store(part, new, most)
        self._new.add(part.start)

    def stream_synchronize(self, stream: int) -> None:
        super().stream_synchronize(stream)
        self._new.clear()

    def _bind(self, operation: Operation, device: int | None) -> Job:
        job = super()._bind(operation, device)
        for use in job[1]:
            if device is not None and any(region.start in self._new for region in use.regions):
                use.fault = Fault(use.address, use.size, "unmapped")
        return job


class UnmapDoesNotWait(HostDriver):
    """unmap is declared to wait for work in flight, and does not."""

    def _before_unmap(self, mappings: list[Mapping]) -> None:
        """Goes on."""


class RefusedUnmapTakesRights(HostDriver):
    """A refused unmap takes the rights on what it named."""

    def unmap(self, address: int, size: int) -> None:
        try:
            super().unmap(address, size)
        except DriverError:
            mapping = self._region_at(address)
            if isinstance(mapping, Mapping):
                self.set_access(mapping.start, mapping.size, dict.fromkeys(mapping.rights or (0,), Access.NONE))
            raise


class StickyErrors(HostDriver):
    """After a refused map, what is asked next is refused too."""

    _failed = False

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        try:
            super().map(address, size, handle, offset=offset)
        except DriverError:
            self._failed = True
            raise

    def mem_info(self, device: int = 0) -> MemoryInfo:
        if self._failed:
            self._failed = False
            raise refusal("mem_info")
        return super().mem_info(device)


class CaptureForbidsMapping(HostDriver):
    """map is refused while a stream captures."""

    def _check_map_target(self, address: int, size: int) -> Reservation:
        if any(stream.capture for stream in self._streams.values()):
            raise refusal("map", Status.STREAM_CAPTURE_UNSUPPORTED)
        return super()._check_map_target(address, size)
