"""The checker against histories of optional parts: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from stories import FIRST, RW, SECOND, A, B, G, Story, broken

from vmm_conformance.contracts import Access

ONE, TWO = b"11111111", b"22222222"
Tell = Callable[[Story], None]


def opened(tell: Tell, **header: object) -> Story:
    story = Story(**header)
    story.open()
    tell(story)
    return story


def one_block(s: Story) -> None:
    s.allocate(1, A)


def shrunk(s: Story) -> None:
    """Two pieces, the second of which goes behind its stream."""
    two_pieces(s)
    s.write(1, TWO, offset=G)
    s.call("shrink", block=1, size=100, stream=FIRST)
    s.gave_block(1, 100, A, G)
    s.read(1, ONE)
    s.subject("stream_synchronize", FIRST)
    s.subject("unmap", A + G, G)
    s.subject("release", 2)


def two_pieces(s: Story) -> None:
    s.call("allocate", block=1, size=2 * G, stream=FIRST, space=0)
    s.subject("reserve", 2 * G, 0, 0, result=A)
    for handle in (1, 2):
        s.subject("create", G, 0, 0, result=handle)
        s.show(A + (handle - 1) * G, handle=handle)
    s.gave_block(1, 2 * G, A, 2 * G)
    s.write(1, ONE)


def trimmed(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.deallocate(1)
    s.harness("stream_synchronize", FIRST)
    s.call("trim")
    s.unback(A, handle=1)
    s.gave()


def trimmed_with_work_pending(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.deallocate(1)
    s.call("trim")
    s.gave()


def trimmed_behind_a_wait(s: Story) -> None:
    """The stream's own work is over, but it waits for another's: what is freed on it is not over."""
    s.allocate(1, A)
    s.write(1, ONE)
    s.allocate(2, B, stream=SECOND)
    s.write(2, TWO, stream=SECOND)
    s.harness("stream_synchronize", FIRST)
    s.harness("event_create", 0, result=7)
    s.harness("event_record", 7, SECOND)
    s.harness("stream_wait_event", FIRST, 7)
    s.deallocate(1)
    s.call("trim")
    s.gave()


def trimmed_while_held(s: Story) -> None:
    """A stream that is held has got no further than the hold, whatever was submitted."""
    s.allocate(1, A)
    s.write(1, ONE)
    s.harness("stream_synchronize", FIRST)
    s.hold()
    s.deallocate(1)
    s.call("trim")
    s.gave()


def trimmed_while_held_before_all_work(s: Story) -> None:
    s.allocate(1, A)
    s.hold()
    s.deallocate(1)
    s.call("trim")
    s.gave()


def trimmed_behind_other_work(s: Story) -> None:
    """Nothing has used the block; it was given up on a stream that is busy."""
    s.allocate(1, A)
    s.launch(SECOND)
    s.deallocate(1, stream=SECOND)
    s.call("trim")
    s.gave()


def trimmed_behind_a_move(s: Story) -> None:
    """What a block had before it was grown was given up on a stream that is busy."""
    s.allocate(1, A)
    s.launch(FIRST)
    s.call("grow", block=1, size=200, stream=FIRST)
    s.back(B, handle=2)
    s.gave_block(1, 200, B, G)
    s.call("trim")
    s.gave()


def trimmed_here(s: Story) -> None:
    """What another device's allocator has is its own; so is what the caller has."""
    s.call("open", device=1)
    s.subject("create", G, 1, 0, result=1)
    s.gave()
    s.harness("create", G, 0, 0, result=2)
    s.call("trim")
    s.gave()


def paused(s: Story, *, backup: bool = True) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("pause", backup=backup)
    s.subject("device_synchronize", 0)
    s.subject("unmap", A, G)
    s.subject("release", 1)
    s.gave()


def pause_refused(s: Story, *, code: str = "UNKNOWN") -> None:
    """The second unmap is refused; so is mapping the first block again, which another call does."""
    s.allocate(1, A)
    s.allocate(2, B)
    s.call("pause", backup=False)
    s.subject("device_synchronize", 0)
    s.subject("unmap", A, G)
    s.subject("unmap", B, G, status=999, result="injected")
    s.subject("map", A, G, 1, 0, status=2, result="injected")
    s.refused(code)
    s.call("trim")
    s.show(A, handle=1)
    s.gave()


def pause_reports_undo(s: Story) -> None:
    pause_refused(s, code="OUT_OF_MEMORY")


