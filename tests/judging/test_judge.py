"""Foreign histories: what is found in them, and what is said of a file that is none."""

from __future__ import annotations

import io
import json

import jsonschema
import pytest
from traces import HEAD, A, B, G, Trace

from vmm_conformance.checkers.foreign import KEPT, ForeignError
from vmm_conformance.cli import main
from vmm_conformance.history.files import HistoryError
from vmm_conformance.history.schema import PATH, history_schema, text
from vmm_conformance.judging import judge_file


@pytest.fixture
def trace():
    return Trace()


@pytest.mark.parametrize("live", [A, A + G, A + 3 * G], ids=["at its start", "inside", "at its end"])
@pytest.mark.parametrize("call", ["reserve", "alloc"])
def test_what_is_handed_out_must_not_overlap_what_is_live(trace, live, call):
    trace("reserve", G, 0, 0, result=live)
    trace(call, 4 * G, 0, 0, result=A)
    first = trace.judged().wrong[0]
    assert (first.family, first.line, first.cause) == ("lifetime", 3, 2)
    assert "which overlaps" in first.message


def test_a_right_history_has_no_findings(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, G, 1, result=1)
    trace("stream_synchronize", 1)
    trace.gone()
    trace("stream_destroy", 1)
    judgement = trace.judged()
    assert judgement.wrong == []
    assert judgement.events == 11


def test_a_call_that_the_documents_forbid_is_illegal_though_it_was_accepted(trace):
    trace.block()
    trace("create", G, 0, 0, result=2)
    trace("map", A, G, 2, 0)
    assert ("legality", "DRIVER-33", 7, 0) in trace.found()


def test_a_refused_call_is_illegal_and_being_short_of_memory_is_not(trace):
    trace("create", G - 1, 0, 0, status=1)
    trace("create", G, 0, 0, status=2)
    trace("event_create", 0, status=201)
    assert trace.found() == [("legality", "DRIVER-20", 2, 0), ("legality", "", 4, 0)]


def test_what_is_released_twice_and_freed_twice(trace):
    trace("create", G, 0, 0, result=1)
    trace("release", 1)
    trace("release", 1)
    trace("alloc", 64, 0, 0, result=B)
    trace("free", B)
    trace("free", B)
    assert trace.found() == [("legality", "DRIVER-27", 4, 0), ("lifetime", "", 7, 6)]


def test_a_leak_names_the_call_that_made_it(trace):
    trace.block()
    assert trace.found() == [("lifetime", "ALLOCATOR-8", 3, 0), ("lifetime", "ALLOCATOR-8", 2, 0)]


def test_a_handle_that_was_released_is_not_mapped(trace):
    trace("reserve", G, 0, 0, result=A)
    trace("create", G, 0, 0, result=1)
    trace("release", 1)
    trace("map", A, G, 1, 0)
    assert ("lifetime", "", 5, 0) in trace.found()


def test_ranges_that_are_handed_out_twice(trace):
    trace("alloc", 64, 0, 0, result=B)
    trace("alloc", 64, 0, 0, result=B + 32)
    trace("free", B + 32)
    trace("free", B)
    assert trace.found() == [("lifetime", "", 3, 2)]


def test_a_stream_that_nobody_made(trace):
    trace("stream_synchronize", 9)
    trace("event_record", 4, 0)
    assert trace.found() == [("lifetime", "", 2, 0), ("lifetime", "", 3, 0)]


def test_work_on_what_was_unmapped_names_the_unmap(trace):
    trace.block()
    trace.gone()
    trace("read", A, 8, None, result=1)
    assert trace.found() == [("access", "DRIVER-49", 9, 6)]


def test_rights_are_needed_for_the_device_of_the_stream():
    trace = Trace(devices=2)
    trace("stream_create", 1, result=1)
    trace.block(rights=1)
    trace("fill", A, 1, 8, 0, result=1)
    trace("read", A, 8, 1, result=2)
    trace("device_synchronize", 0)
    trace("device_synchronize", 1)
    trace.gone()
    assert [(w.family, w.line) for w in trace.judged().wrong if w.family == "access"] == [("access", 7), ("access", 8)]


def test_captured_work_touches_memory_when_it_is_launched(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("graph_begin", 1)
    trace("fill", A, 1, 8, 1, result=1)
    trace("graph_end", 1, result=5)
    trace("graph_instantiate", 5, result=6)
    trace.gone()
    trace("graph_launch", 6, 1, result=2)
    assert trace.found() == [("access", "DRIVER-49", 14, 11)]


def test_an_unmap_that_no_use_is_ordered_before(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 1, result=1)
    trace.gone()
    assert trace.found() == [("ordering", "ALLOCATOR-5", 8, 7)]


def test_an_unmap_that_waits_needs_no_order():
    trace = Trace(capabilities={"d": [["unmap_waits", True]]})
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 1, result=1)
    trace.gone()
    assert trace.found() == []


