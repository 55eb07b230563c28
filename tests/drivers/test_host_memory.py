"""Real memory: native faults, poison, and what the system refuses."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import pytest
from host_world import NONE, PRELUDE, READ, RW, G, Make, mapped, now, row, run_python, unchanged

from vmm_conformance.contracts import DriverOptions, Status
from vmm_conformance.drivers.host import HostDriver, HostUnsupported, system


@pytest.mark.parametrize(
    "crime",
    [
        "ctypes.string_at(base + G, 1)",
        "driver.unmap(base, G); ctypes.string_at(base, 1)",
        "driver.set_access(base, G, {0: Access.NONE}); ctypes.string_at(base, 1)",
        "driver.set_access(base, G, {0: Access.READ}); ctypes.memset(base, 0, 1)",
        "address = driver.alloc(10); driver.free(address); ctypes.string_at(address, 1)",
        "driver.close(); ctypes.string_at(base, 1)",
        "other = driver.reserve(G); driver.map(other, G, handle); ctypes.string_at(other, 1)",
    ],
)
def test_native_code_that_strays_dies(crime: str) -> None:
    done = run_python(f"{PRELUDE}\nprint('alive', flush=True)\n{crime}\nprint('survived', flush=True)")
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "alive\n"), done.stderr


def test_native_code_and_the_driver_see_one_memory(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    alias = driver.reserve(G)
    driver.map(alias, G, handle)
    driver.set_access(alias, G, {0: READ})
    driver.write(address, b"by the driver")
    assert ctypes.string_at(alias, 13) == b"by the driver"
    ctypes.memmove(address, b"by native", 9)
    assert now(driver, alias, 13) == b"by nativeiver"


def test_what_native_code_wrote_first_is_not_poisoned(driver: HostDriver) -> None:
    address, _ = mapped(driver, 4)
    ctypes.memmove(address + G + 5, b"native", 6)
    assert now(driver, address, 4 * G) == b"\xcb" * G + bytes(5) + b"native" + bytes(G - 11) + b"\xcb" * (2 * G)


# -- poison


def test_fresh_memory_reads_as_poison(driver: HostDriver) -> None:
    address, _ = mapped(driver, 3)
    assert now(driver, address + 100, 2 * G) == b"\xcb" * (2 * G)
    driver.write(address + G + 10, b"here")
    assert now(driver, address, 3 * G) == b"\xcb" * (G + 10) + b"here" + b"\xcb" * (2 * G - 14)


@pytest.mark.parametrize(
    ("start", "size"), [(0, 1), (0, G), (1, G), (G - 1, 2), (G, 2 * G), (7, 3 * G), (0, 4 * G), (3 * G + 1, G - 1)]
)
def test_around_a_write_is_poison(driver: HostDriver, start: int, size: int) -> None:
    address, _ = mapped(driver, 4)
    driver.fill(address + start, 1, size)
    assert now(driver, address, 4 * G) == b"\xcb" * start + b"\1" * size + b"\xcb" * (4 * G - start - size)


def test_poison_reaches_across_mappings(driver: HostDriver) -> None:
    base, _ = row(driver, 3)
    driver.set_access(base, 3 * G, {0: RW})
    driver.copy(base + 2 * G + 1, base + 10, 5)
    driver.fill(base + G - 1, 0, 2)
    assert now(driver, base, 3 * G) == b"\xcb" * (G - 1) + b"\0\0" + b"\xcb" * (2 * G - 1)


def test_released_memory_comes_back_as_poison(driver: HostDriver) -> None:
    for _ in range(3):
        address, handle = mapped(driver)
        assert now(driver, address, G) == b"\xcb" * G
        driver.fill(address, 0, G)
        driver.unmap(address, G)
        driver.release(handle)
        driver.address_free(address, G)


def test_a_new_driver_has_fresh_memory() -> None:
    for _ in range(3):
        driver = HostDriver(DriverOptions())
        address, _ = mapped(driver)
        plain = driver.alloc(G)
        assert now(driver, address, G) + now(driver, plain, G) == b"\xcb" * (2 * G)
        driver.fill(address, 0, G)
        driver.fill(plain, 0, G)
        driver.close()


def test_large_memory_is_poisoned_only_where_touched(make: Make) -> None:
    driver = make(capacity=1 << 34)
    size = 1 << 33
    address = driver.reserve(size)
    driver.map(address, size, driver.create(size))
    driver.set_access(address, size, {0: RW})
    before = resident_file_bytes(driver)
    assert now(driver, address + size - 3, 3) == b"\xcb" * 3
    assert resident_file_bytes(driver) - before == G


def resident_file_bytes(driver: HostDriver) -> int:
    return os.fstat(driver._file).st_blocks * 512


def test_memory_goes_back_to_the_system_at_release(driver: HostDriver) -> None:
    empty = resident_file_bytes(driver)
    address, handle = mapped(driver, 256)
    driver.fill(address, 1, 256 * G)
    assert resident_file_bytes(driver) - empty == 256 * G
    driver.unmap(address, 256 * G)
    assert resident_file_bytes(driver) - empty == 256 * G
    driver.release(handle)
    assert resident_file_bytes(driver) == empty
    plain = driver.alloc(10 * G)
    driver.fill(plain, 1, 10 * G)
    driver.free(plain)
    assert resident_file_bytes(driver) == empty


# -- what the system refuses


class Refuses:
    """Stands in for a system call and fails from the ``after``-th time on."""

    def __init__(self, call: object, answer: int, after: int = 0) -> None:
        self.call, self.answer, self.left = call, answer, after

    def __call__(self, *arguments: int) -> int:
        if self.left == 0:
            return self.answer
        self.left -= 1
        return self.call(*arguments)  # type: ignore[operator, no-any-return]


def test_a_refused_system_call_changes_nothing(driver: HostDriver) -> None:
    shown, _ = mapped(driver)
    driver.write(shown, b"kept")
    hidden, _ = mapped(driver, rights=None)
    plain = driver.alloc(10)
    mmap, mprotect = driver._mmap, driver._mprotect
    driver._mmap, driver._mprotect = Refuses(mmap, system.FAILED), Refuses(mprotect, -1)
    with unchanged(driver, Status.UNMAP_FAILED, "the system refused"):
        driver.unmap(shown, G)
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.set_access(shown, G, {0: READ})
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.set_access(shown, G, {0: NONE})
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.set_access(hidden, G, {0: READ})
    with unchanged(driver, Status.UNMAP_FAILED):
        driver.free(plain)
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.alloc(10)
    driver._mmap, driver._mprotect = mmap, mprotect
    assert now(driver, shown, 4) == b"kept"
    driver.unmap(shown, G)


def test_set_access_over_several_is_undone_when_one_is_refused(driver: HostDriver) -> None:
    base, _ = row(driver, 4)
    driver.set_access(base, G, {0: RW})
    driver.set_access(base + G, G, {0: READ})
    mmap = driver._mmap
    driver._mmap = Refuses(mmap, system.FAILED, after=1)
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.set_access(base, 4 * G, {0: READ})
    driver._mmap = mmap
    ctypes.memset(base, 1, G)  # would die if the first mapping were read-only still
    driver.set_access(base, 4 * G, {0: RW})


def test_at_the_limit_of_mappings_an_unmap_is_refused_and_changes_nothing() -> None:
    code = """
