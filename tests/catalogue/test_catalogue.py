"""The catalogue: complete, well formed, and nothing in it that nobody tests."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import resources
from typing import Any

import pytest

from vmm_conformance.catalogue import CatalogueError, Invariant, catalogue
from vmm_conformance.catalogue.loader import _entry
from vmm_conformance.contracts.subject import CONTRACTS
from vmm_conformance.related import related
from vmm_conformance.running.suites import load_suites

ENTRIES = list(catalogue())
FILES = {
    file.name: tomllib.loads(file.read_text("utf-8"))["invariant"]
    for file in resources.files("vmm_conformance.catalogue").iterdir()
    if file.name.endswith(".toml")
}
AREAS = {
    "STEP": "skip-remap", "SHADOW": "skip-remap", "ALLOCATOR": "allocator", "FLAG": "flags", "DRIVER": "driver",
    "RAW": "reservation", "RES": "reservation", "MAP": "reservation", "REMAP": "reservation",
    "ALLOC": "vmm-allocator", "SCOPE": "va-remap", "POLICY": "va-remap", "AUTO": "auto-threshold",
}  # fmt: skip
ELSEWHERE = {"FLAG-153": "va-remap"}
"""Names of update modes belong to the contract whose modes they are."""
INFERRED_STEPS = {
    *(f"STEP-{number}" for number in (90, 96, 97, 159, 163, 164, 166, 186)),
    *(f"SHADOW-{number}" for number in (118, 160, 161)),
}


def each(entries: list[Invariant] = ENTRIES) -> Any:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.id)


def test_every_entry_of_every_file_is_there_once() -> None:
    ids = [data["id"] for file in FILES.values() for data in file]
    assert [id for id, number in Counter(ids).items() if number > 1] == []
    assert sorted(ids) == sorted(entry.id for entry in ENTRIES)


def test_a_file_holds_one_area() -> None:
    for name, file in FILES.items():
        areas = {data["id"].partition("-")[0] for data in file if data["id"] not in ELSEWHERE}
        assert areas == {name.removesuffix(".toml").upper()}


def test_entries_come_by_area_and_number() -> None:
    assert [entry.order for entry in ENTRIES] == sorted(entry.order for entry in ENTRIES)
    numbers = [int(entry.id.rpartition("-")[2]) for entry in catalogue().matching("STEP")]
    assert numbers == [*range(81, 103), 158, 159, 162, 163, 164, 166, 186]
    assert [entry.order[1] for entry in catalogue().matching("SHADOW")] == [*range(103, 120), 160, 161]


@each()
def test_an_entry_is_of_its_areas_contract_and_reads_well(entry: Invariant) -> None:
    assert entry.contract == ELSEWHERE.get(entry.id, AREAS[entry.id.partition("-")[0]])
    assert entry.contract in CONTRACTS
    assert entry.statement.endswith(".")
    assert entry.why.endswith((".", "?"))
    assert not entry.needs.endswith(".")
    assert entry.needs[0].islower()
    text = " ".join((entry.statement, entry.why, entry.source, entry.needs))
    assert not [word for word in ("/work", "spec/", "../", "TODO") if word in text]


def test_what_was_concluded_is_told_from_what_is_documented() -> None:
    steps = {entry.id for entry in ENTRIES if entry.contract == "skip-remap" and entry.evidence == "inferred"}
    assert steps == INFERRED_STEPS
    assert all("inferred" in catalogue()[id].source for id in steps)


@each([entry for entry in ENTRIES if entry.level == "must"])
def test_every_must_is_explored_judged_and_broken_by_a_mutant_of_its_own(entry: Invariant) -> None:
    about = related(entry)
    explored = [suite for suite in load_suites() if suite.contract == entry.contract and suite.explorations]
    assert about.checkers, "no checker names it, so neither a scenario nor an exploration can witness it"
    assert about.scenarios or explored, "nothing runs it"
    assert about.mutants, "nothing tests its judge"


@each([entry for entry in ENTRIES if entry.contract == "skip-remap"])
def test_every_invariant_of_the_executor_has_a_scenario(entry: Invariant) -> None:
    assert related(entry).scenarios


# -- asking for entries


def test_entries_are_found_by_id_contract_and_prefix() -> None:
    found = catalogue()
    assert found["STEP-87"].id == "STEP-87"
    assert {entry.id for entry in found.of("skip-remap")} == {
        entry.id for prefix in ("STEP", "SHADOW") for entry in found.matching(prefix)
    }
    assert [entry.id for entry in found.matching("STEP-8")][:2] == ["STEP-81", "STEP-82"]
    assert [entry.id for entry in found.matching("STEP-81")] == ["STEP-81"]
    assert found.matching("NOTHING") == ()
    assert len(found) == len(ENTRIES)


def test_an_unknown_id_says_where_to_look() -> None:
    with pytest.raises(CatalogueError, match=r"no invariant 'STEP-1'; `vmm-conformance list`"):
        catalogue()["STEP-1"]


# -- malformed entries

GOOD = {
    "id": "STEP-1", "level": "must", "evidence": "documented", "contract": "skip-remap", "statement": "It\n  holds.",
    "why": "Or else.", "source": "somebody#1", "needs": "a step",
}  # fmt: skip


def test_a_good_entry_has_its_line_breaks_folded() -> None:
    assert _entry(GOOD, "here").statement == "It holds."


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": "step-1"}, "id like STEP-87"),
        ({"level": "may"}, "level in"),
        ({"evidence": "rumour"}, "evidence in"),
        ({"why": ""}, "why must be text"),
        ({"why": 3}, "why must be text, got 3"),
        ({"note": "more"}, r"look at \['note'\]"),
    ],
)
def test_a_malformed_entry_says_where_it_stands_and_what_is_wrong(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CatalogueError, match=f"^here: .*{complaint}"):
        _entry({**GOOD, **change}, "here")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(CatalogueError, match=r"look at \['needs'\]"):
        _entry({name: value for name, value in GOOD.items() if name != "needs"}, "here")
