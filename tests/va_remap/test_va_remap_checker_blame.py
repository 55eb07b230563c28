"""The checker of ``va-remap`` where somebody is to blame, and where nobody is or little can be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from other_scopes import LooksAtProfileFirst
from other_scopes import subject as made_of
from va_histories import (
    DONATABLE,
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
    notes,
    plan,
    ran,
    without,
)

from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.contracts import BufferKind, BufferSpec, ExecutionScope, MemoryAllocator, Range, VmmAllocator
from vmm_conformance.programs.va_remap import (
    Bind,
    Coarsen,
    Drain,
    ExecutablePlan,
    Fail,
    Foreign,
    Nullify,
    Operation,
    Probe,
    Run,
    Share,
)
from vmm_reference.mutants.scopes import AliasesEarly, NoLock
from vmm_reference.remapping import Remapping
from vmm_reference.subject import reference

R = Run()
WATCHED = (R, R, R)


# -- who is to blame


SHORT: dict[str, tuple[tuple[ExecutablePlan, ...], tuple[Operation, ...], int]] = {
    "another-run": ((plan(TEMPS, TEMP), plan(TEMPS, TEMP)), (R, Run(1), R), 1),
    "a-copy": (
        (plan(TEMPS, TEMP), plan(TEMPS, TEMP, DONATABLE)), (R, Run(1, donate=False), R, Run(1, donate=False)), 3,
    ),
}  # fmt: skip
"""Where the budget takes away the memory of a temporary buffer."""


@pytest.mark.parametrize("why", SHORT)
def test_that_memory_is_short_is_nobodys_fault(why: str) -> None:
    (planned, *others), operations, budget = SHORT[why]
    history = ran(planned, *operations, others=tuple(others), budget=budget)
    assert found(history) == []


def test_memory_that_changes_without_need_is_the_subjects_doing() -> None:
    (planned, *others), operations, budget = SHORT["another-run"]
    history = ran(planned, *operations, others=tuple(others), budget=budget)
    history.header["configuration"] = replace(history.header["configuration"], budget=0)
    assert found(history) == ["SCOPE-123"]


def test_memory_that_the_caller_has_drained_may_change() -> None:
    assert found(ran(plan(TEMPS, TEMP), R, Drain(), R)) == []


def test_memory_that_was_shown_for_another_executable_may_be_mapped_anew() -> None:
    """The output of the one is freed, and becomes the other's."""
    planned, other = plan(PROFILED, OUTPUT), Run(1)
    history = ran(planned, *WATCHED, R, other, other, other, other, R, other, others=(planned,))
    assert found(history) == []


class Swaps(Remapping):
    """The first two buffers change slices from run to run."""

    def show(self, index: int, buffer: Range, allocator: VmmAllocator) -> Range:
        if index == 0:
            self.slices[0], self.slices[1] = self.slices[1], self.slices[0]
        return super().show(index, buffer, allocator)


@pytest.mark.parametrize("before", [(), (Bind(0, 1),)], ids=["ascending", "descending"])
def test_buffers_that_change_slices_are_both_mapped_for_nothing(before: tuple[Operation, ...]) -> None:
    history = ran(plan(PROFILED, PARAMETER, PARAMETER), *before, *WATCHED, R, R, subject=made_of(Swaps))
    assert [each.invariant for each in judge(history).findings].count("SCOPE-128") == 2


def test_what_is_shown_is_what_a_copy_has_replaced() -> None:
    history = ran(plan(PROFILED, DONATABLE), *WATCHED, Run(donate=False), subject=made_of(AliasesEarly))
    assert found(history) == ["SCOPE-125"]


REFUSED: dict[str, tuple[tuple[Operation, ...], int, str, dict[str, Any]]] = {
    "first-unknown": ((), 0, "SCOPE-125", {"reason": "unknown"}),
    "last-unknown": ((), 1, "SCOPE-125", {"reason": "unknown"}),
    "own-unknown": ((Foreign(0),), 0, "SCOPE-125", {"reason": "unknown"}),
    "first-aliased": ((), 0, "SCOPE-127", {"reason": "source-aliased"}),
    "last-aliased": ((), 1, "SCOPE-127", {"reason": "source-aliased"}),
    "nobodys-aliased": ((), 0, "SCOPE-127", {"reason": "source-aliased", "address": Range(G, 1000)}),
    "in-use": ((), 0, "SCOPE-127", {"reason": "active"}),
}


