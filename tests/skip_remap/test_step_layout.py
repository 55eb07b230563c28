"""Rules on the execution table, on histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from by_hand import BASE, FIRST, REMAP, SHADOWS, STEADY, Hand
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.contracts import UpdateMode
from vmm_conformance.programs.skip_remap import CommandPlan, SlotPlan
from vmm_suites.scenarios.steps import G, plan, shadowed

RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()
NEVER, CAPTURE, ALWAYS = UpdateMode.NEVER_UPDATE, UpdateMode.CAPTURE_CMD_NEVER_UPDATE, UpdateMode.ALWAYS_UPDATE
SOME_TRACED = (CommandPlan((0,), traced=False), CommandPlan((1,)))
PLAIN = ("execute",)
EVERYTHING = " ".join(map(str, (*range(81, 120), 158, 159, 160, 161, 162, 163, 164, 166)))

# -- right ones


@RIGHT("81 82 83 84 103 104 106 107", shadowed(64, G, 2 * G))
def steps_with_both_classes(h: Hand) -> None:
    a, b, c = h.buffer(64), h.buffer(G), h.buffer(2 * G)
    h.step(a, b, c)
    h.step(a, b, c, phases=STEADY)
    h.step(h.buffer(64), h.buffer(G), c, phases=REMAP, moved=[1])


@RIGHT("82 83 101", plan(0, G, 1))
def an_empty_slot(h: Hand) -> None:
    h.step(h.buffer(0), h.buffer(G), h.buffer(1))


@RIGHT("83 84 101", plan(SlotPlan(64, constant=True), G))
def a_constant(h: Hand) -> None:
    a, b = h.buffer(64), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=STEADY)


@RIGHT("83 84 102", plan(G, G, mode=CAPTURE, named=SOME_TRACED))
def traced_slots_alone(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G))
    h.step(h.buffer(G), h.buffer(G), phases=REMAP, moved=[1])


@RIGHT("84 102", plan(G, G, named=SOME_TRACED))
def every_command_counts(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G))


@RIGHT("83 100", plan(G, mode=ALWAYS))
def gated_by_mode(h: Hand) -> None:
    h.step(h.buffer(G), phases=(lambda: h.execute(persistent=None),))


@RIGHT("100", plan(SlotPlan(G, constant=True), SlotPlan(G, constant=True), vmm=False))
def constants_are_promised_though_gated(h: Hand) -> None:
    """All of them, or some: their addresses are fixed in any case."""
    a, b = h.buffer(G, handle=False), h.buffer(G, handle=False)
    h.step(a, b, phases=(lambda: h.execute(persistent=(0,)),))
    h.step(a, b, phases=(lambda: h.execute(persistent=(0, 1)),))


@RIGHT("83 100 162", plan(G, vmm=False))
def gated_by_allocator(h: Hand) -> None:
    h.step(h.buffer(G, handle=False), phases=(lambda: h.execute(persistent=None),))


@RIGHT("105 106 114", shadowed(64, 8))
def small_slots_alone(h: Hand) -> None:
    h.step(h.buffer(64), h.buffer(8))
    h.step(h.buffer(40), h.buffer(8), phases=STEADY)


@RIGHT("83 119", plan(G, 64))
def no_threshold(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(64))


@RIGHT("119 162", plan(64, copy_threshold=256, platform="CUDA"))
def no_threshold_elsewhere(h: Hand) -> None:
    h.step(h.buffer(64))


@RIGHT("99", plan(G), plan(G))
def two_executables(h: Hand) -> None:
    h.step(h.buffer(G))
    h.turn_to(1)
    h.step(h.buffer(G))


@RIGHT("99", plan(32 * G), plan(32 * G), plan(32 * G))
def ranges_lie_side_by_side(h: Hand) -> None:
    """One executable's right behind that of the first, and one's right before it."""
    h.offset = 1
    h.step(h.buffer(32 * G))
    for executable, offset in ((1, 2), (2, 0)):
        h.turn_to(executable)
        h.offset = offset
        h.step(h.buffer(32 * G))


@RIGHT("99", *[plan(SlotPlan(G, constant=True), G, G)] * 2)
def what_is_not_the_executors_may_be_shared(h: Hand) -> None:
    """A constant of the caller's; and an entry without bytes may say anything."""
    a, empty = h.buffer(G), h.buffer(0)
    h.step(a, h.buffer(G), empty)
    h.turn_to(1)
    h.step(a, h.buffer(G), empty, phases=(*FIRST[:3], lambda: h.execute(h.table(at2=BASE + 8)), "record"))


