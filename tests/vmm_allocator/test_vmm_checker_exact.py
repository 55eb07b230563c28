"""The checker finds what is wrong, by its own invariant and once, and nothing else: histories written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vmm_tales import STREAMS, A, B, C, G, Tale, slot

from vmm_conformance.contracts import NULL, Access, Fault, Range, Status
from vmm_conformance.programs.vmm_allocator import Configuration

Tell = Callable[[Tale], None]
SHORT = Configuration(devices=2, budget=4 * G)
EXEMPT = Configuration(devices=2, budget=4 * G, exempt=(1,))
OOM = Status.OUT_OF_MEMORY.value

TOLD: list[tuple[Tell, tuple[int, ...], Configuration | None, dict[str, Any]]] = []


def told(*numbers: int, configuration: Configuration | None = None, **header: Any) -> Callable[[Tell], Tell]:
    """A history and all that is to be found in it, in order; nothing, where it is right."""

    def register(tell: Tell) -> Tell:
        TOLD.append((tell, numbers, configuration, header))
        return tell

    return register


def half_gone(t: Tale, address: int) -> None:
    """The rights have gone, the unmap was made to fail: what is left nobody can tell."""
    t.call("synchronize")
    t.mark(50)
    t.wait(50)
    t.driver("set_access", address, G, ((0, Access.NONE),))
    t.driver("unmap", address, G, status=801, result="injected")
    t.refused("UNKNOWN")


def pieces(t: Tale, address: int, *offsets: int) -> None:
    """One handle behind an address, granule by granule."""
    for place, offset in enumerate(offsets):
        t.driver("map", address + place * G, G, 1, offset * G)
        t.driver("set_access", address + place * G, G, ((0, Access.READ_WRITE),))


# -- answers


@told(76, reported=True)
def its_driver_accepts_what_is_illegal(t: Tale) -> None:
    t.call("synchronize")
    t.driver("release", 9)
    t.gave()


def half_released(t: Tale, handle: int) -> None:
    """One in use, and one whose memory was to go, and is left; then a call that is refused for the first."""
    t.allocate_at(slot(0, 2), 1)
    t.deallocate(t.allocate_at(slot(3), 2))
    t.call("synchronize")
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(3).address, G)
    t.driver("release", 2, status=801, result="injected")
    t.refused("UNKNOWN")
    t.wants_at(slot(1, 2))
    t.driver("release", handle)
    t.refused("FAILED_PRECONDITION")


@told()
def releases_what_is_left_before_it_refuses(t: Tale) -> None:
    half_released(t, 2)


@told(62)
def releases_what_somebody_has_before_it_refuses(t: Tale) -> None:
    half_released(t, 1)


@told(70, configuration=EXEMPT)
def refuses_what_its_own_slice_gives_back(t: Tale) -> None:
    """Exempt memory goes for nobody's sake, but this is in the way, and just enough."""
    place = slot(0, 4)
    t.wants_at(place, space=1)
    t.back(place.address, 1, place.size, space=1, own=False)
    t.gave(place)
    t.deallocate(place)
    t.wants_at(place)
    t.refused("RESOURCE_EXHAUSTED")


@told(183)
def gives_what_is_in_use_though_its_like_is_free(t: Tale) -> None:
    """That the other one should have been taken is not told besides."""
    t.allocate(A, 1)
    t.deallocate(t.allocate(B, 2))
    t.again(A)


@told(181, 181, 181)
def tells_other_facts(t: Tale) -> None:
    for name, answer in (("stream", STREAMS[1]), ("granularity", 1), ("granularity", 2 * G)):
        t.call(name)
        t.gave(answer)


@told(43)
def tells_facts_of_a_device_that_is_not_there(t: Tale) -> None:
    t.call("granularity", 9)
    t.gave(G)