@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.parametrize("kind", [PARAMETER, OUTPUT], ids=["parameter", "output"])
@pytest.mark.parametrize("why", REFUSED)
def test_a_run_that_asks_for_the_wrong_alias_is_to_blame(why: str, kind: BufferSpec, reserved: bool) -> None:
    """Whoever knows the other buffers; also at addresses that were reserved outside of its runs."""
    before, which, rule, changes = REFUSED[why]
    history = ran(plan(PROFILED, kind, PARAMETER), *before, *WATCHED, R)
    asked = details(history, "memory", name="map", scope=4)
    asked[min(which, len(asked) - 1)].update(status="refused", code="NOT_FOUND", **changes)
    if not reserved:
        without(history, *notes(history, "memory", name="create_reservation"))
    assert rule in found(history)


@pytest.mark.parametrize("times", [2, 3])
def test_an_alias_that_can_never_be_ended_is_nobodys_fault(times: int) -> None:
    """It has been tried again at teardown, and once more in the end."""
    failures = (Fail("unmap", 1 + number) for number in range(times))
    history = ran(plan(PROFILED, OUTPUT), *WATCHED, *failures, R, R)
    assert found(history) == []


# -- what is allocated


def test_a_run_that_allocates_no_two_buffers_shows_no_order() -> None:
    judged = judge(ran(plan(TEMPS, TEMP, BufferSpec(G, space=1)), Fail("allocate_mapped"), R))
    assert judged.findings == []
    assert not judged.witnesses["SCOPE-132"]


def test_nothing_may_be_asked_for_where_nothing_is_needed() -> None:
    history = ran(plan(TEMPS, TEMP, BufferSpec(0, BufferKind.OUTPUT)), R)
    asks(history, notes(history, "return", name="generate")[0], 1, "allocate", result=Range(0, 0))
    assert found(history) == []


@pytest.mark.parametrize(
    ("name", "result", "rules"),
    [("synchronize", None, []), ("allocate", Range(1 << 40, G), ["SCOPE-120", "SCOPE-131"])],
)
def test_a_run_that_is_refused_holds_nothing(name: str, result: Range | None, rules: list[str]) -> None:
    history = ran(plan(TEMPS, TEMP), R, Run(stream=1))
    asks(history, notes(history, "return", name="create", scope=2)[0], 2, name, result=result)
    assert found(history) == rules


def test_a_run_that_frees_what_is_the_callers_is_to_blame() -> None:
    history = ran(plan(TEMPS, TEMP, PARAMETER), Foreign(0), R)
    parameter = details(history, "scope")[0]["arguments"][1]
    refused = {"status": "refused", "code": "NOT_FOUND", "reason": "unknown"}
    asks(history, notes(history, "return", name="teardown")[0], 1, "deallocate", address=parameter, **refused)
    assert found(history) == ["SCOPE-130"]


@pytest.mark.parametrize("name", ["map", "allocate_mapped"])
def test_what_is_asked_for_outside_of_runs_is_no_runs(name: str) -> None:
    history = ran(plan(TEMPS, TEMP), R)
    asks(history, notes(history, "return", name="close")[0], 0, name, address=Range(G, G), place=Range(2 * G, G))
    assert found(history) == []


# -- where little can be told


class LooksUnderItsLock(LooksAtProfileFirst):
    """Takes its lock for a look at the profile, and for no longer."""

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        with self.lock:
            self.check_open()
        return super().create_scope(device, stream, allocator)


ANY = (Run(stream=1), Run(other=True), Run(stream=1, probe=Probe.CREATED))


