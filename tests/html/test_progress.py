"""Progress: what it says, when it says it, and that it leaves no half line behind."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from vmm_conformance import pytest_progress
from vmm_conformance.reporting.progress import Progress, Tally, duration

OWN = """
from vmm_conformance.contracts import Settings
from vmm_reference.subject import reference

class Good:
    name = "good"

    def flags(self, revision):
        return reference.flags(revision)

good = Good()
"""


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


def test_a_tally_says_how_far_it_is_how_fast_and_how_long_it_takes(clock):
    tally = Tally(2_000, clock)
    tally.label = "flags/explore/anything[x]"
    clock.now += 2
    tally.programs(500, 1_000, 1)
    assert tally.text() == "500 of 2,000 programs, 250/s, 6 s left, 1 broken invariant; flags/explore/anything[x]"
    tally.finished(["FLAG-1"])
    clock.now += 2
    tally.programs(500, 1_000, 2)
    assert tally.text().startswith("1,000 of 2,000 programs, 250/s, 4 s left, 2 broken invariants")
    tally.programs(1_500, 1_500, 2)
    tally.finished(["FLAG-1", "FLAG-2"])
    tally.programs(0, 0, 0)
    assert tally.text().startswith("2,000 of 2,000 programs, 500/s, 2 broken invariants")  # not 3


def test_nothing_is_foretold_from_a_handful_of_programs(clock):
    tally = Tally(10_000, clock)
    clock.now += 5
    tally.programs(1, 10_000, 0)
    assert "left" not in tally.text()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (9000, "2 h 30 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_on_a_terminal_one_line_is_rewritten_and_taken_away(clock):
    stream = Terminal()
    with Progress(stream, 100, clock=clock, width=40) as progress:
        clock.now += 1
        progress.programs(10, 100, 0)
        assert stream.getvalue() == ""
        for _ in range(8):
            clock.now += 0.5
            progress.programs(20, 100, 0)
        assert stream.getvalue().count("\r\x1b[K") == 7
        assert "\n" not in stream.getvalue()
        assert max(map(len, stream.getvalue().split("\r\x1b[K"))) < 40
        progress.line("an item: done")
        assert stream.getvalue().endswith("\r\x1b[Kan item: done\n")
        clock.now += 1
        progress.programs(30, 100, 0)
    assert stream.getvalue().endswith("\r\x1b[K")


def test_elsewhere_a_line_every_thirty_seconds(clock):
    stream = io.StringIO()
    with Progress(stream, 1000, clock=clock) as progress:
        for second in range(100):
            clock.now += 1
            progress.programs(second, 1000, 0)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith(("29 of", "59 of", "89 of")) for line in lines)


def test_a_short_run_elsewhere_is_quiet(clock):
    stream = io.StringIO()
    with Progress(stream, 10, clock=clock) as progress:
        clock.now += 29
        progress.programs(10, 10, 0)
    assert stream.getvalue() == ""


def test_a_worker_tells_and_the_controller_sums_up(tmp_path):
    told = []
    for worker, done in (("gw0", 30), ("gw1", 12)):
        there = pytest_progress.There(tmp_path, worker, 100)
        there.finished(["FLAG-1"])
        there._next = 0.0
        there.programs(done, 50, 0)
        told.append(json.loads((tmp_path / f"{worker}.json").read_text()))
    assert told[0] == {"done": 30, "planned": 100, "found": ["FLAG-1"], "broken": 0, "busy": True}
    total = Tally()
    total.add(told)
    assert total.text().startswith("42 of 100 programs, ")
    assert "1 broken invariant" in total.text()


def test_a_worker_that_is_asked_to_stop_leaves_what_it_had(tmp_path):
    controller = pytest_progress.Controller(SimpleNamespace(), clock=lambda: 0.0)  # its patience has no end
    there = pytest_progress.There(controller.folder, "gw0", 100)
    controller.interrupt()
    with pytest.raises(KeyboardInterrupt):
        there.programs(2, 50, 0)
    crashed = pytest_progress.There(controller.folder, "gw1", 100)
    crashed._busy = True
    crashed.tell()
    controller.gone("gw1")
    controller.gone("gw2")  # which had told nothing
    there.finished([])
    there.leave({"item": "an item"})
    controller.interrupt()  # waits for nobody
    assert controller.left() == [{"item": "an item"}]
    controller.stop()
    assert not controller.folder.exists()


INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may have been told to ignore it
from vmm_reference.subject import reference
class Patient:
    name, seen = "patient", 0
    def flags(self, revision):
        Patient.seen += 1
        if Patient.seen == 40:
            os.kill(os.getppid(), signal.SIGINT)  # Ctrl-C
        return reference.flags(revision)
patient = Patient()
"""


def test_ctrl_c_under_xdist_keeps_what_a_worker_had_under_way(pytester):
    pytester.makepyfile(own_patient=INTERRUPTED)
    done = pytester.runpytest_subprocess(
        "--pyargs", "vmm_suites", "--vmm-subject", "own_patient:patient", "--vmm-budget", "ci", "-n", "1",
        "--rootdir", str(pytester.path), "-p", "no:cacheprovider", "--vmm-report", "made",
    )  # fmt: skip
    assert done.ret == pytest.ExitCode.INTERRUPTED, done.stdout.str()
    made = json.loads((pytester.path / "made" / "report.json").read_text())
    assert made["overall"] == "partial"
    first = made["subjects"][0]["items"][0]
    assert first["state"] == "stopped"
    assert first["executed"] > 0
    done.stdout.fnmatch_lines(["*1 of 31 items interrupted: flags/explore/anything*"])


def test_a_worker_without_the_folder_says_nothing(tmp_path):
    pytest_progress.There(tmp_path / "elsewhere", "gw0", 100).programs(1, 2, 0)
    assert not list(tmp_path.iterdir())


QUICK = """
from vmm_conformance import pytest_progress
pytest_progress.SELDOM = 0.0
pytest_progress._TELLING = 0.0
pytest_progress.LOOKING = 0.02
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_pytest_shows_it(pytester, workers):
    pytester.makepyfile(own_progress=OWN)
    pytester.makeconftest(QUICK)
    pytester.makeini("[pytest]\n")
    done = pytester.runpytest_subprocess(
        "--pyargs", "vmm_suites", "--vmm-subject", "own_progress:good", "--vmm-budget", "dev",
        "--rootdir", str(pytester.path), "-c", "tox.ini", "--confcutdir", str(pytester.path), "-p", "conftest",
        "-p", "no:cacheprovider", *workers,
    )  # fmt: skip
    text = done.stdout.str()
    assert done.ret == 0, text
    assert " programs, " in text
    assert ("2 workers" if workers else "flags/explore/anything[own_progress:good]") in text
