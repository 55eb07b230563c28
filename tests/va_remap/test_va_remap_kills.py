"""The reference and other right scopes have no finding; every known-bad one is caught for what it is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import cycle

import pytest
from other_scopes import CORRECT

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.va_remap_decode import decode
from vmm_conformance.running.va_remap import run
from vmm_reference.mutants.scope_registry import ScopeSubject
from vmm_reference.mutants.va_remap import MUTANTS
from vmm_reference.subject import reference
from vmm_suites.explorations import SUITES
from vmm_suites.scenarios.va_remap import SCENARIOS

INVARIANTS = {entry.id for entry in catalogue().of("va-remap")}
EXPLORATIONS = next(suite for suite in SUITES if suite.contract == "va-remap").explorations


def drawn(seed: int, count: int) -> Iterator[Program]:
    """Programs of all explorations, by their shares."""
    source = random.Random(seed)
    pins = cycle([exploration.pins for exploration in EXPLORATIONS for _ in range(exploration.share)])
    return (decode(source.randbytes(400), next(pins)) for _ in range(count))


def test_reference_has_no_finding_and_witnesses_everything() -> None:
    witnesses: Counter[str] = Counter()
    for number, program in enumerate(drawn(2026, 600)):
        judged = judge(run(program, reference, HostDriver))
        assert judged.findings == [], f"program {number}"
        witnesses += judged.witnesses
    assert set(witnesses) == INVARIANTS


@pytest.mark.parametrize("subject", CORRECT, ids=lambda subject: subject.name)
def test_other_right_scopes_have_no_finding(subject: ScopeSubject) -> None:
    for program in (*drawn(7, 60), *(scenario.program for scenario in SCENARIOS)):
        assert judge(run(program, subject, HostDriver)).findings == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_scenario(scenario: Scenario) -> None:
    judged = judge(run(scenario.program, reference, HostDriver))
    assert judged.findings == []
    assert [invariant for invariant in scenario.exercises if not judged.witnesses[invariant]] == []


def test_scenarios_kill_most_mutants() -> None:
    """What the directed programs alone would catch."""
    alive = []
    for mutant in MUTANTS:
        histories = (run(scenario.program, mutant.subject, HostDriver) for scenario in SCENARIOS)
        if not any(mutant.breaks[0] in {f.invariant for f in judge(history).findings} for history in histories):
            alive.append(mutant.id)
    assert len(alive) <= len(MUTANTS) // 5, alive


def test_a_mutant_for_each_invariant() -> None:
    assert {mutant.breaks[0] for mutant in MUTANTS} == INVARIANTS


def test_scenarios_exercise_every_invariant() -> None:
    assert {invariant for scenario in SCENARIOS for invariant in scenario.exercises} == INVARIANTS


def test_ids_are_unique_and_upstream_s_tests_are_named() -> None:
    for ids in ([mutant.id for mutant in MUTANTS], [scenario.id for scenario in SCENARIOS]):
        assert len(set(ids)) == len(ids)
    for scenario in SCENARIOS:
        test, colon, _ = scenario.note.partition(": ")
        assert not scenario.id.startswith("upstream-") or (colon and test[0].isupper() and " " not in test)
