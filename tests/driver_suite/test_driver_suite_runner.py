"""The runner of the contract ``driver``: what it records, and what it survives."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from vmm_conformance.checkers.driver import judge
from vmm_conformance.contracts import Driver, DriverError, DriverOptions, Live, Status, Work
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.host.subject import host
from vmm_conformance.history.events import CRASHED, HARNESS, SUBJECT, History
from vmm_conformance.programs.driver import Configuration, decode
from vmm_conformance.programs.driver_operations import (
    AddressFree,
    Alloc,
    Capture,
    Create,
    Map,
    Read,
    Release,
    Reserve,
    SetAccess,
    Unmap,
    Write,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.running.driver import driver_options, run
from vmm_conformance.running.subjects import open_driver

OPEN = open_driver("host")


class Watched(HostDriver):
    """A host driver that says what it held when it was closed."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self.left: Live | None = None

    def close(self) -> None:
        self.left = self.live()
        super().close()


class Faulting(HostDriver):
    """Like a device to which reading what it has no right to is a fault, which stays."""

    real = True
    lost = False

    def read(self, source: int, size: int, *, stream: int | None = None) -> Work:
        try:
            return super().read(source, size, stream=stream)
        except DriverError:
            self.lost = True
            raise DriverError(Status.ILLEGAL_ADDRESS, "read", "the device met a fault") from None

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        if self.lost:
            raise DriverError(Status.ILLEGAL_ADDRESS, "reserve", "the device met a fault")
        return super().reserve(size, alignment=alignment, hint=hint)

    def close(self) -> None:
        super().close()
        if self.lost:
            raise DriverError(Status.ILLEGAL_ADDRESS, "close", "the device met a fault")


@dataclass
class Subject:
    """Offers the one driver that ``make`` makes."""

    make: Any
    made: Any = None

    def driver(self, options: DriverOptions) -> Driver:
        self.made = self.make(options)
        made: Driver = self.made
        return made


def tell(*operations: Any, subject: object = host, **configuration: Any) -> History:
    return run(Program("driver", Configuration(**configuration), operations), subject, OPEN)


def calls(history: History, who: str, kind: str | None = None) -> list[Any]:
    kinds = ("begin", "end", "note") if kind is None else ()
    return [e for e in history if e.who == who and e.kind not in kinds and (kind is None or e.kind == kind)]


def outcomes(history: History) -> list[str]:
    return [event.args[0]["status"] for event in history if event.kind == "end"]


def test_the_programs_calls_are_the_subjects_and_looks_are_the_harnesss() -> None:
    history = tell(Reserve(2), Create(1), Map(), SetAccess(), Write())
    assert [event.kind for event in calls(history, SUBJECT)] == ["reserve", "create", "map", "set_access", "write"]
    looks = {event.kind for event in calls(history, HARNESS)}
    assert {"mem_info", "get_access", "unmap", "release", "address_free"} <= looks


def test_each_call_belongs_to_its_operation() -> None:
    history = tell(Reserve(2), Create(1), Map())
    assert [event.op for event in calls(history, SUBJECT)] == [0, 1, 2]
    assert history.events[-1].op == 3  # the teardown


def test_the_header_says_what_the_driver_declares() -> None:
    header = tell(devices=2, access_part=True, unmap_waits=True).header
    assert (header["devices"], header["real"], header["driver"]) == (2, False, "host")
    assert header["capabilities"].set_access_part_of_mapping
    assert header["peers"] == ((0, 1), (1, 0))
    assert not header["not_applicable"]
    assert "DRIVER-75" in tell().header["not_applicable"]


def test_options_follow_the_configuration() -> None:
    options = driver_options(Configuration(devices=3, minimum=65536, recommended=131072, capacity=5, eager=True))
    assert (options.devices, options.capacity, options.schedule) == (3, 5 * 65536, "eager")
    assert options.granularity == (65536, 131072)


def test_without_a_driver_of_the_subjects_one_is_opened() -> None:
    assert outcomes(tell(Reserve(1), subject=object())) == ["ok"]


@pytest.mark.parametrize("seed", range(5))
def test_everything_is_given_back_before_the_driver_is_closed(seed: int) -> None:
    subject = Subject(Watched)
    program = decode(random.Random(seed).randbytes(400))
    run(program, subject, OPEN)
    assert subject.made.left == Live(0, 0, 0, 0, 0)


def test_an_operation_with_nothing_to_work_on_is_skipped() -> None:
    history = tell(Map(), Unmap(), Read(), Release(), AddressFree(twist="stale"))
    assert outcomes(history) == ["skipped"] * 5
    assert not calls(history, SUBJECT)


