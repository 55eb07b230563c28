"""What the harness does for a program: a caller's part of each run, and nothing that a caller must not do."""

from __future__ import annotations

from typing import Any

from va_histories import (
    ALWAYS,
    CONSTANT,
    DONATABLE,
    NULLABLE,
    OUTPUT,
    PARAMETER,
    PROFILED,
    TEMP,
    TEMPS,
    details,
    notes,
    plan,
    ran,
)

from vmm_conformance.contracts import BufferCommand, Range
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs.va_remap import (
    Bind,
    Close,
    Ending,
    Fail,
    Foreign,
    Free,
    Hold,
    Nullify,
    ParseMode,
    Probe,
    Result,
    Run,
    Share,
)
from vmm_reference.remapping import buffer_allocator

R = Run()
WATCHED = (R, R, R)


def outcomes(history: History) -> list[str]:
    return [event.args[0]["status"] for event in history if event.kind == "end"]


def calls(history: History, scope: int) -> list[str]:
    return [each["name"] for each in details(history, "call", scope=scope)]


def arguments(history: History) -> list[tuple[Range, ...]]:
    return [each["arguments"] for each in details(history, "scope")]


def test_a_run_is_created_generated_executed_torn_down_and_dropped() -> None:
    history = ran(plan(TEMPS, TEMP), R)
    assert calls(history, 1) == ["create", "generate", "execute", "teardown", "drop"]
    assert outcomes(history) == ["ok"]


def test_endings() -> None:
    history = ran(plan(TEMPS, TEMP), *(Run(ending=ending) for ending in Ending))
    assert calls(history, 2) == ["create", "generate", "execute", "drop"]
    assert calls(history, 3) == ["create", "generate", "drop"]
    assert calls(history, 4) == ["create", "generate", "teardown", "drop"]


def test_a_refused_creation_is_not_dropped_and_a_refused_generation_is() -> None:
    history = ran(plan(TEMPS, TEMP), R, Run(stream=1), Fail("allocate_mapped"), R)
    assert calls(history, 2) == ["create"]
    assert calls(history, 3) == ["create", "generate", "drop"]
    assert outcomes(history) == ["ok", "refused", "ok", "refused"]


def test_parameters_and_constants_are_handed_in_and_nothing_else() -> None:
    ((temp, parameter, constant, output),) = arguments(ran(plan(TEMPS, TEMP, PARAMETER, CONSTANT, OUTPUT), R))
    assert temp == output == Range(0, 0)
    assert parameter.address
    assert constant.address


def test_parameters_are_bound_shared_lost_and_found() -> None:
    planned = plan(TEMPS, PARAMETER, PARAMETER, NULLABLE)
    operations = (R, Bind(0, 1), R, Bind(0, 0), R, Share(0, 1), R, Nullify(2), R, Nullify(0), R, Foreign(0), R)
    bound = arguments(ran(planned, *operations))
    assert bound[1][0] != bound[0][0]
    assert bound[2] == bound[0]
    assert bound[3][0] == bound[3][1]
    assert bound[4][2] == Range(0, 0)
    assert bound[5][0].address, "it may not be null"
    assert bound[6][0] not in {table[0] for table in bound[:6]}


def test_a_protected_parameter_is_replaced_by_a_copy() -> None:
    history = ran(plan(TEMPS, DONATABLE), R, Run(donate=False))
    given, protected = (each["table"][0] for each in details(history, "call", name="execute"))
    copied = [event for event in history if event.kind == "copy"]
    assert given == arguments(history)[0][0]
    assert protected != given
    assert [(event.args[0], event.args[1]) for event in copied] == [(protected.address, given.address)]


def test_what_the_caller_takes_over_is_freed_at_once_or_held() -> None:
    planned = plan(ALWAYS, OUTPUT)
    first, second = (
        [each["table"][0].address for each in details(history, "return", name="generate")]
        for history in (ran(planned, R, R), ran(planned, Run(keep=True), R))
    )
    assert first[0] == first[1]
    assert second[0] != second[1]
    third = ran(planned, Run(keep=True), Free(), R)
    assert len({each["table"][0].address for each in details(third, "return", name="generate")}) == 1


def test_outputs_of_a_run_that_failed_are_not_live() -> None:
    history = ran(plan(ALWAYS, OUTPUT), R, Run(result=Result.RAISE_AFTER))
    (good, bad) = (each["live"] for each in details(history, "call", name="teardown"))
    assert len(good) == 1
    assert bad == ()


def test_execution_uses_first_addresses_of_what_is_persistent() -> None:
    """As a captured graph would: a subject that moves a promised buffer is found out."""
    history = ran(plan(TEMPS, TEMP, PARAMETER), R, Bind(0, 1), R)
    launches = [event for event in history if event.kind == "launch" and event.who == HARNESS]
    tables = [each["table"] for each in details(history, "executing")]
    assert [launch.args[3][0].address for launch in launches[:2]] == [tables[0][0].address] * 2
    assert [launch.args[1][0].address for launch in launches[:2]] == [table[1].address for table in tables]


