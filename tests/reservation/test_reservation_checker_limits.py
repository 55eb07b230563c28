"""The checker at its limits: histories that differ in one thing from right or wrong ones, and all that is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reservation_stories import BASE, INVALID, PAST, RW, G, Story, broken, handle, one, ready, three

from vmm_conformance.contracts import Range

ONE, TWO = b"11111111", b"22222222"
OFFSETS: dict[str, Any] = {"takes": {"map_offset": True}}
SLICES: dict[str, Any] = {"scopes": {"set_access": "slice", "unmap": "slice"}}
Tell = Callable[..., None]


def row(expected: str, tell: Tell, *about: Any, **header: Any) -> Any:
    """A story, what it is told with, and all invariants that are found broken in it, in order."""
    return pytest.param(tell, about, header, expected.split(), id="-".join((tell.__name__, *map(str, about))))


# -- what the caller reads, and what it may reach


def asked_beside_a_mapping(s: Story) -> None:
    s.map_to(1, one(1, 1))
    for offset in (G - 1, 2 * G, 4 * G):
        s.asked(offset, None)


def used_where_nothing_is_mapped(s: Story) -> None:
    three(s)
    s.drop(1)
    s.use(1, TWO)


def used_without_an_allocation(s: Story) -> None:
    """What was mapped is not the subject's: nobody knows what it holds."""
    s.map_to(1, one(0, -1))
    s.use(1, None, ONE)
    s.use(1, TWO)


def refused_for_two_reasons_and_spoilt(s: Story, at: int) -> None:
    """The first reason answers for all that the mapping shows, be it named or not."""
    three(s)
    s.use(1, None, ONE, at=at)
    s.free(6)
    s.remaps(1, 2, one(1, 6))
    s.kept(1)
    s.use(1, TWO, at=at)


def unchanged_within_a_piece_refused(s: Story, skip: int) -> None:
    """The second half of what one slice has mapped is said to show what lies ``skip`` bytes into the memory."""
    s.allocate(9, 4 * G)
    s.map_to(1, one(0, 9, size=2 * G, skip=G))
    s.remaps(1, 2, one(0, 9, skip=G, required=False), one(1, 9, skip=skip, required=False))
    s.kept(1, "INTERNAL")


CALLER = [
    row("", asked_beside_a_mapping),
    row("", used_where_nothing_is_mapped),
    row("RES-6", used_without_an_allocation),
    *(row("REMAP-28", refused_for_two_reasons_and_spoilt, at) for at in (0, 2 * G)),
    row("REMAP-30", unchanged_within_a_piece_refused, 2 * G, **OFFSETS),
    row("REMAP-40", unchanged_within_a_piece_refused, 0, **OFFSETS),
]


# -- driver calls, and what they achieve


def null_remap_maps(s: Story) -> None:
    s.remaps(1, 2, one(0, 1))
    s.map(0, 1)
    s.refused(PAST, m1=(True, None))


def said_to_lie_higher(s: Story) -> None:
    s.asks(1, one(5, 4))
    s.map(5 * G, 4)
    s.access(5 * G)
    s.gave(m1=(False, Range(BASE + 6 * G, G)))


def tried_once_more(s: Story) -> None:
    """A layer may undo and try again what has failed."""
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.fails("set_access", BASE, G, ((0, RW),))
    s.unmap(0)
    s.map(0, 1)
    s.access(0)
    s.made(1)


def mapped_in_parts(s: Story) -> None:
    """One slice, two driver calls; one more slice behind it."""
    s.allocate(9, 4 * G)
    s.asks(1, one(1, 9, size=2 * G, skip=G), one(3, 1))
    s.map(G, 9, skip=G)
    s.map(2 * G, 9, skip=2 * G)
    s.map(3 * G, 1)
    s.access(G, 3 * G)
    s.made(1)


def mapped_in_part(s: Story) -> None:
    s.allocate(9, 4 * G)
    s.asks(1, one(0, 9, size=2 * G, skip=G))
    s.map(0, 9, skip=G)
    s.access(0, 2 * G)
    s.made(1)


def shown_from_another_byte(s: Story, asked: int, mapped: int) -> None:
    s.allocate(9, 4 * G)
    s.asks(1, one(0, 9, skip=asked))
    s.map(0, 9, skip=mapped)
    s.access(0)
    s.made(1)


