"""``pytest --pyargs vmm_suites`` as a user runs it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

OTHERS = ("runpytest-0", "runpytest-current", "stdout", "stderr")
EXPLORATION = "flags/explore/anything[own:{}]"


def read_report(pytester, folder="report"):
    return json.loads((pytester.path / folder / "report.json").read_text())


def verdicts(report):
    return {entry["id"]: entry["verdict"] for entry in report["subjects"][0]["invariants"]}


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def test_a_good_subject_is_conformant(own, suite):
    result = suite("--vmm-report", "report")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*= vmm-conformance =*", "good 1.2 over host (budget smoke, seed 0, *", "*good 1.2: conformant (hardened)"]
    )
    report = read_report(own)
    assert report["overall"] == "hardened"
    assert report["complete"]
    assert (own.path / "report" / "conformance.xml").is_file()


def test_a_broken_one_gets_a_screen_a_program_and_a_command(own, suite):
    result = suite("--vmm-report", "report", subject="own:deaf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "FLAG-* must, documented",
            "subject        deaf 1.2 over host",
            "contract       flags",
            "program *returned",
            ">   *",
            "    broken  *",
            "replay",
            "  vmm-conformance replay report/programs/FLAG-*-own-deaf.json --subject own:deaf",
            "*= vmm-conformance =*",
            "*FLAG-* fails: *",
            "*deaf 1.2: not conformant",
        ]
    )
    broken = [entry for entry in read_report(own)["subjects"][0]["invariants"] if entry["verdict"] == "fail"]
    assert broken
    for entry in broken:
        assert (own.path / "report" / entry["program"]).is_file()


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
@pytest.mark.parametrize("width", [60, 120])
def test_the_screen_is_as_wide_as_the_terminal(suite, monkeypatch, width, workers):
    monkeypatch.setenv("COLUMNS", str(width))
    printed = suite(workers, subject="own:deaf", fresh=True).stdout.str().splitlines()
    start = next(number for number, line in enumerate(printed) if "must, documented" in line)
    end = next(number for number in range(start, len(printed)) if printed[number].startswith("replay"))
    screen = printed[start:end]
    assert width - 25 < max(map(len, screen)) <= width


def test_without_a_report_folder_programs_go_to_a_folder_that_git_ignores(own, suite):
    assert suite(subject="own:deaf").ret == 1
    assert list((own.path / ".vmm" / "programs").glob("FLAG-*-own-deaf.json"))
    assert (own.path / ".vmm" / ".gitignore").read_text() == "*\n"


def test_nothing_is_written_when_all_is_well(own, suite):
    before = sorted(own.path.iterdir())
    suite(fresh=True)
    made = {path.name for path in own.path.iterdir()} - {path.name for path in before}
    assert made <= {"__pycache__", ".hypothesis", *OTHERS}  # all of them of others


@pytest.mark.parametrize("subject", ["own:good", "own:deaf"])
def test_workers_come_to_the_same(own, suite, subject):
    alone = suite("--vmm-report", "alone", "-n0", subject=subject, fresh=True)
    shared = suite("--vmm-report", "shared", "-n2", subject=subject, fresh=True)
    assert alone.ret == shared.ret
    assert without_seconds(read_report(own, "alone")) == without_seconds(read_report(own, "shared"))


def test_a_filtered_run_is_partial_and_exits_1(own, suite):
    result = suite("--vmm-invariant", "FLAG-15", "--vmm-report", "report")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*only invariants FLAG-15 were asked for", "*good 1.2: partial"])
    assert verdicts(read_report(own))["FLAG-150"] == "pass"
    assert verdicts(read_report(own))["FLAG-147"] == "not exercised"


def test_a_failure_outside_the_prefix_does_not_fail(own, suite):
    result = suite("--vmm-invariant", "FLAG-152", "--vmm-report", "report", subject="own:deaf")
    assert result.parseoutcomes().keys() == {"passed"}
    assert "fail" not in verdicts(read_report(own)).values()


def test_deselecting_makes_it_partial(own, suite):
    result = suite("-k", "nothing")
    result.stdout.fnmatch_lines(["*items not run: flags/explore/anything*own:good*", "*good 1.2: partial"])
    assert result.ret == 5  # pytest's own: no tests were run


def test_shards_share_out_the_tests(own, suite):
    every = suite().parseoutcomes()["passed"]
    parts = [suite("--vmm-shard", shard) for shard in ("1/2", "2/2")]
    assert sum(part.parseoutcomes()["passed"] for part in parts) == every
    for part in parts:
        assert part.ret == 1
        part.stdout.fnmatch_lines(["*only shard ?/2 was asked for: * of * items", "*good 1.2: partial"])


def test_one_of_two_subjects_deselected_exits_1(own, suite):
    result = suite("-k", "good", "--vmm-subject", "own:deaf")
    assert result.parseoutcomes().keys() == {"passed", "deselected"}
    result.stdout.fnmatch_lines(
        ["*good 1.2: conformant (hardened)", "*items not run: flags/explore/anything*", "*deaf 1.2: partial"]
    )
    assert result.ret == 1


def test_stable_ids_and_properties_in_junit(own, suite):
    suite("--junitxml", "junit.xml", subject="own:deaf")
    cases = {case.get("name"): case for case in ElementTree.parse(own.path / "junit.xml").iter("testcase")}
    case = cases["test_conformance[flags/explore/anything[own:deaf]]"]
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties["vmm_item"] == "flags/explore/anything[own:deaf]"
    assert properties["vmm_subject"] == "own:deaf"
    assert properties["vmm_contract"] == "flags"
    assert "FLAG-147" in properties["vmm_invariants"].split()
    assert properties["vmm_broken"].startswith("FLAG-")


def test_one_node_can_be_named(own, suite):
    result = own.runpytest_inprocess(
        *("--pyargs", "vmm_suites.test_conformance::test_conformance[flags/explore/anything[own:good]]"),
        *("--vmm-subject", "own:good", "--vmm-subject", "own:deaf", "--vmm-budget", "smoke"),
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*good 1.2: partial", "*deaf 1.2: partial"])


def test_parameters_reach_the_subject(suite):
    assert suite(subject="own:Good,size=4").ret == 0


INTERRUPT = """
import pytest
from vmm_conformance.running import explore

