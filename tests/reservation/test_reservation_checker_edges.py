"""The checker where a rule just holds, and where it just does not: histories written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from reservation_stories import BASE, INVALID, PAST, RW, G, Story, broken, handle, one, ready

from vmm_conformance.contracts import Range
from vmm_conformance.history.events import SUBJECT

ONE, TWO = b"11111111", b"22222222"


def test_an_address_between_two_granules_is_found_though_the_size_is_whole() -> None:
    story = ready()
    story.asks(1, one(0, 1))
    story.subject("map", BASE + 100, G, handle(1), 0, status=1)
    story.map(0, 1)
    story.access(0)
    story.made(1)
    assert broken(story)[0] == "RES-12"


def test_null_is_no_place_for_a_reservation() -> None:
    story = Story()
    story.call("reserve", reservation=1, device=0, size=8 * G, alignment=0)
    story.subject("reserve", 8 * G, 0, 0, result=0)
    story.gave(address=Range(0, 8 * G))
    assert broken(story)[0] == "RES-4"


@pytest.mark.parametrize(("code", "wrong"), [(PAST, False), ("ABORTED", True), ("UNKNOWN", True)])
def test_a_null_mapping_has_no_address_and_says_so_by_one_code(code: str, wrong: bool) -> None:
    story = ready()
    story.map_to(1, one(0, 1))
    story.drop(1)
    story.call("address", mapping=1)
    story.refused(code)
    assert broken(story) == (["MAP-22"] if wrong else [])


@pytest.mark.parametrize("spoilt", [3, 4])
def test_a_promise_is_kept_until_its_own_mapping_was_read(spoilt: int) -> None:
    """Work on one mapping settles nothing that was promised of another."""
    story = ready()
    story.map_to(1, one(0, 1))
    story.map_to(2, one(4, 2))
    for mapping, token in ((1, ONE), (2, TWO)):
        story.use(mapping, None, token)
    story.remap(1, 3, one(0, 1, required=False))
    story.remap(2, 4, one(4, 2, required=False))
    for mapping, found in ((3, ONE), (4, TWO)) if spoilt == 4 else ((4, TWO), (3, ONE)):
        story.use(mapping, bytes(8) if mapping == spoilt else found)
    assert broken(story) == ["REMAP-30"]


def test_a_reservation_may_fail_where_addresses_are_short() -> None:
    def judged(**driver: Any) -> list[str]:
        story = Story()
        story.call("reserve", reservation=1, device=0, size=8 * G, alignment=0)
        if driver:
            story.subject("reserve", 8 * G, 0, 0, **driver)
        story.refused()
        return broken(story)

    assert judged(status=2) == []
    assert judged() == ["RES-4"]


@pytest.mark.parametrize("size", [0, -G])
def test_less_than_a_byte_may_be_refused(size: int) -> None:
    story = ready()
    story.asks(1, one(0, 1, size=size))
    story.refused(INVALID)
    assert broken(story) == []


def test_an_unmap_that_reaches_behind_its_mapping_takes_what_is_anothers() -> None:
    """Mapping 1 lies in front of mapping 2, which goes with it."""
    story = ready()
    story.map_to(1, one(0, 1))
    story.map_to(2, one(1, 2))
    story.call("drop", mapping=1)
    story.unmap(0, 2 * G)
    story.null(1)
    assert "MAP-21" in broken(story)


def test_a_set_access_that_is_refused_is_passed_over_and_those_behind_it_are_not() -> None:
    """Rights on a slice that is not named, after a call that the driver refuses."""
    story = ready()
    story.map_to(1, one(0, 1), one(1, 2), one(2, 3))
    story.remaps(1, 2, one(0, 4), one(1, 2, required=False), one(2, 3, required=False))
    story.unmap(0)
    story.map(0, 4)
    story.access(0)
    story.subject("set_access", BASE, G, ((7, RW),), status=801)
    story.access(2 * G)
    story.remapped(1, 2)
    assert broken(story) == ["REMAP-34", "REMAP-35"]


def test_a_range_is_not_freed_while_something_is_mapped_in_it() -> None:
    """The first finding says how much is left."""
    story = ready()
    story.map_to(1, one(0, 1), one(1, 2))
    story.call("close", reservation=1)
    story.subject("address_free", BASE, 8 * G, status=1)
    story.gave()
    (finding, *_) = story.judged().findings
    assert (finding.invariant, finding.actual) == ("RES-9", "2 mappings are left in it")


@pytest.mark.parametrize("traced", [True, False])
def test_memory_that_is_shown_may_be_kept_whether_or_not_that_can_be_seen(traced: bool) -> None:
    def judged(mapping: bool) -> list[str]:
        story = ready(traced=traced)
        story.map_to(1, one(0, 1), one(1, 2))
        if not mapping:
            story.drop(1)
        story.call("free", allocation=2)
        story.refused(PAST)
        if not traced:
            story.history.events[:] = [event for event in story.history if event.who != SUBJECT]
        return broken(story)

    assert judged(True) == []
    assert judged(False) == ["RAW-3"]


@pytest.mark.parametrize(("place", "blamed"), [(0, "REMAP-38"), (1, "REMAP-38"), (2, "RES-16")])
def test_a_failed_remap_is_blamed_for_what_lies_in_its_place_alone(place: int, blamed: str) -> None:
    story = ready()
    story.map_to(1, one(0, 1), one(1, 2))
    story.remaps(1, 2, one(0, 3), one(1, 4))
    story.unmap(0, 2 * G)
    story.fails("map", BASE, G, handle(3), 0)
    story.lost(1)
    story.asks(3, one(place, 5))
    story.refused()
    assert broken(story) == [blamed]


@pytest.mark.parametrize("code", ["ABORTED", INVALID])
def test_a_call_that_fails_for_no_reason_leaves_nothing_mapped_either(code: str) -> None:
    """The driver has refused nothing; whether the caller's code is right is another question."""
    story = ready()
    story.asks(1, one(0, 1))
    story.map(0, 1)
    story.refused(code)
    assert "RES-18" in broken(story)


