"""VMM allocators that get memory wrong: rights, budgets, reclaim, undoing, closing."""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import Access, DriverError, Range, SubjectError
from vmm_reference.mutants.vmm_registry import Registry
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device
from vmm_reference.vmm_records import Alias, Allocation, Key, Record, State

mutant = Registry()

WORD = (1 << 64) - 1

# -- 182 to 184: what is given, what stays, what is undone


@mutant(183, 182)
class ReadOnly(Device):
    """Grants the right to read alone."""

    def show(self, record: Record, handle: int) -> None:
        super().show(record, handle)
        self.driver.set_access(*record.extent, {self.ordinal: Access.READ})


@mutant(183)
class AliasWithoutRights(Device):
    """Grants no rights on aliases."""

    def show(self, record: Record, handle: int) -> None:
        if isinstance(record, Alias):
            self.driver.map(*record.extent, handle)
            record.undo.append((self.hide, tuple(record.extent)))
        else:
            super().show(record, handle)


@mutant(183)
class SpaceDropped(Device):
    """Creates all memory in memory space 0."""

    def create(self, allocation: Allocation) -> int:
        key = allocation.key
        allocation.key = key._replace(space=0)
        try:
            return super().create(allocation)
        finally:
            allocation.key = key


@mutant(183, 69)
class MemoryOfTheFirst(Device):
    """Creates all memory on device 0."""

    def create(self, allocation: Allocation) -> int:
        ordinal, self.ordinal = self.ordinal, 0
        try:
            return super().create(allocation)
        finally:
            self.ordinal = ordinal


@mutant(182)
class TakesBackRights(Device):
    """Takes an allocation's rights while an alias shows it."""

    def install(self, source: Allocation, slice: Range) -> None:
        super().install(source, slice)
        if not source.key.mapped:
            self.driver.set_access(*source.extent, {self.ordinal: Access.READ})


@mutant(182)
class HidesSource(Device):
    """Moves the source's mapping to the alias."""

    def install(self, source: Allocation, slice: Range) -> None:
        super().install(source, slice)
        hide = next(step for step in source.undo if step[0] == self.hide)
        source.undo.remove(hide)
        self.hide(*hide[1])


@mutant(184, 72)
class KeepsHandle(Device):
    """Keeps the memory of an allocation that it could not map."""

    def abandon(self, record: Record) -> None:
        kept = [step for step in record.undo if step[0] != self.release]
        if isinstance(record, Allocation) and len(kept) < len(record.undo):
            self.committed -= record.key.committed
        record.undo = kept
        super().abandon(record)


@mutant(184)
class KeepsMapping(Device):
    """Keeps a mapping that it could not grant rights on."""

    def abandon(self, record: Record) -> None:
        if not isinstance(record, Alias):
            super().abandon(record)


# -- 69 to 72: budgets and reclaim


@mutant(69)
class NoBudget(Device):
    """Knows no budget."""

    def charge(self, size: int) -> None:
        pass


@mutant(69)
class ChargesRequested(Device):
    """Charges what was asked for."""

    def build(self, key: Key, size: int, slice: Range | None) -> Allocation:
        made = super().build(key, size, slice)
        self.committed -= key.committed - size
        return made

    def charge(self, size: int) -> None:
        super().charge(min(size, 1))


@mutant(69)
class BudgetWraps(Device):
    """Adds as numbers of 64 bits."""

    def charge(self, size: int) -> None:
        if (self.committed + size) & WORD > self.budget:
            super().charge(size)

    def create(self, allocation: Allocation) -> int:
        size = allocation.key.committed
        if size < self.driver.mem_info(self.ordinal).total * 2:
            return super().create(allocation)
        self.committed += size
        return self.driver.create(self.granularity(), device=self.ordinal, space=allocation.key.space)


@mutant(70)
class ReclaimsOnRetry(DeviceVmmAllocator):
    """Reclaims only where the caller asks for retries."""

    retry = True

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        self.retry = retry
        try:
            return super().allocate(ordinal, size, retry=retry, space=space)
        finally:
            self.retry = True

    def reclaim(self, device: Device, size: int) -> None:
        if self.retry:
            super().reclaim(device, size)


@mutant(70)
class NeverReclaims(DeviceVmmAllocator):
    """Gives up where memory is short."""

    def reclaim(self, device: Device, size: int) -> None:
        pass


