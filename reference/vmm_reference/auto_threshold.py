"""The automatic copy threshold: which slices are cheaper to copy at each step than to remap when they move.

The source's own formula is not public. What is known of it: it looks at the bandwidth, the capacity and
the free memory of the device, admits the smallest slices first, and keeps three bounds. The formula and
every number below are ours.

Slices are admitted in ascending order of size, all of one size together, for as long as

(a) the copies of one such slice take at most `SLICE_SHARE` of a remap,
(b) the copies of all admitted slices take at most `STEP_MS` milliseconds a step, and
(c) their shadows, each rounded up, take at most `FREE_SHARE` of the memory that is free now beyond a reserve
    of `RESERVE_SHARE` of the capacity.

The size admitted last is the cutoff, so an explicit run with that threshold copies the same slices
(AUTO-176). Each bound loosens, and none tightens, as free memory or bandwidth grows: so does the choice
(AUTO-171, AUTO-172).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from vmm_conformance.contracts import AutoBounds, Choice, CopyCosts, DeviceFigures

SLICE_SHARE: Final = 1 / 50
"""Ours. A slice is copied at every step and remapped only when it moves: copying pays if that is at least once
in fifty steps."""

STEP_MS: Final = 6.0
"""Ours: the least that shadows are publicly reported to save in one step, 6 to 13 ms (ROCm/xla#925). Copies that
took longer would eat it up."""

FREE_SHARE: Final = 1 / 16
"""Ours. What is free now has other takers: the step's own buffers, and other executables' shadows."""

RESERVE_SHARE: Final = 1 / 64
"""Ours. The last of a device's memory is left to allocations that cannot be done without."""

BOUNDS: Final = AutoBounds(SLICE_SHARE, STEP_MS, FREE_SHARE, RESERVE_SHARE)

DEFAULT_COSTS: Final = CopyCosts(remap_ms=1.0, copy_ms=0.005, copy_share=1 / 256)
"""Ours, for a large device that was not measured. Public is only that a remap there takes milliseconds."""

COPIES: Final = 2
"""Copies of a slice per step: in, and back."""

NOTHING: Final = Choice(0, ())


class Load(NamedTuple):
    """What copying some slices costs: milliseconds per step, and bytes of shadows."""

    ms: float = 0.0
    footprint: int = 0


class AutoThreshold:
    """Chooses by the formula above. Holds no state: equal questions have equal answers (AUTO-170)."""

    def choose(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        """The cutoff in bytes, and the slices it selects, ascending by index (AUTO-174)."""
        if not self.known(device):
            return NOTHING
        chosen, load = NOTHING, Load()
        for size, indices in self.groups(slices):
            load = self.with_group(load, size, len(indices), device, costs)
            if not self.fits(size, load, device, costs):
                break
            chosen = Choice(size, (*chosen.selected, *indices))
        return Choice(self.cutoff(chosen, slices), tuple(sorted(chosen.selected)))

    def known(self, device: DeviceFigures) -> bool:
        """Whether there is anything to go by, and to take; else nothing is copied (AUTO-173)."""
        return device.bandwidth > 0 and device.free > 0

    def groups(self, slices: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """The slices of each size, smallest first (AUTO-156), and all of one size together (AUTO-175).

        Empty slices have nothing to copy, and never take part (AUTO-174).
        """
        ascending = sorted((size, index) for index, size in enumerate(slices) if size > 0)
        for size, group in groupby(ascending, key=lambda pair: pair[0]):
            yield size, [index for _, index in group]

    def with_group(self, load: Load, size: int, count: int, device: DeviceFigures, costs: CopyCosts) -> Load:
        """``load`` and ``count`` more slices of ``size`` bytes."""
        ms = load.ms + count * self.copy_ms(size, device, costs)
        return Load(ms, load.footprint + count * self.shadow(size, device))

    def copy_ms(self, size: int, device: DeviceFigures, costs: CopyCosts) -> float:
        """Milliseconds that the copies of one slice take at each step."""
        rate = device.bandwidth * costs.copy_share
        return COPIES * (costs.copy_ms + 1000 * size / rate)

    def shadow(self, size: int, device: DeviceFigures) -> int:
        """Bytes that the device sets aside for a shadow of ``size`` bytes."""
        return -(-size // device.alignment) * device.alignment

    def fits(self, size: int, load: Load, device: DeviceFigures, costs: CopyCosts) -> bool:
        """Whether all three bounds hold with ``load``, whose largest slice has ``size`` bytes (AUTO-156)."""
        return (
            self.copy_ms(size, device, costs) <= SLICE_SHARE * costs.remap_ms
            and load.ms <= STEP_MS
            and load.footprint <= FREE_SHARE * self.spare(device)
        )

    def spare(self, device: DeviceFigures) -> float:
        """Bytes that are free beyond the reserve. What is free counts, not what there is (AUTO-157)."""
        return max(0.0, device.free - RESERVE_SHARE * device.capacity)

    def cutoff(self, chosen: Choice, slices: Sequence[int]) -> int:
        """The copy threshold that stands for ``chosen``: the largest size in it (AUTO-176)."""
        return chosen.cutoff


def auto_threshold(device: DeviceFigures, slices: Sequence[int], costs: CopyCosts = DEFAULT_COSTS) -> Choice:
    """The choice for slices of these sizes, in bytes."""
    return AutoThreshold().choose(device, slices, costs)
