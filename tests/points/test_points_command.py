"""``vmm-conformance points``, and what a report says of failure points."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.cli import main
from vmm_conformance.comparing.merge import merge
from vmm_conformance.programs.failing import NO_POINTS
from vmm_conformance.related import all_mutants
from vmm_conformance.reporting import json_report
from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.report import build
from vmm_conformance.reporting.schema_check import check
from vmm_conformance.reporting.terminal import summary
from vmm_conformance.running import session
from vmm_conformance.running.results import Coverage
from vmm_conformance.running.session import Options, know, point_items, run_item
from vmm_conformance.running.suites import load_suites
from vmm_reference.subject import reference


def test_it_says_how_many_points_were_covered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["points", "--contract", "allocator", "--bound", "10", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["subject"], data["contract"], data["broken"]) == ("reference", "allocator", [])
    assert data["covered"] + data["undo_covered"] == 10
    assert data["reached"] > 10


def test_contracts_without_points_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["points", "--contract", "flags"]) == 0
    assert capsys.readouterr().out == f"flags: none: {NO_POINTS['flags']}\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--contract", "heap"], "unknown contract 'heap'; accepted: driver, "),
        (["--contract", "driver"], "reference does not offer the contract driver; it offers allocator"),
        (["--bound", "0"], "bound must be at least 1"),
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["points", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_a_failing_point_is_shown_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mutant = next(mutant for mutant in all_mutants() if mutant.id == "allocator-undo-gives-up")
    know("gives-up", mutant.subject)
    assert main(["points", "--subject", "gives-up", "--bound", "60", "--report", "report"]) == 1
    out = capsys.readouterr().out
    command = next(line.split() for line in out.splitlines() if "replay report/programs/ALLOCATOR-7" in line)
    assert main(command[1:]) == 1
    assert "ALLOCATOR-7  must, documented" in capsys.readouterr().out


def test_a_report_says_it_too() -> None:
    suite = next(suite for suite in load_suites() if suite.contract == "allocator")
    (item,) = point_items(suite, "reference", "host", 10)
    result = run_item(item, Options())
    report = build([result], [item], Options(), {"reference": reference}, catalogue())
    total = result.points or Coverage()
    said = f"    points     {total.covered} of {total.reached:,} failure points covered; of those of a"
    assert any(line.startswith(said) for line in summary(report))
    data = json_report.to_json(report)
    check(data, json_report.schema())
    assert data["subjects"][0]["items"][0]["points"] == asdict(total)
    joined = merge([Document("one", data), Document("the same", data)])
    assert joined.data["subjects"][0]["items"][0]["points"] == asdict(total)


def test_where_there_is_no_driver_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "unavailable", lambda subject, driver: "no device here")
    assert main(["points", "--contract", "allocator", "--bound", "5"]) == 3
    assert "allocator/points/1[reference]: unavailable: no device here" in capsys.readouterr().out
