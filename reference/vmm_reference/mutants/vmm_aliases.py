"""VMM allocators that get aliases and slices wrong."""

from __future__ import annotations

from collections.abc import Iterator

from vmm_conformance.contracts import AddressReservation, Code, Range, SubjectError
from vmm_reference.mutants.vmm_registry import Registry
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_records import Alias, Allocation, Key, Record, State, Table

mutant = Registry()

# -- 55 and 56: an alias that is taken back


@mutant(55)
class MapsAnew(DeviceVmmAllocator):
    """Waits for its own stale alias, and maps the same again."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        alias = self.active("map", device, address).alias
        if alias is not None and alias.state is State.STALE and alias.extent == slice:
            return alias
        return super().try_map(device, address, slice)


@mutant(55)
class UnmappedThoughActive(Device):
    """Takes an alias back, and does not call its completion off."""

    def take_back(self, record: Record) -> None:
        batch = record.batch
        super().take_back(record)
        if batch is not None and isinstance(record, Alias):
            self.timeline.add(batch, record, 0)
            record.batch = None

    def complete(self, record: Record) -> None:
        for batch in (self.timeline.open, *self.timeline.marked.values()):
            if record in batch.records and record.batch is None:
                record.batch = batch
                self.timeline.remove(record)
        super().complete(record)


@mutant(55)
class MapsOverItself(Device):
    """Takes an alias back by unmapping and mapping it."""

    def take_back(self, record: Record) -> None:
        super().take_back(record)
        if isinstance(record, Alias):
            self.driver.unmap(*record.extent)
            record.undo.clear()
            self.show(record, record.source.handle)


@mutant(56)
class StartWillDo(DeviceVmmAllocator):
    """Takes an alias back that begins where it must, whatever its size."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        alias = self.active("map", device, address).alias
        if alias is not None and alias.state is State.STALE and alias.extent.address == slice.address:
            device.take_back(alias)
            return None
        return super().try_map(device, address, slice)


@mutant(56)
class LargerRemaps(DeviceVmmAllocator):
    """Waits for its own stale alias where another size is asked for at its start."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        alias = self.active("map", device, address).alias
        stale = alias is not None and alias.state is State.STALE
        if alias is not None and stale and alias.extent.address == slice.address and alias.extent != slice:
            return alias
        return super().try_map(device, address, slice)


# -- 57 to 61: what is in the way


@mutant(57)
class MapsOver(DeviceVmmAllocator):
    """Does not wait for what is stale at the slice."""

    def clear(self, device: Device, record: Record) -> None:
        if isinstance(record, Alias):
            device.complete(record)
        else:
            super().clear(device, record)


@mutant(57)
class GivesTheOldOne(DeviceVmmAllocator):
    """Shows at a stale slice what was shown there before."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        there = device.table.at(slice.address)
        source = self.active("map", device, address)
        if isinstance(there, Alias) and there.state is State.STALE and there.extent == slice and source.alias is None:
            there.source.alias = None
            there.source = source
            source.alias = there
            device.take_back(there)
            return None
        return super().try_map(device, address, slice)


@mutant(57)
class StaleIsInUse(DeviceVmmAllocator):
    """Refuses a slice where something stale is."""

    def obstacle(self, device: Device, call: str, slice: Range) -> Record | None:
        found = super().obstacle(device, call, slice)
        if found is not None:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{call}: the slice is tracked already")
        return found


@mutant(58)
class DrainsAll(DeviceVmmAllocator):
    """Completes all that is stale when something is in the way."""

    def clear(self, device: Device, record: Record) -> None:
        super().clear(device, record)
        device.timeline.flush()
        last = device.timeline.last()
        if last is not None:
            device.wait(last)
            device.bury_all([each for batch in list(device.timeline.marked.values()) for each in batch.records])


@mutant(58)
class CompletesBatch(DeviceVmmAllocator):
    """Completes the whole batch of what is in the way."""

    def clear(self, device: Device, record: Record) -> None:
        batch = record.batch
        others = list(batch.records) if batch is not None else []
        super().clear(device, record)
        device.bury_all([other for other in others if other.state is State.STALE])


@mutant(59)
class TwoAliases(DeviceVmmAllocator):
    """Does not care for the source's stale alias."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        source = self.active("map", device, address)
        alias = source.alias
        if alias is None or alias.state is not State.STALE or alias.extent == slice:
            return super().try_map(device, address, slice)
        source.alias = None
        try:
            return super().try_map(device, address, slice)
        finally:
            source.alias = source.alias or alias


@mutant(59)
class UnmapsOldAlias(DeviceVmmAllocator):
    """Unmaps the source's stale alias without waiting."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        obstacle = super().try_map(device, address, slice)
        if isinstance(obstacle, Alias) and obstacle.source.range == address and obstacle.extent != slice:
            device.complete(obstacle)
            return self.try_map(device, address, slice)
        return obstacle


@mutant(60)
class DrainsThenRejects(DeviceVmmAllocator):
    """Waits for the source's stale alias before it looks at the slice."""

    def obstacle(self, device: Device, call: str, slice: Range) -> Record | None:
        try:
            return super().obstacle(device, call, slice)
        except SubjectError as error:
            stale = [each for each in device.table.by_address.values() if each.state is State.STALE]
            if error.code is Code.ALREADY_EXISTS and stale:
                self.clear(device, stale[0])
            raise


@mutant(60)
class ReplacesActive(DeviceVmmAllocator):
    """Puts a new alias in the place of an active one."""

    def obstacle(self, device: Device, call: str, slice: Range) -> Record | None:
        there = device.table.at(slice.address)
        if isinstance(there, Alias) and there.state is State.ACTIVE and there.extent == slice:
            device.defer(there)
        return super().obstacle(device, call, slice)


