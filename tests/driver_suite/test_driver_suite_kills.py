"""Does the suite of the contract ``driver`` catch what it must, and nothing else?"""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.driver import judge
from vmm_conformance.contracts import Mutant
from vmm_conformance.drivers.host import known_bad, known_bad_more
from vmm_conformance.drivers.host.subject import host
from vmm_conformance.programs.driver import decode
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.driver import run
from vmm_conformance.running.subjects import open_driver
from vmm_suites.scenarios.driver import SCENARIOS

MUTANTS: Final = (*known_bad.MUTANTS, *known_bad_more.MUTANTS)
RULES: Final = [entry.id for entry in catalogue().of("driver")]
OPEN: Final = open_driver("host")


def test_every_rule_has_a_mutant() -> None:
    assert sorted(RULES) == sorted({mutant.breaks[0] for mutant in MUTANTS})
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)


def test_the_host_driver_keeps_every_rule_and_every_rule_is_put_to_the_test() -> None:
    source = random.Random(0)
    witnesses: Counter[str] = Counter()
    for _ in range(1000):
        result = judge(run(decode(source.randbytes(400)), host, OPEN))
        assert result.findings == []
        witnesses += result.witnesses
    assert sorted(RULES) == sorted(witnesses)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_scenario_does_what_it_is_for(scenario: Scenario) -> None:
    history = run(scenario.program, host, OPEN)
    result = judge(history)
    assert result.findings == []
    assert [id for id in scenario.exercises if not result.witnesses[id]] == []
    skipped = [event.op for event in history if event.kind == "end" and event.args[0]["status"] == "skipped"]
    assert skipped == []


def test_scenarios_cover_every_invariant() -> None:
    assert {id for scenario in SCENARIOS for id in scenario.exercises} == {e.id for e in catalogue().of("driver")}
    assert len({scenario.id for scenario in SCENARIOS}) == len(SCENARIOS)


def test_scenarios_alone_catch_every_known_bad_driver() -> None:
    survivors = [mutant.id for mutant in MUTANTS if not _caught_by_scenarios(mutant)]
    assert survivors == []


def _caught_by_scenarios(mutant: Mutant) -> bool:
    """Those that are about what it breaks come first."""
    own = mutant.breaks[0]
    ordered = sorted(SCENARIOS, key=lambda scenario: own not in scenario.exercises)
    return any(own in {f.invariant for f in judge(run(s.program, mutant.subject, OPEN)).findings} for s in ordered)
