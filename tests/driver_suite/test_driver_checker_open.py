"""The checker of ``driver`` where nothing is known or nothing is said: either answer is right."""

from __future__ import annotations

from typing import Any

import pytest
from driver_stories import (
    NONE,
    RW,
    A,
    B,
    G,
    Line,
    attach,
    both,
    call,
    copied,
    create,
    detach,
    got,
    grant,
    mapped,
    memory,
    put,
    ran,
    refused,
    release,
    reserve,
    row,
    story,
    told,
)

from vmm_conformance.checkers.driver import judge

X, Y = b"xxxxxxxx", b"yyyyyyyy"
NOTHING = both()
ONE = mapped()
BRIDGE = both(mapped(), mapped(A + G, 2))
PLAIN = call("alloc", 100, 0, 0, result=B)
STREAM = call("stream_create", 1, result=77)
END = call("graph_end", 9, result=3)


@pytest.mark.parametrize(
    ("before", "question", "options"),
    [
        pytest.param(NOTHING, told(A, NONE, 7), {}, id="rights of no device on nothing"),
        pytest.param(ONE, told(A, NONE, 7), {}, id="rights of no device"),
        pytest.param(ONE, call("address_range", B, result=(B, G)), {}, id="the range around nothing"),
        pytest.param(both(reserve(A, 1), create(1, 2)), attach(A, 1, 1, offset=G),
                     {"map_offset": True, "partial_map": False}, id="how much behind an offset"),
        pytest.param(both(mapped(room=1), release(1)), attach(A + G, 1), {}, id="a handle that only mappings hold"),
        pytest.param(BRIDGE, detach(A, 2), {}, id="unmap of two reservations"),
        pytest.param(BRIDGE, grant(A, 2), {}, id="rights on two reservations"),
        pytest.param(NOTHING, call("write", B, b"", None), {}, id="no bytes, nowhere"),
        pytest.param(both(PLAIN, STREAM), call("write", B, X, 77), {"devices": 2}, id="plain memory of a lower device"),
        pytest.param(both(call("alloc", 100, 2, 0, result=B), STREAM), call("write", B, X, 77), {"devices": 3},
                     id="plain memory of a higher device"),
        pytest.param(PLAIN, call("write", B, X, 5), {}, id="a stream that nobody made, on plain memory"),
        pytest.param(ONE, call("write", A, X, 5), {}, id="a stream that nobody made"),
        pytest.param(NOTHING, END, {}, id="the end of no capture"),
        pytest.param(call("graph_begin", 9), END, {}, id="the end of a capture beside which nothing was called"),
        pytest.param(both(call("graph_begin", 9), reserve(A, 1), END), END, {}, id="the end of what has ended"),
    ],
)  # fmt: skip
def test_either_answer_is_right(before: Line, question: Line, options: dict[str, Any]) -> None:
    for answer in (question, refused(question)):
        assert judge(story(before, answer, **options)).findings == []


@pytest.mark.parametrize("before", [PLAIN, ONE])
def test_work_on_a_stream_that_nobody_made_may_run(before: Line) -> None:
    """A driver that could make none may still have one of its own."""
    place = B if before is PLAIN else A
    assert judge(story(before, put(place, X, 5), got(place, X, 5))).findings == []


@pytest.mark.parametrize("minimum", [0, 3 * G])
def test_a_driver_without_a_granularity_that_can_be_used_is_not_judged_further(minimum: int) -> None:
    found = judge(story(reserve(A + 8, 1), refused(detach(A)), told(A, RW), minimum=minimum)).findings
    assert [finding.invariant for finding in found] == ["DRIVER-2"]


def test_neither_is_one_that_gives_none() -> None:
    history = story(refused(reserve(A, 1)))
    history.events[0].args = ("granularity", {"device": 0, "space": 0, "status": 2})
    assert [finding.invariant for finding in judge(history).findings] == ["DRIVER-2"]


