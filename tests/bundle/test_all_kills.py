"""A kill matrix over all contracts: one page, a bundle, and every kill hunted again."""

from __future__ import annotations

import json
import re

import pytest

from vmm_conformance.cli import main
from vmm_conformance.contracts import CONTRACTS
from vmm_conformance.related import all_mutants
from vmm_conformance.reporting.kill_table import as_data
from vmm_conformance.running.kills import kill_matrix

EACH = 2


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    """The file, and the variants in it: the first few of every contract, and those that throw dice."""
    chosen = [m for name in CONTRACTS for m in [each for each in all_mutants() if each.contract == name][:EACH]]
    chosen += [mutant for mutant in all_mutants() if not mutant.repeatable]
    file = tmp_path_factory.mktemp("kills") / "kills.json"
    file.write_text(json.dumps(as_data(kill_matrix(chosen, seeds=(0,), budget="ci"), "ci")), "utf-8")
    return file, chosen


def test_every_contract_is_in_it_and_all_are_killed(matrix):
    file, chosen = matrix
    data = json.loads(file.read_text("utf-8"))
    assert {kill["contract"] for kill in data["kills"]} == set(CONTRACTS)
    assert data["killed"] == data["of"] == len(chosen)
    assert sum(not mutant.repeatable for mutant in chosen) == 3


def test_the_page_names_every_variant_and_what_it_breaks(matrix, tmp_path):
    pytest.importorskip("jinja2")
    file, chosen = matrix
    assert main(["report", str(file), "-o", str(tmp_path / "kills.html")]) == 0
    page = re.sub(r"<(style|script)\b.*?</\1>", "", (tmp_path / "kills.html").read_text("utf-8"), flags=re.DOTALL)
    for mutant in chosen:
        assert mutant.id in page
        assert mutant.breaks[0] in page
    assert f"{len(chosen)} of {len(chosen)}" in page


def test_its_bundle_is_verified_kill_by_kill(matrix, tmp_path, capsys):
    file, chosen = matrix
    bundle = tmp_path / "all.vmm.zip"
    assert main(["bundle", str(file), "-o", str(bundle)]) == 0
    assert main(["verify", str(bundle)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"{bundle}: verified: {len(chosen) + 2} same"
    for mutant in chosen:
        assert any(line.startswith(f"{mutant.id}, seed 0: same: killed again") for line in printed)
