"""Two calls at once: what a thread waits for is taken back, or away, by another."""

from __future__ import annotations

from typing import Final

from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.turns import AT_WAIT
from vmm_conformance.programs.vmm_allocator import (
    Allocate,
    AllocateMapped,
    Call,
    Configuration,
    Deallocate,
    Drain,
    Fail,
    Look,
    Map,
    Synchronize,
    Together,
    Unmap,
    Use,
)
from vmm_suites.scenarios.vmm_allocator_parts import PLAIN, SHORT, G, Operations, scenario

PAIR: Final = Configuration(devices=2)


def _together(
    name: str, before: Operations, first: Call, second: Call, turn: int, note: str, configuration: Configuration = PLAIN
) -> Scenario:
    """Two calls at once, the second while the first waits, or has just begun; all is used and looked up afterwards."""
    after = (Look(), Use(0), Use(-1), Use(0, True), Use(-1, True), Synchronize(), Look(), Drain())
    operations = (*before, Together(first, second, (turn,)), *after)
    return scenario(f"together-{name}", configuration, operations, (80,), note)


BETWEEN_WAITS: Final = 5
"""The turn at which a map that has two stale aliases in its way has waited for one, and ended it."""
STALE_ALIAS: Final[Operations] = (Allocate(G), Allocate(G), Map(0), Unmap(0))
STALE_BLOCK: Final[Operations] = (Allocate(G), Deallocate(0))

SCENARIOS: Final[tuple[Scenario, ...]] = (
    _together(
        "alias-taken-back", STALE_ALIAS, Map(1), Map(0), AT_WAIT,
        "while a map waits for a stale alias, its source takes it back: the map is refused",
    ),
    _together(
        "alias-taken-back-at-slice", STALE_ALIAS, AllocateMapped(), Map(0), AT_WAIT,
        "while an allocate at a slice waits for a stale alias, its source takes it back",
    ),
    _together(
        "source-freed", (Allocate(G), Map(0), Unmap(0), Allocate(G)), Map(0, 0, 2), Deallocate(0), AT_WAIT,
        "while a map waits for its source's stale alias, the source is deallocated",
    ),
    _together(
        "new-source-freed", STALE_ALIAS, Map(1), Deallocate(1), AT_WAIT,
        "while a map waits for its slice, its source is deallocated",
    ),
    _together(
        "new-source-shown-elsewhere", STALE_ALIAS, Map(1), Map(1, 0, 4), AT_WAIT,
        "while a map waits for its slice, its source gets another alias",
    ),
    _together(
        "slice-taken-between-two-waits", (Allocate(G), Allocate(G), Map(1, 0, 4), Unmap(0), Map(0), Unmap(0)),
        Map(1), Map(0), BETWEEN_WAITS,
        "a map has to wait twice; when it has ended the stale alias in its way, its source maps itself there again",
    ),
    _together(
        "one-slice-for-two", (Allocate(G), Allocate(G)), Map(0), Map(1), 1, "two sources want the same free slice",
    ),
    _together(
        "one-slice-for-two-allocations", (Allocate(G),), AllocateMapped(), AllocateMapped(), 1,
        "two allocations want the same free slice",
    ),
    _together(
        "budget-for-one", (Allocate(3 * G),), Allocate(4 * G), Allocate(5 * G), 0,
        "two allocations want what is left of the budget", SHORT,
    ),
    _together(
        "freed-while-short", (Allocate(2 * G), Allocate(3 * G), Deallocate(0), Allocate(1)), Allocate(1), Deallocate(3),
        AT_WAIT, "while an allocate waits for memory, what it would have taken back is deallocated",
        Configuration(budget=6 * G),
    ),
    _together(
        "alias-left-by-failure", (Fail("unmap"), Allocate(1), Map(0, 0, 7), Unmap(0)), Map(0, 0, 7), Map(0), 0,
        "an alias is left half ended by a map that fails, and another map wants its slice",
    ),
    _together(
        "slice-taken", (*STALE_ALIAS, Allocate(G)), Map(1), Map(2), AT_WAIT,
        "two sources want the slice of a stale alias; one gets it",
    ),
    _together(
        "block-taken-back-from-reclaim", STALE_BLOCK, Allocate(8 * G), Allocate(G), AT_WAIT,
        "while reclaim waits for a stale allocation, it is taken back", SHORT,
    ),
    _together(
        "block-taken-back-from-synchronize", STALE_BLOCK, Synchronize(), Allocate(G), AT_WAIT,
        "while synchronize waits for a stale allocation, it is taken back",
    ),
    _together(
        "alias-taken-back-from-synchronize", STALE_ALIAS, Synchronize(), Map(0), AT_WAIT,
        "while synchronize waits for a stale alias, its source takes it back",
    ),
    _together(
        "freed-again-meanwhile", (Allocate(G), AllocateMapped(0, 4), Deallocate(1)), Allocate(8 * G),
        AllocateMapped(0, 4), AT_WAIT, "while reclaim waits, what it chose at a slice is taken back", SHORT,
    ),
    _together(
        "one-block-for-two", STALE_BLOCK, Allocate(G), Allocate(G), 0, "two threads want one stale allocation",
    ),
    _together(
        "freed-by-two", (Allocate(G), Allocate(G)), Deallocate(0), Deallocate(0), 0, "two threads deallocate one block",
    ),
    _together(
        "unmapped-by-two", (Allocate(G), Map(0)), Unmap(0), Unmap(0), 0, "two threads unmap one alias",
    ),
    _together(
        "other-work-goes-on", STALE_ALIAS, Map(1), Allocate(2 * G), AT_WAIT,
        "while a map waits, an allocation of the device has nothing to wait for",
    ),
    scenario(
        "together-on-two-devices", PAIR,
        (
            *(Allocate(G), Allocate(G), Map(0), Unmap(0), Together(Map(1), Allocate(G, 1))),
            *(Allocate(2 * G), Deallocate(-1), Together(Synchronize(), Allocate(2 * G, 1), (1,))),
            *(Together(Allocate(3 * G), Allocate(3 * G, 1), (1, 1, 1)), Use(0), Use(-1)),
        ), (77,), "a device never waits for another",
    ),
    scenario(
        "together-slice-left-by-failure", Configuration(budget=16 * G),
        (
            Allocate(2 * G), AllocateMapped(1, 1), Allocate(1), Allocate(2 * G), Fail("unmap"), Deallocate(-3),
            Together(AllocateMapped(1, granules=2), Synchronize(), (0,)),
            Allocate(5 * G), Deallocate(-1), Deallocate(-1), Allocate(5 * G, space=1),
        ),
        (80,), "an allocation is left half ended where another is mapped, and that is reclaimed later",
    ),
)  # fmt: skip
