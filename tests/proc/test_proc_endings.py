"""Whatever a subject's process does but answer is a verdict with words, and never a traceback."""

from __future__ import annotations

import gc
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from proc_world import HELLO, OPENED, PROGRAM, far_pool, shell

from vmm_conformance.cli import main
from vmm_conformance.programs.files import to_data
from vmm_conformance.running.ended import CRASH, TIMEOUT, Ended
from vmm_conformance.running.endings import MOST
from vmm_conformance.running.isolated.bench import IsolatedBench
from vmm_conformance.running.isolated.child import Place
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.proc import process
from vmm_conformance.running.proc import subject as proc
from vmm_conformance.running.proc.subject import ProcSubject
from vmm_conformance.running.session import Options, bench_for, bench_of, plan, resolve_known, run_item
from vmm_conformance.running.subjects import SubjectNotFound, resolve_subject


def ended(script: str, patience: float = 20) -> Ended:
    """How the two operations of `PROGRAM` end on a shell script."""
    subject = ProcSubject(shell(script))
    subject.patience = patience
    with pytest.raises(Ended) as caught:
        bench_for("allocator", subject).run(PROGRAM)
    return caught.value


READ = OPENED + "read allocate; "


def said(line: str) -> str:
    """A script that sends one line, and stays."""
    return f"echo {shlex.quote(line)}; sleep 100"


def says(line: str) -> str:
    """One that sends it as the answer to allocate."""
    return READ + said(line)


