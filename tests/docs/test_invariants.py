"""The page of invariants is what the catalogue says, and every must is judged by a checker that a mutant tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.cli import main
from vmm_conformance.related import related

PAGE = Path(__file__).parents[2] / "docs" / "invariants.md"


def test_page_is_current(capsys):
    assert main(["list", "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert PAGE.read_text("utf-8") == printed, "write it anew with `make docs-invariants`"


@pytest.mark.parametrize("entry", [entry for entry in catalogue() if entry.level == "must"], ids=lambda entry: entry.id)
def test_every_must_is_judged_and_its_judge_is_tested(entry):
    about = related(entry)
    assert about.checkers, f"no checker names {entry.id}"
    assert about.mutants, f"no mutant breaks {entry.id}"
