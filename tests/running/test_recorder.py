"""What is recorded of a driver's calls, and which of them are made to fail."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from vmm_conformance.contracts import Access, Copy, Driver, DriverError, DriverOptions, Range, Status, Write
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import CALLS, FIELDS, Event, History
from vmm_conformance.running.faults import Faults
from vmm_conformance.running.gate import Gate
from vmm_conformance.running.recorder import Recorder

G = 4096
RW = Access.READ_WRITE


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    driver = HostDriver(DriverOptions(devices=2))
    yield Recorder(driver, History())
    driver.listen(None)
    driver.close()


def recorded(recorder: Recorder) -> list[tuple[str, str, tuple[Any, ...], int, Any]]:
    return [(e.who, e.kind, e.args, e.status, e.result) for e in recorder.history]


def mapped(driver: Any, size: int = G) -> int:
    """Usable memory: one reservation, one mapping."""
    address: int = driver.reserve(size)
    driver.map(address, size, driver.create(size))
    driver.set_access(address, size, {0: RW})
    return address


def test_both_views_offer_every_call(recorder: Recorder) -> None:
    for view in (recorder.subject, recorder.harness):
        assert [kind for kind in CALLS if not callable(getattr(view, kind, None))] == []


def test_arguments_are_complete_and_in_order(recorder: Recorder) -> None:
    driver = recorder.subject
    address = driver.reserve(2 * G)
    handle = driver.create(G, device=1)
    driver.map(address, G, handle)
    driver.set_access(address, G, {1: RW, 0: Access.READ})
    plain = driver.alloc(size=100, space=1)
    assert recorded(recorder) == [
        ("subject", "reserve", (2 * G, 0, 0), 0, address),
        ("subject", "create", (G, 1, 0), 0, handle),
        ("subject", "map", (address, G, handle, 0), 0, None),
        ("subject", "set_access", (address, G, ((0, Access.READ), (1, RW))), 0, None),
        ("subject", "alloc", (100, 0, 1), 0, plain),
    ]
    assert all(len(event.args) == len(FIELDS[event.kind]) for event in recorder.history)


def test_events_say_whose_they_are_and_under_which_operation(recorder: Recorder) -> None:
    recorder.harness.stream_create(0)
    recorder.op = 3
    recorder.subject.event_create(0)
    recorder.note("something", size=3)
    assert [(e.seq, e.op, e.who, e.kind) for e in recorder.history] == [
        (0, -1, "harness", "stream_create"),
        (1, 3, "subject", "event_create"),
        (2, 3, "harness", "note"),
    ]
    assert recorder.history.events[2].args == ("something", {"size": 3})


def test_a_refused_call_is_recorded_with_its_status_and_raised(recorder: Recorder) -> None:
    with pytest.raises(DriverError):
        recorder.subject.unmap(G, G)
    (event,) = recorder.history
    assert (event.kind, event.args) == ("unmap", (G, G))
    assert event.status
    assert event.result is None


def test_work_is_recorded_by_its_id_and_again_when_it_runs(recorder: Recorder) -> None:
    driver = recorder.harness
    address, stream = mapped(driver), driver.stream_create(0)
    work = driver.launch(stream, writes=[Write(address, b"12345678")], reads=[Range(address, 8)])
    copied = driver.copy(address + 64, address, 8, stream=stream)
    at = len(recorder.history)
    driver.stream_synchronize(stream)
    submitted = {e.result: e for e in recorder.history.events[:at] if e.kind in ("launch", "copy")}
    ran = [e for e in recorder.history.events[at:] if e.kind == "ran"]
    assert list(submitted) == [work.id, copied.id]
    assert [(e.who, e.args[0], e.args[2]) for e in ran] == [("device", work.id, None), ("device", copied.id, None)]
    assert len(ran[0].args[1][0]) == 8


def test_lists_may_be_given_as_generators(recorder: Recorder) -> None:
    driver = recorder.harness
    address, stream = mapped(driver), driver.stream_create(0)
    driver.launch(stream, copies=(Copy(address + 64 * n, address, 8) for n in (1, 2)))
    (event,) = (e for e in recorder.history if e.kind == "launch")
    assert [copy.target - address for copy in event["copies"]] == [64, 128]


def test_a_device_fault_names_the_call_behind_it(recorder: Recorder) -> None:
    driver = recorder.harness
    address, stream = mapped(driver), driver.stream_create(0)
    driver.launch(stream, reads=[Range(address, 8)])
    recorder.subject.unmap(address, G)
    unmap = recorder.history.events[-1]
    driver.stream_synchronize(stream)
    (ran,) = (e for e in recorder.history if e.kind == "ran")
    assert ran.args[2] is not None
    assert ran.result == unmap.seq


def test_a_second_thread_is_told_apart(recorder: Recorder) -> None:
    thread = threading.Thread(target=lambda: recorder.subject.event_create(0))
    thread.start()
    thread.join()
    recorder.subject.event_create(0)
    assert [event.thread for event in recorder.history] == [1, 0]
    assert recorder.thread() == 0


def test_a_call_that_was_made_elsewhere_is_of_the_thread_that_asked_for_it(recorder: Recorder) -> None:
    """And not of the one that its process says: calls on a subject are told apart by the caller's threads."""
    view: Any = recorder.subject
    thread = threading.Thread(target=lambda: view.enter(Event(9, 9, 7, "", "unmap", (G, G))))
    thread.start()
    thread.join()
    view.enter(Event(9, 9, 7, "", "unmap", (G, G)))
    assert [(event.seq, event.op, event.thread, event.who) for event in recorder.history] == [
        (0, -1, 1, "subject"),
        (1, -1, 0, "subject"),
    ]