from vmm_conformance.contracts import Access, DriverError, DriverOptions, Status
from vmm_conformance.drivers.host import HostDriver, system
G = 4096
driver = HostDriver(DriverOptions(capacity=1 << 40))
base = driver.reserve(3 * G)
handle = driver.create(G)
for index in range(3):  # parts of one area for the system: taking the middle one away needs two more
    driver.map(base + index * G, G, driver.create(G))
driver.set_access(base, 3 * G, {0: Access.READ_WRITE})
driver.fill(base, 5, 3 * G)
calls, filler = system.system_calls(), []
limit = int(open("/proc/sys/vm/max_map_count").read())
if limit > 200_000:
    print("limit too high"); raise SystemExit
where = calls.mmap(0, 2 * limit * G, 0, system.RESERVE, -1, 0)
at = where
while calls.mprotect(at + G, G, 1) == 0:
    at += 2 * G
while calls.mprotect(at + G, G, 1) == 0:
    at += G
try:
    driver.unmap(base + G, G)
except DriverError as error:
    assert error.status in (Status.UNMAP_FAILED,), error
    assert "max_map_count" in error.detail, error
else:
    raise SystemExit("the unmap went through")
assert driver.read(base, 3 * G).data[0] == bytes([5]) * (3 * G)
calls.munmap(where, 2 * limit * G)
driver.unmap(base + G, G)
driver.close()
print("good")
"""
    done = run_python(code)
    if done.stdout == "limit too high\n":
        pytest.skip("vm.max_map_count is too high to reach here")
    assert done.stdout == "good\n", done.stderr + done.stdout


def test_where_linux_is_missing_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    system.system_calls.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(
        HostUnsupported, match="needs Linux with memfd_create and MAP_FIXED, and this is darwin; run it"
    ):
        system.system_calls()
    monkeypatch.undo()
    system.system_calls()
