"""The contract ``auto-threshold``: which slices are copied rather than remapped, chosen from figures of a device.

A *slice* is a slot's buffer. A copied slice has a shadow at a fixed address and costs two copies at each
step, in and back. The cost model is part of the contract, so that a choice can be judged whatever formula
it came from. One slice of ``n`` bytes takes, in milliseconds at each step,

    2 * (copy_ms + 1000 * n / (bandwidth * copy_share))

and its shadow takes ``n`` bytes rounded up to ``alignment``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """One device: its memory's ``bandwidth`` in bytes per second, 0 where unknown; the rest in bytes.

    ``free`` is what is free now, at most ``capacity``. ``alignment`` is what one plain allocation is
    rounded up to.
    """

    bandwidth: int
    capacity: int
    free: int
    alignment: int = 256


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """What can be measured on a driver (``vmm-conformance probe`` does), times in milliseconds.

    ``remap_ms``: map, set_access and unmap of one small slice. ``copy_ms``: what any queued copy takes,
    however small. ``copy_share``: the part of the device's bandwidth that one copy alone gets.
    """

    remap_ms: float
    copy_ms: float
    copy_share: float = 1.0


@dataclass(frozen=True, slots=True)
class AutoBounds:
    """What a subject's choices keep to (AUTO-156), as it declares them.

    The copies of one slice take at most ``slice_share`` of a remap. Those of all selected slices take at
    most ``step_ms`` milliseconds a step. The shadows take at most ``free_share`` of the free memory that
    is left when ``reserve_share`` of the capacity is put aside. All shares are from 0 to 1.
    """

    slice_share: float
    step_ms: float
    free_share: float
    reserve_share: float = 0.0


class Choice(NamedTuple):
    """``cutoff``: slices of 1 to so many bytes are copied, 0 is none. ``selected``: their indices, ascending."""

    cutoff: int
    selected: tuple[int, ...]


AutoThreshold = Callable[[DeviceFigures, Sequence[int], CopyCosts], Choice]
"""``auto_threshold(device, slices, costs)``: the choice for slices of these sizes, in bytes.

A pure function: what was asked before has no part in the answer.
"""
