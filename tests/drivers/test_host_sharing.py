"""Facts about handles, and memory shared as file descriptors, also with another process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from vmm_conformance.contracts import Access, DriverCapabilities, DriverError, DriverOptions, Status
from vmm_conformance.contracts.sharing import HandleProperties, SharingDriver
from vmm_conformance.drivers.host.driver import HostDriver

G = 4096

CHILD = """
import os, sys
from vmm_conformance.contracts import Access, DriverOptions
from vmm_conformance.drivers.host.driver import HostDriver
driver = HostDriver(DriverOptions())
descriptor = int(sys.argv[1])
handle = driver.import_handle(descriptor)
os.close(descriptor)
address = driver.reserve(4096)
driver.map(address, 4096, handle)
driver.set_access(address, 4096, {0: Access.READ_WRITE})
print(driver.read(address, 6).data[0].decode())
driver.write(address, b"child!")
os._exit(0 if sys.stdout.flush() is None else 1)
"""


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    made = HostDriver(DriverOptions(devices=2))
    yield made
    made.close()


def mapped(driver: HostDriver, handle: int) -> int:
    address = driver.reserve(G)
    driver.map(address, G, handle)
    driver.set_access(address, G, {0: Access.READ_WRITE})
    return address


def test_the_host_driver_has_the_calls(driver: HostDriver) -> None:
    assert isinstance(driver, SharingDriver)


@pytest.mark.parametrize("option", [-1, 2, 255])
def test_an_unknown_granularity_option_is_refused(driver: HostDriver, option: int) -> None:
    assert (driver.granularity_option(0), driver.granularity_option(1)) == driver.granularity()
    with pytest.raises(DriverError, match=f"option {option} is unknown") as caught:
        driver.granularity_option(option)
    assert caught.value.status == Status.INVALID_VALUE


def test_properties_round_trip(driver: HostDriver) -> None:
    assert driver.properties(driver.create(G, device=1)) == HandleProperties(1, 1, 1, 0)
    shared = driver.create_shareable(G, device=1)
    descriptor = driver.export_handle(shared)
    assert driver.properties(driver.import_handle(descriptor)) == HandleProperties(1, 1, 1, 1)
    os.close(descriptor)


def test_only_plain_memory_has_a_legacy_handle(driver: HostDriver) -> None:
    assert driver.legacy_ipc_handle(driver.alloc(G))
    with pytest.raises(DriverError, match="is no plain memory"):
        driver.legacy_ipc_handle(mapped(driver, driver.create(G)))


@pytest.mark.parametrize(("kind", "flags"), [(2, 0), (0, 0), (1, 1)])
def test_export_wants_the_requested_type_and_no_flags(driver: HostDriver, kind: int, flags: int) -> None:
    with pytest.raises(DriverError, match="create it for that type"):
        driver.export_handle(driver.create_shareable(G), kind=kind, flags=flags)


def test_memory_created_for_no_type_is_not_exported(driver: HostDriver) -> None:
    with pytest.raises(DriverError, match="was created for type 0"):
        driver.export_handle(driver.create(G))


def test_a_foreign_or_closed_descriptor_is_refused(driver: HostDriver) -> None:
    read, write = os.pipe()
    os.close(write)
    with pytest.raises(DriverError, match="is no memory of this driver"):
        driver.import_handle(read)
    os.close(read)
    with pytest.raises(DriverError, match="is not open"):
        driver.import_handle(read)


def test_two_exports_close_apart_and_memory_outlives_its_first_handle(driver: HostDriver) -> None:
    first = driver.create_shareable(G)
    address = mapped(driver, first)
    driver.write(address, b"before")
    one, two = driver.export_handle(first), driver.export_handle(first)
    os.close(one)
    driver.unmap(address, G)
    driver.release(first)
    other = mapped(driver, driver.import_handle(two))
    os.close(two)
    assert driver.read(other, 6).data == (b"before",)


def test_shared_memory_is_paid_for_once_and_comes_back_with_its_last_handle(driver: HostDriver) -> None:
    free = driver.mem_info().free
    first = driver.create_shareable(G)
    descriptor = driver.export_handle(first)
    second = driver.import_handle(descriptor)
    os.close(descriptor)
    assert driver.mem_info().free == free - G
    driver.release(first)
    assert driver.mem_info().free == free - G
    driver.release(second)
    assert driver.mem_info().free == free


def test_another_process_sees_writes_and_is_seen(driver: HostDriver) -> None:
    handle = driver.create_shareable(G)
    address = mapped(driver, handle)
    driver.write(address, b"parent")
    descriptor = driver.export_handle(handle)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(descriptor)],
        pass_fds=[descriptor], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    os.close(descriptor)
    assert (child.returncode, child.stdout.strip(), child.stderr) == (0, "parent", "")
    assert driver.read(address, 6).data == (b"child!",)


def test_fresh_shared_memory_is_poison_and_close_leaves_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    driver = HostDriver(DriverOptions())
    address = mapped(driver, driver.create_shareable(G))
    assert driver.read(address, 2).data == (b"\xcb\xcb",)
    driver.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # an idle backing may keep its file


def test_memory_that_the_system_does_not_have_is_refused_and_leaves_no_descriptor(
    driver: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes, start: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    before, free = len(os.listdir("/proc/self/fd")), driver.mem_info().free
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(DriverError, match=f"no {G} bytes of memory left to share: .* No space left") as caught:
            driver.create_shareable(G)
    assert caught.value.status == Status.OUT_OF_MEMORY
    assert (len(os.listdir("/proc/self/fd")), driver.mem_info().free) == (before, free)


def test_a_driver_that_declares_no_sharing_refuses_it() -> None:
    driver = HostDriver(DriverOptions(capabilities=DriverCapabilities(sharing=False)))
    for call in (driver.create_shareable, driver.export_handle, driver.import_handle):
        with pytest.raises(DriverError, match="shares no memory") as caught:
            call(G)
        assert caught.value.status == Status.NOT_SUPPORTED
    driver.close()
