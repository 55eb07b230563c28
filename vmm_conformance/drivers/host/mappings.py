"""Mappings: handles' memory at reserved addresses."""

from __future__ import annotations

from bisect import bisect_left, insort

from vmm_conformance.contracts import Access, DriverError, Status
from vmm_conformance.drivers.host.objects import Handle, Mapping, Part, Region, Reservation
from vmm_conformance.drivers.host.space import AddressSpace
from vmm_conformance.drivers.host.system import ATTACH, PROT_NONE, WITHDRAW


class Mappings(AddressSpace):
    """V28 to V47."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        self._enter()
        try:
            memory = self._handle("map", handle)
            self._check_map_shape(address, size)
            size = self._check_map_size(size, memory, offset)
            reservation = self._check_map_target(address, size)
            self._add_region(Mapping(address, size, memory, offset, reservation))
            reservation.mapped += 1
            memory.mappings += 1
            self.serial += 1
        finally:
            self._leave()

    def unmap(self, address: int, size: int) -> None:
        self._enter()
        try:
            mappings = self._check_unmap_range(address, size)
            if self.capabilities.unmap_waits:
                self._before_unmap(mappings)
            self._withdraw(mappings)
            self.serial += 1
            for mapping in mappings:
                self._remove_mapping(mapping)
        finally:
            self._leave()

    def retain(self, address: int) -> int:
        with self._lock:
            mapping = self._region_at(address)
            if not isinstance(mapping, Mapping):
                raise DriverError(
                    Status.INVALID_VALUE,
                    "retain",
                    f"no handle is mapped at {address:#x}; pass an address inside a mapping",
                )
            self._add_reference(mapping.handle)
            self.serial += 1
            return mapping.handle.id

    def _add_reference(self, handle: Handle) -> None:
        handle.references += 1

    # -- what map checks

    def _check_map_shape(self, address: int, size: int) -> None:
        """Address and size are whole granules (V34)."""
        minimum = self._minimum
        if size <= 0 or size % minimum or address % minimum:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"address {address:#x} and size {size} must be multiples of {minimum}, and the size positive",
            )

    def _check_map_size(self, size: int, handle: Handle, offset: int) -> int:
        """The size to map: the one asked for, where it is legal with this handle (V35 to V37)."""
        if offset:
            self._check_map_offset(offset)
        if size == handle.size - offset:
            return size
        if size > handle.size - offset:
            self._on_larger_than_handle(size, handle, offset)
        if not self.capabilities.partial_map:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"size {size} is smaller than handle {handle.id}, which has {handle.size}; "
                "this driver maps whole handles",
            )
        return size

    def _check_map_offset(self, offset: int) -> None:
        if not self.capabilities.map_offset:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"offset {offset} must be 0: this driver maps handles from their start",
            )
        if offset < 0 or offset % self._minimum:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"offset {offset} must be a multiple of {self._minimum}, not negative",
            )

    def _on_larger_than_handle(self, size: int, handle: Handle, offset: int) -> None:
        raise DriverError(
            Status.INVALID_VALUE,
            "map",
            f"{size} bytes from offset {offset} exceed handle {handle.id}, which has {handle.size}",
        )

    def _check_map_target(self, address: int, size: int) -> Reservation:
        """The one reservation that holds the range, and nothing is mapped in it (V31 to V33)."""
        reservation = self._reservations.get(address) or self._reservation_at(address)
        if reservation is None:
            raise DriverError(
                Status.INVALID_VALUE, "map", f"{address:#x} lies in no reservation; reserve the range first"
            )
        if address + size > reservation.end:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"{address:#x}+{size} leaves its reservation, {reservation.start:#x}+{reservation.size}; "
                "map inside one",
            )
        if reservation.mapped:
            self._check_not_mapped(address, size)
        return reservation

    def _check_not_mapped(self, address: int, size: int) -> None:
        index = bisect_left(self._starts, address + size) - 1
        if index < 0:
            return
        region = self._regions[self._starts[index]]
        if region.end > address:
            raise DriverError(
                Status.INVALID_VALUE,
                "map",
                f"{address:#x}+{size} overlaps what is mapped at {region.start:#x}+{region.size}; unmap that first",
            )

    # -- what map and unmap do

    def _show(self, region: Region, part: Part, before: Access, after: Access) -> bool:
        """Change what the host process may do with ``part`` of ``region``. False if the system refused.

        A fresh mapping has no rights (V48, V57), so map itself asks nothing of the system. The memory
        stands at its addresses exactly while some device has rights on it. From outside, a mapping without
        rights looks the same whether its pages are there or not, and this saves a call.
        """
        old, new = self._protections[before], self._protections[after]
        if old == new:
            return True
        start = part.start
        size = part.end - start
        if not old:
            memory = region.memory
            offset = memory.start + region.offset + start - region.start
            file = memory.file if memory.file >= 0 else self._file
            return self._mmap(start, size, new, ATTACH, file, offset) == start
        if not new:
            return self._mmap(start, size, PROT_NONE, WITHDRAW, -1, 0) == start
        return self._mprotect(start, size, new) == 0

    def _withdraw(self, mappings: list[Mapping]) -> None:
        """Take the memory away from the addresses. Raises, and has changed nothing, if that fails."""
        for mapping in mappings:
            if mapping.most or mapping.parts:
                break
        else:
            return  # none of them has rights, so no memory stands there
        start = mappings[0].start
        size = mappings[-1].end - start
        if self._mmap(start, size, PROT_NONE, WITHDRAW, -1, 0) != start:
            reason = self._backing.calls.reason()
            raise DriverError(Status.UNMAP_FAILED, "unmap", f"the system refused {start:#x}+{size}: {reason}")

    def _before_unmap(self, mappings: list[Mapping]) -> None:
        """Where unmap waits for work in flight (V75), it does so here; see `Streams`."""

    def _remove_mapping(self, mapping: Mapping) -> None:
        self._remove_region(mapping)
        mapping.reservation.mapped -= 1
        handle = mapping.handle
        handle.mappings -= 1
        if not self._in_use(handle):
            self._return_memory(handle)

    def _add_region(self, region: Region) -> None:
        start = region.start
        self._regions[start] = region
        insort(self._starts, start)

    def _remove_region(self, region: Region) -> None:
        region.removed = self.serial
        start = region.start
        del self._regions[start]
        del self._starts[bisect_left(self._starts, start)]
        self._gone[start] = region

    # -- which mappings a range covers

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        """One whole mapping, or several adjacent ones if this driver takes them (V40 to V43)."""
        mapping = self._regions.get(address)
        if mapping is not None and mapping.size == size and isinstance(mapping, Mapping):
            return [mapping]
        mappings = self._whole_mappings("unmap", address, size)
        if len(mappings) > 1 and not self.capabilities.unmap_spans_mappings:
            raise DriverError(
                Status.INVALID_VALUE,
                "unmap",
                f"{address:#x}+{size} covers {len(mappings)} mappings; this driver unmaps one at a time",
            )
        return mappings

    def _whole_mappings(self, call: str, address: int, size: int) -> list[Mapping]:
        """The adjacent mappings of one reservation that make up the range exactly."""
        mappings: list[Mapping] = []
        at, end = address, address + size
        while at < end or not mappings:
            region = self._regions.get(at)
            if not isinstance(region, Mapping) or (mappings and region.reservation is not mappings[0].reservation):
                raise DriverError(Status.INVALID_VALUE, call, self._why_not_whole(address, size, at))
            mappings.append(region)
            at = region.end
        if at != end:
            raise DriverError(Status.INVALID_VALUE, call, self._why_not_whole(address, size, end))
        return mappings

    def _why_not_whole(self, address: int, size: int, at: int) -> str:
        """What is wrong at ``at`` with a range that should be whole adjacent mappings."""
        region = self._region_at(at)
        if size <= 0:
            found = f"size {size} is not positive"
        elif not isinstance(region, Mapping):
            found = f"nothing is mapped at {at:#x}"
        elif region.start == at:
            found = f"{at:#x} belongs to another reservation"
        else:
            found = f"{at:#x} lies inside the mapping {region.start:#x}+{region.size}"
        return f"{address:#x}+{size} must be whole adjacent mappings of one reservation, and {found}"
