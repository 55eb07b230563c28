"""Ctrl-C is never lost."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from vmm_conformance import check, commands
from vmm_conformance.cli import main
from vmm_conformance.interrupts import Interrupts
from vmm_reference.subject import reference


@pytest.fixture(autouse=True)
def listening():
    """A shell that starts a job in the background lets it ignore SIGINT, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_it_is_raised_where_it_comes_and_what_was_before_stands_again():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        interrupt()
    assert interrupts.seen
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_the_garbage_collector_dropped_is_raised_at_the_next_check():
    def callback(phase, info):
        gc.callbacks.remove(callback)
        interrupt()

    with Interrupts() as interrupts:
        interrupts.check()
        gc.callbacks.append(callback)
        gc.collect()
        assert interrupts.seen
        with pytest.raises(KeyboardInterrupt):
            interrupts.check(1, 2, 3)


def test_in_another_thread_it_does_nothing():
    before, inside = signal.getsignal(signal.SIGINT), []

    def run():
        with Interrupts():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert inside == [before]


def test_an_interrupted_check_reports_what_it_has():
    calls = []

    def flags(revision):
        calls.append(1)
        if len(calls) == 30:
            interrupt()
        return reference.flags(revision)

    report = check(SimpleNamespace(name="interrupted", flags=flags), budget="dev")
    assert report.overall.value == "partial"
    states = [item.state for item in report["interrupted"].items]
    assert states[0] == "stopped"
    assert set(states[1:]) == {"not run"}
    assert 0 < report["interrupted"].items[0].executed <= 30


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_hunts_report_what_they_have(jobs, capsys, monkeypatch):
    hunted = []

    def counted(progress, *_):
        def after(kill):
            hunted.append(kill)
            if len(hunted) == 3:
                interrupt()

        return after

    monkeypatch.setattr(commands, "_counted", counted)
    assert commands.mutants("flags", (0,), "smoke", jobs=jobs, as_json=True) == 3
    out, err = capsys.readouterr()
    assert re.search(r"partial: interrupted after 3 of \d+ hunts", err)
    data = json.loads(out)
    assert data["of"] == data["killed"] == 3
    assert data["planned"] > 3
    assert not data["full"]


def test_a_command_without_a_report_says_that_it_was_interrupted(capsys, monkeypatch):
    monkeypatch.setattr(commands, "replayed", lambda *_: interrupt())
    assert main(["replay", str(Path(__file__).parents[2] / "docs/found/grow-fails.json")]) == 3
    assert capsys.readouterr().err == "vmm-conformance replay: interrupted; what was printed holds, no more was done\n"
