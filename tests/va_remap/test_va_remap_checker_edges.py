"""The checker of ``va-remap`` where a rule just holds, and where it just does not."""

from __future__ import annotations

import pytest
from va_histories import (
    ALWAYS,
    NULLABLE,
    OUTPUT,
    PARAMETER,
    PROFILED,
    TEMP,
    TEMPS,
    G,
    asks,
    details,
    found,
    insert,
    notes,
    plan,
    ran,
    replaced,
    without,
)

from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.contracts import BufferCommand, BufferKind, BufferSpec, Code, Range, RemapMode
from vmm_conformance.history.events import Event, History
from vmm_conformance.programs.va_remap import (
    Bind,
    Ending,
    Fail,
    Foreign,
    Nullify,
    Operation,
    ParseMode,
    Probe,
    Result,
    Run,
    Share,
)

R = Run()
WATCHED = (R, R, R)
SHOWING: tuple[tuple[str, dict[str, str]], ...] = (("call", {"name": "execute"}), ("executing", {}))


def again(history: History, event: Event) -> None:
    """``event`` is there twice."""
    history.events.insert(history.events.index(event), event)


@pytest.mark.parametrize("result", [Result.OK, Result.RAISE_BEFORE])
@pytest.mark.parametrize(("mode", "rule"), [(ALWAYS, "POLICY-135"), (TEMPS, "POLICY-136"), (PROFILED, "POLICY-137")])
def test_a_run_executes_once(mode: RemapMode, rule: str, result: Result) -> None:
    history = ran(plan(mode, TEMP, OUTPUT), R, Run(result=result))
    assert found(history) == []
    again(history, notes(history, "executing", scope=2)[0])
    assert rule in found(history)


def test_an_execution_submits_once() -> None:
    history = ran(plan(TEMPS, TEMP, OUTPUT), R, R, consumer=True)
    assert found(history) == []
    again(history, notes(history, "submit", scope=2)[0])
    assert "POLICY-144" in found(history)


def test_what_a_run_may_keep_is_what_it_was_made_to_keep() -> None:
    """The allocator refuses one of two temporary buffers; the other one must be back."""
    history = ran(plan(TEMPS, TEMP, TEMP), Fail("deallocate", 1), Fail("deallocate", 2), R, R)
    assert found(history) == []
    kept = ran(plan(TEMPS, TEMP, TEMP), R)
    requests = notes(kept, "memory", name="deallocate")
    kept.events.remove(requests[-1])
    assert found(kept) != []


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.INTERNAL])
def test_an_alias_that_cannot_be_made_is_refused_by_the_allocators_code(code: Code) -> None:
    history = ran(plan(PROFILED, OUTPUT), R, R, R, Fail("map", 1, code), R)
    assert found(history) == []
    answer = details(history, "return", name="execute")[-1]
    answer["outcome"] = {**answer["outcome"], "code": "OUT_OF_RANGE"}
    assert "SCOPE-126" in found(history)


def test_two_temporary_buffers_that_change_places_are_both_elsewhere() -> None:
    history = ran(plan(TEMPS, TEMP, TEMP), R, R)
    (told,) = details(history, "executing", scope=2)
    told["table"] = told["table"][::-1]
    assert [each.invariant for each in judge(history).findings].count("SCOPE-123") == 2


@pytest.mark.parametrize("by", [-G, G])
def test_a_parameter_is_where_it_was_handed_in(by: int) -> None:
    history = ran(plan(ALWAYS, PARAMETER), R)
    (made,) = details(history, "return", name="generate")
    made["table"] = replaced(made["table"], 0, address=made["table"][0].address + by)
    assert "SCOPE-124" in found(history)


@pytest.mark.parametrize(("code", "wrong"), [("INVALID_ARGUMENT", False), ("ABORTED", True), ("NOT_FOUND", True)])
def test_an_update_mode_that_is_none_is_refused_by_one_code(code: str, wrong: bool) -> None:
    history = ran(plan(TEMPS, TEMP), ParseMode("SKIP"))
    (mode,) = details(history, "mode", text="SKIP")
    mode["outcome"] = {**mode["outcome"], "code": code}
    assert found(history) == (["FLAG-153"] if wrong else [])


