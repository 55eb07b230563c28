"""Failure points: which there are, the programs they become, and what a run of them shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from vmm_conformance.contracts import CONTRACTS, Code, Status
from vmm_conformance.history.events import CALLS, HARNESS, SUBJECT, Event, History
from vmm_conformance.programs import allocator, skip_remap, va_remap, vmm_allocator
from vmm_conformance.programs.failing import ALLOCATOR_CODES, DRIVER_CODES, FAILING, NO_POINTS
from vmm_conformance.programs.files import from_data
from vmm_conformance.programs.program import Program
from vmm_conformance.related import all_mutants
from vmm_conformance.running.ended import TIMEOUT, Ended
from vmm_conformance.running.endings import MOST
from vmm_conformance.running.points import BEHIND, Point, Points, Strike, bases, calls, program_of
from vmm_conformance.running.results import Coverage, ItemResult
from vmm_conformance.running.session import BUDGETS, LARGEST, Options, bench_for, know, plan, point_items, run_item
from vmm_conformance.running.suites import load_suites
from vmm_reference.subject import reference

SUITE = {suite.contract: suite for suite in load_suites()}
STEP = skip_remap.Step()
ONE = allocator.Allocate(100)
CODES = ("OUT_OF_MEMORY", "INVALID_VALUE", "NOT_PERMITTED", "NOT_SUPPORTED")


def allocating(*operations: Any) -> Program:
    return Program("allocator", allocator.Configuration(streams=1), operations)


def told(*calls_: tuple[str, str, Any], op: int = 0) -> History:
    """A history of calls: whose, of which kind, and the result."""
    history = History()
    for who, kind, result in calls_:
        arguments = (kind, {}) if who == HARNESS else ()
        shown = "note" if who == HARNESS else kind
        history.events.append(Event(len(history), op, 0, who, shown, arguments, 0, result))
    return history


# -- the data


def test_every_contract_has_points_or_a_reason_for_having_none() -> None:
    assert set(FAILING) | set(NO_POINTS) == set(CONTRACTS)
    assert not set(FAILING) & set(NO_POINTS)


def test_codes_are_of_calls_that_there_are_and_none_is_success_or_sticky() -> None:
    assert set(DRIVER_CODES) < CALLS
    assert CALLS - set(DRIVER_CODES) == {"progress"}  # the test's own: no device has such a call
    sticky = {Status.SUCCESS, Status.NOT_INITIALIZED, Status.DEINITIALIZED, Status.ILLEGAL_ADDRESS}
    assert not any(sticky & set(codes) or len(set(codes)) < len(codes) for codes in DRIVER_CODES.values())
    assert set(ALLOCATOR_CODES) == set(va_remap.CALLS)


# -- calls and programs


def test_calls_are_counted_by_kind_within_their_operation() -> None:
    first = [(SUBJECT, "map", None), (SUBJECT, "create", 1), (HARNESS, "call", None), (SUBJECT, "map", "injected")]
    history = told(*first)
    history.events += told((SUBJECT, "map", None), (HARNESS, "map", None), (SUBJECT, "progress", 0), op=1).events
    found = [(call.op, call.kind, call.k, call.struck) for call in calls(history, FAILING["allocator"])]
    assert found == [(0, "map", 1, False), (0, "create", 1, False), (0, "map", 2, True), (1, "map", 1, False)]


def test_a_base_program_has_no_failures_and_closes() -> None:
    program = allocating(allocator.Fail("map"), ONE)
    assert FAILING["allocator"].base(program).operations == (ONE, allocator.Close(0))


def test_the_failure_stands_ahead_of_its_operation_and_a_few_follow() -> None:
    operations = tuple(allocator.Use(number) for number in range(10))
    point = Point(allocating(*operations), 3, (Strike("map", 2, Status.UNKNOWN), Strike("unmap", 1, Status.UNKNOWN)))
    made = program_of(point, FAILING["allocator"]).operations
    fails = (allocator.Fail("map", 2, 999), allocator.Fail("unmap", 1, 999))
    assert made == (*operations[:3], *fails, *operations[3 : 4 + BEHIND])


def test_what_a_runner_does_not_repeat_is_repeated_by_the_program() -> None:
    program = Program("skip-remap", skip_remap.Configuration(()), (STEP, skip_remap.Close()))
    made = [
        program_of(Point(program, op, (Strike("map", 1, 2),)), FAILING["skip-remap"]).operations for op in range(2)
    ]
    fail = skip_remap.Fail("map", 1, 2)
    assert made == [(fail, STEP, STEP, skip_remap.Close()), (STEP, fail, skip_remap.Close())]


def test_points_of_va_remap_are_calls_on_its_allocator() -> None:
    program = SUITE["va-remap"].scenarios[0].program
    points = Points(FAILING["va-remap"], lambda each: bench_for("va-remap", reference).run(each).history)
    points.reach([program])
    covered = list(points.cover(5))
    assert all(isinstance(point.strikes[0].code, Code) for point in covered)
    assert points.coverage.covered == 5


# -- covering


class Told:
    """Runs programs of one allocation: it creates and maps; a map that fails is undone by a release."""

    def __init__(self) -> None:
        self.ran: list[Program] = []

    def __call__(self, program: Program) -> History:
        self.ran.append(program)
        fails = {(o.kind, o.status) for o in program.operations if isinstance(o, allocator.Fail)}
        kinds = {kind for kind, _ in fails}
        made = ["create"] if "create" in kinds else ["create", "map", *(["release"] if "map" in kinds else [])]
        story: list[tuple[str, str, Any]] = [(HARNESS, "call", None)]
        story += [(SUBJECT, kind, "injected" if kind in kinds else None) for kind in made]
        story += [(HARNESS, "return", None), (SUBJECT, "event_query", True)]
        return told(*story, op=len(fails))


def covering(bound: int) -> tuple[Told, Points, list[Point]]:
    run = Told()
    points = Points(FAILING["allocator"], run)
    points.reach([allocating(ONE), allocating(ONE)])
    return run, points, list(points.cover(bound))


def test_every_call_fails_with_every_code_and_so_does_its_undo() -> None:
    run, points, covered = covering(1000)
    one, two = ([p.strikes for p in covered if len(p.strikes) == n] for n in (1, 2))
    count = Counter(strikes[0].kind for strikes in one)
    assert count == {kind: len(DRIVER_CODES[kind]) for kind in ("create", "map")}
    assert {(a.kind, b.kind) for a, b in two} == {("map", "release")}
    assert len(set(two)) == len(two) == len(DRIVER_CODES["map"]) * len(DRIVER_CODES["release"])
    # what is never reached again is not covered: the query behind a failed call has no failure that strikes
    missed = len(DRIVER_CODES["event_query"])
    assert points.coverage == Coverage(len(one) + missed, len(one), len(two), len(two))
    assert len(run.ran) == 1 + missed + len(covered)  # equal programs are one


def test_a_failure_that_does_not_strike_takes_no_part_of_the_bound() -> None:
    _, points, covered = covering(len(DRIVER_CODES["create"]) + len(DRIVER_CODES["map"]) + 3)
    assert len(covered) == points.coverage.covered + points.coverage.undo_covered == 13


def test_nothing_is_tried_for_ever_where_nothing_strikes() -> None:
    ran = []

    def run(program: Program) -> History:
        ran.append(program)
        return told((SUBJECT, "event_query", True))

    points = Points(FAILING["allocator"], run)
    points.reach([allocating(*[ONE] * length) for length in range(1, 30)])
    ran.clear()
    assert not [*points.cover(4)]
    assert len(ran) == 8


def test_calls_behind_close_can_fail_as_well() -> None:
    """Reservations of a VMM allocator are given back when it is closed."""
    run = bench_for("vmm-allocator", reference).run
    asked = vmm_allocator.Allocate(4096), vmm_allocator.Synchronize(0)
    points = Points(FAILING["vmm-allocator"], lambda program: run(program).history)
    points.reach([Program("vmm-allocator", vmm_allocator.Configuration(devices=1), asked)])
    for _ in points.cover(10_000):
        pass
    assert points.coverage.covered == points.coverage.reached


def test_the_bound_is_kept_and_both_kinds_have_their_turn() -> None:
    _, points, covered = covering(6)
    assert len(covered) == 6
    assert points.coverage.reached > 6
    later = covering(12)[2]
    assert later[:6] == covered
    assert {len(point.strikes) for point in later} == {1, 2}


THREE = (("map", 1), ("map", 2), ("create", 1))


def test_each_sort_comes_once_before_any_comes_twice() -> None:
    def run(program: Program) -> History:
        fails = {(o.kind, o.k) for o in program.operations if isinstance(o, allocator.Fail)}
        made = [(SUBJECT, kind, "injected" if (kind, k) in fails else 1) for kind, k in THREE]
        return told(*(each for call in made for each in (call, (HARNESS, "return", None))), op=len(fails))

    points = Points(FAILING["allocator"], run)
    points.reach([allocating(ONE)])
    sorts = [(point.strikes[0].kind, point.strikes[0].k) for point in points.cover(100)]
    once = len(DRIVER_CODES["map"]) + len(DRIVER_CODES["create"])
    assert {k for kind, k in sorts[:once]} == {1}
    assert sorts[once:] == [("map", 2)] * len(DRIVER_CODES["map"])


def test_what_ends_its_process_is_covered_and_shows_nothing() -> None:
    first = iter([told((SUBJECT, "free", None))])
    points = Points(FAILING["allocator"], lambda program: next(first, None))
    points.reach([allocating(ONE)])
    assert len(list(points.cover(10))) == len(DRIVER_CODES["free"])
    assert points.coverage == Coverage(2, 2, 0, 0)


# -- items


class Hangs:
    """A bench whose programs all hang."""

    unseen: Mapping[str, str] = {}
    decode = staticmethod(bench_for("allocator", reference).decode)

    def missing(self) -> str:
        return ""

    def run(self, program: Program) -> Any:
        raise Ended(TIMEOUT, "made no progress for 60 s", 0)

    brief = run


def test_an_item_whose_programs_hang_is_given_up_before_all_of_them_have_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    know("hangs", reference)
    monkeypatch.setattr("vmm_conformance.running.session.bench_of", lambda *_: Hangs())
    (item,) = point_items(SUITE["allocator"], "hangs", "host", 50 * MOST)
    result = run_item(item, Options("smoke"))
    assert sum(ending.times for ending in result.endings) == MOST
    assert (result.state, result.points) == (TIMEOUT, Coverage())


def test_items_share_the_bound_out_in_parts() -> None:
    items = point_items(SUITE["allocator"], "x", "host", 2 * LARGEST + 1)
    assert [item.id for item in items] == [f"allocator/points/{number}[x]" for number in (1, 2, 3)]
    assert sum(item.planned for item in items) == 2 * LARGEST + 1
    assert not point_items(SUITE["flags"], "x", "host", 100)
    parts = [[*bases(item.part, 0, bench_for("allocator", reference).decode)] for item in items]  # type: ignore[arg-type] # parts
    programs = [program for part in parts for program in part]
    assert len(programs) > 50
    assert {scenario.program for scenario in SUITE["allocator"].scenarios[:20]} < set(programs)


@pytest.mark.parametrize("contract", FAILING)
def test_the_reference_stands_every_point_the_same_way_each_time(contract: str) -> None:
    (item,) = point_items(SUITE[contract], "reference", "host", 12)
    results = [run_item(item, Options()) for _ in range(2)]
    assert [failure.message for failure in results[0].failures] == []
    assert results[0].points is not None
    assert results[0].points.covered + results[0].points.undo_covered == 12
    assert results[0].points.reached > 12
    for result in results:
        result.seconds = 0
    assert results[0] == results[1]
    assert ItemResult.from_json(results[0].to_json()) == results[0]


def test_a_plan_has_points_in_proportion_to_the_budget() -> None:
    for budget, programs in BUDGETS.items():
        items = [item for item in plan({"reference": reference}, Options(budget)) if item.kind == "points"]
        assert sum(item.planned for item in items) == len(FAILING) * programs // 5
    nightly = plan({"reference": reference}, Options("nightly"))
    assert sum(item.planned for item in nightly if item.id.startswith("allocator/points/")) >= 5000


def test_under_process_isolation_the_same_points_are_covered() -> None:
    (item,) = point_items(SUITE["allocator"], "reference", "host", 15)
    here, there = (run_item(item, Options(isolation=isolation)) for isolation in ("none", "process"))
    assert here.points == there.points
    assert here.witnesses == there.witnesses


def test_what_only_a_failure_in_an_undo_shows_is_found_and_replays() -> None:
    mutant = next(mutant for mutant in all_mutants() if mutant.id == "step-undo-forgets")
    know("undo-forgets", mutant.subject)
    (item,) = point_items(SUITE[mutant.contract], "undo-forgets", "host", 60)
    failures = {failure.invariant: failure for failure in run_item(item, Options()).failures}
    failure = failures[mutant.breaks[0]]
    program = from_data(failure.program)
    assert [type(operation) for operation in program.operations].count(skip_remap.Fail) == 2
    assert mutant.breaks[0] in bench_for(mutant.contract, mutant.subject).run(program).broken()