@pytest.mark.parametrize(
    "work",
    [
        both(call("read", A, 8, None, result=5), ran(5, (), None)),
        both(call("copy", A + 100, A, 8, None, result=5), ran(5, (Y,), None)),
    ],
)
def test_a_read_that_gives_nothing_and_a_copy_that_gives_something_show_nothing(work: Line) -> None:
    assert judge(story(ONE, put(A, X), work)).findings == []


def test_few_bytes_show_nothing_of_other_memory() -> None:
    lines = (row(1, 1), put(A, X))
    assert not judge(story(*lines, got(A + G, Y[:7]))).witnesses["DRIVER-39"]
    assert judge(story(*lines, got(A + G, Y))).witnesses["DRIVER-39"]


BYTE = 1 / G
ONE_BYTE = (
    memory(0), reserve(1, 0, size=1), create(1, BYTE), attach(1, 1, BYTE), grant(1, BYTE), told(1, RW), detach(1, BYTE)
)  # fmt: skip


def test_a_granule_may_be_one_byte() -> None:
    assert judge(story(*ONE_BYTE, minimum=1)).findings == []
    for last in range(1, len(ONE_BYTE)):
        assert judge(story(*ONE_BYTE[:last], refused(ONE_BYTE[last]), minimum=1)).findings, last
    before = attach(1, 1, BYTE, offset=-1)
    assert judge(story(*ONE_BYTE[:3], refused(before), minimum=1, map_offset=True)).findings == []
    assert judge(story(*ONE_BYTE[:3], before, minimum=1, map_offset=True)).findings


@pytest.mark.parametrize("base", [G, A, A + G])
def test_rights_on_a_part_are_those_of_the_part_wherever_the_mapping_lies(base: int) -> None:
    begin = (reserve(base, 3), create(1, 3), attach(base, 1, 3), grant(base + G))
    rights = (told(base, NONE), told(base + G, RW), told(base + 2 * G, NONE))
    work = (put(base + G, X), put(base + 2 * G - 8, Y), got(base + G, X), got(base + 2 * G - 8, Y))
    for lines in (rights, work):
        assert judge(story(*begin, *lines, set_access_part_of_mapping=True)).findings == []
    for address in (base + 2 * G - 4, base + G - 4):
        assert judge(story(*begin, put(address, X), set_access_part_of_mapping=True)).findings != []


def test_a_copy_is_known_as_far_as_its_target_reaches() -> None:
    """Behind the end of a mapping its memory goes on, and holds what it held."""
    first, other, second = attach(A, 1, 1), attach(A + G, 2), attach(A + 2 * G, 1, 1, offset=G)
    parts = (reserve(A, 3), create(1, 2), create(2), first, other, second, grant(A), grant(A + G), grant(A + 2 * G))
    source = (mapped(B, 3), put(B + 4, X), put(B + 12, Y + X + Y))
    copy = copied(A + G - 8, B, 36)
    after = (got(A + G - 4, X + Y + X + Y), got(A + 2 * G, b"anything" * 4))
    assert judge(story(*parts, *source, copy, *after, map_offset=True)).findings == []


def test_a_copy_shows_nothing_where_its_target_ends() -> None:
    """What is known begins behind the first mapping of the target, whose memory goes on there."""
    ends = (reserve(A, 2), create(1, 2), create(2), attach(A, 1, 1), attach(A + G, 2), grant(A), grant(A + G))
    whole, other = A + 4 * G, B + 4 * G
    lines = (reserve(whole, 2), attach(whole, 1, 2), grant(whole, 2), mapped(B, 3), mapped(other, 4))
    work = (put(B + 8, X), copied(A + G - 8, B, 16), put(other, Y), got(whole + G - 8, b"????" + Y + b"????"))
    assert {finding.invariant for finding in judge(story(*ends, *lines, *work)).findings} == {"DRIVER-39"}
