"""Queued work: what it may touch, when, and who is blamed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from host_world import NONE, READ, RW, G, Make, mapped, now, refused, row

from vmm_conformance.contracts import Copy, Fault, Range, Status, Work, Write
from vmm_conformance.drivers.host import HostDriver


@pytest.fixture
def stream(driver: HostDriver) -> int:
    return driver.stream_create()


# -- at once


def test_host_work_is_done_at_once_and_reported_to_nobody(driver: HostDriver) -> None:
    heard: list[Work] = []
    driver.listen(heard.append)
    address, _ = mapped(driver)
    done = [driver.write(address, b"abcdef"), driver.copy(address + 8, address, 6), driver.fill(address + 1, 0, 2)]
    done.append(driver.read(address, 14))
    assert all(work.done and work.fault is None for work in done)
    assert done[-1].data == (b"a\0\0def\xcb\xcbabcdef",)
    assert len({work.id for work in done}) == 4
    assert heard == []


def test_host_work_on_nothing(driver: HostDriver) -> None:
    reserved = driver.reserve(G)
    for address in (reserved, 0, 1 << 60, -5):
        with refused(Status.ILLEGAL_ADDRESS, "cannot read .* unmapped"):
            driver.read(address, 1)
        with refused(Status.ILLEGAL_ADDRESS, "cannot write"):
            driver.fill(address, 0, 1)


def test_host_work_that_fails_half_way_does_nothing(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.fill(address, 1, G)
    with refused(Status.ILLEGAL_ADDRESS):
        driver.fill(address, 2, G + 1)
    with refused(Status.ILLEGAL_ADDRESS):
        driver.copy(address + 8, address, G)
    assert now(driver, address, G) == b"\1" * G


def test_overlapping_copies_keep_the_bytes(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"abcdefgh")
    driver.copy(address + 2, address, 6)
    assert now(driver, address, 8) == b"ababcdef"


def test_sizes_and_values(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    assert driver.read(address, 0).data == (b"",)
    driver.fill(0, 0, 0)
    driver.copy(0, 0, 0, stream=stream)
    calls: list[Callable[[], object]] = [
        lambda: driver.read(address, -1),
        lambda: driver.fill(address, 0, -1),
        lambda: driver.fill(address, 256, 1),
        lambda: driver.fill(address, -1, 1),
        lambda: driver.copy(address, address, -1, stream=stream),
        lambda: driver.launch(stream, reads=[Range(address, -1)]),
        lambda: driver.launch(stream, copies=[Copy(address, address, -1)]),
    ]
    for call in calls:
        with refused(Status.INVALID_VALUE):
            call()


def test_a_range_may_span_the_mappings_of_one_reservation(driver: HostDriver) -> None:
    base, _ = row(driver, 3)
    driver.set_access(base, 3 * G, {0: RW})
    data = bytes(index % 253 for index in range(2 * G))
    driver.write(base + 7, data)
    driver.copy(base + G - 3, base + 7, G + 11)
    assert now(driver, base + G - 3, G + 11) == data[: G + 11]


def test_a_range_may_not_span_reservations(driver: HostDriver, stream: int) -> None:
    first, _ = mapped(driver)
    second, _ = mapped(driver)
    assert second == first + G
    with refused(Status.ILLEGAL_ADDRESS):
        driver.read(first, 2 * G)
    work = driver.read(first, 2 * G, stream=stream)
    driver.stream_synchronize(stream)
    assert work.fault == Fault(first, 2 * G, "unmapped")


# -- queued


def test_queued_work_runs_when_asked_and_tells_the_listener(driver: HostDriver, stream: int) -> None:
    heard: list[Work] = []
    driver.listen(heard.append)
    address, _ = mapped(driver)
    write = driver.write(address, b"queued", stream=stream)
    read = driver.read(address, 6, stream=stream)
    assert (write.done, read.done, read.data) == (False, False, ())
    assert now(driver, address, 6) == b"\xcb" * 6
    driver.stream_synchronize(stream)
    assert heard == [write, read]
    assert (read.done, read.data, write.data) == (True, (b"queued",), ())


def test_data_is_taken_at_submission(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    buffer: Any = bytearray(b"before")
    driver.write(address, buffer, stream=stream)
    driver.launch(stream, writes=[Write(address + 8, buffer)])
    buffer[:] = b"after!"
    driver.stream_synchronize(stream)
    assert (now(driver, address, 6), now(driver, address + 8, 6)) == (b"before", b"before")


def test_a_launch_reads_then_copies_then_writes(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"one two ")
    work = driver.launch(
        stream,
        writes=[Write(address, b"new"), Write(address + 1, b"E")],
        copies=[Copy(address + 4, address, 3), Copy(address + 8, address + 4, 3)],
        reads=[Range(address, 3), Range(address + 4, 3)],
    )
    assert driver.progress(stream) == 1, "one item"
    assert work.data == (b"one", b"two")
    assert now(driver, address, 11) == b"nEwone \xcb"[:3] + b" one one"


def fault_of(driver: HostDriver, stream: int, address: int, size: int, act: Callable[[], object]) -> Fault | None:
    """The fault of a write queued before ``act``."""
    work = driver.fill(address, 1, size, stream=stream)
    following = driver.read(address, size, stream=stream)
    act()
    driver.stream_synchronize(stream)
    assert work.done
    assert following.done
    return work.fault


def test_unmapped_under_queued_work(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    fault = fault_of(driver, stream, address + 4, 8, lambda: driver.unmap(address, G))
    assert fault == Fault(address + 4, 8, "unmapped", driver.serial)


def test_the_cause_is_the_call_that_took_it_not_a_later_one(driver: HostDriver, stream: int) -> None:
    address, handle = mapped(driver)
    work = driver.read(address, 1, stream=stream)
    driver.unmap(address, G)
    cause = driver.serial
    driver.release(handle)
    driver.address_free(address, G)
    driver.stream_synchronize(stream)
    assert work.fault == Fault(address, 1, "unmapped", cause)


def test_remapped_under_queued_work(driver: HostDriver, stream: int) -> None:
    address, handle = mapped(driver)
    causes = []

    def remap(other: int) -> None:
        driver.unmap(address, G)
        causes.append(driver.serial)
        driver.map(address, G, other)
        driver.set_access(address, G, {0: RW})

    for other in (driver.create(G), handle):  # the same handle again is another mapping, too
        fault = fault_of(driver, stream, address, 8, partial(remap, other))
        assert fault == Fault(address, 8, "remapped", causes[-1])
    assert now(driver, address, 1) == b"\xcb", "the work did nothing"


def test_freed_under_queued_work(driver: HostDriver, stream: int) -> None:
    address = driver.alloc(64)
    fault = fault_of(driver, stream, address, 64, lambda: driver.free(address))
    assert fault == Fault(address, 64, "freed", driver.serial)
    assert driver.alloc(64) == address
    work = driver.read(address, 64, stream=stream)
    driver.free(address)
    cause = driver.serial
    assert driver.alloc(64) == address
    driver.stream_synchronize(stream)
    assert work.fault == Fault(address, 64, "freed", cause)


def test_rights_taken_under_queued_work(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    fault = fault_of(driver, stream, address, 1, lambda: driver.set_access(address, G, {0: READ}))
    assert fault == Fault(address, 1, "read only", driver.serial)
    driver.set_access(address, G, {0: RW})
    fault = fault_of(driver, stream, address, 1, lambda: driver.set_access(address, G, {0: NONE}))
    assert fault == Fault(address, 1, "no access", driver.serial)


def test_rights_that_never_were_have_no_cause(driver: HostDriver, stream: int) -> None:
    for right, reason in ((None, "no access"), (READ, "read only")):
        address, _ = mapped(driver, rights=right)
        assert fault_of(driver, stream, address, 1, lambda: None) == Fault(address, 1, reason)


def test_memory_must_be_there_at_submission_on_every_schedule(make: Make) -> None:
    for schedule in ("late", "eager"):
        driver = make(schedule=schedule)
        stream = driver.stream_create()
        address = driver.reserve(G)
        works = [driver.read(address, 1, stream=stream)]
        driver.map(address, G, driver.create(G))
        works.append(driver.read(address, 1, stream=stream))
        driver.set_access(address, G, {0: RW})
        works.append(driver.read(address, 1, stream=stream))
        driver.stream_synchronize(stream)
        assert [work.fault and work.fault.reason for work in works] == ["unmapped", "no access", None]


def test_work_submitted_after_the_unmap_is_blamed_on_it_too(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    driver.unmap(address, G)
    cause = driver.serial
    driver.reserve(G)
    assert fault_of(driver, stream, address, 8, lambda: None) == Fault(address, 8, "unmapped", cause)
    plain = driver.alloc(8)
    driver.free(plain)
    assert fault_of(driver, stream, plain, 8, lambda: None) == Fault(plain, 8, "freed", driver.serial)


def test_one_mapping_of_a_spanned_range_is_enough(driver: HostDriver, stream: int) -> None:
    base, _ = row(driver, 3)
    driver.set_access(base, 3 * G, {0: RW})
    fault = fault_of(driver, stream, base + 1, 3 * G - 2, lambda: driver.unmap(base + 2 * G, G))
    assert fault == Fault(base + 1, 3 * G - 2, "unmapped", driver.serial)
    assert now(driver, base, 2 * G) == b"\xcb" * (2 * G)


def test_an_item_that_faults_does_nothing_and_the_stream_goes_on(driver: HostDriver, stream: int) -> None:
    good, _ = mapped(driver)
    bad, _ = mapped(driver)
    work = driver.launch(stream, reads=[Range(good, 4)], writes=[Write(good, b"no"), Write(bad, b"no")])
    after = driver.write(good + 8, b"yes", stream=stream)
    driver.unmap(bad, G)
    driver.stream_synchronize(stream)
    assert work.fault is not None
    assert (work.done, work.data, work.fault.address) == (True, (), bad)
    assert after.fault is None
    assert now(driver, good, 11) == b"\xcb" * 8 + b"yes"


def test_rights_are_those_of_the_streams_device(make: Make) -> None:
    driver = make(devices=2)
    address, _ = mapped(driver)
    works = [driver.read(address, 1, stream=driver.stream_create(device)) for device in (0, 1)]
    for device in (0, 1):
        driver.device_synchronize(device)
    assert [work.fault and work.fault.reason for work in works] == [None, "no access"]
    driver.set_access(address, G, {0: NONE, 1: READ})
    assert now(driver, address, 1) == b"\xcb", "the host may read what some device may"


def test_parts_of_a_mapping_are_checked_part_by_part(make: Make) -> None:
    driver = make(capabilities={"set_access_part_of_mapping": True})
    stream = driver.stream_create()
    address, _ = mapped(driver, 3)
    work = [driver.read(address + at * G, G, stream=stream) for at in range(3)]
    driver.set_access(address + G, G, {0: NONE})
    cause = driver.serial
    driver.stream_synchronize(stream)
    assert [w.fault for w in work] == [None, Fault(address + G, G, "no access", cause), None]


@pytest.mark.parametrize("waits", [True, False])
def test_whether_unmap_waits_is_a_capability(make: Make, waits: bool) -> None:
    driver = make(capabilities={"unmap_waits": waits})
    address, _ = mapped(driver)
    work = driver.read(address, 1, stream=driver.stream_create())
    driver.unmap(address, G)
    driver.device_synchronize()
    assert (work.fault is None) == waits
