"""Streams, events and schedules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from host_world import G, Make, mapped, now, refused

from vmm_conformance.contracts import Range, Status, Work, Write
from vmm_conformance.drivers.host import HostDriver


class Two:
    """Two streams and a page, with a byte for each thing that is to happen."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver = driver
        self.a, self.b = driver.stream_create(), driver.stream_create()
        self.page, _ = mapped(driver)

    def put(self, stream: int, at: int, value: int) -> Work:
        return self.driver.fill(self.page + at, value, 1, stream=stream)

    def get(self, stream: int, at: int) -> Work:
        return self.driver.read(self.page + at, 1, stream=stream)


@pytest.fixture
def two(driver: HostDriver) -> Two:
    return Two(driver)


def test_a_stream_keeps_its_order(two: Two) -> None:
    works = [two.put(two.a, 0, value) for value in (1, 2, 3)]
    assert two.driver.progress(two.a) == 1
    assert [work.done for work in works] == [True, False, False]
    assert two.driver.progress(two.a, 5) == 2
    assert two.driver.progress(two.a) == 0
    assert now(two.driver, two.page, 1) == b"\3"


def test_streams_know_nothing_of_each_other(two: Two) -> None:
    first, second = two.put(two.a, 0, 1), two.put(two.b, 0, 2)
    two.driver.stream_synchronize(two.b)
    assert (first.done, second.done) == (False, True)
    two.driver.stream_synchronize(two.a)
    assert now(two.driver, two.page, 1) == b"\1"


def test_device_synchronize_runs_the_devices_streams(make: Make) -> None:
    driver = make(devices=2)
    works = [driver.read(0, 1, stream=driver.stream_create(device)) for device in (0, 1, 0)]
    driver.device_synchronize(0)
    assert [work.done for work in works] == [True, False, True]


def test_a_query_runs_one_item_so_polling_ends(two: Two) -> None:
    works = [two.put(two.a, 0, value) for value in (1, 2, 3)]
    answers = [two.driver.stream_query(two.a) for _ in range(4)]
    assert answers == [False, False, True, True]
    assert all(work.done for work in works)