def mapped_far(s: Story) -> None:
    s.allocate(9, 4 * G)
    s.asks(1, one(4, 9))
    s.map(4 * G, 9, skip=4 * G)
    s.access(4 * G)
    s.made(1)


def identity_is_no_handle(s: Story, behind: int) -> None:
    """That is found once. What such an allocation's slice shows cannot be told; what is shown behind it can."""
    s.call("allocate", allocation=9, device=0, size=G, space=0)
    s.subject("create", G, 0, 0, result=handle(9))
    s.gave(address=Range(999, G))
    s.asks(1, one(0, 9), one(1, 2))
    s.map(0, 9)
    s.map(G, behind)
    s.access(0, 2 * G)
    s.made(1)


def lie_over_two_mapped(s: Story) -> None:
    """A slice that is said to stay lies over two pieces, and the second one shows something else."""
    three(s)
    s.remaps(1, 2, one(1, 5, size=2 * G, required=False), one(3, 4))
    s.unmap(2 * G, 2 * G)
    s.map(2 * G, 6)
    s.map(3 * G, 4)
    s.access(3 * G)
    s.remapped(1, 2)


def runs_unmapped_at_once(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.unmap(G, 3 * G)
    for offset, memory in ((G, 4), (2 * G, 2), (3 * G, 5)):
        s.map(offset, memory)
    s.access(G)
    s.access(3 * G)
    s.remapped(1, 2)


def one_slice_in_place_of_two(s: Story) -> None:
    """Slice by slice, and yet two mappings go at once: they are one slice now."""
    s.allocate(9, 2 * G)
    s.asks(1, one(5, 1), one(6, 2))
    for offset, memory in ((5 * G, 1), (6 * G, 2)):
        s.map(offset, memory)
    for offset in (5 * G, 6 * G):
        s.access(offset)
    s.made(1)
    s.remap(1, 2, one(5, 9, size=2 * G))


def between_calls(s: Story) -> None:
    """A driver call that belongs to no call on the subject: who has made it cannot be told."""
    three(s)
    s.subject("map", BASE + 100, G, handle(4), 0, status=1)


CALLS = [
    row("REMAP-26", null_remap_maps),
    row("MAP-25", said_to_lie_higher),
    row("", tried_once_more),
    row("", mapped_in_parts, **OFFSETS),
    row("RES-17", mapped_in_part, **OFFSETS),
    *(row("RES-17", shown_from_another_byte, *pair, **OFFSETS) for pair in ((0, G), (G, 0))),
    row("RES-11 RES-17", mapped_far, **OFFSETS),
    row("RAW-2", identity_is_no_handle, 2),
    row("RAW-2 RES-17", identity_is_no_handle, 3),
    row("REMAP-31 REMAP-40 REMAP-35", lie_over_two_mapped),
    row("REMAP-31 REMAP-35", runs_unmapped_at_once),
    row("", one_slice_in_place_of_two, **SLICES),
    row("", between_calls),
]


# -- what is handed out, and goes back


def lower_handle(s: Story) -> None:
    s.call("allocate", allocation=9, device=0, size=G, space=0)
    s.subject("create", G, 0, 0, result=50)
    s.gave(address=Range(50, G))


def releases_anothers(s: Story, freed: int) -> None:
    s.call("free", allocation=freed)
    s.subject("release", handle(2))
    s.gave()


def never_released_for_a_failure(s: Story) -> None:
    s.call("free", allocation=1)
    s.fails("release", handle(1))
    s.gave()
    for memory in range(2, 7):
        s.free(memory)
    s.done()


def keeps_what_was_remapped_away(s: Story) -> None:
    """Two slices became one: neither's memory is shown any more."""
    s.allocate(9, 2 * G)
    three(s)
    s.remap(1, 2, one(1, 1, required=False), one(2, 9, size=2 * G), runs=[(2 * G, 2 * G)])
    s.call("free", allocation=3)
    s.refused(PAST)


def tries_the_whole_twice(s: Story) -> None:
    s.call("close", reservation=1)
    for _ in range(2):
        s.unmap(0, 8 * G, status=1)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def tries_a_part(s: Story) -> None:
    s.call("close", reservation=1)
    s.unmap(0, G, status=1)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def unfreed(s: Story, reserved: int) -> None:
    s.call("close", reservation=reserved)
    s.gave()


def closed_again_when_reserved_anew(s: Story) -> None:
    """By then the addresses are another's."""
    s.close()
    s.reserve(2, at=BASE)
    unfreed(s, 1)


def unfreed_where_another_was(s: Story) -> None:
    s.close()
    s.reserve(2, at=BASE)
    unfreed(s, 2)


def unfreed_among_others(s: Story) -> None:
    for reserved in (2, 3):
        s.reserve(reserved)
    unfreed(s, 2)


def unfreed_for_the_failure_of_a_map(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.fails("map", BASE, G, handle(1), 0)
    s.refused()
    unfreed(s, 1)


POSSESSIONS = [
    row("", lower_handle),
    *(row("RAW-3", releases_anothers, freed) for freed in (1, 3)),
    row("", never_released_for_a_failure),
    row("RAW-3", keeps_what_was_remapped_away),
    row("RES-9", tries_the_whole_twice),
    row("RES-9", tries_a_part),
    row("", closed_again_when_reserved_anew),
    row("RES-9", unfreed_where_another_was),
    row("RES-9", unfreed_among_others),
    row("RES-9", unfreed_for_the_failure_of_a_map),
]


@pytest.mark.parametrize("used", [1, 3])
def test_freeing_a_range_counts_if_something_was_mapped_in_it(used: int) -> None:
    """Besides, that closing raises nothing counts each time."""
    story = ready()
    for reserved in (2, 3):
        story.reserve(reserved)
    story.map_to(1, one(0, 1), reserved=used)
    story.drop(1)
    for reserved in (1, 2, 3):
        story.close(reserved)
    assert story.judged().witnesses["RES-9"] == 3 + 1


def test_without_a_trace_nothing_is_left_behind() -> None:
    """Some calls of a subject may be seen, and others not."""
    story = ready(traced=False)
    unfreed(story, 1)
    assert broken(story) == []


# -- mappings and their owners


def moved_with_a_call(s: Story) -> None:
    three(s)
    s.call("move", mapping=1, made=2)
    s.access(G, 3 * G)
    s.places[2] = s.places[1]
    s.made(2, m1=(True, None))


def move_refused(s: Story) -> None:
    three(s)
    s.call("move", mapping=1, made=2)
    s.refused("INTERNAL")


def assign_refused(s: Story) -> None:
    s.call("assign", target=1, source=2)
    s.refused("INTERNAL")


def assigned_elsewhere(s: Story, by: int) -> None:
    s.map_to(1, one(0, 1))
    s.map_to(2, one(1, 2))
    s.call("assign", target=1, source=2)
    s.unmap(0)
    s.gave(m1=(False, Range(BASE + G + by, G)), m2=(True, None))


OWNERS = [
    row("MAP-22", moved_with_a_call),
    *(row("MAP-25 MAP-23", assigned_elsewhere, by) for by in (-G, G)),
]


@pytest.mark.parametrize(("tell", "invariant"), [(move_refused, "MAP-22"), (assign_refused, "MAP-23")])
def test_a_call_that_fails_is_found_once(tell: Tell, invariant: str) -> None:
    """What it might have done besides, had it gone well, is no matter."""
    story = ready()
    tell(story)
    assert [finding.invariant for finding in story.judged().findings] == [invariant]


# -- failures, and what may be refused


def foreign_found_late(s: Story) -> None:
    """A remap may find out when it has begun."""
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, -1), one(3, 3, required=False))
    s.unmap(G, 3 * G)
    s.lost(1, INVALID)


