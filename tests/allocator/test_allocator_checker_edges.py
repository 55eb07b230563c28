"""The checker where a rule just holds, and where it just does not: histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stories import FIRST, A, B, G, Story, broken

from vmm_conformance.contracts import Access, Range

ONE, TWO, OTHER = b"11111111", b"22222222", b"33333333"
Tell = Callable[[Story], None]


def opened(tell: Tell, **header: object) -> Story:
    story = Story(**header)
    story.open()
    tell(story)
    return story


# -- contents


@pytest.mark.parametrize(("at", "by", "stays"), [
    (8, 0, True), (8, 16, True), (24, 8, True), (12, 8, False), (8, 12, False),
])  # fmt: skip
def test_a_token_is_awaited_until_a_byte_of_it_is_overwritten(at: int, by: int, stays: bool) -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.write(1, ONE, offset=at)
        s.write(1, TWO, offset=by)
        s.read(1, OTHER, offset=at)

    assert broken(opened(tell)) == (["ALLOCATOR-4"] if stays else [])


def test_half_a_token_is_not_compared() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.write(1, ONE)
        s.read(1, ONE[:4], size=4)

    story = opened(tell)
    assert broken(story) == []
    assert story.judged().witnesses["ALLOCATOR-4"] == 0


@pytest.mark.parametrize(("size", "kept"), [(100, True), (99, False)])
def test_a_token_that_was_cut_by_shrinking_is_not_awaited_behind_the_next_growth(size: int, kept: bool) -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A, 200)
        s.write(1, ONE, offset=92)
        for name, asked in (("shrink", size), ("grow", 200)):
            s.call(name, block=1, size=asked, stream=FIRST)
            s.gave_block(1, asked, A, G)
        s.read(1, OTHER, offset=92)

    assert broken(opened(tell)) == (["ALLOCATOR-6"] if kept else [])


@pytest.mark.parametrize("found", [TWO, OTHER])
def test_a_block_may_be_larger_than_its_address(found: bytes) -> None:
    def tell(s: Story) -> None:
        s.allocate(1, G, 3 * G, committed=3 * G)
        s.write(1, ONE)
        s.write(1, TWO, offset=2 * G)
        s.read(1, found, offset=2 * G)
        s.read(1, ONE)

    findings = opened(tell).judged().findings
    assert [(each.invariant, each.range) for each in findings] == (
        [] if found == TWO else [("ALLOCATOR-4", Range(3 * G, len(TWO)))]
    )


# -- reasons


@pytest.mark.parametrize(("kind", "args", "status", "excused"), [
    ("reserve", (4 * G, 0, 0), 2, True), ("map", (B, 4 * G, 9, 0), 2, True), ("create", (4 * G, 0, 0), 2, False),
    ("alloc", (4 * G, 0, 0), 2, False), ("reserve", (4 * G, 0, 0), 1, False), ("map", (B, 4 * G, 9, 0), 999, False),
])  # fmt: skip
def test_a_request_may_be_short_of_addresses_and_mappings(
    kind: str, args: tuple[int, ...], status: int, excused: bool
) -> None:
    """Where there is memory, and the driver says that it is out of them."""

    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
        s.subject(kind, *args, status=status)
        s.refused("RESOURCE_EXHAUSTED")

    assert broken(opened(tell)) == ([] if excused else ["ALLOCATOR-9"])


@pytest.mark.parametrize("where", [0, 1])
@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize("gone", [False, True])
def test_memory_that_could_not_be_given_back_is_taken_on_its_device_until_it_goes(
    where: int, asked: int, gone: bool
) -> None:
    """Five of eight granules are, of which somebody wants four."""

    def tell(s: Story) -> None:
        s.open(device=1)
        s.call("allocate", device=where, block=1, size=5 * G, stream=FIRST, space=0)
        s.subject("create", 5 * G, where, 0, result=9)
        s.subject("map", A, 5 * G, 9, 0, status=999, result="injected")
        s.subject("release", 9, status=999, result="injected")
        s.refused("UNKNOWN")
        if gone:
            s.call("trim", device=where)
            s.subject("release", 9)
            s.gave()
        s.call("allocate", device=asked, block=2, size=4 * G, stream=FIRST, space=0)
        s.subject("create", 4 * G, asked, 0, status=2)
        s.refused()

    assert broken(opened(tell)) == ([] if where == asked and not gone else ["ALLOCATOR-9"])


# -- what a finding names


def test_a_call_that_fails_for_no_reason_has_the_failure_of_its_own_block_to_blame() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.call("deallocate", block=1, stream=FIRST)
        s.subject("event_create", 0, status=999, result="injected")
        s.refused("UNKNOWN")
        s.call("allocate", block=2, size=100, stream=FIRST, space=0)
        s.subject("reserve", G, 0, 0, status=999, result="injected")
        s.refused("UNKNOWN")
        s.call("deallocate", block=1, stream=FIRST)
        s.refused("INTERNAL")

    story = opened(tell)
    [poisoned] = [each for each in story.judged().findings if each.invariant == "ALLOCATOR-7"]
    assert story.history.events[poisoned.cause or 0].args[1] == {
        "name": "deallocate", "device": 0, "block": 1, "stream": FIRST,
    }  # fmt: skip
    assert poisoned.op == 4


def test_of_all_that_is_left_and_of_all_errors_the_first_is_named() -> None:
    def tell(s: Story) -> None:
        s.call("allocate", block=1, size=100, stream=FIRST, space=0)
        s.subject("reserve", G, 0, 0, result=A)
        s.subject("create", 2 * G, 0, 0, result=9)
        s.subject("map", A, G, 9, 0, status=2, result="injected")
        s.subject("event_create", 0, status=1, result="injected")
        s.subject("event_destroy", 50, status=999, result="injected")
        s.refused("UNKNOWN")

    story = opened(tell)
    left, last = story.judged().findings
    reserve, _, refused = [event.seq for event in story.history if event.kind in ("reserve", "create", "map")]
    assert (left.range, left.cause) == (Range(A, G), reserve)
    assert last.cause == refused


def test_what_is_left_is_told_by_the_close_that_left_it() -> None:
    def tell(s: Story) -> None:
        s.call("trim")
        s.subject("event_create", 0, result=50)
        s.gave()
        s.close()
        s.open()
        s.close()

    assert [each.op for each in opened(tell).judged().findings] == [2]


def test_a_block_that_was_wrong_from_the_start_is_told_once() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A, rights=None)
        for rights in (Access.READ_WRITE, Access.NONE):
            s.call("trim")
            s.subject("set_access", A, G, ((0, rights),))
            s.gave()

    assert [(each.invariant, each.op) for each in opened(tell).judged().findings] == [("ALLOCATOR-2", 1)]


# -- calls that a subject reports


@pytest.mark.parametrize("reported", [True, False])
def test_what_a_driver_of_the_subjects_own_accepts_is_not_legal_for_it(reported: bool) -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.call("trim")
        s.subject("create", G // 2, 0, 0, result=9)
        s.subject("release", 9)
        s.gave()

    story = opened(tell, reported=reported, reaches={0: (1,), 1: (0,)})
    assert broken(story) == (["ALLOCATOR-2"] if reported else [])
