"""Directed scenarios: programs that were written for a purpose, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vmm_conformance.programs.program import Program

UPSTREAM: Final = "upstream-"
"""Ids of scenarios that retell a test of upstream's own begin so."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program and what it is for.

    ``exercises`` names the invariants that it puts to the test; a run in which one of them has no
    witness has gone wrong. ``note`` says in a sentence what happens in it.
    """

    id: str
    program: Program
    exercises: tuple[str, ...]
    note: str
