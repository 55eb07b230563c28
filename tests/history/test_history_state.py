"""The driver's state as a history implies it."""

from __future__ import annotations

import pytest
from event_line import RW, A, B, G, Line

from vmm_conformance.history.state import OPEN


@pytest.fixture
def line() -> Line:
    line = Line()
    line.reserve()
    return line


def test_a_reservation_lives_from_reserve_to_address_free(line: Line) -> None:
    reservation = line.state.reservation_at(A + 4 * G - 1)
    assert reservation is not None
    assert (reservation.address, reservation.size, reservation.made, reservation.ended) == (A, 4 * G, 0, OPEN)
    assert line.state.reservation_at(A + 4 * G) is None
    event = line("address_free", A, 4 * G)
    assert line.state.reservation_at(A) is None
    assert reservation.ended == event.seq


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("map", (A, G, 1, 0)),
        ("unmap", (B, G)),
        ("set_access", (B, G, ((0, 0),))),
        ("address_free", (A, 4 * G)),
        ("release", (1,)),
        ("reserve", (G, 0, 0)),
    ],
)
def test_a_refused_call_changes_nothing(line: Line, kind: str, args: tuple[object, ...]) -> None:
    line.back(B, 1)
    (mapping,) = line.state.mappings
    line(kind, *args, status=1, result=0x90_0000)
    assert line.state.mappings == (mapping,)
    assert (mapping.rights, mapping.memory.references, len(line.state.reservations)) == ({0: RW}, 1, 2)
    assert (line.state.ended, line.state.lowered) == ([], [])


def test_memory_lives_until_its_last_reference_and_its_last_mapping_are_gone(line: Line) -> None:
    line.back(A, 1)
    line.back(B, 1)
    memory = line.state.handles[1]
    assert (memory.references, memory.mappings, memory.size, memory.space, memory.device) == (1, 2, G, 0, 0)
    line("retain", A, result=1)
    for call in (("release", 1), ("unmap", A, G), ("release", 1)):
        line(*call)
        assert memory.ended == OPEN
    last = line("unmap", B, G)
    assert memory.ended == last.seq
    assert [type(one).__name__ for one in line.state.ended] == ["Mapping", "Memory"]
    assert 1 not in line.state.handles


def test_a_handle_number_that_comes_back_is_other_memory(line: Line) -> None:
    line("create", G, 0, 0, result=1)
    old = line.state.handles[1]
    line("release", 1)
    line("create", 2 * G, 1, 5, result=1)
    new = line.state.handles[1]
    assert new is not old
    assert (new.size, new.device, new.space) == (2 * G, 1, 5)


def test_one_unmap_may_end_several_mappings_and_leaves_their_neighbours(line: Line) -> None:
    for number in range(4):
        line.back(A + number * G, 1 + number)
    last = line("unmap", A + G, 2 * G)
    assert [mapping.address for mapping in line.state.mappings] == [A, A + 3 * G]
    assert [(ended.address, ended.ended) for ended in line.state.ended] == [(A + G, last.seq), (A + 2 * G, last.seq)]


def test_rights_are_per_device_and_lowering_them_is_told(line: Line) -> None:
    line.back(A, 1)
    (mapping,) = line.state.mappings
    line("set_access", A, G, ((1, 1),))
    assert (mapping.rights, line.state.lowered) == ({0: 3, 1: 1}, [])
    line("set_access", A, G, ((0, 1), (1, 3)))
    assert (mapping.rights, line.state.lowered) == ({0: 1, 1: 3}, [mapping])
    line.back(B, 2)
    assert line.state.lowered == []


def test_what_covers_an_address(line: Line) -> None:
    line.back(A + G, 1, size=2 * G)
    line("alloc", 100, 0, 1, result=0x50_0000)
    at = line.state.mapping_at
    assert [at(address) is not None for address in (A, A + G, A + 3 * G - 1, A + 3 * G)] == [False, True, True, False]
    assert [m.address for m in line.state.mappings_in(A, G)] == []
    assert [m.address for m in line.state.mappings_in(A, G + 1)] == [A + G]
    memory = line.state.allocation_at(0x50_0000 + 99)
    assert memory is not None
    assert (memory.handle, memory.space, memory.address) == (0, 1, 0x50_0000)
    assert line.state.allocation_at(0x50_0000 + 100) is None


