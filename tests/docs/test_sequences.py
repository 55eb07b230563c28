"""docs/explanation/sequences.md: every scenario is there, and the scenarios of a row catch its known-bad variants."""

from __future__ import annotations

import re

import pytest
from told_pages import DOCS

from vmm_conformance.related import all_mutants
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.suites import load_suites

PAGE = (DOCS / "explanation" / "sequences.md").read_text("utf-8")
ROWS = {
    number: [re.findall(r"`([\w-]+)`", cell) for cell in cells]
    for number, *cells in re.findall(r"^\| (S\d\d) \| .+? \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
}
SCENARIOS = {scenario.id: scenario.program for suite in load_suites() for scenario in suite.scenarios}
MUTANTS = {mutant.id: mutant for mutant in all_mutants()}
NUMBERS = (1, 2, 3, 5, 6, 7, 8, 10, 12, 13, 14, 16, 17, 18, 21, 23, 24, 25)


def test_every_sequence_has_a_row_or_a_reason():
    reasons = set(re.findall(r"^- \*\*(S\d\d)\*\*", PAGE, re.MULTILINE))
    assert ROWS.keys() | reasons == {f"S{number:02}" for number in NUMBERS}


@pytest.mark.parametrize("number", ROWS)
def test_the_scenarios_of_a_row_catch_its_variants(number):
    scenarios, mutants = ROWS[number]
    assert mutants
    assert not set(scenarios) - SCENARIOS.keys()
    for name in mutants:
        mutant = MUTANTS[name]
        bench = bench_for(mutant.contract, mutant.subject)
        programs = (SCENARIOS[id] for id in scenarios if SCENARIOS[id].contract == mutant.contract)
        assert any(mutant.breaks[0] in bench.run(program).broken() for program in programs), name
