"""What was recorded of a program until its process ended: it outlives that process, and stays with the evidence."""

from __future__ import annotations

import json
import os

import pytest

from vmm_conformance.bundling.archive import read
from vmm_conformance.bundling.pack import pack
from vmm_conformance.cli import main
from vmm_conformance.history.events import CALLS, Event, History, follow
from vmm_conformance.history.files import dumps
from vmm_conformance.running import endings
from vmm_conformance.running.ended import TIMEOUT
from vmm_conformance.running.histories import load_history
from vmm_conformance.running.isolated.trail import Trail, trail_in
from vmm_conformance.running.session import Options, plan, resolve_known, run_item

ISOLATED = Options("smoke", isolation="process")
VIOLENT = "vmm_reference.mutants.violent"


@pytest.fixture
def file():
    made = os.memfd_create("test-trail")
    yield made
    follow(None)
    os.close(made)


def recorded(history, count):
    for number in range(count):
        history.events.append(Event(len(history), number, 0, "subject", "release", (number,)))
    return history


def test_it_is_the_history_up_to_there(file):
    Trail(file).begin(kept=True)
    history = recorded(History({"contract": "driver"}), 3)
    assert trail_in(file) == dumps(history)
    history.header["devices"] = 2  # runners add what they find out
    recorded(history, 1)
    assert trail_in(file) == dumps(history)
    assert load_history(trail_in(file)).header == {"contract": "driver", "devices": 2}


def test_a_line_that_was_cut_is_left_out(file):
    Trail(file).begin(kept=True)
    whole = dumps(recorded(History({}), 2))
    os.write(file, b'[2,0,"subject"')
    assert trail_in(file) == whole


def test_the_next_program_begins_anew_and_nothing_is_kept_that_was_not_asked_for(file):
    trail = Trail(file)
    trail.begin(kept=True)
    recorded(History({}), 2)
    trail.begin(kept=True)
    history = recorded(History({"contract": "flags"}), 1)
    assert trail_in(file) == dumps(history)
    trail.begin(kept=False)
    assert type(recorded(History({}), 1).events) is list
    assert trail_in(file) == ""


def test_a_crash_keeps_the_driver_calls_that_led_there(own):
    spec = "isolated_own:wild"
    items = [item for item in plan({spec: resolve_known(spec)}, ISOLATED) if item.kind == "scenario"]
    result = run_item(next(item for item in items if "ALLOCATOR-5" in item.part.exercises), ISOLATED)
    (ending,) = result.endings
    history = load_history(ending.history)
    kinds = [event.kind for event in history]
    assert {"reserve", "create", "map", "set_access"} <= set(kinds) & CALLS
    assert history.header["contract"] == "allocator"
    assert kinds[-1] != "end"  # the operation that did not return
    begun = [event for event in history if event.kind == "begin"]
    assert (begun[-1].op, len(begun)) == (ending.op, ending.op + 1)


@pytest.mark.parametrize("name", ["killed", "hangs"])
def test_it_lies_beside_the_report_and_in_its_bundle(own, name, capsys, monkeypatch):
    monkeypatch.setattr(endings, "MOST", 1)
    monkeypatch.setitem(endings.SHRINKING, TIMEOUT, 1)
    spec = f"{VIOLENT}:{name}"
    asked = ["run", "--subject", spec, "--budget", "smoke", "--isolation", "process"]
    asked += ["--timeout", "1"] if name == "hangs" else []
    assert main([*asked, "--report", "report"]) == 3
    assert "  7 events recorded until then, in histories/" in capsys.readouterr().out
    report = json.loads((own / "report" / "report.json").read_text())
    (ending,) = [ending for item in report["subjects"][0]["items"] for ending in item["endings"]]
    history = load_history((own / "report" / ending["trail"]).read_text())
    assert [event.kind for event in history if event.op == 2] == ["begin"]
    assert ending["trail"] in read(pack(own / "report", own / "one.vmm.zip")).members
    assert main(["merge", "report", "-o", "joined"]) == 3
    assert json.loads((own / "joined" / "report.json").read_text())["subjects"] == report["subjects"]
    assert (own / "joined" / ending["trail"]).read_text() == (own / "report" / ending["trail"]).read_text()