def test_parts_name_the_memory_behind_a_range_and_leave_holes_out(line: Line) -> None:
    line.back(A, 1)
    line.back(A + 2 * G, 2, offset=G)
    line.back(A + 3 * G, 3)
    parts = [(part.memory.handle, part.low, part.high) for part in line.state.parts(A + G - 8, 2 * G + 16)]
    assert parts == [(1, G - 8, G), (2, G, 2 * G), (3, 0, 8)]
    (inside,) = line.state.parts(A + 2 * G + 100, 8)
    assert (inside.low, inside.high, inside.mapping is line.state.mapping_at(A + 2 * G)) == (G + 100, G + 108, True)
    assert line.state.parts(A + G, G) == []


def test_parts_of_a_plain_allocation_end_with_it(line: Line) -> None:
    line("alloc", 100, 0, 0, result=0x50_0000)
    (part,) = line.state.parts(0x50_0000 + 90, 50)
    assert (part.mapping, part.low, part.high) == (None, 90, 100)
    line("free", 0x50_0000)
    assert line.state.parts(0x50_0000 + 90, 50) == line.state.parts(0x50_0000, 8) == []
    assert [memory.ended for memory in line.state.ended] == [part.memory.ended] != [OPEN]


def test_a_mapping_knows_its_reservation_and_who_made_it(line: Line) -> None:
    line("create", G, 0, 0, result=1, who="harness")
    line("map", B + G, G, 1, 0)
    (mapping,) = line.state.mappings
    assert mapping.reservation is line.state.reservations[B]
    assert (mapping.who, mapping.memory.who) == ("subject", "harness")


def test_releasing_twice_ends_memory_once(line: Line) -> None:
    line("create", G, 0, 0, result=1)
    line("release", 1)
    line("release", 1)
    assert line.state.ended == []


def test_what_was_taken_in_a_range(line: Line) -> None:
    """Reservations and plain allocations; the first address behind either is free, and so is the range's own end."""
    line("alloc", 100, 0, 0, result=A - 100)
    taken = line.state.taken_in
    (memory,) = line.state.allocations
    assert [taken(low, high) for low, high in ((A - 200, A - 100), (A + 4 * G, B))] == [None, None]
    assert taken(A - 200, A - 99) is taken(A - 1, A) is memory
    for low, high in ((A, A + 1), (A + 4 * G - 1, B), (A - 200, B), (A + G, A + 2 * G)):
        assert taken(low, high) is line.state.reservations[A]
    assert taken(A - 1, B + 1) is line.state.reservations[B]


def test_a_place_that_is_handed_out_twice_is_the_last_one_s(line: Line) -> None:
    """A driver that does so is wrong; what it holds can be told all the same."""
    line("reserve", G, 0, 0, result=A)
    assert line.state.reservations[A].size == G
    line("address_free", A, G)
    assert line.state.reservation_at(A) is None
    for handle in (1, 2):
        line.back(B, handle)
        line("alloc", 100 * handle, 0, 0, result=0x50_0000)
    (mapping,), (memory,) = line.state.mappings, line.state.allocations
    assert (mapping.memory.handle, memory.size) == (2, 200)
    line("unmap", B, G)
    line("free", 0x50_0000)
    assert (line.state.mappings, line.state.allocations, line.state.mapping_at(B)) == ((), (), None)


def test_what_is_not_there_is_not_counted(line: Line) -> None:
    for kind, args, result in (
        ("retain", (A,), 9), ("release", (9,), None), ("map", (A, G, 9, 0), None), ("unmap", (A, G), None),
        ("free", (A,), None), ("address_free", (A + G, G), None),
    ):  # fmt: skip
        line(kind, *args, result=result)
        assert (line.state.mappings, line.state.handles, line.state.ended) == ((), {}, [])
    assert list(line.state.reservations) == [A, B]
