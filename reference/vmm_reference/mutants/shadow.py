"""Step executors that treat small slots and their shadows wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vmm_conformance.contracts import Buffer, Code, DriverError, Execute, SubjectError, Use
from vmm_reference.in_flight import InFlight
from vmm_reference.layout import Layout, SmallSlot, plan
from vmm_reference.mutants.registry import Registry
from vmm_reference.shadows import Shadows
from vmm_reference.step_executor import SkipRemapExecutor
from vmm_reference.va_ranges import NO_TABLE, VaRanges

mutant = Registry()


@mutant("STEP-186")
class ScratchEveryStep(VaRanges):
    """Takes memory to stage the copies of a step in, and keeps it until it closes."""

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        super().step(buffers, stream, execute)
        if self.shadows.addresses:
            with suppress(DriverError):
                self.staged = [*getattr(self, "staged", ()), self.driver.alloc(64, device=self.device)]

    def close(self) -> None:
        super().close()
        while getattr(self, "staged", ()):
            self.driver.free(self.staged.pop())


@mutant("SHADOW-103")
class ThresholdExclusive(VaRanges):
    """Maps a slot whose size is exactly the copy threshold."""

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        granularity = self.driver.granularity(self.device).recommended
        return plan(self.selection, buffers, granularity, self.settings.copy_threshold - 1)


@mutant("SHADOW-104", "STEP-82")
class ShadowsLeaveGaps(VaRanges):
    """Keeps room in the reservation for slots that have a shadow."""

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        layout = super().plan(buffers)
        gap = layout.granularity
        mapped = tuple(
            slot._replace(offset=slot.offset + gap * sum(small.slot < slot.slot for small in layout.small))
            for slot in layout.mapped
        )
        return replace(layout, mapped=mapped, reserved=layout.reserved + gap * len(layout.small))


@mutant("SHADOW-105")
class EmptyReservation(VaRanges):
    """Reserves a range of no bytes where every slot is small."""

    def acquire(self, layout: Layout) -> None:
        super().acquire(layout)
        if not layout.reserved:
            self.driver.reserve(0, alignment=layout.granularity)


class _Reallocates(VaRanges):
    """Can give a slot another shadow."""

    def reallocate(self, slot: int, size: int, *, wait: bool = True) -> None:
        assert self.layout is not None
        if wait:
            self.in_flight.wait()
        old = self.shadows.addresses[slot]
        self.shadows.addresses[slot] = self.shadows.allocate_one(slot, size)
        self.driver.free(old)
        self.layout = replace(self.layout, capacities={**self.layout.capacities, slot: size})
        self.last_table = NO_TABLE

    def resized(self, buffers: Sequence[Buffer]) -> list[tuple[int, int, int]]:
        """Slot, capacity and present size of each small slot in use that has not its full size."""
        capacities = self.layout.capacities if self.layout else {}
        used = ((slot, capacities[slot], buffers[slot].size) for slot in self.shadows.addresses if capacities)
        return [(slot, capacity, size) for slot, capacity, size in used if size not in (0, capacity)]


@mutant("SHADOW-106", "STEP-84")
class ShadowEveryStep(_Reallocates):
    """Allocates new shadows for every step."""

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        if self.layout is not None:
            for slot in tuple(self.shadows.addresses):
                self.reallocate(slot, self.layout.capacities[slot])
        super().step(buffers, stream, execute)


@mutant("SHADOW-107", source="ROCm/xla#1001 F2")
class SpaceZero(Shadows):
    """Allocates every shadow in memory space 0."""

    def allocate_one(self, index: int, size: int) -> int:
        self.slots = [replace(slot, space=0) for slot in self.slots]
        return super().allocate_one(index, size)


@mutant("SHADOW-108", source="ROCm/xla#1001 F8")
class UnknownSlotIgnored(SkipRemapExecutor):
    """Passes over a command that names a slot which the executable has not."""

    def check_selection(self) -> None:
        pass


@mutant("SHADOW-109", "SHADOW-110")
class CopyInOnHost(Shadows):
    """Copies in at once, whatever is still to happen on the run stream."""

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        for index, shadow in self.addresses.items():
            if buffers[index].size:
                self.driver.copy(shadow, buffers[index].address, buffers[index].size)


@mutant("SHADOW-109", "SHADOW-111")
class CopyBackOnHost(Shadows):
    """Copies back at once, though execution has only been queued."""

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        for index in written:
            self.driver.copy(buffers[index].address, self.addresses[index], buffers[index].size)


@mutant("SHADOW-109", "SHADOW-111")
class CopyBackFirst(Shadows):
    """Copies back before it executes."""

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        super().copy_in(buffers, stream)
        super().copy_back(self.written(buffers), buffers, stream)

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        pass


@mutant("SHADOW-110")
class CopyInOnce(Shadows):
    """Copies in before the first execution alone."""

    filled = False

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        if not self.filled:
            super().copy_in(buffers, stream)
        self.filled = True


@mutant("SHADOW-111")
class NoCopyBack(Shadows):
    """Never copies back."""

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        pass


@mutant("SHADOW-112")
class PaddedCopyBack(Shadows):
    """Copies back eight bytes more than the slot has, if the buffer has room for them."""

    def allocate_one(self, index: int, size: int) -> int:
        return super().allocate_one(index, size + 8)

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        padded = [b._replace(size=min(b.size + 8, b.committed)) if b.size else b for b in buffers]
        super().copy_back(written, padded, stream)


@mutant("SHADOW-113", "SHADOW-116", source="ROCm/xla#1001 F5")
class ReallocateOnGrowth(_Reallocates):
    """Replaces the shadow of a slot that has grown, without waiting for work that uses it."""

    wait = False

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        for slot, capacity, size in self.resized(buffers):
            if size > capacity:
                self.reallocate(slot, size, wait=self.wait)
        super().step(buffers, stream, execute)


@mutant("SHADOW-113", "SHADOW-106", "STEP-84", source="ROCm/xla#1001 F9")
class ReallocateOnGrowthAndWait(ReallocateOnGrowth):
    """Replaces the shadow of a slot that has grown, though its address is baked in."""

    wait = True


@mutant("SHADOW-114", "SHADOW-106", "STEP-84")
class ReallocateOnShrink(_Reallocates):
    """Replaces the shadow of a slot that has shrunk."""

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        for slot, capacity, size in self.resized(buffers):
            if size < capacity:
                self.reallocate(slot, size)
        super().step(buffers, stream, execute)


@mutant("SHADOW-115", source="ROCm/xla#1001 F7")
class UnformattedError(Shadows):
    """Reports a shadow that could not be allocated with the place-holders in the text."""

    def allocate_one(self, index: int, size: int) -> int:
        try:
            return super().allocate_one(index, size)
        except SubjectError:
            raise SubjectError(Code.INTERNAL, "no shadow of %d bytes for slot %d") from None


@mutant("SHADOW-115")
class LeakOnAllocationFailure(Shadows):
    """Forgets the shadows made before the one that failed."""

    def allocate(self, small: Iterable[SmallSlot]) -> None:
        try:
            super().allocate(small)
        except SubjectError:
            self.addresses.clear()
            raise


@mutant("SHADOW-116", "STEP-164", source="ROCm/xla#1001 F1")
class ShadowsLeaked(Shadows):
    """Never frees a shadow."""

    def free(self) -> None:
        self.addresses.clear()


@mutant("SHADOW-116", source="ROCm/xla#1001 F12")
class FreeBeforeWait(VaRanges):
    """Frees the shadows before it waits for work that uses them."""

    def give_back(self) -> None:
        self.shadows.free()
        super().give_back()


@mutant("SHADOW-116")
class DoubleFree(Shadows):
    """Frees every shadow twice."""

    def free(self) -> None:
        for shadow in self.addresses.values():
            with suppress(DriverError):
                self.driver.free(shadow)
        super().free()


@mutant("SHADOW-117", "SHADOW-110", source="ROCm/xla#1001 F10")
class CopyInIfMoved(Shadows):
    """Copies in only what lies elsewhere than in the last step, as if nobody else wrote buffers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: dict[int, int] = {}

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        for index, shadow in self.addresses.items():
            if self.seen.get(index) != buffers[index].allocation:
                self.copy(shadow, buffers[index].address, buffers[index].size, stream)
            self.seen[index] = buffers[index].allocation


