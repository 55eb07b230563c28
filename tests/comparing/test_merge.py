"""Reports of shards join into the report of one run, or it is said why they do not."""

from __future__ import annotations

import json
from datetime import date

import jsonschema
import pytest

from vmm_conformance import check
from vmm_conformance.bundling.pack import pack
from vmm_conformance.bundling.result import State
from vmm_conformance.bundling.verify import verify
from vmm_conformance.cli import main
from vmm_conformance.comparing.merge import MergeError, merge
from vmm_conformance.reporting import json_report

SPEC = "own_shards:off"
TODAY = date(2027, 6, 30)
WAIVERS = """
[[waiver]]
invariant = "FLAG-148"
subject = "own_shards:off"
reason = "an unknown word reads as off"
link = "https://example.org/issues/7"
expires = 2027-06-30
program = "word.json"
"""


def section(document):
    return document.data["subjects"][0]


def row(document, id):
    return next(item for item in section(document)["items"] if item["id"] == id)


def entry(document, id="FLAG-148"):
    return next(entry for entry in section(document)["invariants"] if entry["id"] == id)


def run_in(document):
    return [item["id"] for item in section(document)["items"] if item["state"] == "done"]


def test_a_shard_alone_is_partial_and_says_which_one_it_is(documents):
    one, two = documents("1", "2")
    for document, name in ((one, "1/2"), (two, "2/2")):
        assert not document.data["complete"]
        (reason,) = [reason for reason in document.data["reasons"] if "shard" in reason]
        own = run_in(document)
        assert reason == f"only shard {name} was asked for: {len(own)} of {len(section(document)['items'])} items"
    assert not set(run_in(one)) & set(run_in(two))
    assert len(run_in(one)) + len(run_in(two)) == len(section(one)["items"])


def test_two_shards_are_the_one_run(documents, timeless):
    (whole,) = documents("whole")
    for order in (("1", "2"), ("2", "1")):
        joined = merge(documents(*order))
        assert timeless(joined.data) == timeless(whole.data)
        assert joined.contradictions == ()
        assert joined.report.exit_code == 1
    jsonschema.Draft202012Validator(json_report.schema()).validate(joined.data)


def test_the_union_has_to_be_complete(documents):
    joined = merge(documents("1"))
    assert joined.report.exit_code == 1  # the failure lies in every shard
    assert not joined.data["complete"]
    assert "items not run: flags/" in joined.data["reasons"][1]
    assert joined.told().startswith("not complete: ")


def test_what_was_done_twice_counts_once(documents, timeless):
    joined = merge(documents("1", "2", "1", "whole"))
    assert timeless(joined.data) == timeless(documents("whole")[0].data)
    assert joined.contradictions == ()


def test_what_was_done_twice_and_came_out_otherwise_is_said(documents):
    one, whole = documents("1", "whole")
    id = next(failure["item"] for failure in entry(one)["failures"])
    entry(one)["failures"] = [failure for failure in entry(one)["failures"] if failure["item"] != id]
    joined = merge([one, whole])
    assert joined.contradictions == (f"{id} came out otherwise in two reports: FLAG-148 broken in whole alone",)
    assert id in {failure["item"] for failure in entry(whole)["failures"]}
    assert joined.data["overall"] == "not conformant"


def test_a_crash_in_one_report_is_not_made_good_by_another(documents):
    one, whole = documents("1", "whole")
    id = run_in(one)[0]
    ended = {
        "kind": "crash", "how": "was killed by SIGSEGV", "op": 0, "stack": [], "repeats": "deterministic", "times": 1,
        "programs_before": 3, "program": entry(whole)["failures"][0]["program"], "file": "programs/crash.json",
        "trail": "histories/crash.jsonl",
    }  # fmt: skip
    row(one, id).update(state="crash", endings=[ended], executed=row(one, id)["executed"] - 1)
    joined = merge([one, whole])
    told = "crash in 1, done in whole; crash in read seen in 1 alone"
    assert joined.contradictions == (f"{id} came out otherwise in two reports: {told}",)
    joint = next(item for item in joined.data["subjects"][0]["items"] if item["id"] == id)
    assert (joint["state"], joint["endings"], joined.evidence["programs/crash.json"]) == ("crash", [ended], 0)
    row(whole, id).update(state="crash", endings=[{**ended, "op": -1}])
    told = "crash in read seen in 1 alone; crash in no operation seen in whole alone"
    assert merge([one, whole]).contradictions == (f"{id} came out otherwise in two reports: {told}",)


def test_a_run_that_was_stopped_is_continued_by_another(documents, timeless):
    one, whole = documents("1", "whole")
    stopped = row(one, run_in(one)[0])
    stopped.update(state="stopped", executed=0, witnesses={})
    assert timeless(merge([one, whole]).data) == timeless(documents("whole")[0].data)
    assert timeless(merge([whole, one]).data) == timeless(documents("whole")[0].data)


