"""Automatic choices of the copy threshold that answer wrongly: without reason, upside down, beside the question."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmm_conformance.contracts import Choice, Code, CopyCosts, DeviceFigures, SubjectError
from vmm_reference.auto_threshold import FREE_SHARE, NOTHING, AutoThreshold
from vmm_reference.mutants.auto_choices import within
from vmm_reference.step_executor import SkipRemapExecutor
from vmm_reference.va_ranges import StepSettings

# -- AUTO-170: equal questions, equal answers


class ThrowsDice(AutoThreshold):
    """Chooses nothing now and then."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return NOTHING if random.random() < 0.25 else super().choose(device, slices, costs)


class SlowToFall(AutoThreshold):
    """Never goes below half of the cutoff that it gave last."""

    def __init__(self) -> None:
        self.last = 0

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        self.last = max(self.last // 2, super().choose(device, slices, costs).cutoff)
        return within(slices, self.last)


class FreeOfLast(AutoThreshold):
    """Goes by the free memory of the question before."""

    def __init__(self) -> None:
        self.free = 1

    def spare(self, device: DeviceFigures) -> float:
        return super().spare(replace(device, free=self.free))

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        self.free = device.free
        return chosen


class FirstSlices(AutoThreshold):
    """Looks at the first dozen slices, to save time, and takes their cutoff for all."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return within(slices, super().choose(device, slices[:12], costs).cutoff)


# -- AUTO-171: not less with more free memory


class UsedMemory(AutoThreshold):
    """Takes the memory in use for the memory that is free."""

    def spare(self, device: DeviceFigures) -> float:
        return super().spare(replace(device, free=device.capacity - device.free))


class FreeIn32Bits(AutoThreshold):
    """Keeps free memory in 32 bits."""

    def spare(self, device: DeviceFigures) -> float:
        return FREE_SHARE * (device.free & 0xFFFF_FFFF)


class LessWithRoom(AutoThreshold):
    """Copies half as much where more than half of the memory is free, lest it be wasted."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        return within(slices, chosen.cutoff // 2) if 2 * device.free > device.capacity else chosen


# -- AUTO-172: not less with more bandwidth


class UpsideDown(AutoThreshold):
    """Lets copies take longer, the more bandwidth there is."""

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        upside_down = replace(device, bandwidth=max(1, 28_000_000_000_000_000_000_000_000 // device.bandwidth))
        return super().copy_ms(size, upside_down, costs)


class BandwidthIn32Bits(AutoThreshold):
    """Keeps the bandwidth in 32 bits."""

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        kept = max(1, device.bandwidth & 0xFFFF_FFFF)
        return super().copy_ms(size, replace(device, bandwidth=kept), costs)


class SlowDevicesOnly(AutoThreshold):
    """Leaves everything to remaps where the bandwidth is above 6 TB/s."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return NOTHING if device.bandwidth > 6e12 else super().choose(device, slices, costs)


# -- AUTO-173: nothing known, nothing copied


class UnknownIsFast(AutoThreshold):
    """Takes an unknown bandwidth for a boundless one."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return super().choose(replace(device, bandwidth=device.bandwidth or 10**30), slices, costs)


class UnknownIsUsual(AutoThreshold):
    """Falls back to 4 KiB where the bandwidth is unknown."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return super().choose(device, slices, costs) if device.bandwidth else within(slices, 4096)


class NoFreeIsAllFree(AutoThreshold):
    """Takes no free memory for an unknown figure, and goes by the capacity."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return super().choose(replace(device, free=device.free or device.capacity), slices, costs)


# -- AUTO-174: every question has an answer


class SelectsEmpty(AutoThreshold):
    """Selects empty slices along with the small ones."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        empty = [index for index, size in enumerate(slices) if not size] if chosen.selected else []
        return Choice(chosen.cutoff, tuple(sorted([*chosen.selected, *empty])))


class DividesByBandwidth(AutoThreshold):
    """Fails where the bandwidth is unknown."""

    def known(self, device: DeviceFigures) -> bool:
        return device.free > 0


class RefusesWhenFull(AutoThreshold):
    """Refuses to answer where no memory is free."""

    def known(self, device: DeviceFigures) -> bool:
        if not device.free:
            raise SubjectError(Code.RESOURCE_EXHAUSTED, "auto threshold: no memory is free")
        return super().known(device)


class MinusOne(AutoThreshold):
    """Says -1 where nothing is worth copying."""

    def cutoff(self, chosen: Choice, slices: Sequence[int]) -> int:
        return chosen.cutoff if chosen.selected else -1


class ListedTwice(AutoThreshold):
    """Lists each selected slice twice, once for each copy."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        return Choice(chosen.cutoff, tuple(index for index in chosen.selected for _ in range(2)))


# -- AUTO-175: ties


class SplitsTies(AutoThreshold):
    """Admits equally large slices one by one, and stops among them."""

    def groups(self, slices: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        return iter([(size, [index]) for size, indices in super().groups(slices) for index in indices])


class OneOfASize(AutoThreshold):
    """Forgets all but one slice of each size."""

    def groups(self, slices: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        return iter([(size, indices[:1]) for size, indices in super().groups(slices)])


# -- AUTO-176: the same as an explicit run with the cutoff


class NextCutoff(AutoThreshold):
    """Gives the first size that was not selected as the cutoff."""

    def cutoff(self, chosen: Choice, slices: Sequence[int]) -> int:
        return min((size for size in slices if size > chosen.cutoff), default=chosen.cutoff)


class ExclusiveCutoff(AutoThreshold):
    """Gives a cutoff that is one below the largest size selected."""

    def cutoff(self, chosen: Choice, slices: Sequence[int]) -> int:
        return max(0, chosen.cutoff - 1)


class RoundedCutoff(AutoThreshold):
    """Rounds the cutoff up to the next power of two."""

    def cutoff(self, chosen: Choice, slices: Sequence[int]) -> int:
        return 1 << (chosen.cutoff - 1).bit_length() if chosen.cutoff else 0


class ExclusiveExecutor(SkipRemapExecutor):
    """Copies slices below the threshold, and remaps those that have exactly its size."""

    def settings_in_force(self) -> StepSettings:
        settings = super().settings_in_force()
        return settings._replace(copy_threshold=max(0, settings.copy_threshold - 1))


class DeafExecutor(SkipRemapExecutor):
    """Takes 4 KiB for any threshold above that."""

    def settings_in_force(self) -> StepSettings:
        settings = super().settings_in_force()
        return settings._replace(copy_threshold=min(4096, settings.copy_threshold))