real, calls = explore.Seen.add, []

def add(self, program, judged):
    real(self, program, judged)
    calls.append(1)
    if len(calls) == 20:
        raise KeyboardInterrupt

explore.Seen.add = add
"""


@pytest.mark.parametrize(("subject", "word"), [("own:good", "partial"), ("own:deaf", "not conformant")])
def test_an_interrupt_keeps_what_was_found(own, suite, subject, word):
    own.makeconftest(INTERRUPT)
    result = suite(
        "--vmm-report",
        "report",
        "--rootdir",
        str(own.path),
        "-p",
        "conftest",
        subject=subject,
        fresh=True,
    )
    assert result.ret == 2  # pytest's own: interrupted
    report = read_report(own)
    assert report["overall"] == word
    assert not report["complete"]
    item = report["subjects"][0]["items"][0]
    assert (item["id"], item["state"], item["executed"]) == (EXPLORATION.format(subject[4:]), "stopped", 20)


CRASH = """
import os
from own import Good

class Abort(Good):
    name = "abort"

    def flags(self, revision):
        os.abort()

abort = Abort()
"""


def test_a_subject_that_takes_its_worker_down_is_a_crash(own, suite):
    own.makepyfile(violent=CRASH)
    result = suite("-n1", "--vmm-report", "report", subject="violent:abort", fresh=True)
    assert result.ret == 1
    report = read_report(own)
    assert report["overall"] == "partial"
    assert set(verdicts(report).values()) == {"crash", "not applicable"}


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_the_seed_decides_the_programs(own, suite, workers):
    suite("--vmm-report", "one", "--vmm-seed", "1", workers, subject="own:deaf", fresh=True)
    suite("--vmm-report", "again", "--vmm-seed", "1", workers, subject="own:deaf", fresh=True)
    assert without_seconds(read_report(own, "one")) == without_seconds(read_report(own, "again"))


def test_a_program_file_replays(own, suite):
    suite(subject="own:deaf")
    (file, *_) = sorted((own.path / ".vmm" / "programs").glob("*.json"))
    broken = suite("--vmm-replay", str(file), subject="own:deaf")
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines([f"{file.name.rpartition('-own')[0]}  must*", "*broken *"])
    broken.stdout.no_fnmatch_line("*= vmm-conformance =*")
    good = suite("--vmm-replay", str(file))
    good.assert_outcomes(passed=1)
    assert good.ret == 0
