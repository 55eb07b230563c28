"""What is left of a process that ended: in the report, in both JUnit files, on the terminal and on the page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

from vmm_conformance.bundling.pack import pack
from vmm_conformance.cli import main
from vmm_conformance.reporting import json_report
from vmm_conformance.reporting.ended import where
from vmm_conformance.reporting.endings import describe_ending, ending_name
from vmm_conformance.running.results import Ending

SPEC = "vmm_reference.mutants.violent:leaves"
ITEM = f"flags/explore/anything[{SPEC}]"
FILE = "programs/crash-flags-explore-anything-vmm_reference.mutants.violent-leaves.json"
HOW = "the process exited with status 3 in operation 2, read"


def run(pytester, *arguments):
    asked = ("--vmm-subject", SPEC, "--vmm-budget", "smoke", "--vmm-isolation", "process")
    return pytester.runpytest_subprocess("--pyargs", "vmm_suites", "-p", "no:cacheprovider", *asked, *arguments)


@pytest.fixture
def bare(pytester, monkeypatch):
    """A folder in which nothing that pytest was told applies."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\n")
    return pytester


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_evidence_survives_with_and_without_workers(bare, workers):
    result = run(bare, workers, "--vmm-report", "report", "--junitxml", "junit.xml")
    assert result.ret == 1
    counted = result.parseoutcomes()
    assert (counted["failed"], counted["passed"]) == (1, 30)  # the rest goes on
    result.stdout.fnmatch_lines(
        [f"flags/explore/anything*{SPEC}* crashed after 1 of 50 programs", "*= vmm-conformance =*", f"*{HOW}"]
    )
    result.stdout.fnmatch_lines([f"*vmm-conformance replay report/{FILE} --subject {SPEC} --isolation process"])
    result.stdout.no_fnmatch_line("*worker*crashed*")
    check_report(bare.path / "report")
    check_junit(bare.path)


def check_report(folder):
    data = json.loads((folder / "report.json").read_text())
    jsonschema.Draft202012Validator(json_report.schema()).validate(data)
    assert data["options"]["isolation"] == "process"
    assert data["overall"] == "partial"
    rows = {row["id"]: row for row in data["subjects"][0]["items"]}
    (ending,) = rows[ITEM]["endings"]
    assert rows[ITEM]["state"] == "crash"
    assert (ending["kind"], ending["how"], ending["op"]) == ("crash", "exited with status 3", 2)
    assert {row["state"] for id, row in rows.items() if id != ITEM} == {"done"}
    assert json.loads((folder / ending["file"]).read_text()) == ending["program"]
    page = (folder / "report.html").read_text()
    for text in ("Processes that ended", "exited with status 3", FILE):
        assert text in page


def check_junit(folder):
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "report/conformance.xml").iter("testcase")}
    error = cases[ITEM].find("error")
    assert (error.get("type"), error.get("message")) == ("crash", HOW)
    assert f"vmm-conformance replay {FILE} --subject {SPEC} --isolation process" in error.text
    own = {case.get("name"): case for case in ElementTree.parse(folder / "junit.xml").iter("testcase")}
    case = own[f"test_conformance[{ITEM}]"]
    assert HOW in {each.get("value") for each in case.iter("property") if each.get("name") == "vmm_crash"}


def test_a_file_replays_under_pytest_too(bare):
    run(bare, "-n0")
    (file,) = (bare.path / ".vmm" / "programs").glob("crash-*.json")
    result = run(bare, "--vmm-replay", str(file))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{HOW}"])


def test_options_from_environment_and_ini_file(bare, monkeypatch):
    bare.makeini("[pytest]\nvmm_isolation = process\nvmm_timeout = 9\n")
    asked = ("--pyargs", "vmm_suites", "-p", "no:cacheprovider", "--vmm-budget", "smoke", "--vmm-report", "report")
    bare.runpytest_subprocess(*asked, "--vmm-subject", SPEC, "-k", "explore")
    options = json.loads((bare.path / "report/report.json").read_text())["options"]
    assert (options["isolation"], options["timeout"]) == ("process", 9)
    monkeypatch.setenv("VMM_ISOLATION", "thread")
    assert "unknown isolation 'thread'" in bare.runpytest_subprocess(*asked).stderr.str()


def test_its_program_goes_into_the_bundle(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["run", "--subject", SPEC, "--budget", "smoke", "--isolation", "process", "--report", "report"])
    packed = pack(tmp_path / "report", tmp_path / "report.vmm.zip")
    assert FILE.encode() in packed.read_bytes()
    assert main(["verify", str(packed)]) in (0, 3)
    assert "differs" not in capsys.readouterr().out


OPERATIONS = [{"op": "read", "platform": "CUDA"}, {"op": "read"}]


def ending(**changes):
    return Ending("timeout", "made no progress for 60 s", 0, {"contract": "flags", "operations": OPERATIONS}, **changes)


def test_where_a_process_ended():
    assert where(ending()).startswith("in operation 0, read (")
    before, after = ending(), ending()
    before.op, after.op = -1, 2
    assert where(before) == "before the first operation"
    assert where(after).startswith("at the end of the program")


def test_an_ending_in_a_few_lines_names_another_driver_too():
    lines = describe_ending(ending(times=3, stack=["a.py:1 in f"]), "an/item[x]", "a b.json", "x", "hip", 80)
    assert lines[0] == "timeout  an/item[x]"
    assert lines[2] == "  program of 2 operations, deterministic; 3 programs of the item ended so"
    assert lines[3] == "    a.py:1 in f"
    assert lines[4] == "  vmm-conformance replay 'a b.json' --subject x --driver hip --isolation process"
    assert max(map(len, lines[:4])) <= 80


def test_files_of_different_items_and_kinds_have_different_names():
    kinds = (Ending("crash", "", 0, {}), Ending("timeout", "", 0, {}), Ending("crash", "", 0, {}, number=2))
    names = {ending_name(kind, item, "x") for kind in kinds for item in ("c/explore/a[x]", "c/b/a[x]")}
    assert len(names) == 6
    assert ending_name(kinds[2], "c/explore/a[m:x]", "m:x") == "crash-2-c-explore-a-m-x.json"
