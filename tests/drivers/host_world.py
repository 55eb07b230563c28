"""Small helpers for tests of the host driver."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vmm_conformance.contracts import Access, DriverError, DriverOptions, Status
from vmm_conformance.drivers.host import HostDriver

G = 4096
RW = Access.READ_WRITE
READ = Access.READ
NONE = Access.NONE
POISON = b"\xcb"

Make = Callable[..., HostDriver]


@contextmanager
def refused(status: Status, match: str = ".") -> Iterator[pytest.ExceptionInfo[DriverError]]:
    """The block must raise `DriverError` with ``status``."""
    with pytest.raises(DriverError, match=match) as caught:
        yield caught
    assert Status(caught.value.status) is status


def picture(driver: HostDriver) -> Any:
    """All that a failed call must leave as it was."""
    return (
        driver.live(),
        driver.serial,
        [driver.mem_info(device) for device in range(driver.device_count)],
        sorted((r.start, r.end, r.mapped) for r in driver._reservations.values()),
        sorted(
            (r.start, r.size, dict(r.rights), [(p.start, p.end, dict(p.rights)) for p in r.parts or ()])
            for r in driver._regions.values()
        ),
        sorted((h.id, h.references, h.mappings) for h in driver._handles.values()),
    )


@contextmanager
def unchanged(driver: HostDriver, status: Status, match: str = ".") -> Iterator[None]:
    """The block must be refused with ``status`` and change nothing."""
    before = picture(driver)
    with refused(status, match):
        yield
    assert picture(driver) == before


def mapped(driver: HostDriver, granules: int = 1, *, rights: Access | None = RW, device: int = 0) -> tuple[int, int]:
    """A fresh reservation with one mapping all over it. Returns its address and the handle."""
    size = granules * G
    address = driver.reserve(size)
    handle = driver.create(size, device=device)
    driver.map(address, size, handle)
    if rights is not None:
        driver.set_access(address, size, {device: rights})
    return address, handle


def row(driver: HostDriver, count: int, *, granules: int = 1) -> tuple[int, list[int]]:
    """A reservation filled with ``count`` adjacent mappings without rights."""
    size = granules * G
    base = driver.reserve(count * size)
    handles = []
    for index in range(count):
        handles.append(driver.create(size))
        driver.map(base + index * size, size, handles[-1])
    return base, handles


def now(driver: HostDriver, address: int, size: int) -> bytes:
    """What the host reads."""
    return driver.read(address, size).data[0]


def options(**changes: Any) -> DriverOptions:
    """Default options with ``changes``."""
    return DriverOptions(**changes)


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


PRELUDE = """
import ctypes, sys
from vmm_conformance.contracts import Access, DriverOptions
from vmm_conformance.drivers.host import HostDriver
G = 4096
driver = HostDriver(DriverOptions())
base = driver.reserve(4 * G)
handle = driver.create(G)
driver.map(base, G, handle)
driver.set_access(base, G, {0: Access.READ_WRITE})
ctypes.memset(base, 65, G)
"""
