"""What is written where: by a run, by the command, and for real subjects that are really broken."""

from __future__ import annotations

import json

import jsonschema
import pytest
from page_stories import entry, failure, kill, kills, report

from vmm_conformance import check
from vmm_conformance.cli import main
from vmm_conformance.related import all_mutants
from vmm_conformance.reporting import json_report
from vmm_conformance.reporting.html import page
from vmm_conformance.reporting.html.documents import document, kills_schema
from vmm_conformance.reporting.schema_check import Mismatch
from vmm_conformance.reporting.schema_check import check as fits

BROKEN = ["step-unmap-without-wait", "shadow-no-order-between-streams", "allocator-unmaps-at-once", "flags-any-base"]


def subject(id):
    return next(mutant for mutant in all_mutants() if mutant.id == id).subject


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report on a subject that is broken."""
    made = tmp_path_factory.mktemp("report")
    check(subject("allocator-unmaps-at-once"), budget="smoke", report=made)
    return made


def test_a_run_leaves_the_page_the_badges_and_the_histories(folder):
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"report.json", "report.html", "conformance.xml", "badge.json", "badge.svg"} <= names
    assert "programs/ALLOCATOR-5-allocator-unmaps-at-once.json" in names
    assert "histories/ALLOCATOR-5-allocator-unmaps-at-once.jsonl" in names
    assert 'id="f0-ALLOCATOR-5"' in (folder / "report.html").read_text()


def test_the_report_has_pictures_without_addresses(folder):
    text = (folder / "report.json").read_text()
    assert "0x7" not in text
    data = json.loads(text)
    jsonschema.Draft202012Validator(json_report.schema()).validate(data)
    (entry,) = [e for e in data["subjects"][0]["invariants"] if e["id"] == "ALLOCATOR-5"]
    pictures = [each["picture"] for each in entry["failures"]]
    assert pictures[0]["marked"]["region"] == "A"
    assert "missing" in [edge["kind"] for edge in pictures[0]["edges"]]
    assert set(map(type, pictures[1:])) <= {type(None)}


@pytest.mark.parametrize("id", BROKEN)
def test_real_failures_are_drawn(id, tmp_path):
    check(subject(id), budget="smoke", report=tmp_path)
    data = json.loads((tmp_path / "report.json").read_text())
    jsonschema.Draft202012Validator(json_report.schema()).validate(data)
    fits(data, json_report.schema())
    text = (tmp_path / "report.html").read_text()
    drawn = [e for e in data["subjects"][0]["invariants"] if e["failures"] and e["failures"][0]["picture"]]
    assert text.count('class="picture map"') == sum(bool(e["failures"][0]["picture"]["regions"]) for e in drawn)
    assert bool(drawn) is (id != "flags-any-base")


def test_the_command_writes_one_page_of_all(folder, tmp_path, capsys):
    matrix = tmp_path / "kills.json"
    matrix.write_text(json.dumps(kills(kill())))
    target = tmp_path / "new" / "all.html"
    assert main(["report", str(folder), str(matrix), "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    assert "allocator-unmaps-at-once" in text
    assert 'id="kills-0"' in text


def test_the_command_names_a_file_that_is_no_report(tmp_path, capsys):
    odd = tmp_path / "odd.json"
    odd.write_text("{}")
    assert main(["report", str(odd)]) == 2
    assert f"vmm-conformance report: {odd}: $: neither a report" in capsys.readouterr().err


def test_without_the_template_engine_the_rest_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page, "available", lambda: False)
    check(subject("flags-any-base"), contracts=["flags"], budget="smoke", report=tmp_path)
    assert (tmp_path / "report.json").exists()
    assert not (tmp_path / "report.html").exists()
    assert main(["report", str(tmp_path)]) == 2
    assert "pip install 'vmm-conformance[html]'" in capsys.readouterr().err


def test_a_kill_matrix_fits_its_schema():
    jsonschema.Draft202012Validator.check_schema(kills_schema())
    jsonschema.Draft202012Validator(kills_schema()).validate(kills(kill()))


def whole():
    return report(entry("ALLOCATOR-1"), entry("ALLOCATOR-5", "fail", failure()))


def invariant(data):
    return data["subjects"][0]["invariants"][1]


CHANGES = [
    lambda d: d.pop("catalogue"),
    lambda d: d.update(more=1),
    lambda d: d.update(seconds=-1),
    lambda d: d.update(complete=1),
    lambda d: d.update(subjects={}),
    lambda d: d["driver"].update(real="no"),
    lambda d: d["environment"]["packages"].update(x=3),
    lambda d: invariant(d).update(verdict="fine"),
    lambda d: invariant(d).update(id="nonsense"),
    lambda d: invariant(d).update(failures=[]),
    lambda d: invariant(d).update(verdict="pass"),
    lambda d: d["subjects"][0]["footer"]["expected"].append("ALLOCATOR-1"),
    lambda d: invariant(d)["failures"][0]["picture"].update(cut=None),
    lambda d: invariant(d)["failures"][0]["picture"]["edges"][0].update(start=[1]),
    lambda d: invariant(d)["failures"][0]["picture"]["ranges"][0].update(kind="hole"),
    lambda d: invariant(d)["failures"][0].update(op=True),
]


def test_a_whole_report_is_accepted():
    fits(whole(), json_report.schema())
    jsonschema.Draft202012Validator(json_report.schema()).validate(whole())


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_our_check_refuses_what_the_schema_refuses(number):
    data = whole()
    CHANGES[number](data)
    assert not jsonschema.Draft202012Validator(json_report.schema()).is_valid(data)
    with pytest.raises(Mismatch, match=r"^\$"):
        document(data, "x")


def test_a_report_that_is_nested_without_end_is_refused():
    data = whole()
    deep = []
    for _ in range(90):
        deep = [deep]
    data["options"]["deep"] = deep
    fits(data, json_report.schema())  # options are anybody's: what is in them is shown and never walked
    invariant(data)["failures"][0]["map"] = deep
    with pytest.raises(Mismatch):
        fits(data, json_report.schema())
