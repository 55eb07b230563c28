"""Rules on how a step ends: what must be refused, and what must succeed.

STEP-92, 95 to 97, 159 and 166, SHADOW-108, 113 and 115.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.step_facts import FREEING, Facts, Step
from vmm_conformance.contracts import Code, Status

MAKING = frozenset({"reserve", "create", "retain", "map", "alloc", "event_create", "stream_create"})
"""Calls that leave something to be given back."""


class Refusal(NamedTuple):
    """Why a step must be refused: the invariant, the reason, and numbers the message must name."""

    invariant: str
    reason: str
    names: tuple[int, ...]
    internal: bool


def check_outcomes(facts: Facts, judge: Judge, *, partial_map: bool) -> None:
    """Each step's outcome against what the specification demands of it."""
    for step in facts.steps:
        if step.closed or step.ended is None:
            continue
        due = refusals(step, partial_map)
        if due:
            _refused(step, due, judge)
        elif step.injected:
            _injected(step, judge)
        else:
            _succeeds(step, judge)
        if not step.frozen_before and not step.executed and step.track.plan.optimised:
            _nothing_left(step, judge)


def refusals(step: Step, partial_map: bool) -> list[Refusal]:
    """The reasons for which a step must be refused before anything is executed, the first one to be named."""
    plan = step.track.plan
    found = [
        Refusal("SHADOW-108", f"slot {slot} is named by a command and does not exist", (slot,), True)
        for slot in plan.out_of_range
    ]
    for slot in plan.remapped:
        buffer = step.buffers[slot]
        small = step.track.small(slot, buffer.size)
        if buffer.size and (not buffer.address or (buffer.handle is None and not small)):
            found.append(Refusal("STEP-95", f"slot {slot} has no memory", (slot,), True))
    for slot in plan.remapped:
        grown = _grown(step, slot) or _too_wide(step, slot, partial_map)
        if grown:
            found.append(grown)
    return found


def _handleless(step: Step) -> bool:
    """Whether a small slot's source has no handle: a shadow needs none, and yet it may be refused."""
    return any(b.size and b.handle is None for b in (step.buffers[slot] for slot in step.track.plan.remapped))


def _grown(step: Step, slot: int) -> Refusal | None:
    if not step.frozen_before:
        return None
    plan, size, frozen = step.track.plan, step.buffers[slot].size, step.track.sizes[slot]
    if plan.is_small(frozen):
        if size > frozen:
            return Refusal("SHADOW-113", f"small slot {slot} grew from {frozen} to {size} bytes", (slot, size), True)
    elif size > plan.rounded(frozen):
        return Refusal("STEP-97", f"slot {slot} outgrew its {plan.rounded(frozen)} bytes: {size}", (slot, size), False)
    return None


def _too_wide(step: Step, slot: int, partial_map: bool) -> Refusal | None:
    """A source larger than its slot, on a driver that maps whole handles only (STEP-159)."""
    plan, buffer = step.track.plan, step.buffers[slot]
    size = step.track.sizes[slot] if step.frozen_before else buffer.size
    if partial_map or not buffer.size or plan.is_small(size) or buffer.committed <= plan.rounded(size):
        return None
    reason = f"slot {slot} holds {plan.rounded(size)} bytes, its source {buffer.committed}"
    return Refusal("STEP-159", reason, (plan.rounded(size), buffer.committed), False)


def _refused(step: Step, reasons: list[Refusal], judge: Judge) -> None:
    due, event = reasons[0], step.ended or step.begun
    status, message = step.outcome["status"], step.outcome["message"]
    good = status == "refused" and not step.executed
    judge.expect(
        due.invariant, event, good, f"the step must be refused before anything is executed: {due.reason}",
        expected="an error, and execute not called", actual=f"{status}, execute called {len(step.executes)} times",
    )  # fmt: skip
    if not good or step.injected or (_handleless(step) and due.invariant != "STEP-95"):
        return
    numbers = set(re.findall(r"\d+", message))
    named = any(all(str(n) in numbers for n in reason.names) for reason in reasons)
    judge.expect(
        due.invariant, event, named, "the error does not name what is wrong",
        expected=f"a message with {', '.join(map(str, due.names))}", actual=repr(message),
    )  # fmt: skip
    if due.internal and len(reasons) == 1:
        judge.expect(
            due.invariant, event, step.outcome["code"] == Code.INTERNAL, "the error has the wrong code",
            expected=Code.INTERNAL.value, actual=step.outcome["code"],
        )  # fmt: skip
    if due.invariant == "SHADOW-113":
        touched = [call for call in step.calls if call.kind in ("alloc", "free")]
        judge.expect(
            "SHADOW-113", touched[0] if touched else event, not touched, "growth of a small slice touches the shadow",
            expected="no alloc, no free", actual=", ".join(call.kind for call in touched),
        )  # fmt: skip


