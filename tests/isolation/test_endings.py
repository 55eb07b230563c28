"""Programs that end their process: what becomes of them, and of the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vmm_conformance import check
from vmm_conformance.cli import main
from vmm_conformance.contracts import Mutant
from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.programs.files import from_data
from vmm_conformance.reporting import json_report
from vmm_conformance.running import endings
from vmm_conformance.running.ended import TIMEOUT
from vmm_conformance.running.isolated.process import KEEPER
from vmm_conformance.running.results import ItemResult
from vmm_conformance.running.session import Options, plan, resolve_known, run_item
from vmm_reference.mutants import MUTANTS
from vmm_reference.mutants.violent import FATAL_READ, VIOLENT

MODULE = "vmm_reference.mutants.violent"
ISOLATED = Options("smoke", isolation="process")
IMPATIENT = replace(ISOLATED, timeout=1)


def items_of(spec, options, contract="flags"):
    return [item for item in plan({spec: resolve_known(spec)}, options) if item.contract == contract]


@pytest.mark.parametrize("subject", VIOLENT, ids=lambda subject: subject.name)
def test_each_way_to_end_is_a_verdict_with_the_program_that_led_there(subject, monkeypatch):
    monkeypatch.setattr(endings, "MOST", 2)
    monkeypatch.setitem(endings.SHRINKING, TIMEOUT, 1)
    options = IMPATIENT if subject.kind == TIMEOUT else ISOLATED
    first, *others = items_of(f"{MODULE}:{subject.name}", options)
    result = run_item(first, options)
    assert result.state == subject.kind
    (ending,) = result.endings
    assert (ending.kind, ending.how, ending.op) == (subject.kind, subject.how, FATAL_READ - 1)
    assert [each["op"] for each in ending.program["operations"]].count("read") == FATAL_READ
    if subject.kind == "crash":
        assert (len(ending.program["operations"]), ending.repeats) == (FATAL_READ, "deterministic")
    assert from_data(ending.program).contract == "flags"
    assert ending.times == 2
    told = any(frame.startswith("violent.py:") and frame.endswith(" in read") for frame in ending.stack)
    assert told is (subject.name in ("segfault", "abort", "hangs"))  # the others leave no time to tell
    assert not any("/" in frame for frame in ending.stack)
    assert ItemResult.from_json(result.to_json()) == result
    assert {run_item(item, ISOLATED).state for item in others[:3]} == {"done"}  # in a fresh child


def test_violent_subjects_are_not_in_the_kill_matrix_which_runs_in_one_process():
    subjects = {id(mutant.subject) for mutant in MUTANTS if isinstance(mutant, Mutant)}
    assert not subjects & set(map(id, VIOLENT))


def test_failures_are_found_beside_crashes_and_made_small(own):
    report = check("isolated_own:both", budget="smoke", isolation="process", contracts=["flags"])
    section = report["isolated_own:both"]
    assert report.overall.value == "not conformant"
    assert {ending.kind for item in section.items for ending in item.endings} == {"crash"}
    failure = next(entry for entry in section.invariants if entry.failures).failures[0]
    assert len(failure.program["operations"]) <= 2
    assert failure.history
    for item in section.items:
        for ending in item.endings:
            assert ending.program["operations"][ending.op]["platform"] == "CUDA"


def comparable(report):
    data = json_report.to_json(report)
    data["options"] = {name: value for name, value in data["options"].items() if name not in ("isolation", "timeout")}
    return without_seconds(data)


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("spec", ["reference", "isolated_own:deaf"])
def test_isolation_changes_no_program_and_no_verdict(own, spec):
    asked = {"budget": "smoke", "seed": 3, "contracts": ["flags"]}
    here, there = check(spec, **asked), check(spec, isolation="process", **asked)
    assert comparable(here) == comparable(there)


def test_over_a_driver_too():
    one = next(item for item in items_of("reference", Options("smoke"), "skip-remap") if item.kind == "exploration")
    here, there = (run_item(one, options).to_json() for options in (Options("smoke"), ISOLATED))
    assert without_seconds(here) == without_seconds(there)
    assert here["witnesses"]


def test_one_child_serves_many_items():
    before = KEEPER.started
    for item in items_of("reference", ISOLATED)[:4]:
        run_item(item, ISOLATED)
    assert KEEPER.started == before + 1


def test_after_a_device_fault_that_outlives_its_driver_the_rest_runs_in_a_fresh_child(own):
    explorations = [item for item in items_of("isolated_own:sticky", ISOLATED, "driver") if item.kind == "exploration"]
    before = KEEPER.started
    isolated = [run_item(item, ISOLATED) for item in explorations]
    assert KEEPER.started > before + 1
    assert {(result.state, len(result.failures)) for result in isolated} == {("done", 0)}
    assert any(run_item(item, Options("smoke")).failures for item in explorations)


def test_a_program_that_crashed_replays_from_its_file_by_the_command_that_is_shown(own, capsys):
    spec = f"{MODULE}:killed"
    assert main(["run", "--subject", spec, "--budget", "smoke", "--isolation", "process"]) == 3
    shown = capsys.readouterr().out
    assert "killed 0: partial" in shown
    command = next(line for line in shown.splitlines() if "vmm-conformance replay" in line).split()[1:]
    assert command[-2:] == ["--isolation", "process"]
    assert main(command) == 1
    assert "the process was killed by SIGKILL in operation 2, read" in capsys.readouterr().out
    assert main([command[0], command[1], "--isolation", "process"]) == 0  # the reference survives it
    assert KEEPER.pid is None


def test_what_cannot_be_asked_for():
    with pytest.raises(BadInvocation, match="unknown isolation 'thread'; accepted: none, process"):
        Invocation(isolation="thread").check_names()
    with pytest.raises(BadInvocation, match="timeout must be at least 1 second, got 0"):
        Invocation(timeout=0).check_names()
    with pytest.raises(BadInvocation, match="needs the subject's spec"):
        check(VIOLENT[0], isolation="process")
