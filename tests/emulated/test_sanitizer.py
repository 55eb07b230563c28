"""``vmm-conformance run --emulate``: programs that know nothing of us, judged when they end."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from emulated_world import need_library, need_module

from vmm_conformance.cli import main

PRELUDE = """\
import ctypes, sys
c = ctypes.CDLL("libcuda.so.1")
G = 2 << 20
word = ctypes.c_size_t

def get(name, *arguments):
    out = word()
    status = getattr(c, name)(ctypes.byref(out), *(word(a) if isinstance(a, int) else a for a in arguments))
    assert status == 0, (name, status)
    return out.value

def call(name, *arguments):
    return getattr(c, name)(*(word(a) if isinstance(a, int) else a for a in arguments))

def take():
    address = get("cuMemAddressReserve", G, 0, 0, 0)
    handle = get("cuMemCreate", G, (ctypes.c_int * 8)(1, 0, 1, 0), 0)
    call("cuMemMap", address, G, 0, handle, 0)
    call("cuMemSetAccess", address, G, (ctypes.c_int * 3)(1, 0, 3), 1)
    return address, handle

def give(address, handle):
    call("cuMemUnmap", address, G)
    call("cuMemRelease", handle)
    call("cuMemAddressFree", address, G)

c.cuInit(0)
call("cuCtxSetCurrent", get("cuDevicePrimaryCtxRetain", 0))
"""
LINES = PRELUDE.count("\n")


class Ran:
    """One run: its exit status, what was printed, and the report."""

    def __init__(self, status: int, text: str, folder: Path) -> None:
        self.status = status
        self.text = text
        path = folder / "report" / "sanitizer.json"
        self.report: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}

    @property
    def wrong(self) -> list[tuple[str, str]]:
        return [(wrong["kind"], wrong["invariant"]) for p in self.report["processes"] for wrong in p["wrong"]]


class Program:
    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        need_library("cuda")
        self.file = folder / "program.py"
        self.folder = folder
        self._capfd = capfd

    def run(self, text: str, *arguments: str, prelude: str = PRELUDE, options: tuple[str, ...] = ()) -> Ran:
        self.file.write_text(prelude + dedent(text), "utf-8")
        return self.command(str(self.file), *arguments, options=options)

    def command(self, *words: str, options: tuple[str, ...] = ()) -> Ran:
        status = main(["run", "--emulate", "cuda", "--report", str(self.folder / "report"), *options, "--", *words])
        return Ran(status, self._capfd.readouterr().err, self.folder)


@pytest.fixture
def program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Program:
    return Program(tmp_path, capfd)


def test_a_program_without_faults_ends_well(program: Program) -> None:
    ran = program.run("print(sys.argv[1:]); give(*take())", "--its", "own")
    assert ran.status == 0, ran.text
    assert "7 driver calls" in ran.text
    assert "nothing wrong" in ran.text
    assert (ran.report["emulated"], ran.report["real"], ran.report["status"]) == ("cuda", False, 0)


def test_a_leak_names_the_line_that_allocated(program: Program) -> None:
    ran = program.run("""\
        def fill():
            address, handle = take()
            call("cuMemUnmap", address, G)
            call("cuMemAddressFree", address, G)

        for _ in range(3):
            fill()
        """)
    assert ran.status == 1
    assert ran.wrong == [("leak", "ALLOCATOR-8")]
    assert "leak: handle 1 of 2097152 bytes: 1 reference(s), not mapped (3 times)  [ALLOCATOR-8]" in ran.text
    assert f"{program.file}:{LINES + 2} in fill" in ran.text
    assert f"{program.file}:{LINES + 7} in <module>" in ran.text


def test_what_the_main_modules_names_hold_is_no_leak(program: Program) -> None:
    ran = program.run("""\
        class Buffer:
            def __init__(self):
                self.held = take()
            def __del__(self, give=give):
                give(*self.held)

        kept = Buffer()
        """)
    assert ran.status == 0, ran.text


def test_every_kind_of_fault_is_told(program: Program) -> None:
    ran = program.run("""\
        address, handle = take()
        call("cuMemUnmap", address, G // 2)
        stream = get("cuStreamCreate", 1)
        call("cuMemsetD8Async", address, 1, 8, stream)
        give(address, handle)
        call("cuMemcpyHtoD_v2", address, ctypes.c_char_p(b"late"), 4)
        """)
    assert ran.status == 1
    assert ran.wrong == [
        ("illegal call", "DRIVER-42"),
        ("unordered unmap", "ALLOCATOR-5"),
        ("illegal access", "DRIVER-49"),
        ("illegal access", "ALLOCATOR-5"),
    ]
    assert f"because of {program.file}:" in ran.text


def test_functions_that_are_not_emulated_are_named(program: Program) -> None:
    ran = program.run("c.cuArrayCreate()")
    assert "not emulated: cuArrayCreate, called 1 time, answered NOT_SUPPORTED" in ran.text


def test_a_programs_own_end_is_passed_on(program: Program) -> None:
    assert program.run("take(); sys.exit(7)").status == 7
    ran = program.run("take(); raise ValueError('its own')")
    assert ran.status == 1
    assert ("leak", "ALLOCATOR-8") in ran.wrong


def test_a_killed_program_is_told_of(program: Program) -> None:
    ran = program.run("import os, signal; take(); os.kill(os.getpid(), signal.SIGKILL)")
    assert ran.status == 128 + signal.SIGKILL
    assert "ended by SIGKILL" in ran.text


def test_a_command_without_python_was_not_watched(program: Program) -> None:
    ran = program.command("true")
    assert ran.status == 3
    assert "no Python process told anything" in ran.text


def test_processes_of_a_command_are_watched_too(program: Program) -> None:
    program.run("give(*take())")
    ran = program.command("sh", "-c", f"{sys.executable} {program.file}; {sys.executable} {program.file}")
    assert ran.status == 0
    assert len(ran.report["processes"]) == 2


def test_another_sitecustomize_still_runs(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    own.joinpath("sitecustomize.py").write_text("import sys; sys.own_site = True", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(own))
    assert program.run("assert sys.own_site; give(*take())").status == 0


def test_a_quirk_can_be_asked_for(program: Program) -> None:
    text = """\
        address = get("cuMemAddressReserve", G, 0, 0, 0)
        print(call("cuMemAddressReserve", ctypes.byref(word()), G, 0, address, 0), file=sys.stderr)
        call("cuMemAddressFree", address, G)
        """
    assert program.run(text, options=("--quirk", "Q-27")).text.startswith("2\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emulate", "cuda"], "a command and one of --emulate and --record go together"),
        (["--", "program.py"], "a command and one of --emulate and --record go together"),
        (["--emulate", "cuda", "--record", "cuda", "--", "x.py"], "a command and one of --emulate and --record go"),
        (["--record", "cuda", "--quirk", "Q-01", "--", "x.py"], "--quirk goes with --emulate, and --library with"),
        (["--emulate", "cuda", "--seed", "7", "--", "x.py"], "--seed is for the suites, and a command runs in place"),
        (["--emulate", "cuda", "--contract", "flags", "--", "x.py"], "--contract is for the suites, and a command"),
        (["--record", "cuda", "--library", "libcuda.so.9", "--", "x.py"], "--library libcuda.so.9: there is no such"),
        (["--emulate", "cuda", "--quirk", "Q-99", "--", "x.py"], "unknown quirk 'Q-99'; accepted: Q-01"),
        (["--emulate", "cuda", "--quirk", "Q-28", "--", "x.py"], "Q-28 cannot be had on a host driver"),
        (["--emulate", "cuda", "--", "no-such-command"], "the command cannot be run"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    need_library("cuda")
    assert main(["run", *arguments]) == 2
    assert message in capsys.readouterr().err


VMR = """\
from cuda.core import Device, VirtualMemoryResource

def use(stream):
    buffer = VirtualMemoryResource(device).allocate(1 << 20, stream=stream)
    buffer.close()

device = Device(0)
device.set_current()
stream = device.create_stream()
use(stream)
event = stream.record()
event.sync()
"""


def test_cuda_cores_resource_runs_unmodified_and_its_leak_is_found(program: Program) -> None:
    need_module("cuda.core", "'vmm-conformance[cuda]' cuda-core")
    ran = program.run(VMR, prelude="")
    assert (ran.report["status"], ran.status) == (0, 1), ran.text  # it ended well, and has leaked
    assert ran.wrong == [("leak", "ALLOCATOR-8")]
    assert "1 reference(s), not mapped" in ran.text
    assert f"allocated by {program.file}:4 in use" in ran.text
    assert "VirtualMemoryResource.allocate" in ran.text
    assert "cuda-core" in ran.report["processes"][0]["versions"]
    assert os.path.exists(program.file)
