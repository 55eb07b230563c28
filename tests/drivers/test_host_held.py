"""Streams that are held: who waits for one waits in vain, and everything else goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from host_world import G, Make, mapped, now, refused

from vmm_conformance.contracts import Status
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.host.streams import ASKED


def test_the_host_driver_can_hold_streams(driver: HostDriver) -> None:
    assert isinstance(driver, HoldingDriver)


@pytest.mark.parametrize("schedule", ["late", "eager"])
def test_work_waits_until_its_stream_is_let_go(make: Make, schedule: str) -> None:
    driver = make(schedule=schedule)
    address, _ = mapped(driver)
    stream = driver.stream_create()
    before = driver.fill(address, 1, 1, stream=stream)
    driver.hold(stream)
    behind = driver.fill(address, 2, 1, stream=stream)
    assert not driver.stream_query(stream)
    with refused(Status.NOT_READY, "is held; who waits for it waits for ever"):
        driver.stream_synchronize(stream)
    assert (before.done, behind.done) == (True, False)
    driver.let_go(stream)
    driver.stream_synchronize(stream)
    assert now(driver, address, 1) == b"\2"


@pytest.mark.parametrize("wait", [lambda d, event: d.event_synchronize(event), lambda d, event: d.device_synchronize()])
def test_whoever_waits_for_it_is_refused(driver: HostDriver, wait: Callable[[HostDriver, int], None]) -> None:
    stream, event = driver.stream_create(), driver.event_create()
    driver.hold(stream)
    driver.event_record(event, stream)
    with refused(Status.NOT_READY):
        wait(driver, event)


def test_who_does_nothing_but_ask_waits_in_vain_too(driver: HostDriver) -> None:
    stream, event = driver.stream_create(), driver.event_create()
    driver.hold(stream)
    for asks in (lambda: driver.stream_query(stream), lambda: driver.event_query(event)):
        driver.event_record(event, stream)
        assert not any(asks() for _ in range(ASKED))
        with refused(Status.NOT_READY, "waits for ever"):
            asks()


@pytest.mark.parametrize("schedule", ["late", "eager"])
def test_who_asks_or_queues_behind_it_is_not_refused(make: Make, schedule: str) -> None:
    driver = make(schedule=schedule)
    stream, other, event = driver.stream_create(), driver.stream_create(), driver.event_create()
    driver.hold(stream)
    driver.event_record(event, stream)
    driver.stream_wait_event(other, event)
    behind = driver.launch(other)
    assert not driver.event_query(event)
    assert not driver.stream_query(other)
    assert driver.progress(other) == 0
    with refused(Status.NOT_READY):
        driver.stream_synchronize(other)
    driver.let_go(stream)
    driver.stream_synchronize(other)
    assert behind.done


def test_memory_and_other_streams_go_on(driver: HostDriver) -> None:
    driver.hold(driver.stream_create())
    address, handle = mapped(driver)
    other = driver.stream_create()
    driver.fill(address, 7, 1, stream=other)
    driver.stream_synchronize(other)
    assert now(driver, address, 1) == b"\7"
    driver.unmap(address, G)
    driver.release(handle)


def test_a_driver_that_is_closed_lets_go(make: Make) -> None:
    driver = make()
    address, _ = mapped(driver)
    stream = driver.stream_create()
    driver.hold(stream)
    work = driver.fill(address, 1, 1, stream=stream)
    driver.close()
    assert work.done


def test_to_let_go_what_is_not_held_does_nothing(driver: HostDriver) -> None:
    driver.let_go(driver.stream_create())


def test_a_stream_that_is_held_twice_is_let_go_at_once(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    stream = driver.stream_create()
    driver.hold(stream)
    driver.hold(stream)
    work = driver.fill(address, 1, 1, stream=stream)
    driver.let_go(stream)
    driver.stream_synchronize(stream)
    assert work.done
