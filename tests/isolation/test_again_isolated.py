"""The kill matrix and verification in child processes: the same answers, and an end is one too."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from vmm_conformance.bundling.pack import pack
from vmm_conformance.bundling.result import State
from vmm_conformance.bundling.verify import verify
from vmm_conformance.cli import main
from vmm_conformance.contracts import Mutant
from vmm_conformance.related import all_mutants, known_bad
from vmm_conformance.reporting.kill_table import as_data
from vmm_conformance.running import kills
from vmm_conformance.running.kills import hunt
from vmm_conformance.running.session import Options
from vmm_conformance.running.subjects import SubjectNotFound, resolve_subject
from vmm_reference.mutants.violent import VIOLENT

ISOLATED = Options(isolation="process")
SPEC = "vmm_reference.mutants.violent:killed"


def mutant(id):
    return next(mutant for mutant in all_mutants() if mutant.id == id)


def test_a_kill_is_the_same_in_a_child():
    one = mutant("flags-any-base")
    here, there = hunt(one, 0, "smoke"), hunt(one, 0, "smoke", "", ISOLATED)
    assert there.killed
    assert replace(there, seconds=0) == replace(here, seconds=0)


def test_a_child_finds_a_mutant_by_its_id():
    assert known_bad("flags-any-base") is mutant("flags-any-base").subject
    assert resolve_subject("vmm_conformance.related:known_bad,id=flags-any-base") is known_bad("flags-any-base")
    with pytest.raises(SubjectNotFound, match="no known-bad variant 'nobody' is installed"):
        resolve_subject("vmm_conformance.related:known_bad,id=nobody")


def test_one_that_ends_its_process_is_given_up_and_not_killed(monkeypatch):
    subject = next(subject for subject in VIOLENT if subject.name == "killed")
    violent = Mutant("violent", "flags", ("FLAG-148",), subject, "leaves")
    monkeypatch.setattr(kills, "_bench", lambda mutant, options: kills.bench_of("flags", SPEC, subject, options))
    assert not hunt(violent, 0, "smoke", "", ISOLATED).killed


def test_the_command_runs_the_matrix_in_children(monkeypatch, capsys):
    monkeypatch.setattr("vmm_conformance.commands.all_mutants", lambda: (mutant("flags-any-base"),))
    assert main(["mutants", "--budget", "smoke", "--isolation", "process", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["killed"] == 1
    assert main(["mutants", "--budget", "smoke", "--isolation", "thread"]) == 2


def test_a_bundle_of_kills_is_verified_in_children(tmp_path):
    source = tmp_path / "kills.json"
    source.write_text(json.dumps(as_data([hunt(mutant("flags-any-base"), 0, "smoke")], "smoke")))
    pieces = list(verify(pack(source, tmp_path / "kills.vmm.zip"), isolated=True))
    assert pieces[-1].line() == "flags-any-base, seed 0: same: killed again"


def test_a_program_that_ended_its_process_is_run_again(own):
    asked = ["run", "--subject", SPEC, "--budget", "smoke", "--isolation", "process", "--report", "report"]
    assert main(asked) == 3
    path = pack(own / "report", own / "one.vmm.zip")
    told = {piece.what: piece for piece in verify(path, trusted=[SPEC], quick=True)}
    assert told[f"flags/explore/anything[{SPEC}], its crash"].detail == "the process ended again when it was run"
    left = [piece for piece in verify(path, quick=True) if "ended the process" in piece.what]
    assert [piece.state for piece in left] == [State.NOT_RECOMPUTED]


def test_one_that_does_not_end_any_more_is_named(own):
    asked = ["run", "--subject", SPEC, "--budget", "smoke", "--isolation", "process", "--report", "report"]
    assert main(asked) == 3
    report = json.loads((own / "report" / "report.json").read_text())
    (ending,) = [ending for item in report["subjects"][0]["items"] for ending in item["endings"]]
    ending["program"]["operations"] = ending["program"]["operations"][:1]
    (own / "report" / "report.json").write_text(json.dumps(report))
    pieces = verify(pack(own / "report", own / "one.vmm.zip"), trusted=[SPEC], quick=True)
    wrong = [piece.detail for piece in pieces if piece.state is State.DIFFERS]
    assert wrong == ["the process does not end when it is run (deterministic before)"]
