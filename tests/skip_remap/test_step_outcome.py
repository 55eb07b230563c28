"""Rules on how a step ends, on histories written by hand."""

from __future__ import annotations

import pytest
from by_hand import BASE, FIRST, REMAP, STEADY, Hand
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.checkers.step_plan import plan_facts
from vmm_conformance.contracts import UpdateMode
from vmm_conformance.programs.skip_remap import CommandPlan, SlotPlan
from vmm_suites.scenarios.steps import G, plan, shadowed

RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()
NO_SUCH_SLOT = (CommandPlan((0,)), CommandPlan((3,)))
REFUSED = {"status": "refused", "code": "INTERNAL", "look": False}
SHORT = {"status": "refused", "code": "OUT_OF_MEMORY", "look": False}


def reserve_fails(h: Hand) -> None:
    h.fails("reserve", G, G, 0)


def alloc_fails(h: Hand) -> None:
    h.fails("alloc", 64, 0, 0)


# -- right ones


@RIGHT("166", plan(G))
def a_plain_step(h: Hand) -> None:
    h.step(h.buffer(G))


@RIGHT("166", plan(G))
def the_callbacks_own_failure(h: Hand) -> None:
    h.step(h.buffer(G), outcome="raise-after", status="raised", phases=(*FIRST[:-2], "record"))


@RIGHT("95", plan(G, G))
def null_address(h: Hand) -> None:
    h.refused(h.buffer(G), h.buffer(G)._replace(address=0), message="slot 1 has no address")


@RIGHT("95", plan(G))
def no_handle(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), message="slot 0 has no handle")


@RIGHT("95", plan(G, G))
def either_of_two_is_named(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), h.buffer(G, handle=False), message="slot 1 has no handle", code="INTERNAL")


@RIGHT("95", plan(G, G))
def with_two_reasons_either_code_will_do(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), h.buffer(G, handle=False), message="slot 1 has no handle", code="NOT_FOUND")


@RIGHT("95", plan(G))
def a_failure_may_be_told_in_place_of_the_reason(h: Hand) -> None:
    phases = (lambda: h.fails("create", G, 0, 0),)
    h.refused(h.buffer(G, handle=False), code="UNKNOWN", message="create failed", phases=phases)


@RIGHT("96 166", plan(G))
def reservation_fails_once(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, phases=(lambda: reserve_fails(h),), **SHORT)
    h.step(a)


@RIGHT("97 166", plan(G, G))
def growth(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)
    h.step(a, b)
    h.refused(a, h.buffer(G + 1), message=f"slot 1: {G + 1} bytes instead of {G}")
    h.step(a, b, phases=STEADY)


@RIGHT("113", shadowed(64))
def growth_of_a_small_slot(h: Hand) -> None:
    h.step(h.buffer(64))
    h.refused(h.buffer(65), message="slot 0 has grown from 64 to 65 bytes")


@RIGHT("108", plan(G, named=NO_SUCH_SLOT))
def a_command_without_slot(h: Hand) -> None:
    h.refused(h.buffer(G), message="slot 3 does not exist")


@RIGHT("115", shadowed(64, 48))
def a_shadow_is_not_to_be_had(h: Hand) -> None:
    def second_fails() -> None:
        h.subject("alloc", 64, 0, 0, result=BASE)
        h.fails("alloc", 48, 0, 0)
        h.subject("free", BASE)

    a, b = h.buffer(64), h.buffer(48)
    h.step(a, b, phases=(second_fails,), message="slot 1: no 48 bytes", **REFUSED)
    h.step(a, b)


@RIGHT("159", plan(G), partial_map=False)
def a_wide_source_where_handles_are_mapped_whole(h: Hand) -> None:
    h.refused(h.buffer(G, committed=3 * G), code="FAILED_PRECONDITION", message=f"slot 0: {3 * G} bytes, not {G}")


@RIGHT("92 166", plan(G))
def the_step_behind_a_failed_map(h: Hand) -> None:
    h.step(h.buffer(G))
    b = h.buffer(G)
    h.step(b, phases=("wait", "unmap", lambda: h.map_one(0, status=2)), **SHORT)
    h.step(b, phases=("map", *STEADY))


