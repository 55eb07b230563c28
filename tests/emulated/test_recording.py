"""``vmm-conformance run --record``: calls go on to the vendor's library, here to the emulated one, and are recorded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emulated_world import need_library, need_module
from test_sanitizer import PRELUDE

from vmm_conformance.cli import main
from vmm_conformance.drivers.emulated import EmulationUnavailable, forwarding
from vmm_conformance.drivers.emulated.build import _compiler
from vmm_conformance.drivers.emulated.forwarding import Forwarding

LEAKING = """
def fill():
    address, handle = take()
    call("cuMemsetD8_v2", address, 7, 8)
    seen = (ctypes.c_char * 8)()
    call("cuMemcpyDtoH_v2", seen, address, 8)
    assert bytes(seen) == bytes([7]) * 8
    call("cuMemUnmap", address, G)
    call("cuMemAddressFree", address, G)
    assert call("cuMemAddressFree", address, G) != 0
    call("cuMemFree_v2", get("cuMemAlloc_v2", 100))
    assert call("cuMemCreate", ctypes.byref(word()), G, (ctypes.c_int * 8)(1, 0, 1, 7), 0) != 0  # no such device

fill()
"""
BOUND = """
from cuda.bindings import driver as d

def ok(answer):
    assert answer[0] == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]

ok(d.cuInit(0))
ok(d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(0))))
stream = ok(d.cuStreamCreate(1))
memory = ok(d.cuMemAlloc(64))
ok(d.cuMemsetD8Async(memory, 7, 64, stream))
ok(d.cuStreamSynchronize(stream))
seen = bytearray(8)
ok(d.cuMemcpyDtoH(seen, memory, 8))
assert bytes(seen) == bytes([7]) * 8
ok(d.cuMemFree(memory))
"""


FAKE = """
#include <stddef.h>
int cuMemAddressReserve(size_t* out) { *out = 1 << 30; return 0; }
int cuMemAddressFree(void) { return 0; }
int cuMemCreate(size_t* out) { *out = 5; return 0; }
int cuMemImportFromShareableHandle(size_t* out) { *out = 5; return 0; }
int cuMemRelease(void) { return 0; }
int cuMemMap(size_t address, size_t size, size_t offset, size_t handle) { return handle == 9; }
int cuMemUnmap(void) { return 0; }
int cuMemSetAccess(void) { return 0; }
static int alloc(size_t* out) { *out = 1 << 20; return 0; }
int cuMemAlloc_v2(size_t* out) { return alloc(out); }
int cuGetProcAddress_v2(const char* name, void** out) { *out = (void*)alloc; return 0; }
"""
"""A library that gives a number again, as the vendors' may, and has its own functions looked up."""
REUSING = """
address, handle = take()
give(address, handle)
address, handle = get("cuMemAddressReserve", G, 0, 0, 0), get("cuMemImportFromShareableHandle", 7, 1)
call("cuMemMap", address, G, 0, handle, 0)
give(address, handle)
assert call("cuMemMap", address, G, 0, 9, 0) == 1
give(*take())
"""
PER_THREAD = """
out, address, found = word(), word(), ctypes.c_int()
assert c.cuGetProcAddress_v2(b"cuMemAlloc", ctypes.byref(out), 12000, word(2), ctypes.byref(found)) == 0
assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, word)(out.value)(ctypes.addressof(address), 100) == 0
"""


def record(folder: Path, text: str, library: str = "emulated") -> tuple[int, dict[str, Any], list[list[Any]]]:
    """Runs a program; returns the exit status, the report, and the events of its history."""
    need_library("cuda")
    (folder / "program.py").write_text(text, "utf-8")
    asked = ["--record", "cuda", "--library", library, "--report", str(folder / "report")]
    status = main(["run", *asked, "--", str(folder / "program.py")])
    (history,) = (folder / "report").glob("history-*.jsonl")
    events = [json.loads(line) for line in history.read_text("utf-8").splitlines()[1:]]
    return status, json.loads((folder / "report" / "sanitizer.json").read_text("utf-8")), events


