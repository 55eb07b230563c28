"""The checker against histories written by hand: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stories import FIRST, RW, SECOND, A, B, C, G, Story, broken

from vmm_conformance.contracts import Access, Fault, Range

ONE, TWO = b"11111111", b"22222222"
Tell = Callable[[Story], None]


def opened(tell: Tell, **header: object) -> Story:
    story = Story(**header)
    story.open()
    tell(story)
    return story


# -- right histories, and what they witness


def a_life(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.read(1, ONE)
    s.deallocate(1)
    s.subject("stream_synchronize", FIRST)
    s.unback(A, handle=1)
    s.close()


def two_lives(s: Story) -> None:
    s.allocate(1, A)
    s.allocate(2, B)
    s.close(1, 2)


def plain_memory(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("alloc", 100, 0, 0, result=A + 256)
    s.gave_block(1, 100, A + 256, 100)
    s.write(1, ONE)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("stream_synchronize", FIRST)
    s.subject("free", A + 256)
    s.gave()
    s.close()


def handed_on(s: Story) -> None:
    """Freed on one stream, handed to another behind an event, as it is."""
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("event_create", 0, result=50)
    s.subject("event_record", 50, FIRST)
    s.gave()
    s.call("allocate", block=2, size=100, stream=SECOND, space=0)
    s.subject("stream_wait_event", SECOND, 50)
    s.subject("event_destroy", 50)
    s.gave_block(2, 100, A, G)
    s.write(2, TWO, stream=SECOND)


def handed_on_and_gone(s: Story) -> None:
    """What was handed on is no longer awaited."""
    handed_on(s)
    for stream in (FIRST, SECOND):
        s.harness("stream_synchronize", stream)
    s.deallocate(2, stream=SECOND)
    s.unback(A, handle=1)


def grown_by_alias(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.back(B, handle=2)
    s.show(B + G, handle=1)
    s.gave_block(1, 2 * G, B, 2 * G)
    s.read(1, ONE)


def undone(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=A)
    s.subject("create", G, 0, 0, status=2, result="injected")
    s.subject("address_free", A, G)
    s.refused()
    s.allocate(2, A)
    s.close(2)


def undo_that_failed(s: Story) -> None:
    """What a freeing call that was made to fail was to give back may stay, and nothing else."""
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=A)
    s.subject("create", G, 0, 0, result=1)
    s.subject("map", A, G, 1, 0)
    s.subject("set_access", A, G, ((0, RW),), status=2, result="injected")
    s.subject("unmap", A, G, status=999, result="injected")
    s.subject("release", 1)
    s.refused()
    s.close()


def event_that_stayed(s: Story) -> None:
    """An event that could not be given back may stay as well."""
    s.allocate(1, A)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("event_create", 0, result=50)
    s.subject("event_destroy", 50, status=999, result="injected")
    s.refused("UNKNOWN")
    s.close(1)


def closed_unused_later(s: Story) -> None:
    a_life(s)
    s.open()
    s.close()


def beside_the_caller(s: Story) -> None:
    """What the caller has is its own, and stays."""
    s.harness("reserve", G, 0, 0, result=C)
    s.harness("create", G, 0, 0, result=9)
    s.harness("map", C, G, 9, 0)
    s.allocate(1, A)
    s.close(1)


def side_by_side(s: Story) -> None:
    """Two halves of one handle, the second of which was taken first."""
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=B)
    s.subject("create", 2 * G, 0, 0, result=1)
    s.subject("map", B, G, 1, G)
    s.subject("set_access", B, G, ((0, RW),))
    s.gave_block(1, 100, B, G)
    s.call("allocate", block=2, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=A)
    s.show(A, handle=1)
    s.gave_block(2, 100, A, G)


def short_of_memory(s: Story) -> None:
    s.allocate(1, A, 5 * G, committed=5 * G)
    s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
    s.subject("create", 4 * G, 0, 0, status=2)
    s.refused("RESOURCE_EXHAUSTED")
    s.allocate(3, B, 3 * G, committed=3 * G)


def no_bytes(s: Story) -> None:
    s.call("allocate", block=1, size=0, stream=FIRST, space=0)
    s.refused("INVALID_ARGUMENT")


def moved_back(s: Story) -> None:
    """Another block's mapping is taken away and put back within one call, behind its last use."""
    s.allocate(1, A)
    s.call("allocate", block=2, size=100, stream=FIRST, space=0)
    s.subject("device_synchronize", 0)
    s.subject("unmap", A, G)
    s.show(A, handle=1)
    s.back(B, handle=2)
    s.gave_block(2, 100, B, G)


