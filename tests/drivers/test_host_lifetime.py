"""What a host driver gives back, to whom it belongs, and who may call it."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from host_world import PRELUDE, G, Make, mapped, now, refused, run_python

from vmm_conformance.contracts import Driver, DriverCapabilities, DriverOptions, Live, Status
from vmm_conformance.drivers.host import HostDriver, memory


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def areas() -> int:
    return Path("/proc/self/maps").read_text().count("\n")


def test_a_thousand_drivers_leave_nothing() -> None:
    def use() -> None:
        driver = HostDriver(DriverOptions())
        for granules in (1, 3):
            address, _ = mapped(driver, granules)
            driver.fill(address, 1, granules * G)
        driver.write(driver.alloc(G), b"x")
        driver.read(address, 8, stream=driver.stream_create())
        driver.close()

    for _ in range(10):
        use()
    gc.collect()
    before = descriptors(), areas()
    resident = memory._idle[-1]
    for _ in range(1000):
        use()
    assert (descriptors(), areas()) == before
    assert memory._idle[-1] is resident
    assert os.fstat(resident.file).st_blocks == 0


def test_a_driver_that_is_forgotten_gives_everything_back() -> None:
    gc.collect()
    memory._idle.clear()
    before = descriptors()
    for _ in range(20):
        driver = HostDriver(DriverOptions())
        mapped(driver)
        del driver
    gc.collect()
    assert descriptors() == before


def test_close_is_idempotent_and_final(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    stream = driver.stream_create()
    work = driver.read(address, 1, stream=stream)
    driver.close()
    driver.close()
    assert work.done
    calls: list[Callable[[], object]] = [
        lambda: driver.reserve(G),
        lambda: driver.read(address, 1),
        lambda: driver.unmap(address, G),
        driver.mem_info,
        driver.live,
    ]
    for call in calls:
        with refused(Status.DEINITIALIZED, "this driver is closed"):
            call()


def test_close_cleans_up_even_if_a_listener_fails() -> None:
    driver = HostDriver(DriverOptions())
    address, _ = mapped(driver)
    driver.read(address, 1, stream=driver.stream_create())

    def fail(_: object) -> None:
        raise RuntimeError("listener")

    driver.listen(fail)
    idle = len(memory._idle)
    with pytest.raises(RuntimeError, match="listener"):
        driver.close()
    driver.close()
    assert len(memory._idle) == idle + 1


def test_two_drivers_at_a_time_have_nothing_in_common(make: Make) -> None:
    first, second = make(), make()
    a, _ = mapped(first)
    b, _ = mapped(second)
    first.fill(a, 1, G)
    second.fill(b, 2, G)
    assert a != b
    assert (now(first, a, 2), now(second, b, 2)) == (b"\1\1", b"\2\2")
    with refused(Status.INVALID_VALUE):
        first.unmap(b, G)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_share_an_idle_backing() -> None:
    HostDriver(DriverOptions()).close()
    done = run_python(
        "import os\n"
        + PRELUDE
        + """
driver.close()
child = os.fork()
driver = HostDriver(DriverOptions())
address = driver.reserve(G)
handle = driver.create(G)
driver.map(address, G, handle)
driver.set_access(address, G, {0: Access.READ_WRITE})
driver.fill(address, 1 if child else 2, G)
if child:
    os.waitpid(child, 0)
    print(driver.read(address, 1).data[0])
driver.close()
"""
    )
    assert done.stdout == "b'\\x01'\n", done.stderr


# -- threads


def test_threads_with_lives_of_their_own(make: Make) -> None:
    driver = make(capacity=1 << 30)
    errors: list[BaseException] = []
    base = driver.reserve(8 * G)

    def lives(index: int) -> None:
        try:
            for turn in range(100):
                address, handle = mapped(driver, 1 + turn % 3)
                size = (1 + turn % 3) * G
                driver.fill(address, index, size)
                part = driver.create(G)
                driver.map(base + index * G, G, part)
                assert now(driver, address, size) == bytes([index]) * size
                driver.unmap(base + index * G, G)
                driver.release(part)
                driver.unmap(address, size)
                driver.release(handle)
                driver.address_free(address, size)
        except BaseException as error:
            errors.append(error)

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=lives, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(old)
    assert errors == []
    assert driver.live() == Live(1, 0, 0, 0, 0)


def test_serial_counts_the_memory_calls_that_succeed(driver: HostDriver) -> None:
    assert driver.serial == 0
    address, handle = mapped(driver)  # reserve, create, map, set_access
    assert driver.serial == 4
    with refused(Status.INVALID_VALUE):
        driver.map(address, G, handle)
    driver.read(address, 1)
    driver.get_access(address, 0)
    stream = driver.stream_create()
    driver.read(address, 1, stream=stream)
    driver.stream_synchronize(stream)
    assert driver.serial == 4
    driver.retain(address)
    driver.release(handle)
    plain = driver.alloc(1)
    driver.free(plain)
    driver.unmap(address, G)
    driver.address_free(address, G)
    driver.release(handle)
    assert driver.serial == 11


def test_it_is_a_driver_by_the_contract() -> None:
    driver: Driver = HostDriver(DriverOptions(capabilities=DriverCapabilities(partial_map=False)))
    names = [name for name in vars(Driver) if not name.startswith("_")]
    assert [name for name in names if not hasattr(driver, name)] == []
    assert not driver.capabilities.partial_map
    driver.close()
