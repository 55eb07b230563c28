"""The checker against histories written by hand: right ones, and ones that break one invariant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reservation_stories import BASE, INVALID, PAST, RW, G, Story, base, broken, handle, one, ready, three

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Access, Fault, Range

Tell = Callable[[Story], None]
ONE, TWO = b"11111111", b"22222222"
BOTH: dict[str, Any] = {"reach": {0: (0, 1), 1: (1, 0)}, "devices": 2}
APART: dict[str, Any] = {"devices": 2}
SINGLE: dict[str, Any] = {"takes": {"unmap_spans_mappings": False, "set_access_spans_mappings": False}}
FULL: dict[str, Any] = {"scopes": {"set_access": "full", "unmap": "run"}}
SLICES: dict[str, Any] = {"scopes": {"set_access": "slice", "unmap": "slice"}}
OFFSETS: dict[str, Any] = {"takes": {"map_offset": True}}
Case = tuple[Tell, dict[str, Any]]


# -- right histories, and some of what they witness


def a_life(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.use(1, ONE)
    s.asked(G, RW)
    s.drop(1)
    s.asked(G, None)
    s.close()
    s.call("close", reservation=1)
    s.gave()
    s.free(1)
    s.call("free", allocation=1)
    s.gave()
    for memory in range(2, 7):
        s.free(memory)
    s.done()


def released_while_shown(s: Story) -> None:
    three(s)
    s.free(1, released=False)
    s.call("free", allocation=2)
    s.refused(PAST)
    s.call("drop", mapping=1)
    s.unmap(G, 3 * G)
    s.subject("release", handle(1))
    s.null(1)


def one_by_one(s: Story) -> None:
    """A driver that takes one mapping at a time."""
    s.asks(1, one(0, 1), one(1, 2))
    for offset, memory in ((0, 1), (G, 2)):
        s.map(offset, memory)
        s.access(offset)
    s.made(1)
    s.remaps(1, 2, one(0, 3), one(1, 4))
    for offset, memory in ((0, 3), (G, 4)):
        s.unmap(offset)
        s.map(offset, memory)
        s.access(offset)
    s.remapped(1, 2)


def device_by_device(s: Story) -> None:
    """One set_access for each device, and one for a device that is tried in vain."""
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.map(G, 2)
    s.access(0, 2 * G, (0,))
    s.access(0, 2 * G, (1,))
    s.subject("set_access", BASE, 2 * G, ((2, RW),), status=801)
    s.made(1)
    s.asked(0, RW, device=1)


def remapped(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.remap(1, 2, one(1, 1, required=False), one(2, 4), one(3, 5), runs=[(2 * G, 2 * G)])
    s.use(2, ONE)
    s.remap(2, 3, *(one(n, 1, required=False) for n in (1, 2, 3)))
    s.use(3, ONE)
    s.remaps(3, 4)
    s.kept(3)
    s.use(3, ONE)


def remapped_in_full(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    for offset in (G, 3 * G):
        s.unmap(offset)
    s.map(G, 4)
    s.map(3 * G, 5)
    s.access(G, 3 * G)
    s.remapped(1, 2)


def remapped_by_slices(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.map(G, 2)
    for offset in (0, G):
        s.access(offset)
    s.made(1)
    s.remap(1, 2, one(0, 3), one(1, 4))


def failed_and_undone(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.unmap(0)
    s.refused()
    s.map_to(2, one(0, 1), one(1, 2))


def undo_that_failed(s: Story) -> None:
    """What an unmap that was made to fail leaves may stay, and stands in the way."""
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.fails("unmap", BASE, G, status=999)
    s.refused()
    s.asks(2, one(0, 1))
    s.subject("map", BASE, G, handle(1), 0, status=1)
    s.refused("INVALID_VALUE")
    s.asked(0, RW)


def remap_failed_and_undone(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.fails("unmap", BASE + G, G, status=999)
    s.unmap(G)
    s.fails("unmap", BASE + 2 * G, G, status=2)
    s.unmap(3 * G)
    s.lost(1, "UNKNOWN")


def mapped_anew(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.unmap(G)
    s.fails("map", BASE + G, G, handle(4), 0)
    s.unmap(2 * G)
    s.unmap(3 * G)
    s.lost(1)
    s.map_to(3, one(1, 4), one(2, 2), one(3, 5))


def release_that_failed(s: Story) -> None:
    """Memory that leaves its slice is given back; that this fails is not what makes a remap fail."""
    three(s)
    s.free(1, released=False)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.unmap(G)
    s.fails("release", handle(1), status=999)
    s.fails("map", BASE + G, G, handle(4), 0)
    s.unmap(2 * G, 2 * G)
    s.lost(1)


def own_codes(s: Story) -> None:
    """A subject may report the driver's errors by codes of its own."""
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.unmap(G)
    s.fails("map", BASE + G, G, handle(4), 0)
    s.unmap(2 * G, 2 * G)
    s.lost(1, "RESOURCE_EXHAUSTED")