@pytest.mark.parametrize(("before", "owned"), [((), ()), ((Foreign(0),), (1,))])
def test_of_a_parameter_that_changes_hands_as_a_run_begins_either_is_right(
    before: tuple[Foreign, ...], owned: tuple[int, ...]
) -> None:
    """Whoever asks the allocator before the run is right, and whoever asks after."""

    def judged(*promise: int) -> list[str]:
        history = ran(plan(PROFILED, TEMP, PARAMETER), *before, *WATCHED, R)
        details(history, "return", name="create", scope=4)[0]["owned"] = owned
        details(history, "executing", scope=4)[0]["persistent"] = promise
        return [id for id in found(history) if id.startswith("POLICY-1")]

    assert judged(0, 1) == judged(0) == []
    assert "POLICY-141" in judged(1)


LEFT_OUT: dict[str, tuple[tuple[Operation, ...], str]] = {
    "foreign": ((Foreign(0), Foreign(1), *WATCHED, R), "POLICY-140"),
    "shared": ((Share(1, 0), *WATCHED, R), "POLICY-140"),
    "moved": ((R, Bind(0, 1), R, R, R), "POLICY-139"),
    "moved-and-null": ((R, Bind(0, 1), R, Nullify(0), R, Bind(0, 1), R), "POLICY-139"),
}
"""Why the first of two parameters is never shown."""


@pytest.mark.parametrize("why", LEFT_OUT)
def test_what_was_left_out_is_not_shown(why: str) -> None:
    """Also where it cannot be told whether what two share was the allocator's."""
    operations, rule = LEFT_OUT[why]
    history = ran(plan(PROFILED, TEMP, NULLABLE, NULLABLE), *operations)
    if why == "shared":
        details(history, "return", name="create", scope=4)[0]["owned"] = ()
    assert found(history) == []
    (call,), (executing,) = (notes(history, what, scope=4, **name) for what, name in SHOWING)
    known = details(history, "memory", name="allocate_mapped", scope=4)[0]
    source, place = call.args[1]["table"][1], Range(known["place"].end, G)
    shown = {**known, "name": "map", "address": source, "place": place, "result": None, "calls": 2}
    insert(history, executing, "memory", **shown)
    assert rule in found(history)
    assert "POLICY-137" not in found(history)


@pytest.mark.parametrize("outcome", [{"code": "OUT_OF_RANGE"}, {"status": "ok", "code": ""}, {"status": "raised"}])
def test_an_alias_that_cannot_be_ended_is_told_by_the_allocators_code(outcome: dict[str, str]) -> None:
    history = ran(plan(PROFILED, OUTPUT), R, R, R, Fail("unmap"), R)
    assert found(history) == []
    answer = details(history, "return", name="execute")[-1]
    answer["outcome"] = {**answer["outcome"], **outcome}
    assert "SCOPE-127" in found(history)


def test_the_promise_of_a_run_without_doubt_is_kept_as_it_was_made() -> None:
    """One that begins when a parameter has become foreign adds to what was selected, and takes nothing from it."""
    history = ran(plan(PROFILED, TEMP, PARAMETER, PARAMETER), *WATCHED, R, R)
    details(history, "return", name="create", scope=4)[0]["owned"] = (2,)
    assert [id for id in found(history) if id.startswith("POLICY-1")] == []
    details(history, "executing", scope=5)[0]["persistent"] = (0, 2)
    assert "POLICY-138" in found(history)


@pytest.mark.parametrize("by", [1, 1 << 40])
@pytest.mark.parametrize(("mode", "vmm"), [(ALWAYS, True), (TEMPS, True), (TEMPS, False), (PROFILED, True)])
def test_memory_is_behind_all_of_what_a_run_is_given(mode: RemapMode, vmm: bool, by: int) -> None:
    """One byte behind its memory, and where nothing is."""
    history = ran(plan(mode, TEMP), R, R, vmm=vmm)
    assert found(history) == []
    (told,) = details(history, "executing", scope=2)
    told["table"] = replaced(told["table"], 0, address=told["table"][0].address + by)
    assert found(history) != []


def test_more_memory_than_is_asked_for_may_be_behind_it() -> None:
    history = ran(plan(TEMPS, TEMP), R, vmm=False)
    (made,) = (event for event in history.events if event.kind == "alloc")
    made.args = (made.args[0] + 1, *made.args[1:])
    assert found(history) == []


@pytest.mark.parametrize("rights", [((0, 1),), ((1, 3),)], ids=["read-only", "another-device"])
def test_a_run_may_read_and_write_what_it_is_given(rights: tuple[tuple[int, int], ...]) -> None:
    history = ran(plan(TEMPS, TEMP), R)
    (access,) = (event for event in history.events if event.kind == "set_access")
    access.args = (*access.args[:2], rights)
    assert found(history) == ["SCOPE-123"]