def pause_refused_for_two_reasons(s: Story) -> None:
    s.allocate(1, A)
    s.call("pause", backup=False)
    s.subject("unmap", A, G, status=999, result="injected")
    s.subject("release", 1, status=2, result="injected")
    s.refused()


def pause_refused_at_its_backup(s: Story) -> None:
    """What the backup had taken cannot all be given back either."""
    s.allocate(1, A)
    s.call("pause", backup=True)
    s.subject("reserve", G, 0, 0, result=B)
    s.subject("map", B, G, 1, 0, status=2, result="injected")
    s.subject("address_free", B, G, status=999, result="injected")
    s.refused()


def paused_after_a_pause(s: Story) -> None:
    """An allocator that was closed while it was paused; the next one is not."""
    paused(s)
    s.call("close")
    s.subject("address_free", A, G)
    s.gave()
    s.open()
    s.allocate(2, A)
    s.call("pause", backup=True)
    s.subject("unmap", A, G)
    s.subject("release", 2)
    s.gave()


def came_back(s: Story) -> None:
    paused(s)
    s.call("resume")
    s.subject("create", G, 0, 0, result=2)
    s.show(A, handle=2)
    s.gave()
    s.read(1, ONE)


def came_back_bare(s: Story) -> None:
    """Without a backup the block holds anything."""
    paused(s, backup=False)
    s.call("resume")
    s.subject("create", G, 0, 0, result=2)
    s.show(A, handle=2)
    s.gave()
    s.read(1, TWO)


def paused_twice(s: Story) -> None:
    paused(s)
    s.call("pause", backup=False)
    s.gave()


def moved_with_the_least_rights(s: Story) -> None:
    """A device that could only read a part of the block could only read the block."""
    two_pieces(s)
    s.subject("set_access", A, G, ((1, RW),))
    s.subject("set_access", A + G, G, ((1, Access.READ),))
    s.call("shrink", block=1, size=G, stream=FIRST)
    s.back(B, handle=3)
    s.subject("set_access", B, G, ((1, Access.READ),))
    s.gave_block(1, G, B, G)


def peer_enabled(s: Story) -> None:
    s.allocate(1, A)
    s.call("enable_peer", peer=1)
    s.subject("set_access", A, G, ((1, RW),))
    s.gave()
    s.call("allocate", block=2, size=100, stream=FIRST, space=0)
    s.back(B, handle=2)
    s.subject("set_access", B, G, ((1, RW),))
    s.gave_block(2, 100, B, G)


def peer_refused(s: Story) -> None:
    s.call("enable_peer", peer=2)
    s.refused("INVALID_ARGUMENT")


def counted(s: Story) -> None:
    s.allocate(1, A)
    s.call("statistics")
    s.gave(requested=100, committed=G, reserved=G)


def freed_while_held(s: Story) -> None:
    """Nothing waits; when the caller has let go, somebody may. A query is no wait."""
    s.allocate(1, A)
    s.hold()
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("event_create", 0, result=7)
    s.subject("event_record", 7, FIRST)
    s.subject("event_query", 7, result=False)
    s.gave()
    s.event("harness", "note", ("let_go", {"stream": FIRST}))
    s.call("trim")
    s.subject("event_synchronize", 7)
    s.unback(A, handle=1)
    s.gave()


def counted_beside_the_caller(s: Story) -> None:
    """What the caller has taken itself is not the allocator's."""
    s.harness("create", G, 0, 0, result=9)
    counted(s)


def refused_while_held(s: Story) -> None:
    """Memory that was freed is enough, and comes back behind work that is held."""
    s.allocate(1, A, 5 * G, committed=5 * G)
    s.hold()
    s.deallocate(1)
    s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
    s.subject("create", 4 * G, 0, 0, status=2)
    s.refused()


def waited_between_calls(s: Story) -> None:
    """No call returns late for it."""
    s.allocate(1, A)
    s.hold()
    s.subject("stream_synchronize", FIRST, status=600)


def short_while_held(s: Story) -> None:
    """Memory that was freed has to be waited for, and comes back too late for the request."""
    s.hold()
    s.call("allocate", block=1, size=G, stream=FIRST, space=0)
    s.subject("create", G, 0, 0, status=2)
    s.subject("event_synchronize", 7, status=600)
    s.refused()


def waited_while_held(s: Story, kind: str = "stream_synchronize", which: int = FIRST) -> None:
    s.allocate(1, A)
    s.hold()
    s.call("deallocate", block=1, stream=FIRST)
    s.subject(kind, which, status=600)
    s.refused("NOT_READY")


