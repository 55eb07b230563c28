"""Scenarios of the contract ``flags``: each setting against the table of boundary texts, and when it is read."""

from __future__ import annotations

import re
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
from vmm_conformance.programs.scenario import UPSTREAM, Scenario

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


BYTES, FLAGS = Revision.ENV_BYTES, Revision.FLAGS
UPSTREAM_TESTS: Final = (
    (BYTES, "NonRocmAlwaysDisabled", SKIP, "CUDA", (None, "1", "true"), ("FLAG-147",)),
    (BYTES, "RocmDefaultsOnWhenUnset", SKIP, "ROCM", (None,), ("FLAG-151",)),
    (BYTES, "RocmEmptyStringDefaultsOn", SKIP, "ROCM", ("",), ("FLAG-148",)),
    (BYTES, "RocmFalseyValuesDisable", SKIP, "ROCM", ("0", "false", "False", "FALSE", "no", "off"), ("FLAG-148",)),
    (BYTES, "RocmOtherValuesEnable", SKIP, "ROCM", ("1", "true", "yes", "on", "anything"), ("FLAG-148",)),
    (BYTES, "NonRocmAlwaysZero", THRESHOLD, "CUDA", (None, "4096"), ("FLAG-147",)),
    (BYTES, "RocmUnsetOrEmptyIsZero", THRESHOLD, "ROCM", (None, ""), ("FLAG-149",)),
    (BYTES, "RocmParsesValidByteCount", THRESHOLD, "ROCM", ("1", "4096", "1048576"), ("FLAG-149",)),
    (BYTES, "RocmNonNumericIsZero", THRESHOLD, "ROCM", ("abc", "many"), ("FLAG-149",)),
    (BYTES, "RocmTrailingGarbageIsZero", THRESHOLD, "ROCM", ("4096x", "12 bytes"), ("FLAG-149",)),
    (FLAGS, "NonRocmAlwaysDisabled", SKIP, "CUDA", (None, "true"), ("FLAG-147",)),
    (FLAGS, "RocmFollowsFlag", SKIP, "ROCM", ("true", "false"), ("FLAG-148",)),
    (FLAGS, "NonRocmAlwaysZero", THRESHOLD, "CUDA", (None, "4096"), ("FLAG-147",)),
    (FLAGS, "RocmZeroOrNegativeIsZero", THRESHOLD, "ROCM", ("0", "-1", "-4096"), ("FLAG-150",)),
    (FLAGS, "RocmPositiveFlagPassesThrough", THRESHOLD, "ROCM", ("1", "4096", "1048576"), ("FLAG-150",)),
)
"""Upstream's own tests of its two readers (openxla/xla): the name, the setting, and the texts that it is given."""


def _upstream(
    revision: Revision,
    name: str,
    setting: int,
    platform: str,
    texts: tuple[str | None, ...],
    exercises: tuple[str, ...],
) -> Scenario:
    """One of upstream's tests, each text in a process of its own."""
    reads = [_read(revision, {} if text is None else {setting: text}, platform) for text in texts]
    identity = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
    program = Program("flags", Configuration(revision), _in_processes_of_their_own(reads))
    told = " or ".join("nothing" if text is None else repr(text) for text in texts)
    about = ("skip-remap", "copy threshold")[setting]
    return Scenario(f"{UPSTREAM}{identity}-{revision}", program, exercises, f"{name}: the {about} is given {told}.")


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        scenario
        for revision in Revision
        for scenario in (
            _table(revision, SKIP),
            _table(revision, THRESHOLD),
            _defaults(revision),
            _platforms(revision),
            _twice(revision),
        )
    ),
    *(_upstream(*test) for test in UPSTREAM_TESTS),
)
"""One of each kind for each revision, and upstream's own."""
