"""What copying costs, by the contract's cost model, and which declared bounds that breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from vmm_conformance.contracts import AutoBounds, CopyCosts, DeviceFigures

SLACK: Final = 1e-6
"""Part of a bound that rounding may be about."""

SMALL: Final = 4096
"""Bytes of a small slice: the cutoff that was once found by hand."""
LARGE: Final = 1 << 20
"""Bytes from which a slice is large."""


class Load(NamedTuple):
    """Slices that are copied: how many, their bytes, and the bytes of their shadows."""

    slices: int = 0
    size: int = 0
    footprint: int = 0


class Broken(NamedTuple):
    """A bound that does not hold."""

    what: str
    limit: str
    actual: str


class Model:
    """The cost of copying slices on one device, and the bounds on it."""

    def __init__(self, device: DeviceFigures, costs: CopyCosts, bounds: AutoBounds) -> None:
        self._alignment = max(1, device.alignment)
        self._rate = device.bandwidth * costs.copy_share / 1000
        self._copy_ms = costs.copy_ms
        self._slice_ms = bounds.slice_share * costs.remap_ms
        self._step_ms = bounds.step_ms
        self._room = bounds.free_share * max(0.0, device.free - bounds.reserve_share * device.capacity)
        self.known = self._rate > 0

    def load(self, sizes: Sequence[int], before: Load = Load()) -> Load:  # noqa: B008 (it is immutable)
        """``before`` and slices of ``sizes`` bytes more."""
        footprint = sum((size + self._alignment - 1) // self._alignment for size in sizes) * self._alignment
        return Load(before.slices + len(sizes), before.size + sum(sizes), before.footprint + footprint)

    def broken(self, largest: int, load: Load, side: int = 1) -> list[Broken]:
        """The bounds that ``load`` breaks, clearly so; with ``side`` -1 those that it does not clearly keep."""
        one, all_ms = self._ms(1, largest), self._ms(load.slices, load.size)
        measured = (
            ("the copies of one slice take longer than its share of a remap", one, self._slice_ms, "ms"),
            ("the copies of a step take too long together", all_ms, self._step_ms, "ms"),
            ("the shadows take too much of the free memory", load.footprint, self._room, "bytes"),
        )
        return [
            Broken(what, f"at most {limit:.9g} {unit}", f"{actual:.9g} {unit}")
            for what, actual, limit, unit in measured
            if actual > limit * (1 + side * SLACK)
        ]

    def _ms(self, count: int, size: int) -> float:
        """Milliseconds per step of copying ``count`` slices of ``size`` bytes together, in and back."""
        return 2 * (count * self._copy_ms + size / self._rate)


def is_usual(device: DeviceFigures, costs: CopyCosts, slices: Sequence[int]) -> bool:
    """Whether this is a large device with room, on which a remap costs a millisecond or a few, and a mix of a
    few hundred small slices beside large ones with nothing in between. The ranges are ours."""
    small = sum(1 for size in slices if 0 < size <= SMALL)
    return (
        3e12 <= device.bandwidth <= 8e12
        and 64e9 <= device.capacity <= 4 * device.free
        and device.alignment <= SMALL
        and 0.6 <= costs.remap_ms <= 3
        and 0.001 <= costs.copy_ms <= 0.005
        and 1 / 256 <= costs.copy_share <= 1 / 250
        and 100 <= small <= 500
        and all(0 <= size <= SMALL or size >= LARGE for size in slices)
        and small < len(slices)
    )
