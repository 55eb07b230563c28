"""The reference and other correct layers have no finding; every known-bad one is caught for what it is."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from other_layers import CORRECT, SubjectOf, every_scope

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Mutant
from vmm_conformance.programs.reservation_decode import decode
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.session import bench_for
from vmm_reference.mutants.reservation import MUTANTS
from vmm_reference.reservation import VmmMemory
from vmm_reference.subject import Reference, reference
from vmm_suites.scenarios.reservation import SCENARIOS

INVARIANTS = {entry.id for entry in catalogue().of("reservation")}


def test_reference_has_no_finding_and_witnesses_everything() -> None:
    source = random.Random(2026)
    bench = bench_for("reservation", reference)
    witnesses: Counter[str] = Counter()
    for number in range(600):
        judged = bench.run(decode(source.randbytes(400))).judge
        assert judged.findings == [], f"program {number}"
        witnesses += judged.witnesses
    assert set(witnesses) == INVARIANTS


@pytest.mark.parametrize("scopes", every_scope(), ids="-".join)
def test_reference_keeps_to_every_scope_it_can_declare(scopes: tuple[str, str]) -> None:
    subject = Reference(set_access_scope=scopes[0], unmap_scope=scopes[1])
    bench = bench_for("reservation", subject)
    for scenario in SCENARIOS:
        assert bench.run(scenario.program).judge.findings == [], scenario.id


@pytest.mark.parametrize("subject", CORRECT, ids=lambda subject: subject.name)
def test_other_correct_layers_have_no_finding(subject: SubjectOf) -> None:
    source = random.Random(7)
    bench = bench_for("reservation", subject)
    programs = [decode(source.randbytes(400)) for _ in range(60)]
    for program in (*programs, *(scenario.program for scenario in SCENARIOS)):
        assert bench.run(program).judge.findings == []


def test_a_scope_that_is_not_declared_is_a_finding() -> None:
    """A layer that is right by one declaration is wrong by another."""
    found: set[str] = set()
    for access, unmap in (("full", "run"), ("run", "slice"), ("slice", "run")):
        subject = SubjectOf(VmmMemory, set_access_scope=access, unmap_scope=unmap)
        bench = bench_for("reservation", subject)
        found |= {f.invariant for s in SCENARIOS for f in bench.run(s.program).judge.findings}
    assert found == {"RES-17", "REMAP-34", "REMAP-35"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_scenarios_kill_mutant(mutant: Mutant) -> None:
    bench = bench_for("reservation", mutant.subject)
    assert any(mutant.breaks[0] in bench.run(scenario.program).broken() for scenario in SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_scenario(scenario: Scenario) -> None:
    judged = bench_for("reservation", reference).run(scenario.program).judge
    assert judged.findings == []
    assert [invariant for invariant in scenario.exercises if not judged.witnesses[invariant]] == []


def test_every_invariant_has_a_mutant_and_a_scenario() -> None:
    assert {mutant.breaks[0] for mutant in MUTANTS} == INVARIANTS
    assert {invariant for scenario in SCENARIOS for invariant in scenario.exercises} == INVARIANTS


def test_ids_are_unique() -> None:
    for ids in ([mutant.id for mutant in MUTANTS], [scenario.id for scenario in SCENARIOS]):
        assert len(set(ids)) == len(ids)


def test_upstream_scenarios_name_their_tests() -> None:
    upstream = [scenario for scenario in SCENARIOS if scenario.id.startswith("upstream-")]
    assert len(upstream) == 16
    assert all("(" in scenario.note or "openxla/xla#41757" in scenario.note or "multi-GPU" in scenario.note
               for scenario in upstream)  # fmt: skip
