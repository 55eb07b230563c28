"""The reference and other formulas have no finding; every known-bad choice is caught for what it is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.auto_threshold import judge
from vmm_conformance.contracts import AutoBounds, Choice, CopyCosts, DeviceFigures, Mutant
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.auto_threshold import decode
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.auto_threshold import run
from vmm_reference.mutants.auto import MUTANTS
from vmm_reference.subject import reference
from vmm_suites.scenarios.auto_threshold import SCENARIOS

INVARIANTS = {entry.id for entry in catalogue().of("auto-threshold")}


class ByIndex:
    """Another formula: bounds of its own, no reserve, equally large slices one by one."""

    name = "by-index"
    bounds = AutoBounds(slice_share=0.5, step_ms=2.0, free_share=0.9)
    capabilities = {"auto_bounds": bounds, "auto_ties": "index"}  # noqa: RUF012

    def auto_threshold(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        chosen: list[int] = []
        ms, shadows = 0.0, 0
        for size, index in sorted((size, index) for index, size in enumerate(slices) if size):
            if not device.bandwidth:
                break
            one = 2 * costs.copy_ms + size * 2000 / (device.bandwidth * costs.copy_share)
            ms, shadows = ms + one, shadows + (size + device.alignment - 1) // device.alignment * device.alignment
            if one > costs.remap_ms / 2 or ms > 2 or shadows > device.free * 9 / 10:
                break
            chosen.append(index)
        return Choice(max((slices[index] for index in chosen), default=0), tuple(sorted(chosen)))


class Undeclared:
    """Says nothing of its bounds, and takes a kibibyte where it fits four times over."""

    name = "undeclared"

    def auto_threshold(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        small = [index for index, size in enumerate(slices) if 0 < size <= 1024]
        slow = 4 * costs.copy_ms + 4000 * 1024 / (device.bandwidth * costs.copy_share or 1) > costs.remap_ms
        full = not device.free or 4096 * len(small) > device.free or device.alignment > 1024
        if slow or full or not device.bandwidth:
            return Choice(0, ())
        return Choice(1024, tuple(small))


def programs(seed: int, count: int):
    source = random.Random(seed)
    return [decode(source.randbytes(400)) for _ in range(count)]


def test_reference_has_no_finding_and_witnesses_everything() -> None:
    witnesses: Counter[str] = Counter()
    for number, program in enumerate(programs(2026, 1000)):
        judged = judge(run(program, reference, HostDriver))
        assert judged.findings == [], f"program {number}"
        witnesses += judged.witnesses
    assert set(witnesses) == INVARIANTS


@pytest.mark.parametrize("subject", [ByIndex(), Undeclared()], ids=lambda subject: subject.name)
def test_other_formulas_have_no_finding(subject) -> None:
    for program in (*programs(7, 300), *(scenario.program for scenario in SCENARIOS)):
        findings = judge(run(program, subject, HostDriver)).findings
        assert [finding for finding in findings if finding.invariant != "AUTO-178"] == []  # a should, of one formula


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_reference_passes_scenario(scenario: Scenario) -> None:
    judged = judge(run(scenario.program, reference, HostDriver))
    assert judged.findings == []
    assert [invariant for invariant in scenario.exercises if not judged.witnesses[invariant]] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_scenarios_kill_mutant(mutant: Mutant) -> None:
    found: set[str] = set()
    for _ in range(1 if mutant.repeatable else 20):
        for scenario in SCENARIOS:
            found |= {each.invariant for each in judge(run(scenario.program, mutant.subject, HostDriver)).findings}
        if mutant.breaks[0] in found:
            break
    assert mutant.breaks[0] in found
    assert found <= set(mutant.breaks), "breaks more than it says"


def test_two_mutants_or_more_for_each_invariant() -> None:
    made_for = Counter(mutant.breaks[0] for mutant in MUTANTS)
    assert {invariant for invariant, count in made_for.items() if count >= 2} == INVARIANTS


def test_scenarios_exercise_every_invariant() -> None:
    assert {invariant for scenario in SCENARIOS for invariant in scenario.exercises} == INVARIANTS


def test_ids_are_unique() -> None:
    for ids in ([mutant.id for mutant in MUTANTS], [scenario.id for scenario in SCENARIOS]):
        assert len(set(ids)) == len(ids)