@told(181)
def a_look_raises(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.note("look", ordinal=0, address=made, raw=None, own=None, status="crashed", code="KeyError", message="")


@told(traced=False)
def whose_memory_is_not_seen_may_have_any_handle(t: Tale) -> None:
    t.wants(G)
    t.gave(Range(A, G))
    t.look(Range(A, G), (77, G), Range(A, G))


@told(53, traced=False)
def whose_memory_is_not_seen_is_told_all_the_same(t: Tale) -> None:
    t.wants(G)
    t.gave(Range(A, G))
    t.look(Range(A, G), None, Range(A, G))


@told(75)
def forgets_what_its_marker_was_refused_for(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, status=OOM)
    t.refused("OUT_OF_MEMORY")
    t.look(made, None)


@told(53)
def forgets_what_was_taken_back(t: Tale) -> None:
    """That a marker was refused for it once has no more to do with it."""
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, status=OOM)
    t.refused("OUT_OF_MEMORY")
    t.again(A)
    t.look(made, None, made)


@told(42)
def gives_more_than_was_asked_for(t: Tale) -> None:
    t.wants(G)
    t.back(A, 1, 2 * G)
    t.gave(Range(A, 2 * G))


# -- calls at once


@told(77)
def the_first_thread_waits_for_the_other_device(t: Tale) -> None:
    t.wants(G)
    t.thread = 1
    t.wants(G, 1)
    t.thread = 0
    t.note("blocked", at="create")
    t.thread = 1
    t.back(B, 2, device=1)
    t.gave(Range(B, G))
    t.thread = 0
    t.back(A, 1)
    t.gave(Range(A, G))


