"""What the runner asks for, records and leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.checkers.vmm_allocator import judge
from vmm_conformance.contracts import Code, DriverOptions, Range, SubjectError
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import SUBJECT, History
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.vmm_allocator import (
    Allocate,
    AllocateMapped,
    Configuration,
    Deallocate,
    Fail,
    Look,
    Map,
    Place,
    Source,
    Synchronize,
    Tag,
    Target,
    Together,
    Unmap,
    Untag,
    Use,
)
from vmm_conformance.running.vmm_allocator import run
from vmm_reference.subject import reference

G = 4096


def ran(*operations: Any, subject: Any = reference, **configuration: Any) -> History:
    return run(Program("vmm-allocator", Configuration(**configuration), operations), subject, HostDriver)


def notes(history: History, what: str, name: str = "") -> list[dict[str, Any]]:
    found = [event.args[1] for event in history.events if event.kind == "note" and event.args[0] == what]
    return [details for details in found if not name or details["name"] == name]


def ends(history: History) -> list[str]:
    return [event.args[0]["status"] for event in history.events if event.kind == "end"]


def test_calls_stand_between_notes() -> None:
    history = ran(Allocate(100), Deallocate())
    call, answer = notes(history, "call", "allocate")[0], notes(history, "return", "allocate")[0]
    assert (call["ordinal"], call["size"], call["space"], call["tag"]) == (0, 100, 0, False)
    assert isinstance(answer["answer"], Range)
    assert notes(history, "call", "deallocate")[0]["address"] == answer["answer"]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (Source.SIZE, "NOT_FOUND"),
        (Source.INTERIOR, "NOT_FOUND"),
        (Source.GONE, "NOT_FOUND"),
        (Source.ALIAS, "NOT_FOUND"),
        (Source.DEVICE, "NOT_FOUND"),
        (Source.FOREIGN, "NOT_FOUND"),
        (Source.NULL, ""),
    ],
)
def test_wrong_sources_are_wrong(source: Source, code: str) -> None:
    history = ran(Allocate(2 * G), Allocate(G), Deallocate(1), Map(), Deallocate(0, source))
    assert notes(history, "return", "deallocate")[-1]["code"] == code


@pytest.mark.parametrize("place", [Place.NONE, Place.BEYOND, Place.OVERFLOW])
def test_wrong_places_are_in_no_reservation(place: Place) -> None:
    named = ("map", "allocate_mapped", "unmap")
    for operation in (Map(place=place), AllocateMapped(place=place), Unmap(place=place)):
        answers = [note for note in notes(ran(Allocate(G), operation), "return") if note["name"] in named]
        assert [answer["code"] for answer in answers] == ["INVALID_ARGUMENT"]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (Target.AGAIN, "FAILED_PRECONDITION"),
        (Target.SIZE, "INVALID_ARGUMENT"),
        (Target.INTERIOR, "NOT_FOUND"),
        (Target.ALLOCATION, "NOT_FOUND"),
        (Target.FREE, "NOT_FOUND"),
        (Target.DEVICE, "NOT_FOUND"),
    ],
)
def test_wrong_targets_are_wrong(target: Target, code: str) -> None:
    before = (Allocate(2 * G), Allocate(G), AllocateMapped(0, 6), Map(1, 0, 4), Unmap(0), Map(0, 0, 0))
    history = ran(*before, Unmap(0, target))
    assert notes(history, "return", "unmap")[-1]["code"] == code


def test_what_is_not_there_is_skipped() -> None:
    history = ran(Deallocate(), Map(), Unmap(), Use(), Untag(), Unmap(0, Target.AGAIN), Deallocate(0, Source.GONE))
    assert ends(history) == ["skipped"] * 7


def test_call_that_an_injected_failure_struck_is_made_again() -> None:
    history = ran(Fail("create"), Allocate(G), Fail("event_record"), Deallocate(), Synchronize())
    assert [answer["status"] for answer in notes(history, "return", "allocate")] == ["ok"]  # reclaim helps itself
    assert [answer["status"] for answer in notes(history, "return", "synchronize")] == ["refused", "ok"]


def test_tags_are_told() -> None:
    history = ran(Tag(), Allocate(1), Tag(multi_device=False), Allocate(1), Untag(), Allocate(1), Untag(), Allocate(1))
    told = [(call["tag"], call["restored"]) for call in notes(history, "call", "allocate")]
    assert told == [(True, False), (False, False), (True, True), (False, True)]


def test_calls_at_once_run_on_two_threads() -> None:
    history = ran(Allocate(G), Allocate(G), Map(), Unmap(), Together(Map(1), Map(0)))
    threads = {event.thread for event in history.events if event.kind == "note" and event.args[0] == "call"}
    assert threads == {0, 1}
    wait = next(e for e in history.events if e.who == SUBJECT and e.kind == "event_synchronize")
    second = next(e for e in history.events if e.kind == "note" and e.args[0] == "return" and e.thread == 1)
    assert second.seq < wait.seq, "the second call is over before the first begins to wait"
    assert [answer["code"] for answer in notes(history, "return", "map")[1:]] == ["", "ALREADY_EXISTS"]


def test_equal_turns_give_equal_histories() -> None:
    def shape() -> list[tuple[int, str]]:
        program = (Allocate(G), Deallocate(), Together(Allocate(2 * G), Allocate(G), (1, 2, 1)), Look())
        return [(event.thread, event.kind) for event in ran(*program).events]

    assert shape() == shape()


def test_calls_at_once_follow_each_other_where_they_cannot_be_scheduled() -> None:
    class Native:
        capabilities = {"spaces": (0, 1), "scheduled": False}  # noqa: RUF012 - as a subject writes it
        vmm_allocator = staticmethod(reference.vmm_allocator)

    history = ran(Allocate(G), Together(Deallocate(), Synchronize()), subject=Native())
    threads = [event.thread for event in history.events if event.kind == "note" and event.args[0] in ("call", "return")]
    second = threads.index(1)
    assert threads[second - 2 : second + 2] == [0, 0, 1, 1], "it is made when the first is over"
    assert history.header["not_applicable"] == {"ALLOC-80": "the subject declares scheduled=False"}


def test_the_second_of_two_calls_is_outside_the_contexts_of_the_first_thread() -> None:
    class Native:
        capabilities = {"spaces": (0, 1), "scheduled": False}  # noqa: RUF012 - as a subject writes it
        vmm_allocator = staticmethod(reference.vmm_allocator)

    together = Together(Synchronize(), Allocate(G))
    history = ran(Fail("event_record"), Tag(), Allocate(G), Deallocate(), together, subject=Native())
    tagged, untagged = notes(history, "call", "allocate")
    assert (tagged["tag"], untagged["tag"]) == (True, False)
    assert judge(history).findings == []


def test_streams_may_end_before_the_allocator() -> None:
    history = ran(Allocate(G), streams_end=True)
    kinds = [(event.who, event.kind) for event in history.events]
    last_use = max(number for number, kind in enumerate(kinds) if kind[1] == "stream_destroy")
    assert kinds.index((SUBJECT, "device_synchronize")) > last_use
    assert judge(history).findings == []


def test_crash_is_an_outcome() -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any, **named: Any) -> Any:
                raise KeyError(name)

            return call

    class Subject:
        @staticmethod
        def vmm_allocator(driver: Any, devices: Any) -> Any:
            return Broken()

    history = ran(Allocate(G), Look(), Synchronize(), subject=Subject)
    assert {answer["status"] for answer in notes(history, "return") if answer["name"] != "open"} == {"crashed"}
    assert {look["status"] for look in notes(history, "look")} == {"crashed"}
    assert "ALLOC-181" in {finding.invariant for finding in judge(history).findings}


def test_subject_that_cannot_be_made_is_an_outcome() -> None:
    class Subject:
        @staticmethod
        def vmm_allocator(driver: Any, devices: Any) -> Any:
            raise SubjectError(Code.UNAVAILABLE, "not today")

    history = ran(Allocate(G), Look(), subject=Subject)
    assert ends(history) == ["refused", "refused"]
    assert [event.kind for event in history.events if event.who == SUBJECT] == []


def test_answer_of_the_wrong_type_is_a_crash() -> None:
    class Wrong:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def allocate(self, *arguments: Any, **named: Any) -> Any:
            return tuple(self.inner.allocate(*arguments, **named))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    class Subject:
        @staticmethod
        def vmm_allocator(driver: Any, devices: Any) -> Any:
            return Wrong(reference.vmm_allocator(driver, devices))

    answer = notes(ran(Allocate(G), subject=Subject), "return", "allocate")[0]
    assert (answer["status"], answer["code"]) == ("crashed", "TypeError")


def test_driver_is_as_the_configuration_says() -> None:
    seen: list[DriverOptions] = []

    def opened(options: DriverOptions) -> HostDriver:
        seen.append(options)
        return HostDriver(options)

    configuration = Configuration(devices=2, recommended=16384, capacity=1 << 18, eager=True)
    run(Program("vmm-allocator", configuration, (ops.Look(),)), reference, opened)
    options = seen[0]
    assert (options.devices, options.capacity, options.schedule) == (2, 1 << 18, "eager")
    assert options.granularity == (4096, 16384)
