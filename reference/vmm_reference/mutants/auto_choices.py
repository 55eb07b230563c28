"""Automatic choices of the copy threshold that get one thing wrong each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vmm_conformance.contracts import Choice, CopyCosts, DeviceFigures
from vmm_reference.auto_threshold import (
    FREE_SHARE,
    NOTHING,
    SLICE_SHARE,
    STEP_MS,
    AutoThreshold,
    Load,
)


def within(slices: Sequence[int], cutoff: int) -> Choice:
    """What an explicit threshold of ``cutoff`` bytes selects."""
    return Choice(cutoff, tuple(index for index, size in enumerate(slices) if 0 < size <= cutoff))


# -- AUTO-156: smallest first, three bounds


class AlwaysFourKiB(AutoThreshold):
    """Takes 4 KiB, the cutoff that did best on one model, for every device, mix and moment."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return within(slices, 4096)


class FourKiBWhereKnown(AutoThreshold):
    """Takes 4 KiB wherever the figures are known."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return within(slices, 4096) if self.known(device) else NOTHING


class LargestFirst(AutoThreshold):
    """Admits the largest slices first, since they have the most to win."""

    def groups(self, slices: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        return reversed([*super().groups(slices)])


class AsTheyCome(AutoThreshold):
    """Admits slices in the order of their indices, as long as the bounds hold."""

    def groups(self, slices: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        return iter([(size, [index]) for index, size in enumerate(slices) if size > 0])


class EachByItself(AutoThreshold):
    """Checks each slice by itself and never what they come to together."""

    def with_group(self, load: Load, size: int, count: int, device: DeviceFigures, costs: CopyCosts) -> Load:
        return super().with_group(Load(), size, 1, device, costs)


class NoRemapBound(AutoThreshold):
    """Does not compare the copies of a slice with a remap."""

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        return load.ms <= STEP_MS and load.footprint <= FREE_SHARE * self.spare(device)


class NoStepBound(AutoThreshold):
    """Does not look at what the copies of a step take together."""

    def with_group(self, load: Load, size: int, count: int, device: DeviceFigures, costs: CopyCosts) -> Load:
        return super().with_group(load, size, count, device, costs)._replace(ms=0.0)


class NoMemoryBound(AutoThreshold):
    """Does not look at the memory that shadows take."""

    def with_group(self, load: Load, size: int, count: int, device: DeviceFigures, costs: CopyCosts) -> Load:
        return super().with_group(load, size, count, device, costs)._replace(footprint=0)


class CopiesInOnly(AutoThreshold):
    """Forgets that a slice is also copied back."""

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        return super().copy_ms(size, device, costs) / 2


class BytesOnly(AutoThreshold):
    """Reckons with the bandwidth alone: a queued copy by itself is taken to cost nothing."""

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        return super().copy_ms(size, device, replace(costs, copy_ms=0.0))


class WholeBandwidth(AutoThreshold):
    """Lets one copy have all of the device's bandwidth."""

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        return super().copy_ms(size, device, replace(costs, copy_share=1.0))


class BareBytes(AutoThreshold):
    """Counts the bytes of slices, not those that the device sets aside for their shadows."""

    def shadow(self, size: int, device: DeviceFigures) -> int:
        return size


class OneOfEach(AutoThreshold):
    """Counts each size once, however many slices have it."""

    def with_group(self, load: Load, size: int, count: int, device: DeviceFigures, costs: CopyCosts) -> Load:
        return super().with_group(load, size, 1, device, costs)


class OneTooMany(AutoThreshold):
    """Stops behind the first size that breaks a bound, not before it."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        larger = [size for size in slices if size > chosen.cutoff]
        return within(slices, min(larger)) if larger and self.known(device) else chosen


# -- AUTO-157: never out of memory


class TotalMemory(AutoThreshold):
    """Takes its fraction of all memory, not of what is free."""

    def spare(self, device: DeviceFigures) -> float:
        return super().spare(replace(device, free=device.capacity))


class FreeAtStart(AutoThreshold):
    """Goes on with the most free memory it has ever been told of."""

    def __init__(self) -> None:
        self.most = 0

    def spare(self, device: DeviceFigures) -> float:
        self.most = max(self.most, device.free)
        return super().spare(replace(device, free=self.most))


class FreeInKiB(AutoThreshold):
    """Takes the figure of free memory for KiB."""

    def spare(self, device: DeviceFigures) -> float:
        return super().spare(replace(device, free=1024 * device.free))


# -- AUTO-177: nothing left out without a reason


class Off(AutoThreshold):
    """Never copies anything."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        return NOTHING


class AllOrNothing(AutoThreshold):
    """Gives up where not all slices fit the bounds."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen = super().choose(device, slices, costs)
        return chosen if len(chosen.selected) == sum(1 for size in slices if size > 0) else NOTHING


class CapAtPage(AutoThreshold):
    """Never goes beyond 4 KiB, whatever the bounds allow."""

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        return size <= 4096 and super().fits(size, load, device, costs)


class Timid(AutoThreshold):
    """Keeps to half of each bound that it declares."""

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        return (
            2 * self.copy_ms(size, device, costs) <= SLICE_SHARE * costs.remap_ms
            and 2 * load.ms <= STEP_MS
            and 2 * load.footprint <= FREE_SHARE * self.spare(device)
        )


# -- AUTO-178: the mix that it was made for


class TinyOnly(AutoThreshold):
    """Never goes beyond 1 KiB."""

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        return size <= 1024 and super().fits(size, load, device, costs)


class LargeToo(AutoThreshold):
    """Copies everything that copies are faster for than a remap, tensors too."""

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        return self.copy_ms(size, device, costs) <= costs.remap_ms and load.footprint <= self.spare(device) / 2
