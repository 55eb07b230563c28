"""VMM allocators that answer wrongly: sizes, devices, addresses, roles, slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vmm_conformance.contracts import (
    HOST_SPACE,
    NULL,
    AddressReservation,
    Code,
    DeviceConfig,
    Driver,
    Range,
    RawAllocation,
    SubjectError,
)
from vmm_reference.mutants.vmm_registry import Registry
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_records import Alias, Allocation, Key, State

mutant = Registry()

WORD = (1 << 64) - 1


@mutant(181)
class RefusesEverything(DeviceVmmAllocator):
    """Refuses every allocation."""

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        raise SubjectError(Code.INTERNAL, "allocate: not today")


@mutant(183, 181)
class DoesNothing(DeviceVmmAllocator):
    """Gives out addresses that have nothing behind them."""

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        return slice or Range(1 << 44, size)

    def deallocate(self, ordinal: int, address: Range) -> None:
        pass


@mutant(41)
class GranuleForNothing(DeviceVmmAllocator):
    """Allocates a granule for a request of no bytes."""

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        if size == 0:
            return super().allocate(ordinal, 1, retry=retry, space=space)._replace(size=0)
        return super().allocate(ordinal, size, retry=retry, space=space)


@mutant(41)
class NothingIsWrong(DeviceVmmAllocator):
    """Refuses to map no bytes."""

    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None:
        if size == 0:
            raise SubjectError(Code.INVALID_ARGUMENT, "map: size is 0")
        super().map(ordinal, address, reservation, offset, size)


@mutant(41)
class NothingHasADevice(DeviceVmmAllocator):
    """Looks for the device before it sees that no bytes are asked for."""

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        self.device("allocate", ordinal)
        return super().allocate(ordinal, size, retry=retry, space=space)


@mutant(42, 52)
class PaddedSize(DeviceVmmAllocator):
    """Tells the rounded size."""

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        return super().obtain(device, key, size, slice)._replace(size=key.committed)


@mutant(43)
class NullHasADevice(DeviceVmmAllocator):
    """Looks for the device before it sees that the address is null."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        self.device("deallocate", ordinal)
        super().deallocate(ordinal, address)


@mutant(43)
class AnyDevice(DeviceVmmAllocator):
    """Takes an unknown device for one that has nothing to do."""

    def synchronize_pending_operations(self, ordinal: int) -> None:
        if ordinal in self.devices:
            super().synchronize_pending_operations(ordinal)


@mutant(43)
class FirstDevice(DeviceVmmAllocator):
    """Takes an unknown device for the first one."""

    def device(self, call: str, ordinal: int) -> Device:
        return super().device(call, ordinal if ordinal in self.devices else min(self.devices))


@mutant(46)
class FreedTwiceIsFine(DeviceVmmAllocator):
    """Takes a second deallocate for done."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        found = self.devices[ordinal].table.allocation(address) if ordinal in self.devices else None
        if found is None or found.state is State.ACTIVE:
            super().deallocate(ordinal, address)


@mutant(46)
class UnknownIsFine(DeviceVmmAllocator):
    """Takes the deallocate of an address that it does not know for done."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        device = self.devices.get(ordinal)
        if device is None or address == NULL or device.table.at(address.address) is not None:
            super().deallocate(ordinal, address)


@mutant(47)
class PointerOnly(DeviceVmmAllocator):
    """Finds an allocation by its address alone."""

    def active(self, call: str, device: Device, address: Range) -> Allocation:
        found = device.table.at(address.address)
        return super().active(call, device, found.range if isinstance(found, Allocation) else address)


@mutant(47)
class FreesInterior(DeviceVmmAllocator):
    """Deallocates what an address lies in."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        device = self.devices.get(ordinal)
        for record in device.table.overlapping(Range(address.address, 1)) if device else ():
            if isinstance(record, Allocation):
                address = record.range
        super().deallocate(ordinal, address)


@mutant(48)
class FreesUnderAlias(DeviceVmmAllocator):
    """Deallocates memory that an alias shows."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        found = self.devices[ordinal].table.allocation(address) if ordinal in self.devices else None
        alias = found.alias if found is not None else None
        if found is None or alias is None or alias.state is not State.ACTIVE:
            super().deallocate(ordinal, address)
            return
        found.alias = None
        super().deallocate(ordinal, address)
        found.alias = alias