def refuses_to_release_by_another_code(s: Story, code: str) -> None:
    three(s)
    s.call("free", allocation=1)
    s.refused(code)


def refuses_to_release_for_anothers_sake(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("free", allocation=2)
    s.refused(PAST)


def rights_in_reach_refused(s: Story) -> None:
    """Nobody was asked for who is out of reach."""
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.subject("set_access", BASE, G, ((0, RW),), status=801)
    s.unmap(0)
    s.refused("NOT_SUPPORTED")


def part_of_an_allocation_refused(s: Story) -> None:
    s.allocate(9, 2 * G)
    s.asks(1, one(0, 9))
    s.refused(INVALID)


def settled(s: Story) -> None:
    """Where a remap has failed, something was mapped since."""
    s.map_to(1, one(0, 1))
    s.remaps(1, 2, one(0, 2))
    s.unmap(0)
    s.fails("map", BASE, G, handle(2), 0)
    s.lost(1)
    s.map_to(3, one(0, 2))
    s.drop(3)
    s.asks(4, one(0, 2))
    s.refused()


def beside_a_failed_remap(s: Story, place: int) -> None:
    s.map_to(1, one(2, 1), one(3, 2))
    s.remaps(1, 2, one(2, 3), one(3, 4))
    s.unmap(2 * G, 2 * G)
    s.fails("map", BASE + 2 * G, G, handle(3), 0)
    s.lost(1)
    s.asks(3, one(place, 5))
    s.refused()


def beside_a_mapping(s: Story, place: int) -> None:
    s.map_to(1, one(5, 1))
    s.asks(2, one(place, 2))
    s.refused(INVALID)


def beside_what_could_not_be_unmapped(s: Story, place: int, again: bool = False) -> None:
    s.asks(1, one(5, 1), one(6, 2))
    s.map(5 * G, 1)
    s.fails("map", BASE + 6 * G, G, handle(2), 0)
    s.fails("unmap", BASE + 5 * G, G, status=999)
    if again:
        s.unmap(5 * G)
    s.refused()
    s.asks(2, one(place, 3))
    s.refused(INVALID)


REFUSALS = [
    row("", foreign_found_late),
    *(row("RAW-3", refuses_to_release_by_another_code, code) for code in ("ABORTED", "UNKNOWN")),
    row("RAW-3", refuses_to_release_for_anothers_sake),
    row("RES-16", rights_in_reach_refused, reach={0: (0, 1)}, devices=3),
    row("", part_of_an_allocation_refused, takes={"partial_map": False}),
    row("RES-16", part_of_an_allocation_refused),
    row("RES-16", settled),
    *(row("RES-16", beside_a_failed_remap, place) for place in (0, 1, 4)),
    *(row("REMAP-38", beside_a_failed_remap, place) for place in (2, 3)),
    *(row("RES-16", beside_a_mapping, place) for place in (0, 4, 6)),
    row("", beside_a_mapping, 5),
    *(row("RES-16", beside_what_could_not_be_unmapped, place) for place in (0, 4, 6, 7)),
    row("", beside_what_could_not_be_unmapped, 5),
    row("RES-16", beside_what_could_not_be_unmapped, 5, True),
]


@pytest.mark.parametrize(("tell", "about", "header", "expected"), CALLER + CALLS + POSSESSIONS + OWNERS + REFUSALS)
def test_all_that_is_found(tell: Tell, about: tuple[Any, ...], header: dict[str, Any], expected: list[str]) -> None:
    story = ready(**header)
    tell(story, *about)
    assert broken(story) == expected, story.judged().findings


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize(
    ("size", "rest", "code", "good"),
    [
        (2 * G + 1, 500, "OUT_OF_MEMORY", True),
        (2 * G, 500, "OUT_OF_MEMORY", False),
        (2 * G, 0, "OUT_OF_MEMORY", False),
        (2 * G + 1, 500, INVALID, False),
    ],
)
def test_memory_is_short_where_whole_granules_do_not_fit_on_that_device(
    device: int, size: int, rest: int, code: str, good: bool
) -> None:
    """Each device has two granules left, and ``rest`` bytes; only one code says so."""
    story = Story(capacity={0: 8 * G + rest, 1: 8 * G + rest}, devices=2)
    for each in (0, 1):
        story.allocate(1 + each, 6 * G, device=each)
    story.call("allocate", allocation=9, device=device, size=size, space=0)
    story.refused(code)
    assert broken(story) == ([] if good else ["RAW-2"])


def map_failure_leaves_two(s: Story) -> None:
    s.allocate(9, 2 * G)
    s.asks(1, one(0, 1), one(1, 9, size=2 * G), one(3, 2))
    s.map(0, 1)
    s.map(G, 9, size=2 * G)
    s.fails("map", BASE + 3 * G, G, handle(2), 0)
    s.refused()


def first_failure_unmaps_two(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.fails("map", BASE, G, handle(1), 0)
    s.unmap(0, G, status=1)
    s.unmap(G, G, status=1)
    s.refused()


@pytest.mark.parametrize("tell", [map_failure_leaves_two, first_failure_unmaps_two], ids=lambda tell: tell.__name__)
def test_the_first_of_several_is_named(tell: Tell) -> None:
    story = ready()
    tell(story)
    assert [finding.range for finding in story.judged().findings] == [Range(BASE, G)]
