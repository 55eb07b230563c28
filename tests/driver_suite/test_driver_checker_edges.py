"""The checker of ``driver`` between the edges of what is mapped: bytes at offsets, across mappings, and copied."""

from __future__ import annotations

import pytest
from driver_stories import (
    READ,
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
    free,
    got,
    grant,
    mapped,
    memory,
    note,
    put,
    ran,
    refused,
    reserve,
    row,
    story,
    told,
)

from vmm_conformance.checkers.driver import judge
from vmm_conformance.checkers.driver_facts import facts_of
from vmm_conformance.checkers.judge import Finding
from vmm_conformance.contracts import Status
from vmm_conformance.history.events import HARNESS, History

TOKEN = b"abcdefgh"
WORKS = iter(range(5_000, 6_000))
P = B + 4
"""Where plain memory lies: at no whole granule."""


def found(*lines: Line) -> set[str]:
    return {finding.invariant for finding in judge(story(*lines)).findings}


def filled(address: int, value: int, size: int) -> Line:
    work = next(WORKS)
    return both(call("fill", address, value, size, None, result=work), ran(work, (), None))


@pytest.mark.parametrize("at", [0, 1, 100, G - 8])
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (3, 0), (0, 5), (2, 2)])
def test_bytes_are_known_wherever_they_lie(at: int, before: int, behind: int) -> None:
    """A read that begins before them or ends behind them says nothing of what lies there."""
    start = A + G + at - before
    for token, wrong in ((TOKEN, False), (b"abcdefgX", True), (b"Xbcdefgh", True)):
        read = got(start, b"?" * before + token + b"!" * behind)
        lines = (row(1, 1, 1), told(A + G, RW), put(A + G + at, TOKEN), read)
        assert bool(found(*lines)) is wrong


def test_bytes_across_two_mappings_are_known_in_both() -> None:
    lines = (row(1, 1), told(A, RW), put(A + G - 3, TOKEN))
    assert found(*lines, got(A + G - 3, TOKEN), got(A + G - 2, TOKEN[1:]), got(A + G, TOKEN[3:])) == set()
    for address, data in (
        (A + G - 3, b"abcdefgX"),
        (A + G - 3, b"Xbcdefgh"),
        (A + G, b"defgX"),
        (A + G - 1, b"Xdefgh"),
    ):
        assert found(*lines, got(address, data)) != set()


@pytest.mark.parametrize("source", [A + 5, A + G - 3, A + G + 1])
@pytest.mark.parametrize("target", [A + 2 * G, A + 2 * G + 40, A + 3 * G - 5])
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (4, 0), (0, 4), (3, 2)])
def test_a_copy_takes_along_what_is_known(source: int, target: int, before: int, behind: int) -> None:
    lines = (row(1, 1, 1, 1), told(A, RW), put(source, TOKEN))
    copy = copied(target, source - before, before + len(TOKEN) + behind)
    assert found(*lines, copy, got(target + before, TOKEN)) == set()
    for wrong in (b"abcdefgX", b"Xbcdefgh"):
        assert found(*lines, copy, got(target + before, wrong)) != set()


def test_what_is_copied_over_is_not_known_any_more() -> None:
    lines = (mapped(granules=2), told(A, RW), put(A + G, TOKEN), copied(A + G + 4, A, 4))
    assert found(*lines, got(A + G, b"abcd????")) == set()
    assert found(*lines, got(A + G, b"abcX????")) != set()


def test_a_fill_is_known() -> None:
    lines = (mapped(), told(A, RW), filled(A + 10, 7, 20))
    assert found(*lines, got(A + 10, b"\7" * 20), got(A + 15, b"\7" * 5), got(A + 25, b"\7" * 5 + b"???")) == set()
    for address, data in ((A + 10, b"\7" * 19 + b"\6"), (A + 15, b"\6"), (A + 29, b"\6?")):
        assert found(*lines, got(address, data)) != set()


@pytest.mark.parametrize(("address", "size"), [(P - 4, 8), (P + 96, 8), (P - 4, 200), (P - 1, 2), (P + 99, 2)])
def test_work_that_leaves_a_plain_allocation_is_no_work_on_it(address: int, size: int) -> None:
    """Whether a driver finds that out is its own affair; inside, it has nothing to find."""
    plain = call("alloc", 100, 0, 0, result=P)
    assert found(plain, put(P, TOKEN), got(P, TOKEN), put(P + 92, TOKEN), got(P + 92, TOKEN)) == set()
    assert found(plain, refused(call("write", address, b"x" * size, None))) == set()
    assert found(plain, put(address, b"x" * size)) == set()
    assert found(plain, refused(call("write", P + 92, TOKEN, None))) != set()


@pytest.mark.parametrize("address", [P - 8, P + 100, P + 200])
def test_work_beside_a_plain_allocation_has_nothing_behind_it(address: int) -> None:
    plain = call("alloc", 100, 0, 0, result=P)
    assert found(plain, refused(call("write", address, TOKEN, None))) == set()
    assert found(plain, put(address, TOKEN)) == {"DRIVER-49"}