DEEP = "yes '[' | head -100000 | tr -d '\\n'; echo"
CRASHES = {
    "exits": (READ + "exit 3", "exited with status 3"),
    "is killed": (READ + "kill -SEGV $$", "was killed by SIGSEGV"),
    "closes its output": (READ + "exec >&-; sleep 100", "closed its standard output"),
    "half a line": (READ + """printf '{"return": '""",
                    "exited with status 0, in the middle of the line '{\"return\": '"),
    "garbage": (says("hello"), "sent what is no JSON (JSONDecodeError): 'hello'"),
    "no text": (READ + r"printf '\377\376\n'", "sent what is no JSON (UnicodeDecodeError): '��'"),
    "deep": (READ + DEEP, "sent what is no JSON (RecursionError): '" + "[" * 80),
    "a huge number": (READ + "printf '{\"return\": '; yes 9 | head -5000 | tr -d '\\n'; echo '}'",
                      "sent what is no JSON (ValueError): '{\"return\": 999"),
    "no message": (says("[1]"), "sent '[1]' where an object with \"return\", \"refuse\" or \"call\", or an event of"),
    "a call it has made": (says('[0, 0, "subject", "release", [7], 0, null]'),
                           "reported that it called release, though it says that its driver calls are asked"),
    "no event": (says('[0, 0, "subject", "release", ["7"], 0, null]'),
                 "reported [0, 0, 'subject', 'release', ['7'], 0, None], which is no event: handle"),
    "the harness's": (says('[0, 0, "harness", "release", [7], 0, null]'),
                      "reported [0, 0, 'harness', 'release', [7], 0, None]; only driver calls of the 'subject'"),
    "two at once": (says('{"return": 1, "call": "free"}'), "sent '{\"return\": 1, \"call\": \"free\"}' where"),
    "a huge line": (READ + "yes xxxxxxxx | tr -d '\\n'", "sent a line of more than 16,777,216 bytes: 'xxxxxxxx"),
    "unasked": (HELLO + """read open; printf '{"return": null}\\n{"return": 7}\\n'; sleep 100""",
                "spoke before it was asked: '{\"return\": 7}'"),
    "no such call": (says('{"call": ["x"]}'), "asked for the driver call ['x'], which is none of device_count,"),
    "a launch": (says('{"call": "launch"}'), "asked for the driver call 'launch', which is none of"),
    "without arguments": (says('{"call": "map", "size": 1}'),
                          "called map with size; its arguments are address, size, handle, offset?"),
    "strange arguments": (says('{"call": "reserve", "size": 1, "x": 1}'),
                          "called reserve with size, x; its arguments are size, alignment?, hint?"),
    "no number": (says('{"call": "reserve", "size": true}'),
                  "called reserve with size True, which must be a whole number of 64 bits"),
    "too large": (says('{"call": "reserve", "size": 36893488147419103232}'),
                  "called reserve with size 36893488147419103232, which must be a whole number of 64 bits"),
    "no rights": (says('{"call": "set_access", "address": 1, "size": 1, "rights": [[0, 2]]}'),
                  "called set_access with rights [[0, 2]], which must be a list of [device, access], access 0, 1 or 3"),
    "no digits": (says('{"call": "write", "target": 1, "data": "zz"}'),
                  "called write with data 'zz', which must be hexadecimal digits, two per byte"),
    "no refusal": (says('{"refuse": "SUCCESS"}'), "refused allocate with 'SUCCESS', which is no code; there are"),
    "no code": (says('{"refuse": ["x"]}'), "refused allocate with \"['x']\", which is no code; there are"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash(name, monkeypatch):
    monkeypatch.setattr(process, "_ENDING", 0.3)
    script, how = CRASHES[name]
    end = ended(script)
    assert (end.kind, end.op) == (CRASH, 0)
    assert end.how.startswith(how)
    assert len(end.how) < 700


@pytest.mark.parametrize(
    ("script", "how"),
    [
        (READ + "sleep 100", "sent no line for 0.3 s"),
        (READ + "printf '{\"re'; sleep 100", "sent no line for 0.3 s, in the middle of the line '{\"re'"),
        (READ + "while :; do echo tick >&2; sleep 0.01; done", "sent no line for 0.3 s"),
    ],
    ids=["hangs", "half a line", "chatters"],
)
def test_a_timeout(script, how):
    start = time.monotonic()
    end = ended(script, patience=0.3)
    assert (end.kind, end.how, end.op) == (TIMEOUT, how, 0)
    assert time.monotonic() - start < 10


def test_one_that_does_not_read():
    far = process.SubjectProcess(["sleep", "100"])
    with pytest.raises(Ended) as caught:
        far.send({"do": "x" * 1_000_000}, 0.3)
    assert (caught.value.kind, caught.value.how) == (TIMEOUT, "read no line for 0.3 s")


def test_calls_without_an_end(monkeypatch):
    monkeypatch.setattr(proc, "MOST_CALLS", 50)
    end = ended(OPENED + """read allocate; while echo '{"call": "mem_info"}'; do read answer; done""")
    assert (end.kind, end.how) == (TIMEOUT, "made 50 driver calls without an answer to allocate")


def test_what_it_told_last_is_shown():
    end = ended(READ + "seq 100 >&2; echo 'out of ideas' >&2; exit 1")
    assert end.stack == ("96", "97", "98", "99", "100", "out of ideas")


def test_a_wrong_answer_is_a_finding_as_of_a_subject_in_this_process():
    answer = """echo '{"return": {"address": 1, "size": 100}}'"""
    script = f"{READ}{answer}; while read request; do echo '{{\"return\": 0}}'; done"
    judged = bench_for("allocator", ProcSubject(shell(script))).run(PROGRAM)
    (crashed,) = [event.args[1] for event in judged.history if event.args[0] == "return" and event.args[1]["code"]]
    assert crashed["status"] == "crashed"
    assert "allocate returned {'address': 1, 'size': 100} where a Block" in crashed["message"]
    assert judged.broken()


def test_it_ends_with_everything_that_it_started(tmp_path):
    file = tmp_path / "pid"
    end = ended(READ + f"sleep 1000 & echo $! > '{file}'; exit 1")
    assert (end.kind, end.how) == (CRASH, "exited with status 1")
    assert gone(int(file.read_text()))


SECOND = """        if block["size"] > 4096:
            sys.stderr.write("too large for me\\n"); sys.stderr.flush()
            raise SystemExit(7)
"""


def test_the_run_goes_on_and_has_the_program_made_small(tmp_path):
    spec = f"proc:{far_pool(tmp_path, SECOND)}"
    options = Options("smoke")
    first, *_ = plan({spec: resolve_known(spec)}, options)
    result = run_item(first, options)
    assert result.state == CRASH
    (ending,) = result.endings
    assert (ending.kind, ending.how, ending.stack) == (CRASH, "exited with status 7", ["too large for me"])
    assert (ending.repeats, ending.times) == ("deterministic", MOST)
    kinds = [operation["op"] for operation in ending.program["operations"]]
    assert kinds[-1] == "deallocate" if ending.op < len(kinds) else "allocate" in kinds
    assert len(kinds) <= 2
    assert result.executed + result.endings[0].times <= first.planned
    assert not result.failures


def test_under_isolation_it_is_the_same_verdict():
    spec = f"proc:{shell(READ + 'echo oh dear >&2; exit 7')}"
    bench = bench_of("allocator", spec, resolve_known(spec), Options(isolation="process"))
    with pytest.raises(Ended) as caught:
        bench.run(PROGRAM)
    assert (caught.value.kind, caught.value.how, caught.value.op) == (CRASH, "exited with status 7", 0)
    assert caught.value.stack == ("oh dear",)


def test_under_isolation_the_outer_watch_counts():
    spec = f"proc:{shell(READ + 'sleep 100')}"
    bench = bench_of("allocator", spec, resolve_known(spec), Options(isolation="process", timeout=1))
    with pytest.raises(Ended) as caught:
        bench.run(PROGRAM)
    assert (caught.value.kind, caught.value.how, caught.value.op) == (TIMEOUT, "made no progress for 1 s", 0)


def test_under_isolation_the_time_that_a_process_takes_to_start_is_no_program_s():
    """Neither that of the first one, nor that of the one that is started after it has ended."""
    place = Place("allocator", f"proc:{shell(f'sleep 0.9; {READ} exit 7')}", "host")
    bench = IsolatedBench(plug("allocator"), place, None, patience=0.4)
    for _ in range(2):
        with pytest.raises(Ended, match="exited with status 7"):
            bench.run(PROGRAM)


def test_processes_that_ended_are_not_kept():
    subject = ProcSubject(shell(READ + "exit 7"))
    first = weakref.ref(subject._process)
    for _ in range(2):
        with pytest.raises(Ended):
            bench_for("allocator", subject).run(PROGRAM)
    gc.collect()
    assert first() is None


def test_replay_shows_it(tmp_path, capsys):
    file = tmp_path / "program.json"
    file.write_text(json.dumps(to_data(PROGRAM)))
    spec = f"proc:{shell(READ + 'echo oh dear >&2; exit 9')}"
    assert main(["replay", str(file), "--subject", spec]) == 1
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "the process exited with status 9 in operation 0, allocate (size=100)" in printed
    assert " oh dear " in printed


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "there is no program ''; give proc:COMMAND, as in a shell"),
        ("no-such-program-here x", "there is no program 'no-such-program-here'"),
        ("sh 'x", "the command \"sh 'x\" cannot be split into words: No closing quotation"),
        ("sh -c 'echo no >&2; exit 3'", "its process exited with status 3; the last it told: no"),
        (shell("echo hello"), "its process sent what is no JSON (JSONDecodeError): 'hello'"),
        (shell(said('{"call": "mem_info"}')), "asked for a driver call before there was a driver"),
        (shell(said('{"refuse": "UNIMPLEMENTED", "message": "version 2"}')),
         "its process refused to start: 'UNIMPLEMENTED' 'version 2'"),
        (shell(said('{"return": 5}')), "it said of itself {}; a name, a version and capabilities were"),
        (shell(said('{"return": {"name": "x"}}')), "it has the contracts None, accepted: ['allocator', 'skip-"),
        (shell(said('{"return": {"name": "x", "contracts": ["allocator", "va-remap"]}}')),
         "; va-remap cannot be spoken: it is handed allocators and command buffers that are objects of the caller's"),
        (shell(said('{"return": {"name": "x", "contracts": ["allocator"], "calls": "none"}}')),
         "it says that its driver calls are 'none', accepted: asked, reported, untold"),
        (shell(said('{"return": {"name": "x", "contracts": ["allocator"], "calls": "reported"}}')),
         "it makes its own driver calls, and says of its device None; expected is an object with count, granularity,"),
        (shell(said('{"return": {"name": "x", "contracts": ["skip-remap"], "calls": "untold", "device": {}}}')),
         "with a driver of its own it can have the contracts allocator and vmm-allocator, not skip-remap: memory"),
        (shell(said('{"return": {"name": "x", "contracts": ["allocator"], "capabilities": {"fly": true}}}')),
         "it declares 'fly', accepted: grow, shrink, "),
        (shell(said('{"return": {"name": "x", "contracts": ["allocator"], "capabilities": {"grow": 1}}}')),
         "it declares grow as 1, which must be true or false"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_subject_says_so_in_one_line(command, message):
    with pytest.raises(SubjectNotFound) as caught:
        resolve_subject(f"proc:{command}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_that_does_not_start_in_time(monkeypatch):
    monkeypatch.setattr(proc, "STARTING", 0.3)
    with pytest.raises(SubjectNotFound, match=r"its process sent no line for 0.3 s"):
        resolve_subject(f"proc:{shell('sleep 100')}")


def test_it_ends_with_the_harness():
    """Even with one that is killed while its subject hangs."""
    code = (
        "import os, signal, sys\n"
        "from vmm_conformance.running.proc.subject import ProcSubject\n"
        f"subject = ProcSubject({shell(HELLO + 'sleep 1000')!r})\n"
        "print(subject._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout))


def gone(pid: int) -> bool:
    """Whether a process ends soon; one that nobody waits for has ended as well."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
