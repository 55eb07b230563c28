"""The driver over a vendor's calls, without a vendor: what it makes of answers that no emulation gives."""

from __future__ import annotations

import ctypes
from threading import Thread
from typing import Any, Final

import pytest
from adapter_world import FakeCalls

from vmm_conformance.contracts import DriverError, DriverOptions, Status, Work
from vmm_conformance.drivers.calls import DriverUnavailable, answered, ask
from vmm_conformance.drivers.device import DeviceDriver
from vmm_conformance.running.driver_children import look


def _driver(calls: FakeCalls, **options: Any) -> DeviceDriver:
    return DeviceDriver(calls, DriverOptions(**options))  # type: ignore[arg-type]


@pytest.fixture
def calls() -> FakeCalls:
    memory: list[Any] = []

    def host_alloc(size: int) -> int:
        memory.append(ctypes.create_string_buffer(size))
        return ctypes.addressof(memory[-1])

    return FakeCalls(host_alloc=host_alloc)


def test_a_machine_without_devices_is_no_use() -> None:
    with pytest.raises(DriverUnavailable, match="the driver 'fake' finds no device; is one visible"):
        _driver(FakeCalls(device_count=0))


def test_a_device_without_virtual_memory_is_no_use() -> None:
    calls = FakeCalls(has_virtual_memory=lambda device: device == 0, device_count=2)
    assert _driver(calls).device_count == 1
    with pytest.raises(DriverUnavailable, match=r"device 1 \(Fake GPU\) of 'fake' has no virtual memory management"):
        _driver(calls, devices=2)


def test_it_takes_of_the_devices_what_there_are(calls: FakeCalls) -> None:
    driver = _driver(calls, devices=4)
    assert (driver.device_count, driver.real, driver.capabilities.progress) == (1, True, False)
    with pytest.raises(DriverError, match="device 1 is none of the 1"):
        driver.mem_info(1)


def test_peers_are_given_access_at_the_start() -> None:
    calls = FakeCalls(device_count=2, can_access_peer=lambda device, peer: (device, peer) == (1, 0))
    _driver(calls, devices=2)
    assert [call for call in calls.asked if call[0] in ("use", "enable_peer")][:2] == [("use", 1), ("enable_peer", 0)]


GIB: Final = 1 << 30