def test_calls_go_on_and_what_is_wrong_with_them_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, report, events = record(tmp_path, PRELUDE + LEAKING)
    assert status == 1
    assert (report["recorded"], report["library"], report["real"]) == ("cuda", "emulated", False)
    wrong = [(wrong["kind"], wrong["invariant"]) for p in report["processes"] for wrong in p["wrong"]]
    assert wrong == [("illegal call", "DRIVER-16"), ("illegal call", "DRIVER-21"), ("leak", "ALLOCATOR-8")]
    assert [event[3] for event in events] == [
        "note", "reserve", "create", "map", "set_access", "unmap", "address_free", "address_free", "alloc", "free",
        "create",
    ]  # fmt: skip
    assert f"{tmp_path / 'program.py'}:{PRELUDE.count(chr(10)) + 14} in <module>" in capfd.readouterr().err
    assert events[0][4][1] == {"d": [["device", 0], ["space", 0], ["minimum", 2 << 20], ["recommended", 2 << 20]]}
    assert main(["judge", *map(str, (tmp_path / "report").glob("history-*.jsonl"))]) == 1


def test_a_vendors_binding_is_recorded_and_its_work_runs(tmp_path: Path) -> None:
    need_module("cuda.bindings.driver", "cuda-bindings")
    status, report, events = record(tmp_path, BOUND)
    assert (status, [process["calls"] for process in report["processes"]]) == (0, [2])
    assert [event[3] for event in events] == ["note", "alloc", "free"]


def record_over_fake(folder: Path, text: str) -> tuple[int, dict[str, Any], list[list[Any]]]:
    need_library("cuda")
    (folder / "fake.c").write_text(FAKE, "utf-8")
    subprocess.run(
        [*_compiler(), "-shared", "-fPIC", "-o", str(folder / "fake.so"), str(folder / "fake.c")], check=True
    )
    return record(folder, PRELUDE[: PRELUDE.index("c.cuInit")] + text, str(folder / "fake.so"))


def test_memory_that_is_not_recorded_is_not_taken_for_memory_that_is(tmp_path: Path) -> None:
    status, report, events = record_over_fake(tmp_path, REUSING)
    assert (status, [process["wrong"] for process in report["processes"]]) == (0, [[]])
    own = ["reserve", "create", "map", "set_access", "unmap", "release", "address_free"]
    foreign = ["reserve", "address_free"]
    assert [event[3] for event in events if event[3] != "note"] == [*own, *foreign, *own]


def test_with_a_default_stream_for_each_thread_memory_is_recorded_too(tmp_path: Path) -> None:
    status, report, _ = record_over_fake(tmp_path, PER_THREAD)
    assert (status, [wrong["kind"] for p in report["processes"] for wrong in p["wrong"]]) == (1, ["leak"])


@pytest.mark.parametrize(("vendor", "recorded"), [("cuda", True), ("hip", False)])
def test_no_bytes_are_no_memory_where_asking_for_none_is_allowed(vendor: str, recorded: bool) -> None:
    this: Any = SimpleNamespace(vendor=vendor)
    assert (Forwarding._memory_alloc(this, "out", 0) is not None) is recorded
    assert Forwarding._memory_alloc(this, "out", 1) == ("alloc", (1,), True)


def test_a_function_that_the_library_does_not_have_is_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(forwarding.SONAMES, "cuda", "libc.so.6")
    library = forwarding.real_library("cuda")
    assert library.name.startswith("libc.so")
    monkeypatch.undo()
    text = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); assert c.cuInit(0) == c.cuMemUnmap(0, 0) == 801"
    assert record(tmp_path, text, str(library))[0] == 0


def test_where_there_is_no_library_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(forwarding.SONAMES, "cuda", "libnone.so.7")
    with pytest.raises(EmulationUnavailable, match=r"no libnone.so.7 here to forward calls to .*--library PATH"):
        forwarding.real_library("cuda")
