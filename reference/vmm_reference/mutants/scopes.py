"""Execution scopes that refuse, map, show or release wrongly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from vmm_conformance.contracts import (
    BufferKind,
    Code,
    Execute,
    ExecutionScope,
    MemoryAllocator,
    Range,
    RemapMode,
    SubjectError,
    VmmAllocator,
)
from vmm_reference.mutants.scope_registry import ScopeRegistry
from vmm_reference.remapping import Remapping, RemappingAllocator, RemapScope, Slice
from vmm_reference.scopes import REFUSALS, PlainScope

mutant = ScopeRegistry()


# -- what must be refused


@mutant("SCOPE-120")
class AnyStream(RemappingAllocator):
    """Runs on streams that the allocator does not follow."""

    def check_stream(self, device: int, stream: int, allocator: VmmAllocator) -> None:
        pass


@mutant("SCOPE-120")
class RightStreamMissing(RemappingAllocator):
    """Refuses a foreign stream with another code than INTERNAL."""

    def check_stream(self, device: int, stream: int, allocator: VmmAllocator) -> None:
        if allocator.stream(device) != stream:
            raise SubjectError(Code.INVALID_ARGUMENT, f"stream {stream} will not do")


@mutant("SCOPE-121")
class Rebinds(Remapping):
    """Takes whatever allocator comes, though its reservation belongs to the first."""

    def bind(self, allocator: VmmAllocator) -> None:
        self.allocator = allocator


@mutant("SCOPE-121")
class RefusesOnceOnly(Remapping):
    """Refuses another allocator the first time, and then takes it."""

    def bind(self, allocator: VmmAllocator) -> None:
        before = self.allocator
        try:
            super().bind(allocator)
        except SubjectError:
            if getattr(self, "asked", None) is allocator:
                return
            self.asked = allocator
            self.allocator = before
            raise


@mutant("SCOPE-121")
class AnyGranularity(Remapping):
    """Does not look whether the granularity is what the layout was made with."""

    def check_granularity(self, granularity: int) -> None:
        pass


# -- one scope at a time


class _Unlocked:
    """A lock that stops nobody."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        pass


@mutant("SCOPE-122")
class NoLock(Remapping):
    """Lets two scopes of one device be open at a time."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type] # passed on as they are
        self.lock = _Unlocked()  # type: ignore[assignment] # as much of a lock as is used


@mutant("SCOPE-122")
class LocksExecuteOnly(RemapScope):
    """Holds the lock while it executes, and at no other time."""

    def __init__(self, remapping: Remapping, allocator: VmmAllocator) -> None:
        super().__init__(remapping, allocator)
        remapping.lock.release()

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        with self.remapping.lock:
            super().execute(table, execute)

    def drop(self) -> None:
        self.remapping.lock.acquire()
        super().drop()


@mutant("SCOPE-122")
class UnlocksAtTeardown(RemapScope):
    """Lets the next scope in when it is torn down, and not when it is dropped."""

    released = False

    def teardown(self, live: Collection[int]) -> None:
        super().teardown(live)
        self.released = True
        self.remapping.lock.release()

    def drop(self) -> None:
        if self.released:
            self.remapping.lock.acquire()
        super().drop()


@mutant("SCOPE-122")
class OneLockForAll(RemappingAllocator):
    """Has one lock for all devices, so that scopes wait for what is none of their business."""

    def remapping_on(self, device: int) -> Remapping:
        held = super().remapping_on(device)
        with self.lock:
            first = next(iter(self.remappings.values()))
            held.lock = first.lock
        return held


@mutant("SCOPE-122")
class NeverUnlocks(RemapScope):
    """Keeps the lock when it is dropped after a failure."""

    failed = False

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        self.failed = True
        super().execute(table, execute)
        self.failed = False

    def drop(self) -> None:
        super().drop()
        if self.failed:
            self.remapping.lock.acquire()


# -- temporary buffers


@mutant("SCOPE-123")
class TempsAnywhere(RemapScope):
    """Under SKIP_TEMP allocates temporary buffers wherever the allocator puts them."""

    def allocate(self, index: int) -> Range:
        if self.executable.mode is RemapMode.SKIP_TEMP:
            return PlainScope.allocate(self, index)
        return super().allocate(index)


@mutant("SCOPE-123")
class ReservesEveryRun(RemapScope):
    """Makes a new reservation for every run, and so new addresses."""

    def prepare(self) -> None:
        self.remapping.reservation = None
        super().prepare()


@mutant("SCOPE-123", "SCOPE-128", source="openxla/xla#45255")
class DrainsBeforeEachRun(RemapScope):
    """Waits for all that is pending before each run, and so gets other memory in each."""

    def prepare(self) -> None:
        super().prepare()
        self.vmm.synchronize_pending_operations(self.device)


@mutant("SCOPE-123")
class OneGranuleForAll(Remapping):
    """Maps one granule less for temporary buffers of several than they need."""

    def lay_out(self, indices: Iterable[int], granularity: int) -> dict[int, Slice]:
        slices = super().lay_out(indices, granularity)
        temps = {index for index in slices if self.executable.buffers[index].kind is BufferKind.TEMP}
        return {
            index: piece._replace(size=granularity) if index in temps and piece.size > granularity else piece
            for index, piece in slices.items()
        }


# -- the owning table


@mutant("SCOPE-124", source="openxla/xla#45596 (the owning table must stay as it is)")
class RewritesOwningTable(RemapScope):
    """Writes the fixed addresses into the owning table, and leaves them there."""

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        running = super().running_table(table)
        if isinstance(table, list):
            table[:] = running
        return running


@mutant("SCOPE-124")
class RestoresOnSuccessOnly(RemapScope):
    """Runs with the owning table rewritten, and puts it right again only if that went well."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        before = list(table)
        if self.watched or not isinstance(table, list):
            super().execute(table, execute)
            return
        try:
            table[:] = self.running_table(before)
            execute(tuple(table), self.persistent())
        finally:
            with suppress(*REFUSALS):
                self.remapping.hide_all()
        table[:] = before