PART = both(reserve(A, 2), create(1, 2), attach(A, 1, 2), grant(A))
DECLARED = {"set_access_part_of_mapping": True}


@pytest.mark.parametrize("stream", [None, 77])
def test_rights_on_the_first_granule_are_enough_for_its_last_byte(stream: int | None) -> None:
    before = (call("stream_create", 0, result=77), PART)
    assert judge(story(*before, put(A + G - 8, TOKEN, stream), **DECLARED)).findings == []
    refusal = refused(call("write", A + G - 8, TOKEN, None))
    assert judge(story(*before, refusal, **DECLARED)).findings != []


def test_a_part_of_a_mapping_begins_and_ends_at_a_granule() -> None:
    """One that does neither is no better for having whole granules in sum."""
    odd = call("set_access", A + 1, G - 1, ((0, RW),))
    assert judge(story(PART, refused(odd), **DECLARED)).findings == []
    assert {each.invariant for each in judge(story(PART, odd, **DECLARED)).findings} == {"DRIVER-53"}


@pytest.mark.parametrize("recommended", [G // 2, G + 1, G * 3 // 2])
def test_the_recommended_granularity_is_a_multiple_of_the_least(recommended: int) -> None:
    def told_of(recommended: int, minimum: int = G) -> set[str]:
        return found(note("granularity", device=0, space=1, minimum=minimum, recommended=recommended))

    assert told_of(G) == told_of(3 * G) == told_of(1, 1) == set()
    assert told_of(recommended) == told_of(0, 1) == {"DRIVER-3"}


def test_no_handle_is_zero() -> None:
    assert found(create(1)) == set()
    assert found(create(0)) != set()


def test_addresses_of_a_granularity_that_is_no_power_of_two_have_none() -> None:
    assert facts_of(story(minimum=G)).minimum == G
    for minimum in (0, 3 * G, 5 * G):
        assert facts_of(story(minimum=minimum)).minimum == 0


def test_half_of_the_free_memory_of_a_real_device_may_be_too_much_for_one_handle() -> None:
    def on_a_device(granules: int) -> list[Finding]:
        return judge(story(memory(0), refused(create(1, granules)), real=True)).findings

    assert on_a_device(1) != []
    assert on_a_device(32) != []
    assert on_a_device(33) == []


@pytest.mark.parametrize(("granules", "wrong"), [(2048, False), (3072, True)])
def test_more_than_is_free_and_may_be_free_besides_is_refused_on_a_real_device(granules: int, wrong: bool) -> None:
    """6 MiB are free, and the driver's number may be off by 4 MiB."""
    free_memory = call("mem_info", 0, result=(6 << 20, 1 << 30), who=HARNESS)
    assert bool(judge(story(free_memory, create(1, granules), real=True)).findings) is wrong
    assert judge(story(free_memory, refused(create(1, granules), Status.OUT_OF_MEMORY), real=True)).findings == []


@pytest.mark.parametrize("off", [0, 100, 1 << 20])
def test_megabytes_may_be_missing_on_a_real_device_in_the_end(off: int) -> None:
    end = both(
        call("mem_info", 0, result=((1 << 30) - off, 1 << 30), who=HARNESS),
        note("teardown", complete=True, live=(0, 0, 0, 0, 0)),
    )
    begin = call("mem_info", 0, result=(1 << 30, 1 << 30), who=HARNESS)
    assert judge(story(begin, end, real=True)).findings == []


@pytest.mark.parametrize(("behind", "wrong"), [("8388600", False), ("4194304", False), ("4194303", True)])
def test_megabytes_may_be_missing_on_a_real_device_behind_a_process(behind: str, wrong: bool) -> None:
    left = note("left", device=0, before="8388608", behind=behind)
    assert bool(judge(story(left, real=True)).findings) is wrong
    assert judge(story(left)).findings


def test_free_memory_of_a_real_device_may_be_off_by_one_of_its_large_pages() -> None:
    def off_by(some: int) -> list[Finding]:
        now = call("mem_info", 0, result=((1 << 30) - some, 1 << 30), who=HARNESS)
        before = call("mem_info", 0, result=(1 << 30, 1 << 30), who=HARNESS)
        return judge(story(before, now, real=True, larger=16 << 20)).findings

    assert off_by(16 << 20) == []
    assert off_by((16 << 20) + 1) != []


STREAMS = both(call("stream_create", 0, result=77), call("stream_create", 0, result=78))


def on(stream: int, address: int, data: bytes) -> Line:
    """A write that is queued and has not run."""
    return call("write", address, data, stream, result=next(WORKS))


def in_no_order(*lines: Line) -> Line:
    """Queued work, of which the last to come is the first to run."""

    def tell(history: History) -> None:
        before = len(history)
        both(*lines)(history)
        for event in [*history][before:][::-1]:
            ran(event.result, (), None)(history)

    return tell


def test_what_work_in_no_order_has_written_over_is_not_known_any_more() -> None:
    lines = (STREAMS, mapped(), told(A, RW), put(A, TOKEN), in_no_order(on(77, A, b"1" * 8), on(78, A, b"2" * 8)))
    for data in (b"1" * 8, b"2" * 8):
        assert found(*lines, got(A, data)) == set()


@pytest.mark.parametrize("apart", [8, -8, 100, -100, G])
def test_work_on_other_bytes_is_known_in_any_order(apart: int) -> None:
    """Behind the first piece, before it, or at the same place of other memory."""
    first = A + 100
    works = in_no_order(on(77, first, b"1" * 8), on(78, first + apart, b"2" * 8))
    lines = (STREAMS, row(1, 1), told(A, RW), told(A + G, RW), works)
    assert found(*lines, got(first, b"1" * 8), got(first + apart, b"2" * 8)) == set()
    for address in (first, first + apart):
        assert found(*lines, got(address, TOKEN)) != set()


@pytest.mark.parametrize("data", [TOKEN, b"1" * 8])
def test_a_read_beside_a_write_in_no_order_sees_either(data: bytes) -> None:
    read, write = next(WORKS), next(WORKS)
    calls = (call("read", A, 8, 77, result=read), call("write", A, b"1" * 8, 78, result=write))
    assert found(STREAMS, mapped(), put(A, TOKEN), *calls, ran(write, (), None), ran(read, (data,), None)) == set()


def test_an_unmap_waits_where_that_is_declared_and_nowhere_else() -> None:
    lines = (STREAMS, mapped(), on(77, A, TOKEN), detach(A))
    assert judge(story(*lines)).findings == []
    assert judge(story(*lines, unmap_waits=True)).findings != []


def test_a_fill_needs_the_right_to_write() -> None:
    for line in (filled(A, 7, 20), put(A, TOKEN)):
        assert judge(story(mapped(right=READ), told(A, READ), line, read_only_enforced=True)).findings != []


def test_addresses_that_were_never_reserved_are_not_freed_twice() -> None:
    assert found(free(B, 1)) == {"DRIVER-13"}
    assert found(reserve(B, 1), free(B, 1), free(B, 1)) == {"DRIVER-16"}


def test_of_a_handle_that_is_none_nothing_is_known() -> None:
    for line in (attach(A, 99), refused(attach(A, 99))):
        assert found(reserve(A, 1), line) == set()
        assert found(mapped(), told(A, RW), line, told(A, RW)) == set()


@pytest.mark.parametrize("offset", [-G, -100, 100, G + 1])
def test_an_offset_is_whole_granules_and_not_below_zero(offset: int) -> None:
    lines = (reserve(A, 1), create(1, 4))
    wanted = {"map_offset": True, "partial_map": True}
    assert judge(story(*lines, refused(attach(A, 1, offset=offset)), **wanted)).findings == []
    assert judge(story(*lines, attach(A, 1, offset=offset), **wanted)).findings != []
    assert judge(story(*lines, refused(attach(A, 1, offset=G)), **wanted)).findings != []


@pytest.mark.parametrize(("granules", "seen"), [(2048, True), (1024, False), (2, False)])
def test_on_a_real_device_memory_is_seen_to_go_where_much_of_it_goes(granules: int, seen: bool) -> None:
    def told_free(taken: int) -> Line:
        return call("mem_info", 0, result=((1 << 30) - taken * G, 1 << 30), who=HARNESS)

    result = judge(story(told_free(0), create(1, granules), told_free(granules), real=True))
    assert result.findings == []
    assert bool(result.witnesses["DRIVER-19"]) is seen


def test_on_a_real_device_memory_is_seen_to_stay() -> None:
    result = judge(story(memory(0), reserve(A, 1), memory(0), real=True))
    assert result.findings == []
    assert result.witnesses["DRIVER-12"]


def test_what_was_not_given_back_may_be_missing_in_the_end() -> None:
    def in_the_end(*, complete: bool) -> set[str]:
        return found(memory(0), create(1), memory(1), note("teardown", complete=complete, live=None))

    assert in_the_end(complete=False) == set()
    assert in_the_end(complete=True) != set()


def test_what_is_written_in_front_leaves_what_is_behind_where_it_is() -> None:
    lines = (mapped(), told(A, RW), put(A + 100, TOKEN), put(A, b"12345678"))
    assert found(*lines, got(A + 8, b"whatever"), got(A + 100, TOKEN)) == set()
    assert found(*lines, got(A + 100, b"whatever")) != set()


@pytest.mark.parametrize("before", [reserve(A, 1), note("held", stream=77)])
def test_granularities_are_told_at_the_beginning(before: Line) -> None:
    later = note("granularity", device=0, space=1, minimum=G, recommended=G)
    assert (0, 1) in facts_of(story(later)).granularity
    assert (0, 1) not in facts_of(story(before, later)).granularity


@pytest.mark.parametrize("hold", [(), (note("held", stream=77), note("let_go", stream=77, in_time=True))])
def test_no_call_is_not_ready_while_no_stream_is_held(hold: tuple[Line, ...]) -> None:
    assert found(*hold, refused(reserve(A, 1), Status.NOT_READY)) == {"DRIVER-7"}
