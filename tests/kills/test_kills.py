"""Exploration alone finds every known-bad subject by the invariant that it was made to break."""

from __future__ import annotations

from collections import Counter

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Mutant
from vmm_conformance.related import all_mutants
from vmm_conformance.running.kills import first_hit

MUTANTS = all_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.contract}-{mutant.id}")
def test_exploration_kills_the_mutant_by_its_own_invariant(mutant: Mutant) -> None:
    hit = first_hit(mutant, seed=0, budget="dev")
    assert hit is not None, f"nothing finds it: {mutant.note}"
    assert mutant.breaks[0] in hit.found
    assert hit.explored, f"only {hit.by} finds it: {mutant.note}"


@pytest.mark.parametrize("id", [entry.id for entry in catalogue() if entry.level == "must"])
def test_every_must_has_a_mutant_made_to_break_it(id: str) -> None:
    assert [mutant.id for mutant in MUTANTS if mutant.breaks[0] == id]


def test_mutants_break_what_the_catalogue_knows_in_their_own_contract() -> None:
    known = {entry.id: entry.contract for entry in catalogue()}
    assert [m.id for m in MUTANTS for id in m.breaks if known.get(id) != m.contract] == []


def test_mutants_are_named_once() -> None:
    assert [name for name, count in Counter(mutant.id for mutant in MUTANTS).items() if count > 1] == []
