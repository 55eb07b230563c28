"""What is written: report.json, conformance.xml and the program files."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jsonschema
import pytest
from handmade import ITEMS, THING, Item, failure, report, result
from junitparser import Error, Failure, JUnitXml, Skipped

from vmm_conformance.reporting import json_report, junit
from vmm_conformance.reporting.programs import program_name, write_program
from vmm_conformance.running.results import Coverage


def every_verdict():
    """A report in which each verdict occurs."""
    items = (*ITEMS, *(Item(f"allocator/explore/a[{name}]", name) for name in ("crashed", "slow")))
    results = [
        result(
            failures=[failure("ALLOCATOR-1"), failure("ALLOCATOR-3", message="a \x00 byte & <markup>")],
            unknown={"ALLOCATOR-2": "KeyError: 3"},
            witnesses={"ALLOCATOR-1": 1},
        ),
        result(items[2].id, {"ALLOCATOR-2": 2}, state="crash"),
        result(items[3].id, {"ALLOCATOR-2": 2}, state="timeout"),
    ]
    both = SimpleNamespace(name="both", version="3", allocator=THING.allocator, flags=lambda revision: None)
    subjects = {"thing": THING, "crashed": both, "slow": THING}
    return report(*results, items=items, subjects=subjects, waivers={"ALLOCATOR-3": "issue 7"})


VERDICTS = ["pass", "fail", "waived", "not exercised", "not applicable", "unknown", "crash", "timeout"]


def validator():
    schema = json_report.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_report_fits_its_schema():
    document = json_report.to_json(every_verdict())
    validator().validate(document)
    found = {entry["verdict"] for section in document["subjects"] for entry in section["invariants"]}
    assert found == set(VERDICTS)
    assert json.loads(json.dumps(document)) == document


def test_devices_of_workers_fit_the_schema():
    document = json_report.to_json(report(devices={"gw0": "CUDA_VISIBLE_DEVICES=2"}))
    validator().validate(document)
    assert document["environment"]["devices"] == {"gw0": "CUDA_VISIBLE_DEVICES=2"}


def test_a_report_on_nothing_fits_its_schema():
    validator().validate(json_report.to_json(report(items=(), subjects={"nothing": SimpleNamespace()})))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d.pop("catalogue"), "'catalogue' is a required property"),
        (lambda d: d.update(overall="fine"), "'fine' is not valid under any of the given schemas"),
        (lambda d: d["subjects"][1]["invariants"][1].update(witnesses=0), "0 is less than the minimum of 1"),
        (lambda d: d["subjects"][0]["invariants"][0].update(failures=[]), "should be non-empty"),
        (lambda d: d.update(more=1), "'more' was unexpected"),
    ],
)
def test_the_schema_refuses_what_is_no_report(change, complaint):
    document = json_report.to_json(every_verdict())
    change(document)
    messages = [error.message for error in validator().iter_errors(document)]
    assert any(complaint in message for message in messages), messages


def test_program_files_are_written_and_named_in_the_report(tmp_path):
    path = json_report.write(every_verdict(), tmp_path / "new" / "report")
    document = json.loads(path.read_text())
    entry = document["subjects"][0]["invariants"][0]
    assert entry["program"] == "programs/ALLOCATOR-1-thing.json"
    assert json.loads((path.parent / entry["program"]).read_text()) == failure().program
    assert sorted(p.name for p in (path.parent / "programs").iterdir()) == [
        "ALLOCATOR-1-thing.json",
        "ALLOCATOR-3-thing.json",
    ]


def test_program_names_hold_no_odd_characters():
    assert program_name("STEP-87", "my.package:thing,size=1/2") == "STEP-87-my.package-thing-size-1-2.json"


def test_a_program_file_is_replaced_as_a_whole(tmp_path):
    write_program(tmp_path, failure(operations=9), "thing")
    path = write_program(tmp_path, failure(operations=1), "thing")
    assert len(json.loads(path.read_text())["operations"]) == 1
    assert list(path.parent.iterdir()) == [path]


def cases(path):
    return {(suite.name, case.name): case for suite in JUnitXml.fromfile(str(path)) for case in suite}


def test_junit_has_one_case_per_invariant_with_its_verdict(tmp_path):
    found = cases(junit.write(every_verdict(), tmp_path))
    assert len(found) == 15 - 5 + 1  # two subjects share a name, so one's cases hide the other's; one waiver is broken
    thing = {name: case for (suite, name), case in found.items() if suite == "thing 1.2"}
    invariants = {"ALLOCATOR-1", "ALLOCATOR-2", "ALLOCATOR-3", "FLAG-147", "STEP-87"}
    assert thing.keys() == {*invariants, "waiver for ALLOCATOR-3"}


@pytest.mark.parametrize(
    ("section", "id", "kind", "type", "message"),
    [
        (0, "ALLOCATOR-1", Failure, "must", "block 2 lies inside block 1, which is still live"),
        (0, "ALLOCATOR-2", Error, "unknown", "KeyError: 3"),
        (0, "ALLOCATOR-3", Skipped, "skipped", "waived: issue 7 (https://example.org/7, until 2026-12-01)"),
        (0, "STEP-87", Skipped, "skipped", "not applicable: does not offer the contract skip-remap"),
        (1, "ALLOCATOR-1", Error, "crash", "allocator/explore/a[crashed]"),
        (1, "FLAG-147", Skipped, "skipped", "not exercised: nothing was run for the contract flags"),
        (2, "ALLOCATOR-1", Error, "timeout", "allocator/explore/a[slow]"),
    ],
)
def test_junit_maps_every_verdict(tmp_path, section, id, kind, type, message):
    suite = list(JUnitXml.fromfile(str(junit.write(every_verdict(), tmp_path))))[section]
    (outcome,) = next(case for case in suite if case.name == id).result
    assert isinstance(outcome, kind)
    assert (outcome.type, outcome.message) == (type, message)


def test_junit_pass_has_no_outcome_and_counts_are_right(tmp_path):
    made = JUnitXml.fromfile(str(junit.write(every_verdict(), tmp_path)))
    passed = next(case for case in list(made)[1] if case.name == "ALLOCATOR-2")
    assert passed.is_passed
    assert passed.classname == "crashed.allocator.ALLOCATOR"
    assert passed.system_out.endswith("witnesses: 2; items: allocator/explore/a[crashed]")
    assert [(s.tests, s.failures, s.errors, s.skipped) for s in made] == [
        (5, 1, 1, 3),
        (5, 0, 2, 2),
        (6, 1, 2, 2),
    ]


def test_junit_has_failure_points_as_properties(tmp_path):
    items = tuple(Item(f"allocator/points/{n}[thing]", "thing", kind="points") for n in (1, 2))
    results = [result(item.id, points=Coverage(2000, 5, 7, n)) for n, item in enumerate(items)]
    suite = next(iter(JUnitXml.fromfile(str(junit.write(report(*results, items=items), tmp_path)))))
    told = {each.name: each.value for each in suite.properties() if each.name.startswith("points.")}
    assert told == {
        "points.allocator": Coverage(4000, 10, 14, 1).text(),
        "points.allocator/points/1[thing]": Coverage(2000, 5, 7, 0).text(),
        "points.allocator/points/2[thing]": Coverage(2000, 5, 7, 1).text(),
    }


def test_junit_tells_an_inferred_must_from_a_documented_one(tmp_path):
    made = report(result(failures=[failure("ALLOCATOR-2"), failure("ALLOCATOR-3", message="a \x00 & <b>")]))
    found = cases(junit.write(made, tmp_path))
    assert found["thing 1.2", "ALLOCATOR-2"].result[0].type == "must-inferred"
    assert found["thing 1.2", "ALLOCATOR-3"].result[0].type == "should"
    assert found["thing 1.2", "ALLOCATOR-3"].result[0].message == "a  & <b>"


def test_every_verdict_is_in_the_documented_mapping():
    assert all(f"\n{verdict}  " in junit.__doc__ for verdict in VERDICTS)


def test_where_memory_lay_does_not_show():
    def moved(by):
        made = failure(message=f"at {0x7F00_0000_0000 + by:#x}")
        for row in made.map:
            row["address"] += by
        return json_report.to_json(report(result(failures=[made])))

    assert moved(0) == moved(0x5000)
    (first, *_) = moved(0)["subjects"][0]["invariants"][0]["failures"]
    assert first["message"] == "at A+0x0"
    assert first["map"][0] == {"region": "A", "offset": 0, "size": 16384, "label": "reservation", "marked": False}
