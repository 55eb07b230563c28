"""Foreign histories at their edges: whose calls count, what ends where, and what a finding tells."""

from __future__ import annotations

import io
import json

import pytest
from traces import HEAD, A, B, G, Trace

from vmm_conformance.contracts import DriverCapabilities, DriverOptions, Granularity
from vmm_conformance.history.events import History
from vmm_conformance.judging import judge_file
from vmm_conformance.running.histories import dumps


@pytest.fixture
def trace():
    return Trace()


def told(trace):
    return [wrong.message for wrong in trace.judged().wrong]


# -- whose calls


def test_what_the_harness_does_is_not_judged_and_counts_for_the_state(trace):
    trace("stream_synchronize", 9, who="harness")
    for stream in (1, 2):
        trace("stream_create", 0, result=stream, who="harness")
    trace("reserve", 2 * G, 0, 0, result=A, who="harness")
    trace("create", G, 0, 0, result=1, who="harness")
    trace("create", G - 1, 0, 0, result=2, who="harness")
    trace("map", A, G, 1, 0, who="harness")
    trace("set_access", A, G, [[0, 3]], who="harness")
    trace("fill", A, 1, 8, 1, result=1)
    trace("fill", A, 1, 8, 2, result=2, who="harness")
    trace("fill", B, 1, 8, 2, result=3, who="harness")
    trace("unmap", A, G, who="harness")
    trace("alloc", 64, 0, 0, result=B, who="harness")
    trace("unmap", A, G, status=1, who="harness")
    assert trace.found() == []


def test_a_refused_call_has_changed_nothing(trace):
    trace("stream_create", 0, result=1)
    trace("stream_destroy", 1, status=1)
    trace("fill", B, 1, 8, 1, status=1)
    trace("free", B, status=-1)
    trace("stream_synchronize", 1)
    assert trace.found() == [("legality", "", 3, 0), ("legality", "", 4, 0), ("legality", "", 5, 0)]


def test_a_refusal_is_told_with_its_rule_or_without(trace):
    trace("reserve", G, 0, 0, status=1)
    trace("create", G - 1, 0, 0, status=1)
    trace("create", G - 1, 0, 0, result=1)
    trace("release", 1)
    assert trace.found() == [("legality", "", 2, 0), ("legality", "DRIVER-20", 3, 0), ("legality", "DRIVER-20", 4, 0)]
    assert told(trace) == [
        "reserve(4096, 0, 0) was refused with INVALID_VALUE, and no rule says why",
        "create(4095, 0, 0) was refused with INVALID_VALUE", "create(4095, 0, 0) is illegal, and was accepted",
    ]  # fmt: skip


# -- what the header says


def test_a_header_that_says_nothing_has_one_device_and_a_granule_of_one_byte():
    trace = Trace()
    trace.lines = [json.dumps({**HEAD, "header": {"d": []}})]
    trace("create", 7, 0, 0, result=1)
    trace("release", 1)
    trace("create", 7, 1, 0, status=101)
    assert trace.found() == [("legality", "DRIVER-21", 4, 0)]


def test_which_spaces_there_are_is_not_known(trace):
    trace("create", G, 0, 5, result=1)
    trace("release", 1)
    assert trace.found() == []


def test_a_header_as_this_package_writes_it():
    options = DriverOptions(granularity=Granularity(G, G), devices=2)
    trace = Trace()
    trace.lines = dumps(History({"options": options, "capabilities": DriverCapabilities(unmap_waits=True)})).split("\n")
    del trace.lines[1:]
    trace("stream_create", 1, result=1)
    trace("create", G - 1, 1, 0, status=1)
    trace.block()
    trace("fill", A, 1, 8, 0, result=1)
    trace.gone()
    assert trace.found() == [("legality", "DRIVER-20", 3, 0)]
    assert judge_file(io.StringIO(trace.text())).header["options"] == options


# -- memory


@pytest.mark.parametrize("call", ["reserve", "alloc"])
def test_what_is_handed_out_next_to_what_is_live_does_not_overlap(trace, call):
    for address in (A, A + 2 * G, A + G):
        trace(call, G, 0, 0, result=address)
    assert all("never given back" in message for message in told(trace))


def test_odd_numbers_overlap_too(trace):
    live = trace("alloc", 0x20, 0, 0, result=B + 0x80)
    trace("alloc", 0x60, 0, 0, result=B + 0x60)
    trace("free", B + 0x60)
    trace("free", B + 0x80)
    assert trace.found() == [("lifetime", "", 3, live)]


