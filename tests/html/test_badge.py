"""The badge never says more than the report."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from page_stories import entry, failure, report

from vmm_conformance.cli import main
from vmm_conformance.reporting.badge import endpoint, message, svg

GREEN = {"green", "brightgreen", "success"}


def of(overall="", *, whole=True):
    entries = [entry("ALLOCATOR-1")] if whole else [entry("ALLOCATOR-1"), entry("ALLOCATOR-2", "not exercised")]
    if overall == "not conformant":
        entries.append(entry("ALLOCATOR-5", "fail", failure()))
    return report(*entries, overall=overall)


@pytest.mark.parametrize(
    ("overall", "colour"),
    [("hardened", "brightgreen"), ("conformant", "green"), ("partial", "yellow"), ("not conformant", "red")],
)
def test_a_colour_for_each_verdict(overall, colour):
    badge = endpoint(of(overall))
    assert badge["color"] == colour
    assert badge["schemaVersion"] == 1
    assert badge["isError"] is (overall == "not conformant")
    assert badge["message"].startswith(f"{overall} ")


@pytest.mark.parametrize("overall", ["hardened", "conformant", "partial"])
def test_a_run_that_left_something_out_is_never_green(overall):
    badge = endpoint(of(overall, whole=False))
    assert badge["color"] not in GREEN
    assert badge["message"] == "partial 1/2"
    assert "#2c7a3f" not in svg(of(overall, whole=False))


def test_a_run_of_nothing_is_never_green():
    data = of("hardened")
    data["subjects"] = []
    assert message(data) == "partial 0/0"


def test_the_picture_is_well_formed_and_says_the_same_in_words():
    root = ElementTree.fromstring(svg(of("not conformant")))
    assert root.attrib["aria-label"] == "vmm conformance: not conformant 1/2"
    assert "✗ not conformant 1/2" in "".join(root.itertext())


def test_the_command_writes_both_kinds(tmp_path, capsys):
    source = tmp_path / "report.json"
    source.write_text(json.dumps(of()))
    for name in ("badge.svg", "badge.json"):
        assert main(["badge", str(source), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "badge.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "badge.json").read_text())["message"] == "hardened 1/1"
    assert main(["badge", str(tmp_path / "badge.json")]) == 2
    assert "neither a report" in capsys.readouterr().err
