"""An emulated library in this process: loaded once, with one driver after the other behind it."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from vmm_conformance.contracts import Driver, DriverCapabilities, DriverOptions, Granularity, Status, WorkListener
from vmm_conformance.drivers.emulated import build, source
from vmm_conformance.drivers.emulated.entries import VENDORS, entries
from vmm_conformance.drivers.emulated.graphs import GraphCalls

Listen = Callable[[WorkListener], None]

_GRANULE: Final = 2 << 20
_CAPACITY: Final = 8 << 30
_CAPABILITIES: Final = {
    "cuda": DriverCapabilities(set_access_part_of_mapping=True, partial_map=False, copy_spans_reservations=True),
    "hip": DriverCapabilities(),
}


def vendor_options(vendor: str) -> DriverOptions:
    """The driver that stands behind a library where nobody asks for another: like a small GPU of the vendor."""
    return DriverOptions(
        capacity=_CAPACITY, granularity=Granularity(_GRANULE, _GRANULE), capabilities=_CAPABILITIES[vendor]
    )


class Library(GraphCalls):
    """The library of one vendor. There is one in a process, made by `load`."""

    def __init__(self, vendor: str) -> None:
        super().__init__(vendor)
        self.path = build.library_path(vendor)
        module = build.load_module(vendor, self.path)
        self._c = module.lib
        self._answer(module.ffi)
        # The loader finds a library that is there already by its SONAME, whoever asks for it and with what path.
        self._global = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_GLOBAL)
        if vendor == "hip" and rocm().joinpath("lib", self.path.name).is_file():
            os.environ["ROCM_PATH"] = str(self.path.parent.parent)  # newer hip-python opens what lies there by path
        self._c.vmm_state = Status.NOT_INITIALIZED
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    def _answer(self, ffi: Any) -> None:
        """Let the C functions call the bodies."""
        for entry in entries(self.vendor):
            ffi.def_extern(name=f"body_{entry.body}", onerror=self.refused)(getattr(self, entry.body))
        ffi.def_extern(name="body_missing", onerror=self.refused)(self.missing_function)

    def _end(self) -> None:
        """The interpreter ends. Others may still call, from destructors and threads, and nobody can answer."""
        self._c.vmm_state = Status.DEINITIALIZED

    def _forked(self) -> None:
        """A child has no driver, as on a GPU: its memory is shared with the parent, which it must not touch."""
        self._c.vmm_state = Status.NOT_INITIALIZED

    # -- the driver behind it

    @property
    def started(self) -> bool:
        """Whether a driver is behind the library."""
        return bool(self._c.vmm_state == 0)

    @property
    def driver(self) -> Driver:
        """The driver behind the library."""
        return self._driver

    def start(self, driver: Driver, *, listen: Listen | None = None, space: int = 0) -> None:
        """Put ``driver`` behind the library, as if it was loaded afresh: old streams and contexts are unknown.

        ``listen`` hands on the work that has run, where ``driver`` itself does not (a recorded driver); plain memory
        comes from the memory space ``space``.
        """
        self._forget_all()
        (listen or driver.listen)(self.ran)
        self._driver = self._under = driver
        self.space = space
        self.failures.clear()
        self._c.vmm_state = 0

    def detour(self, driver: Any) -> None:
        """Let ``driver`` answer in place of the one that was started with: it hands calls on to that."""
        self._driver = driver

    def stop(self) -> None:
        """Take the driver away, which remains its owner's. Calls are then answered with 3, not initialized."""
        self._c.vmm_state = Status.NOT_INITIALIZED
        self._forget_all()


def rocm() -> Path:
    """Where newer hip-python looks for ROCm before it asks the loader. Children of this process inherit it."""
    return Path(os.environ.get("ROCM_PATH") or os.environ.get("ROCM_HOME") or "/opt/rocm")


_loaded: Final[dict[str, Library]] = {}


def load(vendor: str, driver: Driver | None = None) -> Library:
    """Bring the emulated library of ``cuda`` or ``hip`` into this process, before a binding looks for the real one.

    With no driver behind it yet it gets ``driver``, or else a host driver that is like a small GPU of the vendor.
    Raises `EmulationUnavailable` where it cannot be built, `ValueError` for another vendor.
    """
    library = bring_in(vendor)
    if driver is not None or not library.started:
        from vmm_conformance.drivers.host import HostDriver

        library.start(driver or HostDriver(vendor_options(vendor)))
    return library


def bring_in(vendor: str) -> Library:
    """The library, with whatever is behind it now."""
    if vendor not in VENDORS:
        raise ValueError(f"no library of {vendor!r} is emulated; accepted: {', '.join(VENDORS)}")
    if vendor not in _loaded:
        _loaded[vendor] = Library(vendor)
    return _loaded[vendor]


def built_for(vendor: str) -> Path:
    """Where the library of a vendor lies, for those who load it by path."""
    return bring_in(vendor).path


def soname(vendor: str) -> str:
    """What the dynamic loader knows the library as."""
    return source.SONAMES[vendor]