@mutant(48)
class StaleAliasHolds(DeviceVmmAllocator):
    """Does not deallocate before the alias is gone, be it unmapped already."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        found = self.devices[ordinal].table.allocation(address) if ordinal in self.devices else None
        if found is not None and found.alias is not None:
            raise SubjectError(Code.FAILED_PRECONDITION, "deallocate: there is an alias")
        super().deallocate(ordinal, address)


@mutant(49)
class FreesByAlias(DeviceVmmAllocator):
    """Deallocates the source of a reservation address."""

    def deallocate(self, ordinal: int, address: Range) -> None:
        device = self.devices.get(ordinal)
        alias = device.table.at(address.address) if device else None
        if device is not None and isinstance(alias, Alias) and alias.state is State.ACTIVE:
            device.defer(alias)
            address = alias.source.range
        super().deallocate(ordinal, address)


@mutant(49)
class UnmapsAllocation(DeviceVmmAllocator):
    """Unmaps a slice that is an allocation of its own."""

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        device = self.devices.get(ordinal)
        if device is not None and reservation is not None:
            found = device.table.at(reservation.range.address + offset)
            if isinstance(found, Allocation) and found.state is State.ACTIVE and found.key.mapped:
                device.defer(found)
                return
        super().unmap(ordinal, reservation, offset, size)


@mutant(49)
class OwnsEverySlice(DeviceVmmAllocator):
    """Tells of a mapped allocation's addresses as if they were the allocator's own."""

    def reservation_of(self, ordinal: int, address: Range) -> Range | None:
        device = self.devices.get(ordinal)
        found = device.table.allocation(address) if device else None
        return found.extent if found is not None and found.state is State.ACTIVE else None


@mutant(53)
class ForgetsStale(DeviceVmmAllocator):
    """Does not find an allocation any more once it is deallocated."""

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        device = self.devices.get(ordinal)
        found = device.table.allocation(address) if device else None
        stale = found is not None and found.state is State.STALE
        return None if stale else super().raw_allocation(ordinal, address)


@mutant(53)
class TellsRequested(DeviceVmmAllocator):
    """Tells the size that was asked for as that of the memory."""

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        found = super().raw_allocation(ordinal, address)
        return found._replace(size=address.size) if found is not None else None


@mutant(54)
class FindsStaleAlias(DeviceVmmAllocator):
    """Finds an alias when it is unmapped."""

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        device = self.devices.get(ordinal)
        found = device.table.at(address.address) if device else None
        if isinstance(found, Alias) and found.extent == address:
            return RawAllocation(found.source.handle, found.source.key.committed)
        return super().raw_allocation(ordinal, address)


@mutant(54)
class BlindToAliases(DeviceVmmAllocator):
    """Finds no alias."""

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        device = self.devices.get(ordinal)
        alias = device is not None and isinstance(device.table.at(address.address), Alias)
        return None if alias else super().raw_allocation(ordinal, address)


@mutant(65)
class SumWrapsRound(DeviceVmmAllocator):
    """Adds offset and size as numbers of 64 bits."""

    def slice(self, call: str, reservation: AddressReservation | None, offset: int, size: int) -> Range:
        if reservation is not None and (offset + size) & WORD <= reservation.range.size:
            return Range(reservation.range.address + offset & WORD, size)
        return super().slice(call, reservation, offset, size)


@mutant(65)
class SeesTheStartOnly(DeviceVmmAllocator):
    """Looks whether a slice begins in its reservation, and not where it ends."""

    def slice(self, call: str, reservation: AddressReservation | None, offset: int, size: int) -> Range:
        if reservation is not None and 0 <= offset < reservation.range.size:
            return Range(reservation.range.address + offset, size)
        return super().slice(call, reservation, offset, size)


@mutant(65, 181)
class NullReservationCrashes(DeviceVmmAllocator):
    """Does not look whether there is a reservation."""

    def slice(self, call: str, reservation: AddressReservation | None, offset: int, size: int) -> Range:
        if reservation is None:
            raise SubjectError(Code.NOT_FOUND, f"{call}: no reservation")
        return super().slice(call, reservation, offset, size)


@mutant(66)
class UnmapsTwice(DeviceVmmAllocator):
    """Takes a second unmap for done."""

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        try:
            super().unmap(ordinal, reservation, offset, size)
        except SubjectError as error:
            if error.code is not Code.FAILED_PRECONDITION:
                raise


class _NamesItsOwnSize(DeviceVmmAllocator):
    """Unmaps an alias with a size that it makes of the one that was asked for and the one that the alias has."""

    chosen: Callable[[int, int], int]

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        device = self.devices.get(ordinal)
        if device is not None and reservation is not None and size:
            found = device.table.at(reservation.range.address + offset)
            size = self.chosen(size, found.extent.size) if isinstance(found, Alias) else size
        super().unmap(ordinal, reservation, offset, size)


@mutant(66)
class UnmapsParts(_NamesItsOwnSize):
    """Unmaps the whole of an alias where a part of it is named."""

    chosen = staticmethod(max)


@mutant(66)
class UnmapsMore(_NamesItsOwnSize):
    """Unmaps an alias where more than it is named."""

    chosen = staticmethod(min)


@mutant(66)
class UnmapsNothing(DeviceVmmAllocator):
    """Takes the unmap of a slice that it does not know for done."""

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        device = self.devices.get(ordinal)
        if device is None or reservation is None or device.table.at(reservation.range.address + offset) is not None:
            super().unmap(ordinal, reservation, offset, size)


@mutant(68)
class SmallerOfTwo(DeviceVmmAllocator):
    """Of two sizes it takes the smaller one."""

    def allocate_mapped(self, ordinal: int, alloc_size: int, *, map_size: int, **rest: Any) -> Range:
        size = min(alloc_size, map_size) if alloc_size and map_size else alloc_size
        return super().allocate_mapped(ordinal, size, map_size=size, **rest)


@mutant(68)
class SizesComeLast(DeviceVmmAllocator):
    """Compares the sizes when everything else is right."""

    def allocate_mapped(self, ordinal: int, alloc_size: int, *, map_size: int, **rest: Any) -> Range:
        if alloc_size:
            self.device("allocate_mapped", ordinal)
            device = self.devices[ordinal]
            slice = self.slice("allocate_mapped", rest["reservation"], rest["offset"], alloc_size)
            if device.reusable(Key(True, self.tag, rest["space"], alloc_size), slice) is None:
                self.obstacle(device, "allocate_mapped", slice)
        return super().allocate_mapped(ordinal, alloc_size, map_size=map_size, **rest)


@mutant(77)
class OneBook(DeviceVmmAllocator):
    """Keeps one book for all devices."""

    def __init__(self, driver: Driver, devices: Sequence[DeviceConfig], **revision: Any) -> None:
        super().__init__(driver, devices, **revision)
        first = next(iter(self.devices.values()))
        for device in self.devices.values():
            device.table = first.table


@mutant(78)
class HostIsDevice(DeviceVmmAllocator):
    """Takes memory of the device where the host's is asked for."""

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        return super().allocate(ordinal, size, retry=retry, space=0 if space == HOST_SPACE else space)


@mutant(78)
class HostIsMapped(DeviceVmmAllocator):
    """Maps the host's memory into a reservation."""

    def allocate_mapped(self, ordinal: int, alloc_size: int, *, space: int = 0, **rest: Any) -> Range:
        return super().allocate_mapped(ordinal, alloc_size, space=0 if space == HOST_SPACE else space, **rest)


@mutant(79, 51)
class ScopeResets(DeviceVmmAllocator):
    """Leaves a context as if there was none around it."""

    @contextmanager
    def device_tag(self, multi_device: bool) -> Iterator[None]:
        self._thread.tag = multi_device
        yield
        self._thread.tag = False


@mutant(79, 51)
class ScopeStays(DeviceVmmAllocator):
    """Keeps the tag when its context is left."""

    @contextmanager
    def device_tag(self, multi_device: bool) -> Iterator[None]:
        self._thread.tag = multi_device
        yield


MUTANTS = mutant.mutants
