"""A failure reads on one screen."""

from __future__ import annotations

import random

import pytest
from handmade import BASE, CATALOGUE, failure

from vmm_conformance.reporting.addressmap import draw, sorted_rows
from vmm_conformance.reporting.screen import Scene, failure_screen

SCENE = Scene("thing 1.2", "host", "thing", ".vmm/programs/ALLOCATOR-1-thing.json")
LONG_SCENE = Scene("a thing", "host", "package.module:attribute,size=4", "report/programs/ALLOCATOR-1.json", 7)


def screen(scene=SCENE, **changes):
    return failure_screen(failure(**changes), CATALOGUE["ALLOCATOR-1"], scene)


def wordy(operations=40):
    """A failure with more of everything than fits."""
    made = failure(operations=operations, repeats="flaky 3/10", consequences=[f"ALLOCATOR-{n}" for n in range(2, 20)])
    made.message = made.expected = made.actual = "block 2 lies inside block 1, which is live. " * 12
    made.outcomes = [f"refused RESOURCE_EXHAUSTED: {n} of 64 blocks are left" for n in range(operations)]
    made.program["configuration"] = {f"setting_{n}": list(range(9)) for n in range(30)}
    for operation in made.program["operations"]:
        operation["writes"] = [[0, 4096]] * 20
    made.map = [
        {
            "address": BASE + n * 12288,
            "size": 4096,
            "label": f"block {n} of the pool for small blocks",
            "marked": n == 20,
        }
        for n in range(40)
    ]
    return made


def test_three_operations(snapshot):
    snapshot("screen_three_operations", screen())


def test_consequences_and_a_long_command(snapshot):
    text = screen(LONG_SCENE, consequences=["ALLOCATOR-2", "STEP-87"], expected="", actual="", map=[])
    snapshot("screen_consequences", text)


def test_more_than_fits(snapshot):
    snapshot("screen_more_than_fits", failure_screen(wordy(), CATALOGUE["ALLOCATOR-1"], LONG_SCENE))


def test_a_failure_before_the_first_and_one_after_the_last_operation(snapshot):
    snapshot("screen_before_first", screen(op=-1))
    snapshot("screen_after_last", screen(op=3, outcomes=["ok", "ok", "ok", "closed"]))


WIDTHS = [60, 80, 120]


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_terminal_by_50_lines_save_for_the_command(width):
    lines = failure_screen(wordy(), CATALOGUE["ALLOCATOR-1"], LONG_SCENE, width=width).splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines[:-1])) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_as_wide_as_the_terminal(snapshot, width):
    usual, long = (
        failure_screen(made, CATALOGUE["ALLOCATOR-1"], LONG_SCENE, width=width) for made in (failure(), wordy())
    )
    snapshot(f"screen_{width}_columns", f"{usual}\n\n{long}")


def test_a_usual_failure_fits_25_lines():
    assert len(screen().splitlines()) <= 26


def rows(*ranges):
    return [{"address": BASE + a, "size": s, "label": label, "marked": label == "bad"} for a, s, label in ranges]


def test_the_map_is_to_scale_and_breaks_gaps(snapshot):
    ranges = rows((0, 1 << 20, "pool"), (0, 1 << 18, "block"), (3 << 18, 1, "bad"), (1 << 40, 1 << 19, "far away"))
    snapshot("map_to_scale", "\n".join(draw(sorted_rows(ranges))))


def test_the_map_does_not_depend_on_where_memory_lies_or_on_the_order():
    ranges = rows((0, 8192, "a"), (4096, 4096, "bad"), (1 << 30, 4096, "b"))
    moved = [{**row, "address": row["address"] + 0x1234_5000} for row in ranges]
    random.Random(1).shuffle(moved)
    assert draw(sorted_rows(ranges)) == draw(sorted_rows(moved))


def test_many_ranges_are_cut_around_the_marked_one():
    lines = draw(sorted_rows(wordy().map))
    assert len(lines) == 12
    assert lines[-1] == "  (30 more ranges elsewhere)"
    assert [line for line in lines if line.startswith(">")]


def test_no_ranges_no_map():
    assert draw([]) == []


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("seed", range(20))
def test_any_map_fits_the_width(seed, width):
    numbers = random.Random(seed)
    ranges = rows(
        *(
            (numbers.randrange(1 << numbers.randrange(1, 45)), numbers.randrange(1 << 22), f"range {n}")
            for n in range(9)
        )
    )
    lines = draw(sorted_rows(ranges), width)
    assert len(lines) == 10
    assert max(map(len, lines)) <= width


def test_absolute_addresses_become_those_of_the_map():
    text = screen(
        message=f"at {BASE + 4096:#x} or {BASE + 16384:#x}", actual=f"{BASE + (1 << 30) + 1:#x}, {1 << 40:#x}"
    )
    assert "at A+0x1000 or A+0x4000\n" in text
    assert "B+0x1, 0x10000000000\n" in text
