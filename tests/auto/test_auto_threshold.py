"""The contract ``auto-threshold``: programs, the runner, and the reference against public figures."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from itertools import pairwise

import pytest

from vmm_conformance.contracts import Choice, Code, CopyCosts, DeviceFigures, SubjectError
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.auto_threshold import (
    OPERATIONS,
    Allocate,
    Ask,
    Configuration,
    Group,
    Measure,
    Mix,
    Reverse,
    Step,
    decode,
)
from vmm_conformance.programs.files import dump, load
from vmm_conformance.programs.program import Program
from vmm_conformance.running.auto_threshold import run
from vmm_reference.auto_threshold import (
    BOUNDS,
    DEFAULT_COSTS,
    FREE_SHARE,
    RESERVE_SHARE,
    SLICE_SHARE,
    STEP_MS,
    AutoThreshold,
    auto_threshold,
)
from vmm_reference.subject import reference
from vmm_suites.scenarios.auto_threshold import DEVICES, LLAMA, Public

GB = 10**9
PLENTY = DeviceFigures(5_300 * GB, 192 * GB, 96 * GB)


def drawn(seed: int = 0, count: int = 200) -> list[Program]:
    source = random.Random(seed)
    return [decode(source.randbytes(400)) for _ in range(count)]


# -- programs


def test_programs_are_long_and_read_back_equal() -> None:
    programs = drawn()
    assert statistics.median(len(program.operations) for program in programs) >= 25
    assert {type(operation) for program in programs for operation in program.operations} == set(OPERATIONS)
    for program in programs[:50]:
        assert load(dump(program)) == program


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 400, bytes(range(256))])
def test_any_bytes_are_a_program(data: bytes) -> None:
    assert decode(data).contract == "auto-threshold"


def test_pins_fix_the_configuration() -> None:
    data = random.Random(1).randbytes(400)
    assert decode(data, {"device": PLENTY}).configuration.device == PLENTY


# -- the runner


def notes(program: Program, subject: object = reference):
    history = run(program, subject, HostDriver)
    return [event.args for event in history if event.kind == "note"]


def ends(program: Program, subject: object = reference):
    history = run(program, subject, HostDriver)
    return [event.args[0] for event in history if event.kind == "end"]


MIX = (Group(64, 2), Group(4 << 20))


def program_of(*operations, device: DeviceFigures = PLENTY, slices=MIX) -> Program:
    return Program("auto-threshold", Configuration(device, slices=slices), operations)


def test_questions_follow_the_operations() -> None:
    operations = (Ask(), Mix((Group(0), Group(7, 2))), Reverse(), Measure(CopyCosts(2.0, 0.001)), Ask(5, 6, 3))
    first, second = (details for what, details in notes(program_of(*operations)) if what == "asked")
    assert first == {"device": PLENTY, "slices": (64, 64, 4 << 20), "costs": Configuration().costs}
    assert second["slices"] == (7, 7, 0)
    assert second["costs"] == CopyCosts(2.0, 0.001)
    assert second["device"] == replace(PLENTY, free=3, bandwidth=6, capacity=3), "never more free than there is"


def test_shadows_are_really_allocated() -> None:
    class Greedy:
        def auto_threshold(self, device, slices, costs):
            return Choice(max(slices), tuple(range(len(slices))))

    device = DeviceFigures(10**12, 10 << 20, 100)
    assert notes(program_of(Ask(), Allocate(), device=device), Greedy())[-1] == (
        "allocated",
        {
            "question": 1,
            "shadows": 1,
            "many": 3,
            "error": "alloc: OUT_OF_MEMORY: 64 bytes asked for on device 0, which has 36 bytes free",
        },
    )
    assert notes(program_of(Ask(free=128), Allocate(), device=device), Greedy())[-1][1]["shadows"] == 2
    assert notes(program_of(Ask(free=8 << 20), Allocate(), device=device), Greedy())[-1][1]["shadows"] == 3


def test_a_step_shows_what_is_copied() -> None:
    what, details = notes(program_of(Ask(), Step()))[-1]
    assert (what, details["outcome"]["status"], details["copied"]) == ("stepped", "ok", (0, 1))


def test_what_has_nothing_to_go_by_is_skipped() -> None:
    class Bare:
        auto_threshold = staticmethod(auto_threshold)

    assert [end["status"] for end in ends(program_of(Allocate(), Step(), Ask()))] == ["skipped", "skipped", "ok"]
    assert ends(program_of(Ask(), Step()), Bare())[-1]["message"] == "the subject has no step executor"
    large = program_of(Ask(), Step(), slices=(Group(64 << 20, 3),))
    assert ends(large)[-1]["message"] == "the slices have more than 134217728 bytes together"


def test_a_subject_that_fails_is_recorded_and_not_let_through() -> None:
    class Refuses:
        def auto_threshold(self, *_):
            raise SubjectError(Code.INTERNAL, "not today")

    class Confused:
        def auto_threshold(self, *_):
            return 4096

    assert [end["status"] for end in ends(program_of(Ask(), Allocate()), Refuses())] == ["refused", "skipped"]
    (crash,) = ends(program_of(Ask()), Confused())
    assert (crash["status"], crash["code"]) == ("crashed", "TypeError")
    assert crash["message"] == "auto_threshold returned 4096 where a Choice (cutoff, selected) was expected"


# -- the reference


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("taken", [0.0, 0.5, 0.75, 0.9])
def test_small_slices_of_a_language_model(device: Public, taken: float) -> None:
    """By default, all slices of 4 KiB and less are copied, and no tensor of a MiB and more."""
    slices = [group.size for group in LLAMA for _ in range(group.count)]
    figures = DeviceFigures(device.bandwidth, device.capacity, int(device.capacity * (1 - taken)))
    choice = auto_threshold(figures, slices)
    assert choice.cutoff == 4096
    assert choice.selected == tuple(index for index, size in enumerate(slices) if 0 < size <= 4096)
    assert len(choice.selected) > 300


TABLE = [
    ("mi300x", 102_400, 105_600),
    ("mi355x", 155_000, 157_000),
    ("h100", 65_000, 66_000),
    ("h200", 93_000, 95_000),
]


@pytest.mark.parametrize(("name", "most", "beyond"), TABLE)
def test_largest_slice_by_bandwidth(name: str, most: int, beyond: int) -> None:
    """Where memory is plentiful and slices few, the bandwidth decides how large a slice may be."""
    device = next(device for device in DEVICES if device.name == name)
    figures = DeviceFigures(device.bandwidth, device.capacity, device.capacity // 2)
    assert auto_threshold(figures, [most, beyond]) == Choice(most, (0,))


def test_each_bound_decides_somewhere() -> None:
    """And 4 KiB is right for none of these."""
    costs, one = DEFAULT_COSTS, AutoThreshold().copy_ms(1000, PLENTY, DEFAULT_COSTS)
    remap = replace(costs, remap_ms=one / SLICE_SHARE)
    assert auto_threshold(PLENTY, [999, 1000, 1001, 4096], remap) == Choice(1000, (0, 1))
    fits = int(STEP_MS / one)
    assert len(auto_threshold(PLENTY, [1000] * fits).selected) == fits
    assert auto_threshold(PLENTY, [*[1000] * fits, 1100]) == Choice(1000, tuple(range(fits)))
    assert auto_threshold(PLENTY, [*[1000] * (fits + 1), 900]) == Choice(900, (fits + 1,))
    free = int(10 * 1024 / FREE_SHARE + RESERVE_SHARE * PLENTY.capacity) + 1
    full = replace(PLENTY, free=free)
    assert auto_threshold(full, [*[1000] * 9, 1024, 1025]) == Choice(1024, tuple(range(10)))
    assert auto_threshold(replace(full, free=free - 2), [*[1000] * 9, 1024]) == Choice(1000, tuple(range(9)))


def test_all_that_may_be_taken_is_taken() -> None:
    """A footprint of exactly the share, and one byte of free memory less."""
    device = DeviceFigures(5_300 * GB, 0, int(4096 / FREE_SHARE), alignment=4096)
    assert auto_threshold(device, [100]) == Choice(100, (0,))
    assert auto_threshold(replace(device, free=device.free - 1), [100]) == Choice(0, ())


@pytest.mark.parametrize("figures", [{"bandwidth": 0}, {"free": 0}, {"bandwidth": 0, "free": 0}])
def test_nothing_known_nothing_copied(figures: dict[str, int]) -> None:
    assert auto_threshold(replace(PLENTY, **figures), [1, 64]) == Choice(0, ())


def test_empty_slices_take_no_part() -> None:
    assert auto_threshold(PLENTY, [0, 5, 0]) == Choice(5, (1,))
    assert auto_threshold(PLENTY, [0, 0]) == auto_threshold(PLENTY, []) == Choice(0, ())


def test_more_memory_and_more_bandwidth_never_copy_less() -> None:
    source = random.Random(3)
    slices = [source.choice((0, 1, 64, 4096, 5000, 65536, 1 << 20)) for _ in range(200)]
    reserve = int(RESERVE_SHARE * PLENTY.capacity)
    by_free = [auto_threshold(replace(PLENTY, free=reserve + more), slices) for more in range(0, 6 * 10**7, 250_000)]
    by_bandwidth = [auto_threshold(replace(PLENTY, bandwidth=1 << power), slices) for power in range(20, 60)]
    for choices in (by_free, by_bandwidth):
        assert all(a.cutoff <= b.cutoff and len(a.selected) <= len(b.selected) for a, b in pairwise(choices))
        assert len({choice.cutoff for choice in choices}) > 3


def test_the_declared_bounds_are_those_of_the_formula() -> None:
    assert reference.capabilities["auto_bounds"] == BOUNDS
    assert (BOUNDS.slice_share, BOUNDS.step_ms, BOUNDS.free_share, BOUNDS.reserve_share) == (1 / 50, 6, 1 / 16, 1 / 64)
    assert (BOUNDS.slice_share, BOUNDS.step_ms) == (SLICE_SHARE, STEP_MS)
    assert (BOUNDS.free_share, BOUNDS.reserve_share) == (FREE_SHARE, RESERVE_SHARE)