def test_the_middle_of_an_allocation_is_not_freed(trace):
    trace("alloc", 64, 0, 0, result=B)
    trace("free", B + 32)
    trace("free", B)
    assert trace.found() == [("lifetime", "", 3, 0)]


@pytest.mark.parametrize("releases", [1, 2])
def test_a_handle_that_only_mappings_keep_is_not_mapped_again(trace, releases):
    trace.block()
    trace("reserve", G, 0, 0, result=B)
    for _ in range(releases):
        trace("release", 1)
    mapped = trace("map", B, G, 1, 0)
    assert ("lifetime", "", mapped, 0) in trace.found()


def test_a_leak_says_what_is_left(trace):
    trace.block()
    trace("alloc", 64, 0, 0, result=B)
    assert told(trace) == [
        "handle 1 of 4096 bytes is never given back", "the allocation 0x200000+64 is never given back",
        "the reservation 0x100000+4096 is never given back",
    ]  # fmt: skip


# -- what ended where


@pytest.mark.parametrize(
    ("address", "ended"),
    [(B + 0x40, False), (B + 0x60, True), (B + 0x80, True), (B + 0xBF, True), (B + 0xC0, False), (B + 0xD0, False)],
)
def test_what_was_there_has_ended(trace, address, ended):
    trace("alloc", 0x60, 0, 0, result=B + 0x60)
    gone = trace("free", B + 0x60)
    read = trace("read", address, 8, None, result=1)
    assert trace.found() == [("access", "DRIVER-49", read, gone if ended else 0)]
    nothing = f"read touches {address:#x}+8, of which 8 bytes have no memory"
    assert told(trace) == [nothing + "; what was there has ended" * ended]