@mutant("SHADOW-117", "SHADOW-111", source="ROCm/xla#1001 F10")
class CopyBackIfNotRead(Shadows):
    """Takes a slot that is read for one that is not written."""

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        return [index for index in super().written(buffers) if self.slots[index].use is Use.WRITE]


@mutant("SHADOW-118", source="hazard g")
class NoOrderBetweenStreams(InFlight):
    """Lets a step on another stream use shadows that the last step may still be using."""

    def order_behind_last_step(self, stream: int) -> None:
        pass


@mutant("SHADOW-119")
class ThresholdOffIgnored(VaRanges):
    """Without a copy threshold gives a shadow to every slot below one granule."""

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        granularity = self.driver.granularity(self.device).recommended
        return plan(self.selection, buffers, granularity, self.settings.copy_threshold or granularity - 1)


@mutant("SHADOW-160", source="hazard h")
class CopyBackInputs(Shadows):
    """Copies back what execution only reads."""

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        return list(self.addresses)


@mutant("SHADOW-160")
class IgnoresRights(Shadows):
    """Copies back into buffers that the caller may only read."""

    def writable(self, buffer: Buffer) -> bool:
        return True


@mutant("SHADOW-161", source="hazard i")
class EveryShadowCopiesBack(Shadows):
    """Of several slots bound to one written buffer copies every shadow back, stale or not."""

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        written = {buffers[i].allocation for i in self.writers if buffers[i].size}
        return [i for i in self.addresses if buffers[i].allocation in written and self.writable(buffers[i])]


@mutant("SHADOW-161")
class FirstWriterWins(Shadows):
    """Of several slots bound to one buffer takes the first written one for the last."""

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        first = {buffers[i].allocation: i for i in reversed(self.writers) if buffers[i].size}
        return [i for i in self.addresses if first.get(buffers[i].allocation) == i and self.writable(buffers[i])]


MUTANTS = mutant.mutants
