"""Building the libraries: once, in the user's cache, with a word on what is missing."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from emulated_world import need_library

from vmm_conformance.drivers.emulated import EmulationUnavailable, build, load
from vmm_conformance.drivers.emulated.entries import BY_HAND, VENDORS, entries, unemulated
from vmm_conformance.drivers.emulated.library import Library


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_function_has_one_body_and_every_body_is_there(vendor: str) -> None:
    symbols = [name.symbol for entry in entries(vendor) for name in entry.names]
    assert len(symbols) == len(set(symbols))
    assert not {*symbols} & {*unemulated(vendor)}
    for entry in entries(vendor):
        body = getattr(Library, entry.body)
        assert body.__code__.co_argcount == len(entry.parameters) + 1, entry.body


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_library_has_its_vendors_name_and_functions(vendor: str) -> None:
    library = need_library(vendor)
    assert library.path.name == {"cuda": "libcuda.so.1", "hip": "libamdhip64.so"}[vendor]
    by_name = ctypes.CDLL(library.path.name)  # found by its SONAME, with no path
    for name in [*unemulated(vendor), *(n.symbol for e in entries(vendor) for n in e.names)]:
        assert getattr(by_name, name)
    assert all(hasattr(by_name, name) for name in BY_HAND if name.startswith("cu" if vendor == "cuda" else "hip"))


def test_a_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_library("cuda")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = build.library_path("cuda")
    assert first.is_relative_to(tmp_path)
    stamp = first.stat().st_mtime_ns
    monkeypatch.setenv("PATH", "")  # nothing is compiled again
    assert build.library_path("cuda") == first
    assert first.stat().st_mtime_ns == stamp
    assert [path.name for path in (tmp_path / "vmm-conformance").iterdir()] == [first.parent.parent.name]


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cffi", reason="pip install 'vmm-conformance[emulation]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: None)
    with pytest.raises(EmulationUnavailable, match=r"need a C compiler.*apt install gcc.*variable CC"):
        build.library_path("hip")


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_library("hip")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", f"{sys.executable} -c 'import sys; sys.exit(\"no room\")'")
    with pytest.raises(EmulationUnavailable, match=r"could not be built: .* said: no room"):
        build.library_path("hip")
    assert list((tmp_path / "vmm-conformance").iterdir()) == []


def test_without_headers_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_library("hip")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(EmulationUnavailable, match=r"need Python's headers .*apt install python3-dev"):
        build.library_path("hip")


def test_without_cffi_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_spec", lambda name: None if name == "cffi" else importlib.util.find_spec(name))
    with pytest.raises(EmulationUnavailable, match=r"pip install 'vmm-conformance\[emulation\]'"):
        build.library_path("hip")


def test_another_vendor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no library of 'metal' is emulated; accepted: cuda, hip"):
        load("metal")


_LATE_CALLS = """
import ctypes, os, sys
from vmm_conformance.drivers import emulated

emulated.load("cuda")
c = ctypes.CDLL("libcuda.so.1")
assert c.cuInit(0) == 0
out = ctypes.c_int()
assert c.cuDeviceGetCount(ctypes.byref(out)) == 0

class Late:  # destroyed when the interpreter's modules are
    def __init__(self, ask=c.cuDeviceGetCount, out=out, by=ctypes.byref, write=os.write):
        self.ask, self.out, self.by, self.write = ask, out, by, write
    def __del__(self):
        self.write(1, b"late %d" % self.ask(self.by(self.out)))

sys.late = Late()
child = os.fork()
if not child:
    os._exit(c.cuDeviceGetCount(ctypes.byref(out)))
print("forked", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_calls_at_the_interpreters_end_and_after_a_fork_are_answered() -> None:
    need_library("cuda")
    done = subprocess.run([sys.executable, "-c", _LATE_CALLS], capture_output=True, text=True, env={**os.environ})
    assert (done.returncode, done.stdout, done.stderr) == (0, "forked 3\nlate 4", "")