GOOD: list[tuple[Tell, dict[int, int]]] = [
    (a_life, {1: 0, 2: 1, 3: 1, 4: 1, 5: 1, 6: 0, 7: 0, 8: 2, 9: 4, 10: 0}),
    (two_lives, {1: 1, 2: 2, 3: 2, 5: 0, 8: 2}),
    (plain_memory, {2: 1, 3: 1, 5: 1, 8: 2}),
    (handed_on, {1: 0, 5: 1}),
    (grown_by_alias, {4: 0, 6: 2}),
    (undone, {7: 2, 9: 3}),
    (undo_that_failed, {7: 2, 8: 2}),
    (short_of_memory, {1: 1, 9: 3}),
    (no_bytes, {9: 1, 10: 1}),
    (moved_back, {2: 3}),
    (handed_on_and_gone, {5: 1}),
    (event_that_stayed, {8: 2}),
    (closed_unused_later, {8: 3}),
    (beside_the_caller, {8: 2}),
    (side_by_side, {1: 1}),
]


@pytest.mark.parametrize(("tell", "witnesses"), GOOD, ids=[tell.__name__ for tell, _ in GOOD])
def test_right_history(tell: Tell, witnesses: dict[int, int]) -> None:
    story = opened(tell)
    assert broken(story) == [], story.judged().findings
    counted = story.judged().witnesses
    assert {number: counted[f"ALLOCATOR-{number}"] for number in witnesses} == witnesses


# -- wrong histories, and the invariant that each breaks first


def same_addresses(s: Story) -> None:
    s.allocate(1, A, committed=2 * G)
    s.call("allocate", block=2, size=100, stream=FIRST, space=0)
    s.gave_block(2, 100, A + G, G)


def same_memory(s: Story) -> None:
    s.allocate(1, A)
    s.call("allocate", block=2, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=B)
    s.show(B, handle=1)
    s.gave_block(2, 100, B, G)


def no_rights(s: Story) -> None:
    s.allocate(1, A, rights=None)


def read_only(s: Story) -> None:
    s.allocate(1, A, rights=Access.READ)


