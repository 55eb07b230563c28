"""The page of the driver's rules and quirks says what there is: the catalogue, the capabilities and the profiles."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import DriverCapabilities
from vmm_conformance.drivers.host.quirks import QUIRKS, Quirk

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "driver-rules.md").read_text("utf-8")


def rows(first: str) -> list[list[str]]:
    """The rows of the table whose first column begins with ``first``."""
    lines = re.findall(rf"^\| ({first}.*) \|$", PAGE, re.MULTILINE)
    return [line.split(" | ") for line in lines]


RULES = rows("V")
CAPABILITIES = {field.name for field in fields(DriverCapabilities)}


def test_every_rule_is_there_once():
    assert [row[0] for row in RULES] == [f"V{number:02}" for number in range(1, 82)]


def test_a_rule_is_the_invariant_of_its_number_at_the_level_that_the_page_says():
    for name, about, here, level in RULES:
        id = f"DRIVER-{int(name[1:])}"
        assert about
        if here == "absent":
            assert id not in catalogue().invariants
            assert len(level) > 20, f"{name}: say why"
        else:
            assert here == id
            assert catalogue()[id].level == ("should" if level == "should" else "must")


def test_every_invariant_of_the_driver_is_a_rule():
    assert {row[2] for row in RULES} - {"absent"} == {entry.id for entry in catalogue().of("driver")}


def test_every_capability_is_named_where_it_is_judged():
    named = {name for row in RULES for name in re.findall(r"^capability: `(\w+)`$", row[3])}
    assert named == CAPABILITIES - {"progress"}


def test_every_quirk_is_there_as_it_is():
    assert rows("Q") == [[quirk.id, quirk.where, quirk.note, caught(quirk)] for quirk in QUIRKS]


def caught(quirk: Quirk) -> str:
    """What catches a quirk, or why nothing does."""
    return ", ".join(quirk.breaks) or (quirk.reason if quirk.kind else f"not had: {quirk.reason}")
