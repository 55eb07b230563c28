"""Rules on what is mapped and when, on histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from by_hand import BASE, REMAP, RW, STEADY, Hand
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.contracts import Access, Buffer
from vmm_conformance.programs.skip_remap import SlotPlan
from vmm_suites.scenarios.steps import G, plan, shadowed

RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()


# -- right ones


@RIGHT("85 86 91", plan(G, G))
def nothing_moves(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=STEADY)


@RIGHT("85 86", plan(G, G))
def source_unmapped_by_its_owner(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b, look=False)
    h.harness("unmap", a.address, G)
    h.step(a, b, phases=STEADY, look=False)


@RIGHT("86 88 97", plan(G, G))
def one_moves(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, h.buffer(G))
    h.step(a, h.buffer(G), phases=REMAP, moved=[1])


@RIGHT("86 87", plan(G))
def new_memory_at_an_old_address(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.harness("stream_synchronize", 1)
    h.free(a)
    h.step(h.buffer(G, at=a.address), phases=REMAP)


def a_grant_fails(h: Hand) -> None:
    """After a failed set_access the slot is unmapped again, and the error is reported."""
    h.map_one(0)
    h.fails("set_access", h.places[0], G, ((0, RW),))
    h.subject("unmap", h.places[0], G)


@RIGHT("86 92 93", plan(G))
def failed_then_mapped_again(h: Hand) -> None:
    h.step(h.buffer(G))
    b = h.buffer(G)
    h.step(b, phases=("wait", "unmap", lambda: a_grant_fails(h)), status="refused", code="OUT_OF_MEMORY", look=False)
    h.step(b, phases=("map", *STEADY))


@RIGHT("86 94 101", plan(G, G, G))
def a_slot_drops_out_and_comes_back(h: Hand) -> None:
    a, b, c = h.buffer(G), h.buffer(G), h.buffer(G)
    h.step(a, b, c)
    h.step(h.buffer(0), c, c, phases=REMAP, moved=[1])
    h.step(a, b, c, phases=REMAP, moved=[1])


@RIGHT("166", plan(G, G))
def maps_all_anew_when_a_map_fails(h: Hand) -> None:
    """What a step does about a failure is its own affair, if it comes to the right end."""
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)

    def all_anew() -> None:
        h.map_one(0, status=2)
        h.subject("unmap", h.places[1], G)
        h.moving = [0, 1]

    h.step(h.buffer(G), b, phases=("wait", "unmap", all_anew, "map", *STEADY), moved=[0])


@RIGHT("91 162", plan(G, G, platform="CUDA"))
def another_platform_maps_all(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=REMAP)


@RIGHT("91", shadowed(64, G, skip_remap=False))
def skip_off_maps_all(h: Hand) -> None:
    a, b = h.buffer(64), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=REMAP)


@RIGHT("91", plan(G, G, skip_remap=False))
def skip_off_maps_even_what_is_not_in_use(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    b_again = lambda: h.subject("map", h.places[1], G, b.handle, 0)  # noqa: E731 - a phase
    h.step(a, h.buffer(0), phases=("wait", both_unmapped(h), "map", b_again, *STEADY))


def both_unmapped(h: Hand) -> Callable[[], object]:
    return lambda: h.subject("unmap", BASE, 2 * G)


@RIGHT("97", plan(1))
def grows_within_its_granule(h: Hand) -> None:
    h.step(h.buffer(1))
    h.step(h.buffer(G), phases=REMAP)


@RIGHT("86 159", plan(SlotPlan(G, extra=1), G))
def maps_what_fits_of_a_wide_source(h: Hand) -> None:
    def both() -> None:
        h.map_one(0, size=G)
        h.map_one(1)
        h.subject("set_access", h.places[0], 2 * G, ((0, RW),))

    h.step(h.buffer(G, committed=2 * G), h.buffer(G), phases=("acquire", both, *STEADY))


# -- wrong ones


@WRONG("85", plan(G))
def waits_for_nothing(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=("wait", *STEADY))


@WRONG("85", plan(G))
def waits_for_nothing_long_after_a_failure(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    a_record_fails(h, a)
    h.step(a, phases=("wait", *STEADY))
    h.step(a, phases=("wait", *STEADY))


def a_record_fails(h: Hand, a: Buffer) -> None:
    failing = lambda: h.fails("event_record", 900, 1)  # noqa: E731 - a phase
    h.step(a, phases=("execute", failing), status="refused", code="UNKNOWN", look=False)


@WRONG("85", plan(G))
def grants_for_nothing(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=("grant", *STEADY))


@WRONG("85 86", plan(G, G))
def remaps_for_nothing(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=REMAP)


@WRONG("86", plan(G, G))
def remaps_all_if_any(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    h.step(a, h.buffer(G), phases=REMAP)


@WRONG("86", plan(G))
def leaves_what_has_moved(h: Hand) -> None:
    h.step(h.buffer(G))
    h.step(h.buffer(G), phases=STEADY)


@WRONG("86", plan(2 * G))
def maps_a_part(h: Hand) -> None:
    h.step(h.buffer(2 * G), phases=("acquire", lambda: h.map_one(0, size=G), "grant", *STEADY))


@WRONG("86", plan(G))
def grants_writing_at_the_next_step(h: Hand) -> None:
    """Only the first is wrong: what cannot be written has still to be remapped."""
    a = h.buffer(G)
    read = lambda: h.subject("set_access", BASE, G, ((0, Access.READ),))  # noqa: E731 - a phase
    h.step(a, phases=("acquire", "create_event", lambda: h.map_one(0), read, *STEADY))
    h.step(a, phases=REMAP)


@WRONG("86", plan(G, 3 * G))
def maps_the_rest_at_the_next_step(h: Hand) -> None:
    """Only the first is wrong: what does not show whole has still to be remapped."""
    a, b = h.buffer(G), h.buffer(3 * G)

    def a_part() -> None:
        h.map_one(0)
        h.map_one(1, size=2 * G)

    h.step(a, b, phases=("acquire", "create_event", a_part, "grant", *STEADY))
    h.step(a, b, phases=REMAP, moved=[1])


@WRONG("86", plan(G))
def grants_nothing(h: Hand) -> None:
    h.step(h.buffer(G), phases=("acquire", lambda: h.map_one(0), *STEADY))


@WRONG("86 87", plan(G))
def compares_addresses(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.harness("stream_synchronize", 1)
    h.free(a)
    h.step(h.buffer(G, at=a.address), phases=STEADY)


@WRONG("86 87", plan(G))
def compares_addresses_when_the_older_memory_comes_back(h: Hand) -> None:
    a = h.buffer(G)
    h.harness("unmap", a.address, G)
    b = h.buffer(G, at=a.address)
    h.step(b)
    h.harness("stream_synchronize", 1)
    h.free(b)
    h.harness("map", a.address, G, a.handle, 0)
    h.step(a, phases=STEADY)


@WRONG("91", plan(G))
def waits_at_the_first_step(h: Hand) -> None:
    h.step(h.buffer(G), phases=("acquire", "create_event", "wait", "map", *STEADY))


@WRONG("91 162", plan(G, platform="CUDA"))
def skips_elsewhere(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=STEADY)


@WRONG("91", plan(G, G, skip_remap=False))
def maps_moved_ones_alone_with_skip_off(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, h.buffer(G))
    h.step(a, h.buffer(G), phases=REMAP, moved=[1])


@WRONG("83 86 93", plan(G))
def trusts_a_failed_map(h: Hand) -> None:
    h.step(h.buffer(G))
    b = h.buffer(G)
    fails = lambda: h.map_one(0, status=2)  # noqa: E731 - a phase
    h.step(b, phases=("wait", "unmap", fails), status="refused", code="OUT_OF_MEMORY", look=False)
    h.step(b, phases=STEADY)


@WRONG("86 94", plan(G, G, G))
def takes_a_neighbour_for_the_slot(h: Hand) -> None:
    a, b, c = h.buffer(G), h.buffer(G), h.buffer(G)
    h.step(a, b, c)
    h.step(h.buffer(0), c, c, phases=STEADY)


@WRONG("97 159", plan(G, 3 * G))
def maps_over_the_next_slot(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(3 * G))
    wide = lambda: h.map_one(0, size=2 * G)  # noqa: E731 - a phase
    unmap = lambda: h.subject("unmap", BASE, 4 * G)  # noqa: E731 - a phase
    h.step(h.buffer(G, committed=2 * G), h.buffer(0), phases=("wait", unmap, wide, "grant", *STEADY))


@WRONG("159", plan(SlotPlan(G, extra=1), G))
def maps_a_wide_source_whole(h: Hand) -> None:
    def far_apart() -> None:
        """The driver would refuse the second mapping, did it not lie elsewhere."""
        h.places, h.total = {0: BASE, 1: BASE + G}, 2 * G
        h.subject("reserve", 2 * G, G, 0, result=BASE)
        h.map_one(1)
        h.map_one(0, size=2 * G)
        h.subject("unmap", BASE + G, G)
        h.map_one(1)
        h.subject("set_access", BASE, 2 * G, ((0, RW),))

    a, b = h.buffer(G, committed=2 * G), h.buffer(G)
    h.step(a, b, phases=(far_apart, *STEADY))


# -- ones that test nothing


@VACUOUS("85 87 88 92 93 94 97 159 162", plan(G))
def one_step(h: Hand) -> None:
    h.step(h.buffer(G))


@VACUOUS("85 86 97", plan(G))
def never_mapped(h: Hand) -> None:
    a = h.buffer(G)
    h.refused(a, code="OUT_OF_MEMORY", message="reserve", phases=(lambda: h.fails("reserve", G, G, 0),))
    h.refused(a, code="OUT_OF_MEMORY", message="reserve", phases=(lambda: h.fails("reserve", G, G, 0),))


@VACUOUS("85", plan(G), streams=2)
def another_stream(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=("wait", *STEADY), stream=2)


@VACUOUS("85", plan(G))
def behind_a_failure(h: Hand) -> None:
    """A subject may look again at what it has after a call that failed."""
    a = h.buffer(G)
    h.step(a)
    a_record_fails(h, a)
    h.step(a, phases=("wait", *STEADY))


@VACUOUS("85", plan(G), plan(G))
def behind_a_failure_and_a_step_of_another_executable(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    a_record_fails(h, a)
    h.turn_to(1)
    h.step(h.buffer(G))
    h.turn_to(0)
    h.step(a, phases=("wait", *STEADY))


@VACUOUS("85", plan(G, skip_remap=False))
def skip_off(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=REMAP)


@VACUOUS("87", plan(G))
def the_same_buffer(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=STEADY)


@VACUOUS("87 88 93 94 97 162", shadowed(64))
def nothing_but_a_small_slot(h: Hand) -> None:
    h.step(h.buffer(64))
    h.step(h.buffer(64), phases=STEADY)


@VACUOUS("159", plan(SlotPlan(64, extra=1), copy_threshold=64))
def a_wide_source_of_a_small_slot(h: Hand) -> None:
    h.step(h.buffer(64, committed=2 * G))


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right_histories_have_witnesses_and_no_finding(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong_histories_break_what_they_should(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_histories_that_test_nothing_have_no_witness(story: Story) -> None:
    check_vacuous(story)
