"""The suite on the reference, on both of its revisions, and on every wrong variant of it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, ClassVar

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.vmm_allocator import judge
from vmm_conformance.contracts import Mutant
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.vmm_allocator_decode import decode
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.vmm_allocator import run
from vmm_reference.mutants import MUTANTS
from vmm_reference.subject import Reference
from vmm_suites.scenarios.vmm_allocator import SCENARIOS

OURS = [mutant for mutant in MUTANTS if mutant.contract == "vmm-allocator"]
INVARIANTS = {entry.id for entry in catalogue().of("vmm-allocator")}
REVISIONS = [
    Reference(),
    Reference(markers="per-operation", second_alias="FAILED_PRECONDITION"),
    Reference(second_alias="FAILED_PRECONDITION"),
]
REVISION_IDS = ("last", "first", "mixed")


@pytest.mark.parametrize("subject", REVISIONS, ids=REVISION_IDS)
def test_reference_has_no_finding_and_witnesses_everything(subject: Reference) -> None:
    source = random.Random(2026)
    witnesses: Counter[str] = Counter()
    for number in range(250):
        pins = {"rounds": 5} if number % 25 == 24 else {}
        judged = judge(run(decode(source.randbytes(400), pins), subject, HostDriver))
        assert judged.findings == [], f"program {number}"
        witnesses += judged.witnesses
    assert set(witnesses) == INVARIANTS


def test_reference_whose_driver_calls_are_not_seen_has_no_finding() -> None:
    class Untraced:
        capabilities: ClassVar = {"spaces": (0, 1), "traced": False}

        def vmm_allocator(self, driver: Any, devices: Any) -> Any:
            return Reference().vmm_allocator(driver.unrecorded, devices)

    source = random.Random(3)
    bench = bench_for("vmm-allocator", Untraced())
    witnesses: Counter[str] = Counter()
    for number in range(120):
        judged = bench.run(decode(source.randbytes(400), {"rounds": 5} if number % 30 == 29 else {}))
        assert judged.judge.findings == [], f"program {number}"
        witnesses += judged.judge.witnesses
    seen = {entry.id for entry in catalogue().of("vmm-allocator") if entry.trace == "no"}
    assert set(witnesses) == seen


@pytest.mark.parametrize("subject", REVISIONS, ids=REVISION_IDS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_scenario(scenario: Scenario, subject: Reference) -> None:
    history = run(scenario.program, subject, HostDriver)
    judged = judge(history)
    assert judged.findings == []
    assert [invariant for invariant in scenario.exercises if not judged.witnesses[invariant]] == []
    outcomes = [event.args[0]["status"] for event in history.events if event.kind == "end"]
    assert "skipped" not in outcomes, "a directed scenario says what it does"


@pytest.mark.parametrize("mutant", OURS, ids=lambda mutant: mutant.id)
def test_scenarios_kill_mutant(mutant: Mutant) -> None:
    assert any(
        mutant.breaks[0] in {each.invariant for each in judge(run(s.program, mutant.subject, HostDriver)).findings}
        for s in SCENARIOS
    )


def test_mutants_for_each_invariant() -> None:
    assert {mutant.breaks[0] for mutant in OURS} == INVARIANTS


def test_scenarios_exercise_every_invariant() -> None:
    assert {invariant for scenario in SCENARIOS for invariant in scenario.exercises} == INVARIANTS


def test_upstreams_tests_say_whose_they_are() -> None:
    upstream = [scenario for scenario in SCENARIOS if scenario.id.startswith("upstream-")]
    assert len(upstream) >= 40
    assert all("_vmm_allocator_test, " in scenario.note for scenario in upstream)


def test_ids_are_unique() -> None:
    for ids in ([mutant.id for mutant in OURS], [scenario.id for scenario in SCENARIOS]):
        assert len(set(ids)) == len(ids)
