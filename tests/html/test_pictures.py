"""What a picture is made of: rows, ranges, lanes, and the order that is missing."""

from __future__ import annotations

import pytest
from page_stories import BASE, PAGE, Story, failure, long_story, unordered

from vmm_conformance.checkers.judge import Finding
from vmm_conformance.contracts import Access, Copy, Range
from vmm_conformance.history.events import HARNESS
from vmm_conformance.reporting.html.drawing_map import address_map
from vmm_conformance.reporting.html.layout import Layout
from vmm_conformance.reporting.symbolic import symbolic_picture
from vmm_conformance.running.pictures.picture import picture
from vmm_conformance.running.pictures.window import window


def drawn(story, **finding):
    return picture(story.history, Finding("X-1", finding.pop("seq", -1), 0, "", **finding))


def lives(made, kind):
    return [life for life in made["ranges"] if life["kind"] == kind]


def test_calls_of_one_kind_share_a_row_and_the_finding_has_its_own():
    made = picture(*unordered())
    told = [(row["op"], row["who"], row["calls"]) for row in made["rows"]]
    assert told == [
        (-1, "harness", ["stream_create stream 1"]),
        (0, "subject", [
            f"reserve 8192 bytes at {BASE:#x}", "create memory 1, 4096 bytes on device 0",
            f"map memory 1 at {BASE:#x}, 4096 bytes", f"set_access {BASE:#x}, 4096 bytes: rw",
        ]),
        (0, "harness", ["launch (work 101)"]),
        (1, "subject", [f"unmap {BASE:#x}, 4096 bytes"]),
        (1, "subject", ["release memory 1"]),
        (2, "device", ["work 101 met a fault: unmapped"]),
        (2, "harness", ["device_synchronize device 0"]),
    ]  # fmt: skip
    assert [index for index, row in enumerate(made["rows"]) if row["bad"]] == [3]
    assert [index for index, row in enumerate(made["rows"]) if row["cause"]] == [2]


def test_ranges_have_lives():
    made = picture(*unordered())
    reserved, mapped, used = (lives(made, kind)[0] for kind in ("reservation", "mapping", "use"))
    assert (reserved["start"], reserved["end"]) == (1, None)
    assert (mapped["start"], mapped["end"], mapped["memory"], mapped["rights"]) == (1, 3, 1, "rw")
    assert (used["start"], used["end"], used["work"], used["note"]) == (2, 5, 101, "read by launch")
    assert made["marked"] == {"address": BASE, "size": PAGE, "row": 3}


def test_the_missing_order_is_an_edge_from_the_work_to_the_call():
    made = picture(*unordered())
    (missing,) = [edge for edge in made["edges"] if edge["kind"] == "missing"]
    assert (missing["start"], missing["end"]) == ((1, 2), (0, 3))
    assert made["works"][0]["fault"] == "unmapped"


def test_order_that_is_there_is_drawn_and_nothing_is_missing():
    story = Story()
    for stream in (1, 2):
        story.event("stream_create", 0, result=stream)
    story.begin()
    story.reserved(BASE, PAGE)
    story.mapped(BASE, PAGE, 7)
    story.work(1, BASE)
    story.event("event_record", 9, 1)
    story.event("stream_wait_event", 2, 9)
    story.event("event_synchronize", 9)
    unmap = story.event("unmap", BASE, PAGE)
    made = drawn(story, seq=unmap.seq)
    kinds = {(edge["kind"], edge["start"][0], edge["end"][0]) for edge in made["edges"]}
    assert kinds == {("wait", 1, 2), ("sync", 1, 0)}


def test_a_race_between_streams_is_a_missing_edge_between_lanes():
    story = Story()
    for stream in (1, 2):
        story.event("stream_create", 0, result=stream)
    story.begin()
    story.event("alloc", 64, 0, 0, result=BASE)
    first = story.event("copy", BASE, BASE + 32, 8, 1, result=5)
    second = story.event("copy", BASE, BASE + 32, 8, 2, result=6)
    made = drawn(story, seq=second.seq, cause=first.seq)
    (missing,) = [edge for edge in made["edges"] if edge["kind"] == "missing"]
    assert (missing["start"][0], missing["end"][0]) == (1, 2)