def waited_for_an_event_while_held(s: Story) -> None:
    waited_while_held(s, "event_synchronize", 7)


def waited_for_the_device_while_held(s: Story) -> None:
    waited_while_held(s, "device_synchronize", 0)


def held_elsewhere(s: Story) -> None:
    s.hold(device=1)
    s.allocate(1, A)


PARTS_GOOD: list[tuple[Tell, dict[int, int]]] = [
    (shrunk, {11: 2, 5: 1}),
    (trimmed, {12: 1}),
    (trimmed_with_work_pending, {12: 0}),
    (trimmed_behind_other_work, {12: 0}),
    (paused, {13: 1, 5: 1}),
    (came_back, {13: 1, 14: 2}),
    (came_back_bare, {14: 1}),
    (paused_twice, {15: 1}),
    (pause_refused, {7: 1}),
    (peer_enabled, {16: 2}),
    (peer_refused, {16: 1}),
    (counted, {17: 1}),
    (trimmed_behind_a_wait, {12: 0}),
    (trimmed_while_held, {12: 0}),
    (trimmed_while_held_before_all_work, {12: 0}),
    (trimmed_behind_a_move, {12: 0}),
    (trimmed_here, {12: 0}),
    (pause_refused_for_two_reasons, {9: 2}),
    (pause_refused_at_its_backup, {7: 1}),
    (paused_after_a_pause, {13: 2, 15: 0}),
    (moved_with_the_least_rights, {11: 1}),
    (counted_beside_the_caller, {17: 1}),
    (refused_while_held, {9: 3}),
    (waited_between_calls, {21: 0}),
    (freed_while_held, {21: 1}),
    (short_while_held, {21: 1}),
]
REACHES = {0: (1,), 1: (0,)}


@pytest.mark.parametrize(("tell", "witnesses"), PARTS_GOOD, ids=[tell.__name__ for tell, _ in PARTS_GOOD])
def test_right_history_of_an_optional_part(tell: Tell, witnesses: dict[int, int]) -> None:
    story = opened(tell, reaches=REACHES)
    assert broken(story) == [], story.judged().findings
    counted = story.judged().witnesses
    assert {number: counted[f"ALLOCATOR-{number}"] for number in witnesses} == witnesses


def shrunk_to_other_bytes(s: Story) -> None:
    two_pieces(s)
    s.call("shrink", block=1, size=100, stream=FIRST)
    s.gave_block(1, 100, A, G)
    s.read(1, TWO)


def shrunk_to_more(s: Story) -> None:
    s.allocate(1, A)
    s.call("shrink", block=1, size=50, stream=FIRST)
    s.back(B, handle=2, size=2 * G)
    s.gave_block(1, 50, B, 2 * G)


def shrunk_in_name(s: Story) -> None:
    s.allocate(1, A)
    s.call("shrink", block=1, size=50, stream=FIRST)
    s.gave_block(1, 100, A, G)


def shrunk_at_once(s: Story) -> None:
    two_pieces(s)
    s.write(1, TWO, offset=G)
    s.call("shrink", block=1, size=100, stream=FIRST)
    s.subject("unmap", A + G, G)
    s.gave_block(1, 100, A, G)


def trimmed_nothing(s: Story) -> None:
    s.allocate(1, A)
    s.deallocate(1)
    s.harness("stream_synchronize", FIRST)
    s.call("trim")
    s.gave()


def paused_with_handle(s: Story) -> None:
    s.allocate(1, A)
    s.call("pause", backup=True)
    s.subject("unmap", A, G)
    s.gave()


def paused_without_addresses(s: Story) -> None:
    s.allocate(1, A)
    s.call("pause", backup=True)
    s.unback(A, handle=1)
    s.gave()