@RIGHT("100 162", plan(G, vmm=False))
def gated(h: Hand) -> None:
    h.step(h.buffer(G, handle=False), phases=(lambda: h.execute(persistent=None),))


@RIGHT("105 166", shadowed(8))
def small_slots_alone(h: Hand) -> None:
    h.step(h.buffer(8))


@RIGHT("166", shadowed(64), partial_map=False)
def a_wide_source_of_a_small_slot(h: Hand) -> None:
    """It is copied, not mapped."""
    h.step(h.buffer(64, committed=3 * G))


# -- wrong ones


@WRONG("95", plan(G))
def executes_nothing_and_yet_is_content(h: Hand) -> None:
    h.step(h.buffer(G, handle=False), phases=(), look=False)


@WRONG("83 86 95", plan(G))
def refuses_when_it_has_executed(h: Hand) -> None:
    executed = (*FIRST[:-3], lambda: h.execute(submits=False))
    h.step(h.buffer(G)._replace(handle=None), phases=executed, message="slot 0 has no handle", **REFUSED)


@WRONG("166", plan(G))
def refuses_for_what_the_driver_refuses_but_not_for_want_of_memory(h: Hand) -> None:
    phases = (lambda: h.subject("reserve", G, G, 0, status=801),)
    h.step(h.buffer(G), phases=phases, status="refused", code="NOT_SUPPORTED", look=False)


@WRONG("166", plan(G), plan(G))
def refuses_when_another_executable_was_closed(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close()
    h.refused(h.buffer(G), code="FAILED_PRECONDITION", message="closed")
    h.turn_to(1)
    h.refused(h.buffer(G), code="FAILED_PRECONDITION", message="closed")


@WRONG("166", plan(G))
def refuses(h: Hand) -> None:
    h.refused(h.buffer(G), message="not today")


@WRONG("166", plan(G))
def executes_nothing(h: Hand) -> None:
    h.step(h.buffer(G), phases=(), look=False)


@WRONG("166", plan(G))
def executes_twice(h: Hand) -> None:
    h.step(h.buffer(G), phases=(*FIRST[:-2], "execute", "record"))


@WRONG("166", plan(G))
def executes_and_refuses_all_the_same(h: Hand) -> None:
    h.step(h.buffer(G), status="refused", code="INTERNAL", message="too late")


@WRONG("166", plan(G))
def blames_the_callback_for_nothing(h: Hand) -> None:
    h.step(h.buffer(G), status="raised")


@WRONG("166", plan(G))
def swallows_the_callbacks_failure(h: Hand) -> None:
    h.step(h.buffer(G), outcome="raise-after")


@WRONG("166", plan(G))
def crashes_when_a_call_fails(h: Hand) -> None:
    h.step(h.buffer(G), phases=(lambda: reserve_fails(h),), status="crashed", code="KeyError", look=False)


@WRONG("83 95", plan(G))
def executes_without_memory(h: Hand) -> None:
    h.step(h.buffer(G)._replace(address=0), phases=(lambda: h.execute(submits=False),), look=False)


@WRONG("95", plan(G, G))
def does_not_say_which(h: Hand) -> None:
    h.refused(h.buffer(G), h.buffer(G, handle=False), message="no handle")


@WRONG("95", plan(G))
def takes_the_wrong_code(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), code="NOT_FOUND", message="slot 0 has no handle")


@WRONG("95", plan(G))
def takes_another_wrong_code(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), code="ABORTED", message="slot 0 has no handle")


@WRONG("108", plan(G, named=NO_SUCH_SLOT))
def takes_the_wrong_code_for_no_slot(h: Hand) -> None:
    h.refused(h.buffer(G), code="NOT_FOUND", message="slot 3 does not exist")


@WRONG("113", shadowed(64))
def takes_the_wrong_code_for_growth(h: Hand) -> None:
    h.step(h.buffer(64))
    h.refused(h.buffer(65), code="OUT_OF_RANGE", message="slot 0 has grown to 65 bytes")


