"""The checker against histories written by hand: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

import pytest
from questions import BOUNDS, COSTS, DEVICE, Asked, Then, asked, broken, judged

from vmm_conformance.contracts import AutoBounds, Choice, CopyCosts, DeviceFigures

MIB = 1 << 20
SMALL_AND_LARGE = (64, 4096, MIB, 4096)
PICKED = asked(SMALL_AND_LARGE, 4096, (0, 1, 3))
REFUSED = {"status": "refused", "code": "INVALID_ARGUMENT", "message": "no idea"}
USUAL = DeviceFigures(5_300_000_000_000, 192_000_000_000, 96_000_000_000)
USUAL_COSTS = CopyCosts(1.0, 0.005, 1 / 256)
MANY = (*([256] * 150), *([MIB] * 3), *([4096] * 150))

GOOD = [
    ("a choice", [PICKED], {"AUTO-156": 1, "AUTO-174": 1, "AUTO-175": 1, "AUTO-176": 1, "AUTO-177": 1}),
    ("a larger cutoff that selects the same", [asked(SMALL_AND_LARGE, 5000, (0, 1, 3))], {"AUTO-176": 1}),
    ("no bandwidth", [asked((64,), 0, (), bandwidth=0)], {"AUTO-173": 1, "AUTO-174": 1, "AUTO-176": 1}),
    ("no memory", [asked((64,), 0, (), free=0)], {"AUTO-173": 1}),
    ("nothing to select", [asked((0, 0), 0, ())], {"AUTO-174": 1}),
    ("the same again", [PICKED, PICKED], {"AUTO-170": 1}),
    ("another order", [PICKED, asked(SMALL_AND_LARGE[::-1], 4096, (0, 2, 3))], {"AUTO-170": 1}),
    ("more memory", [asked((64, 64), 0, (), free=1024), PICKED, asked((64, 64), 64, (0, 1))], {"AUTO-171": 1}),
    ("more bandwidth", [asked((64,), 0, (), bandwidth=1), asked((64,), 64, (0,))], {"AUTO-172": 1}),
    ("room for all shadows", [PICKED, Then("allocated", {"shadows": 3, "many": 3, "error": ""})], {"AUTO-157": 1}),
    ("an explicit run", [PICKED, Then("stepped", {"outcome": {"status": "ok"}, "copied": (0, 1, 3)})], {"AUTO-176": 2}),
    (
        "a failed run is no matter of the choice",
        [PICKED, Then("stepped", {"outcome": REFUSED, "copied": ()})],
        {"AUTO-176": 1},
    ),
]

BAD = [
    ("AUTO-156", "a smaller one passed over", [asked((64, 128), 128, (1,))], "a slice of 64 bytes was passed over"),
    ("AUTO-156", "one slice too slow", [asked((64, 300_000), 300_000, (0, 1))], "the copies of one slice take longer"),
    ("AUTO-156", "a step too slow", [asked([64] * 200, 64, range(200))], "the copies of a step take too long"),
    ("AUTO-156", "shadows too large", [asked([64] * 3, 64, range(3), free=4096)], "the shadows take too much"),
    ("AUTO-156", "shadows are rounded", [asked([1] * 3, 1, range(3), free=5000)], "the shadows take too much"),
    (
        "AUTO-157",
        "no room",
        [PICKED, Then("allocated", {"shadows": 2, "many": 3, "error": "alloc: OUT_OF_MEMORY"})],
        "there was memory for 2 of the 3 shadows",
    ),
    ("AUTO-170", "another answer", [PICKED, asked(SMALL_AND_LARGE, 64, (0,))], "had another answer before"),
    ("AUTO-170", "cutoff alone", [PICKED, asked(SMALL_AND_LARGE, 4095, (0, 1, 3))], "had another answer before"),
    ("AUTO-170", "by the order", [PICKED, asked(SMALL_AND_LARGE[::-1], 64, (3,))], "had another answer before"),
    ("AUTO-171", "less with more", [asked((64,), 64, (0,)), asked((64,), 0, (), free=1 << 30)], "less is copied with"),
    ("AUTO-171", "asked downwards", [asked((64,), 0, (), free=1 << 30), asked((64,), 64, (0,))], "less is copied with"),
    ("AUTO-172", "slower on faster", [asked((64,), 64, (0,)), asked((64,), 0, (), bandwidth=10**13)], "less is copied"),
    ("AUTO-173", "no bandwidth", [asked((64,), 64, (0,), bandwidth=0)], "the bandwidth is unknown"),
    ("AUTO-173", "no memory", [asked((64,), 64, (), free=0)], "there is no free memory"),
    ("AUTO-174", "refused", [Asked((64,), REFUSED)], "a question was not answered"),
    ("AUTO-174", "an empty slice", [asked((0, 64), 64, (0, 1))], "slices that are not empty"),
    ("AUTO-174", "twice", [asked((64,), 64, (0, 0))], "ascending indices"),
    ("AUTO-174", "no such slice", [asked((64,), 64, (0, 1))], "ascending indices"),
    ("AUTO-174", "negative", [asked((64,), -1, ())], "no less than 0 bytes"),
    ("AUTO-175", "one of two", [asked((64, 64), 64, (0,))], "of 2 slices of 64 bytes 1 are selected"),
    ("AUTO-176", "the cutoff selects more", [asked((64, 128), 128, (0,))], "selects other slices"),
    ("AUTO-176", "the cutoff selects less", [asked((64, 128), 127, (0, 1))], "selects other slices"),
    (
        "AUTO-176",
        "the executor",
        [PICKED, Then("stepped", {"outcome": {"status": "ok"}, "copied": (0,)})],
        "copies other slices than were chosen",
    ),
    ("AUTO-177", "nothing", [asked(SMALL_AND_LARGE, 0, ())], "1 more of 64 bytes would have kept every declared"),
    ("AUTO-177", "too early", [asked(SMALL_AND_LARGE, 64, (0,))], "2 more of 4096 bytes would have kept"),
    ("AUTO-178", "tensors too", [Asked(MANY, Choice(MIB, tuple(range(303))), USUAL, USUAL_COSTS)], "of a few hundred"),
    ("AUTO-178", "too few", [Asked(MANY, Choice(256, tuple(range(150))), USUAL, USUAL_COSTS)], "of a few hundred"),
]


@pytest.mark.parametrize(("name", "steps", "witnesses"), GOOD, ids=[name for name, *_ in GOOD])
def test_good(name, steps, witnesses):
    verdicts = judged(*steps)
    assert verdicts.findings == []
    assert {id: verdicts.witnesses[id] for id in witnesses} == witnesses


@pytest.mark.parametrize(("id", "name", "steps", "message"), BAD, ids=[f"{id} {name}" for id, name, *_ in BAD])
def test_bad(id, name, steps, message):
    found = [finding for finding in judged(*steps).findings if finding.invariant == id]
    assert found
    assert message in found[0].message


def test_a_usual_mix_is_good_as_a_whole():
    small = tuple(index for index, size in enumerate(MANY) if size <= 4096)
    verdicts = judged(Asked(MANY, Choice(4096, small), USUAL, USUAL_COSTS), bounds=None)
    assert verdicts.findings == []
    assert verdicts.witnesses["AUTO-178"] == 1


VACUOUS = [
    ("AUTO-156", [asked((64,), 0, (), bandwidth=0), asked((0,), 0, ())]),
    ("AUTO-157", [asked((64,), 0, ()), Then("allocated", {"shadows": 0, "many": 0, "error": ""})]),
    ("AUTO-170", [PICKED, asked(SMALL_AND_LARGE, 0, (), free=0), asked((64,), 64, (0,))]),
    ("AUTO-171", [PICKED, asked(SMALL_AND_LARGE, 4096, (0, 1, 3), free=1 << 28, bandwidth=8_000_000_000_000)]),
    ("AUTO-172", [PICKED, Asked(SMALL_AND_LARGE, PICKED.answer, DEVICE, CopyCosts(2.0, 0.005, 0.01))]),
    ("AUTO-173", [PICKED, asked((0, 0), 0, (), free=0)]),
    ("AUTO-175", [asked((64, 128, 128), 64, (0,))]),
    ("AUTO-176", [asked((0,), 0, ()), asked((), 0, ())]),
    ("AUTO-177", [asked((64,), 64, (0,)), asked((64,), 0, (), bandwidth=0)]),
    ("AUTO-178", [Asked(MANY, Choice(0, ()), USUAL, CopyCosts(0.1, 0.005, 1 / 256))]),
    ("AUTO-178", [Asked(MANY, Choice(0, ()), DEVICE, USUAL_COSTS)]),
    ("AUTO-178", [Asked((*MANY, 8192), Choice(0, ()), USUAL, USUAL_COSTS)]),
]


@pytest.mark.parametrize(("id", "steps"), VACUOUS)
def test_vacuous(id, steps):
    assert judged(*steps).witnesses[id] == 0


def test_a_bound_is_judged_beyond_rounding_only():
    slack = CopyCosts(remap_ms=(2 * COSTS.copy_ms + 0.2) / BOUNDS.slice_share, copy_ms=0.005, copy_share=0.01)
    exact = 4_000_000  # 0.1 ms one way
    for size, fine in ((exact, True), (exact + 1, True), (exact + 100, False), (exact - 1, True)):
        verdicts = judged(Asked((size,), Choice(size, (0,)), DEVICE, slack))
        assert ("AUTO-156" not in broken(verdicts)) is fine, size
    for size, fine in ((exact, True), (exact + 100, True), (exact - 1, True), (exact - 100, False)):
        verdicts = judged(Asked((size,), Choice(0, ()), DEVICE, slack))
        assert ("AUTO-177" not in broken(verdicts)) is fine, size


def test_ties_by_index_are_good_where_declared():
    first = asked([64] * 3, 64, (0,), free=2048 + 100)
    assert broken(judged(first, ties="index")) == set()
    assert broken(judged(first)) == {"AUTO-175", "AUTO-176"}
    assert broken(judged(asked([64] * 3, 64, (1,), free=2100), ties="index")) == {"AUTO-175"}
    assert broken(judged(asked([64] * 3, 64, (0,)), ties="index")) == {"AUTO-177"}


def test_without_declared_bounds_the_weakest_hold():
    assert broken(judged(asked([64] * 200, 64, range(200)), bounds=None)) == set()
    assert broken(judged(asked((64,), 0, ()), bounds=None)) == set()
    slow = CopyCosts(remap_ms=0.009, copy_ms=0.005)
    assert broken(judged(Asked((64,), Choice(64, (0,)), DEVICE, slow), bounds=None)) == {"AUTO-156"}
    assert broken(judged(asked([64] * 3, 64, range(3), free=700), bounds=None)) == {"AUTO-156"}


def test_declared_bounds_cannot_be_looser_than_the_weakest():
    loose = AutoBounds(slice_share=5.0, step_ms=1e9, free_share=3.0)
    slow = CopyCosts(remap_ms=0.009, copy_ms=0.005)
    assert "AUTO-156" in broken(judged(Asked((64,), Choice(64, (0,)), DEVICE, slow), bounds=loose))
    assert "AUTO-156" in broken(judged(asked([64] * 3, 64, range(3), free=700), bounds=loose))


def test_an_answer_that_is_none_is_judged_no_further():
    assert broken(judged(asked((64,), -1, (0, 0), free=0))) == {"AUTO-174"}
