"""Scenarios of the contract ``skip-remap`` for small slots and their shadows (S17)."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Use
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.skip_remap import (
    Bind,
    CommandPlan,
    Damage,
    Disturb,
    Fail,
    Move,
    Outcome,
    Recreate,
    Refill,
    Resize,
    SlotPlan,
    Step,
)
from vmm_suites.scenarios.steps import STEP, G, T, plan, reads, scenario, shadowed

USES: Final = (SlotPlan(64, use=Use.READ), SlotPlan(64, use=Use.WRITE), SlotPlan(64), SlotPlan(G))
SHADOWS: Final[tuple[Scenario, ...]] = (
    scenario(
        "read-written-both", shadowed(*USES), (STEP, Refill(2), STEP, Refill(0), Move(1), STEP),
        "84 103 104 106 107 109 110 111 112 117 160",
        "small slots that are read, written, and both, in front of a mapped one",
    ),
    scenario(
        "read-written-uncaptured", shadowed(*USES), (STEP, Refill(2), Refill(0), STEP), "110 111 112 117 160",
        "the same, with an execution that takes all addresses from the table", capture=False,
    ),
    scenario(
        "between-mapped", shadowed(G, 64, 2 * G, T, G), (STEP, STEP, Move(2), STEP), "82 84 86 104",
        "small slots between mapped ones, which touch all the same",
    ),
    scenario(
        "around-the-threshold", shadowed(T - 1, T, T + 1, 1), (STEP, STEP), "103 106 107",
        "sizes just below, at and above the copy threshold",
    ),
    scenario(
        "all-small", shadowed(1, 8, 64, T), (STEP, STEP, Move(0), STEP), "105 106 109 111 116 164",
        "nothing to map: no reservation is made, and steps succeed",
    ),
    scenario(
        "memory-spaces", shadowed(SlotPlan(64, 1), SlotPlan(64, 5), SlotPlan(64), SlotPlan(G, 5)), (STEP, STEP),
        "107 111",
        "small slots of three memory spaces",
    ),
    scenario(
        "hundred-steps", shadowed(64, G), (STEP,) * 100, "85 106 110 111 116 164",
        "a hundred steps, then close: one shadow, one address, nothing left",
    ),
    scenario(
        "input-replaced-at-once", shadowed(*reads(64, G)), (STEP, Recreate(0), STEP, Recreate(0), Refill(0), STEP),
        "109 110",
        "a small input is freed as soon as its owner may, and its address comes back with other bytes",
    ),
    scenario(
        "small-grown", shadowed(64, 64, G), (STEP, Resize(1, 65), STEP, Resize(1, 64), STEP), "106 113 116",
        "a small slot grows by one byte while its shadow is in use: refused, and the shadow stays",
    ),
    scenario(
        "small-shrunk", shadowed(64, G), (STEP, Resize(0, 40), STEP, Resize(0, 0), STEP, Resize(0, 64), STEP),
        "101 106 112 114",
        "a small slot shrinks, goes, and comes back: its shadow stays, and copies follow its size",
    ),
    scenario(
        "shadow-refused", shadowed(64, G), (Fail("alloc", 1), STEP, STEP), "115 164",
        "the only shadow is not to be had at the first step, and is at the second",
    ),
    scenario(
        "second-shadow-refused", shadowed(64, 48, G), (Fail("alloc", 2), STEP, STEP, STEP), "106 115 116 164",
        "the second shadow is not to be had: the first one is given back, and the next step has both",
    ),
    scenario(
        "read-only-input", shadowed(SlotPlan(64, use=Use.READ, read_only=True), SlotPlan(64), G), (STEP, STEP),
        "111 117 160",
        "the caller may not write a small input: nothing is copied back to it",
    ),
    scenario(
        "read-only-though-declared-written", shadowed(SlotPlan(64, read_only=True), G), (STEP, STEP), "160",
        "a small slot is declared as written, and bound to a buffer that may only be read",
    ),
    scenario(
        "rights-unknown", shadowed(SlotPlan(64, read_only=True), G), (STEP, Fail("get_access"), STEP, STEP), "160",
        "the driver refuses to say what may be written: the step fails before anything is, and the next succeeds",
    ),
    scenario(
        "small-pair-shares-buffer", shadowed(64, SlotPlan(64, use=Use.WRITE), 64, G),
        (STEP, Bind(1, 0), STEP, STEP, Bind(2, 0), STEP),
        "109 110 111 161",
        "two small slots are bound to one buffer, then three: the last write stays",
    ),
    scenario(
        "reader-and-writer-share-buffer", shadowed(SlotPlan(64, use=Use.WRITE), SlotPlan(64, use=Use.READ), G),
        (STEP, Bind(1, 0), STEP, STEP),
        "110 161",
        "a small slot that is only read shares the buffer of one that is written before it",
    ),
    scenario(
        "mapped-and-small-share-buffer", shadowed(64, G), (STEP, Bind(1, 0), STEP, STEP), "84 161",
        "a mapped slot is bound to the buffer of a small one, and writes it directly",
    ),
    scenario(
        "null-shares-buffer-with-small", shadowed(64, 64, named=(CommandPlan((0,)),)),
        (Bind(0, 1), Disturb(1, Damage.NULL), STEP, STEP), "161",
        "a slot that no command names comes without an address; its buffer is a small slot's, which alone writes it",
    ),
    scenario(
        "copy-fails-behind-failure", shadowed(64),
        (Fail("copy", 2), Step(outcome=Outcome.RAISE_AFTER, probe=True), STEP), "98 106",
        "a step fails when it has executed, and so does the copy-in of one that waited for it",
    ),
    scenario(
        "copies-fail", shadowed(64, 64, G),
        (STEP, Fail("copy", 2), Move(2), STEP, STEP, Fail("copy", 4), STEP, Move(2), STEP), "106 116 166",
        "a copy in fails, later a copy back: the step fails, and work goes on",
    ),
    scenario(
        "no-such-slot", plan(64, G, named=(CommandPlan((0, 1)), CommandPlan((1, 5)))), (STEP, STEP), "108",
        "a command names a slot that the executable has not",
    ),
    scenario(
        "no-such-slot-and-small", shadowed(64, named=(CommandPlan((1,)), CommandPlan((0,)))), (STEP, STEP), "108",
        "the same with nothing but a small slot; no shadow is made for the other",
    ),
)  # fmt: skip