@WRONG("96 166", plan(G))
def never_reserves_again(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, phases=(lambda: reserve_fails(h),), **SHORT)
    h.refused(a, message="the address range is null")


@WRONG("96", plan(G))
def leaves_a_range_behind(h: Hand) -> None:
    def map_fails() -> None:
        h.subject("reserve", G, G, 0, result=BASE)
        h.fails("map", BASE, G, 1001, 0)

    h.step(h.buffer(G), phases=(map_fails,), **SHORT)


@WRONG("96", plan(G))
def leaves_a_reference_behind(h: Hand) -> None:
    a = h.buffer(G)
    retain = lambda: h.subject("retain", a.address, result=a.handle)  # noqa: E731 - a phase
    h.step(a, phases=(retain, lambda: h.fails("map", BASE, G, a.handle, 0)), **SHORT)


@WRONG("86 97", plan(G))
def executes_what_has_outgrown_its_slot(h: Hand) -> None:
    h.step(h.buffer(G))
    h.step(h.buffer(G + 1), phases=("wait", lambda: h.execute(submits=False)), look=False)


@WRONG("96", plan(G, G))
def leaves_a_range_behind_when_memory_is_short(h: Hand) -> None:
    def second_map_fails() -> None:
        h.subject("reserve", 2 * G, G, 0, result=BASE)
        h.subject("map", BASE, G, 1002, 0, status=2)

    h.step(h.buffer(G), h.buffer(G), phases=(second_map_fails,), **SHORT)


@WRONG("97", plan(G))
def does_not_say_how_large(h: Hand) -> None:
    h.step(h.buffer(G))
    h.refused(h.buffer(G + 1), message="slot 0 has grown")


@WRONG("113", shadowed(64))
def replaces_a_shadow(h: Hand) -> None:
    h.step(h.buffer(64))
    alloc = lambda: h.subject("alloc", 65, 0, 0, result=BASE)  # noqa: E731 - a phase
    h.refused(h.buffer(65), message="slot 0 has grown to 65 bytes", phases=(alloc,))


@WRONG("113", shadowed(64))
def executes_a_grown_small_slot(h: Hand) -> None:
    h.step(h.buffer(64))
    h.step(h.buffer(65), phases=(lambda: h.execute(submits=False),), look=False)


@WRONG("108", plan(G, named=NO_SUCH_SLOT))
def ignores_a_command_without_slot(h: Hand) -> None:
    h.step(h.buffer(G), look=False)


@WRONG("115", shadowed(64))
def leaves_place_holders(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: alloc_fails(h),), message="no shadow of %d bytes for slot %d", **REFUSED)


@WRONG("115", shadowed(64))
def does_not_say_how_large_a_shadow(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: alloc_fails(h),), message="no shadow for slot 0", **REFUSED)


@WRONG("115", shadowed(64))
def does_not_say_whose_shadow(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: alloc_fails(h),), message="no shadow of 64 bytes", **REFUSED)


@WRONG("115", shadowed(64))
def takes_the_wrong_code_for_a_shadow(h: Hand) -> None:
    fails = {**REFUSED, "code": "ABORTED"}
    h.step(h.buffer(64), phases=(lambda: alloc_fails(h),), message="slot 0: no 64 bytes", **fails)


@WRONG("115", shadowed(64))
def passes_the_drivers_code_on(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: alloc_fails(h),), message="slot 0: no 64 bytes", **SHORT)


@WRONG("115", shadowed(64, 48))
def loses_the_first_shadow(h: Hand) -> None:
    def second_fails() -> None:
        h.subject("alloc", 64, 0, 0, result=BASE)
        h.fails("alloc", 48, 0, 0)

    h.step(h.buffer(64), h.buffer(48), phases=(second_fails,), message="slot 1: no 48 bytes", **REFUSED)