@pytest.mark.parametrize(("memory", "taken"), [(0, 32 * GIB), (4 * GIB, 4 * GIB), (48 * GIB, 32 * GIB)])
def test_of_a_device_no_more_is_taken_than_was_said_and_half_of_what_is_free_at_most(memory: int, taken: int) -> None:
    free = [64 * GIB]

    def create(size: int, _: int) -> int:
        free[0] -= size
        return free[0]

    calls = FakeCalls(mem_info=lambda: (free[0], 80 * GIB), create=create)
    driver = DeviceDriver(calls, DriverOptions(), memory)  # type: ignore[arg-type] # calls of a stand-in
    assert driver.mem_info() == (taken, 80 * GIB)
    driver.create(taken - GIB)
    driver.create(GIB // 2)
    assert driver.mem_info().free == GIB // 2
    driver.create(GIB)
    driver.create(-1, device=-1)
    driver.create((1 << 64) - GIB)
    sizes = [call[1] for call in calls.asked if call[0] == "create"]
    # More than is left is asked for as more than the device has, so that it is the device that refuses.
    assert sizes == [taken - GIB, GIB // 2, GIB + 64 * GIB - taken, (1 << 64) - 1, (1 << 64) - GIB]


def test_the_next_process_misses_each_granule_that_one_has_left() -> None:
    free = [64 * GIB, 64 * GIB - (2 << 20), 64 * GIB - (4 << 20)]
    calls: list[Any] = [FakeCalls(mem_info=(left, 80 * GIB)) for left in free]
    told = [look(DeviceDriver(each, DriverOptions()), 0) for each in calls]
    assert told == [str(left) for left in free]


def test_a_device_is_asked_what_is_free_only_where_memory_may_be_short() -> None:
    calls = FakeCalls(mem_info=(64 * GIB, 64 * GIB))
    driver = _driver(calls)
    driver.mem_info()
    del calls.asked[:]
    for _ in range(3):
        driver.create(8 * GIB)
    assert [name for name, *_ in calls.asked] == ["create"] * 3
    driver.create(9 * GIB)
    assert [name for name, *_ in calls.asked[3:]] == ["use", "mem_info", "create"]


def test_a_held_stream_is_a_function_that_waits_without_the_interpreter(calls: FakeCalls) -> None:
    driver = _driver(calls)
    stream = driver.stream_create()
    driver.hold(stream)
    _, function, data, held = calls.asked[-1]
    assert held == stream
    through = Thread(target=ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function), args=(data,))
    through.start()
    through.join(0.05)
    assert through.is_alive()
    driver.let_go(stream)
    through.join(10)
    assert not through.is_alive()


def test_what_held_a_stream_goes_once_the_stream_was_waited_for(calls: FakeCalls) -> None:
    driver = _driver(calls)
    streams = [driver.stream_create() for _ in range(2)]
    for _ in range(3):
        for stream in streams:
            driver.hold(stream)
            driver.let_go(stream)
        driver.stream_synchronize(streams[0])
    assert [len(driver._gates[stream]) for stream in streams] == [0, 3]


def test_a_driver_that_is_closed_lets_all_streams_go(calls: FakeCalls) -> None:
    driver = _driver(calls)
    driver.hold(driver.stream_create())
    _, function, data, _ = calls.asked[-1]
    driver.close()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(data)  # returns


def test_numbers_reach_the_driver_as_c_would_pass_them(calls: FakeCalls) -> None:
    driver = _driver(calls)
    driver.unmap(4096, -4096)
    driver.create(-1, device=-1)
    driver.set_access(4096, 4096, {-1: 7})  # type: ignore[dict-item]
    assert calls.asked[-3:] == [
        ("unmap", 4096, (1 << 64) - 4096), ("create", (1 << 64) - 1, -1), ("set_access", 4096, 4096, [(-1, 7)]),
    ]  # fmt: skip


def test_a_space_with_a_larger_alignment_gets_a_larger_allocation(calls: FakeCalls) -> None:
    addresses = iter((0x1100, 0x2100))
    calls.answers["alloc"] = lambda size: next(addresses)
    driver = _driver(calls)
    address = driver.alloc(100, space=5)
    assert address == 0x3000
    assert [call for call in calls.asked if call[0] in ("alloc", "free")] == [
        ("alloc", 100), ("free", 0x1100), ("alloc", 100 + 4096),
    ]  # fmt: skip
    calls.answers["address_range"] = (0x2100, 4196)
    assert driver.address_range(0x3010) == (0x3000, 100)
    driver.free(address)
    assert calls.asked[-1] == ("free", 0x2100)
    with pytest.raises(DriverError, match="no allocation begins at 0x3000"):
        driver.free(address)


def test_a_fault_of_the_device_reaches_all_work_that_was_waited_for(calls: FakeCalls) -> None:
    driver = _driver(calls)
    stream = driver.stream_create()
    told: list[Work] = []
    driver.listen(told.append)
    works = [driver.fill(4096, 1, 8, stream=stream), driver.read(4096, 8, stream=stream)]
    calls.answers["stream_synchronize"] = DriverError(700, "stream_synchronize", "an illegal address")
    with pytest.raises(DriverError) as raised:
        driver.stream_synchronize(stream)
    assert raised.value.status == Status.ILLEGAL_ADDRESS
    assert told == works
    assert all(work.done and work.fault and work.data == () for work in works)


def test_another_error_while_waiting_leaves_work_in_flight(calls: FakeCalls) -> None:
    driver = _driver(calls)
    stream = driver.stream_create()
    work = driver.fill(4096, 1, 8, stream=stream)
    calls.answers["stream_synchronize"] = DriverError(900, "stream_synchronize", "the stream captures")
    with pytest.raises(DriverError, match="STREAM_CAPTURE_UNSUPPORTED"):
        driver.stream_synchronize(stream)
    assert not work.done


def test_work_is_reported_behind_what_its_stream_waited_for(calls: FakeCalls) -> None:
    driver = _driver(calls)
    first, second, event = driver.stream_create(), driver.stream_create(), driver.event_create()
    told: list[int] = []
    driver.listen(lambda work: told.append(work.id))
    one = driver.fill(1, 1, 1, stream=first)
    driver.event_record(event, first)
    late = driver.fill(2, 1, 1, stream=first)
    driver.stream_wait_event(second, event)
    two = driver.fill(3, 1, 1, stream=second)
    driver.stream_synchronize(second)
    assert told == [one.id, two.id]
    assert driver.event_query(event)
    assert told == [one.id, two.id]
    driver.stream_destroy(first)
    driver.device_synchronize()
    assert told == [one.id, two.id, late.id]


def test_an_unmap_that_waits_tells_of_the_work_it_waited_for(calls: FakeCalls) -> None:
    from vmm_conformance.contracts import DriverCapabilities

    calls.answers["declared"] = DriverCapabilities(unmap_waits=True, progress=False)
    driver = _driver(calls)
    work = driver.fill(4096, 1, 8, stream=driver.stream_create())
    driver.unmap(4096, 4096)
    assert work.done


def test_close_gives_back_what_clients_have_left(calls: FakeCalls) -> None:
    driver = _driver(calls)
    base, handle = driver.reserve(8192), driver.create(4096)
    calls.answers["retain"] = handle
    driver.map(base, 4096, handle)
    driver.retain(base)
    driver.alloc(64)
    driver.stream_create()
    calls.answers["address_free"] = DriverError(999, "address_free", "still mapped")
    driver.close()
    names = [call[0] for call in calls.asked[calls.asked.index(("synchronize",)) :]]
    assert names == ["synchronize", "stream_destroy", "unmap", "release", "release", "use", "free", "address_free"]
    assert [error.status for error in driver.refusals] == [999]
    driver.close()


# -- answers of bindings


def _unknown(*_: object) -> None:
    raise ValueError("12345 is not a valid hipError_t")


def test_a_status_without_a_name_survives() -> None:
    with pytest.raises(DriverError) as raised:
        ask("map", _unknown, 4096, 1 << 40)
    assert (raised.value.status, raised.value.call) == (12345, "map")
    assert "_unknown(4096, 0x10000000000) gave a status that the binding has no name for" in str(raised.value)


def test_a_value_error_about_something_else_is_no_status() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        ask("map", lambda: int("x"))


def test_a_function_that_the_library_lacks_is_not_supported() -> None:
    def lacking() -> None:
        raise RuntimeError('Function "cuMemCreate" not found')

    with pytest.raises(DriverError, match=r'create: NOT_SUPPORTED: Function "cuMemCreate" not found'):
        ask("create", lacking)


def test_a_library_that_cannot_be_loaded_is_unavailable() -> None:
    def unloaded() -> None:
        raise RuntimeError("failed to dlopen 'libamdhip64.so'")

    with pytest.raises(DriverUnavailable, match="libamdhip64"):
        ask("open", unloaded)


def test_what_is_given_beside_the_status() -> None:
    assert ask("x", lambda: (0,)) == ()
    assert ask("x", lambda: (0, 7)) == 7
    assert ask("x", lambda: (0, 7, 8)) == (7, 8)
    assert answered("x", lambda: (0,))
    assert not answered("x", lambda: (600,))
    with pytest.raises(DriverError, match="UNKNOWN"):
        answered("x", lambda: (999,))