@pytest.mark.parametrize(
    ("first", "size", "taken"),
    [(0, 4, True), (1, 2, True), (2, 2, True), (2, 4, True), (0, 6, True), (4, 4, False), (6, 2, False)],
)
def test_the_first_hole_is_what_has_ended_and_not_what_was_mapped_anew_before_it(trace, first, size, taken):
    """Numbers of half granules."""
    trace("reserve", 4 * G, 0, 0, result=A)
    for handle, granule in enumerate((0, 0, 1, 2), 1):
        if handle == 2:
            trace("unmap", A, G)
        trace("create", G, 0, 0, result=handle)
        trace("map", A + granule * G, G, handle, 0)
        trace("set_access", A + granule * G, G, [[0, 3]])
    unmapped = trace("unmap", A + G, G)
    trace("read", A + first * G // 2, size * G // 2, None, result=1)
    assert [w.cause for w in trace.judged().wrong if w.family == "access"] == [unmapped if taken else 0]


def test_a_hole_behind_plain_memory_is_what_has_ended(trace):
    trace("alloc", 128, 0, 0, result=B)
    freed = trace("free", B)
    trace("alloc", 64, 0, 0, result=B)
    trace("read", B + 32, 64, None, result=1)
    trace("read", B + 32, 32, None, result=2)
    trace("free", B)
    assert trace.found() == [("access", "DRIVER-49", 5, freed)]


def test_rights_are_needed_in_every_mapping_and_memory_comes_first(trace):
    trace.block()
    trace("create", G, 0, 0, result=2)
    trace("reserve", G, 0, 0, result=A + G)
    mapped = trace("map", A + G, G, 2, 0)
    both = trace("read", A, 2 * G, None, result=1)
    more = trace("read", A, 3 * G, None, result=2)
    found = [(w.line, w.cause) for w in trace.judged().wrong if w.family == "access"]
    assert found == [(both, mapped), (more, 0)]


@pytest.mark.parametrize(
    ("kind", "args", "rights", "barred"), [("fill", (1,), 1, "write to"), ("read", (), 0, "read from")]
)
def test_no_bytes_need_no_memory_and_no_rights_and_one_byte_does(trace, kind, args, rights, barred):
    """Reading needs no right to write."""
    trace.block(rights=rights)
    for size in (0, 1):
        trace(kind, A, *args, size, None, result=1)
    trace(kind, B, *args, 0, None, result=1)
    missing = trace(kind, B, *args, 1, None, result=1)
    trace("set_access", A, G, [[0, 1]])
    trace("read", A, 1, None, result=1)
    trace.gone()
    assert trace.found() == [("access", "DRIVER-49", 7, 4), ("access", "DRIVER-49", missing, 0)]
    assert told(trace)[0] == f"{kind} may not {barred} the mapping 0x100000+4096: device 0 has the rights {rights}"


def test_what_was_mapped_twice_is_not_missing(trace):
    trace("reserve", 4 * G, 0, 0, result=A)
    for handle, (address, size) in enumerate(((A, 2 * G), (A + G, G), (A + 2 * G, G)), 1):
        trace("create", size, 0, 0, result=handle)
        trace("map", address, size, handle, 0)
        trace("set_access", address, size, [[0, 3]])
    trace("read", A + G // 2, 2 * G, None, result=1)
    assert [wrong.family for wrong in trace.judged().wrong if wrong.family != "lifetime"] == ["legality"]


# -- work, streams and events


def test_work_that_met_a_fault(trace):
    trace("ran", 4, None, None, who="device")
    ran = trace("ran", 5, None, {"o": ["contracts.driver.Fault", [A, 8, "unmapped", 0]]}, result=0, who="device")
    assert trace.found() == [("access", "DRIVER-49", ran, 2)]


@pytest.mark.parametrize("stream", [0, 9], ids=["from the beginning", "that nobody made"])
def test_a_stream_is_of_device_0(stream):
    trace = Trace(devices=2)
    trace.block()
    trace("fill", A, 1, 8, stream, result=1)
    trace("device_synchronize", 0)
    assert [w.family for w in trace.judged().wrong if w.family == "access"] == []


def test_a_launched_graph_needs_the_rights_of_its_stream():
    trace = Trace(devices=2)
    trace("stream_create", 1, result=1)
    trace.block()
    trace("set_access", A, G, [[0, 0], [1, 3]])
    trace("graph_begin", 1)
    trace("fill", A, 1, 8, 1, result=1)
    trace("graph_end", 1, result=5)
    trace("graph_instantiate", 5, result=6)
    trace("graph_launch", 6, 1, result=2)
    trace("stream_synchronize", 1)
    trace.gone()
    assert trace.found() == []


@pytest.mark.parametrize("what", ["stream", "event"])
def test_what_was_destroyed_is_not_used(trace, what):
    trace(f"{what}_create", 0, result=1)
    trace(f"{what}_synchronize", 1)
    trace(f"{what}_destroy", 1)
    used = trace(f"{what}_synchronize", 1)
    assert trace.found() == [("lifetime", "", used, 0)]


@pytest.mark.parametrize(
    ("kind", "args"),
    [("fill", (A, 1, 8, 9)), ("graph_begin", (9,)), ("graph_end", (9,)), ("stream_query", (9,)), ("event_query", (9,))],
)
def test_a_call_that_names_what_nobody_made(trace, kind, args):
    trace.block()
    call = trace(kind, *args, result=1)
    assert [w.line for w in trace.judged().wrong if "which is not live" in w.message] == [call]


def test_a_race_says_who_and_where(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 0, result=1)
    trace("read", A + 4, 8, 1, result=2)
    trace("read", A + 2, 8, None, result=3)
    trace("device_synchronize", 0)
    trace("stream_synchronize", 0)
    trace.gone()
    order = "in no order, and touch the same {} bytes, from {} of handle 1 of 4096 bytes"
    assert told(trace) == [
        "read on stream 1 and fill on stream 0 are " + order.format(4, 4),
        "read by the host and fill on stream 0 are " + order.format(6, 2),
    ]


def test_an_unmap_that_comes_too_early_is_told_with_its_numbers(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 1, result=1)
    trace.gone()
    assert told(trace) == ["unmap(0x100000, 4096) while fill on stream 1 may still use it"]


@pytest.mark.parametrize(
    ("destroyed", "call", "what"),
    [
        (("graph_destroy", 5), ("graph_instantiate", 5), "graph 5"),
        (("graph_destroy", 5), ("graph_destroy", 5), "graph 5"),
        (("graph_exec_destroy", 6), ("graph_launch", 6, 1), "executable 6"),
        (("graph_exec_destroy", 6), ("graph_exec_destroy", 6), "executable 6"),
    ],
)
def test_a_graph_that_is_destroyed_is_named_no_more(trace, destroyed, call, what):
    """Each of the two: what was instantiated outlives its graph."""
    trace("stream_create", 0, result=1)
    trace("graph_begin", 1)
    trace("graph_end", 1, result=5)
    trace("graph_instantiate", 5, result=6)
    trace("graph_launch", 6, 1, result=1)
    trace(*destroyed)
    trace(*call, result=7)
    if destroyed[0] == "graph_destroy":
        trace("graph_launch", 6, 1, result=2)
    assert told(trace) == [f"{call[0]} names {what}, which is not live: never made, or destroyed"]
