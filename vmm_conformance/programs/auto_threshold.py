"""Programs for the contract ``auto-threshold``: questions about one mix of slices that differ in a figure or two.

A question's slices and costs are those of the last `Mix` and `Measure` before it, or the configuration's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from vmm_conformance.contracts import CopyCosts, DeviceFigures
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program

CONTRACT: Final = "auto-threshold"


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """``count`` slices of ``size`` bytes each, one behind the other in slice order."""

    size: int
    count: int = 1


USUAL_COSTS: Final = CopyCosts(remap_ms=1.0, copy_ms=0.005, copy_share=1 / 256)
"""What programs assume of a large device: a remap costs a millisecond, a small copy is slow beside its bandwidth."""


USUAL_DEVICE: Final = DeviceFigures(bandwidth=5_300_000_000_000, capacity=192_000_000_000, free=96_000_000_000)
"""A large device, half full."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The device and what things cost on it, where an operation says nothing else."""

    device: DeviceFigures = USUAL_DEVICE
    costs: CopyCosts = USUAL_COSTS
    slices: tuple[Group, ...] = (Group(4096, 8), Group(1 << 20, 2))


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the choice. A figure that is None is the configuration's; more free than capacity is all of it."""

    free: int | None = None
    bandwidth: int | None = None
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Mix:
    """From now on the slices are these."""

    slices: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Reverse:
    """From now on the same slices stand in the opposite order."""


@dataclass(frozen=True, slots=True)
class Measure:
    """From now on the costs are these."""

    costs: CopyCosts = USUAL_COSTS


@dataclass(frozen=True, slots=True)
class Allocate:
    """Really allocate a shadow for each slice of the last answer, on a driver with that question's free memory.

    Nothing is done before an answer, nor on a driver whose memory cannot be set.
    """


@dataclass(frozen=True, slots=True)
class Step:
    """Run a step of the subject's own step executor with the last answer's cutoff as its copy threshold.

    Nothing is done before an answer, nor where the subject has no step executor, nor with more than 128 MiB
    of slices.
    """


Operation = Ask | Mix | Reverse | Measure | Allocate | Step
OPERATIONS: Final[tuple[type, ...]] = (Ask, Mix, Reverse, Measure, Allocate, Step)

BANDWIDTHS: Final = (
    *(5_300_000_000_000, 8_000_000_000_000, 3_350_000_000_000, 4_800_000_000_000),
    *(0, 20_000_000_000, 1, 6_000_000_000, 900_000_000_000),
)
"""Bytes per second: large devices, unknown, a host, hardly any, small devices."""

CAPACITIES: Final = (192_000_000_000, 80_000_000_000, 1 << 30, 16 << 30, 64 << 20, 288_000_000_000)
"""Bytes of large and small devices."""

SIZES: Final = (
    *(4096, 1, 256, 1024, 4095, 4097, 255, 257, 64, 2048, 8192, 65536, 1 << 20, 0),
    *(4096, 512, 16384, 4 << 20, 131072, 1 << 18, 64 << 20, 4096),
)
"""Bytes of slices, the usual ones and the boundaries first."""

COUNTS: Final = (1, 1, 2, 3, 1, 8, 2, 1, 40, 5, 1, 2, 1, 3, 1, 120, 300)
"""How many slices have the same size."""

REMAPS: Final = (1.0, 1.0, 2.0, 0.6, 0.02, 0.0, 8.0)
COPIES: Final = (0.005, 0.005, 0.001, 0.05, 0.0, 0.0002)
SHARES: Final = (1 / 256, 1 / 64, 1.0, 1 / 1024)
"""Parts of `CopyCosts`: milliseconds of a remap and of a copy, and a copy's share of the bandwidth."""

MULTIPLES: Final = (1, 2, 4, 8, 12, 16, 17, 20, 24, 32, 64)
"""Free memory in terms of the bytes of slices: whatever fraction of it a subject takes, one is near."""