def test_a_consumer_gets_command_buffers_of_the_harness() -> None:
    planned = plan(TEMPS, TEMP, CONSTANT, commands=(BufferCommand((1,), (0,)), BufferCommand((), (0,))))
    history = ran(planned, R, R, consumer=True)
    assert [each["command"] for each in details(history, "memory", name="record")] == [0, 1]
    assert [each["buffer"] for each in details(history, "submit")] == [1, 1]


def test_failures_strike_the_subject_and_not_its_caller() -> None:
    history = ran(plan(ALWAYS, OUTPUT, DONATABLE), Fail("allocate"), Hold(100), Run(donate=False), Run(donate=False))
    assert outcomes(history) == ["ok", "ok", "refused", "ok"]
    assert details(history, "memory", status="refused")[0]["reason"] == "injected"


def test_a_second_run_begins_inside_the_first_and_waits() -> None:
    for probe in (Probe.CREATED, Probe.EXECUTING, Probe.TORN_DOWN):
        history = ran(plan(TEMPS, TEMP), R, Run(probe=probe))
        (blocked,) = notes(history, "blocked")
        second = notes(history, "return", scope=3)
        assert blocked.thread == 1
        assert all(event.thread == 1 for event in second)
        assert second[0].seq > notes(history, "call", scope=2, name="drop")[0].seq


def test_a_second_run_on_another_device_does_not_wait() -> None:
    history = ran(plan(TEMPS, TEMP), Run(device=1), R, Run(probe=Probe.EXECUTING, apart=True), devices=2)
    assert not notes(history, "blocked")
    assert notes(history, "return", scope=4, name="drop")


def test_parameters_that_are_made_while_a_run_executes_are_the_callers() -> None:
    planned = plan(TEMPS, TEMP, OUTPUT, PARAMETER)
    two = Run(probe=Probe.EXECUTING, apart=True), Run(device=1, probe=Probe.TORN_DOWN)
    history = ran(planned, *two, devices=2, budget=3)
    short = [each for each in details(history, "memory") if each["status"] != "ok"]
    assert {(each["code"], each["reason"]) for each in short} == {("RESOURCE_EXHAUSTED", "budget")}


def test_a_deadlock_is_a_crash_and_no_hang() -> None:
    class Stuck:
        """Its second scope waits for the first, which is gone."""

        def buffer_allocator(self, driver: Any, executable: Any) -> Any:
            made = buffer_allocator(driver, executable)
            plain = made.create_scope

            def create(*arguments: Any) -> Any:
                scope = plain(*arguments)
                scope.drop = lambda: None
                return scope

            made.create_scope = create  # type: ignore[method-assign]
            return made

    history = ran(plan(TEMPS, TEMP), R, R, subject=Stuck())
    assert outcomes(history) == ["ok", "crashed"]


def test_what_a_subject_does_not_offer_is_not_applicable() -> None:
    class Bare:
        buffer_allocator = staticmethod(buffer_allocator)

    history = ran(plan(PROFILED, PARAMETER), R, ParseMode("SKIP_TEMP"), subject=Bare(), consumer=True)
    assert set(history.header["not_applicable"]) == {"POLICY-144", "POLICY-145", "POLICY-146", "FLAG-153"}
    assert outcomes(history) == ["ok", "skipped"]


def test_closing_comes_before_work_is_waited_for() -> None:
    history = ran(plan(TEMPS, TEMP), R, R)
    waits = [e.seq for e in history if e.kind == "device_synchronize" and e.who == HARNESS]
    assert notes(history, "call", name="close")[0].seq < waits[0]
    assert calls(ran(plan(TEMPS, TEMP), R, Close(), R), 0) == ["open", "close", "open", "close"]


def test_crashes_of_a_subject_do_not_escape() -> None:
    class Rude:
        def buffer_allocator(self, driver: Any, executable: Any) -> Any:
            raise ZeroDivisionError

    class Odd:
        def buffer_allocator(self, driver: Any, executable: Any) -> Any:
            made = buffer_allocator(driver, executable)
            made.create_scope = lambda *arguments: object()  # type: ignore[assignment, method-assign, return-value]
            return made

    assert outcomes(ran(plan(TEMPS, TEMP), R, subject=Rude())) == ["crashed"]
    assert outcomes(ran(plan(TEMPS, TEMP), R, subject=Odd())) == ["crashed"]


def test_a_caller_without_memory_for_a_second_run_lets_the_first_one_go_on() -> None:
    """All that device 0 may have is the other executable's; then a run on device 1 is to be met by one on device 0."""
    others = (plan(ALWAYS, PARAMETER, PARAMETER),)
    for at in (Probe.CREATED, Probe.EXECUTING, Probe.TORN_DOWN):
        runs = (Run(executable=1), Run(device=1, probe=at, apart=True), Run(device=1))
        history = ran(plan(TEMPS, TEMP, PARAMETER), *runs, others=others, devices=2, budget=2)
        assert outcomes(history) == ["ok"] * 3
        assert calls(history, 2) == ["create", "generate", "execute", "teardown", "drop"]
        assert details(history, "challenge") == []