def less_behind(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.back(A, handle=1)
    s.gave_block(1, 100, A, 2 * G)


def less_committed(s: Story) -> None:
    s.call("allocate", block=1, size=G + 1, stream=FIRST, space=0)
    s.back(A, handle=1)
    s.gave_block(1, G + 1, A, G)


def less_behind_in_the_middle(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", 2 * G, 0, 0, result=A)
    s.subject("create", 2 * G, 0, 0, result=1)
    s.subject("map", A, G, 1, G)
    s.subject("set_access", A, G, ((0, RW),))
    s.gave_block(1, 100, A, 2 * G)


def smaller_than_asked(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.back(A, handle=1)
    s.gave_block(1, 50, A, G)


def neighbour_unmapped(s: Story) -> None:
    s.allocate(1, A)
    s.allocate(2, B)
    s.call("deallocate", block=2, stream=FIRST)
    s.subject("unmap", A, G)
    s.gave()


def work_refused(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE, status=1)


def fault_without_cause(s: Story) -> None:
    s.allocate(1, A)
    s.ran(s.write(1, ONE), fault=Fault(A, 8, "no access"))


def misaligned(s: Story) -> None:
    s.allocate(1, A + G, space=5)


def wrong_space(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=5)
    s.back(A, handle=1, space=0)
    s.gave_block(1, 100, A, G)


def wrong_device(s: Story) -> None:
    s.allocate(1, A, device=1)


def lost(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.read(1, TWO)


def lost_by_later_read(s: Story) -> None:
    """What is submitted counts, not what runs first."""
    s.allocate(1, A)
    s.write(1, ONE)
    early = s.read(1, None)
    s.write(1, TWO)
    s.ran(early, TWO)


def nothing_read(s: Story) -> None:
    """Work that ran and brought nothing back."""
    s.allocate(1, A)
    s.write(1, ONE)
    s.write(1, TWO, offset=8)
    s.ran(s.launch(FIRST, reads=(Range(A, 8), Range(A + 8, 8))))


def unmapped_at_once(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("unmap", A, G)
    s.gave()


def waited_for_another(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("stream_synchronize", SECOND)
    s.subject("unmap", A, G)
    s.gave()


def handed_on_early(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.deallocate(1)
    s.call("allocate", block=2, size=100, stream=SECOND, space=0)
    s.gave_block(2, 100, A, G)
    s.write(2, TWO, stream=SECOND)


def faulted(s: Story) -> None:
    s.allocate(1, A)
    work = s.write(1, ONE)
    s.ran(work, fault=Fault(A, 8, "unmapped"), cause=5)


def grown_without_contents(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.back(B, handle=2, size=2 * G)
    s.gave_block(1, 2 * G, B, 2 * G)
    s.read(1, TWO)


def grown_short(s: Story) -> None:
    s.allocate(1, A)
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.gave_block(1, 2 * G, A, G)


def grown_without_peer(s: Story) -> None:
    s.allocate(1, A)
    s.subject("set_access", A, G, ((1, RW),))
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.back(B, handle=2, size=2 * G)
    s.gave_block(1, 2 * G, B, 2 * G)


def grown_without_reader(s: Story) -> None:
    s.allocate(1, A)
    s.subject("set_access", A, G, ((1, Access.READ),))
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.back(B, handle=2, size=2 * G)
    s.gave_block(1, 2 * G, B, 2 * G)


def not_undone(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=A)
    s.subject("create", G, 0, 0, status=2, result="injected")
    s.refused()


def plain_not_undone(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("alloc", 100, 0, 0, result=C)
    s.subject("event_create", 0, status=2, result="injected")
    s.refused()


def undone_too_much(s: Story) -> None:
    s.allocate(1, A)
    s.call("grow", block=1, size=2 * G, stream=FIRST)
    s.subject("create", G, 0, 0, status=2, result="injected")
    s.subject("unmap", A, G)
    s.refused()


def last_error(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, result=A)
    s.subject("create", G, 0, 0, status=2, result="injected")
    s.subject("address_free", A, G, status=999, result="injected")
    s.refused("UNKNOWN")


def left_open(s: Story) -> None:
    s.allocate(1, A)
    s.close()


def event_left(s: Story) -> None:
    s.subject("event_create", 0, result=50)
    s.close()


def other_left_after_failed_undo(s: Story) -> None:
    """An unmap that was made to fail excuses its mapping and reservation, not another handle."""
    undo_that_failed(s)
    s.open()
    s.subject("create", G, 0, 0, result=9)
    s.close()


def mapping_left(s: Story) -> None:
    """Handle and addresses could not be given back; nobody tried the mapping."""
    s.allocate(1, A)
    s.call("deallocate", block=1, stream=FIRST)
    s.subject("release", 1, status=999, result="injected")
    s.subject("address_free", A, G, status=999, result="injected")
    s.refused("UNKNOWN")
    s.close()


def released_twice(s: Story) -> None:
    """The mapping still holds the memory; the handle is gone."""
    s.allocate(1, A)
    s.call("trim")
    s.subject("release", 1)
    s.subject("release", 1, status=1)
    s.gave()


def freed_twice(s: Story) -> None:
    s.allocate(1, A)
    s.call("close")
    s.unback(A, handle=1)
    s.subject("address_free", A, G, status=1)
    s.gave()


def closed_once(s: Story) -> None:
    s.call("close")
    s.gave()
    s.call("close")
    s.refused("FAILED_PRECONDITION")


def no_reason(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.refused()


def crashed(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("create", G, 0, 0, status=2, result="injected")
    s.gave("crashed", "KeyError", "7")


def short_with_freed_memory(s: Story) -> None:
    s.allocate(1, A, 5 * G, committed=5 * G)
    s.write(1, ONE)
    s.deallocate(1)
    s.call("allocate", block=2, size=4 * G, stream=FIRST, space=0)
    s.subject("create", 4 * G, 0, 0, status=2)
    s.refused()


def close_refused(s: Story) -> None:
    s.call("close")
    s.refused("INTERNAL")


def close_refused_behind_an_injected_failure(s: Story) -> None:
    """The first could not; the second is no closing again."""
    s.call("close")
    s.subject("device_synchronize", 0, status=999, result="injected")
    s.refused("UNKNOWN")
    close_refused(s)


def bytes_from_none(s: Story) -> None:
    s.allocate(1, A, 0)


def short_of_no_bytes(s: Story) -> None:
    s.call("allocate", block=1, size=0, stream=FIRST, space=0)
    s.refused("RESOURCE_EXHAUSTED")


BAD: list[tuple[int, tuple[Tell, ...]]] = [
    (1, (same_addresses, same_memory)),
    (2, (no_rights, read_only, less_behind, less_committed, neighbour_unmapped, work_refused, fault_without_cause)),
    (2, (less_behind_in_the_middle, smaller_than_asked)),
    (3, (misaligned, wrong_space, wrong_device)),
    (4, (lost, lost_by_later_read, nothing_read)),
    (5, (unmapped_at_once, waited_for_another, handed_on_early, faulted)),
    (6, (grown_without_contents, grown_short, grown_without_peer, grown_without_reader)),
    (7, (not_undone, plain_not_undone, undone_too_much, last_error)),
    (8, (left_open, event_left, other_left_after_failed_undo, freed_twice, closed_once, mapping_left, released_twice)),
    (9, (no_reason, crashed, short_with_freed_memory, close_refused, close_refused_behind_an_injected_failure)),
    (10, (bytes_from_none, short_of_no_bytes)),
]
CASES = [pytest.param(f"ALLOCATOR-{n}", tell, id=tell.__name__) for n, tells in BAD for tell in tells]


@pytest.mark.parametrize(("invariant", "tell"), CASES)
def test_wrong_history(invariant: str, tell: Tell) -> None:
    story = opened(tell)
    assert broken(story)[:1] == [invariant], story.judged().findings
    finding = story.judged().findings[0]
    assert finding.message
    assert finding.expected
    assert finding.actual
    assert story.history.events[finding.seq].seq == finding.seq


def test_a_failure_poisons_what_follows() -> None:
    def poisoned(s: Story) -> None:
        undone_call(s)
        s.call("allocate", block=3, size=100, stream=FIRST, space=0)
        s.refused("INTERNAL")

    assert broken(opened(poisoned)) == ["ALLOCATOR-9", "ALLOCATOR-7"]


def test_a_failed_free_poisons_its_block_alone() -> None:
    def forgotten(s: Story) -> None:
        s.allocate(1, A)
        s.call("deallocate", block=1, stream=FIRST)
        s.subject("event_create", 0, status=999, result="injected")
        s.refused("UNKNOWN")
        s.allocate(2, B)
        s.call("deallocate", block=1, stream=FIRST)
        s.refused("INVALID_ARGUMENT")

    assert broken(opened(forgotten)) == ["ALLOCATOR-9", "ALLOCATOR-7"]


def undone_call(s: Story) -> None:
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, status=2, result="injected")
    s.refused()


# -- histories that test nothing


def nothing(s: Story) -> None:
    pass


def one_block(s: Story) -> None:
    s.allocate(1, A)


def written_only(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)


def freed_when_over(s: Story) -> None:
    s.allocate(1, A)
    s.write(1, ONE)
    s.harness("stream_synchronize", FIRST)
    s.deallocate(1)
    s.unback(A, handle=1)


def refused_at_first_call(s: Story) -> None:
    undone_call(s)


def closed_unused(s: Story) -> None:
    s.call("close")
    s.gave()


def grown_out_of_plain_memory(s: Story) -> None:
    """Plain memory has no rights that could be lost."""
    s.call("allocate", block=1, size=100, stream=FIRST, space=0)
    s.subject("alloc", 100, 0, 0, result=A)
    s.gave_block(1, 100, A, 100)
    s.call("grow", block=1, size=G, stream=FIRST)
    s.back(B, handle=2)
    s.gave_block(1, G, B, G)


VACUOUS: list[tuple[Tell, tuple[int, ...]]] = [
    (one_block, (1, 4, 5, 6, 7, 8, 10)),
    (written_only, (4, 5)),
    (freed_when_over, (5,)),
    (refused_at_first_call, (2, 3, 7)),
    (closed_unused, (2, 5, 8)),
    (grown_out_of_plain_memory, (6,)),
]


@pytest.mark.parametrize(("tell", "untested"), VACUOUS, ids=[tell.__name__ for tell, _ in VACUOUS])
def test_vacuous_history(tell: Tell, untested: tuple[int, ...]) -> None:
    story = opened(tell)
    assert broken(story) == []
    assert [number for number in untested if story.judged().witnesses[f"ALLOCATOR-{number}"]] == []


def test_history_without_calls() -> None:
    judged = Story().judged()
    assert judged.findings == []
    assert judged.witnesses.total() == 0


def test_without_a_trace_only_what_can_be_seen_is_judged() -> None:
    def unseen(s: Story) -> None:
        s.call("allocate", block=1, size=100, stream=FIRST, space=0)
        s.gave_block(1, 100, A, G)
        s.call("allocate", block=2, size=100, stream=FIRST, space=5)
        s.gave_block(2, 100, C, G)
        s.write(1, ONE)
        s.read(1, ONE)
        s.call("close")
        s.gave()
        s.call("close")
        s.gave()

    story = opened(unseen, traced=False)
    assert broken(story) == []
    seen = {invariant for invariant, count in story.judged().witnesses.items() if count}
    assert seen == {"ALLOCATOR-1", "ALLOCATOR-3", "ALLOCATOR-4", "ALLOCATOR-9"}


@pytest.mark.parametrize(("size", "wrong"), [(6 * G, True), (6 * G + 1, False)])
def test_memory_that_a_block_lies_in_is_taken_whole_and_on_its_own_device(size: int, wrong: bool) -> None:
    """Two of eight granules are, though the block has half of one; the other device's memory does not count."""
    story = opened(lambda story: story.open(device=1))
    story.call("allocate", block=1, size=100, stream=FIRST, space=0)
    story.back(A, handle=1, size=2 * G)
    story.gave_block(1, 100, A, G // 2)
    story.call("allocate", block=2, size=size, stream=FIRST, space=0)
    story.refused()
    assert (broken(story) != []) is wrong


GIVEN_TWICE: list[tuple[str, tuple[int, ...]]] = [
    ("unmap", (A, G)), ("address_free", (A, G)), ("release", (1,)), ("free", (C,)), ("event_destroy", (50,)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "args"), GIVEN_TWICE, ids=[kind for kind, _ in GIVEN_TWICE])
@pytest.mark.parametrize("held", [True, False])
def test_what_is_given_back_is_there(kind: str, args: tuple[int, ...], held: bool) -> None:
    """A driver that does not take back what it gave is no fault of the allocator's."""

    def tell(story: Story) -> None:
        story.allocate(1, A)
        story.subject("alloc", 100, 0, 0, result=C)
        story.subject("event_create", 0, result=50)
        story.deallocate(1)
        story.call("trim")
        if not held:
            story.unback(A, handle=1)
            story.subject("free", C)
            story.subject("event_destroy", 50)
        story.subject(kind, *args, status=999)
        story.refused("UNKNOWN")

    assert ("ALLOCATOR-8" in broken(opened(tell))) is not held


def test_two_failures_in_a_call_are_no_licence_to_harm_another_block() -> None:
    def tell(story: Story) -> None:
        story.allocate(1, A)
        story.call("allocate", block=2, size=100, stream=FIRST, space=0)
        story.subject("create", G, 0, 0, status=999, result="injected")
        story.subject("create", G, 0, 0, status=999, result="injected")
        story.subject("set_access", A, G, ((0, Access.NONE),))
        story.refused("UNKNOWN")

    assert "ALLOCATOR-7" in broken(opened(tell))


def test_a_failed_allocation_leaves_no_mapping_of_older_memory_either() -> None:
    def tell(story: Story) -> None:
        story.allocate(1, A)
        story.call("allocate", block=2, size=100, stream=FIRST, space=0)
        story.show(A + G, handle=1, rights=None)
        story.subject("set_access", A + G, G, ((0, RW),), status=2, result="injected")
        story.refused("UNKNOWN")

    assert "ALLOCATOR-7" in broken(opened(tell))


def test_an_unmap_that_waits_needs_no_other_wait() -> None:
    assert broken(opened(unmapped_at_once)) == ["ALLOCATOR-5"]
    assert broken(opened(unmapped_at_once, unmap_waits=True)) == []