LENGTHS: Final = (25, 37)
"""Fewest and most operations of a drawn program whose bytes do not run out."""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for; ``pins`` fixes fields of its configuration."""
    choices = Choices(data)
    configuration = replace(_configuration(choices), **(pins or {}))
    draw = _Draw(choices, configuration)
    length = LENGTHS[0] + choices.below(LENGTHS[1] - LENGTHS[0] + 1)
    operations: list[Operation] = []
    while len(operations) < length and not choices.exhausted:
        operations.append(draw.operation())
    return Program(CONTRACT, configuration, tuple(operations))


def _configuration(choices: Choices) -> Configuration:
    capacity = choices.pick(CAPACITIES)
    free = choices.pick((capacity // 2, capacity // 4, capacity, capacity // 40, capacity // 80))
    alignment = choices.pick((256, 256, 1, 4096))
    device = DeviceFigures(choices.pick(BANDWIDTHS[:4]), capacity, free, alignment)
    return Configuration(device, _costs(choices), _mix(choices))


def _costs(choices: Choices) -> CopyCosts:
    if not choices.chance(128):
        return USUAL_COSTS
    return CopyCosts(choices.pick(REMAPS), choices.pick(COPIES), choices.pick(SHARES))


def _mix(choices: Choices) -> tuple[Group, ...]:
    return tuple(Group(choices.pick(SIZES), choices.pick(COUNTS)) for _ in range(1 + choices.below(8)))


class _Draw:
    """Draws operations; the kinds are a swarm subset, drawn per program."""

    def __init__(self, choices: Choices, configuration: Configuration) -> None:
        self._choices = choices
        self._device = configuration.device
        self._slices = configuration.slices
        self._asked: list[Ask] = []
        makers: tuple[tuple[Callable[[], Operation], int], ...] = (
            (self._with_free, 6), (self._with_bandwidth, 4), (self._again, 5), (self._with_all, 2),
            (self._new_mix, 2), (Reverse, 2), (self._new_costs, 1), (self._step, 1), (Allocate, 2),
        )  # fmt: skip
        kept = choices.subset(makers, keep=200)
        self._wheel = [self._plain, *(make for make, weight in kept for _ in range(weight))]

    def operation(self) -> Operation:
        """The next operation. The first is a question: other kinds are about one."""
        made = self._choices.pick(self._wheel)() if self._asked else self._plain()
        if isinstance(made, Ask):
            self._asked.append(made)
        elif isinstance(made, Step):
            self._wheel.remove(self._step)  # by far the slowest kind
        return made

    def _plain(self) -> Ask:
        return Ask()

    def _with_free(self) -> Ask:
        return Ask(free=self._free())

    def _with_bandwidth(self) -> Ask:
        return Ask(bandwidth=self._choices.pick(BANDWIDTHS))

    def _with_all(self) -> Ask:
        free = self._free()
        return Ask(free, self._choices.pick(BANDWIDTHS), self._choices.pick(CAPACITIES))

    def _again(self) -> Ask:
        return self._choices.pick(self._asked)

    def _new_mix(self) -> Mix:
        self._slices = _mix(self._choices)
        return Mix(self._slices)

    def _new_costs(self) -> Measure:
        return Measure(_costs(self._choices))

    def _step(self) -> Operation:
        """A step, where that has few buffers to make."""
        return Step() if sum(group.count for group in self._slices) <= 24 else self._plain()

    def _free(self) -> int:
        """Parts of the capacity; the bytes of all slices, and of the smaller ones, several times over."""
        choices, capacity = self._choices, self._device.capacity
        kind = choices.below(8)
        if kind == 0:
            return 0
        if kind <= 2:
            return capacity // choices.pick((1, 2, 4, 8, 16, 32, 60, 64, 70))
        largest = max(self._slices) if kind >= 5 else choices.pick(self._slices)
        whole = sum(group.size * group.count for group in self._slices if group <= largest)
        aside = capacity // 64 if choices.chance(128) else 0
        return max(0, min(capacity, aside + whole * choices.pick(MULTIPLES) - choices.below(2)))