@told(80)
def takes_an_alias_back_that_it_is_about_to_unmap(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.call("synchronize")
    t.mark(50)
    t.thread = 1
    t.maps(made, slot(0))
    t.gave()
    t.thread = 0
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.gave()


@told(53)
def what_is_deferred_while_all_is_synchronized_may_stay(t: Tale) -> None:
    """What was deferred before may not; and that is all."""
    early, late = t.allocate(A, 1), t.allocate(B, 2)
    t.deallocate(early)
    t.call("synchronize")
    t.mark(50)
    t.thread = 1
    t.deallocate(late)
    t.thread = 0
    t.wait(50)
    t.gave()


# -- contents


@told(182)
def a_fault_is_told_and_not_what_was_read_before_it(t: Tale) -> None:
    t.allocate(A, 1)
    t.ran(t.work(1, A, b"AAAAAAAA", read=b"?"), b"????????", fault=Fault(A, 8, "unmapped", 1))


@told(182, 182)
def work_of_its_own_faults_too(t: Tale) -> None:
    """That a block is not judged any more says nothing of other work."""
    t.allocate(A, 1)
    t.ran(t.works, fault=Fault(A, 8, "unmapped", 1))
    t.ran(999, fault=Fault(B, 8, "unmapped", 1))


@told(55)
def takes_an_alias_back_with_other_bytes(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(0))
    t.gave()
    t.ran(t.work(1, slot(0).address, b"BBBBBBBB", alias=True, read=b"?"), b"????????")


# -- endings


@told(76, 76, 76)
def closes_without_a_wait(t: Tale) -> None:
    """Told of what was deferred, of the first thing that is given back, and of the end: it is the close each time."""
    t.deallocate(t.allocate(A, 1))
    t.call("close")
    t.complete(A, 1)
    t.gave()


def loses_another(t: Tale, mine: int, other: tuple[int, int]) -> None:
    made = {address: t.allocate(address, handle) for address, handle in ((A, 1), (B, 2))}
    t.call("deallocate", address=made[mine])
    t.complete(*other)
    t.gave()


@told(182)
def gives_up_the_next_one(t: Tale) -> None:
    loses_another(t, A, (B, 2))


@told(182)
def gives_up_the_one_before(t: Tale) -> None:
    loses_another(t, B, (A, 1))


def a_slice_for_another(t: Tale) -> None:
    t.deallocate(t.allocate(B, 2))
    t.wants_at(slot(0))
    t.mark(50)
    t.wait(50)
    t.complete(B, 2)
    t.back(slot(0).address, 3, own=False)
    t.gave(slot(0))


@told(58, configuration=Configuration(devices=2, budget=2 * G))
def what_just_fits_takes_nothing_from_others(t: Tale) -> None:
    a_slice_for_another(t)


@told(configuration=Configuration(devices=2, budget=G))
def what_does_not_fit_takes_memory_from_others(t: Tale) -> None:
    """The allocator knows that without asking the driver."""
    a_slice_for_another(t)


@told(configuration=SHORT, markers="per-operation")
def what_has_been_passed_does_not_count_for_what_is_waited_for(t: Tale) -> None:
    """The first is over already; then 1.1 times two granules are the three that come next."""
    made = [(A, 1), (B, 2), (C, 3), (C + G, 4)]
    for address, handle in [*made]:
        t.allocate(address, handle)
    for address, handle in made:
        t.call("deallocate", address=Range(address, G))
        t.mark(50 + handle)
        t.gave()
    t.wants(2 * G, space=1)
    t.driver("event_query", 51, result=True)
    t.complete(A, 1)
    t.driver("event_query", 52, result=False)
    t.wait(54)
    for address, handle in made[1:]:
        t.complete(address, handle)
    t.back(0x500000, 5, 2 * G, space=1)
    t.gave(Range(0x500000, 2 * G))


@told(59)
def shows_a_source_at_the_new_slice_first(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(1))
    t.show(slot(1).address, 1)
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.gave()


@told(57, 57)
def leaves_what_is_at_the_slice(t: Tale) -> None:
    """The source's own alias cannot be judged; what is shown at the new slice is another's memory."""
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.map(second, slot(1), 2)
    t.unmap(slot(0))
    t.unmap(slot(1))
    half_gone(t, slot(0).address)
    t.maps(first, slot(1))
    t.gave()


@told(64)
def shows_too_much_where_something_lies(t: Tale) -> None:
    """It is to be refused: what it should have waited for is no more the question."""
    first, second = t.allocate(A, 1, 2 * G), t.allocate(B, 2)
    t.map(first, slot(0, 2), 1)
    t.unmap(slot(0, 2))
    t.maps(second, slot(0, 2))
    t.gave()


@told(traced=False)
def what_was_at_the_slice_has_ended_unseen(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.maps(first, slot(0))
    t.gave()
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.gave()


@told(66, traced=False)
def what_was_moved_is_no_alias_any_more(t: Tale) -> None:
    """Nobody saw it end, but the source is shown elsewhere."""
    made = t.allocate(A, 1)
    for place in (slot(0), slot(1)):
        t.maps(made, place)
        t.gave()
        if place == slot(0):
            t.unmap(place)
    t.unmaps(slot(0))
    t.refused("FAILED_PRECONDITION")


# -- what is known after something wrong


@told(59)
def the_second_of_two_aliases_can_be_unmapped(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.map(made, slot(1), 1)
    t.unmap(slot(1))


@told(43, 43)
def serves_a_device_that_is_not_there(t: Tale) -> None:
    """And takes away again what it gave."""
    t.wants(G, 9)
    t.back(A, 1)
    t.gave(Range(A, G))
    t.call("deallocate", 9, address=Range(A, G))
    t.complete(A, 1)
    t.gave()


@told(48)
def what_was_freed_under_an_alias_may_be_freed_again(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.ask("deallocate", address=made)
    t.ask("deallocate", address=made)


@told(61)
def what_became_of_a_second_alias_nobody_can_tell(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.map(made, slot(1), 1)
    t.unmaps(slot(1))
    t.refused("NOT_FOUND")


@told()
def what_is_half_gone_is_taken_back(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    half_gone(t, A)
    t.again(A)


@told()
def what_is_half_gone_is_left_alone(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    half_gone(t, A)
    t.allocate(B, 2)


@told()
def an_alias_that_is_half_gone_is_taken_back(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    half_gone(t, slot(0).address)
    t.maps(made, slot(0))
    t.gave()


@told()
def a_slice_that_is_half_gone_is_refused(t: Tale) -> None:
    t.deallocate(t.allocate_at(slot(0), 1))
    half_gone(t, slot(0).address)
    t.wants_at(slot(0))
    t.refused("INTERNAL")


@told(183)
def what_is_half_gone_does_not_hide_another(t: Tale) -> None:
    """The third gets the second's memory."""
    t.deallocate(t.allocate(A, 1))
    half_gone(t, A)
    t.allocate(B, 2)
    t.wants(2 * G)
    t.driver("reserve", 2 * G, 0, 0, result=C)
    t.show(C, 2)
    t.back(C + G, 3, own=False)
    t.gave(Range(C, 2 * G))


# -- markers


@told(batch_limits=(2, 1 << 30))
def what_was_completed_without_a_marker_is_in_no_batch(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.driver("stream_synchronize", STREAMS[0])
    t.driver("unmap", slot(0).address, G)
    t.show(slot(0).address, 2)
    t.gave()
    t.deallocate(first)
    t.unmap(slot(0))


@told(75, markers="per-operation")
def the_marker_that_was_tried_last_is_missing(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.call("deallocate", address=made)
    for number, status in enumerate((801, 0, 801)):
        t.mark(50 + number, status=status)
    t.gave()


@told(74)
def marks_twice_when_all_is_synchronized(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.call("synchronize")
    t.mark(50)
    t.mark(51)
    t.wait(51)
    t.complete(A, 1)
    t.gave()


@told(45, markers="per-operation")
def marks_the_stream_before(t: Tale) -> None:
    made = t.allocate(A, 1, ordinal=1)
    t.call("deallocate", 1, address=made)
    t.mark(50, STREAMS[0])
    t.gave()


@told(markers="per-operation")
def a_marker_that_was_refused_is_on_no_stream(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.call("deallocate", address=made)
    t.mark(50, STREAMS[1], status=801)
    t.mark(51)
    t.gave()


@told(markers="per-operation")
def to_unmap_nothing_defers_nothing(t: Tale) -> None:
    """Not even where an alias begins that is deferred already."""
    t.map(t.allocate(A, 1), slot(0), 1)
    t.unmaps(slot(0))
    t.mark(50)
    t.gave()
    t.unmap(slot(0, 0))


@told(batch_limits=(64, G))
def what_fills_a_batch_to_the_byte_needs_a_marker_yet(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.synchronize(50, (A, 1))


@told(74, batch_limits=(2, 1 << 30))
def a_batch_that_was_not_marked_in_time_is_told_of_once(t: Tale) -> None:
    """The fourth is behind the marker that comes with it, and so the next has something to stand for."""
    made = [t.allocate(A + number * G, number + 1) for number in range(4)]
    for each in made[:3]:
        t.deallocate(each)
    t.call("deallocate", address=made[3])
    t.mark(50)
    t.gave()
    t.synchronize(51, *((each.address, number) for number, each in enumerate(made, 1)))


@told()
def a_close_needs_no_marker(t: Tale) -> None:
    t.call("close")
    t.mark(50, status=OOM)
    t.driver("event_destroy", 50)
    t.driver("device_synchronize", 0)
    t.driver("device_synchronize", 1)
    t.gave()


@told()
def a_close_may_mark_any_stream(t: Tale) -> None:
    t.call("close")
    for device, stream in enumerate(STREAMS):
        t.mark(50 + device, stream)
        t.wait(50 + device)
        t.driver("event_destroy", 50 + device)
    t.gave()


# -- memory


@told()
def memory_may_be_shown_piece_by_piece(t: Tale) -> None:
    t.wants(2 * G)
    t.driver("create", 2 * G, 0, 0, result=1)
    t.driver("reserve", 2 * G, 0, 0, result=A)
    pieces(t, A, 0, 1)
    t.gave(Range(A, 2 * G))
    t.maps(Range(A, 2 * G), slot(0, 2))
    pieces(t, slot(0).address, 0, 1)
    t.gave()


@told(183)
def the_last_piece_of_three_is_missing(t: Tale) -> None:
    t.wants(3 * G)
    t.driver("create", 3 * G, 0, 0, result=1)
    t.driver("reserve", 3 * G, 0, 0, result=A)
    pieces(t, A, 0, 1)
    t.gave(Range(A, 3 * G))


@told(183)
def the_last_piece_of_an_alias_is_missing(t: Tale) -> None:
    made = t.allocate(A, 1, 3 * G)
    t.maps(made, slot(0, 3))
    pieces(t, slot(0).address, 0, 1)
    t.gave()


@told(183)
def shows_its_source_from_the_middle(t: Tale) -> None:
    made = t.allocate(A, 1, 2 * G)
    t.maps(made, slot(0))
    pieces(t, slot(0).address, 1)
    t.gave()


@told(183)
def one_handle_for_two(t: Tale) -> None:
    t.allocate(A, 1)
    t.wants(G)
    t.driver("reserve", G, 0, 0, result=B)
    t.show(B, 1)
    t.gave(Range(B, G))


def two_handles(t: Tale) -> None:
    """An allocation whose halves have memory of their own."""
    t.wants(2 * G)
    t.driver("reserve", 2 * G, 0, 0, result=A)
    t.back(A, 1, own=False)
    t.back(A + G, 2, own=False)
    t.gave(Range(A, 2 * G))


@told(183)
def the_second_half_of_another(t: Tale) -> None:
    """One address has one owner."""
    two_handles(t)
    t.wants(G)
    t.gave(Range(A + G, G))


@told(183)
def the_first_of_two_handles_of_another(t: Tale) -> None:
    two_handles(t)
    t.wants(G)
    t.driver("reserve", G, 0, 0, result=B)
    t.show(B, 1)
    t.gave(Range(B, G))


@told(182, 182)
def loses_half_of_what_is_in_use(t: Tale) -> None:
    """One its first half, another its second."""
    for address, handle in ((A, 1), (B, 2)):
        t.wants(2 * G)
        t.driver("create", 2 * G, 0, 0, result=handle)
        t.driver("reserve", 2 * G, 0, 0, result=address)
        for offset in (0, G):
            t.driver("map", address + offset, G, handle, offset)
            t.driver("set_access", address + offset, G, ((0, Access.READ_WRITE),))
        t.gave(Range(address, 2 * G))
    t.call("synchronize")
    t.driver("unmap", A, G)
    t.driver("unmap", B + G, G)
    t.gave()


@told()
def completes_what_is_in_pieces(t: Tale) -> None:
    two_handles(t)
    t.deallocate(Range(A, 2 * G))
    t.call("synchronize")
    t.mark(50)
    t.wait(50)
    t.driver("unmap", A, 2 * G)
    t.driver("release", 1)
    t.driver("release", 2)
    t.gave()


@told(183)
def memory_of_a_space_that_was_not_asked_for(t: Tale) -> None:
    t.wants(G, space=0)
    t.back(A, 1, space=1)
    t.gave(Range(A, G))


@told(69, 183, configuration=Configuration(devices=2, budget=G + 1))
def exceeds_a_budget_by_less_than_a_granule(t: Tale) -> None:
    """Of one byte more than a granule: two are too many, whatever is given of them."""
    t.wants(G)
    t.back(A, 1, 2 * G)
    t.driver("unmap", A, 2 * G)
    t.gave(Range(A, G))


@told(184)
def keeps_addresses_of_a_call_that_failed(t: Tale) -> None:
    t.wants(G)
    t.driver("reserve", G, 0, 0, result=A)
    t.driver("create", G, 0, 0, status=OOM, result="injected")
    t.refused("OUT_OF_MEMORY")


# -- the end


@told(traced=False)
def of_a_close_that_nobody_sees_nothing_is_asked(t: Tale) -> None:
    t.allocate(A, 1)
    t.ask("close")


@told()
def an_event_may_go_before_the_wait(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.synchronize(50, (A, 1))
    t.allocate(B, 2)
    t.call("close")
    t.driver("event_destroy", 50)
    t.driver("device_synchronize", 0)
    t.driver("device_synchronize", 1)
    t.complete(B, 2)
    t.gave()


@told()
def addresses_that_were_made_to_stay_may_stay(t: Tale) -> None:
    t.allocate(A, 1)
    t.close()
    t.driver("unmap", A, G)
    t.driver("address_free", A, G, status=801, result="injected")
    t.driver("release", 1)
    t.gave()


# -- requests


@told(69, configuration=SHORT)
def refuses_too_much_at_a_slice_with_another_code(t: Tale) -> None:
    t.wants_at(slot(0, 5))
    t.refused("INVALID_ARGUMENT")


@told(67)
def refuses_what_lies_at_the_slice(t: Tale) -> None:
    t.deallocate(t.allocate_at(slot(0), 1))
    t.wants_at(slot(0))
    t.refused("INTERNAL")


@told()
def a_slice_is_not_taken_back_from_its_middle(t: Tale) -> None:
    t.deallocate(t.allocate_at(slot(1, 2), 1))
    t.wants_at(slot(0, 2))
    t.refused("FAILED_PRECONDITION")


@told()
def a_space_beyond_the_hosts_is_one_of_the_device(t: Tale) -> None:
    t.allocate(A, 1, space=6)
    t.wants_at(slot(0), space=6)
    t.back(slot(0).address, 2, space=6, own=False)
    t.gave(slot(0))


@told()
def what_another_device_has_deferred_is_not_taken_back(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, ordinal=1), 1)
    t.allocate(B, 2)


@told(77)
def frees_what_the_next_device_has(t: Tale) -> None:
    t.ask("deallocate", address=t.allocate(A, 1, ordinal=1))


@told(43)
def a_device_that_is_not_there_comes_before_all_else(t: Tale) -> None:
    t.maps(NULL, slot(0), 9)
    t.refused("INVALID_ARGUMENT")


@told()
def for_no_bytes_a_device_may_be_asked_for_or_not(t: Tale) -> None:
    made = t.allocate(A, 1)
    for code in ("", "NOT_FOUND"):
        t.maps(made, slot(0, 0), 9)
        t.gave(None, "refused" if code else "ok", code)
        t.unmaps(slot(0, 0), 9)
        t.gave(None, "refused" if code else "ok", code)


@told(65)
def looks_for_an_alias_where_no_reservation_is(t: Tale) -> None:
    t.unmaps(slot(8))
    t.refused("NOT_FOUND")


@told(41)
def refuses_to_unmap_nothing(t: Tale) -> None:
    t.unmaps(slot(0, 0))
    t.refused("NOT_FOUND")


@told(traced=False)
def what_overlaps_in_part_may_have_ended_unseen(t: Tale) -> None:
    made = t.allocate(A, 1, 2 * G)
    t.maps(made, slot(0, 2))
    t.gave()
    t.unmap(slot(0, 2))
    t.maps(t.allocate(B, 2, 2 * G), slot(1, 2))
    t.gave()


@told(55)
def refuses_to_take_back_for_its_size(t: Tale) -> None:
    """100 bytes are asked for, and a granule shown: the size is no reason."""
    made = t.allocate(A, 1, 100)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(0))
    t.refused("INVALID_ARGUMENT")


@told(57)
def refuses_a_slice_that_is_in_use_for_a_while(t: Tale) -> None:
    """What lies there comes before the alias that moves, and that before the size."""
    first, second = t.allocate(A, 1, 100), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.map(second, slot(1), 2)
    t.unmap(slot(0))
    t.unmap(slot(1))
    t.maps(first, slot(1))
    t.refused("INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("tell", "numbers", "configuration", "header"), TOLD, ids=[tell.__name__ for tell, *_ in TOLD]
)
def test_all_that_is_found(
    tell: Tell, numbers: tuple[int, ...], configuration: Configuration | None, header: dict[str, Any]
) -> None:
    tale = Tale(configuration, **header)
    tell(tale)
    assert [finding.invariant for finding in tale.judged().findings] == [f"ALLOC-{number}" for number in numbers]


def test_a_device_that_is_not_there_is_put_to_the_test_by_a_deallocate() -> None:
    """Though the address is another device's: that alone is what stands against the call."""
    tale = Tale()
    tale.ask("deallocate", "NOT_FOUND", 9, address=tale.allocate(A, 1))
    judged = tale.judged()
    assert judged.findings == []
    assert (judged.witnesses["ALLOC-43"], judged.witnesses["ALLOC-77"]) == (1, 0)


def test_what_is_left_first_is_pointed_at() -> None:
    tale = Tale()
    tale.allocate(A, 1)
    tale.allocate(B, 2, 2 * G)
    tale.close()
    tale.gave()
    assert [finding.range for finding in tale.judged().findings] == [Range(A, G)]
