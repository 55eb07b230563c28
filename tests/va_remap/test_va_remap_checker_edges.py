"""The checker of ``va-remap`` where a rule just holds, and where it just does not."""

from __future__ import annotations

import pytest
from va_histories import (
    ALWAYS,
    OUTPUT,
    PARAMETER,
    PROFILED,
    TEMP,
    TEMPS,
    G,
    details,
    insert,
    notes,
    plan,
    ran,
    replaced,
)  # fmt: skip

from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.contracts import Code, Range, RemapMode
from vmm_conformance.history.events import Event, History
from vmm_conformance.programs.va_remap import Fail, Foreign, ParseMode, Run

R = Run()
WATCHED = (R, R, R)
SHOWING: tuple[tuple[str, dict[str, str]], ...] = (("call", {"name": "execute"}), ("executing", {}))


def again(history: History, event: Event) -> None:
    """``event`` is there twice."""
    history.events.insert(history.events.index(event), event)


def found(history: History) -> list[str]:
    return sorted({finding.invariant for finding in judge(history).findings})


@pytest.mark.parametrize(("mode", "rule"), [(ALWAYS, "POLICY-135"), (TEMPS, "POLICY-136"), (PROFILED, "POLICY-137")])
def test_a_run_executes_once(mode: RemapMode, rule: str) -> None:
    history = ran(plan(mode, TEMP, OUTPUT), R, R)
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


def test_a_foreign_parameter_is_not_shown_even_if_another_is_foreign_too() -> None:
    history = ran(plan(PROFILED, TEMP, PARAMETER, PARAMETER), Foreign(0), Foreign(1), *WATCHED, R)
    assert found(history) == []
    (call,), (executing,) = (notes(history, what, scope=4, **name) for what, name in SHOWING)
    known = details(history, "memory", name="allocate_mapped", scope=4)[0]
    source, place = call.args[1]["table"][1], Range(known["place"].end, G)
    shown = {**known, "name": "map", "address": source, "place": place, "result": None, "calls": 2}
    insert(history, executing, "memory", **shown)
    assert "POLICY-140" in found(history)
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
@pytest.mark.parametrize("mode", [ALWAYS, TEMPS, PROFILED])
def test_memory_is_behind_all_of_what_a_run_is_given(mode: RemapMode, by: int) -> None:
    """One byte behind its memory, and where nothing is."""
    history = ran(plan(mode, TEMP), R, R)
    assert found(history) == []
    (told,) = details(history, "executing", scope=2)
    told["table"] = replaced(told["table"], 0, address=told["table"][0].address + by)
    assert found(history) != []
