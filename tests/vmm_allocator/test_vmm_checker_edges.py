"""The checker where a rule just holds, and where it just does not: histories written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from vmm_tales import STREAMS, A, B, C, G, Tale, broken, slot

from vmm_conformance.contracts import HOST_SPACE, NULL, Range, Write
from vmm_conformance.history.events import HARNESS
from vmm_conformance.programs.vmm_allocator import Configuration


def touch(tale: Tale, reads: tuple[tuple[int, int], ...], *writes: tuple[int, bytes]) -> int:
    """Queued work on the first block, at offsets in it."""
    tale.works += 1
    at = tuple(Range(A + offset, size) for offset, size in reads)
    tokens = tuple(Write(A + offset, token) for offset, token in writes)
    tale.event(HARNESS, "launch", (STREAMS[0], at, (), tokens), result=tale.works)
    tale.note("work", work=tale.works, block=1, alias=False, reads=reads, writes=writes)
    return tale.works


# -- contents


@pytest.mark.parametrize(("found", "wrong"), [(b"abcdefgh", False), (b"00000000", True), (b"zzzzzzzz", True)])
@pytest.mark.parametrize("near", [(0, b"1234"), (0, b"12"), (12, b"5678"), (13, b"5")])
def test_what_was_written_stays_until_it_is_overwritten(near: tuple[int, bytes], found: bytes, wrong: bool) -> None:
    """A token at 4 takes the place of the one at 0; those that only touch it leave it alone."""
    tale = Tale()
    tale.allocate(A, 1)
    tale.ran(tale.works)
    for write in ((4, b"abcdefgh"), near):
        tale.ran(touch(tale, (), write))
    tale.ran(touch(tale, ((4, 8),)), found)
    assert broken(tale) == (["ALLOC-182"] if wrong else [])


@pytest.mark.parametrize("by", [(-4, b"12345"), (-1, b"12"), (1, b"1"), (7, b"1"), (0, b"12"), (-4, b"x" * 20)])
@pytest.mark.parametrize("at", [4, 8])
def test_what_was_overwritten_in_part_is_not_expected_any_more(at: int, by: tuple[int, bytes]) -> None:
    tale = Tale()
    tale.allocate(A, 1)
    start, token = at + by[0], by[1]
    for write in ((at, b"abcdefgh"), (start, token)):
        touch(tale, (), write)
    work = touch(tale, ((0, 8), (at, 8)))
    before = tale.judged().witnesses["ALLOC-182"]
    tale.ran(work, token if start == 0 else b"00000001", token if start == at else b"whatever")
    assert broken(tale) == []
    first_is_known = start == 0 or min(start, at) >= 8
    assert tale.judged().witnesses["ALLOC-182"] - before == first_is_known + (start == at)


def test_what_is_wrong_in_a_block_is_told_once() -> None:
    tale = Tale()
    tale.allocate(A, 1)
    touch(tale, (), (0, b"abcdefgh"), (8, b"ijklmnop"))
    for _ in range(2):
        tale.ran(touch(tale, ((0, 8), (8, 8))), b"XXXXXXXX", b"YYYYYYYY")
    assert len(tale.judged().findings) == 1


# -- markers


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("event_record", (7, STREAMS[0])),
        ("write", (B, b"1", STREAMS[0])),
        ("fill", (B, 1, 4, STREAMS[0])),
        ("copy", (B, C, 4, STREAMS[0])),
        ("launch", (STREAMS[0], (), (), ())),
    ],
)
def test_anything_on_the_stream_may_be_a_marker(kind: str, arguments: tuple[Any, ...]) -> None:
    def judged(stream: int) -> list[str]:
        tale = Tale(markers="per-operation")
        made = tale.allocate(A, 1)
        tale.call("deallocate", address=made)
        given = tuple(stream if argument == STREAMS[0] else argument for argument in arguments)
        tale.driver(kind, *given, result=9)
        tale.gave()
        return broken(tale)

    assert judged(STREAMS[0]) == []
    assert judged(STREAMS[1]) == ["ALLOC-45"]


def deferred(*marked: bool, limits: tuple[int, int] = (2, 64 * G)) -> Tale:
    """One allocation after another is deferred, and some of the calls record a marker."""
    tale = Tale(batch_limits=limits)
    made = [tale.allocate(address, number) for number, address in enumerate((A, B, C), 1)]
    for number, (each, mark) in enumerate(zip(made, marked, strict=False)):
        tale.call("deallocate", address=each)
        if mark:
            tale.mark(50 + number)
        tale.gave()
    return tale


@pytest.mark.parametrize("limits", [(2, 64 * G), (64, 2 * G)])
def test_a_batch_is_marked_when_it_is_full_or_when_it_overflows(limits: tuple[int, int]) -> None:
    assert broken(deferred(False, True, False, limits=limits)) == []
    assert broken(deferred(False, False, True, limits=limits)) == []
    for wrong in ((True,), (False, False, False), (False, True, True)):
        assert broken(deferred(*wrong, limits=limits)) == ["ALLOC-74"]


def test_the_third_operation_fills_a_batch_of_three() -> None:
    assert broken(deferred(False, False, True, limits=(3, 64 * G))) == []
    assert broken(deferred(False, True, limits=(3, 64 * G))) == ["ALLOC-74"]


@pytest.mark.parametrize("limits", [(2, 64 * G), (64, 2 * G)])
@pytest.mark.parametrize("marked", [False, True])
def test_what_the_marker_of_a_full_batch_stands_behind_needs_no_other(limits: tuple[int, int], marked: bool) -> None:
    tale = deferred(False, True, limits=limits)
    tale.call("synchronize")
    if marked:
        tale.mark(60)
    tale.wait(60 if marked else 51)
    tale.complete(A, 1)
    tale.complete(B, 2)
    tale.gave()
    assert broken(tale) == (["ALLOC-74"] if marked else [])


@pytest.mark.parametrize("marked", [True, False])
def test_an_alias_weighs_nothing(marked: bool) -> None:
    """The allocation alone fills the batch to the byte."""
    tale = Tale(batch_limits=(64, G))
    made = tale.allocate(A, 1)
    tale.map(made, slot(0), 1)
    tale.unmap(slot(0))
    tale.call("deallocate", address=made)
    if marked:
        tale.mark(50)
    tale.gave()
    assert broken(tale) == []


# -- what a call must come to


def test_a_slice_takes_back_what_lies_at_exactly_that_slice() -> None:
    tale = Tale()
    tale.deallocate(tale.allocate_at(slot(0, 2), 1))
    tale.wants_at(slot(1, 2))
    tale.refused("FAILED_PRECONDITION")
    assert broken(tale) == []


@pytest.mark.parametrize(("place", "about"), [(slot(0, 2), "ALLOC-56"), (slot(1, 2), "ALLOC-62")])
def test_a_stale_alias_is_its_own_where_both_begin_at_one_address(place: Range, about: str) -> None:
    """Its source is refused there; served, it breaks the rule of its own alias, or that of any overlap."""
    tale = Tale()
    made = tale.allocate(A, 1, 4 * G)
    start = slot(0) if about == "ALLOC-56" else slot(2)
    tale.map(made, start, 1)
    tale.unmap(start)
    tale.maps(made, place)
    tale.gave()
    assert broken(tale)[0] == about


def test_the_alias_that_moves_is_blamed_before_the_size() -> None:
    """The source has 100 bytes and one granule; its alias may move, and its size is no reason."""
    tale = Tale()
    made = tale.allocate(A, 1, 100)
    tale.map(made, slot(0), 1)
    tale.unmap(slot(0))
    tale.maps(made, slot(1))
    tale.refused("INVALID_ARGUMENT")
    assert broken(tale) == ["ALLOC-59"]


def test_more_than_the_budget_is_refused_at_a_slice_too() -> None:
    def judged(granules: int) -> list[str]:
        tale = Tale(Configuration(devices=2, budget=4 * G))
        tale.allocate_at(slot(0, granules), 1)
        return broken(tale)

    assert judged(4) == []
    assert judged(5)[0] in ("ALLOC-69", "ALLOC-72")


def test_reclaim_takes_eleven_tenths_exactly() -> None:
    def judged(completed: int) -> list[str]:
        tale = Tale(Configuration(devices=2, budget=12 * G))
        places = [(A + number * 0x10000, number + 1) for number in range(12)]
        for made in [tale.allocate(address, handle) for address, handle in places]:
            tale.deallocate(made)
        tale.wants(10 * G, space=1)
        tale.mark(50)
        tale.wait(50)
        for address, handle in places[:completed]:
            tale.complete(address, handle)
        tale.back(B, 90, 10 * G, space=1)
        tale.gave(Range(B, 10 * G))
        return broken(tale)

    assert judged(11) == []
    assert judged(10) == judged(12) == ["ALLOC-71"]


def test_a_lock_that_nobody_holds_is_nobodys_fault() -> None:
    tale = Tale()
    tale.note("blocked", at="map")
    tale.call("deallocate", address=tale.allocate(A, 1))
    tale.note("blocked", at="map")
    tale.gave()
    assert broken(tale) == []


# -- answers, and what is refused


def test_the_reservation_of_an_address_may_be_wider_than_the_allocation() -> None:
    def judged(own: Range) -> list[str]:
        tale = Tale()
        made = tale.allocate(A, 1)
        tale.look(made, (1, G), own)
        return broken(tale)

    for wide in (Range(A, G), Range(A - G, 4 * G), Range(A, 2 * G), Range(A - G, 2 * G)):
        assert judged(wide) == []
    for narrow in (Range(A + 1, G), Range(A - G, 2 * G - 1)):
        assert judged(narrow) == ["ALLOC-49"]


@pytest.mark.parametrize(("name", "about"), [("allocate", 41), ("map", 41), ("deallocate", 43)])
def test_who_asks_for_nothing_gets_no_driver_call(name: str, about: int) -> None:
    tale = Tale()
    if name == "allocate":
        tale.wants(0)
    elif name == "map":
        tale.maps(tale.allocate(A, 1), slot(0, 0))
    else:
        tale.call("deallocate", address=NULL)
    tale.driver("event_create", 0, result=50)
    tale.gave(NULL if name == "allocate" else None)
    assert broken(tale) == [f"ALLOC-{about}"]


def test_another_marker_makes_good_for_one_that_was_refused() -> None:
    def judged(*marks: int) -> list[str]:
        tale = Tale(markers="per-operation")
        made = tale.allocate(A, 1)
        tale.call("deallocate", address=made)
        for number, status in enumerate(marks):
            tale.mark(50 + number, status=status)
        tale.gave()
        return broken(tale)

    assert judged(0) == judged(801, 0) == []
    assert judged(801) == judged(0, 801) == ["ALLOC-75"]


def test_an_event_that_was_made_to_stay_may_stay() -> None:
    def judged(status: int) -> list[str]:
        tale = Tale()
        made = tale.allocate(A, 1)
        tale.deallocate(made)
        tale.synchronize(50, (A, 1))
        tale.close()
        if status:
            tale.driver("event_destroy", 50, status=status, result="injected")
        tale.gave()
        return broken(tale)

    assert judged(801) == []
    assert judged(0) == ["ALLOC-76"]


# -- what has ended


@pytest.mark.parametrize("code", ["NOT_FOUND", "FAILED_PRECONDITION"])
@pytest.mark.parametrize("synchronized", [True, False])
def test_a_synchronisation_ends_what_is_stale_where_nobody_sees_it(code: str, synchronized: bool) -> None:
    """Before it, nobody can tell whether it has ended."""
    tale = Tale(traced=False)
    tale.maps(tale.allocate(A, 1), slot(0))
    tale.gave()
    tale.unmap(slot(0))
    if synchronized:
        tale.ask("synchronize")
    tale.unmaps(slot(0))
    tale.refused(code)
    assert broken(tale) == (["ALLOC-66"] if synchronized and code != "NOT_FOUND" else [])


@pytest.mark.parametrize(("status", "wrong"), [(0, True), (1, False)])
def test_a_slice_is_mapped_when_what_is_in_the_way_has_gone(status: int, wrong: bool) -> None:
    """A driver that will not map it before has mapped nothing before."""
    tale = Tale()
    one, other = tale.allocate(A, 1), tale.allocate(B, 2)
    tale.map(one, slot(0), 1)
    tale.unmap(slot(0))
    tale.maps(other, slot(0))
    tale.driver("map", slot(0).address, G, 2, 0, status=status)
    tale.mark(50)
    tale.wait(50)
    tale.driver("unmap", slot(0).address, G)
    tale.show(slot(0).address, 2)
    tale.gave()
    assert ("ALLOC-57" in broken(tale)) is wrong


def test_what_a_close_was_refused_is_made_good_by_the_next() -> None:
    def judged(*again: tuple[str, int]) -> list[str]:
        tale = Tale()
        tale.allocate(A, 1)
        tale.close()
        tale.driver("unmap", A, G, status=801, result="injected")
        tale.refused("UNKNOWN")
        tale.close()
        if again:
            tale.complete(A, 1)
        tale.gave()
        return broken(tale)

    assert judged(("unmap", A)) == []
    assert judged() == ["ALLOC-76"]


def test_more_of_the_hosts_memory_than_the_device_has_is_refused_for_want_of_an_allocator() -> None:
    tale = Tale()
    tale.wants(1 << 40, space=HOST_SPACE)
    tale.refused("RESOURCE_EXHAUSTED")
    assert broken(tale) == ["ALLOC-78"]


@pytest.mark.parametrize("code", ["", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED"])
def test_of_a_host_allocators_answer_nothing_is_known(code: str) -> None:
    tale = Tale(host_allocator=True)
    tale.wants(G, space=HOST_SPACE)
    if code:
        tale.refused(code)
    else:
        tale.back(C, 9, space=HOST_SPACE)
        tale.gave(Range(C, G))
    assert broken(tale) == []


def test_what_could_not_be_unmapped_is_not_asked_for_again() -> None:
    """Once an unmap was made to fail, nobody can tell what is left of the allocation."""

    def judged(**failure: Any) -> list[str]:
        tale = Tale()
        tale.deallocate(tale.allocate(A, 1))
        tale.call("synchronize")
        tale.mark(50)
        tale.wait(50)
        if failure:
            tale.driver("unmap", A, G, **failure)
            tale.refused("UNKNOWN")
        else:
            tale.gave()
        tale.ask("synchronize")
        return broken(tale)

    assert judged(status=801, result="injected") == []
    assert "ALLOC-53" in judged()


@pytest.mark.parametrize("short", [True, False])
def test_a_slice_takes_memory_from_others_where_memory_is_short(short: bool) -> None:
    tale = Tale()
    tale.deallocate(tale.allocate(B, 2))
    tale.wants_at(slot(0))
    if short:
        tale.driver("create", G, 0, 0, status=2)
    tale.mark(50)
    tale.wait(50)
    tale.complete(B, 2)
    tale.back(slot(0).address, 3, own=False)
    tale.gave(slot(0))
    assert broken(tale) == ([] if short else ["ALLOC-58"])


def test_nothing_is_judged_behind_a_wait_for_ever() -> None:
    tale = Tale()
    tale.call("synchronize")
    tale.note("abandoned")
    tale.gave()
    tale.unmaps(slot(0))
    tale.gave()
    assert len(tale.judged().findings) == 1


@pytest.mark.parametrize(("code", "wrong"), [("UNKNOWN", False), ("", True)])
def test_a_failure_may_be_told_in_place_of_what_stands_against_a_call(code: str, wrong: bool) -> None:
    tale = Tale()
    tale.unmaps(slot(0))
    tale.driver("event_create", 0, status=999, result="injected")
    tale.gave(None, "refused" if code else "ok", code)
    assert ("ALLOC-66" in broken(tale)) is wrong


@pytest.mark.parametrize(("handle", "size", "wrong"), [(1, G, False), (2, G, True), (1, 2 * G, True)])
def test_a_look_tells_the_memory_and_its_size(handle: int, size: int, wrong: bool) -> None:
    tale = Tale()
    tale.look(tale.allocate(A, 1), (handle, size), Range(A, G))
    assert (broken(tale) != []) is wrong


# -- the end


def test_a_close_waits_for_devices_that_have_something_to_do() -> None:
    def judged(*devices: int) -> list[str]:
        tale = Tale()
        tale.allocate(A, 1)
        tale.call("close")
        for device in devices:
            tale.driver("device_synchronize", device)
        tale.complete(A, 1)
        tale.gave()
        return broken(tale)

    assert judged(0) == judged(0, 1) == judged(1, 0) == []
    assert judged(1) == judged() == ["ALLOC-76"]


def test_memory_that_was_made_to_stay_may_stay_to_the_end() -> None:
    def judged(**status: Any) -> list[str]:
        tale = Tale()
        tale.deallocate(tale.allocate(A, 1))
        tale.call("synchronize")
        tale.mark(50)
        tale.wait(50)
        tale.driver("event_destroy", 50)
        tale.driver("unmap", A, G)
        tale.driver("address_free", A, G)
        if status:
            tale.driver("release", 1, **status)
        tale.gave(None, *(("refused", "UNKNOWN") if status else ()))
        tale.close()
        tale.gave()
        return broken(tale)

    assert judged(status=801, result="injected") == []
    assert "ALLOC-76" in judged()


def test_addresses_are_not_excused_by_a_failure_of_another_kind() -> None:
    tale = Tale()
    tale.wants(G)
    tale.driver("create", G, 0, 0, result=1)
    tale.driver("reserve", G, 0, 0, result=A)
    tale.driver("map", A, G, 1, 0)
    tale.driver("set_access", A, G, ((0, 3),), status=801, result="injected")
    tale.driver("unmap", A, G)
    tale.driver("release", 1)
    tale.refused("UNKNOWN")
    tale.close()
    tale.gave()
    assert "ALLOC-76" in broken(tale)
