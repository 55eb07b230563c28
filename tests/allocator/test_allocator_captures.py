"""Captures: what must not be called while one is under way, and what stays for captured work. ALLOCATOR-19 and 20."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.programs.allocator import (
    Allocate,
    Capture,
    Check,
    Configuration,
    Deallocate,
    DropCapture,
    EndCapture,
    Fail,
    Grow,
    Operation,
    Pause,
    Replay,
    Synchronize,
    Trim,
    Use,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.session import bench_for
from vmm_reference.mutants import MUTANTS
from vmm_reference.subject import Reference
from vmm_suites.scenarios.allocator_captures import CAPTURES

G = 4096
QUIET, KEPT = "ALLOCATOR-19", "ALLOCATOR-20"


def run(*operations: Operation, subject: Any = None, **configuration: Any) -> Judged:
    program = Program("allocator", Configuration(**configuration), operations)
    return bench_for("allocator", subject or Reference()).run(program)


def subject_of(name: str) -> Any:
    return next(mutant.subject for mutant in MUTANTS if mutant.id == f"allocator-{name}")


def kinds(judged: Judged, who: str = "harness") -> list[str]:
    return [event.kind for event in judged.history.events if event.who == who]


def outcomes(judged: Judged) -> list[str]:
    ends = [event for event in judged.history.events if event.kind == "end"]
    return [event.args[0]["status"] for event in ends]


@pytest.mark.parametrize("scenario", CAPTURES, ids=lambda scenario: scenario.id)
def test_the_reference_passes_and_is_put_to_the_test(scenario: Any) -> None:
    judged = bench_for("allocator", Reference()).run(scenario.program)
    assert judged.broken() == {}
    assert [id for id in scenario.exercises if not judged.judge.witnesses.get(id)] == []
    assert not [event for event in judged.history.events if event.kind == "note" and event.args[0] == "spoiled"]


def test_work_is_captured_and_launched() -> None:
    judged = run(Capture(0), Allocate(G), Use(0), EndCapture(), Replay(), Replay(), DropCapture())
    assert kinds(judged).count("graph_launch") == 2
    launches = [event for event in judged.history.events if event.kind == "launch"]
    assert all(not event.args[3] for event in launches[:2])  # captured work reads
    assert judged.broken() == {}


def test_a_subject_that_is_not_told_of_captures_is_not_captured() -> None:
    judged = run(Capture(0), Allocate(G), Replay(), DropCapture(), subject=Reference(allocator="pausing"))
    assert "graph_begin" not in kinds(judged)
    assert outcomes(judged)[0] == "skipped"
    assert {QUIET, KEPT} <= set(judged.history.header["not_applicable"])


def test_a_captured_stream_is_neither_waited_for_nor_ordered() -> None:
    judged = run(Allocate(G), Capture(0), Synchronize(0), EndCapture(), Synchronize(0))
    assert outcomes(judged) == ["ok", "ok", "skipped", "ok", "ok"]


def test_what_was_live_before_is_kept_by_the_caller() -> None:
    judged = run(Allocate(G), Capture(0), Use(0), EndCapture(), Deallocate(0), Grow(0, 2 * G), Check(0), DropCapture())
    assert outcomes(judged) == ["ok", "ok", "ok", "ok", "skipped", "skipped", "ok", "ok"]
    assert judged.broken() == {}


def test_giving_back_under_capture_is_found_where_nothing_else_is() -> None:
    operations = (Allocate(G, 1), Deallocate(0, 1), Synchronize(1), Capture(0), Allocate(2 * G), EndCapture())
    found = run(*operations, subject=subject_of("frees-under-capture")).broken()
    assert set(found) == {QUIET}
    assert "unmap in allocate(" in found[QUIET].message
    assert QUIET in run(*operations).judge.witnesses


def test_what_a_failing_call_took_may_go_under_capture() -> None:
    from vmm_conformance.programs.allocator import Fail

    judged = run(Allocate(G, 1), Capture(0), Fail("map"), Allocate(G), EndCapture())
    assert judged.broken() == {}
    assert any(event.result == "injected" for event in judged.history.events)


def test_a_mark_on_the_captured_stream_is_found() -> None:
    judged = run(Capture(0), Allocate(G), Deallocate(0), EndCapture(), subject=subject_of("marks-captured-stream"))
    assert "names the stream that is captured" in judged.broken()[QUIET].message


def test_memory_that_captured_work_uses_is_missed_when_it_goes() -> None:
    operations = (Capture(0), Allocate(G), Use(0), EndCapture(), Deallocate(0), Synchronize(0), Trim(), DropCapture())
    assert run(*operations).judge.witnesses[KEPT] == 1
    assert run(*operations).broken() == {}
    found = run(*operations, subject=subject_of("retires-planned")).broken()
    assert "takes away the mapping" in found[KEPT].message
    assert "which captured work uses as block 1" in found[KEPT].message


def test_memory_that_captured_work_uses_is_missed_when_another_block_gets_it() -> None:
    operations = (Capture(0), Allocate(G), Use(0), Deallocate(0), Allocate(G), EndCapture(), DropCapture())
    found = run(*operations, subject=subject_of("reuses-planned")).broken()
    assert "hands out" in found[KEPT].message


def test_a_launch_of_what_is_gone_is_a_fault_as_well() -> None:
    operations = (Capture(0), Allocate(G), Use(0), EndCapture(), Deallocate(0), Synchronize(0), Trim(), Replay())
    judged = run(*operations, subject=subject_of("retires-planned"))
    assert "what was captured met a fault: unmapped" in str(judged.broken()["ALLOCATOR-5"].message)


def test_trim_leaves_what_is_planned_and_takes_it_when_that_is_dropped() -> None:
    captured = (Capture(0), Allocate(G), Use(0), Deallocate(0), EndCapture(), Trim(), Replay(), DropCapture())
    judged = run(*captured, Synchronize(0), Trim())
    assert judged.broken() == {}
    assert judged.judge.witnesses["ALLOCATOR-12"] == 1


def test_nothing_is_paused_that_is_still_captured() -> None:
    """Giving up what was captured may fail; then there is captured work still, which a pause must not meet."""
    failing = (Fail("event_record"), Fail("event_create"))
    judged = run(*failing, Allocate(1), Capture(), Deallocate(0), Pause())
    assert judged.broken() == {}
    assert outcomes(judged)[-1] == "refused"
    assert run(Allocate(1), Allocate(1), Capture(), Deallocate(0), Pause()).judge.witnesses["ALLOCATOR-13"]