@pytest.mark.parametrize("scope", [1, 2])
def test_an_address_that_changes_within_its_memory_is_another(scope: int) -> None:
    history = ran(plan(TEMPS, BufferSpec(1000)), R, R)
    (told,) = details(history, "executing", scope=scope)
    told["table"] = replaced(told["table"], 0, address=told["table"][0].address + 8)
    assert found(history) == ["SCOPE-123"]


@pytest.mark.parametrize("what", ["return", "executing"])
@pytest.mark.parametrize(("size", "wrong"), [(1000, (999, 1001)), (G, (G - 1, 2 * G)), (2 * G - 1, (G, 2 * G + 1))])
def test_a_size_is_that_of_the_buffer(what: str, size: int, wrong: tuple[int, int]) -> None:
    for each in wrong:
        history = ran(plan(ALWAYS, BufferSpec(size, BufferKind.OUTPUT)), R)
        assert found(history) == []
        told = next(one for one in details(history, what, scope=1) if "table" in one)
        told["table"] = replaced(told["table"], 0, size=each)
        assert "SCOPE-129" in found(history)


def test_what_is_mapped_counts_where_nothing_executes() -> None:
    judged = judge(ran(plan(TEMPS, BufferSpec(1000)), Run(ending=Ending.EARLY)))
    assert judged.findings == []
    assert judged.witnesses["SCOPE-129"]


# -- one after the other


def test_what_a_second_run_reserves_before_its_turn_is_too_early() -> None:
    history = ran(plan(TEMPS, TEMP), R, Run(probe=Probe.EXECUTING))
    asks(history, notes(history, "call", name="drop", scope=2)[0], 3, "create_reservation")
    assert found(history) == ["SCOPE-122"]


def test_a_run_that_frees_when_the_next_one_has_got_in_has_let_it_in_too_early() -> None:
    history = ran(plan(TEMPS, TEMP), R, Run(probe=Probe.TORN_DOWN, ending=Ending.NO_TEARDOWN))
    assert found(history) == []
    (freed,), (created,) = (
        notes(history, *what, scope=scope, name=name)
        for scope, name, *what in ((2, "deallocate", "memory"), (3, "create", "return"))
    )
    without(history, freed)
    history.events.insert(history.events.index(created) + 1, freed)
    assert found(history) == ["SCOPE-122"]


# -- command buffers


SEVERAL = plan(TEMPS, TEMP, TEMP, commands=(BufferCommand((), (0,)), BufferCommand((), (1,))))


def another(history: History, scope: int, number: int) -> None:
    """A run records another command buffer than the last, whole, and submits that."""
    (submit,) = notes(history, "submit", scope=scope)
    for record in details(history, "memory", name="record", scope=1):
        insert(history, submit, "memory", **{**record, "scope": scope, "buffer": number})
    submit.args[1]["buffer"] = number


@pytest.mark.parametrize("number", [0, 2])
def test_another_command_buffer_is_for_other_addresses(number: int) -> None:
    history = ran(SEVERAL, R, R, consumer=True)
    assert found(history) == []
    another(history, 2, number)
    assert found(history) == ["POLICY-144"]


def test_another_command_buffer_may_be_for_the_first_promise() -> None:
    history = ran(plan(PROFILED, TEMP), *WATCHED, R, consumer=True)
    for told in (*details(history, "memory", name="record", scope=4), *details(history, "submit", scope=4)):
        told["buffer"] = 2
    assert found(history) == []


def test_opening_an_executable_may_cost_another_one_its_command_buffer() -> None:
    history = ran(SEVERAL, R, Run(1), R, others=(plan(TEMPS, TEMP),), consumer=True)
    another(history, 3, 3)
    assert found(history) == []


def test_recording_that_has_failed_is_not_kept_to_oneself() -> None:
    history = ran(plan(TEMPS, TEMP), R, consumer=True)
    details(history, "memory", name="record")[0].update(status="refused", code="INTERNAL", reason="injected")
    without(history, *notes(history, "submit"))
    assert found(history) == ["POLICY-146"]


def test_a_command_buffer_that_failed_is_put_to_the_test_once() -> None:
    judged = judge(ran(plan(TEMPS, TEMP), Fail("record"), R, R, R, consumer=True))
    assert judged.findings == []
    assert judged.witnesses["POLICY-146"] == 1