@WRONG("159", plan(G), partial_map=False)
def names_one_size(h: Hand) -> None:
    h.refused(h.buffer(G, committed=3 * G), code="FAILED_PRECONDITION", message=f"slot 0: {3 * G} bytes are too many")


@WRONG("159 166", plan(SlotPlan(G, extra=1)))
def fails_on_its_own_inconsistency(h: Hand) -> None:
    h.refused(h.buffer(G, committed=2 * G), code="INVALID_ARGUMENT", message="mappings are not contiguous")


@WRONG("92 166", plan(G))
def does_not_recover(h: Hand) -> None:
    h.step(h.buffer(G))
    b = h.buffer(G)
    h.step(b, phases=("wait", "unmap", lambda: h.map_one(0, status=2)), **SHORT)
    h.refused(b, message="the mapping is gone")


@WRONG("100 162 166", plan(G, vmm=False))
def refuses_buffers_of_another_allocator(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), message="slot 0 has no handle")


@WRONG("105 166", shadowed(8))
def misses_a_range_that_nothing_needs(h: Hand) -> None:
    h.refused(h.buffer(8), message="the address range is null")


# -- ones that test nothing


@VACUOUS("92 95 96 97 100 105 108 113 115 159 162", plan(G))
def a_step_with_nothing_against_it(h: Hand) -> None:
    h.step(h.buffer(G))


@VACUOUS("95 97", plan(G))
def after_close(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close()
    h.refused(h.buffer(G + 1), code="FAILED_PRECONDITION", message="closed")
    h.refused(h.buffer(G, handle=False), code="FAILED_PRECONDITION", message="closed")


@VACUOUS("166", plan(G))
def closed_before_the_first_step(h: Hand) -> None:
    h.close("destroy_event")
    h.refused(h.buffer(G), code="FAILED_PRECONDITION", message="closed")


@VACUOUS("166", plan(G))
def really_out_of_memory(h: Hand) -> None:
    """What the driver refuses by itself is no fault of the executor."""
    h.step(h.buffer(G), phases=(lambda: h.subject("reserve", G, G, 0, status=2),), **SHORT)


@VACUOUS("95 166", shadowed(64))
def a_small_slot_without_handle(h: Hand) -> None:
    """A copy needs none, but a subject may ask for one."""
    h.refused(h.buffer(64, handle=False), message="slot 0 has no handle")


@VACUOUS("97", plan(G))
def no_growth_before_the_first_execution(h: Hand) -> None:
    h.step(h.buffer(G), phases=(lambda: reserve_fails(h),), **SHORT)
    h.step(h.buffer(3 * G))


@VACUOUS("108", plan(G, mode=UpdateMode.CAPTURE_CMD_NEVER_UPDATE, named=(CommandPlan((0,)), CommandPlan((3,), False))))
def the_mode_does_not_count_the_command(h: Hand) -> None:
    h.step(h.buffer(G))


@VACUOUS("96", plan(G))
def a_later_step_keeps_what_it_has(h: Hand) -> None:
    h.step(h.buffer(G))
    b = h.buffer(G)
    h.step(b, phases=("wait", "unmap", lambda: h.map_one(0, status=2)), **SHORT)


@VACUOUS("159", plan(G, 1))
def sizes_agree(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(1))
    h.step(h.buffer(G), h.buffer(1), phases=REMAP)


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right_histories_have_witnesses_and_no_finding(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong_histories_break_what_they_should(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_histories_that_test_nothing_have_no_witness(story: Story) -> None:
    check_vacuous(story)


@pytest.mark.parametrize(("slot", "outside"), [(-1, True), (0, False), (1, False), (2, True), (3, True)])
def test_a_slot_is_one_of_the_executables(slot: int, outside: bool) -> None:
    """Named by a command that is traced, or by one that is not."""
    for traced in (True, False):
        facts = plan_facts(plan(64, 64, named=(CommandPlan((slot,), traced=traced),), mode="NEVER_UPDATE"), G)
        assert facts.out_of_range == ((slot,) if outside else ())
        assert facts.remapped == (() if outside else (slot,))
        assert facts.untraced == (() if outside or traced else (slot,))