@RIGHT("99", plan(G), plan(G))
def addresses_come_back_after_close(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close()
    h.turn_to(1)
    h.offset = 0
    h.step(h.buffer(G))


@RIGHT("99", plan(G), plan(G))
def addresses_come_back_the_other_way_round(h: Hand) -> None:
    """The executable that stepped first, in vain, is the one that comes to the addresses later."""
    a = h.buffer(G)
    h.refused(a, message="no addresses", phases=(lambda: h.fails("reserve", G, G, 0),))
    h.turn_to(1)
    h.offset = 0
    h.step(h.buffer(G))
    h.close(executable=1)
    h.turn_to(0)
    h.step(a)


# -- wrong ones


@WRONG("81 85", plan(G))
def reserves_again(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=(lambda: h.subject("reserve", G, G, 0, result=4 * BASE), *STEADY))


@WRONG("81 84", plan(G))
def moves_to_another_range(h: Hand) -> None:
    h.step(h.buffer(G))

    def elsewhere() -> None:
        h.subject("reserve", G, G, 0, result=4 * BASE)
        h.places[0] = 4 * BASE

    h.step(h.buffer(G), phases=("wait", "unmap", elsewhere, "map", *STEADY))


@WRONG("81 84", plan(G))
def moves_to_another_range_that_it_had_from_the_first(h: Hand) -> None:
    spare = lambda: h.subject("reserve", G, G, 0, result=4 * BASE)  # noqa: E731 - a phase
    h.step(h.buffer(G), phases=(spare, *FIRST))
    elsewhere = lambda: h.places.update({0: 4 * BASE})  # noqa: E731 - a phase
    h.step(h.buffer(G), phases=("wait", "unmap", elsewhere, "map", *STEADY))


@WRONG("82", plan(G, 2 * G))
def lies_backwards(h: Hand) -> None:
    def backwards() -> None:
        h.places, h.total = {0: BASE + 2 * G, 1: BASE}, 3 * G
        h.subject("reserve", h.total, G, 0, result=BASE)

    h.step(h.buffer(G), h.buffer(2 * G), phases=(backwards, *FIRST[1:]), moved=[0, 1])


@WRONG("82", plan(G))
def reserves_too_much(h: Hand) -> None:
    def twice() -> None:
        h.lay_out()
        h.subject("reserve", 2 * G, G, 0, result=BASE)

    h.step(h.buffer(G), phases=(twice, *FIRST[1:]))


def executing(h: Hand, sizes: list[int], **changes: int) -> None:
    """A first step whose table is wrong by ``changes``."""
    buffers = [h.buffer(size) for size in sizes]
    h.step(*buffers, phases=(*FIRST[:-3], lambda: h.execute(h.table(**changes)), "copy_back", "record"))


@WRONG("83", plan(100))
def rounds_sizes(h: Hand) -> None:
    executing(h, [100], size0=G)


@WRONG("83", plan(100))
def rounds_sizes_behind_a_step_that_was_refused(h: Hand) -> None:
    h.refused(h.buffer(100, handle=False), message="slot 0 has no handle")
    executing(h, [100], size0=G)


@WRONG("83", plan(G, G, mode=CAPTURE, named=(CommandPlan((0,)),)))
def moves_what_no_command_names(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(h.table(at1=8 * BASE), submits=False)))


@WRONG("83", plan(G, named=(CommandPlan((0,)),)))
def leaks_the_callers_address(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, phases=(*FIRST[:-3], lambda: h.execute(h.table(at0=a.address)), "record"))


@WRONG("83 86", plan(G))
def points_at_nothing(h: Hand) -> None:
    executing(h, [G], at0=8 * BASE)


@WRONG("83", plan(G, G))
def forgets_an_entry(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(h.table()[:1], submits=False), "record"))


