"""Graph capture, instantiation and launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from host_world import RW, G, Make, mapped, now, refused

from vmm_conformance.contracts import Copy, Fault, Range, Status, Work, Write
from vmm_conformance.drivers.host import HostDriver


@pytest.fixture
def stream(driver: HostDriver) -> int:
    return driver.stream_create()


def captured(driver: HostDriver, stream: int, act: Callable[[], object]) -> int:
    """An executable graph of what ``act`` submits."""
    driver.graph_begin(stream)
    act()
    graph = driver.graph_end(stream)
    executable = driver.graph_instantiate(graph)
    driver.graph_destroy(graph)
    return executable


def test_captured_work_is_not_run(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    driver.graph_begin(stream)
    work = driver.write(address, b"later", stream=stream)
    read = driver.read(address, 5, stream=stream)
    driver.graph_end(stream)
    driver.stream_synchronize(stream)
    assert (work.done, read.done, read.data) == (False, False, ())
    assert now(driver, address, 5) == b"\xcb" * 5


def test_a_launch_is_one_item_and_gathers_what_it_reads(driver: HostDriver, stream: int) -> None:
    heard: list[Work] = []
    driver.listen(heard.append)
    address, _ = mapped(driver)

    def act() -> None:
        driver.read(address, 2, stream=stream)
        driver.write(address, b"ab", stream=stream)
        driver.launch(stream, reads=[Range(address, 2)], copies=[Copy(address + 2, address, 2)])
        driver.fill(address, 0, 1, stream=stream)
        driver.read(address, 4, stream=stream)

    executable = captured(driver, stream, act)
    launches = [driver.graph_launch(executable, stream) for _ in range(2)]
    assert not launches[0].done
    assert driver.progress(stream) == 1
    assert launches[0].data == (b"\xcb\xcb", b"ab", b"\0bab")
    driver.stream_synchronize(stream)
    assert launches[1].data == (b"\0b", b"ab", b"\0bab")
    assert heard == launches


def test_a_graph_keeps_addresses_and_not_memory(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"old")
    executable = captured(driver, stream, lambda: driver.read(address, 3, stream=stream))
    driver.unmap(address, G)
    driver.map(address, G, driver.create(G))
    driver.set_access(address, G, {0: RW})
    driver.write(address, b"new")
    work = driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert (work.fault, work.data) == (None, (b"new",))


def test_memory_is_remembered_at_launch(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    executable = captured(driver, stream, lambda: driver.read(address, 3, stream=stream))
    work = driver.graph_launch(executable, stream)
    driver.unmap(address, G)
    cause = driver.serial
    driver.map(address, G, driver.create(G))
    driver.set_access(address, G, {0: RW})
    driver.stream_synchronize(stream)
    assert work.fault == Fault(address, 3, "remapped", cause)
    again = driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert again.fault is None


def test_a_launch_that_faults_does_nothing(driver: HostDriver, stream: int) -> None:
    good, _ = mapped(driver)
    bad, _ = mapped(driver)

    def act() -> None:
        driver.write(good, b"no", stream=stream)
        driver.write(bad, b"no", stream=stream)

    executable = captured(driver, stream, act)
    driver.unmap(bad, G)
    work = driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert work.fault is not None
    assert work.fault.reason == "unmapped"
    assert now(driver, good, 2) == b"\xcb\xcb"


def test_captured_writes_carry_their_bytes(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    buffer: Any = bytearray(b"then")
    executable = captured(driver, stream, lambda: driver.launch(stream, writes=[Write(address, buffer)]))
    buffer[:] = b"now!"
    driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert now(driver, address, 4) == b"then"


def test_memory_calls_go_on_during_capture(driver: HostDriver, stream: int) -> None:
    driver.graph_begin(stream)
    address, handle = mapped(driver)
    driver.write(address, b"x")
    assert driver.retain(address) == handle
    driver.get_access(address, 0)
    driver.granularity()
    driver.mem_info()
    driver.unmap(address, G)
    driver.release(handle)
    driver.release(handle)
    driver.address_free(address, G)
    driver.free(driver.alloc(8))
    executable = driver.graph_instantiate(driver.graph_end(stream))
    work = driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert (work.done, work.fault, work.data) == (True, None, ())


@pytest.mark.parametrize("ask", ["stream_synchronize", "stream_query", "device_synchronize"])
def test_waiting_for_a_capturing_stream_spoils_the_capture(driver: HostDriver, stream: int, ask: str) -> None:
    driver.graph_begin(stream)
    with refused(Status.STREAM_CAPTURE_UNSUPPORTED, "is capturing; call graph_end first"):
        getattr(driver, ask)(0 if ask == "device_synchronize" else stream)
    with refused(Status.STREAM_CAPTURE_INVALIDATED, "was spoiled"):
        driver.read(0, 1, stream=stream)
    with refused(Status.STREAM_CAPTURE_INVALIDATED):
        driver.stream_synchronize(stream)
    with refused(Status.STREAM_CAPTURE_INVALIDATED):
        driver.graph_end(stream)
    driver.stream_synchronize(stream)
    driver.graph_begin(stream)
    driver.graph_end(stream)


def test_events_are_refused_on_a_capturing_stream_and_spoil_nothing(driver: HostDriver, stream: int) -> None:
    event = driver.event_create()
    driver.event_record(event, driver.stream_create())
    driver.graph_begin(stream)
    with refused(Status.STREAM_CAPTURE_UNSUPPORTED):
        driver.event_record(event, stream)
    with refused(Status.STREAM_CAPTURE_UNSUPPORTED):
        driver.stream_wait_event(stream, event)
    driver.event_synchronize(event)
    driver.graph_end(stream)


def test_other_streams_go_on_during_capture(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    other = driver.stream_create()
    pending = driver.fill(address, 1, 1, stream=stream)
    driver.graph_begin(stream)
    work = driver.read(address, 1, stream=other)
    driver.stream_synchronize(other)
    assert driver.progress(stream) == 1
    assert (pending.done, work.done) == (True, True)
    driver.graph_end(stream)


def test_a_graph_launched_while_capturing_becomes_part_of_the_capture(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    inner = captured(driver, stream, lambda: driver.fill(address, 5, 2, stream=stream))
    outer = captured(driver, stream, lambda: driver.graph_launch(inner, stream))
    assert now(driver, address, 1) == b"\xcb"
    driver.graph_launch(outer, stream)
    driver.stream_synchronize(stream)
    assert now(driver, address, 2) == b"\5\5"


def test_begin_and_end_come_in_pairs(driver: HostDriver, stream: int) -> None:
    with refused(Status.ILLEGAL_STATE, "is not capturing"):
        driver.graph_end(stream)
    driver.graph_begin(stream)
    with refused(Status.ILLEGAL_STATE, "is capturing already"):
        driver.graph_begin(stream)
    driver.graph_end(stream)


def test_lifetimes(driver: HostDriver, stream: int) -> None:
    address, _ = mapped(driver)
    driver.graph_begin(stream)
    driver.fill(address, 3, 1, stream=stream)
    graph = driver.graph_end(stream)
    first, second = driver.graph_instantiate(graph), driver.graph_instantiate(graph)
    driver.graph_destroy(graph)
    work = driver.graph_launch(first, stream)
    driver.graph_exec_destroy(first)
    driver.graph_launch(second, stream)
    driver.stream_synchronize(stream)
    assert work.done
    calls: list[Callable[[int], object]] = [driver.graph_destroy, driver.graph_instantiate]
    for bad in (0, graph, second, stream):
        for call in calls:
            with refused(Status.INVALID_HANDLE, f"{bad} is no graph"):
                call(bad)
    for bad in (0, graph, first, stream):
        with refused(Status.INVALID_HANDLE, f"{bad} is no executable graph"):
            driver.graph_exec_destroy(bad)
        with refused(Status.INVALID_HANDLE):
            driver.graph_launch(bad, stream)
    with refused(Status.INVALID_HANDLE, "is no stream"):
        driver.graph_launch(second, 0)


def test_destroying_or_closing_in_the_middle_of_a_capture(make: Make) -> None:
    driver = make()
    address, _ = mapped(driver)
    for destroy in (True, False):
        stream = driver.stream_create()
        driver.graph_begin(stream)
        driver.read(address, 1, stream=stream)
        if destroy:
            driver.stream_destroy(stream)
            driver.device_synchronize()
    driver.close()


def test_eager_graphs(make: Make) -> None:
    driver = make(schedule="eager")
    stream = driver.stream_create()
    address, _ = mapped(driver)
    executable = captured(driver, stream, lambda: driver.fill(address, 4, 1, stream=stream))
    assert now(driver, address, 1) == b"\xcb"
    assert driver.graph_launch(executable, stream).done
    assert now(driver, address, 1) == b"\4"