def test_fixed_facts_are_answered_and_not_recorded(recorder: Recorder) -> None:
    view, driver = recorder.subject, recorder.driver
    assert (view.name, view.real, view.device_count) == (driver.name, driver.real, 2)
    assert view.capabilities == driver.capabilities
    assert view.granularity(0) == driver.granularity(0)
    assert view.space_alignment(0, 1) == driver.space_alignment(0, 1)
    assert view.can_access_peer(0, 1)
    assert view.live() == driver.live()
    assert recorded(recorder) == []


def test_whoever_opened_the_driver_closes_it(recorder: Recorder) -> None:
    with pytest.raises(TypeError, match="closed by whoever opened it"):
        recorder.subject.close()
    with pytest.raises(TypeError, match="the recorder"):
        recorder.subject.listen(None)


# -- faults


def test_the_kth_call_of_the_subject_fails_and_never_reaches_the_driver(recorder: Recorder) -> None:
    recorder.faults.inject("create", 2, Status.OUT_OF_MEMORY)
    recorder.harness.create(G)
    recorder.harness.create(G)
    recorder.subject.create(G)
    before = recorder.driver.live()
    with pytest.raises(DriverError, match="injected") as caught:
        recorder.subject.create(G)
    assert (caught.value.status, caught.value.call) == (Status.OUT_OF_MEMORY, "create")
    assert recorder.driver.live() == before
    last = recorder.history.events[-1]
    assert (last.kind, last.args, last.status, last.result) == ("create", (G, 0, 0), 2, "injected")
    recorder.subject.create(G)
    assert not recorder.faults


def test_faults_of_one_kind_count_on_their_own() -> None:
    faults = Faults()
    for k in (1, 3):
        faults.inject("map", k, k)
    faults.inject("unmap", 1, 9)
    assert [struck(faults, "map") for _ in range(4)] == [1, None, 3, None]
    assert bool(faults)
    assert struck(faults, "reserve") is None
    assert struck(faults, "unmap") == 9
    assert not faults


def test_two_faults_on_one_call_strike_once() -> None:
    faults = Faults()
    faults.inject("map", 1, 7)
    faults.inject("map", 1, 8)
    assert [struck(faults, "map"), struck(faults, "map")] == [7, None]


def test_cleared_faults_never_strike() -> None:
    faults = Faults()
    faults.inject("map", 1, 7)
    faults.clear()
    assert struck(faults, "map") is None


def struck(faults: Faults, kind: str) -> int | None:
    try:
        faults.strike(kind)
    except DriverError as error:
        return error.status
    return None


def hammered(recorder: Recorder, rounds: int) -> None:
    """Two threads that take memory, look at what is left and give it back, and run into each other as they please."""
    ready = threading.Barrier(2)

    def body(size: int) -> None:
        stream = recorder.subject.stream_create()
        ready.wait()
        for _ in range(rounds):
            handle = recorder.subject.create(size)
            recorder.subject.mem_info()
            recorder.subject.release(handle)
            recorder.subject.fill(plain, 1, 8, stream=stream)
            recorder.subject.device_synchronize()

    plain = recorder.subject.alloc(8)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=body, args=(size * G,)) for size in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)


def test_the_order_of_events_is_the_order_in_which_the_driver_did_things(recorder: Recorder) -> None:
    before = recorder.driver.mem_info().free
    hammered(recorder, rounds=300)
    live: dict[int, int] = {}
    queued: set[int] = set()
    for number, event in enumerate(recorder.history):
        assert event.seq == number
        if event.kind == "create":
            live[event.result] = event.args[0]
        elif event.kind == "release":
            del live[event.args[0]]
        elif event.kind == "mem_info":
            assert event.result.free + sum(live.values()) == before - 8
        elif event.kind == "fill":
            queued.add(event.result)
        elif event.kind == "ran":
            queued.remove(event.args[0])
        elif event.kind == "device_synchronize":
            assert not queued


class Device:
    """A driver that makes calls without a lock, as a real one does: a wait lasts until somebody records an event."""

    def __init__(self) -> None:
        self.waiting, self.recorded = threading.Event(), threading.Event()

    def listen(self, listener: Any) -> None:
        """Nothing runs here."""

    def stream_synchronize(self, stream: int) -> None:
        self.waiting.set()
        self.recorded.wait()

    def event_record(self, event: int, stream: int) -> None:
        self.recorded.set()


@pytest.mark.parametrize("waits", ["runner", "other"])
def test_while_a_thread_waits_for_a_device_others_make_their_calls(waits: str) -> None:
    device = Device()
    recorder = Recorder(cast(Driver, device), History())
    view = recorder.subject

    def record() -> None:
        device.waiting.wait()
        view.event_record(1, 2)

    bodies = [lambda: view.stream_synchronize(2), record]
    mine, others = bodies if waits == "runner" else bodies[::-1]
    other = threading.Thread(target=others)
    other.start()
    mine()
    other.join()
    assert [event.kind for event in recorder.history] == ["event_record", "stream_synchronize"]
    assert [event.thread for event in recorder.history] == ([1, 0] if waits == "runner" else [0, 1])


class Interrupted:
    """A lock that the user interrupts the first wait for."""

    def __init__(self, lock: Any) -> None:
        self.release = lock.release
        self._acquires = iter([self._interrupt, lock.acquire])

    def _interrupt(self) -> None:
        raise KeyboardInterrupt

    def acquire(self) -> None:
        next(self._acquires)()


def test_an_interrupt_while_the_gate_is_closed_behind_a_wait_stays_an_interrupt() -> None:
    gate = Gate()
    gate.enter()
    lock: Any = gate._lock
    gate._lock = cast(Any, Interrupted(lock))
    with pytest.raises(KeyboardInterrupt):
        gate.let_in(lambda: None)()
    gate.leave()  # as whoever called does
    assert not lock._is_owned()
