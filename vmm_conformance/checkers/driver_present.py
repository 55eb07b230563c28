"""The rules of a driver where nothing is remembered of the past, and no answer is believed to be right.

The past decides which invariant a call that is legal puts to the test, not whether it is legal.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_rules import Rules
from vmm_conformance.checkers.driver_trails import Past, Trails
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.state import Memory, State

RULED: Final = frozenset(
    {"reserve", "address_free", "create", "retain", "release", "map", "unmap", "set_access", "address_range"}
)
"""The calls that can be judged so; of rights that went nothing is known."""


def rules_of_the_present(facts: Facts, state: State) -> Rules:
    """Rules on ``state`` alone."""
    return Rules(facts, state, _NoPast(state, Judge(), facts.minimum))


class _NoPast(Trails):
    """Nobody tells it of any call, so that it knows of none; what is asked about is not kept either."""

    def past(self, memory: Memory) -> Past:
        return Past()