@pytest.mark.parametrize("stopped_first", [True, False])
@pytest.mark.parametrize("field", ["message", "program", "outcomes"])
def test_a_failure_and_its_files_are_of_the_report_whose_result_counts(documents, stopped_first, field):
    stopped, whole = documents("whole", "whole")
    ours = entry(whole)["failures"][0]
    theirs = entry(stopped)["failures"][0]
    theirs[field] = {"message": "another", "program": {**theirs["program"], "version": 2}, "outcomes": []}[field]
    theirs["map"] = []
    row(stopped, ours["item"]).update(state="stopped", executed=1)
    joined = merge([stopped, whole] if stopped_first else [whole, stopped])
    assert next(each for each in entry(joined)["failures"] if each["item"] == ours["item"]) == ours
    assert joined.evidence[entry(whole)["program"]] == int(stopped_first)
    assert joined.contradictions == ()


def option(name, value):
    return lambda document: document.data["options"].update({name: value})


DIFFERENT = [
    (option("seed", 1), "another option seed: 0 and 1"),
    (option("budget", "dev"), "another option budget: smoke and dev"),
    (lambda d: d.data.update(catalogue="2025.1"), "another catalogue: {catalogue} and 2025.1"),
    (lambda d: d.data["driver"].update(name="hip", real=True), "another driver: host and hip, real"),
    (lambda d: d.data["driver"]["versions"].update(HIP="7"), "another version behind the driver:  and HIP 7"),
    (
        lambda d: section(d)["subject"].update(version="2"),
        f"another subject: {SPEC} (flags-unknown-is-off) and {SPEC} (flags-unknown-is-off 2)",
    ),
    (lambda d: d.data["environment"]["packages"].update(hypothesis="1"), "another version of hypothesis: "),
    (lambda d: section(d)["items"].pop(), "another plan"),
    (lambda d: section(d)["invariants"].pop(), "another set of invariants"),
    (lambda d: d.data.update(waivers={"today": "2026-12-01", "entries": [{"settled": []}]}), "another set of waivers"),
]


@pytest.mark.parametrize(("change", "told"), DIFFERENT, ids=lambda value: value if isinstance(value, str) else "")
def test_reports_of_different_runs_do_not_join(documents, change, told):
    one, two = documents("1", "2")
    change(two)
    with pytest.raises(MergeError) as caught:
        merge([one, two])
    told = told.format(catalogue=one.data["catalogue"])
    assert str(caught.value).startswith(f"1 and 2 are of different runs: {told}")


def test_a_report_of_an_older_version_is_refused(documents):
    (one,) = documents("1")
    del row(one, run_in(one)[0])["witnesses"]
    with pytest.raises(MergeError, match="1 was written by an older version: its items have no witnesses"):
        merge([one])


def test_several_machines_are_all_named(documents):
    one, two = documents("1", "2")
    two.data["environment"]["platform"] = "Linux-9"
    two.data["environment"]["devices"] = {"gw0": "HIP_VISIBLE_DEVICES=0"}
    joined = merge([one, two]).data["environment"]
    assert joined["platform"] == f"{one.data['environment']['platform']}, Linux-9"
    assert joined["devices"] == {"2 gw0": "HIP_VISIBLE_DEVICES=0"}


def test_the_command_writes_all_that_a_run_leaves_and_it_verifies(shards, tmp_path, capsys):
    target = tmp_path / "joined"
    assert main(["merge", str(shards / "1"), str(shards / "2" / "report.json"), "-o", str(target)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith(f"{target / 'report.json'}: complete: ")
    assert "  flags-unknown-is-off: not conformant" in out
    left = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    there = shards / "whole"
    assert left == {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    pieces = list(verify(pack(target, tmp_path / "joined.vmm.zip"), trusted=[SPEC]))
    assert [piece for piece in pieces if piece.state is not State.SAME] == []


def test_the_command_writes_a_file_alone(shards, tmp_path):
    file = tmp_path / "all" / "joined.json"
    assert main(["merge", *(str(shards / name) for name in "12"), "-o", str(file)]) == 1
    assert json.loads(file.read_text())["complete"]
    assert {path.name for path in file.parent.iterdir()} == {"joined.json", "programs", "histories"}


def test_waivers_are_settled_over_all_shards(shards, tmp_path):
    (program,) = (shards / "whole" / "programs").glob("FLAG-148-*.json")
    (tmp_path / "word.json").write_text(program.read_text())
    (tmp_path / "waivers.toml").write_text(WAIVERS)
    for n in "123":  # more shards than one in which the waiver's program is
        one = check(SPEC, budget="smoke", shard=f"{n}/3", waivers=tmp_path / "waivers.toml", today=TODAY,
                    report=tmp_path / n)  # fmt: skip
        assert one.overall.value == "partial"
    target = tmp_path / "joined"
    assert main(["merge", *(str(tmp_path / n) for n in "123"), "-o", str(target)]) == 0
    joined = json.loads((target / "report.json").read_text())
    assert joined["overall"] == "conformant-with-waivers(1)"
    assert joined["waivers"]["entries"][0]["settled"][0]["state"] == "in force"


def test_reports_that_do_not_join_are_a_matter_of_usage(shards, tmp_path, capsys):
    other = json.loads((shards / "2" / "report.json").read_text())
    other["options"]["seed"] = 5
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert main(["merge", str(shards / "1"), str(tmp_path / "other.json"), "-o", str(tmp_path / "x")]) == 2
    assert "1 and other are of different runs: another option seed: 0 and 5" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
