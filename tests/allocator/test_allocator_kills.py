"""The reference and other correct allocators have no finding; every known-bad one is caught for what it is."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from other_allocators import CORRECT, Subject

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.allocator import judge
from vmm_conformance.contracts import Mutant
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.allocator import PARTS, declared, decode
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.allocator import run
from vmm_conformance.running.explore import whole
from vmm_conformance.running.session import bench_for
from vmm_reference.mutants.allocator import MUTANTS
from vmm_reference.subject import ALLOCATORS, Reference, reference
from vmm_suites.scenarios.allocator import SCENARIOS

INVARIANTS = {entry.id for entry in catalogue().of("allocator")}
HOARDERS = ("Caching", "Sharing")
"""Right but for a series: what was grown is kept, and never fits what is asked for."""


def test_reference_has_no_finding_and_witnesses_everything() -> None:
    source = random.Random(2026)
    witnesses: Counter[str] = Counter()
    for number in range(1000):
        pins = ({}, {"parts": PARTS}, {"parts": PARTS, "devices": 2})[number % 3]
        pins |= {"rounds": 5} if number % 20 == 19 else {}
        judged = judge(run(decode(source.randbytes(400), pins), reference, HostDriver))
        assert judged.findings == [], f"program {number}"
        witnesses += judged.witnesses
    assert {id.partition(":")[0] for id in witnesses} == INVARIANTS


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_allocator_of_the_reference_is_correct(allocator: str) -> None:
    subject = Reference(allocator=allocator)
    source = random.Random(17)
    pins = declared({"parts": PARTS}, subject)
    programs = [decode(source.randbytes(400), pins) for _ in range(200)]
    programs += [decode(source.randbytes(400), {**pins, "rounds": 5}) for _ in range(10)]
    for program in (*programs, *(scenario.program for scenario in SCENARIOS)):
        assert judge(run(program, subject, HostDriver)).findings == []


@pytest.mark.parametrize("subject", CORRECT, ids=lambda s: f"{s.name}-{'traced' if s.traced else 'untraced'}")
def test_other_correct_allocators_have_no_finding(subject: Subject) -> None:
    source = random.Random(7)
    programs = [decode(source.randbytes(400), {"rounds": 5 if number % 20 == 19 else 1}) for number in range(100)]
    programs += [decode(source.randbytes(400), {"parts": ("holds",)}) for _ in range(20)]
    for program in (*programs, *(scenario.program for scenario in SCENARIOS)):
        found = {finding.invariant for finding in judge(run(program, subject, HostDriver)).findings}
        assert found <= ({"ALLOCATOR-18"} if subject.name in HOARDERS else set())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_scenario(scenario: Scenario) -> None:
    judged = bench_for("allocator", reference).run(scenario.program)
    assert judged.judge.findings == []
    reached, _ = whole(judged.judge.witnesses, judged.history.header["each_of"])
    assert [invariant for invariant in scenario.exercises if not reached.get(invariant)] == []


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.repeatable], ids=lambda mutant: mutant.id)
def test_scenarios_kill_mutant(mutant: Mutant) -> None:
    found = {
        finding.invariant
        for scenario in SCENARIOS
        for finding in judge(run(scenario.program, mutant.subject, HostDriver)).findings
    }
    assert mutant.breaks[0] in found


def test_two_mutants_or_more_for_each_invariant() -> None:
    made_for = Counter(mutant.breaks[0] for mutant in MUTANTS)
    assert {invariant for invariant, count in made_for.items() if count >= 2} == INVARIANTS


def test_scenarios_exercise_every_invariant() -> None:
    assert {invariant for scenario in SCENARIOS for invariant in scenario.exercises} == INVARIANTS


def test_ids_are_unique() -> None:
    for ids in ([mutant.id for mutant in MUTANTS], [scenario.id for scenario in SCENARIOS]):
        assert len(set(ids)) == len(ids)
