"""A library with the vendor's name whose calls go on to the real one, and are recorded on their way.

It is loaded first, so whoever asks for the vendor's library by its name gets this one; the real one is opened by its
path. What is recorded is memory: reservations, handles, mappings, rights, plain memory. Work is not, since nobody can
tell from outside when a device has run it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import byref
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Access, Driver, DriverCapabilities, DriverError, Granularity, Status
from vmm_conformance.drivers.emulated import build, forward_source
from vmm_conformance.drivers.emulated.build import EmulationUnavailable
from vmm_conformance.drivers.emulated.entries import Entry
from vmm_conformance.drivers.emulated.library import rocm
from vmm_conformance.drivers.emulated.source import SONAMES

_DEVICE: Final = 1
_UNKNOWN: Final = 999
_ACCESSES: Final = {int(access): access for access in Access}
_FIND: Final = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
paths = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print(next(path for path in paths if os.path.basename(path).startswith(sys.argv[1].partition(".so")[0] + ".so")))
"""


def _refuse(*arguments: object) -> int:
    """In place of a function that the library does not have."""
    return _UNKNOWN


def real_library(vendor: str) -> Path:
    """Where the vendor's library lies; raises `EmulationUnavailable` where there is none."""
    name = SONAMES[vendor]
    done = subprocess.run([sys.executable, "-c", _FIND, name], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["?"])[-1]
        raise EmulationUnavailable(
            f"there is no {name} here to forward calls to ({said}); install the vendor's driver, or name the library"
            " with --library PATH; 'emulated' is ours, which is no device"
        )
    return Path(done.stdout.strip())


class Meant(NamedTuple):
    """What a call means to a driver: its kind and arguments, and whether what it makes is written through a pointer."""

    kind: str
    args: tuple[Any, ...]
    makes: bool = False


class ForwardedDriver:
    """What the recorder takes for the driver: each call is what its thread is about to forward."""

    name, real, device_count = "forwarded", True, 1
    capabilities = DriverCapabilities()

    def __init__(self) -> None:
        self.caller = threading.local()

    def listen(self, listener: object) -> None:
        """No work is seen to run."""

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """The call ``kind``; its arguments are for the record."""
        if kind.startswith("_"):
            raise AttributeError(kind)
        return lambda *args, **named: self.caller.forward()


