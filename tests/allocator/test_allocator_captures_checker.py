"""The checker against captures written by hand: what is called while one is under way, and what stays for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stories import FIRST, SECOND, A, B, C, G, Story, broken

from vmm_conformance.contracts import Range

SERVED, TRIMMED, QUIET, KEPT = "ALLOCATOR-9", "ALLOCATOR-12", "ALLOCATOR-19", "ALLOCATOR-20"
Tell = Callable[[Story], None]


def opened(tell: Tell, device: int = 0) -> Story:
    story = Story()
    story.open(device=device)
    tell(story)
    return story


def begin(s: Story, device: int = 0) -> None:
    s.call("begin_capture", device=device, stream=FIRST)
    s.gave()
    s.harness("graph_begin", FIRST)


def end(s: Story) -> None:
    s.harness("graph_end", FIRST, result=90)
    s.harness("graph_instantiate", 90, result=91)
    s.call("end_capture", stream=FIRST)
    s.gave()


def drop(s: Story) -> None:
    s.call("drop_capture", stream=FIRST)
    s.gave()


def captured(s: Story, block: int = 1, size: int = G) -> None:
    """Captured work uses a block that was allocated and freed while the capture was under way."""
    begin(s)
    s.allocate(block, A, size, committed=size)
    s.launch(FIRST, reads=(Range(A, 8),))
    s.deallocate(block)
    end(s)


# -- what is called


ASKED: list[tuple[str, tuple[int, ...], bool]] = [
    ("stream_synchronize", (FIRST,), True), ("stream_synchronize", (SECOND,), False),
    ("stream_query", (FIRST,), True), ("stream_query", (SECOND,), False), ("stream_query", (FIRST - 1,), False),
    ("stream_wait_event", (FIRST, SECOND), True), ("stream_wait_event", (SECOND, FIRST), False),
    ("event_record", (SECOND, FIRST), True), ("event_record", (FIRST, SECOND), False),
    ("stream_destroy", (FIRST,), True), ("stream_destroy", (SECOND,), False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "args", "loud"), ASKED)
def test_the_captured_stream_is_left_alone_and_no_other_nor_an_event_of_its_number(
    kind: str, args: tuple[int, ...], loud: bool
) -> None:
    def tell(s: Story) -> None:
        begin(s)
        s.call("trim")
        s.subject(kind, *args)
        s.gave()

    assert broken(opened(tell)) == ([QUIET] if loud else [])


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("named", [0, 1])
def test_the_device_of_the_captured_stream_is_not_waited_for(device: int, named: int) -> None:
    def tell(s: Story) -> None:
        begin(s, device)
        s.call("trim", device=device)
        s.subject("device_synchronize", named)
        s.gave()

    assert broken(opened(tell, device)) == ([QUIET] if named == device else [])


def test_what_a_call_has_taken_excuses_nothing_else_that_it_gives_back() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        begin(s)
        s.call("trim")
        s.subject("reserve", G, 0, 0, result=B)
        s.subject("release", 1)
        s.gave()

    assert broken(opened(tell)) == [QUIET]


# -- what stays


def test_what_captured_work_uses_goes_to_no_older_block_either() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, B)
        captured(s, block=2)
        s.call("grow", block=1, size=2 * G, stream=FIRST)
        s.subject("reserve", 2 * G, 0, 0, result=C)
        s.show(C, handle=1)
        s.show(C + G, handle=2)
        s.gave_block(1, 2 * G, C, 2 * G)

    assert broken(opened(tell)) == [KEPT]


@pytest.mark.parametrize("dropped", [True, False])
def test_a_block_that_was_allocated_under_a_capture_is_kept_until_that_is_dropped(dropped: bool) -> None:
    def tell(s: Story) -> None:
        begin(s)
        s.allocate(1, A)
        s.launch(FIRST, reads=(Range(A, 8),))
        end(s)
        if dropped:
            drop(s)
        s.call("deallocate", block=1, stream=FIRST)
        s.unback(A, handle=1)
        s.gave()

    story = opened(tell)
    assert broken(story) == ([] if dropped else [KEPT])
    assert story.judged().witnesses[KEPT] == (not dropped)


@pytest.mark.parametrize("under_way", [True, False])
def test_an_older_block_is_kept_if_it_is_freed_under_a_capture(under_way: bool) -> None:
    """Behind that the caller keeps what captured work uses: a block that it frees then is no longer used."""

    def tell(s: Story) -> None:
        s.allocate(1, A)
        begin(s)
        s.launch(FIRST, reads=(Range(A, 8),))
        if not under_way:
            end(s)
        s.deallocate(1)
        if under_way:
            end(s)
        s.call("trim")
        s.unback(A, handle=1)
        s.gave()

    assert broken(opened(tell)) == ([KEPT] if under_way else [])


@pytest.mark.parametrize("replay", ["never", "not over", "over"])
def test_what_was_captured_is_idle_when_it_is_dropped_and_its_launch_is_over(replay: str) -> None:
    """Of a stream that had no work nobody can tell."""

    def tell(s: Story) -> None:
        captured(s)
        if replay != "never":
            s.harness("graph_launch", 91, FIRST, result=7)
        if replay == "over":
            s.harness("stream_synchronize", FIRST)
        drop(s)
        s.call("trim")
        s.gave()

    assert broken(opened(tell)) == ([TRIMMED] if replay == "over" else [])


# -- what is short for it


@pytest.mark.parametrize("live", [True, False])
def test_memory_that_is_kept_for_captured_work_is_taken_once(live: bool) -> None:
    """Five of eight granules are: of a block that has but one of them, or by one that a failed call could not take."""

    def tell(s: Story) -> None:
        if live:
            begin(s)
            s.call("allocate", block=1, size=100, stream=FIRST, space=0)
            s.back(A, handle=1, size=5 * G)
            s.gave_block(1, 100, A, G)
            end(s)
        else:
            captured(s, size=5 * G)
            s.call("trim")
            s.subject("unmap", A, 5 * G, status=999, result="injected")
            s.refused("UNKNOWN")
        s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
        s.subject("create", 4 * G, 0, 0, status=2)
        s.refused()

    assert broken(opened(tell)) == []


def test_a_closed_allocator_keeps_nothing_for_work_that_it_could_not_drop() -> None:
    def tell(s: Story) -> None:
        captured(s, size=5 * G)
        s.call("drop_capture", stream=FIRST)
        s.subject("event_create", 0, status=999, result="injected")
        s.refused("UNKNOWN")
        s.call("close")
        s.unback(A, handle=1, size=5 * G)
        s.gave()
        s.open()
        s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
        s.subject("create", 4 * G, 0, 0, status=2)
        s.refused()

    assert broken(opened(tell)) == [SERVED]
