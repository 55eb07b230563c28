"""The contract ``flags`` end to end: programs, the reference, its mutants and the scenarios."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable

import pytest

from vmm_conformance.catalogue.loader import catalogue
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Code, FlagReader, Mutant, Revision, Settings, SubjectError
from vmm_conformance.programs.files import dump, load
from vmm_conformance.programs.flags import Configuration, NewProcess, Read, decode
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.flags import run
from vmm_reference.flags import flag_reader
from vmm_reference.mutants.flags import MUTANTS
from vmm_suites.scenarios.flags import SCENARIOS

Judged = Callable[[Program, object], Judge]
MUSTS = {"FLAG-147", "FLAG-148", "FLAG-149", "FLAG-150", "FLAG-151", "FLAG-152", "FLAG-154", "FLAG-155"}
EVERY = MUSTS | {"FLAG-165"}


class Reference:
    name = "reference"

    def flags(self, revision: Revision) -> FlagReader:
        return flag_reader(revision)


def programs(seed: int, count: int) -> list[Program]:
    source = random.Random(seed)
    return [decode(source.randbytes(400)) for _ in range(count)]


def test_programs_are_long_and_read_back_equal() -> None:
    drawn = programs(0, 100)
    assert statistics.median(len(program.operations) for program in drawn) >= 25
    assert {program.configuration.revision for program in drawn} == set(Revision)
    for program in drawn:
        assert load(dump(program)) == program


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 7], ids=["none", "one", "few"])
def test_any_bytes_make_a_program(data: bytes) -> None:
    decode(data)


def test_a_pinned_revision_is_kept() -> None:
    wanted = Configuration(Revision.FLAGS)
    assert decode(bytes(400), {"revision": "flags"}).configuration == wanted


def test_the_reference_has_no_finding_in_2000_programs(judged: Judged) -> None:
    witnesses: Counter[str] = Counter()
    for program in programs(7, 2_000):
        judge = judged(program, Reference())
        assert judge.findings == [], dump(program)
        witnesses += judge.witnesses
    assert set(witnesses) == EVERY
    assert min(witnesses.values()) > 500


def test_every_invariant_has_a_mutant_and_an_entry() -> None:
    entries = {entry.id: entry.level for entry in catalogue().of("flags")}
    assert entries == {id: "must" if id in MUSTS else "should" for id in EVERY}
    assert {mutant.breaks[0] for mutant in MUTANTS} == EVERY
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("finding", ["F3", "F4", "F6", "F13"])
def test_review_findings_live_on_as_mutants(finding: str) -> None:
    assert [mutant for mutant in MUTANTS if mutant.source == f"ROCm/xla#1001 {finding}"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_scenarios_exercise_what_they_say(scenario: Scenario, judged: Judged) -> None:
    judge = judged(scenario.program, Reference())
    assert judge.findings == []
    assert set(scenario.exercises) <= judge.witnesses.keys()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_scenarios_alone_kill_every_mutant(mutant: Mutant, judged: Judged) -> None:
    found: set[str] = set()
    for scenario in SCENARIOS:
        found |= {finding.invariant for finding in judged(scenario.program, mutant.subject).findings}
    assert mutant.breaks[0] in found


BOTH = {"XLA_VMM_SKIP_REMAP": "0", "XLA_VMM_TMP_COPY_THRESHOLD": "8"}

TABLE = [
    (Revision.ENV_AUTO, None, "auto"),
    (Revision.ENV_AUTO, "", "auto"),
    (Revision.ENV_AUTO, "0", 0),
    (Revision.ENV_AUTO, "1", "auto"),
    (Revision.ENV_AUTO, "2", 2),
    (Revision.ENV_AUTO, "-1", 0),
    (Revision.ENV_BYTES, None, 0),
    (Revision.ENV_BYTES, "", 0),
    (Revision.ENV_BYTES, "1", 1),
    (Revision.ENV_BYTES, "010", 10),
    (Revision.ENV_BYTES, "0x10", 0),
    (Revision.ENV_BYTES, "1e3", 0),
    (Revision.ENV_BYTES, "18446744073709551615", 2**64 - 1),
    (Revision.ENV_BYTES, "18446744073709551616", 0),
    (Revision.ENV_BYTES, "9" * 5000, 0),
    (Revision.ENV_BYTES, "-1", 0),
    (Revision.ENV_BYTES, "\u0663", 0),
    (Revision.FLAGS, None, 0),
    (Revision.FLAGS, "", 0),
    (Revision.FLAGS, "-1", 0),
    (Revision.FLAGS, "4096", 4096),
    (Revision.FLAGS, "9223372036854775807", 2**63 - 1),
    (Revision.FLAGS, "9223372036854775808", Code.INVALID_ARGUMENT),
    (Revision.FLAGS, "-9223372036854775808", 0),
    (Revision.FLAGS, "-9223372036854775809", Code.INVALID_ARGUMENT),
    (Revision.FLAGS, "4M", Code.INVALID_ARGUMENT),
]


@pytest.mark.parametrize(("revision", "text", "expected"), TABLE)
def test_the_reference_reads_thresholds(revision: Revision, text: str | None, expected: object) -> None:
    environment = {} if text is None else {"XLA_VMM_TMP_COPY_THRESHOLD": text}
    options = {} if text is None else {"copy_threshold_bytes": text}
    reader = flag_reader(revision)
    if isinstance(expected, Code):
        with pytest.raises(SubjectError, match=f"INVALID_ARGUMENT.*{text}"):
            reader.read("ROCM", environment, options)
    else:
        assert reader.read("ROCM", environment, options).copy_threshold == expected


def test_the_reference_reads_the_environment_once() -> None:
    reader = flag_reader(Revision.ENV_BYTES)
    first = reader.read("ROCM", {}, {})
    assert first == reader.read("ROCM", BOTH, {}) == Settings(True, 0)
    assert flag_reader(Revision.ENV_BYTES).read("ROCM", BOTH, {}) == Settings(False, 8)


def test_a_revision_that_is_not_declared_is_not_run(judged: Judged) -> None:
    class FlagsOnly(Reference):
        capabilities = {"revisions": ("flags",)}  # noqa: RUF012

    reads = (Read(), NewProcess(), Read())
    for revision in Revision:
        judge = judged(Program("flags", Configuration(revision), reads), FlagsOnly())
        assert bool(judge.witnesses) == (revision is Revision.FLAGS)


def test_a_subject_that_fails_is_recorded_and_not_let_through() -> None:
    class Broken:
        def flags(self, revision: Revision) -> FlagReader:
            raise RuntimeError("no such revision")

    class Nothing:
        def flags(self, revision: Revision) -> object:
            return self

        def read(self, *_: object) -> None: ...

    program = Program("flags", Configuration(Revision.FLAGS), (Read(), NewProcess(), Read()))
    for subject, code in ((Broken(), "RuntimeError"), (Nothing(), "AttributeError")):
        history = run(program, subject)
        notes = [event.args for event in history if event.kind == "note"]
        assert [(what, details["code"]) for what, details in notes] == [("raised", code)] * 2
        assert [event["outcome"]["status"] for event in history if event.kind == "end"] == ["crashed", "ok", "crashed"]
