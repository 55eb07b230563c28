"""Step executors that select, lay out, compare or map wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmm_conformance.contracts import (
    Buffer,
    Code,
    DriverError,
    Execute,
    Range,
    SubjectError,
    Table,
    UpdateMode,
)
from vmm_reference.layout import (
    Layout,
    Selection,
    check_capacities,
    check_committed,
    check_constants,
    round_up,
    select,
)
from vmm_reference.mapping import UNRELIABLE, MappedRange, SlotMappings
from vmm_reference.mutants.registry import Registry
from vmm_reference.step_executor import SkipRemapExecutor
from vmm_reference.va_ranges import NO_TABLE, StepSettings, VaRanges

mutant = Registry()


@mutant("STEP-81", "STEP-84")
class ReserveEveryStep(VaRanges):
    """Makes a new reservation for every step."""

    def prepare(self, layout: Layout, buffers: Sequence[Buffer], stream: int) -> None:
        if self.layout is not None and layout.reserved:
            self.in_flight.wait()
            self.mappings.unmap_all()
            old = self.reservation
            self.reservation = Range(self.driver.reserve(old.size, alignment=layout.granularity), old.size)
            self.driver.address_free(old.address, old.size)
            self.last_table = NO_TABLE
        super().prepare(layout, buffers, stream)


@mutant("STEP-82")
class LayoutBackwards(VaRanges):
    """Lays the slots out in descending order of their index."""

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        layout = super().plan(buffers)
        end = layout.reserved
        mapped = tuple(s._replace(offset=end - s.offset - s.capacity) for s in layout.mapped)
        return replace(layout, mapped=mapped)


@mutant("STEP-83")
class PaddedTable(VaRanges):
    """Gives execution the rounded size of a mapped slot instead of the logical one."""

    def make_table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        padded = list(buffers)
        for slot, _, capacity in layout.mapped:
            padded[slot] = padded[slot]._replace(size=capacity)
        return super().make_table(layout, padded)


@mutant("STEP-83")
class SwappedTable(VaRanges):
    """Gives execution the addresses of the first two mapped slots the wrong way round."""

    def make_table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        table = list(super().make_table(layout, buffers))
        if len(layout.mapped) > 1:
            (a, _, _), (b, _, _) = layout.mapped[:2]
            table[a], table[b] = (
                Range(table[b].address, table[a].size),
                Range(table[a].address, table[b].size),
            )
        return tuple(table)


@mutant("STEP-84", "STEP-83")
class RealAddressLeaks(VaRanges):
    """From the second execution on gives it the addresses of the caller's buffers."""

    def table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        if self.layout is None:
            return super().table(layout, buffers)
        return tuple(Range(buffer.address, buffer.size) for buffer in buffers)


class _PlansAgain(VaRanges):
    """Lays out anew whenever `stale` says so; the reservation keeps its first size."""

    def stale(self, fresh: Layout) -> bool:
        raise NotImplementedError

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        if self.layout is not None:
            fresh = self.plan(buffers)
            if self.stale(fresh):
                self.in_flight.wait()
                self.mappings.unmap_all()
                self.shadows.allocate(s for s in fresh.small if s.slot not in self.shadows.addresses)
                self.layout = replace(fresh, persistent=self.layout.persistent)
                self.last_table = NO_TABLE
        super().step(buffers, stream, execute)


@mutant("STEP-97", "STEP-84", source="hazard d")
class OffsetsFromCurrentSizes(_PlansAgain):
    """Computes offsets from this step's sizes, into a reservation sized by the first step's."""

    def stale(self, fresh: Layout) -> bool:
        assert self.layout is not None
        same_class = [s.slot for s in fresh.mapped] == [s.slot for s in self.layout.mapped]
        return same_class and fresh.mapped != self.layout.mapped


@mutant("STEP-84", "SHADOW-113", "STEP-94", source="hazard f")
class ClassFromCurrentSize(_PlansAgain):
    """A slot whose size crosses the copy threshold changes its class, and so its address."""

    def stale(self, fresh: Layout) -> bool:
        assert self.layout is not None
        return {s.slot for s in fresh.small} != {s.slot for s in self.layout.small}

    def make_table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        table = list(super().make_table(layout, buffers))
        for slot, offset, _ in layout.mapped:  # also where a shadow is left from before
            table[slot] = Range(self.reservation.address + offset, buffers[slot].size)
        return tuple(table)


@mutant("STEP-85")
class GrantEveryStep(VaRanges):
    """Grants rights again on everything mapped before every step."""

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        super().establish(layout, buffers)
        self.mappings.grant(entry.range for entry in self.mappings.mapped.values())


