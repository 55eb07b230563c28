"""How scenarios of the contract ``skip-remap`` are written down.

Slots are given by their first sizes in bytes; where nothing else is said, one command names them all and nothing is
small. `T` is the copy threshold of the scenarios with shadows.
"""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import Use
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.skip_remap import (
    CommandPlan,
    Configuration,
    ExecutablePlan,
    Operation,
    Outcome,
    SlotPlan,
    Step,
)

G: Final = 4096
T: Final = 256
STEP: Final = Step()
AFTER: Final = Step(outcome=Outcome.RAISE_AFTER)
BEFORE: Final = Step(outcome=Outcome.RAISE_BEFORE)
SHADOW: Final = frozenset({*range(103, 120), 160, 161})
"""The numbers of the area SHADOW; all others here are STEP's."""


def plan(*slots: int | SlotPlan, named: tuple[CommandPlan, ...] = (), **settings: Any) -> ExecutablePlan:
    """An executable; ``named`` are its commands, one that names every slot if there are none."""
    plans = tuple(slot if isinstance(slot, SlotPlan) else SlotPlan(slot) for slot in slots)
    return ExecutablePlan(plans, named or (CommandPlan(tuple(range(len(plans)))),), **settings)


def shadowed(*slots: int | SlotPlan, **settings: Any) -> ExecutablePlan:
    """An executable whose slots of up to `T` bytes are small."""
    return plan(*slots, copy_threshold=T, **settings)


def reads(*sizes: int) -> tuple[SlotPlan, ...]:
    """Slots that execution only reads, so that steps on several streams need no order for their sake."""
    return tuple(SlotPlan(size, use=Use.READ) for size in sizes)


def scenario(
    name: str,
    planned: ExecutablePlan | Configuration,
    operations: tuple[Operation, ...],
    exercises: str,
    note: str,
    **configuration: Any,
) -> Scenario:
    """A scenario of one executable, or of a whole configuration. ``exercises`` are numbers, see `ids`."""
    whole = planned if isinstance(planned, Configuration) else Configuration((planned,), **configuration)
    return Scenario(f"skip-remap-{name}", Program("skip-remap", whole, operations), ids(exercises), note)


def ids(numbers: str) -> tuple[str, ...]:
    """The invariants with these numbers, in the order given."""
    return tuple(f"{'SHADOW' if number in SHADOW else 'STEP'}-{number}" for number in map(int, numbers.split()))
