"""Every invariant of the contract has histories by hand: a right one, a wrong one, and one that does not test it."""

from __future__ import annotations

from types import ModuleType

import pytest
import test_step_contents
import test_step_layout
import test_step_order
import test_step_outcome
import test_step_remap
import test_step_series

from vmm_conformance.catalogue import catalogue

MODULES = (test_step_layout, test_step_remap, test_step_outcome, test_step_order, test_step_contents, test_step_series)
INVARIANTS = {entry.id for entry in catalogue().of("skip-remap")}


def told(module: ModuleType, kind: str) -> set[str]:
    return {id for row in getattr(module, kind).rows for id in row.values[0].ids}


@pytest.mark.parametrize("kind", ["RIGHT", "WRONG", "VACUOUS"])
def test_every_invariant_has_such_a_history(kind: str) -> None:
    assert INVARIANTS - {id for module in MODULES for id in told(module, kind)} == set()
