"""Right executors have no finding; scenarios witness what they are for, and find every known-bad executor."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest
from other_executors import CORRECT

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Mutant
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.skip_remap_decode import decode
from vmm_conformance.related import all_mutants
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.suites import Exploration, load_suites
from vmm_reference.mutants.registry import StepSubject
from vmm_reference.subject import reference
from vmm_suites.scenarios.skip_remap import SCENARIOS

INVARIANTS = {entry.id for entry in catalogue().of("skip-remap")}
MUTANTS = [mutant for mutant in all_mutants() if mutant.contract == "skip-remap"]
SUITE = next(suite for suite in load_suites() if suite.contract == "skip-remap")
COMPARED = {"compare": True, "streams": 1}


@cache
def programs(seed: int, count: int) -> list[Program]:
    """Random programs, every tenth of them run under every setting, and as many several times."""
    source = random.Random(seed)
    pins = {0: COMPARED, 5: {"rounds": 5}}
    return [decode(source.randbytes(400), pins.get(number % 10, {})) for number in range(count)]


def found(judged: Judged) -> list[tuple[str, str, str]]:
    return [(finding.invariant, finding.message, finding.actual) for finding in judged.judge.findings]


def test_reference_has_no_finding_and_witnesses_everything() -> None:
    bench = bench_for("skip-remap", reference)
    witnesses: Counter[str] = Counter()
    for number, program in enumerate(programs(2026, 300)):
        judged = bench.run(program)
        assert found(judged) == [], f"program {number}"
        witnesses += judged.judge.witnesses
    assert INVARIANTS - witnesses.keys() == set()


@pytest.mark.parametrize("exploration", SUITE.explorations, ids=lambda exploration: exploration.id)
def test_reference_has_no_finding_in_any_exploration(exploration: Exploration) -> None:
    bench = bench_for("skip-remap", reference)
    source = random.Random(exploration.id)
    for number in range(60):
        judged = bench.run(decode(source.randbytes(400), exploration.pins))
        assert found(judged) == [], f"program {number}"


@pytest.mark.parametrize("subject", CORRECT, ids=lambda subject: subject.name)
def test_other_right_executors_have_no_finding(subject: StepSubject) -> None:
    bench = bench_for("skip-remap", subject)
    for program in (*programs(7, 60), *(scenario.program for scenario in SCENARIOS)):
        assert found(bench.run(program)) == [], program.operations


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_the_scenario_which_witnesses_what_it_is_for(scenario: Scenario) -> None:
    judged = bench_for("skip-remap", reference).run(scenario.program)
    assert found(judged) == []
    assert [id for id in scenario.exercises if not judged.judge.witnesses[id]] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_scenarios_find_the_mutant(mutant: Mutant) -> None:
    bench, own = bench_for("skip-remap", mutant.subject), mutant.breaks[0]
    likely_first = sorted(SCENARIOS, key=lambda scenario: own not in scenario.exercises)
    for _ in range(1 if mutant.repeatable else 10):
        if any(own in bench.run(scenario.program).broken() for scenario in likely_first):
            return
    pytest.fail(f"no scenario finds {own} broken: {mutant.note}")


def test_scenarios_exercise_every_invariant_and_are_named_once() -> None:
    assert {id for scenario in SCENARIOS for id in scenario.exercises} == INVARIANTS
    assert len({scenario.id for scenario in SCENARIOS}) == len(SCENARIOS)
