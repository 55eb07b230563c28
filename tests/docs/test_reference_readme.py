"""The porters' page says what the catalogue and the code say."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import CONTRACTS, SUBJECT_CAPABILITIES
from vmm_reference.auto_threshold import BOUNDS, DEFAULT_COSTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "reference" / "README.md"
TEXT = PAGE.read_text("utf-8")
MODULES = sorted(path.stem for path in (ROOT / "reference" / "vmm_reference").glob("*.py") if path.stem != "__init__")
ROWS = re.findall(r"^\| .+ \| ([A-Z]+-\d+) \| .+ \|$", TEXT, re.MULTILINE)


def test_every_rule_is_there_once():
    """All of them but the driver's own, which are no port's to keep."""
    known = [entry.id for entry in catalogue() if entry.contract != "driver"]
    assert sorted(ROWS) == sorted(known)


def test_every_id_is_known():
    assert set(re.findall(r"\b[A-Z]+-\d+\b", TEXT)) - {"UTF-8"} <= set(catalogue().invariants)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_named(module):
    assert f"`{module}.py`" in TEXT


def test_every_contract_but_the_driver_is_named():
    assert all(f"`{contract}`" in TEXT for contract in CONTRACTS if contract != "driver")


def test_what_is_named_is_there():
    names: dict[str, object] = {}
    for module in MODULES:
        names |= vars(import_module(f"vmm_reference.{module}"))
    for name in re.findall(r"`([A-Z][a-z]\w+(?:\.\w+)?)`", TEXT):
        kind, _, attribute = name.partition(".")
        assert kind in names, name
        assert not attribute or hasattr(names[kind], attribute), name


def test_what_is_to_be_declared_can_be():
    table = TEXT.partition("| declared as |")[2].partition("\n\n")[0]
    declared = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.rpartition(" | ")[2])}
    assert len(declared) >= 6
    assert declared <= set(SUBJECT_CAPABILITIES)


def test_the_formula_is_the_code():
    assert f"r / {1 / BOUNDS.slice_share:.0f} " in TEXT
    assert f"{BOUNDS.step_ms:.0f} ms " in TEXT
    assert f"(free - capacity / {1 / BOUNDS.reserve_share:.0f}) / {1 / BOUNDS.free_share:.0f}" in TEXT
    costs = DEFAULT_COSTS
    assert f"`r`\nis {costs.remap_ms:.0f} ms, `c` {costs.copy_ms} ms and `s` 1/{1 / costs.copy_share:.0f}" in TEXT


@pytest.mark.parametrize("page", [PAGE, ROOT / "suites" / "vmm_suites" / "vectors" / "README.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