def test_addresses_that_could_not_be_freed_may_keep_what_is_mapped_there() -> None:
    """The unmap was not tried, since the driver was made to refuse to give the addresses back."""

    def judged(*excuse: str) -> list[str]:
        story = ready()
        story.map_to(1, one(0, 1))
        story.call("drop", mapping=1)
        for kind in excuse:
            story.fails(kind, BASE, G if kind == "unmap" else 8 * G)
        story.null(1)
        story.asked(0, RW)
        return broken(story)

    assert "RES-10" in judged()
    assert "RES-10" not in judged("unmap")
    assert "RES-10" not in judged("address_free")


def test_rights_for_devices_out_of_reach_and_rights_that_were_refused_do_not_count() -> None:
    story = ready()
    story.map_to(1, one(0, 1))
    story.remaps(1, 2, one(0, 4))
    story.unmap(0)
    story.map(0, 4)
    story.subject("set_access", BASE, G, ((0, RW),), status=801)
    story.access(0, devices=(0, 7))
    story.remapped(1, 2)
    assert broken(story) == []


def test_a_handle_that_is_none_is_not_excused_by_a_failure() -> None:
    """The driver was made to refuse a release that it would have refused anyway."""
    story = ready()
    story.call("free", allocation=1)
    story.fails("release", 999)
    story.subject("release", handle(1))
    story.refused("UNKNOWN")
    story.done()
    assert "RES-1" not in broken(story)


@pytest.mark.parametrize(
    ("view", "wrong"), [((False, 0), False), ((False, G), True), ((False, -G), True), ((True, 0), True)]
)
def test_a_remap_that_is_refused_leaves_the_mapping_where_it_is(view: tuple[bool, int], wrong: bool) -> None:
    null, by = view
    story = ready()
    story.map_to(1, one(0, 1))
    story.remaps(1, 2, one(0, 4), one(1, 5))
    story.refused(INVALID, m1=(null, Range(BASE + by, G)))
    assert (broken(story) != []) is wrong


def test_an_allocation_may_be_kept_while_something_shows_it_that_could_not_be_unmapped() -> None:
    def judged(*, kept: bool) -> list[str]:
        story = ready()
        story.map_to(1, one(0, 1))
        story.call("drop", mapping=1)
        if kept:
            story.fails("unmap", BASE, G)
        else:
            story.unmap(0)
        story.null(1)
        story.call("free", allocation=1)
        story.refused(PAST)
        return broken(story)

    assert judged(kept=True) == []
    assert judged(kept=False) != []


def test_what_is_to_stay_stays_behind_the_rights_as_well() -> None:
    story = ready()
    story.map_to(1, one(0, 1), one(1, 2))
    story.remaps(1, 2, one(0, 4), one(1, 2, required=False))
    story.unmap(0)
    story.map(0, 4)
    story.access(0)
    story.unmap(G)
    story.map(G, 2)
    story.access(G)
    story.remapped(1, 2)
    assert "REMAP-31" in broken(story)