@mutant(60)
class ActiveIsPrecondition(DeviceVmmAllocator):
    """Refuses a slice that is in use with another code."""

    def obstacle(self, device: Device, call: str, slice: Range) -> Record | None:
        try:
            return super().obstacle(device, call, slice)
        except SubjectError as error:
            raise SubjectError(Code.FAILED_PRECONDITION, error.message) from None


@mutant(61)
class SecondAlias(DeviceVmmAllocator):
    """Gives an address a second alias."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        source = self.active("map", device, address)
        alias = source.alias
        if alias is not None and alias.state is State.ACTIVE and alias.extent != slice:
            source.alias = None
        return super().try_map(device, address, slice)


@mutant(61)
class OtherCode(DeviceVmmAllocator):
    """Refuses a second alias with the code of the other revision."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        alias = self.active("map", device, address).alias
        if alias is not None and alias.state is State.ACTIVE:
            raise SubjectError(Code.FAILED_PRECONDITION, "map: the source has an alias")
        return super().try_map(device, address, slice)


@mutant(61, second_alias="FAILED_PRECONDITION")
class OtherCodeToo(DeviceVmmAllocator):
    """Declares the first revision's code for a second alias, and refuses it with the last one's."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        alias = self.active("map", device, address).alias
        if alias is not None and alias.state is State.ACTIVE:
            raise SubjectError(Code.ALREADY_EXISTS, "map: the source has an alias")
        return super().try_map(device, address, slice)


# -- 62 to 64: overlaps, sources, sizes


class _OtherTable(Device):
    """A device with another way to find overlaps."""

    kind: type[Table] = Table

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.table = self.kind()


class _Touching(Table):
    def overlapping(self, extent: Range) -> Iterator[Record]:
        return super().overlapping(Range(extent.address - 1, extent.size + 2))


@mutant(62)
class TouchingOverlaps(_OtherTable):
    """Takes ranges that only touch for overlapping."""

    kind = _Touching


class _NoPredecessor(Table):
    def overlapping(self, extent: Range) -> Iterator[Record]:
        return (each for each in super().overlapping(extent) if each.extent.address >= extent.address)


@mutant(62)
class NoPredecessor(_OtherTable):
    """Does not look at what begins before a slice."""

    kind = _NoPredecessor


class _NoSuccessor(Table):
    def overlapping(self, extent: Range) -> Iterator[Record]:
        return (each for each in super().overlapping(extent) if each.extent.address <= extent.address)


@mutant(62)
class NoSuccessor(_OtherTable):
    """Does not look at what begins inside of a slice."""

    kind = _NoSuccessor


class _ActiveOnly(Table):
    def overlapping(self, extent: Range) -> Iterator[Record]:
        found = super().overlapping(extent)
        return (each for each in found if each.state is State.ACTIVE or each.extent == extent)


@mutant(62)
class StaleDoesNotOverlap(_OtherTable):
    """Looks for overlaps with what is active only."""

    kind = _ActiveOnly


@mutant(63)
class InteriorSource(DeviceVmmAllocator):
    """Takes an address inside an allocation for the allocation."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        inside = list(device.table.overlapping(Range(address.address, 1)))
        if inside and isinstance(inside[0], Allocation) and inside[0].extent.address < address.address:
            address = inside[0].range
        return super().try_map(device, address, slice)


@mutant(63)
class StaleSource(DeviceVmmAllocator):
    """Shows an allocation that was deallocated."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        found = device.table.allocation(address)
        if found is not None and found.state is State.STALE:
            device.take_back(found)
        return super().try_map(device, address, slice)


@mutant(63)
class AliasAsSource(DeviceVmmAllocator):
    """Takes the address of an alias for its source's."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        there = device.table.at(address.address)
        return super().try_map(device, there.source.range if isinstance(there, Alias) else address, slice)


@mutant(63)
class NullIsNotFound(DeviceVmmAllocator):
    """Looks for a null source as for any other."""

    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None:
        super().map(ordinal, address if address.address else Range(1, 0), reservation, offset, size)


@mutant(64)
class LogicalLimit(DeviceVmmAllocator):
    """Maps no more than was asked for."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        if slice.size > self.active("map", device, address).size:
            raise SubjectError(Code.INVALID_ARGUMENT, "map: the source is smaller")
        return super().try_map(device, address, slice)


@mutant(64)
class NoLimit(DeviceVmmAllocator):
    """Leaves it to the driver whether there is enough memory behind the source."""

    def try_map(self, device: Device, address: Range, slice: Range) -> Record | None:
        source = self.active("map", device, address)
        key = source.key
        source.key = key._replace(committed=max(key.committed, slice.size))
        try:
            return super().try_map(device, address, slice)
        finally:
            source.key = key


# -- 67: at a slice


@mutant(67, 57)
class FreshEachStep(Device):
    """Takes nothing back at a slice."""

    def reusable(self, key: Key, slice: Range | None) -> Allocation | None:
        return None if slice is not None else super().reusable(key, slice)


@mutant(67)
class OwnAddress(DeviceVmmAllocator):
    """Gives addresses of its own where a slice is asked for."""

    def obtain(self, device: Device, key: Key, size: int, slice: Range | None) -> Range:
        if slice is not None:
            with device.lock:
                self.obstacle(device, "allocate_mapped", slice)
        return super().obtain(device, key._replace(mapped=False), size, None)


MUTANTS = mutant.mutants