def test_a_refusal_is_an_outcome_with_its_code() -> None:
    history = tell(Reserve(1, twist="empty"))
    [outcome] = [event.args[0] for event in history if event.kind == "end"]
    assert (outcome["status"], outcome["code"]) == ("refused", "INVALID_VALUE")
    assert "size 0" in outcome["message"]


def test_free_memory_and_what_was_named_is_looked_at_after_a_refusal() -> None:
    history = tell(Reserve(3), Create(2), Map(), SetAccess(), Unmap(twist="left"))
    looks = [event.kind for event in history if event.op == 4 and event.who == HARNESS]
    assert looks.count("mem_info") == 1
    assert looks.count("get_access") == 2
    assert looks.count("read") == 2


def test_work_in_flight_is_waited_for_before_memory_is_taken_away() -> None:
    operations = (Reserve(1), Create(1), Map(), SetAccess(), Write(stream=0), Unmap())
    kinds = [event.kind for event in tell(*operations) if event.op == 5]
    assert kinds.index("stream_synchronize") < kinds.index("unmap")
    waits = [event.kind for event in tell(*operations, unmap_waits=True) if event.op == 5]
    assert "stream_synchronize" not in waits


def test_a_capture_that_is_left_open_is_ended() -> None:
    history = tell(Capture(), Reserve(1))
    assert [event.status for event in history if event.kind == "graph_end"] == [0]


def test_plain_memory_gets_bytes_of_its_own() -> None:
    history = tell(Alloc(100))
    assert [event.op for event in history if event.kind == "write"] == [0]


class Trouble(DriverError):
    pass


def fails(error: Exception) -> Any:
    class Failing(HostDriver):
        def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
            raise error

    return Failing


def test_what_a_driver_raises_is_an_event() -> None:
    history = tell(Reserve(1), subject=Subject(fails(KeyError("gone"))))
    [event] = calls(history, SUBJECT)
    assert event.status == CRASHED
    assert "KeyError" in event.result
    assert outcomes(history) == ["crashed"]
    refused = tell(Reserve(1), subject=Subject(fails(DriverError(Status.UNKNOWN, "reserve", "no"))))
    assert outcomes(refused) == ["refused"]


def test_what_is_no_answer_is_a_crash() -> None:
    class Silent(HostDriver):
        def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> Any:
            return None

    [event] = calls(tell(Reserve(1), subject=Subject(Silent)), SUBJECT)
    assert event.status == CRASHED


def test_a_driver_that_cannot_be_made_leaves_a_note() -> None:
    def refuse(options: DriverOptions) -> Driver:
        raise RuntimeError("no device")

    history = tell(Reserve(1), subject=Subject(refuse))
    assert [event.args for event in history] == [("unusable", {"error": "RuntimeError: no device"})]


def test_a_program_ends_where_a_device_meets_a_fault() -> None:
    program = (Reserve(2), Create(1), Map(), Read(twist="denied"), Reserve(1), Create(1))
    history = tell(*program, subject=Subject(Faulting))
    assert [event.kind for event in calls(history, SUBJECT)] == ["reserve", "create", "map", "read"]
    assert history.events[-1].status == Status.ILLEGAL_ADDRESS
    judged = judge(history)
    assert judged.findings == []
    assert judged.witnesses["DRIVER-49"]


def test_a_driver_that_cannot_be_closed_leaves_a_note() -> None:
    class Stuck(HostDriver):
        def close(self) -> None:
            super().close()
            raise RuntimeError("still busy")

    history = tell(Reserve(1), subject=Subject(Stuck))
    assert history.events[-1].args[0] == "unclosed"


class Chaos:
    """A driver that now and then answers with anything at all."""

    def __init__(self, driver: HostDriver, source: random.Random, chance: float) -> None:
        self._driver = driver
        self._source = source
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if not callable(found) or name in ("listen", "close"):
            return found

        def answer(*arguments: Any, **named: Any) -> Any:
            if self._source.random() >= self._chance:
                return found(*arguments, **named)
            return self._anything(lambda: found(*arguments, **named))

        return answer

    def _anything(self, call: Any) -> Any:
        choice = self._source.randrange(6)
        if choice == 0:
            raise DriverError(Status.INVALID_VALUE, "chaos", "for no reason")
        if choice == 1:
            raise RuntimeError("chaos")
        if choice == 2:
            call()
        return (None, 7, (), self._source.randrange(-5, 1 << 40))[choice - 2]


@pytest.mark.parametrize("chance", [0.002, 0.02, 0.2, 1.0])
def test_no_driver_breaks_the_runner_or_the_checker(chance: float) -> None:
    source = random.Random(1)
    found = 0
    for _ in range(60):
        program = decode(source.randbytes(400))
        history = run(program, Subject(lambda options: Chaos(HostDriver(options), source, chance)), OPEN)
        found += bool(judge(history).findings)
    assert found
