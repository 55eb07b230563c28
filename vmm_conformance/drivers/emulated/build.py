"""Builds an emulated library once, and keeps it in the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Protocol

from vmm_conformance.drivers.emulated import source


class Form(Protocol):
    """A module that writes the C of a library."""

    def module_name(self, vendor: str) -> str:
        """The name of the extension module that it is too."""
        ...

    def declarations(self, vendor: str) -> str:
        """What cffi has to know."""
        ...

    def c_source(self, vendor: str) -> str:
        """The C functions."""
        ...


class EmulationUnavailable(RuntimeError):
    """The emulated libraries cannot be had here; the message says what is missing and how to get it."""


def cache_folder() -> Path:
    """Where built libraries are kept: below ``$XDG_CACHE_HOME``, or ``~/.cache``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "vmm-conformance"


def library_path(vendor: str, *, empty: bool = False, form: Form = source) -> Path:
    """The library of a vendor, built first if it is not in the cache. Raises `EmulationUnavailable`.

    The bodies of an ``empty`` one do nothing and answer success: what remains of a call's cost is the
    caller's. It stands in a folder ``lib`` of its own, as below ``$ROCM_PATH``. ``form`` writes its C: by default of
    the emulated one, with `forward_source` of the one that forwards.
    """
    _check_cffi()
    key = _key(vendor, empty, form)
    path = cache_folder() / f"emulated-{key}" / "lib" / source.SONAMES[vendor]
    if not path.is_file():
        _build(vendor, path, empty, form)
    return path


def load_module(vendor: str, path: Path, form: Form = source) -> Any:
    """The library as the extension module that it is: its ``ffi`` and its ``lib``."""
    name = form.module_name(vendor)
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check_cffi() -> None:
    if find_spec("cffi") is None:
        raise EmulationUnavailable(
            "the emulated libraries need cffi, which is not installed; pip install 'vmm-conformance[emulation]'"
        )


def _key(vendor: str, empty: bool, form: Form) -> str:
    parts = (form.declarations(vendor), form.c_source(vendor), sys.version, metadata.version("cffi"), empty)
    return f"{vendor}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def _emit(vendor: str, code: Path, form: Form) -> None:
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(form.declarations(vendor))
    ffi.set_source(form.module_name(vendor), form.c_source(vendor))
    with contextlib.redirect_stdout(io.StringIO()):  # cffi tells what it does
        ffi.emit_c_code(str(code))


def _build(vendor: str, path: Path, empty: bool, form: Form) -> None:
    """Compile beside the place and move there, so that processes that build at once do no harm."""
    compiler = _compiler()
    folder = path.parent.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as temporary:
        code = Path(temporary) / "library.c"
        _emit(vendor, code, form)
        built = Path(temporary) / "made" / "lib" / path.name
        built.parent.mkdir(parents=True)
        _compile(compiler, code, built, ["-DVMM_EMPTY"] if empty else [])
        try:
            built.parent.parent.rename(folder)
        except OSError:
            if not path.is_file():
                raise


def _compiler() -> list[str]:
    for candidate in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        words = shlex.split(candidate or "")
        if words and shutil.which(words[0]):
            return words
    raise EmulationUnavailable(
        "the emulated libraries are built once and need a C compiler for it, and none was found; install gcc or "
        "clang (Debian: apt install gcc python3-dev), or name one in the environment variable CC"
    )


def _compile(compiler: list[str], code: Path, built: Path, flags: list[str]) -> None:
    headers = sysconfig.get_path("include")
    if not Path(headers, "Python.h").is_file():
        raise EmulationUnavailable(
            f"the emulated libraries are built once and need Python's headers for it, which are not in {headers}; "
            "install them (Debian: apt install python3-dev)"
        )
    command = [
        *compiler, "-O2", "-shared", "-fPIC", "-w", f"-I{headers}", *flags,
        str(code), "-o", str(built), f"-Wl,-soname,{built.name}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise EmulationUnavailable(
            f"the emulated {built.name} could not be built: {shlex.join(command)} said: {lines[0] if lines else '?'}"
        )