def paused_with_fewer_addresses(s: Story) -> None:
    s.allocate(1, A)
    s.call("pause", backup=True)
    s.unback(A, handle=1)
    s.subject("reserve", G // 2, 0, 0, result=A)
    s.gave()


def paused_by_half(s: Story, result: str | None = "injected") -> None:
    """The second unmap is refused, and the first block stays without memory."""
    s.allocate(1, A)
    s.allocate(2, B)
    s.call("pause", backup=False)
    s.subject("unmap", A, G)
    s.subject("unmap", B, G, status=999, result=result)
    s.refused("UNKNOWN")


def paused_by_half_for_no_reason(s: Story) -> None:
    paused_by_half(s, None)


def paused_at_once(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("pause", backup=True)
    s.subject("unmap", A, G)
    s.subject("release", 1)
    s.gave()


def came_back_without_memory(s: Story) -> None:
    paused(s)
    s.call("resume")
    s.gave()


def came_back_with_other_bytes(s: Story) -> None:
    paused(s)
    s.call("resume")
    s.subject("create", G, 0, 0, result=2)
    s.show(A, handle=2)
    s.gave()
    s.read(1, TWO)


def came_back_without_a_reader(s: Story) -> None:
    s.allocate(1, A)
    s.subject("set_access", A, G, ((1, Access.READ),))
    s.call("pause", backup=False)
    s.subject("unmap", A, G)
    s.subject("release", 1)
    s.gave()
    s.call("resume")
    s.subject("create", G, 0, 0, result=2)
    s.show(A, handle=2)
    s.gave()


def resumed_again(s: Story) -> None:
    s.allocate(1, A)
    s.call("resume")
    s.subject("set_access", A, G, ((0, RW),))
    s.gave()


def peer_ignored(s: Story) -> None:
    s.allocate(1, A)
    s.call("enable_peer", peer=1)
    s.gave()


def peer_forgotten(s: Story) -> None:
    s.call("enable_peer", peer=1)
    s.gave()
    s.allocate(1, A)


def peer_out_of_reach(s: Story) -> None:
    s.call("enable_peer", peer=2)
    s.gave()


def counted_wrong(s: Story) -> None:
    s.allocate(1, A)
    s.call("statistics")
    s.gave(requested=100, committed=100, reserved=G)


def counted_too_much(s: Story) -> None:
    s.allocate(1, A)
    s.call("statistics")
    s.gave(requested=101, committed=G, reserved=G)


def waited_with_nothing_free(s: Story) -> None:
    """A block that is freed needs no memory."""
    s.allocate(1, A, 8 * G, committed=8 * G)
    s.hold()
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("stream_synchronize", FIRST, status=600)
    s.refused("NOT_READY")


def waited_behind_another_error(s: Story) -> None:
    s.hold()
    s.call("allocate", block=1, size=G, stream=FIRST, space=0)
    s.subject("create", G, 0, 0, status=1)
    s.subject("stream_synchronize", FIRST, status=600)
    s.refused("INVALID_VALUE")


PARTS_BAD: list[tuple[int, tuple[Tell, ...]]] = [
    (11, (shrunk_to_other_bytes, shrunk_to_more, shrunk_in_name)),
    (5, (shrunk_at_once, paused_at_once)),
    (7, (pause_reports_undo, paused_by_half, paused_by_half_for_no_reason)),
    (12, (trimmed_nothing,)),
    (13, (paused_with_handle, paused_without_addresses, paused_with_fewer_addresses)),
    (14, (came_back_without_memory, came_back_with_other_bytes, came_back_without_a_reader)),
    (15, (resumed_again,)),
    (16, (peer_ignored, peer_forgotten, peer_out_of_reach)),
    (17, (counted_wrong, counted_too_much)),
    (21, (waited_while_held, waited_for_an_event_while_held, waited_for_the_device_while_held)),
    (21, (waited_with_nothing_free, waited_behind_another_error)),
]
PARTS_CASES = [pytest.param(f"ALLOCATOR-{n}", tell, id=tell.__name__) for n, tells in PARTS_BAD for tell in tells]


@pytest.mark.parametrize(("invariant", "tell"), PARTS_CASES)
def test_wrong_history_of_an_optional_part(invariant: str, tell: Tell) -> None:
    story = opened(tell, reaches=REACHES)
    assert broken(story)[:1] == [invariant], story.judged().findings
    assert story.judged().findings[0].expected


def paused_empty(s: Story) -> None:
    s.call("pause", backup=True)
    s.gave()
    s.call("resume")
    s.gave()


def trimmed_empty(s: Story) -> None:
    s.call("trim")
    s.gave()


VACUOUS = [(one_block, range(11, 18)), (paused_empty, (13, 14, 15)), (trimmed_empty, (12,)), (held_elsewhere, (21,))]


@pytest.mark.parametrize(("tell", "untested"), VACUOUS)
def test_vacuous_history_of_an_optional_part(tell: Tell, untested: Iterable[int]) -> None:
    story = opened(tell, reaches=REACHES)
    assert broken(story) == []
    assert [number for number in untested if story.judged().witnesses[f"ALLOCATOR-{number}"]] == []


@pytest.mark.parametrize(("where", "taken", "asked", "wanted"), [
    (0, 5, 0, 4), (0, 5, 0, 3), (0, 5, 0, 1), (0, 3, 0, 5), (1, 5, 1, 4), (0, 5, 1, 4), (1, 5, 0, 4),
])  # fmt: skip
def test_a_call_may_wait_where_more_is_wanted_than_is_free_on_its_device(
    where: int, taken: int, asked: int, wanted: int
) -> None:
    """Of eight granules; whoever counts first is not refused first."""

    def tell(s: Story) -> None:
        s.open(device=1)
        s.call("allocate", device=where, block=1, size=taken * G, stream=FIRST, space=0)
        s.back(A, handle=1, size=taken * G, device=where)
        s.subject("set_access", A, taken * G, ((where, RW),))
        s.gave_block(1, taken * G, A, taken * G)
        s.hold(device=asked)
        s.call("allocate", device=asked, block=2, size=wanted * G, stream=FIRST, space=0)
        s.subject("stream_synchronize", FIRST, status=600)
        s.refused("NOT_READY")

    short = where == asked and taken + wanted > 8
    assert broken(opened(tell)) == ([] if short else ["ALLOCATOR-21"])


@pytest.mark.parametrize(("reserved", "waits", "found"), [
    (6, "allocate", []), (1, "allocate", [21]), (9, "allocate", [22]), (9, "trim", [22, 21]),
])  # fmt: skip
def test_a_call_may_wait_where_more_is_wanted_than_there_are_addresses_left(
    reserved: int, waits: str, found: list[int]
) -> None:
    """Of eight granules; a call that wants none has nothing to wait for."""

    def tell(s: Story) -> None:
        s.call("trim")
        s.subject("reserve", reserved * G, 0, 0, result=A)
        s.gave()
        s.hold()
        s.call(waits, block=1, size=4 * G, stream=FIRST, space=0)
        s.subject("stream_synchronize", FIRST, status=600)
        s.refused("NOT_READY")

    assert broken(opened(tell, memory={0: 8 * G}, address_space=1)) == [f"ALLOCATOR-{number}" for number in found]


def test_a_wait_that_fails_otherwise_would_have_ended() -> None:
    def tell(s: Story) -> None:
        s.allocate(1, A)
        s.hold()
        s.call("trim")
        s.subject("stream_synchronize", FIRST, status=999)
        s.refused("UNKNOWN")

    assert "ALLOCATOR-21" not in broken(opened(tell))


def test_a_request_below_a_segment_may_be_refused() -> None:
    def short(s: Story) -> None:
        s.allocate(1, A, 7 * G, committed=7 * G)
        s.call("allocate", block=2, size=100, stream=FIRST, space=0)
        s.subject("create", 4 * G, 0, 0, status=2)
        s.refused()

    assert broken(opened(short)) == ["ALLOCATOR-9"]
    assert broken(opened(short, segment=4 * G)) == []


def test_a_resume_may_be_short_of_memory_that_could_not_be_given_back_and_of_none_else() -> None:
    def judged(*, kept: bool) -> list[str]:
        def tell(story: Story) -> None:
            paused(story)
            if kept:
                story.call("trim")
                story.subject("create", G, 0, 0, result=7)
                story.subject("release", 7, status=999, result="injected")
                story.refused("UNKNOWN")
            story.call("resume")
            story.subject("create", G, 0, 0, status=2)
            story.refused()

        return broken(opened(tell))

    assert judged(kept=True) == []
    assert judged(kept=False) != []


def test_statistics_are_compared_with_what_can_be_seen() -> None:
    def without_a_trace(story: Story) -> None:
        story.call("allocate", block=1, size=100, stream=FIRST, space=0)
        story.gave_block(1, 100, A, G)
        story.call("statistics")
        story.gave(requested=100, committed=G, reserved=G)

    assert broken(opened(without_a_trace, traced=False)) == []

    def refused(story: Story) -> None:
        story.call("statistics")
        story.refused("UNKNOWN")

    assert "ALLOCATOR-17" not in broken(opened(refused))


def test_a_trim_that_is_refused_is_not_blamed_for_what_it_leaves() -> None:
    def tell(story: Story) -> None:
        story.allocate(1, A)
        story.deallocate(1)
        story.harness("stream_synchronize", FIRST)
        story.call("trim")
        story.refused("UNKNOWN")

    assert "ALLOCATOR-12" not in broken(opened(tell))