@mutant("STEP-86")
class RemapAllIfAny(VaRanges):
    """Remaps every slot as soon as one has moved."""

    def wanted(self, layout: Layout, buffers: Sequence[Buffer]) -> dict[int, MappedRange]:
        if not super().wanted(layout, buffers):
            return {}
        used = (s for s in layout.mapped if buffers[s.slot].size)
        return {s.slot: self.mapping_of(s.offset, s.capacity, buffers[s.slot]) for s in used}


@mutant("STEP-86")
class RemapFirstOnly(VaRanges):
    """Of several mapped slots that moved remaps the first alone."""

    def wanted(self, layout: Layout, buffers: Sequence[Buffer]) -> dict[int, MappedRange]:
        wanted = super().wanted(layout, buffers)
        unmapped = {slot: entry for slot, entry in wanted.items() if slot not in self.mappings.mapped}
        return unmapped or dict(list(wanted.items())[:1])


@mutant("STEP-87", "STEP-86", source="hazard a")
class CompareAddress(VaRanges):
    """Tells memory by its address: a new buffer at the address of a freed one passes for the old one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sources: dict[int, int] = {}

    def unmoved(self, index: int, buffer: Buffer) -> bool:
        return index in self.mappings.mapped and self.sources.get(index) == buffer.address

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        super().establish(layout, buffers)
        self.sources = {slot: buffers[slot].address for slot in self.mappings.mapped}


@mutant("STEP-94", "STEP-86", source="ROCm/xla#1001 F14")
class CompareWithoutSlots(VaRanges):
    """Takes a slot for unmoved if its buffer is mapped at some slot, whichever that is."""

    def unmoved(self, index: int, buffer: Buffer) -> bool:
        mapped = self.mappings.mapped
        return index in mapped and any(entry.handle == buffer.handle for entry in mapped.values())


@mutant("STEP-92", source="ROCm/xla#1001 F11")
class NoResetOnError(SlotMappings):
    """After a map that failed believes that the slots are mapped, and can never unmap them."""

    def map(self, wanted: Mapping[int, MappedRange]) -> None:
        try:
            super().map(wanted)
        except DriverError:
            self.mapped.update({slot: MappedRange(place, UNRELIABLE) for slot, (place, _) in wanted.items()})
            raise


@mutant("STEP-92", "STEP-93")
class UndoForgets(SlotMappings):
    """Forgets what it could not unmap again after a map that failed."""

    def undo(self, wanted: Mapping[int, MappedRange], done: Iterable[int]) -> None:
        super().undo(wanted, done)
        for slot in wanted:
            self.mapped.pop(slot, None)


@mutant("STEP-93", "STEP-92")
class CacheBeforeMapping(SlotMappings):
    """Records what is mapped before it is, so a step that failed passes for one that succeeded."""

    def map(self, wanted: Mapping[int, MappedRange]) -> None:
        self.mapped.update(wanted)
        super().map(wanted)


@mutant("STEP-95")
class NullSkipped(VaRanges):
    """Treats a buffer without memory as an empty one, and executes."""

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        usable = [b if b.address and b.handle else b._replace(size=0) for b in buffers]
        super().step(usable, stream, execute)


@mutant("STEP-95")
class NullWithoutIndex(VaRanges):
    """Refuses a buffer without memory, but does not say which."""

    def check_memory(self, buffers: Sequence[Buffer]) -> None:
        try:
            super().check_memory(buffers)
        except SubjectError as error:
            raise SubjectError(error.code, "a buffer named by a command buffer has no memory") from None


@mutant("STEP-96", source="hazard c")
class StickyReservation(VaRanges):
    """Takes a reservation that failed once for made, and never asks again."""

    missing = False

    def acquire(self, layout: Layout) -> None:
        if self.missing:
            raise SubjectError(Code.INTERNAL, "the address range that was reserved is null")
        try:
            super().acquire(layout)
        except DriverError:
            self.missing = True
            raise


@mutant("STEP-97")
class GrowPastSlot(VaRanges):
    """Maps a buffer that has outgrown its slot over whatever lies behind."""

    def check_fit(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        check_constants(layout, buffers)
        check_capacities(replace(layout, capacities={s.slot: s.capacity for s in layout.small}), buffers)
        check_committed(layout, buffers, self.driver.capabilities.partial_map)

    def wanted(self, layout: Layout, buffers: Sequence[Buffer]) -> dict[int, MappedRange]:
        needs = (max(s.capacity, round_up(buffers[s.slot].size, layout.granularity)) for s in layout.mapped)
        grown = tuple(s._replace(capacity=need) for s, need in zip(layout.mapped, needs, strict=True))
        return super().wanted(replace(layout, mapped=grown), buffers)


@mutant("STEP-99")
class OneStateForAllDevices(SkipRemapExecutor):
    """Keeps its state by executable alone: every device uses what the first one holds."""

    def ranges_on(self, device: int) -> VaRanges:
        return super().ranges_on(next(iter(self.ranges), device))


@mutant("STEP-100")
class IgnoresMode(SkipRemapExecutor):
    """Remaps under ALWAYS_UPDATE too."""

    def select(self) -> Selection:
        if self.executable.mode is UpdateMode.ALWAYS_UPDATE:
            return select(replace(self.executable, mode=UpdateMode.NEVER_UPDATE))
        return super().select()


@mutant("STEP-100", "STEP-162")
class IgnoresAllocator(SkipRemapExecutor):
    """Remaps buffers of allocators that have no handles to give."""

    def remaps(self) -> bool:
        return bool(self.selection.remapped)


@mutant("STEP-101")
class ConstantsRemapped(SkipRemapExecutor):
    """Treats constants as any other slot."""

    def select(self) -> Selection:
        chosen = super().select()
        return replace(chosen, remapped=tuple(sorted(chosen.remapped + chosen.constants)), constants=())


@mutant("STEP-101")
class ConstantsForgotten(SkipRemapExecutor):
    """Leaves constants out of the persistent slots."""

    def select(self) -> Selection:
        return replace(super().select(), constants=())


@mutant("STEP-102")
class CaptureTakesAll(SkipRemapExecutor):
    """Under CAPTURE_CMD_NEVER_UPDATE selects the slots of commands that were not traced, too."""

    def select(self) -> Selection:
        if self.executable.mode is UpdateMode.CAPTURE_CMD_NEVER_UPDATE:
            return select(replace(self.executable, mode=UpdateMode.NEVER_UPDATE))
        return super().select()


@mutant("STEP-102")
class NeverTakesTraced(SkipRemapExecutor):
    """Under NEVER_UPDATE selects the slots of traced commands alone."""

    def select(self) -> Selection:
        if self.executable.mode is UpdateMode.NEVER_UPDATE:
            return select(replace(self.executable, mode=UpdateMode.CAPTURE_CMD_NEVER_UPDATE))
        return super().select()


@mutant("STEP-158")
class ShrinkRefused(VaRanges):
    """With skip-remap on, and only then, refuses a buffer that is smaller than its slot."""

    def check_fit(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        super().check_fit(layout, buffers)
        for slot, _, capacity in layout.mapped if self.settings.skip_remap else ():
            size = round_up(buffers[slot].size, layout.granularity)
            if size < capacity:
                raise SubjectError(Code.INTERNAL, f"slot {slot}: {size} bytes instead of {capacity}")


@mutant("STEP-159", source="hazard e")
class MapsWholeHandle(VaRanges):
    """Maps all that stands behind a buffer, whatever room its slot has."""

    def mapping_of(self, offset: int, capacity: int, buffer: Buffer) -> MappedRange:
        place, handle = super().mapping_of(offset, capacity, buffer)
        return MappedRange(Range(place.address, buffer.committed), handle)


@mutant("STEP-159", "STEP-82")
class UnroundedOffsets(VaRanges):
    """Rounds the sizes it maps, but adds up offsets from logical sizes."""

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        layout = super().plan(buffers)
        offset, mapped = 0, []
        for slot in layout.mapped:
            mapped.append(slot._replace(offset=offset))
            offset += buffers[slot.slot].size
        return replace(layout, mapped=tuple(mapped))


@mutant("STEP-162", "STEP-91")
class SkipEverywhere(SkipRemapExecutor):
    """Applies skip-remap and the copy threshold on every platform."""

    def settings_in_force(self) -> StepSettings:
        return StepSettings(self.executable.skip_remap, max(0, self.executable.copy_threshold))


@mutant("STEP-162", "STEP-91")
class PlatformInAnyCase(SkipRemapExecutor):
    """Takes ``rocm`` and ``Rocm`` for ``ROCM``."""

    def settings_in_force(self) -> StepSettings:
        if self.executable.platform.upper() == "ROCM":
            return StepSettings(self.executable.skip_remap, max(0, self.executable.copy_threshold))
        return super().settings_in_force()


MUTANTS = mutant.mutants
