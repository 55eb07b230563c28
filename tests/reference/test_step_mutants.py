"""The step executor's mutants: complete, well named, and able to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from executor_world import World

from vmm_conformance.contracts import DriverError, Mutant, SubjectError
from vmm_reference.mutants import MUTANTS
from vmm_reference.mutants.registry import StepSubject

OURS = [mutant for mutant in MUTANTS if mutant.contract == "skip-remap"]
STEP = [f"STEP-{number}" for number in (*range(81, 103), 158, 159, 162, 163, 164, 166, 186)]
SHADOW = [f"SHADOW-{number}" for number in (*range(103, 120), 160, 161)]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.host.close()


def test_every_invariant_has_a_mutant() -> None:
    assert {mutant.breaks[0] for mutant in OURS} == {*STEP, *SHADOW}


def test_names_are_unique_and_say_the_area() -> None:
    names = [mutant.id for mutant in OURS]
    assert len(names) == len(set(names))
    assert all(m.id.startswith(m.breaks[0].partition("-")[0].lower() + "-") for m in OURS)
    assert all(m.note.endswith(".") for m in OURS)


def test_every_public_finding_on_the_executor_is_there() -> None:
    sources = {mutant.source for mutant in OURS}
    findings = {f"ROCm/xla#1001 F{number}" for number in (1, 2, 5, 7, 8, 9, 10, 11, 12, 14, 15)}
    assert findings | {f"hazard {letter}" for letter in "abcdefghi"} <= sources


@pytest.mark.parametrize("mutant", OURS, ids=lambda mutant: mutant.id)
def test_every_mutant_runs_without_crashing(world: World, mutant: Mutant) -> None:
    assert isinstance(mutant.subject, StepSubject)
    executor = mutant.subject.step_executor(world.driver, world.executor(3, copy_threshold=100).executable)
    buffers = [world.buffer(size) for size in (10, 5000, 5000)]
    for moved in (0, 1, 2):
        buffers[moved] = world.buffer(buffers[moved].size)
        try:
            executor.step(buffers, device=0, stream=world.stream, execute=lambda table, persistent: None)
        except (SubjectError, DriverError):
            break
    executor.close()