@WRONG("83 84", plan(G))
def adds_an_entry_and_promises_too_little_later(h: Hand) -> None:
    """A step with a wrong table hides nothing of those behind it."""
    a = h.buffer(G)
    h.step(a, phases=(*FIRST[:-3], lambda: h.execute((*h.table(), h.table()[0]), submits=False), "record"))
    h.step(a, phases=(lambda: h.execute(persistent=None), "record"))


@WRONG("83 84", plan(G))
def leaks_the_callers_address_later(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=(lambda: h.execute(h.table(at0=a.address)), "record"))


@WRONG("84", plan(G, G))
def promises_too_little(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(persistent=(1,)), "record"))


@WRONG("84", plan(G, G, named=(CommandPlan((0,)),)))
def promises_what_moves(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(persistent=(0, 1)), "record"))
    h.step(a, h.buffer(G), phases=(lambda: h.execute(persistent=(0, 1)), "record"))


@WRONG("99", plan(G), plan(G))
def shares_a_range(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.where["executable"] = 1
    h.step(a, phases=("execute", "record"))


@WRONG("99", shadowed(64), shadowed(64))
def shares_a_shadow(h: Hand) -> None:
    h.step(h.buffer(64))
    h.where["executable"] = 1
    h.step(h.buffer(64), phases=STEADY)


@WRONG("100", plan(G, mode=ALWAYS))
def maps_though_gated(h: Hand) -> None:
    reserve = lambda: h.subject("reserve", G, G, 0, result=BASE)  # noqa: E731 - a phase
    h.step(h.buffer(G), phases=(reserve, lambda: h.execute(persistent=None)))


@WRONG("100", plan(G, mode=ALWAYS))
def promises_though_gated(h: Hand) -> None:
    h.step(h.buffer(G), phases=(lambda: h.execute(persistent=(0,)),))


@WRONG("100 162", plan(G, vmm=False))
def allocates_for_another_allocator(h: Hand) -> None:
    alloc = lambda: h.subject("alloc", G, 0, 0, result=SHADOWS)  # noqa: E731 - a phase
    h.step(h.buffer(G, handle=False), phases=(alloc, lambda: h.execute(persistent=None)))


@WRONG("101", plan(SlotPlan(G, constant=True), G))
def remaps_a_constant(h: Hand) -> None:
    def with_constant() -> None:
        h.places, h.total, h.moving = {0: BASE + G, 1: BASE}, G, [0, 1]
        h.subject("reserve", G, G, 0, result=BASE)
        h.subject("reserve", G, G, 0, result=BASE + G)

    h.step(h.buffer(G), h.buffer(G), phases=(with_constant, *FIRST[1:]))


@WRONG("101", plan(SlotPlan(G, constant=True), G))
def forgets_a_constant(h: Hand) -> None:
    h.step(h.buffer(G), h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(persistent=(1,)), "record"))


@WRONG("102", plan(G, G, mode=CAPTURE, named=SOME_TRACED))
def selects_what_was_not_traced(h: Hand) -> None:
    def both() -> None:
        h.places, h.total, h.moving = {0: BASE + G, 1: BASE}, G, [0, 1]
        h.subject("reserve", G, G, 0, result=BASE)
        h.subject("reserve", G, G, 0, result=BASE + G)

    h.step(h.buffer(G), h.buffer(G), phases=(both, *FIRST[1:]))


@WRONG("82 83 84 102", plan(G, G, named=SOME_TRACED))
def selects_what_was_traced_alone(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)

    def one() -> None:
        h.places, h.total, h.moving = {1: BASE}, G, [1]
        h.subject("reserve", G, G, 0, result=BASE)

    h.step(a, b, phases=(one, *FIRST[1:-3], lambda: h.execute(h.table(), (1,)), "record"))


@WRONG("103", shadowed(64, G))
def maps_a_small_slot(h: Hand) -> None:
    def apart() -> None:
        h.places, h.total, h.moving = {0: BASE + G, 1: BASE}, G, [0, 1]
        h.subject("reserve", G, G, 0, result=BASE)
        h.subject("reserve", G, G, 0, result=BASE + G)

    h.step(h.buffer(64), h.buffer(G), phases=(apart, "create_event", "map", "execute", "record"))


