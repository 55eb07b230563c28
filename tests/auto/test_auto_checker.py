"""The checker against histories written by hand: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

from dataclasses import replace

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
    ("AUTO-170", "a larger cutoff", [PICKED, asked(SMALL_AND_LARGE, 5000, (0, 1, 3))], "had another answer before"),
    ("AUTO-170", "by the order", [PICKED, asked(SMALL_AND_LARGE[::-1], 64, (3,))], "had another answer before"),
    ("AUTO-171", "less with more", [asked((64,), 64, (0,)), asked((64,), 0, (), free=1 << 30)], "less is copied with"),
    ("AUTO-171", "asked downwards", [asked((64,), 0, (), free=1 << 30), asked((64,), 64, (0,))], "less is copied with"),
    ("AUTO-172", "slower on faster", [asked((64,), 64, (0,)), asked((64,), 0, (), bandwidth=10**13)], "less is copied"),
    ("AUTO-173", "no bandwidth", [asked((64,), 64, (0,), bandwidth=0)], "the bandwidth is unknown"),
    ("AUTO-173", "no memory", [asked((64,), 64, (), free=0)], "there is no free memory"),
    ("AUTO-174", "refused", [Asked((64,), REFUSED)], "a question was not answered"),
    ("AUTO-174", "an empty slice", [asked((0, 64), 64, (0, 1))], "slices that are not empty"),
    ("AUTO-174", "twice", [asked((64,), 64, (0, 0))], "ascending indices"),
    ("AUTO-174", "descending", [asked((64, 64), 64, (1, 0))], "ascending indices"),
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
    slices = (*MANY, 1)
    small = tuple(index for index, size in enumerate(slices) if size <= 4096)
    verdicts = judged(Asked(slices, Choice(4096, small), USUAL, USUAL_COSTS), bounds=None)
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
]


@pytest.mark.parametrize(("id", "steps"), VACUOUS)
def test_vacuous(id, steps):
    assert judged(*steps).witnesses[id] == 0


SMALL = (0, MIB, *([1, 4096] * 250))
USUAL_RANGES = [
    ("bandwidth", (3_000_000_000_000, 8_000_000_000_000), (2_999_999_999_999, 8_000_000_000_001)),
    ("capacity", (64_000_000_000, 384_000_000_000), (63_999_999_999, 384_000_000_001)),
    ("alignment", (1, 4096), (8192,)),
    ("remap_ms", (0.6, 3.0), (0.1, 0.59, 3.01)),
    ("copy_ms", (0.001, 0.005), (0.0009, 0.0051)),
    ("copy_share", (1 / 256, 1 / 250), (1 / 257, 1 / 249)),
    ("slices", (SMALL[:102], SMALL), (SMALL[:101], (*SMALL, 1))),
    ("slices", ((*MANY, 0), (*MANY, 1), (*MANY, 4096), (*MANY, MIB)), ((*MANY, 4097), (*MANY, MIB - 1))),
]
"""What is the same with one figure changed: as it is usual, and as it is not."""


@pytest.mark.parametrize(("figure", "inside", "outside"), USUAL_RANGES)
def test_what_is_usual_ends_with_its_ranges(figure, inside, outside):
    for value in (*inside, *outside):
        device, costs = ({figure: value} if hasattr(each, figure) else {} for each in (USUAL, USUAL_COSTS))
        slices = value if figure == "slices" else MANY
        question = Asked(slices, Choice(0, ()), replace(USUAL, **device), replace(USUAL_COSTS, **costs))
        assert judged(question, bounds=None).witnesses["AUTO-178"] == (value in inside), value


SLOW = replace(DEVICE, bandwidth=100_000)
"""A byte takes 1 ms each way."""
HALF = CopyCosts(remap_ms=1e9, copy_ms=0.5, copy_share=0.01)
BY_HAND = [
    ("a step", 10.0, 9.9, "step_ms", Asked((2, 2), Choice(2, (0, 1)), SLOW, HALF)),
    ("shadows of one byte", 1.0, 0.9, "free_share", asked((1,) * 3, 1, (0, 1, 2), free=3, alignment=1)),
    ("a millionth", 1.0, 0.9, "free_share", asked((10_000_010,), 10**8, (0,), free=10_000_000, alignment=1)),
    ("shadows where no alignment is known", 1.0, 0.9, "free_share", asked((1,), 1, (0,), free=1, alignment=0)),
]


@pytest.mark.parametrize(("name", "kept", "broken_by", "bound", "asked"), BY_HAND, ids=[name for name, *_ in BY_HAND])
def test_what_is_copied_costs_what_the_model_says(name, kept, broken_by, bound, asked):
    wide = AutoBounds(slice_share=1.0, step_ms=1e9, free_share=1.0)
    assert "AUTO-156" not in broken(judged(asked, bounds=replace(wide, **{bound: kept})))
    assert "AUTO-156" in broken(judged(asked, bounds=replace(wide, **{bound: broken_by})))


def test_one_slice_more_is_counted_with_those_that_are_copied():
    """The smaller one takes 5 ms, and both take 12."""
    one = Asked((2, 3), Choice(2, (0,)), SLOW, HALF)
    for step_ms, more in ((11.9, False), (12.1, True)):
        bounds = AutoBounds(slice_share=1.0, step_ms=step_ms, free_share=1.0)
        assert ("AUTO-177" in broken(judged(one, bounds=bounds))) is more


def test_there_is_no_room_where_all_that_is_free_is_put_aside():
    bounds = AutoBounds(slice_share=1.0, step_ms=1.0, free_share=1.0, reserve_share=0.5)
    assert "AUTO-156" in broken(judged(asked((1,), 1, (0,), free=1, alignment=1), bounds=bounds))


def test_a_bound_is_judged_beyond_rounding_only():
    slack = CopyCosts(remap_ms=(2 * COSTS.copy_ms + 0.2) / BOUNDS.slice_share, copy_ms=0.005, copy_share=0.01)
    exact = 4_000_000  # 0.1 ms one way
    for size, fine in ((exact, True), (exact + 1, True), (exact + 6, False), (exact - 1, True)):
        verdicts = judged(Asked((size,), Choice(size, (0,)), DEVICE, slack))
        assert ("AUTO-156" not in broken(verdicts)) is fine, size
    for size, fine in ((exact, True), (exact + 100, True), (exact - 1, True), (exact - 6, False)):
        verdicts = judged(Asked((size,), Choice(0, ()), DEVICE, slack))
        assert ("AUTO-177" not in broken(verdicts)) is fine, size


def test_ties_by_index_are_good_where_declared():
    first = asked([64] * 3, 64, (0,), free=2048 + 100)
    assert broken(judged(first, ties="index")) == set()
    assert broken(judged(first)) == {"AUTO-175", "AUTO-176"}
    assert broken(judged(asked([64] * 3, 64, (1,), free=2100), ties="index")) == {"AUTO-175"}
    assert broken(judged(asked([64] * 3, 64, (0,)), ties="index")) == {"AUTO-177"}
    assert broken(judged(asked([64] * 3, 64, (0,), free=4200), ties="index")) == {"AUTO-177"}, "one more has room"


@pytest.mark.parametrize(
    ("slices", "selected", "good"),
    [((32, 64), (0,), True), ((64, 128), (0, 1), False), ((32, 64, 64), (1,), False)],
    ids=["none of the tie", "one above the cutoff", "none below the cutoff"],
)
def test_a_tie_may_be_split_at_the_cutoff_and_nowhere_else(slices, selected, good):
    assert ("AUTO-176" not in broken(judged(asked(slices, 64, selected), ties="index"))) is good


@pytest.mark.parametrize(("before", "after"), [((0,), (0, 1)), ((0, 1), (0,))])
def test_another_part_of_a_tie_is_another_answer(before, after):
    answers = [asked((64, 64), 64, selected) for selected in (before, after)]
    assert "AUTO-170" in broken(judged(*answers, ties="index"))


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