def assigned(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.map_to(2, one(1, 2))
    s.call("assign", target=1, source=2)
    s.unmap(0)
    s.places[1] = s.places[2]
    s.made(1, m2=(True, None))
    s.call("assign", target=1, source=1)
    s.made(1)
    s.call("assign", target=2, source=1)
    s.places[2] = s.places[1]
    s.made(2, m1=(True, None))


def moved(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("move", mapping=1, made=2)
    s.places[2] = s.places[1]
    s.made(2, m1=(True, None))
    s.call("drop", mapping=1)
    s.null(1)
    s.call("address", mapping=1)
    s.refused(PAST)
    s.call("move", mapping=1, made=3)
    s.gave(m1=(True, None), m3=(True, None))
    s.remaps(1, 4, one(0, 2))
    s.refused(PAST, m1=(True, None))


def close_that_tries_the_whole(s: Story) -> None:
    """One unmap of the whole range may be refused, for part of it is not mapped."""
    three(s)
    s.call("close", reservation=1)
    s.unmap(0, 8 * G, status=1)
    s.unmap(G, 3 * G)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def refusals(s: Story) -> None:
    three(s)
    s.free(6)
    for slices, code in (
        ((), INVALID),
        ((one(4, 4), one(6, 5)), INVALID),
        ((one(4, -1),), INVALID),
        ((one(4, 6),), PAST),
    ):
        s.asks(9, *slices)
        s.refused(code)
    good = [one(n, n, required=False) for n in (1, 2, 3)]
    for slices in ([], good[:2], [*good, one(4, 4)], [good[0], good[2]], [good[0], one(2, 0, required=False), good[2]]):
        s.remaps(1, 9, *slices)
        s.kept(1)


def closed_and_used(s: Story) -> None:
    s.close()
    s.asks(1, one(0, 1))
    s.refused(PAST)


def lying(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 5, required=False), one(2, 4), one(3, 6, required=False))
    s.remap(2, 3, one(1, 9, required=False), one(2, 5, required=False), one(3, 3, skip=G, required=False))


def in_parts(s: Story) -> None:
    s.allocate(9, 4 * G)
    s.map_to(1, one(1, 9, size=2 * G, skip=G))
    s.use(1, None, ONE)
    s.map_to(2, one(5, 9, skip=2 * G))
    s.use(2, None, TWO, at=0)
    s.use(1, TWO, at=G)


def cuts(s: Story) -> None:
    """Half of a mapping cannot be remapped, two mappings can be remapped as one."""
    s.allocate(9, 2 * G)
    s.map_to(1, one(0, 9, size=2 * G), one(2, 1), one(3, 2))
    s.remaps(1, 2, one(0, 3), one(1, 9, skip=G, required=False), one(2, 1, required=False), one(3, 2, required=False))
    s.kept(1)
    s.free(9, released=False)
    s.allocate(10, 2 * G)
    s.remap(1, 3, one(0, 9, size=2 * G, required=False), one(2, 10, size=2 * G), runs=[(2 * G, 2 * G)])
    s.remap(3, 4, one(0, 3), one(1, 4), one(2, 10, size=2 * G, required=False), runs=[(0, 2 * G)])


GOOD: list[tuple[Tell, dict[str, Any], set[int]]] = [
    (a_life, {}, {1, 2, 3, 4, 7, 9, 10, 11, 12, 13, 16, 17, 21, 25}),
    (released_while_shown, {}, {3, 21}),
    (one_by_one, SINGLE, {17, 32, 33, 34, 35}),
    (device_by_device, {"reach": {0: (0, 1)}, "devices": 3}, {7, 8, 10}),
    (remapped, {}, {27, 30, 31, 32, 33, 34, 35}),
    (remapped_in_full, FULL, {31, 34}),
    (remapped_by_slices, SLICES, {17, 34, 35}),
    (failed_and_undone, {}, {16, 18}),
    (undo_that_failed, {}, {18}),
    (remap_failed_and_undone, {}, {36, 37, 39}),
    (mapped_anew, {}, {36, 37, 38}),
    (release_that_failed, {}, {36, 37}),
    (own_codes, {}, {36, 37}),
    (assigned, {}, {23, 25}),
    (moved, {}, {22, 26}),
    (close_that_tries_the_whole, {}, {9}),
    (refusals, {}, {6, 14, 15, 27, 28, 29}),
    (closed_and_used, {}, {9}),
    (lying, {}, {40}),
    (in_parts, OFFSETS, {11, 17}),
    (cuts, {}, {13, 32}),
]


@pytest.mark.parametrize(("tell", "header", "witnesses"), GOOD, ids=[tell.__name__ for tell, *_ in GOOD])
def test_right_history(tell: Tell, header: dict[str, Any], witnesses: set[int]) -> None:
    story = ready(**header)
    tell(story)
    judged = story.judged()
    assert judged.findings == []
    seen = {int(id.rpartition("-")[2]) for id, count in judged.witnesses.items() if count}
    assert witnesses <= seen


# -- wrong histories: each breaks the invariant it stands under, and says so first


def allocated(s: Story, address: Range, *, size: int = G, made: int | None = None, device: int = 0) -> None:
    s.call("allocate", allocation=9, device=0, size=size, space=0)
    s.subject("create", address.size if made is None else made, device, 0, result=109)
    s.gave(address=address)


def unrounded(s: Story) -> None:
    allocated(s, Range(109, 100), size=100)


def less_than_asked(s: Story) -> None:
    allocated(s, Range(109, G), size=G + 1)


def null_identity(s: Story) -> None:
    allocated(s, Range(0, G))


def no_handle(s: Story) -> None:
    allocated(s, Range(999, G))


def smaller_handle(s: Story) -> None:
    allocated(s, Range(109, 2 * G), made=G)


def other_device(s: Story) -> None:
    allocated(s, Range(109, G), device=1)


def shared_identity(s: Story) -> None:
    s.call("allocate", allocation=9, device=0, size=G, space=0)
    s.gave(address=Range(handle(1), G))


def refused_allocation(s: Story) -> None:
    s.call("allocate", allocation=9, device=0, size=1, space=0)
    s.refused("INVALID_VALUE")


def not_really_short(s: Story) -> None:
    s.call("allocate", allocation=9, device=0, size=50 * G, space=0)
    s.refused("OUT_OF_MEMORY")


def released_twice(s: Story) -> None:
    s.free(1)
    s.call("free", allocation=1)
    s.subject("release", handle(1), status=400)
    s.gave()


def released_while_held(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("drop", mapping=1)
    s.unmap(0)
    s.subject("release", handle(1))
    s.null(1)


def released_too_early(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.free(1)


def never_released(s: Story) -> None:
    s.free(1, released=False)
    s.done()


def release_raises(s: Story) -> None:
    s.call("free", allocation=1)
    s.fails("release", handle(1))
    s.refused()


def refuses_to_release(s: Story) -> None:
    s.call("free", allocation=1)
    s.refused(PAST)


def reserved_at(s: Story, address: Range, *, size: int = G, alignment: int = 0) -> None:
    s.call("reserve", reservation=2, device=0, size=size, alignment=alignment)
    s.subject("reserve", address.size, alignment, 0, result=address.address)
    s.gave(address=address)


def misaligned(s: Story) -> None:
    reserved_at(s, Range(base(2) + 256, G))


def alignment_dropped(s: Story) -> None:
    reserved_at(s, Range(base(2), G), alignment=4 * G)


def odd_size(s: Story) -> None:
    reserved_at(s, Range(base(2), 100), size=100)


def not_reserved(s: Story) -> None:
    s.call("reserve", reservation=2, device=0, size=G, alignment=0)
    s.gave(address=Range(base(2), G))


def refused_reservation(s: Story) -> None:
    s.call("reserve", reservation=2, device=0, size=G, alignment=0)
    s.refused("INVALID_VALUE")


def overlapping(s: Story) -> None:
    reserved_at(s, Range(BASE + G, G))


def foreign_mapped(s: Story) -> None:
    s.asks(1, one(0, -1))
    s.subject("map", BASE, G, 777, 0)
    s.refused(INVALID)


def foreign_by_another_code(s: Story) -> None:
    s.asks(1, one(0, -1))
    s.refused("INTERNAL")


def released_mapped(s: Story) -> None:
    s.free(1)
    s.asks(1, one(0, 1))
    s.subject("map", BASE, G, handle(1), 0, status=400)
    s.refused("INVALID_HANDLE")


def foreign_remapped(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 1, required=False), one(2, -1), one(3, 3, required=False))


def read_only(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.access(0, right=Access.READ)
    s.made(1)


def local_only(s: Story) -> None:
    s.map_to(1, one(0, 1))


def no_rights(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.made(1)


def every_device(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.subject("set_access", BASE, G, ((0, RW), (1, RW)), status=801)
    s.unmap(0)
    s.refused("NOT_SUPPORTED")


def freed_first(s: Story) -> None:
    three(s)
    s.call("close", reservation=1)
    s.subject("address_free", BASE, 8 * G, status=1)
    s.unmap(G, 3 * G)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def freed_twice(s: Story) -> None:
    s.close()
    s.call("close", reservation=1)
    s.subject("address_free", BASE, 8 * G, status=1)
    s.gave()


def close_raises(s: Story) -> None:
    s.call("close", reservation=1)
    s.fails("address_free", BASE, 8 * G)
    s.refused()


def never_freed(s: Story) -> None:
    s.call("close", reservation=1)
    s.gave()


def left_mapped(s: Story) -> None:
    three(s)
    s.call("close", reservation=1)
    s.gave()


def unmaps_unmapped(s: Story) -> None:
    s.call("close", reservation=1)
    s.unmap(G, G, status=1)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def mapped_when_closed(s: Story) -> None:
    s.close()
    s.asks(1, one(0, 1))
    s.subject("map", BASE, G, handle(1), 0, status=1)
    s.refused("INVALID_VALUE")


def reached_after_release(s: Story) -> None:
    three(s)
    s.drop(1)
    s.asked(G, RW)


def reached_before_mapping(s: Story) -> None:
    s.asked(G, Access.READ)


def not_reached(s: Story) -> None:
    three(s)
    s.asked(G, Access.NONE)


def work_refused(s: Story) -> None:
    three(s)
    s.use(1, status=1)


def work_faulted(s: Story) -> None:
    three(s)
    s.use(1, fault=Fault(BASE + G, 8, "no access"))


def offset_copied(s: Story) -> None:
    s.allocate(9, 4 * G)
    s.asks(1, one(1, 9))
    s.map(G, 9, skip=G)
    s.access(G)
    s.made(1)


def odd_map(s: Story) -> None:
    s.asks(1, one(0, 1, size=100))
    s.subject("map", BASE, 100, handle(1), 0, status=1)
    s.refused("INVALID_VALUE")


def odd_unmap(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("drop", mapping=1)
    s.unmap(0, 100, status=1)
    s.unmap(0)
    s.null(1)


def no_bytes(s: Story) -> None:
    s.asks(1)
    s.access(0, 0)
    s.refused(INVALID)


def part_unmapped(s: Story) -> None:
    s.allocate(9, 2 * G)
    s.map_to(1, one(0, 9, size=2 * G))
    s.remaps(1, 2, one(0, 3), one(1, 9, skip=G, required=False))
    s.unmap(0, G, status=1)
    s.unmap(0, 2 * G)
    s.lost(1, "INVALID_VALUE")


def part_taken(s: Story) -> None:
    """The other half of the mapping is gone with the half that was asked for."""
    s.allocate(9, 2 * G)
    s.map_to(1, one(0, 9, size=2 * G))
    s.remap(1, 2, one(0, 3), one(1, 9, skip=G, required=False), runs=[(0, 2 * G)])


def empty_by_another_code(s: Story) -> None:
    s.asks(1)
    s.refused("INVALID_VALUE")


def empty_taken(s: Story) -> None:
    s.asks(1)
    s.gave(m1=(True, None))


def gap_found_late(s: Story) -> None:
    s.asks(1, one(0, 1), one(2, 2))
    s.map(0, 1)
    s.unmap(0)
    s.refused(INVALID)


def gap_taken(s: Story) -> None:
    s.map_to(1, one(0, 1), one(2, 2))


def refused_for_nothing(s: Story) -> None:
    s.asks(1, one(1, 1))
    s.refused(INVALID)


def crashed(s: Story) -> None:
    s.asks(1, one(1, 1))
    s.gave("crashed", "IndexError", "list index out of range")


def access_each(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.map(G, 2)
    s.access(0)
    s.access(G)
    s.made(1)


def access_over_all(s: Story) -> None:
    s.map_to(1, one(0, 1), one(1, 2))


def mapped_backwards(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(G, 2)
    s.map(0, 1)
    s.access(0, 2 * G)
    s.made(1)


def mapped_swapped(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 2)
    s.map(G, 1)
    s.access(0, 2 * G)
    s.made(1)


def mapped_half(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.access(0)
    s.made(1)


def shows_another(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.use(1, TWO)


def map_failure_leaks(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.refused()


def map_failure_masked(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.fails("unmap", BASE, G, status=999)
    s.refused("UNKNOWN")


def map_failure_takes_another(s: Story) -> None:
    s.map_to(1, one(4, 3))
    s.asks(2, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.unmap(0)
    s.unmap(4 * G)
    s.refused()


def map_failure_crashes(s: Story) -> None:
    s.asks(1, one(0, 1), one(1, 2))
    s.map(0, 1)
    s.fails("map", BASE + G, G, handle(2), 0)
    s.unmap(0)
    s.gave("crashed", "RuntimeError", "mapping failed")


def access_failure_leaks(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.fails("set_access", BASE, G, ((0, RW),))
    s.refused()


def access_failure_unmaps_twice(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.map(0, 1)
    s.fails("set_access", BASE, G, ((0, RW),))
    s.unmap(0)
    s.unmap(0, status=1)
    s.refused()


def first_failure_unmaps(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.fails("map", BASE, G, handle(1), 0)
    s.unmap(0, status=1)
    s.refused()


def dropped_and_left(s: Story) -> None:
    three(s)
    s.call("drop", mapping=1)
    s.null(1)


def dropped_in_part(s: Story) -> None:
    three(s)
    s.call("drop", mapping=1)
    s.unmap(G, 2 * G)
    s.null(1)


def dropped_twice(s: Story) -> None:
    three(s)
    s.call("drop", mapping=1)
    s.unmap(G, 3 * G)
    s.unmap(G, 3 * G, status=1)
    s.null(1)


def dropped_with_another(s: Story) -> None:
    three(s)
    s.map_to(2, one(0, 4))
    s.call("drop", mapping=1)
    s.unmap(0, 4 * G)
    s.null(1)


def moved_and_kept(s: Story) -> None:
    three(s)
    s.call("move", mapping=1, made=2)
    s.places[2] = s.places[1]
    s.made(2, m1=(False, Range(*s.places[1])))


def moved_to_null(s: Story) -> None:
    three(s)
    s.call("move", mapping=1, made=2)
    s.gave(m1=(True, None), m2=(True, None))


def null_unmaps(s: Story) -> None:
    three(s)
    s.drop(1)
    s.call("drop", mapping=1)
    s.unmap(G, 3 * G, status=1)
    s.null(1)


def null_has_address(s: Story) -> None:
    s.call("address", mapping=1)
    s.gave()


def null_raises(s: Story) -> None:
    s.call("drop", mapping=1)
    s.refused(PAST)


def remapped_and_kept(s: Story) -> None:
    three(s)
    s.remaps(1, 2, *(one(n, n, required=False) for n in (1, 2, 3)))
    s.made(2, m1=(False, Range(*s.places[1])))


def assigned_and_left(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.map_to(2, one(1, 2))
    s.call("assign", target=1, source=2)
    s.places[1] = s.places[2]
    s.made(1, m2=(True, None))


def assigned_to_itself(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("assign", target=1, source=1)
    s.unmap(0)
    s.null(1)


def assigned_and_copied(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.map_to(2, one(1, 2))
    s.call("assign", target=1, source=2)
    s.unmap(0)
    s.places[1] = s.places[2]
    s.made(1, m2=(False, Range(*s.places[2])))


def assigned_nothing(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.call("assign", target=1, source=2)
    s.unmap(0)
    s.gave(m1=(False, Range(*s.places[1])), m2=(True, None))


def drop_raises(s: Story) -> None:
    three(s)
    s.call("drop", mapping=1)
    s.fails("unmap", BASE + G, 3 * G)
    s.refused(m1=(True, None))


def base_only(s: Story) -> None:
    three(s)
    s.asks(2, one(5, 4))
    s.map(5 * G, 4)
    s.access(5 * G)
    s.gave(m2=(False, Range(BASE, G)))


def null_remap_crashes(s: Story) -> None:
    s.remaps(1, 2, one(0, 1))
    s.gave("crashed", "AttributeError", "None", m1=(True, None))


def null_remap_taken(s: Story) -> None:
    s.remaps(1, 2, one(0, 1))
    s.gave(m1=(True, None), m2=(True, None))


def empty_consumes(s: Story) -> None:
    three(s)
    s.remaps(1, 2)
    s.refused(INVALID, m1=(True, None))


def empty_spoils(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.remaps(1, 2)
    s.kept(1)
    s.use(1, TWO)


def short_taken(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 4), one(2, 2, required=False))


def shifted_refused_late(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(2, 4), one(3, 5), one(4, 6))
    s.unmap(2 * G, 2 * G)
    s.refused(INVALID, m1=(False, Range(*s.places[1])))


def null_memory_taken(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 4), one(2, 0, required=False), one(3, 3, required=False))


def unchanged_called(s: Story) -> None:
    three(s)
    s.remaps(1, 2, *(one(n, n, required=False) for n in (1, 2, 3)))
    s.access(G, 3 * G)
    s.remapped(1, 2)


def unchanged_lost(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.remap(1, 2, *(one(n, n, required=False) for n in (1, 2, 3)))
    s.use(2, TWO)


def unchanged_refused(s: Story) -> None:
    three(s)
    s.remaps(1, 2, *(one(n, n, required=False) for n in (1, 2, 3)))
    s.kept(1, "INTERNAL")


def all_remapped(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.unmap(G, 3 * G)
    for offset, memory in ((G, 4), (2 * G, 2), (3 * G, 5)):
        s.map(offset, memory)
    s.access(G)
    s.access(3 * G)
    s.remapped(1, 2)


def others_lost(s: Story) -> None:
    three(s)
    s.use(1, None, ONE)
    s.remap(1, 2, one(1, 1, required=False), one(2, 4), one(3, 3, required=False))
    s.use(2, TWO)


def old_memory_kept(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.unmap(G)
    s.map(G, 1)
    s.access(G)
    s.remapped(1, 2)


def old_memory_read(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.use(1, None, ONE)
    s.map_to(2, one(1, 2))
    s.use(2, None, TWO)
    s.remap(1, 3, one(0, 2))
    s.use(3, ONE)


def remap_refused(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.kept(1, "INTERNAL")


def mapped_over(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.subject("map", BASE + G, G, handle(4), 0, status=1)
    s.unmap(G, 3 * G)
    s.lost(1, "INVALID_VALUE")


def last_run_missed(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.unmap(G)
    s.unmap(3 * G)
    s.map(G, 4)
    s.map(3 * G, 5)
    s.access(G)
    s.remapped(1, 2)


def rights_on_others(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.unmap(G)
    s.map(G, 4)
    s.access(G, 3 * G)
    s.remapped(1, 2)


def rights_twice(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.unmap(G)
    s.map(G, 4)
    s.access(G)
    s.access(G)
    s.remapped(1, 2)


def not_in_full(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))


def rights_slice_by_slice(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 5), one(3, 3, required=False))
    s.unmap(G, 2 * G)
    s.map(G, 4)
    s.map(2 * G, 5)
    s.access(G)
    s.access(2 * G)
    s.remapped(1, 2)


def unmapped_slice_by_slice(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 5), one(3, 3, required=False))
    s.unmap(G)
    s.unmap(2 * G)
    s.map(G, 4)
    s.map(2 * G, 5)
    s.access(G, 2 * G)
    s.remapped(1, 2)


def unmapped_at_once(s: Story) -> None:
    three(s)
    s.remap(1, 2, one(1, 4), one(2, 5), one(3, 3, required=False), runs=[(G, 2 * G)])


def remap_fails(s: Story) -> None:
    """Up to the failure of a map."""
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 5))
    s.unmap(G)
    s.fails("map", BASE + G, G, handle(4), 0)


def failed_and_left(s: Story) -> None:
    remap_fails(s)
    s.unmap(3 * G)
    s.lost(1)


def failed_and_owner(s: Story) -> None:
    remap_fails(s)
    s.unmap(2 * G, 2 * G)
    s.kept(1, "OUT_OF_MEMORY")


def failed_by_another_error(s: Story) -> None:
    remap_fails(s)
    s.unmap(2 * G, 2 * G)
    s.lost(1, "INVALID_VALUE")


def unmap_not_tried_again(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 2, required=False), one(3, 3, required=False))
    s.fails("unmap", BASE + G, G)
    s.unmap(2 * G, 2 * G)
    s.lost(1)


def given_up_without_a_call(s: Story) -> None:
    """Memory that is too small: whoever refuses that, the mapping must not be lost."""
    s.allocate(9, 2 * G)
    s.map_to(1, one(0, 9, size=2 * G))
    s.remaps(1, 2, one(0, 1, size=2 * G))
    s.lost(1, INVALID)


def cleaned_blindly(s: Story) -> None:
    remap_fails(s)
    s.unmap(G, status=1)
    s.unmap(2 * G)
    s.unmap(3 * G)
    s.lost(1)


def not_mappable(s: Story) -> None:
    remap_fails(s)
    s.unmap(2 * G, 2 * G)
    s.lost(1)
    s.asks(3, one(1, 4), one(2, 2), one(3, 5))
    s.refused(PAST)


def cleanup_masks(s: Story) -> None:
    remap_fails(s)
    s.fails("unmap", BASE + 2 * G, G, status=999)
    s.unmap(3 * G)
    s.lost(1, "UNKNOWN")


def lie_mapped(s: Story) -> None:
    three(s)
    s.remaps(1, 2, one(1, 4), one(2, 6, required=False), one(3, 3, required=False))
    s.unmap(G, 2 * G)
    s.map(G, 4)
    s.map(2 * G, 6)
    s.access(G, 2 * G)
    s.remapped(1, 2)


def lie_refused(s: Story) -> None:
    three(s)
    s.remaps(1, 2, *(one(n, 6, required=False) for n in (1, 2, 3)))
    s.kept(1)


BAD: list[tuple[int, tuple[Tell, ...], dict[str, Any]]] = [
    (1, (unrounded, less_than_asked), {}),
    (2, (null_identity, no_handle, smaller_handle, other_device, shared_identity), {}),
    (2, (refused_allocation, not_really_short), {}),
    (3, (released_twice, released_while_held, released_too_early, never_released), {}),
    (3, (release_raises, refuses_to_release), {}),
    (4, (misaligned, alignment_dropped, odd_size, not_reserved, refused_reservation), {}),
    (5, (overlapping,), {}),
    (6, (foreign_mapped, foreign_by_another_code, released_mapped, foreign_remapped), {}),
    (7, (read_only, no_rights), {}),
    (7, (local_only,), BOTH),
    (9, (freed_first, freed_twice, close_raises, never_freed, left_mapped, unmaps_unmapped, mapped_when_closed), {}),
    (10, (reached_after_release, reached_before_mapping, not_reached, work_refused, work_faulted), {}),
    (11, (offset_copied,), OFFSETS),
    (12, (odd_map, odd_unmap, no_bytes), {}),
    (13, (part_unmapped, part_taken), {}),
    (14, (empty_by_another_code, empty_taken), {}),
    (15, (gap_found_late, gap_taken), {}),
    (16, (refused_for_nothing, crashed), {}),
    (17, (access_each, mapped_backwards, mapped_swapped, mapped_half, shows_another), {}),
    (17, (access_over_all,), SLICES),
    (18, (map_failure_leaks, map_failure_masked, map_failure_takes_another, map_failure_crashes), {}),
    (19, (access_failure_leaks, access_failure_unmaps_twice), {}),
    (20, (first_failure_unmaps,), {}),
    (21, (dropped_and_left, dropped_in_part, dropped_twice, dropped_with_another), {}),
    (22, (moved_and_kept, null_unmaps, null_has_address, null_raises, remapped_and_kept), {}),
    (23, (assigned_and_left, assigned_and_copied, assigned_nothing), {}),
    (24, (drop_raises,), {}),
    (25, (base_only,), {}),
    (26, (null_remap_crashes, null_remap_taken), {}),
    (27, (empty_consumes, empty_spoils), {}),
    (28, (short_taken, shifted_refused_late), {}),
    (29, (null_memory_taken,), {}),
    (30, (unchanged_called, unchanged_lost, unchanged_refused), {}),
    (31, (all_remapped, others_lost), {}),
    (32, (old_memory_kept, old_memory_read, remap_refused), {}),
    (33, (mapped_over,), {}),
    (34, (last_run_missed, rights_on_others, rights_twice), {}),
    (34, (not_in_full,), FULL),
    (35, (rights_slice_by_slice, unmapped_slice_by_slice), {}),
    (35, (unmapped_at_once,), {"scopes": {"set_access": "run", "unmap": "slice"}}),
    (36, (failed_and_left, failed_and_owner, failed_by_another_error), {}),
    (36, (unmap_not_tried_again, given_up_without_a_call), {}),
    (37, (cleaned_blindly,), {}),
    (38, (not_mappable,), {}),
    (39, (cleanup_masks,), {}),
    (40, (lie_refused,), {}),
]
IDS = {int(entry.id.rpartition("-")[2]): entry.id for entry in catalogue().of("reservation")}
CASES = [pytest.param(IDS[n], tell, header, id=f"{n}-{tell.__name__}") for n, tells, header in BAD for tell in tells]


@pytest.mark.parametrize(("invariant", "tell", "header"), CASES)
def test_wrong_history(invariant: str, tell: Tell, header: dict[str, Any]) -> None:
    story = ready(**header)
    tell(story)
    assert broken(story)[:1] == [invariant], story.judged().findings
    finding = story.judged().findings[0]
    assert finding.message
    assert finding.expected
    assert finding.actual


BESIDE: list[tuple[int, Tell, dict[str, Any]]] = [
    (8, every_device, APART),
    (22, moved_to_null, {}),
    (23, assigned_to_itself, {}),
    (40, lie_mapped, {}),
]
"""What breaks an invariant that another one says before it."""


@pytest.mark.parametrize(("number", "tell", "header"), BESIDE, ids=[tell.__name__ for _, tell, _ in BESIDE])
def test_wrong_history_among_others(number: int, tell: Tell, header: dict[str, Any]) -> None:
    story = ready(**header)
    tell(story)
    assert IDS[number] in broken(story), story.judged().findings


def test_every_invariant_has_a_wrong_history() -> None:
    assert {number for number, *_ in BAD} | {number for number, *_ in BESIDE} == set(IDS)


# -- histories that test nothing


def nothing(s: Story) -> None:
    pass


def mapped_at_start(s: Story) -> None:
    s.map_to(1, one(0, 1))


def used_unwritten(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.use(1, ONE)
    s.remap(1, 2, one(0, 1))
    s.use(2, TWO)


def closed_unused(s: Story) -> None:
    s.close()


def unmapped_nothing(s: Story) -> None:
    s.call("close", reservation=1)
    s.unmap(0, 8 * G, status=1)
    s.subject("address_free", BASE, 8 * G)
    s.gave()


def remapped_alone(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.remap(1, 2, one(0, 2))


def failed_at_once(s: Story) -> None:
    s.asks(1, one(0, 1))
    s.fails("map", BASE, G, handle(1), 0)
    s.refused()


def failed_without_cleanup(s: Story) -> None:
    s.map_to(1, one(0, 1))
    s.remaps(1, 2, one(0, 2))
    s.unmap(0)
    s.fails("map", BASE, G, handle(2), 0)
    s.lost(1)


def moved_elsewhere(s: Story) -> None:
    """A mapping call where no remap has failed says nothing of REMAP-38."""
    remap_fails(s)
    s.unmap(2 * G, 2 * G)
    s.lost(1)
    s.map_to(3, one(5, 1))


VACUOUS: list[tuple[Tell, set[int]]] = [
    (nothing, set(range(6, 41)) | {3, 5}),
    (mapped_at_start, {3, 5, 6, 8, 9, 10, 11, 13, 14, 15, *range(18, 25), *range(26, 41)}),
    (used_unwritten, {5, 31, 35, 36}),
    (closed_unused, {9}),
    (unmapped_nothing, {13}),
    (remapped_alone, {30, 31, 35, 40, 36}),
    (failed_at_once, {16, 17, 18, 19, 25}),
    (failed_without_cleanup, {32, 34, 37, 39}),
    (moved_elsewhere, {38}),
]


@pytest.mark.parametrize(("tell", "untested"), VACUOUS, ids=[tell.__name__ for tell, _ in VACUOUS])
def test_vacuous_history(tell: Tell, untested: set[int]) -> None:
    story = ready()
    tell(story)
    judged = story.judged()
    assert judged.findings == []
    closed = {9} if tell is closed_unused else set()  # that closing raises nothing is tested
    assert {number for number in untested - closed if judged.witnesses[IDS[number]]} == set()


def test_without_a_trace_only_what_can_be_seen_is_judged() -> None:
    story = Story(traced=False)
    story.call("reserve", reservation=1, device=0, size=8 * G, alignment=0)
    story.gave(address=Range(BASE, 8 * G))
    story.call("allocate", allocation=1, device=0, size=G, space=0)
    story.gave(address=Range(7, G))
    story.asks(1, one(1, 1))
    story.made(1)
    story.use(1, None, ONE)
    story.use(1, ONE)
    story.remaps(1, 2, one(1, 1))
    story.remapped(1, 2)
    story.use(2, ONE)
    judged = story.judged()
    assert judged.findings == []
    seen = {id for id, count in judged.witnesses.items() if count}
    untraced = {entry.id for entry in catalogue().of("reservation") if entry.trace == "no"}
    assert untraced - {"RES-5"} <= seen


def test_memory_that_is_short_is_a_reason() -> None:
    story = ready(capacity={0: 8 * G})
    story.call("allocate", allocation=9, device=0, size=3 * G, space=0)
    story.refused("OUT_OF_MEMORY")
    assert broken(story) == []