def test_a_wait_runs_what_the_event_stands_for_and_no_more(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    before, after_record = two.put(two.a, 0, 1), None
    driver.event_record(event, two.a)
    after_record = two.put(two.a, 0, 2)
    driver.stream_wait_event(two.b, event)
    seen = two.get(two.b, 0)
    driver.stream_synchronize(two.b)
    assert (before.done, after_record.done) == (True, False)
    assert seen.data == (b"\1",)


def test_a_wait_means_the_record_of_that_moment(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    two.put(two.a, 0, 1)
    driver.event_record(event, two.a)
    driver.stream_wait_event(two.b, event)
    later = two.put(two.a, 0, 2)
    driver.event_record(event, two.a)
    seen = two.get(two.b, 0)
    driver.stream_synchronize(two.b)
    assert seen.data == (b"\1",)
    assert not later.done
    driver.event_synchronize(event)
    assert later.done


def test_waiting_for_an_event_that_was_never_recorded_is_nothing(two: Two) -> None:
    event = two.driver.event_create()
    two.driver.stream_wait_event(two.b, event)
    work = two.get(two.b, 0)
    two.driver.event_synchronize(event)
    assert two.driver.event_query(event)
    assert two.driver.progress(two.b) == 1
    assert work.done


def test_an_event_destroyed_while_waited_for_still_orders(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    two.put(two.a, 0, 7)
    driver.event_record(event, two.a)
    driver.stream_wait_event(two.b, event)
    driver.event_destroy(event)
    seen = two.get(two.b, 0)
    driver.stream_synchronize(two.b)
    assert seen.data == (b"\7",)


def test_event_query_runs_one_item_of_its_stream(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    works = [two.put(two.a, 0, value) for value in (1, 2)]
    driver.event_record(event, two.a)
    last = two.put(two.a, 0, 3)
    assert [driver.event_query(event) for _ in range(4)] == [False, False, True, True]
    assert [work.done for work in (*works, last)] == [True, True, False]


def test_event_synchronize_stops_at_the_event(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    first = two.put(two.a, 0, 1)
    driver.event_record(event, two.a)
    second = two.put(two.a, 0, 2)
    driver.event_synchronize(event)
    assert (first.done, second.done) == (True, False)


def test_waits_across_many_streams_need_no_recursion(driver: HostDriver) -> None:
    page, _ = mapped(driver)
    streams = [driver.stream_create() for _ in range(5000)]
    event = driver.event_create()
    for index, stream in enumerate(streams):
        if index:
            driver.stream_wait_event(stream, event)
        driver.fill(page, index % 251, 1, stream=stream)
        driver.event_record(event, stream)
    driver.stream_synchronize(streams[-1])
    assert now(driver, page, 1) == bytes([4999 % 251])


def test_streams_that_wait_for_each_other_in_turns(two: Two) -> None:
    driver = two.driver
    there, back = driver.event_create(), driver.event_create()
    seen = []
    for turn in range(1, 50):
        two.put(two.a, 0, turn)
        driver.event_record(there, two.a)
        driver.stream_wait_event(two.b, there)
        seen.append(two.get(two.b, 0))
        driver.event_record(back, two.b)
        driver.stream_wait_event(two.a, back)
    driver.stream_synchronize(two.a)
    assert [work.data for work in seen] == [(bytes([turn]),) for turn in range(1, 50)]


def test_progress_on_a_wait_runs_what_it_needs(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    needed = [two.put(two.a, 0, value) for value in (1, 2)]
    driver.event_record(event, two.a)
    driver.stream_wait_event(two.b, event)
    assert driver.progress(two.b) == 1
    assert all(work.done for work in needed)


def test_a_destroyed_stream_still_does_its_work(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    first = two.put(two.a, 0, 1)
    driver.event_record(event, two.a)
    second = two.put(two.a, 1, 2)
    driver.stream_destroy(two.a)
    assert not first.done
    driver.stream_wait_event(two.b, event)
    driver.stream_synchronize(two.b)
    assert (first.done, second.done) == (True, False)
    driver.device_synchronize()
    assert second.done
    with refused(Status.INVALID_HANDLE, "is no stream"):
        driver.stream_synchronize(two.a)


def test_close_runs_the_work_of_destroyed_streams(make: Make) -> None:
    driver = make()
    address, _ = mapped(driver)
    stream = driver.stream_create()
    work = driver.read(address, 1, stream=stream)
    driver.stream_destroy(stream)
    driver.close()
    assert work.data == (b"\xcb",)


def test_unknown_streams_and_events(driver: HostDriver) -> None:
    stream, event, handle = driver.stream_create(), driver.event_create(), driver.create(G)
    calls: list[Callable[[int], object]] = [
        driver.stream_synchronize,
        driver.stream_query,
        driver.stream_destroy,
        driver.progress,
        lambda bad: driver.stream_wait_event(bad, event),
        lambda bad: driver.event_record(event, bad),
        lambda bad: driver.read(0, 1, stream=bad),
        lambda bad: driver.write(0, b"", stream=bad),
        lambda bad: driver.copy(0, 0, 0, stream=bad),
        lambda bad: driver.fill(0, 0, 0, stream=bad),
        lambda bad: driver.launch(bad),
        driver.graph_begin,
        driver.graph_end,
    ]
    for call in calls:
        for bad in (0, -1, 99_999, event, handle):
            with refused(Status.INVALID_HANDLE, f"{bad} is no stream"):
                call(bad)
    event_calls: list[Callable[[int], object]] = [
        driver.event_synchronize,
        driver.event_query,
        driver.event_destroy,
        lambda bad: driver.stream_wait_event(stream, bad),
        lambda bad: driver.event_record(bad, stream),
    ]
    for call in event_calls:
        for bad in (0, 99_999, stream, handle):
            with refused(Status.INVALID_HANDLE, f"{bad} is no event"):
                call(bad)
    driver.event_destroy(event)
    with refused(Status.INVALID_HANDLE):
        driver.event_destroy(event)


def test_vmm_calls_do_not_wait_for_other_streams(two: Two) -> None:
    driver = two.driver
    event = driver.event_create()
    work = two.put(two.a, 0, 1)
    driver.event_record(event, two.a)
    driver.stream_wait_event(two.b, event)
    address, handle = mapped(driver)
    driver.unmap(address, G)
    driver.release(handle)
    driver.address_free(address, G)
    assert not work.done


def test_eager_work_is_done_at_submission(make: Make) -> None:
    driver = make(schedule="eager")
    two = Two(driver)
    heard: list[Work] = []
    driver.listen(heard.append)
    event = driver.event_create()
    first = two.put(two.a, 0, 1)
    driver.event_record(event, two.a)
    driver.stream_wait_event(two.b, event)
    second = two.get(two.b, 0)
    assert (first.done, second.data) == (True, (b"\1",))
    assert heard == [first, second]
    assert driver.event_query(event)
    assert driver.stream_query(two.a)


def scenario(driver: HostDriver) -> list[object]:
    """Ordered work on two streams, with growth and a remap between. The bytes it leaves."""
    two, event = Two(driver), driver.event_create()
    other, _ = mapped(driver, 2)
    reads = []
    for turn in range(20):
        one, next_one = (two.a, two.b) if turn % 2 else (two.b, two.a)
        driver.launch(one, reads=[Range(other, 8)], writes=[Write(two.page + turn, bytes([turn]))])
        driver.copy(other + G - 4, two.page, 8, stream=one)
        driver.event_record(event, one)
        driver.stream_wait_event(next_one, event)
        reads.append(driver.read(other + G - 4, 8, stream=next_one))
        if turn % 7 == 3:
            driver.device_synchronize()
            driver.unmap(other, 2 * G)
            driver.map(other, 2 * G, driver.create(2 * G))
            driver.set_access(other, 2 * G, {0: 3})  # type: ignore[dict-item]
    driver.device_synchronize()
    assert [work.fault for work in reads] == [None] * 20
    return [work.data for work in reads] + [now(driver, two.page, G), now(driver, other, 2 * G)]


def test_schedules_leave_the_same_bytes(make: Make) -> None:
    assert scenario(make(schedule="late")) == scenario(make(schedule="eager"))