@mutant("SCOPE-124")
class OutputsInReservation(RemapScope):
    """Allocates selected outputs at their slices, so that the caller owns addresses of the reservation."""

    def allocate(self, index: int) -> Range:
        piece = self.remapping.slices.get(index)
        if piece is None or self.watched or index in self.classes.temps or index not in self.selected():
            return super().allocate(index)
        return self.vmm.allocate_mapped(
            self.device, piece.size, reservation=self.remapping.reservation, offset=piece.offset,
            map_size=piece.size, space=self.executable.buffers[index].space,
        )  # fmt: skip

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        kinds = [self.executable.buffers[index].kind for index in range(len(table))]
        shown = [i for i in self.selected() if kinds[i] is BufferKind.PARAMETER]
        running = list(table)
        for index in shown:
            self.check_there(index, table[index])
            running[index] = self.remapping.show(index, table[index], self.vmm)
        return tuple(running)


@mutant("SCOPE-124", "SCOPE-130")
class TeardownFreesOutputs(RemapScope):
    """Frees what the caller has taken over as well."""

    def teardown(self, live: Collection[int]) -> None:
        super().teardown(())


# -- final addresses


@mutant("SCOPE-125", source="openxla/xla#45595 (aliases from final addresses)")
class AliasesEarly(RemapScope):
    """Shows the parameters as they were handed in, whatever has replaced them since."""

    arguments: Sequence[Range] = ()

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        self.arguments = tuple(arguments)
        return super().generate(arguments)

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        early = [old if old.address else new for old, new in zip(self.arguments, table, strict=True)]
        return super().running_table(early)


@mutant("SCOPE-125")
class KeepsFirstAddresses(RemapScope):
    """Runs with unselected parameters where they were in the first run on the device."""

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        running = list(super().running_table(table))
        first = self.remapping.__dict__.setdefault("first", {})
        for index, buffer in enumerate(self.executable.buffers):
            if buffer.kind is BufferKind.PARAMETER and index not in self.selected():
                running[index] = first.setdefault(index, running[index])
        return tuple(running)


@mutant("SCOPE-125")
class SwapsAliases(Remapping):
    """Shows the first two buffers that are shown at each other's slices."""

    def show(self, index: int, buffer: Range, allocator: VmmAllocator) -> Range:
        io = [i for i in self.slices if self.executable.buffers[i].kind is not BufferKind.TEMP]
        same = len(io) > 1 and self.slices[io[0]].size == self.slices[io[1]].size
        if same and index in io[:2] and self.profile.selected and set(io[:2]) <= set(self.profile.selected):
            other = io[1] if index == io[0] else io[0]
            super().show(other, buffer, allocator)
            assert self.reservation is not None
            return Range(self.reservation.range.address + self.slices[index].offset, buffer.size)
        return super().show(index, buffer, allocator)


# -- what cannot be shown


@mutant("SCOPE-126")
class NullIsSkipped(RemapScope):
    """Executes with null where a selected buffer is null."""

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        running = list(table)
        for index in self.selected():
            if self.executable.buffers[index].kind is not BufferKind.TEMP and table[index].address:
                running[index] = self.remapping.show(index, table[index], self.vmm)
        return tuple(running)


@mutant("SCOPE-126")
class NullHasWrongCode(RemapScope):
    """Refuses a null buffer as if the caller's argument were wrong."""

    def check_there(self, index: int, buffer: Range) -> None:
        if not buffer.address:
            raise SubjectError(Code.INVALID_ARGUMENT, f"buffer {index} is null")


@mutant("SCOPE-126")
class LeavesEarlierAliases(RemapScope):
    """When a buffer cannot be shown leaves the ones before it shown."""

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        try:
            return super().running_table(table)
        except BaseException:
            self.remapping.__dict__.setdefault("lost", []).extend(self.remapping.aliases)
            self.remapping.aliases.clear()
            raise


@mutant("SCOPE-126")
class RunsUnmapped(RemapScope):
    """Where a buffer cannot be shown at its slice, executes with it where it is."""

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        running = list(table)
        for index in self.selected():
            if self.executable.buffers[index].kind is not BufferKind.TEMP:
                self.check_there(index, table[index])
                with suppress(*REFUSALS):
                    running[index] = self.remapping.show(index, table[index], self.vmm)
        return tuple(running)


@mutant("SCOPE-121", "POLICY-136")
class TakesAnyAllocator(RemappingAllocator):
    """Makes a plain scope for an allocator that is not the first, as if it were none that can map."""

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        held = self.remappings.get(device)
        if held is not None and held.allocator is not None and held.allocator is not allocator:
            return self.plain_scope(device, allocator)
        return super().create_scope(device, stream, allocator)


MUTANTS = mutant.mutants