@WRONG("82 104", shadowed(G, 64, G))
def leaves_a_gap(h: Hand) -> None:
    def gap() -> None:
        h.lay_out()
        h.places[2] += G
        h.subject("reserve", 3 * G, G, 0, result=BASE)
        h.subject("alloc", 64, 0, 0, result=h.shadows[1])

    h.step(h.buffer(G), h.buffer(64), h.buffer(G), phases=(gap, *FIRST[1:]), moved=[0, 2])


@WRONG("105", shadowed(64))
def reserves_for_nothing(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: h.subject("reserve", G, G, 0, result=BASE), *FIRST))


def moved_shadow(h: Hand) -> None:
    h.subject("alloc", 64, 0, 0, result=5 * BASE)
    h.shadows[0] = 5 * BASE


@WRONG("84 85 106", shadowed(64))
def moves_a_shadow(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a)
    h.step(a, phases=(lambda: moved_shadow(h), *STEADY))


@WRONG("84 85 106 114", shadowed(64))
def moves_a_shadow_that_shrinks(h: Hand) -> None:
    h.step(h.buffer(64))
    h.step(h.buffer(40), phases=(lambda: moved_shadow(h), *STEADY))


def shrinks_to(size: int) -> Callable[[Hand], None]:
    """A small slot shrinks, and its entry says another size."""

    def tell(h: Hand) -> None:
        h.step(h.buffer(64))
        h.step(h.buffer(40), phases=("copy_in", lambda: h.execute(h.table(size0=size)), "copy_back", "record"))

    return tell


WRONG("83 114", shadowed(64))(shrinks_to(64))
WRONG("83 114", shadowed(64))(shrinks_to(8))


@WRONG("107", shadowed(64))
def takes_another_space_than_zero(h: Hand) -> None:
    def acquire() -> None:
        h.lay_out()
        h.subject("alloc", 64, 0, 5, result=h.shadows[0])

    h.step(h.buffer(64), phases=(acquire, *FIRST[1:]))


@WRONG("107", shadowed(SlotPlan(64, space=5)))
def takes_space_zero(h: Hand) -> None:
    h.step(h.buffer(64))


def shadowed_all_the_same(h: Hand) -> None:
    def acquire() -> None:
        h.shadows = {0: SHADOWS}
        h.subject("alloc", 64, 0, 0, result=SHADOWS)

    h.step(h.buffer(64), phases=(acquire, *FIRST[1:]), moved=[])


WRONG("119", plan(64))(shadowed_all_the_same)
WRONG("119 162", plan(64, platform="rocm", copy_threshold=64))(shadowed_all_the_same)


# -- ones that test nothing


@VACUOUS(EVERYTHING, plan(G))
def nothing_happens(h: Hand) -> None:
    h.buffer(G)


@VACUOUS("81 82 83 84 99 100 101 102 103 104 105 106 107 114 119", shadowed(64, G))
def never_executed(h: Hand) -> None:
    h.refused(h.buffer(64), h.buffer(G)._replace(address=0), message="slot 1: no address")


@VACUOUS("81 100 101 102 103 104 105 106 107 114", plan(G))
def one_step_with_one_slot(h: Hand) -> None:
    h.step(h.buffer(G))


@VACUOUS("81 82 99 104 106 114 119", shadowed(64))
def one_step_with_one_small_slot(h: Hand) -> None:
    h.step(h.buffer(64))


@VACUOUS("81 82 84 101 102 103 104 105 106 107 119", shadowed(64, mode=ALWAYS))
def gated(h: Hand) -> None:
    h.step(h.buffer(64), phases=(lambda: h.execute(persistent=None),))


@VACUOUS("101 106 114", shadowed(64))
def a_small_slot_grows(h: Hand) -> None:
    h.step(h.buffer(64))
    h.refused(h.buffer(65), message="slot 0: 65 bytes")


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right_histories_have_witnesses_and_no_finding(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong_histories_break_what_they_should(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_histories_that_test_nothing_have_no_witness(story: Story) -> None:
    check_vacuous(story)
