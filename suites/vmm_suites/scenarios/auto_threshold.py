"""Scenarios of the contract ``auto-threshold``: public figures, each bound in turn, and what lies at their edges.

Public are bandwidth and capacity. Free memory, costs and mixes are ours: half of the capacity is taken, and
costs are those of `USUAL_COSTS`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.contracts import CopyCosts, DeviceFigures
from vmm_conformance.programs.auto_threshold import (
    USUAL_COSTS,
    USUAL_DEVICE,
    Allocate,
    Ask,
    Configuration,
    Group,
    Measure,
    Mix,
    Operation,
    Reverse,
    Step,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario

MIB: Final = 1 << 20
GB: Final = 10**9
TB: Final = 10**12


class Public(NamedTuple):
    """Public figures of a device: bytes per second, and bytes."""

    name: str
    bandwidth: int
    capacity: int


DEVICES: Final = (
    Public("mi300x", 5_300 * GB, 192 * GB),
    Public("mi355x", 8 * TB, 288 * GB),
    Public("h100", 3_350 * GB, 80 * GB),
    Public("h200", 4_800 * GB, 141 * GB),
)

LLAMA: Final = (
    *(Group(32 * MIB, 1), Group(4096, 96), Group(16, 64), Group(11 * MIB, 4), Group(256, 65)),
    *(Group(2048, 80), Group(4, 30), Group(MIB, 16), Group(0, 2)),
)
"""A mix as a large language model has it: 335 slices of 4 KiB and less, and 21 tensors of a MiB and more."""

SMALL: Final = (Group(64, 6), Group(4096, 6), Group(4097, 2), Group(65536, 2), Group(MIB, 2))


def _scenario(
    name: str, configuration: Configuration, operations: tuple[Operation, ...], numbers: tuple[int, ...], note: str
) -> Scenario:
    program = Program("auto-threshold", configuration, operations)
    return Scenario(f"auto-threshold-{name}", program, tuple(f"AUTO-{number}" for number in numbers), note)


def _public(device: Public) -> Scenario:
    """The table test of one device."""
    figures = DeviceFigures(device.bandwidth, device.capacity, device.capacity // 2)
    operations = (
        *(Ask(), Allocate(), Step(), Ask(free=device.capacity // 4), Reverse(), Ask(), Ask(free=device.capacity)),
        *(Ask(free=0), Ask(bandwidth=0), Ask(free=device.capacity // 50), Allocate()),
    )
    note = f"public figures of {device.name}: small slices of a language model beside its tensors"
    return _scenario(
        device.name, Configuration(figures, USUAL_COSTS, LLAMA), operations,
        (156, 157, 170, 171, 173, 174, 175, 176, 177, 178), note,
    )  # fmt: skip


BOUNDS: Final = (
    _scenario(
        "remap-binds",
        Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(512, 4), Group(2048, 4), Group(3000, 4), Group(4096, 4))),
        (
            *(Measure(CopyCosts(0.52, 0.005, 1 / 256)), Ask(), Measure(CopyCosts(0.51, 0.005, 1 / 256)), Ask()),
            *(Measure(CopyCosts(0.504, 0.005, 1 / 256)), Ask(), Measure(CopyCosts(0.1, 0.005, 1 / 256)), Ask(), Step()),
            *(Measure(CopyCosts(0.0, 0.005, 1 / 256)), Ask(), Measure(CopyCosts(0.0, 0.0, 1.0)), Ask()),
        ), (156, 176, 177),
        "remaps get cheaper until one costs no more than copying: the bound on one slice decides, below 4 KiB",
    ),
    _scenario(
        "step-binds",
        Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(16, 300), Group(256, 200), Group(1024, 300), Group(4096, 300))),
        (Ask(), Allocate(), Ask(bandwidth=8 * TB), Reverse(), Ask(), Step()), (156, 157, 170, 172, 176, 177),
        "a thousand slices, each cheap to copy by itself: the bound on the whole step decides, below 4 KiB",
    ),
    _scenario(
        "memory-binds",
        Configuration(
            DeviceFigures(5_300 * GB, 64 * MIB, 2 * MIB),
            USUAL_COSTS,
            (Group(256, 40), Group(1024, 40), Group(4096, 80)),
        ),
        (
            *(Ask(), Allocate(), Ask(free=3 * MIB), Allocate(), Ask(free=8 * MIB), Allocate(), Ask(free=MIB), Step()),
            *(Ask(free=200_000), Allocate(), Ask(free=1), Allocate(), Ask(free=0), Ask(free=64 * MIB), Allocate()),
        ), (156, 157, 171, 173, 176, 177),
        "a device that is nearly full: the bound on the shadows' memory decides, below 4 KiB",
    ),
    _scenario(
        "beyond-4-KiB",
        Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(4096, 8), Group(4097, 8), Group(16384, 8), Group(65536, 4))),
        (Ask(), Allocate(), Step(), Ask(bandwidth=900 * GB), Ask(bandwidth=50 * GB)), (156, 157, 172, 175, 176, 177),
        "slices a little larger than 4 KiB are as cheap to copy; slower devices take fewer",
    ),
    _scenario(
        "rounded-shadows",
        Configuration(DeviceFigures(8 * TB, 16 * MIB, 8 * MIB, 4096), USUAL_COSTS, (Group(1, 100), Group(2, 200))),
        (Ask(), Ask(free=16 * MIB), Ask(free=2 * MIB), Allocate()), (156, 171, 177),
        "tiny slices on a device that rounds each shadow up to 4 KiB: what counts is the rounded size",
    ),
)  # fmt: skip

EDGES: Final = (
    _scenario(
        "nothing-known", Configuration(USUAL_DEVICE, USUAL_COSTS, SMALL),
        (
            *(Ask(bandwidth=0), Ask(free=0), Ask(free=0, bandwidth=0), Allocate(), Step(), Ask(), Ask(bandwidth=1)),
            *(Ask(free=0, capacity=0), Allocate()),
        ), (171, 172, 173, 174),
        "no bandwidth, no free memory, or neither; then figures that are known",
    ),
    _scenario(
        "empty-slices", Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(0, 3), Group(1, 2), Group(0, 1))),
        (Ask(), Allocate(), Step(), Mix((Group(0, 4),)), Ask(), Allocate(), Step(), Mix(), Ask(), Allocate(), Step()),
        (156, 157, 174, 175, 176),
        "empty slices between small ones, then nothing but empty slices, then none at all",
    ),
    _scenario(
        "one-byte-apart", Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(4095, 2), Group(4096, 2), Group(4097, 2))),
        (
            *(Measure(CopyCosts(0.5197, 0.005, 1 / 256)), Ask(), Step()),
            *(Measure(CopyCosts(0.51978, 0.005, 1 / 256)), Ask(), Step(), Measure(CopyCosts(0.51979, 0.005, 1 / 256))),
            *(Ask(), Step(), Measure(CopyCosts(0.5198, 0.005, 1 / 256)), Ask(), Step()),
        ), (156, 174, 176, 177),
        "sizes that differ by a byte, with remap costs around those of their copies: the cutoff is exact",
    ),
    _scenario(
        "asked-again", Configuration(USUAL_DEVICE, USUAL_COSTS, SMALL),
        (
            *(Ask(), Ask(free=96 * GB // 4), Ask(bandwidth=8 * TB), Ask(), Ask(bandwidth=TB), Reverse(), Ask()),
            *(Mix((Group(5),)), Ask(), Mix(SMALL), Ask(), Ask(bandwidth=TB)),
            *(Ask(free=0), Ask(), Ask(free=0), Ask(free=0)),
        ), (170, 171, 172, 173),
        "the same question before and after others, and with its slices the other way round",
    ),
    _scenario(
        "free-memory-in-steps", Configuration(USUAL_DEVICE, USUAL_COSTS, (Group(1024, 64), Group(65536, 64))),
        tuple(Ask(free=free * GB) for free in (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 192, 7, 6)), (171, 177),
        "free memory grows beyond what 32 bits hold, to all of the device's",
    ),
    _scenario(
        "bandwidth-in-steps", Configuration(USUAL_DEVICE, USUAL_COSTS, SMALL),
        tuple(Ask(bandwidth=b * GB) for b in (1, 3, 4, 5, 9, 50, 500, 900, 3350, 4800, 5300, 8000, 20000, 5000)),
        (156, 172, 177),
        "bandwidth grows from a disk's to beyond every device's",
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (*(_public(device) for device in DEVICES), *BOUNDS, *EDGES)
