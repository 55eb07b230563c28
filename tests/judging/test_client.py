"""What a program did on an emulated library, from histories written by hand."""

from __future__ import annotations

import pytest
from traces import A, B, G, Trace

from vmm_conformance.checkers.client import ACCESS, CALL, ORDER, complaints

UNMAPPED = "after it was unmapped"


@pytest.fixture
def trace():
    """The notes that a watch begins with."""
    made = Trace()
    made("note", "granularity", granules(G), who="harness")
    return made


def granules(minimum):
    return {"d": [["device", 0], ["space", 0], ["minimum", minimum], ["recommended", minimum]]}


def found(trace):
    return [
        (c.kind, c.finding.invariant, c.finding.seq + 2, None if c.cause is None else c.cause + 2)
        for c in complaints(trace.history())
        if c.kind != "leak"
    ]


def told(trace):
    return [c.finding.message for c in complaints(trace.history())]


def test_what_is_refused_to_the_harness_is_nobodys_fault(trace):
    trace("create", G - 1, 0, 0, status=1, who="harness")
    trace("fill", A, 1, 8, None, status=700, who="harness")
    assert found(trace) == []


@pytest.mark.parametrize("minimum", [None, 0, 3])
def test_a_library_that_tells_no_granule_is_not_judged_by_it(minimum):
    trace = Trace()
    if minimum is not None:
        trace("note", "granularity", granules(minimum), who="harness")
    call = trace("reserve", 7, 0, 0, status=1)
    none = trace("reserve", 0, 0, 0, status=1)
    assert found(trace) == [(CALL, "", call, None), (CALL, "DRIVER-10", none, None)]


@pytest.mark.parametrize(
    ("kind", "args", "status"),
    [("fill", (A, 1, 8, None), 1), ("fill", (A, 1, 8, None), 719), ("stream_synchronize", (1,), 700)],
)
def test_only_work_is_refused_for_what_it_touches(trace, kind, args, status):
    trace.block()
    trace.gone()
    call = trace(kind, *args, status=status)
    assert found(trace) == [(CALL, "", call, None)]


def test_a_range_that_is_freed_twice_was_one_once(trace):
    for _ in range(2):
        trace("address_free", B, G, status=1)
    trace("reserve", G, 0, 0, result=A)
    trace("address_free", A, G)
    trace("address_free", A, G, status=1)
    assert [rule for _, rule, *_ in found(trace)] == ["DRIVER-13", "DRIVER-13", "DRIVER-16"]


def test_rights_are_asked_for_where_something_is_mapped(trace):
    """A driver that does not tell those of a mapping breaks no rule of ours by it; the unmap has taken them away."""
    trace.block()
    trace("get_access", A, 0, status=1)
    trace.gone()
    trace("get_access", A, 0, status=1)
    trace("get_access", B, 0, status=1)
    assert [rule for _, rule, *_ in found(trace)] == ["", "DRIVER-40", "DRIVER-58"]


@pytest.mark.parametrize(
    ("address", "gone"), [(A - 8, False), (A, True), (A + 8, True), (A + G, False), (A + 2 * G, False)]
)
def test_what_was_unmapped_is_named_where_it_was(trace, address, gone):
    trace.block()
    trace.gone()
    call = trace("write", address, {"x": "00ff"}, None, status=700)
    unmap = call - 3
    assert found(trace) == [(ACCESS, "DRIVER-49", call, unmap if gone else None)]
    barred = f"write({address:#x}, None) touches what the host may not touch"
    assert told(trace) == [f"write of {address:#x}+2 {UNMAPPED}" if gone else barred]


def test_what_is_mapped_again_is_not_what_was_unmapped(trace):
    trace.block()
    trace.gone()
    trace.block(handle=2, rights=1)
    call = trace("fill", A, 1, 8, None, status=700)
    assert found(trace) == [(ACCESS, "DRIVER-49", call, None)]
    assert told(trace)[0] == "fill(0x100000, 1, 8, None) touches what the host may not touch"


def test_a_copy_is_blamed_on_the_end_that_went(trace):
    trace.block()
    trace.block(B, 2)
    trace.gone(B, 2)
    call = trace("copy", B, A, 8, None, status=700)
    assert found(trace) == [(ACCESS, "DRIVER-49", call, call - 3)]
    assert told(trace)[0] == f"copy of {B:#x}+8 {UNMAPPED}"


def test_each_use_that_an_unmap_takes_memory_from_is_told(trace):
    for stream in (1, 2):
        trace("stream_create", 0, result=stream)
    trace.block()
    first = trace("fill", A, 1, 8, 1, result=1)
    second = trace("fill", A + 8, 1, 8, 2, result=2)
    unmap = trace("unmap", A, G)
    trace("release", 1)
    assert found(trace) == [(ORDER, "ALLOCATOR-5", unmap, first), (ORDER, "ALLOCATOR-5", unmap, second)]


def test_a_refused_call_is_told_with_its_numbers(trace):
    trace("map", A, G, 9, 0, status=1)
    assert told(trace) == [f"map(0x100000, {G}, 9, 0) was refused with INVALID_VALUE"]