@mutant(71)
class ReclaimsEverything(DeviceVmmAllocator):
    """Completes all that is stale when memory is short."""

    def reclaim(self, device: Device, size: int) -> None:
        device.timeline.flush()
        last = device.timeline.last()
        if last is not None:
            device.wait(last)
            device.bury_all([each for batch in list(device.timeline.marked.values()) for each in batch.records])


@mutant(71)
class TakesExempt(Device):
    """Reclaims memory of exempt spaces."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.exempt = ()


@mutant(71)
class YoungestFirst(Device):
    """Reclaims what was deallocated last."""

    def choose(self, size: int) -> list[Allocation]:
        found, chosen = 0, []
        for record in reversed(list(self.reclaimable())):
            chosen.append(record)
            found += record.key.committed
            if found * 10 >= size * 11:
                break
        return sorted(chosen, key=lambda record: record.batch.seqno if record.batch else 0)


@mutant(71)
class NoHeadroom(Device):
    """Reclaims no more than is needed at least."""

    def choose(self, size: int) -> list[Allocation]:
        chosen: list[Allocation] = []
        for record in self.reclaimable():
            if sum(each.key.committed for each in chosen) >= size:
                break
            chosen.append(record)
        return chosen


@mutant(71)
class AllFrees(Device):
    """Reclaims all stale allocations, however little is needed."""

    def choose(self, size: int) -> list[Allocation]:
        return list(self.reclaimable())


@mutant(72)
class ChargeStays(Device):
    """Charges for memory that it does not get."""

    def charge(self, size: int) -> None:
        try:
            super().charge(size)
        except SubjectError:
            if size <= self.budget:
                self.budget -= min(size, self.budget) // 2
            raise


@mutant(72, 70)
class CreditLost(Device):
    """Does not take released memory off the account."""

    def release(self, handle: int, size: int) -> None:
        self.driver.release(handle)


@mutant(72)
class FailureCosts(Device):
    """Keeps the charge of an allocation that fails."""

    def abandon(self, record: Record) -> None:
        super().abandon(record)
        if isinstance(record, Allocation):
            self.committed += record.key.committed


# -- 73: aliases first


@mutant(73)
class MemoryFirst(Device):
    """Releases memory, and then unmaps what shows it."""

    def complete(self, record: Record) -> None:
        alias = record.alias if isinstance(record, Allocation) else None
        if isinstance(record, Allocation):
            record.alias = None
        super().complete(record)
        if alias is not None:
            super().complete(alias)


# -- 76: the end


@mutant(76)
class ClosesOneByOne(DeviceVmmAllocator):
    """Gives back everything of a device before it waits for the next one."""

    def close(self) -> None:
        for device in self.devices.values():
            if not self.closed:
                self.driver.device_synchronize(device.ordinal)
            device.end()
        self.closed = True


@mutant(76)
class ClosesByStream(DeviceVmmAllocator):
    """Waits for its streams at close, dead or alive."""

    def close(self) -> None:
        for device in self.devices.values():
            if not self.closed:
                self.driver.stream_synchronize(device.stream)
            device.end()
        self.closed = True


@mutant(76)
class ClosesUnseen(DeviceVmmAllocator):
    """Waits at close only where something is deferred."""

    def close(self) -> None:
        for device in self.devices.values():
            if device.timeline.open.records or device.timeline.marked:
                self.driver.device_synchronize(device.ordinal)
        self.closed = True
        for device in self.devices.values():
            device.end()


@mutant(76)
class KeepsLive(DeviceVmmAllocator):
    """Keeps what is active when it is closed."""

    def close(self) -> None:
        for device in self.devices.values():
            for record in list(device.table.by_address.values()):
                if record.state is State.ACTIVE:
                    device.table.remove(record)
        super().close()


@mutant(76)
class KeepsEvents(DeviceVmmAllocator):
    """Keeps its events when it is closed."""

    def close(self) -> None:
        for device in self.devices.values():
            device.timeline.end = list  # type: ignore[method-assign]
        super().close()


@mutant(76)
class ClosesOnce(DeviceVmmAllocator):
    """Waits again when it is closed again."""

    def close(self) -> None:
        self.closed = False
        super().close()


@mutant(76)
class GivesUp(DeviceVmmAllocator):
    """Stops closing at the first refusal, for good."""

    def close(self) -> None:
        if not self.closed:
            with suppress(DriverError):
                super().close()
            self.closed = True


MUTANTS = mutant.mutants
