"""The child process and the one that watches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from vmm_conformance.history.events import Event, History
from vmm_conformance.programs import flags
from vmm_conformance.programs.program import Program
from vmm_conformance.running.ended import Broke, Ended
from vmm_conformance.running.isolated.bench import IsolatedBench
from vmm_conformance.running.isolated.child import Place, is_spent
from vmm_conformance.running.isolated.process import Child, Keeper
from vmm_conformance.running.journal import SIZE, Journal
from vmm_conformance.running.plugs import plug

PROGRAM = Program("flags", flags.Configuration("flags"), (flags.Read(),) * 3)


@pytest.fixture
def bench():
    keeper = Keeper()
    yield lambda spec, patience=5.0: IsolatedBench(
        plug("flags"), Place("flags", spec, "host"), None, patience, keeper=keeper
    )
    keeper.close()


def gone(pid):
    """Whether the process has ended, waited for by whoever inherited it or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def born_of(nursery):
    return int(Path(f"/proc/{nursery}/task/{nursery}/children").read_text() or 0)


def eventually(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_journal_is_read_by_who_shares_the_file(tmp_path):
    with open(tmp_path / "journal", "wb+") as file:
        file.truncate(SIZE)
        writer, reader = Journal(file.fileno()), Journal(file.fileno())
        assert reader.read() == (0, 0)
        writer.write(-1)
        writer.write(7)
        assert reader.read() == (2, 7)
        writer.close()
        reader.close()


def test_a_whole_history_comes_back_and_a_brief_one_without_events(bench):
    made = bench("reference")
    whole, brief = made.run(PROGRAM), made.brief(PROGRAM)
    assert [event.kind for event in whole.history.events].count("begin") == 3
    assert not brief.history.events
    assert brief.history.header == whole.history.header
    assert brief.judge == whole.judge


def test_a_checker_that_breaks_in_the_child_says_so_here(bench):
    with pytest.raises(Broke, match=r"^SubjectNotFound: unknown subject 'nobody'"):
        bench("nobody").run(PROGRAM)


def test_a_child_that_was_killed_from_outside_between_two_programs_is_replaced(bench):
    made = bench("reference")
    made.run(PROGRAM)
    first = made.keeper.pid
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Ended, match="was killed by SIGKILL"):
        made.run(PROGRAM)
    assert made.run(PROGRAM).judge.witnesses
    assert made.keeper.pid != first


def test_a_child_that_went_with_its_nursery_is_replaced(bench):
    made = bench("reference")
    made.run(PROGRAM)
    child = made.keeper.pid
    os.kill(parent_of(child), signal.SIGKILL)
    eventually(lambda: gone(child))  # before, it may still answer
    with pytest.raises(Ended, match="ended with the process that had started it"):
        made.run(PROGRAM)
    eventually(lambda: made.run(PROGRAM).judge.witnesses)


LOOKS_AROUND = """
import os, sys
from vmm_reference.subject import reference

print("born", flush=True)

class Looks:
    name, version = "looks", "1"

    def flags(self, revision):
        vendors = [name for name in sys.modules if name.partition(".")[0] in ("cuda", "hip")]
        raise RuntimeError([os.getcwd(), os.environ.get("VMM_TEST_BORN"), os.getpid() == os.getpgid(0), vendors])

looks = Looks()
"""


def test_a_child_is_born_into_what_its_parent_has_now(bench, tmp_path, monkeypatch, capfd):
    bench("reference").missing()  # the nursery is older than all that follows
    made = bench("looks:looks")
    made.keeper._discard()
    (tmp_path / "looks.py").write_text(LOOKS_AROUND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("VMM_TEST_BORN", "here")
    answer = made.run(PROGRAM).history.events
    assert str([str(tmp_path), "here", True, []]) in str(answer)
    assert capfd.readouterr().out == "born\n"


FORKS = """
import os, signal, time

class Forks:
    name, version = "forks", "1"

    def flags(self, revision):
        if not os.fork():
            time.sleep(60)
        os.kill(os.getpid(), signal.SIGSEGV)

forks = Forks()
"""


def test_a_child_that_ended_is_not_waited_for_though_what_it_started_goes_on(bench, tmp_path, monkeypatch):
    (tmp_path / "forks.py").write_text(FORKS)
    monkeypatch.syspath_prepend(tmp_path)
    start = time.monotonic()
    with pytest.raises(Ended, match="was killed by SIGSEGV"):
        bench("forks:forks", 20).run(PROGRAM)
    assert time.monotonic() - start < 15


def test_an_interrupt_ends_the_child_so_that_no_answer_is_taken_for_another(bench, monkeypatch):
    made = bench("vmm_reference.mutants.violent:hangs", 60)
    made.missing()
    pid = made.keeper.pid

    def interrupt(self, patience):
        raise KeyboardInterrupt

    monkeypatch.setattr("vmm_conformance.running.isolated.process.Child._wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        made.run(PROGRAM)
    assert gone(pid)
    assert made.keeper.pid is None


def test_a_child_that_is_only_just_born_can_be_ended():
    """It is not yet in a group of its own, as between two lines of its first function."""
    born = subprocess.Popen(["sleep", "3"])
    child = Child(SimpleNamespace(bear=lambda files: born.pid, code=born.wait))
    child.close()
    assert born.returncode == -signal.SIGKILL


def test_a_child_that_is_not_born_leaves_no_file_open():
    def bear(files):
        raise EOFError

    before = os.listdir("/proc/self/fd")
    with pytest.raises(Broke, match=r"^no child process was born \(EOFError\)"):
        Child(SimpleNamespace(bear=bear))
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_child_outlives_the_harness(tmp_path, number):
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);" + (
        "from vmm_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    asked = ["run", "--subject", "vmm_reference.mutants.violent:hangs", "--budget", "smoke", "--isolation", "process"]
    harness = subprocess.Popen([sys.executable, "-c", code, *asked], cwd=tmp_path, stdout=-1, stderr=-3)
    children = Path(f"/proc/{harness.pid}/task/{harness.pid}/children")
    eventually(lambda: children.read_text())
    nursery = int(children.read_text())
    eventually(lambda: born_of(nursery))
    child = born_of(nursery)
    time.sleep(1)
    harness.send_signal(number)
    output, _ = harness.communicate(timeout=60)
    assert harness.returncode == (-9 if number == signal.SIGKILL else 3)
    if number == signal.SIGINT:
        assert b"hangs 0: partial" in output
    eventually(lambda: gone(child) and gone(nursery))


def fault(**changes):
    given = {"status": 0, "kind": "free", "args": (1,)} | changes
    return Event(0, 0, 0, "subject", given["kind"], given["args"], given["status"])


class Driver(SimpleNamespace):
    closed = False

    def close(self):
        self.closed = True


def dead(device):
    raise RuntimeError("700")


@pytest.mark.parametrize(
    ("event", "synchronize", "spent"),
    [
        (fault(), dead, False),
        (fault(status=2), dead, False),
        (fault(status=700), dead, True),
        (fault(status=719), dead, True),
        (fault(kind="ran", args=(1, None, "a fault")), dead, True),
        (fault(kind="ran", args=(1, None, None)), dead, False),
        (fault(status=700), lambda device: None, False),
    ],
)
def test_a_process_is_spent_if_a_fresh_driver_fails_after_a_fault(event, synchronize, spent):
    driver = Driver(device_synchronize=synchronize)
    assert is_spent(History({}, [event]), lambda options: driver) is spent