@pytest.mark.parametrize("run", ANY, ids=["stream", "allocator", "second"])
@pytest.mark.parametrize("owned", [(), (0,)], ids=["foreign", "doubtful"])
@pytest.mark.parametrize("first", [False, True], ids=["stream-first", "profile-first"])
def test_a_run_that_remaps_nothing_may_be_refused_or_not(run: Run, owned: tuple[int, ...], first: bool) -> None:
    """An executable that has given up may look at stream and allocator all the same."""
    chosen = made_of(LooksUnderItsLock) if first else reference
    history = ran(plan(PROFILED, PARAMETER), Foreign(0), *WATCHED, R, run, subject=chosen)
    details(history, "return", name="create", scope=4)[0]["owned"] = owned
    assert found(history) == []


@pytest.mark.parametrize("then", [Nullify(0), Coarsen()], ids=["null", "granularity"])
def test_a_run_that_may_or_may_not_remap_may_be_refused(then: Operation) -> None:
    history = ran(plan(PROFILED, NULLABLE), *WATCHED, R, then, R)
    details(history, "return", name="create", scope=4)[0]["owned"] = ()
    assert "INTERNAL" in [answer["outcome"]["code"] for answer in details(history, "return", scope=5)]
    assert found(history) == []


def test_a_reservation_may_have_room_for_what_was_known_a_moment_ago() -> None:
    history = ran(plan(PROFILED, PARAMETER, PARAMETER), *WATCHED, R)
    details(history, "return", name="create", scope=4)[0]["owned"] = (1,)
    assert found(history) == []


def test_what_two_share_is_not_remapped_whoever_knows_it() -> None:
    history = ran(plan(PROFILED, PARAMETER, PARAMETER), Share(1, 0), *WATCHED, R)
    (created,) = details(history, "return", name="create", scope=4)
    created["owned"] = ()
    assert found(history) == []
    created["enabled"] = True
    assert found(history) == ["POLICY-141"]


def test_a_parameter_that_was_not_promised_is_not_shown_later() -> None:
    history = ran(plan(PROFILED, TEMP, PARAMETER), *WATCHED, R, R)
    details(history, "return", name="create", scope=4)[0]["owned"] = ()
    for scope in (4, 5):
        details(history, "executing", scope=scope)[0]["persistent"] = (0,)
    assert found(history) == ["POLICY-140"]


BACK = (R, Bind(0, 1), R, Bind(0, 0), R, R)
TOLD: dict[str, tuple[tuple[BufferSpec, ...], tuple[Operation, ...], tuple[int, ...], str]] = {
    "moved": ((TEMP, PARAMETER), BACK, (0, 1), "POLICY-139"),
    "null": ((TEMP, NULLABLE), (R, Nullify(0), R, Bind(0, 0), R, R), (0, 1), "POLICY-139"),
    "both": ((TEMP, NULLABLE), (R, Bind(0, 1), R, Nullify(0), R, Bind(0, 0), R), (0, 1), "POLICY-139"),
    "foreign": ((TEMP, PARAMETER), (Foreign(0), *WATCHED, R), (0, 1), "POLICY-140"),
    "one-foreign": ((PARAMETER, PARAMETER), (Foreign(1), *WATCHED, R), (0, 1), "POLICY-140"),
    "shared": ((TEMP, PARAMETER, PARAMETER), (Share(1, 0), *WATCHED, R), (0, 1), "POLICY-140"),
    "temp": ((TEMP, PARAMETER), (*WATCHED, R), (1,), "POLICY-141"),
}
"""Promises that are wrong for one reason."""


@pytest.mark.parametrize("doubtful", [False, True])
@pytest.mark.parametrize("why", TOLD)
def test_a_wrong_promise_is_told_by_the_rule_that_it_breaks_alone(why: str, doubtful: bool) -> None:
    buffers, operations, promise, rule = TOLD[why]
    history = ran(plan(PROFILED, *buffers), *operations)
    if doubtful and why == "shared":
        details(history, "return", name="create", scope=4)[0]["owned"] = ()
    details(history, "executing", scope=4)[0]["persistent"] = promise
    assert found(history) == [rule]


def test_three_runs_are_enough_even_if_two_were_one_too_many() -> None:
    history = ran(plan(PROFILED, TEMP), R, R, Run(probe=Probe.CREATED), R, subject=made_of(NoLock))
    assert "SCOPE-122" in found(history)
    assert "POLICY-137" not in found(history)