class Forwarding:
    """The library of one vendor in this process. ``failures`` has what broke in it, which is our fault."""

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor
        self.failures: list[BaseException] = []
        self.missing: dict[str, int] = {}
        self.driver = ForwardedDriver()
        self.path = build.library_path(vendor, form=forward_source)
        module = build.load_module(vendor, self.path, forward_source)
        self._ffi, self._c = module.ffi, module.lib
        for entry in forward_source.recorded(vendor):
            body = partial(self._call, entry, self._ffi.typeof(forward_source.signature(entry)))
            self._ffi.def_extern(name=f"body_{entry.body}", onerror=self._broke, error=_UNKNOWN)(body)
        self._global = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_GLOBAL)
        self._facts: Callable[[list[Granularity]], None] | None = None
        self._foreign: set[int] = set()
        self._known: dict[str, set[int]] = {"handle": set(), "plain": set()}

    def start(self, real: Path, view: Driver, facts: Callable[[list[Granularity]], None]) -> None:
        """Forward to the library ``real``, and make what is recorded as a call of ``view``.

        ``facts`` is told the granularity of each device before the first of them, when there is a context to ask in.
        """
        self._real = ctypes.CDLL(str(real))
        for index, name in enumerate(forward_source.symbols(self.vendor)):
            function = getattr(self._real, name, None)
            address = self._ffi.addressof(self._c, "vmm_absent")
            if function is not None:
                address = self._ffi.cast("void*", ctypes.cast(function, ctypes.c_void_p).value)
            self._c.vmm_real[index] = self._ffi.cast("void*", address)
        if self.vendor == "hip" and rocm().joinpath("lib", self.path.name).is_file():
            os.environ["ROCM_PATH"] = str(self.path.parent.parent)  # newer hip-python opens what lies there by path
        self._view, self._facts = view, facts
        self._c.vmm_state = Status.SUCCESS
        os.register_at_fork(after_in_child=self.stop)

    def _granularity(self) -> list[Granularity]:
        """Of each device; what the library does not tell is 1."""
        count, vendor = ctypes.c_int(), "cu" if self.vendor == "cuda" else "hip"
        getattr(self._real, "cuDeviceGetCount" if vendor == "cu" else "hipGetDeviceCount", _refuse)(byref(count))
        return [
            Granularity(*(self._asked(f"{vendor}MemGetAllocationGranularity", device, option) for option in (0, 1)))
            for device in range(max(1, count.value))
        ]

    def _asked(self, name: str, device: int, option: int) -> int:
        found, pinned = ctypes.c_size_t(), (ctypes.c_int * 16)(1, 0, _DEVICE, device)
        return found.value if getattr(self._real, name, _refuse)(byref(found), pinned, option) == 0 else 1

    def stop(self) -> None:
        """Record no more; calls are forwarded as before."""
        self._c.vmm_state = Status.NOT_INITIALIZED

    def _broke(self, kind: Any, error: BaseException, trace: Any) -> None:
        self.failures.append(error)

    def _call(self, entry: Entry, signature: Any, which: int, *arguments: Any) -> int:
        real = self._ffi.cast(signature, self._c.vmm_real[which])
        means: Callable[..., Meant | None] = getattr(self, f"_{entry.body}")
        meant = means(*arguments)
        if meant is None:
            status = int(real(*arguments))
            if not status:
                self._passed(entry.body, arguments)
            return status

        if self._facts is not None:
            facts, self._facts = self._facts, None
            facts(self._granularity())

        def forward() -> Any:
            status = int(real(*arguments))
            if status:
                raise DriverError(status, meant.kind, "as the library answers")
            return int(arguments[0][0]) if meant.makes else None

        self.driver.caller.forward = forward
        try:
            made = getattr(self._view, meant.kind)(*meant.args)
        except DriverError as error:
            return int(error.status)
        self._remember(meant, made)
        return 0

    # -- what calls mean; None for what is forwarded only

    def _address_reserve(self, out: Any, size: int, alignment: int, hint: int, flags: int) -> Meant | None:
        return Meant("reserve", (size, alignment, hint), makes=True) if out else None

    def _address_free(self, address: int, size: int) -> Meant:
        return Meant("address_free", (address, size))

    def _memory_create(self, out: Any, size: int, properties: Any, flags: int) -> Meant | None:
        if not out or not properties or properties[2] != _DEVICE:
            return None
        return Meant("create", (size, properties[3], 0), makes=True)

    def _memory_retain(self, out: Any, address: int) -> Meant | None:
        return Meant("retain", (address,), makes=True) if out and address not in self._foreign else None

    def _memory_release(self, handle: int) -> Meant | None:
        return Meant("release", (handle,)) if handle in self._known["handle"] else None

    def _memory_map(self, address: int, size: int, offset: int, handle: int, flags: int) -> Meant | None:
        if handle in self._known["handle"] and not flags:
            return Meant("map", (address, size, handle, offset))
        return None  # imported memory, say, whose size nobody has told

    def _memory_unmap(self, address: int, size: int) -> Meant | None:
        return None if address in self._foreign else Meant("unmap", (address, size))

    def _memory_set_access(self, address: int, size: int, descriptors: Any, count: int) -> Meant | None:
        if not descriptors or address in self._foreign:
            return None
        rows = [(descriptors[at], descriptors[at + 1], descriptors[at + 2]) for at in range(0, 3 * count, 3)]
        rights = {number: _ACCESSES.get(flags, flags) for kind, number, flags in rows if kind == _DEVICE}
        return Meant("set_access", (address, size, rights)) if rights else None

    def _memory_import(self, out: Any, handle: int, kind: int) -> None:
        """Nobody has told its size."""

    def _memory_alloc(self, out: Any, size: int) -> Meant | None:
        """HIP gives a null pointer for no bytes, CUDA refuses."""
        return Meant("alloc", (size,), makes=True) if out and (size or self.vendor == "cuda") else None

    def _memory_free(self, address: int) -> Meant | None:
        return Meant("free", (address,)) if address in self._known["plain"] else None

    def _remember(self, meant: Meant, made: Any) -> None:
        """Which handles and which plain memory the record knows. A handle's number may come back."""
        if meant.kind in ("create", "retain"):
            self._known["handle"].add(made)
        elif meant.kind == "alloc":
            self._known["plain"].add(made)
        elif meant.kind == "free":
            self._known["plain"].discard(*meant.args)

    def _passed(self, body: str, arguments: Sequence[Any]) -> None:
        """What was forwarded only, and has succeeded: its memory is not what had that number or address before."""
        if body in ("memory_create", "memory_import"):
            self._known["handle"].discard(int(arguments[0][0]))
        elif body == "memory_map":
            self._foreign.add(arguments[0])
        elif body == "memory_unmap":
            self._foreign.discard(arguments[0])
