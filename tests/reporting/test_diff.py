"""Last night and tonight: what changed, and whether anything got worse."""

from __future__ import annotations

import itertools
import json
from copy import deepcopy
from dataclasses import replace
from importlib import resources
from types import SimpleNamespace

import jsonschema
import pytest
from handmade import ITEMS, THING, Item, failure, report, result, waiver

from vmm_conformance.cli import main
from vmm_conformance.comparing.diff import Kind, diff, kind_of
from vmm_conformance.comparing.told import as_lines
from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.verdicts import Verdict
from vmm_conformance.running.results import Ending

DONE = result(ITEMS[1].id)
GOOD = report()
BAD = report(result(failures=[failure("ALLOCATOR-1")]), DONE)
ENDING = Ending("crash", "was killed by SIGSEGV", 0, failure().program)


def documents(before, after):
    return Document("last-night", deepcopy(to_json(before))), Document("tonight", deepcopy(to_json(after)))


def told(before, after, width=100):
    made = diff(*documents(before, after))
    return made, as_lines(made, width)


def changes(made):
    return [(change.id, change.kind.value, change.before, change.after) for s in made.subjects for change in s.changes]


def test_the_same_night_twice():
    made, lines = told(GOOD, report())
    assert not made.worse
    assert lines == ["last-night -> tonight", "", "thing 1.2 (thing): hardened", "", "nothing got worse"]


def test_newly_failing_comes_first_with_its_message_and_its_program():
    rest = {"ALLOCATOR-1": 5, "ALLOCATOR-3": 5}
    bad = report(result(witnesses=rest, failures=[failure("ALLOCATOR-1")]), result(ITEMS[1].id, rest))
    made, lines = told(report(result(failures=[failure("ALLOCATOR-3")]), DONE), bad)
    assert made.worse
    assert lines == [
        "last-night -> tonight",
        "",
        "thing 1.2 (thing): hardened -> not conformant",
        "  no longer complete: something that was shown before was not",
        "  newly failing",
        "    ALLOCATOR-1 pass -> fail: block 2 lies inside block 1, which is still live",
        "  newly not shown",
        "    ALLOCATOR-2 pass -> not exercised: no program reached it: a program for ALLOCATOR-2",
        "  fixed",
        "    ALLOCATOR-3 fail -> pass",
        "  failing programs that are new",
        "    programs/ALLOCATOR-1-thing.json  (3 operations)",
        "",
        "worse: 1 newly failing, 1 newly not shown; the verdict on thing (and 1 fixed)",
    ]


def test_what_is_fixed_is_not_worse():
    made, lines = told(BAD, GOOD)
    assert not made.worse
    assert changes(made) == [("ALLOCATOR-1", "fixed", "fail", "pass")]
    assert lines[-1] == "nothing got worse: 1 fixed"


def test_another_program_of_a_known_failure_is_told_and_is_not_worse():
    made, lines = told(BAD, report(result(failures=[failure("ALLOCATOR-1", operations=2)]), DONE))
    assert not made.worse
    assert changes(made) == []
    assert lines[3:5] == ["  failing programs that are new", "    programs/ALLOCATOR-1-thing.json  (2 operations)"]


def test_a_run_that_is_no_longer_complete_is_worse():
    made, lines = told(BAD, report(result(failures=[failure("ALLOCATOR-1")])))
    assert made.worse
    assert changes(made) == []
    assert lines[3] == "  no longer complete: something that was shown before was not"
    assert lines[-1] == "worse: the verdict on thing"


def test_a_should_that_fails_is_worse_though_the_verdict_is_the_same():
    made, _ = told(GOOD, report(result(failures=[failure("ALLOCATOR-3")]), DONE))
    assert made.worse
    assert made.subjects[0].before == made.subjects[0].after == "hardened"


def test_waived_is_worse_than_passing_and_no_better_than_failing():
    waived = report(result(failures=[failure("ALLOCATOR-1")]), DONE, waivers=[waiver()])
    made, lines = told(GOOD, waived)
    assert made.worse
    assert lines[2:4] == ["thing 1.2 (thing): hardened -> conformant-with-waivers(1)", "  newly waived"]
    made, _ = told(BAD, waived)
    assert not made.worse
    assert changes(made) == [("ALLOCATOR-1", "otherwise changed", "fail", "waived")]