@pytest.mark.parametrize("waits", [False, True])
def test_two_streams_in_no_order_on_the_same_bytes(trace, waits):
    trace("stream_create", 0, result=1)
    trace("stream_create", 0, result=2)
    trace("event_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 1, result=1)
    if waits:
        trace("event_record", 1, 1)
        trace("stream_wait_event", 2, 1)
    trace("read", A + 4, 8, 2, result=2)
    trace("device_synchronize", 0)
    trace.gone()
    assert trace.found() == ([] if waits else [("ordering", "", 10, 9)])


def test_a_stream_number_that_comes_back_is_not_the_stream_that_had_it(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("fill", A, 1, 8, 1, result=1)
    trace("stream_synchronize", 1)
    trace("stream_destroy", 1)
    trace("stream_create", 0, result=1)
    trace("fill", A, 1, 8, 1, result=2)
    trace.gone()
    assert trace.found() == [("ordering", "ALLOCATOR-5", 12, 11)]


def test_only_the_first_findings_are_kept_and_all_are_counted(trace):
    for _ in range(105):
        trace("stream_synchronize", 9)
    judgement = trace.judged()
    assert len(judgement.wrong) == KEPT == 100
    assert judgement.times["lifetime"] == 105


EVENT = '[0, 0, "subject", "unmap", [1048576, 4096], 0, null]'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "line 1: no history"),
        (["[1]"], "line 1: no history"),
        (['{"format"'], "line 1: cut off in the middle"),
        ([json.dumps({**HEAD, "version": 7})], "line 1: version 7 of the format, accepted: 1"),
        ([json.dumps({**HEAD, "header": [1]})], "line 1: the header must be a mapping"),
        ([json.dumps(HEAD), EVENT, EVENT[:20]], "line 3: cut off in the middle"),
        ([json.dumps(HEAD), "nonsense\n"], "line 2: no JSON"),
        ([json.dumps(HEAD), "{}"], "line 2: an event must be a list of seven"),
        ([json.dumps(HEAD), EVENT.replace("unmap", "unmpa")], "line 2: unknown kind of event 'unmpa'"),
        ([json.dumps(HEAD), EVENT.replace(", 4096", "")], "line 2: a unmap event has the arguments address, size"),
        ([json.dumps(HEAD), EVENT.replace("4096", '"4096"')], "line 2: size of unmap must be a whole number, got '4"),
        ([json.dumps(HEAD), EVENT.replace("4096", "true")], "line 2: size of unmap must be a whole number, got True"),
        ([json.dumps(HEAD), EVENT.replace("0, 0, ", '0, "x", ')], "line 2: op, thread and status must be whole"),
        ([json.dumps(HEAD), EVENT.replace("subject", "me")], "line 2: who must be 'subject'"),
        ([json.dumps(HEAD), '[0,0,"subject","reserve",[4096,0,0],0,null]'], "line 2: the result of a reserve"),
        ([json.dumps(HEAD), "[" * 100_000], "line 2: "),
    ],
)
def test_what_is_no_history_is_said_with_its_line(lines, said):
    with pytest.raises(HistoryError) as caught:
        judge_file(io.StringIO("\n".join(lines)))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "header",
    [
        *({"granule": granule} for granule in (-1, 0, 3, 5, 6, "big")), {"devices": 0},
        {"capabilities": {"d": [["fly", True]]}},
    ],
)  # fmt: skip
def test_a_header_that_says_something_impossible(header):
    with pytest.raises(ForeignError, match=next(iter(header))):
        Trace(**header).judged()


def test_the_command_prints_and_exits(tmp_path, capsys, trace):
    trace.block()
    file = tmp_path / "history.jsonl"
    file.write_text(trace.text(), "utf-8")
    assert main(["judge", str(file)]) == 1
    assert f"{file}:2: lifetime: the reservation 0x100000+4096 is never given back" in capsys.readouterr().out
    assert main(["judge", "--json", str(file)]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["times"] == {"lifetime": 2}
    file.write_bytes(b"\xff\xfe")
    assert main(["judge", str(file)]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    assert main(["judge", str(tmp_path / "none")]) == 2


def test_the_schema_that_ships_is_current():
    assert PATH.read_text("utf-8") == text()


def test_the_schema_takes_what_the_reader_takes(trace):
    trace("stream_create", 0, result=1)
    trace.block()
    trace("launch", 1, [[A, 8]], [[A, A + 64, 8]], [[A, {"x": "00ff"}]], result=1)
    trace("copy", A, A + 64, 8, None, result=2)
    trace("reserve", G, 0, 0, status=2)
    trace.judged()
    validator = jsonschema.Draft202012Validator(history_schema())
    for line in trace.lines:
        validator.validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        EVENT.replace("unmap", "unmpa"), EVENT.replace("4096", '"4096"'), EVENT.replace(", 4096", ""),
        '[0,0,"subject","reserve",[4096,0,0],0,null]', '{"format": "other"}',
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_reader_refuses(line):
    assert not jsonschema.Draft202012Validator(history_schema()).is_valid(json.loads(line))