def test_changed_rights_begin_a_new_piece_of_a_mapping():
    story = Story()
    story.begin()
    story.reserved(BASE, PAGE)
    story.mapped(BASE, PAGE, 7)
    story.end()
    story.begin()
    story.event("set_access", BASE, PAGE, ((0, Access.READ), (1, Access.READ_WRITE)))
    pieces = [(life["rights"], life["start"], life["end"]) for life in lives(drawn(story), "mapping")]
    assert pieces == [("rw", 0, 1), ("0 r, 1 rw", 1, None)]


def test_captured_work_is_drawn_where_its_graph_is_launched():
    story = Story()
    story.event("stream_create", 0, result=1)
    story.begin()
    story.event("alloc", PAGE, 0, 0, result=BASE)
    story.event("graph_begin", 1, who=HARNESS)
    story.event("launch", 1, (), (Copy(BASE + 512, BASE, 8),), (), who=HARNESS, result=4)
    story.event("graph_end", 1, who=HARNESS, result=20)
    story.event("graph_instantiate", 20, who=HARNESS, result=21)
    story.event("graph_launch", 21, 1, who=HARNESS, result=5)
    made = drawn(story)
    assert [(work["work"], work["kind"]) for work in made["works"]] == [(5, "graph_launch")]
    assert [(life["address"], life["work"]) for life in lives(made, "use")] == [(BASE, 5), (BASE + 512, 5)]
    assert [row["calls"][0] for row in made["rows"]][-2:] == ["graph_begin", "graph_launch (work 5)"]


def test_near_accesses_of_one_work_item_are_one_range():
    story = Story()
    story.event("stream_create", 0, result=1)
    story.begin()
    story.event("launch", 1, (Range(BASE, 8), Range(BASE + 8, 8), Range(BASE + PAGE, 8)), (), (), result=4)
    assert [(life["address"] - BASE, life["size"]) for life in lives(drawn(story), "use")] == [(0, 16), (PAGE, 8)]


def test_a_refused_call_has_its_own_row_and_says_so():
    story = Story()
    story.begin()
    story.event("create", PAGE, 0, 0, status=2, result="injected")
    (row,) = drawn(story)["rows"]
    assert row["refused"]
    assert row["calls"] == ["create 4096 bytes on device 0 refused: OUT_OF_MEMORY (made to fail)"]


def test_an_operation_that_does_nothing_has_a_row():
    story = Story()
    story.event("stream_create", 0, result=1)
    story.begin()
    story.end()
    assert [row["op"] for row in drawn(story)["rows"]] == [-1, 0]


def test_a_second_thread_has_a_lane():
    story = Story()
    story.begin()
    story.reserved(BASE, PAGE)
    story.event("unmap", BASE, PAGE, status=1).thread = 1
    assert [lane["name"] for lane in drawn(story)["lanes"]] == ["host", "host thread 2"]


def test_without_driver_calls_there_is_no_picture():
    story = Story()
    story.begin()
    story.end()
    assert drawn(story) is None


@pytest.mark.parametrize("place", [0, 70, 199])
def test_of_a_long_picture_the_rows_around_the_finding_stay(place):
    made = picture(*long_story(60))
    rows = [{**row, "bad": index == place} for index, row in enumerate(made["rows"] * 3)][:200]
    cut = window({**made, "rows": rows}, rows=50, behind=10)
    assert len(cut["rows"]) == 50
    assert cut["cut"] == 150
    assert [row["bad"] for row in cut["rows"]].count(True) == 1
    for thing in (*cut["works"], *cut["marks"]):
        assert 0 <= thing["row"] < 50
    for life in cut["ranges"]:
        assert 0 <= life["start"] < 50
        assert life["end"] is None or 0 <= life["end"] < 50


def test_a_narrow_box_says_which_memory_it_shows_too():
    made = address_map(Layout(symbolic_picture(failure(long_story())), 60))
    boxes = [shape for shape in made["shapes"] if shape["kind"] == "mapping" and shape["height"] > 60]
    assert len(boxes) > 40
    assert all(box["label"].startswith("m") and box["label"].endswith(" rw") for box in boxes)
    assert any(box["down"] for box in boxes)