def _injected(step: Step, judge: Judge) -> None:
    """A driver call was made to fail in this step: it may be refused, and must not crash."""
    event = step.ended or step.begun
    crashed = step.outcome["status"] == "crashed"
    judge.expect(
        "STEP-166", event, not crashed, "the step crashed when a driver call failed",
        expected="an error of the contract", actual=f"{step.outcome['code']}: {step.outcome['message']}",
    )  # fmt: skip
    failed = step.injected[0]
    if failed.kind == "alloc" and not step.executed:
        _shadow_refused(step, judge)


def _shadow_refused(step: Step, judge: Judge) -> None:
    """SHADOW-115: the error names the slot and the size."""
    numbers = set(re.findall(r"\d+", step.outcome["message"]))
    plan = step.track.plan
    small = [slot for slot in plan.remapped if plan.is_small(step.buffers[slot].size)]
    named = any(str(slot) in numbers and str(step.buffers[slot].size) in numbers for slot in small)
    judge.expect(
        "SHADOW-115", step.ended or step.begun,
        step.outcome["status"] == "refused" and step.outcome["code"] == Code.INTERNAL and named,
        "a shadow that cannot be allocated is not reported with its slot and size",
        expected=f"{Code.INTERNAL.value} naming one of slots {small} and its size",
        actual=f"{step.outcome['status']} {step.outcome['code']}: {step.outcome['message']!r}",
    )  # fmt: skip


def _succeeds(step: Step, judge: Judge) -> None:
    """Nothing stands against this step: it executes once and passes the callback's outcome on."""
    if step.outcome["status"] == "refused" and (_really_short(step) or _handleless(step)):
        return
    event = step.ended or step.begun
    wanted = "ok" if step.wanted == "ok" or step.thread else "raised"
    good = step.outcome["status"] == wanted and len(step.executes) == 1
    for id in ["STEP-166", *_recovery_rules(step)]:
        judge.expect(
            id, event, good, _recovery_text(id),
            expected=f"{wanted}, execute called once",
            actual=f"{step.outcome['status']} {step.outcome['code']} {step.outcome['message']}".rstrip()
            + f", execute called {len(step.executes)} times",
        )  # fmt: skip


def _really_short(step: Step) -> bool:
    return any(call.status == Status.OUT_OF_MEMORY and call.result != "injected" for call in step.calls)


def _recovery_rules(step: Step) -> list[str]:
    """Which further rules this step puts to the test: on gates, and on retrying what failed before it."""
    struck, plan = step.struck_before, step.track.plan
    rules = []
    if not plan.optimised:
        rules += ["STEP-100", *(["STEP-162"] if not plan.vmm else [])]
    elif step.first and all(plan.is_small(step.buffers[slot].size) for slot in plan.remapped):
        rules.append("SHADOW-105")
    if _sizes_differ(step):
        rules.append("STEP-159")
    if "reserve" in struck:
        rules.append("STEP-96")
    if struck & {"map", "unmap", "set_access"}:
        rules.append("STEP-92")
    return rules


def _sizes_differ(step: Step) -> bool:
    """Whether the logical, rounded and committed sizes of mapped slots differ where that may show (STEP-159)."""
    plan, buffers = step.track.plan, step.buffers
    mapped = [s for s in plan.remapped if buffers[s].size and not step.track.small(s, buffers[s].size)]
    wide = any(buffers[slot].committed > plan.rounded(buffers[slot].size) for slot in mapped)
    return wide or any(buffers[slot].size % plan.granularity for slot in mapped[:-1])


def _recovery_text(id: str) -> str:
    return {
        "STEP-92": "the step after a failed remap does not succeed",
        "STEP-96": "the step after a failed reservation does not succeed",
    }.get(id, "nothing stands against this step, and yet it does not execute once and end as the callback did")


def _nothing_left(step: Step, judge: Judge) -> None:
    """A first step that fails before execution leaves nothing behind (STEP-96, SHADOW-115)."""
    failed = {call.kind for call in step.calls if call.status}
    if failed & FREEING or not any(call.kind in MAKING for call in step.calls):
        return
    judge.expect(
        "SHADOW-115" if "alloc" in failed else "STEP-96", step.ended or step.begun, not step.left,
        "a first step that failed leaves something behind", expected="nothing", actual=", ".join(step.left),
    )  # fmt: skip