def test_a_process_that_ended_is_worse_even_where_its_invariants_pass_elsewhere():
    made, lines = told(GOOD, report(result(endings=[ENDING]), DONE))
    assert changes(made) == [(ITEMS[0].id, "newly crashed or hung", "done", "crash")]
    assert "    allocator/explore/a[thing] done -> crash: the process was killed by SIGSEGV" in lines
    assert "    programs/crash-allocator-explore-a-thing.json  (3 operations)" in lines
    before = report(result(endings=[ENDING]), DONE)
    assert not told(before, report(result(endings=[ENDING]), DONE))[0].worse
    elsewhere = [ENDING, replace(ENDING, op=3, number=2)]  # in another kind of operation
    assert changes(told(before, report(result(endings=elsewhere), DONE))[0])[0][1] == "newly crashed or hung"
    borne = report(result(endings=[ENDING], state="crash"), DONE, waivers=[waiver(kind="crash")])
    assert changes(told(GOOD, borne)[0]) == [("ALLOCATOR-1", "newly waived", "pass", "waived")]


def two(*results):
    other = SimpleNamespace(name="other", version="2", allocator=THING.allocator)
    items = (*ITEMS, Item("allocator/explore/a[other]", "other"))
    return report(result(), DONE, *results, items=items, subjects={"thing": THING, "other": other})


def test_a_subject_that_appeared_or_is_gone():
    good = two(result("allocator/explore/a[other]"))
    made, lines = told(GOOD, good)
    assert not made.worse
    assert "other 2 (other): not there -> hardened" in lines
    made, lines = told(good, GOOD)
    assert made.worse
    assert "other 2 (other): hardened -> not there" in lines
    assert lines[-1] == "worse: other gone"
    made, lines = told(GOOD, two(result("allocator/explore/a[other]", failures=[failure()])))
    assert made.worse
    assert "    programs/ALLOCATOR-1-other.json  (3 operations)" in lines


def test_an_invariant_that_appeared_or_is_gone():
    before, after = documents(GOOD, GOOD)
    del before.data["subjects"][0]["invariants"][0]
    assert changes(diff(before, after)) == [("ALLOCATOR-1", "appeared", "", "pass")]
    assert not diff(before, after).worse
    assert changes(diff(after, before)) == [("ALLOCATOR-1", "gone", "pass", "")]
    assert diff(after, before).worse


def test_versions_and_options_that_changed():
    before, after = documents(GOOD, report(seed=4))
    after.data["catalogue"] = "2.0"
    after.data["driver"]["versions"] = {"HIP runtime": "7.2.0"}
    after.data["driver"]["options"] = {"capabilities": {"map_offset": True}}
    after.data["environment"]["packages"]["hypothesis"] = "9"
    after.data["subjects"][0]["subject"]["version"] = "1.3"
    lines = as_lines(diff(before, after), 100)
    packages = before.data["environment"]["packages"]
    assert lines[lines.index("versions and options") + 1 : -2] == [
        "  subject thing: thing 1.2 -> thing 1.3",
        "  catalogue: 1.0 -> 2.0",
        f"  package hypothesis: {packages['hypothesis']} -> 9",
        "  option seed: 0 -> 4",
        "  HIP runtime of the driver: none -> 7.2.0",
        "  option of the driver, capabilities.map_offset: none -> True",
    ]
    assert lines[-1] == "nothing got worse"


@pytest.mark.parametrize("before", [None, *Verdict], ids=str)
def test_every_pair_of_verdicts_has_a_kind(before):
    for after in (None, *Verdict):
        if before is not after:
            kind = kind_of(before, after)
            if after is Verdict.PASS:
                assert not kind.worse
            if after in (Verdict.FAIL, None) or before is Verdict.PASS:
                assert kind.worse, (before, after)


def test_no_two_opposite_changes_are_both_better():
    for one, other in itertools.combinations(Verdict, 2):
        kinds = {kind_of(one, other), kind_of(other, one)}
        assert any(kind.worse for kind in kinds) or Kind.CHANGED in kinds, (one, other)


def schema():
    return json.loads(resources.files("vmm_conformance.comparing").joinpath("diff.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("pair", [(GOOD, BAD), (BAD, GOOD), (GOOD, report(seed=4))], ids=["worse", "better", "same"])
def test_the_data_fit_their_schema(pair):
    jsonschema.Draft202012Validator.check_schema(schema())
    data = diff(*documents(*pair)).as_data()
    assert json.loads(json.dumps(data)) == data
    jsonschema.Draft202012Validator(schema()).validate(data)
    assert [kind.value for kind in Kind] == schema()["$defs"]["change"]["properties"]["kind"]["enum"]


def test_the_command_and_its_exit_status(tmp_path, capsys):
    for name, made in (("last-night", GOOD), ("tonight", BAD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(to_json(made)))
    good, bad = str(tmp_path / "last-night"), str(tmp_path / "tonight" / "report.json")
    assert main(["diff", good, bad]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "last-night -> tonight"
    assert main(["diff", bad, good]) == 0
    assert main(["diff", good, good]) == 0
    capsys.readouterr()
    assert main(["diff", good, bad, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["worse"] is True
    assert main(["diff", good, str(tmp_path / "none.json")]) == 2
    assert "give a report.json or a folder with one" in capsys.readouterr().err
