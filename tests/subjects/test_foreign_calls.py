"""An allocator that calls the vendor's library by itself: over an emulated driver its calls are seen."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from vmm_conformance.contracts import Block, Driver, DriverError, DriverOptions, Status
from vmm_conformance.drivers.calls import DriverUnavailable
from vmm_conformance.drivers.emulated import bring_in
from vmm_conformance.drivers.emulated.adapted import watch_foreign_calls
from vmm_conformance.drivers.opening import facts
from vmm_conformance.programs.allocator import Allocate, Configuration, Deallocate, Fail
from vmm_conformance.programs.program import Program
from vmm_conformance.running.session import bench_for

MEMORY = {"create", "reserve", "map", "set_access", "unmap", "address_free", "release"}


class Native:
    """What a C library would do, with a ctypes client: it never touches ``driver``."""

    def __init__(self, driver: Driver, device: int) -> None:
        watch_foreign_calls("cuda", driver)
        self.c = ctypes.CDLL(bring_in("cuda").path.name)
        self.device = device
        self.granule = driver.granularity(device).recommended

    def get(self, name: str, *arguments: Any) -> int:
        out = ctypes.c_size_t()
        self.call(name, ctypes.byref(out), *arguments)
        return out.value

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.c, name)(*(ctypes.c_size_t(a) if isinstance(a, int) else a for a in arguments))
        if status:
            raise DriverError(status, name, "refused")

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        committed = -(-size // self.granule) * self.granule
        address = self.get("cuMemAddressReserve", committed, 0, 0, 0)
        handle = self.get("cuMemCreate", committed, (ctypes.c_int * 8)(1, 0, 1, self.device), 0)
        self.call("cuMemMap", address, committed, 0, handle, 0)
        self.call("cuMemSetAccess", address, committed, (ctypes.c_int * 3)(1, self.device, 3), 1)
        self.call("cuMemRelease", handle)
        return Block(address, size, committed)

    def deallocate(self, block: Block, *, stream: int) -> None:
        event = self.get("cuEventCreate", 0)
        self.call("cuEventRecord", event, stream)
        self.call("cuEventSynchronize", event)
        self.call("cuEventDestroy_v2", event)
        self.call("cuMemUnmap", block.address, block.committed)
        self.call("cuMemAddressFree", block.address, block.committed)

    def close(self) -> None: ...


class NativeSubject:
    name = "native"
    capabilities = {"grow": False}  # noqa: RUF012
    allocator = Native


@pytest.fixture(autouse=True)
def _needs_the_driver() -> None:
    missing = facts("emulated-cuda").missing
    if missing:
        pytest.skip(missing)


def run(*operations: Any) -> Any:
    bench = bench_for("allocator", NativeSubject(), "emulated-cuda")
    return bench.run(Program("allocator", Configuration(streams=1), operations))


def test_foreign_calls_are_the_subjects_and_each_is_recorded_once() -> None:
    judged = run(Allocate(100), Deallocate(0))
    called = [event.kind for event in judged.history.events if event.who == "subject"]
    assert sorted(kind for kind in called if kind in MEMORY) == sorted(MEMORY)
    assert judged.broken() == {}  # so the wait for the event was seen as well, else the unmap was too early


def test_failures_strike_foreign_calls() -> None:
    judged = run(Fail("map"), Allocate(100))
    struck = [event for event in judged.history.events if event.result == "injected"]
    assert [(event.who, event.kind, event.status) for event in struck] == [("subject", "map", Status.OUT_OF_MEMORY)]
    assert "ALLOCATOR-7" in judged.broken()  # this allocator undoes nothing


def test_only_an_emulated_driver_that_is_open_can_watch(request: pytest.FixtureRequest) -> None:
    from vmm_conformance.drivers.host import HostDriver

    host = HostDriver(DriverOptions())
    request.addfinalizer(host.close)
    with pytest.raises(DriverUnavailable, match="over the driver 'host'; use emulated-cuda"):
        watch_foreign_calls("cuda", host)
