"""The checker of ``driver`` names the rule that was broken: the latest call that may have done it, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from driver_stories import (
    NONE,
    READ,
    RW,
    A,
    B,
    G,
    Line,
    all_of,
    attach,
    both,
    call,
    copied,
    crashed,
    create,
    detach,
    free,
    got,
    grant,
    mapped,
    memory,
    note,
    put,
    ran,
    refused,
    release,
    reserve,
    retain,
    row,
    story,
    told,
)

from vmm_conformance.checkers.driver import judge
from vmm_conformance.contracts import Range

X, Y, Z = b"xxxxxxxx", b"yyyyyyyy", b"zzzzzzzz"
ONE = mapped()
TWO = both(row(1, 1), told(A, RW), told(A + G, RW))
ALIAS = both(mapped(), reserve(B, 1), attach(B, 1), grant(B))
AGAIN = both(detach(A), attach(A, 1))
WRITE = refused(call("write", A, X, None))
ACCESS_PART: dict[str, Any] = {"set_access_part_of_mapping": True}
STREAMS = both(call("stream_create", 0, result=77), call("stream_create", 0, result=78))


def blamed(*lines: Line, **options: Any) -> list[int]:
    """The numbers of the broken invariants, in the order in which they were found."""
    return [int(finding.invariant.split("-")[1]) for finding in judge(story(*lines, **options)).findings]


def cycles(count: int) -> Line:
    return all_of(both(detach(A), memory(1), attach(A, 1), memory(1)) for _ in range(count))


def mapped_times(count: int) -> Line:
    """A memory that was mapped so often at one place, and is not mapped now."""
    return both(memory(0), ONE, memory(1), cycles(count - 1), detach(A), memory(1))


def turned(failed: str) -> Line:
    return note("turnover", size=1 << 30, times=600, done=7, failed=failed, slower=1)


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        pytest.param((ONE, told(A, RW), AGAIN, told(A, READ)), [48], id="rights, but not those from before"),
        pytest.param((ONE, refused(free(A, 1)), told(A, NONE)), [58], id="accepted, if nobody looked"),
        pytest.param((ONE, *[refused(free(A, 1))] * 3, told(A, NONE)), [58], id="however often it was refused"),
        pytest.param((ONE, told(A, RW), refused(free(A, 1)), told(A, NONE)), [15, 78], id="refused, if one looked"),
        pytest.param(
            (row(2), told(A, RW), refused(free(A, 2)), refused(detach(A)), told(A, NONE)), [42, 78],
            id="the later of two that were refused",
        ),
        pytest.param((ONE, told(A, RW), refused(grant(A, 0)), told(A, NONE)), [55, 78], id="no bytes are at a place"),
        pytest.param((TWO, refused(grant(A + G - 1, 0)), told(A + G, NONE)), [52], id="and not at the next one"),
        pytest.param((ONE, WRITE), [58], id="a write refused behind set_access"),
        pytest.param((ONE, told(A, RW), WRITE), [1], id="a write refused behind nothing"),
        pytest.param((ONE, create(2), attach(A + 1, 2)), [34, 32, 33], id="all rules that an accepted call breaks"),
        pytest.param((ONE, attach(A, 1, 0)), [34, 33], id="nothing, mapped onto something"),
        pytest.param((reserve(A, 1), create(1), attach(A + G - 1, 1, 1 / G)), [34], id="the last byte of all"),
        pytest.param((refused(create(1, 1.5, device=-1), 2),), [], id="any code, of a call wrong in two ways"),
        pytest.param((crashed(reserve(A, 1)), refused(memory(0))), [7, 79], id="a crash does not stick"),
        pytest.param((crashed(memory(0)), refused(memory(0))), [1, 79], id="a question's neither"),
        pytest.param((turned("address_free"), refused(reserve(A, 1))), [18], id="nothing behind what was not freed"),
        pytest.param((turned("reserve"), refused(reserve(A, 1))), [18, 7], id="but behind what was not reserved"),
        pytest.param(
            (ONE, release(1), attach(B, 1), attach(B + G, 1), refused(grant(B, 2))), [51],
            id="stale handles mapped in no reservation",
        ),
    ],
)  # fmt: skip
def test_who_is_blamed(lines: tuple[Line, ...], broken: list[int]) -> None:
    assert blamed(*lines) == broken


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        pytest.param((memory(0), ONE, memory(1), retain(A, 1), memory(2)), 19, id="retain costs nothing"),
        pytest.param((memory(0), ONE, retain(A, 1), memory(1), detach(A), memory(0)), 26, id="held, and none released"),
        pytest.param(
            (memory(0), call("alloc", 100, 0, 0, result=B), memory(5), create(1), memory(5)), 19,
            id="exact again behind plain memory",
        ),
        pytest.param((mapped_times(7), attach(A, 1), memory(2)), 19, id="the eighth mapping costs"),
        pytest.param((mapped_times(8), attach(A, 1), memory(2)), 46, id="the ninth costs"),
        pytest.param((mapped_times(8), refused(attach(A, 1))), 46, id="the ninth is refused"),
        pytest.param((memory(0), ONE, cycles(6), detach(A), memory(2)), 26, id="the seventh unmapping costs"),
        pytest.param((memory(0), ONE, cycles(7), detach(A), memory(2)), 46, id="the eighth costs"),
    ],
)  # fmt: skip
def test_who_is_blamed_for_what_is_free(lines: tuple[Line, ...], broken: int) -> None:
    assert blamed(*lines) == [broken]


def test_the_eighth_mapping_at_one_place_is_as_the_second() -> None:
    assert blamed(mapped_times(7), refused(attach(A, 1))) == blamed(mapped_times(1), refused(attach(A, 1))) == [45, 44]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((put(A, X), copied(A + G, A, 8), put(A + G, Y), got(A + G, X)), id="copied from another"),
        pytest.param((put(A, X), copied(A + G, A, 8), put(A, Y), got(A, X)), id="copied to another"),
        pytest.param(
            (both(call("fill", A + G, 7, 8, None, result=5), ran(5, (), None)), put(A, Y), got(A, b"\7" * 8)),
            id="the same everywhere",
        ),
        pytest.param(
            (
                put(A, X), STREAMS, call("copy", A + G, A, 8, 77, result=5), call("write", A + G, Z, 78, result=6),
                ran(6, (), None), ran(5, (), None), put(A + G, Y), got(A + G, X),
            ),
            id="copied, or written over",
        ),
        pytest.param((refused(free(A, 1)), put(A, X), got(A, Z)), id="written behind a call that was refused"),
    ],
)  # fmt: skip
def test_bytes_that_may_lie_elsewhere_too_or_are_too_new_tell_of_nobody_else(lines: tuple[Line, ...]) -> None:
    assert blamed(TWO, *lines) == [1]


def test_what_was_seen_through_another_mapping_was_the_same_memory() -> None:
    assert blamed(ALIAS, put(A, X), got(B, Z)) == [60]
    assert blamed(ALIAS, put(A, X), got(B, X), got(B, Z)) == [1]


@pytest.mark.parametrize(("gone", "left"), [(A, A + G), (A, B), (B, A)])
def test_rights_are_those_from_before_whatever_else_was_freed(gone: int, left: int) -> None:
    """Next to it, or anywhere."""
    before = both(mapped(gone, 1), mapped(left, 2), told(gone, RW), told(left, RW))
    assert blamed(before, detach(left), detach(gone), free(gone, 1), attach(left, 2), told(left, RW)) == [57]


def test_rights_from_before_are_those_of_the_same_place() -> None:
    before = both(TWO, grant(A + G, 1, READ), told(A + G, READ), detach(A, 2), create(3, 2), attach(A, 3, 2))
    assert blamed(before, told(A + G, READ)) == [57]


@pytest.mark.parametrize(("base", "granules"), [(A + G, 1), (A, 2)])
def test_addresses_reserved_anew_have_no_past(base: int, granules: int) -> None:
    place = base + (granules - 1) * G
    begin = (reserve(base, granules), create(1), attach(place, 1), grant(place), told(place, RW), detach(place))
    assert blamed(*begin, attach(place, 1), told(place, RW)) == [57]
    assert blamed(*begin, free(base, granules), reserve(base, granules), attach(place, 1), told(place, RW)) == [48]


def test_rights_from_before_are_the_last_that_were_there() -> None:
    place, right = A + G, told(A + G, READ)
    first = both(reserve(A, 2), create(1), attach(place, 1), grant(place), told(place, RW), detach(place))
    second = both(attach(place, 1), grant(place, 1, READ), right, detach(place))
    assert blamed(first, second, attach(place, 1), right) == [57]


def test_rights_granted_anew_do_not_show_that_those_from_before_have_ended() -> None:
    lines = (ONE, told(A, RW), AGAIN, grant(A), told(A, RW))
    assert not judge(story(*lines)).witnesses["DRIVER-57"]
    assert judge(story(*lines[:3], told(A, NONE))).witnesses["DRIVER-57"]


def test_rights_outside_of_the_part_that_was_named_are_no_ones_else() -> None:
    for address in (A + G, A + 2 * G):
        lines = (mapped(granules=3), grant(A, 1, READ), told(address, RW, 1))
        assert blamed(*lines, devices=2, **ACCESS_PART) == [53]


def test_rights_of_another_mapping_of_the_memory_are_its_own() -> None:
    beside = both(reserve(A, 2), create(1), attach(A, 1), attach(A + G, 1), grant(A), grant(A + G), told(A + G, RW))
    assert blamed(beside, grant(A, 1, READ), told(A + G, READ)) == [59]
    assert blamed(ALIAS, told(B, RW), grant(A, 1, READ), told(B, READ)) == [59]


def test_other_rights_are_found_once_a_granule() -> None:
    lines = (mapped(granules=3), grant(A, 2, READ), told(A, RW), told(A + 8, RW))
    assert blamed(*lines, **ACCESS_PART) == [53]
    assert blamed(*lines, told(A + G, RW), **ACCESS_PART) == [53, 53]


def test_an_unmap_that_had_to_be_refused_is_not_blamed_for_not_waiting() -> None:
    lines = (STREAMS, mapped(granules=2), call("write", A, X, 77, result=5))
    assert blamed(*lines, detach(A, 2), unmap_waits=True) == [75]
    assert blamed(*lines, detach(A), unmap_waits=True) == [42]


def test_wrong_bytes_are_told_by_their_address_in_a_mapping_that_begins_inside_its_handle() -> None:
    lines = (reserve(A, 1), create(1, 2), attach(A, 1, 1, offset=G), grant(A), put(A + 8, X))
    assert judge(story(*lines, got(A + 8, X), map_offset=True)).findings == []
    (finding,) = judge(story(*lines, got(A + 8, Z), map_offset=True)).findings
    assert finding.range == Range(A + 8, 8)
