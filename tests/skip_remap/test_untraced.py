"""A subject whose driver calls cannot be recorded is judged on what can be seen, and on nothing else."""

from __future__ import annotations

import random
from typing import Any

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Driver, Executable
from vmm_conformance.programs.skip_remap_decode import decode
from vmm_conformance.running.session import bench_for
from vmm_reference.mutants import MUTANTS
from vmm_reference.step_executor import SkipRemapExecutor


def bare(driver: Any) -> Driver:
    """The driver behind the recorder: calls that nobody sees."""
    driver_: Driver = driver.unrecorded
    return driver_


class Untraced:
    name = "untraced"
    capabilities = {"traced": False}  # noqa: RUF012 - as a subject writes it

    def __init__(self, executor: Any = SkipRemapExecutor) -> None:
        self._executor = executor

    def step_executor(self, driver: Driver, executable: Executable) -> Any:
        return self._executor(bare(driver), executable)


def judged(subject: object, programs: int) -> tuple[dict[str, int], set[str]]:
    bench = bench_for("skip-remap", subject)
    source = random.Random(7)
    witnesses: dict[str, int] = {}
    broken: set[str] = set()
    for _ in range(programs):
        judge = bench.run(decode(source.randbytes(400), {"platform": "ROCM", "copy_threshold": 1024})).judge
        broken |= {finding.invariant for finding in judge.findings}
        for id, count in judge.witnesses.items():
            witnesses[id] = witnesses.get(id, 0) + count
    return witnesses, broken


def test_nothing_is_found_and_nothing_unseen_is_judged() -> None:
    witnesses, broken = judged(Untraced(), 60)
    seen = {entry.id for entry in catalogue().of("skip-remap") if entry.trace == "no"}
    assert broken == set()
    assert set(witnesses) <= seen
    assert {"STEP-84", "STEP-166", "SHADOW-110", "SHADOW-111", "SHADOW-113"} <= set(witnesses)


def test_a_fault_that_shows_in_bytes_is_found_without_a_trace() -> None:
    lost = next(mutant.subject for mutant in MUTANTS if mutant.id == "shadow-no-copy-back")

    class Lost(Untraced):
        def step_executor(self, driver: Driver, executable: Executable) -> Any:
            return lost.step_executor(bare(driver), executable)  # type: ignore[attr-defined] # a mutant's subject

    _, broken = judged(Lost(), 30)
    assert "SHADOW-111" in broken
    assert "SHADOW-117" not in broken
