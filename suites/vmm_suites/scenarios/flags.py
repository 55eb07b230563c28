"""Scenarios of the contract ``flags``: each setting against the table of boundary texts, and when it is read."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Revision
from vmm_conformance.programs.flags import (
    ALWAYS,
    ENVIRONMENT,
    OPTIONS,
    PLATFORMS,
    TEXTS,
    Configuration,
    NewProcess,
    Operation,
    Read,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario

SKIP, THRESHOLD = 0, 1
THRESHOLD_RULE: Final = {
    Revision.ENV_AUTO: "FLAG-155",
    Revision.ENV_BYTES: "FLAG-149",
    Revision.FLAGS: "FLAG-150",
}


def _read(revision: Revision, texts: dict[int, str], platform: str = "ROCM") -> Read:
    """A read with ``texts`` where ``revision`` looks for them."""
    if revision is Revision.FLAGS:
        return Read(platform, options={OPTIONS[setting]: text for setting, text in texts.items()})
    return Read(platform, environment={ENVIRONMENT[setting]: text for setting, text in texts.items()})


def _scenario(
    name: str, revision: Revision, operations: tuple[Operation, ...], exercises: tuple[str, ...], note: str
) -> Scenario:
    program = Program("flags", Configuration(revision), operations)
    return Scenario(f"flags-{name}-{revision}", program, exercises, note)


def _in_processes_of_their_own(reads: list[Read]) -> tuple[Operation, ...]:
    return tuple(operation for read in reads for operation in (read, NewProcess()))


def _table(revision: Revision, setting: int) -> Scenario:
    """Every boundary text for one setting, each in a process of its own (S25)."""
    reads = [_read(revision, {setting: text}) for text in (*ALWAYS, *TEXTS)]
    warned = () if revision is Revision.FLAGS else ("FLAG-165",)
    exercises = ("FLAG-148",) if setting == SKIP else (THRESHOLD_RULE[revision], "FLAG-154", *warned)
    name = ("skip-table", "threshold-table")[setting]
    note = "Every boundary text, each in a process of its own."
    return _scenario(name, revision, _in_processes_of_their_own(reads), exercises, note)


def _defaults(revision: Revision) -> Scenario:
    """Nothing set, and only what the revision does not look at."""
    other = Revision.ENV_BYTES if revision is Revision.FLAGS else Revision.FLAGS
    reads = [Read(), _read(other, {SKIP: "0", THRESHOLD: "4096"})]
    note = "Nothing is set; then only the names of another revision are, and must have no effect."
    return _scenario("defaults", revision, _in_processes_of_their_own(reads), ("FLAG-151",), note)


def _platforms(revision: Revision) -> Scenario:
    """Platforms that are not quite ROCM, by default and with everything asked for."""
    texts: tuple[dict[int, str], ...] = ({}, {SKIP: "1", THRESHOLD: "4096"})
    reads = [_read(revision, given, platform) for platform in PLATFORMS for given in texts]
    note = "The same settings on platforms whose name is close to ROCM."
    return _scenario("platforms", revision, _in_processes_of_their_own(reads), ("FLAG-147",), note)


def _twice(revision: Revision) -> Scenario:
    """Two reads of different texts in one process, and each first in its own."""
    on = _read(revision, {SKIP: "true", THRESHOLD: "4096"})
    off = _read(revision, {SKIP: "false", THRESHOLD: "0"})
    operations = (on, off, NewProcess(), off, on, NewProcess(), Read(), off)
    note = "The texts change between the reads of one process."
    return _scenario("changed-texts", revision, operations, ("FLAG-152",), note)


SCENARIOS: Final[tuple[Scenario, ...]] = tuple(
    scenario
    for revision in Revision
    for scenario in (
        _table(revision, SKIP),
        _table(revision, THRESHOLD),
        _defaults(revision),
        _platforms(revision),
        _twice(revision),
    )
)
"""One of each kind for each revision."""
