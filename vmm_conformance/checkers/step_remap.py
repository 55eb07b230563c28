"""Rules on what a step does to the mapping: what is remapped, and when nothing may happen (STEP-85 to 97, 159)."""

from __future__ import annotations

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.step_facts import SYNCS, Facts, Step
from vmm_conformance.checkers.step_plan import OPTIMISED_PLATFORM
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event

QUIET = SYNCS | {"reserve", "create", "map", "unmap", "set_access", "release", "free", "alloc", "address_free"}
"""Calls that a step with nothing moved must not make."""


def check_remap(facts: Facts, judge: Judge) -> None:
    """Each step's mapping calls against what had moved."""
    # the last call that was made to fail: behind it a subject may look again at what it has
    struck = -1
    for step in facts.steps:
        if not step.track.plan.optimised:
            continue
        if step.executed and len(step.table) == len(step.buffers):
            _shows(step, judge)
            if step.frozen_before:
                suspended = step.previous is not None and struck > step.previous.begun.seq
                _steady(step, judge, suspended=suspended)
                _only_moved(step, judge, suspended=suspended)
                _everything(step, judge)
        struck = max([struck, *(call.seq for call in step.injected)])
        if step.first and not step.injected:
            _first(step, judge)
        _inside(step, judge)


def _shows(step: Step, judge: Judge) -> None:
    """At execution each mapped slot shows its buffer's memory, with rights."""
    for slot in step.track.plan.remapped:
        buffer, place = step.buffers[slot], step.places[slot]
        if not buffer.size or place.kind in ("shadow", "original"):
            continue
        shown = place.memory is not None and place.memory.handle == buffer.handle
        good = shown and place.rights == 3 and place.covered
        for id in _identity_rules(step, slot):
            if not judge.good(id, good):
                judge.fail(
                    id, step.executes[0], _wrong(slot, shown, place.rights),
                    expected=f"the memory of allocation {buffer.allocation}, readable and writable",
                    actual="other memory" if place.memory and not shown else "no usable mapping",
                    range=step.table[slot],
                )  # fmt: skip


def _wrong(slot: int, shown: bool, rights: int) -> str:
    if not shown:
        return f"execution reaches other memory than the caller's through slot {slot}"
    return f"slot {slot} shows the caller's memory, but not whole or without rights ({rights})"


def _identity_rules(step: Step, slot: int) -> list[str]:
    """The invariants that this slot of this step puts to the test."""
    rules = ["STEP-86"]
    previous = step.previous
    if previous is None:
        return rules
    buffer = step.buffers[slot]
    before = previous.buffers[slot]
    if before.address == buffer.address and before.allocation != buffer.allocation:
        rules.append("STEP-87")
    if _failed_since(step, previous):
        rules.append("STEP-93")
    if _live(step) != _live(previous):
        rules.append("STEP-94")
    return rules


def _live(step: Step) -> list[int]:
    return [slot for slot in step.track.plan.remapped if step.buffers[slot].size]


def _failed_since(step: Step, previous: Step) -> bool:
    return step.failed_before > previous.begun.seq


def _steady(step: Step, judge: Judge, *, suspended: bool) -> None:
    """Nothing moved, nothing called (STEP-85)."""
    previous = step.previous
    same_stream = previous is not None and previous.stream == step.stream
    if step.moved or suspended or step.injected or not same_stream or not step.track.plan.skips:
        return
    calls = [call for call in step.calls if call.kind in QUIET]
    judge.expect(
        "STEP-85", calls[0] if calls else step.executes[0], not calls,
        "nothing has moved since the last step, and yet the driver is called",
        expected="no mapping call and no host synchronisation", actual=", ".join(call.kind for call in calls),
    )  # fmt: skip


def _only_moved(step: Step, judge: Judge, *, suspended: bool) -> None:
    """Unmaps and maps touch moved slots alone (STEP-86)."""
    if suspended or step.injected or not step.track.plan.skips:
        return
    for call in _mapping_calls(step):
        touched = _slots_in(step, _area(call))
        still = [slot for slot in touched if slot not in step.moved and step.buffers[slot].size]
        judge.expect(
            "STEP-86", call, not still, f"{call.kind} touches slots {still}, which have not moved",
            expected=f"only slots {sorted(step.moved)}", actual=f"slots {touched}",
            range=_area(call),
        )  # fmt: skip


def _mapping_calls(step: Step) -> list[Event]:
    return [call for call in step.calls if call.kind in ("map", "unmap") and not call.status]


def _area(call: Event) -> Range:
    """The addresses that a map or an unmap names."""
    return Range(call["address"], call["size"])


def _slots_in(step: Step, area: Range) -> list[int]:
    track = step.track
    return [
        slot
        for slot in track.plan.remapped
        if track.sizes[slot]
        and not track.plan.is_small(track.sizes[slot])
        and track.table[slot].address < area.end
        and area.address < track.table[slot].address + track.plan.rounded(track.sizes[slot])
    ]


def _everything(step: Step, judge: Judge) -> None:
    """Without skip-remap every slot is unmapped and mapped again, every step (STEP-91, 162)."""
    plan = step.track.plan
    if plan.skips or step.injected:
        return
    maps = [call for call in _mapping_calls(step) if call.kind == "map"]
    mapped = {slot for call in maps for slot in _slots_in(step, _area(call))}
    due = {s for s in _live(step) if not step.track.small(s, step.buffers[s].size)}
    if not due:
        return
    for id in ("STEP-91",) + (("STEP-162",) if plan.platform != OPTIMISED_PLATFORM else ()):
        judge.expect(
            id, step.executes[0], due <= mapped, "slots were left mapped although skip-remap is off",
            expected=f"slots {sorted(due)} mapped anew", actual=f"slots {sorted(mapped & due)} mapped anew",
        )  # fmt: skip


def _first(step: Step, judge: Judge) -> None:
    """The very first step has nothing to wait for (STEP-91)."""
    syncs = [call for call in step.calls if call.kind in SYNCS]
    judge.expect(
        "STEP-91", syncs[0] if syncs else step.begun, not syncs, "the first step waits for work that cannot exist",
        expected="no synchronisation", actual=", ".join(call.kind for call in syncs),
    )  # fmt: skip


def _inside(step: Step, judge: Judge) -> None:
    """No mapping reaches beyond its slot or the reservation (STEP-97, STEP-159)."""
    track = step.track
    if not track.frozen or not (step.frozen_before or step.executed):  # nothing was laid out for good
        return
    for call in step.calls:
        if call.kind != "map":
            continue
        area = _area(call)
        over = _beyond(step, area)
        wide = [s for s in _live(step) if step.buffers[s].committed > track.plan.rounded(track.sizes[s])]
        ids = ["STEP-97"] if step.frozen_before else []
        for id in ids + (["STEP-159"] if wide else []):
            judge.expect(
                id, call, over is None, f"a mapping of {area.size} bytes reaches beyond slot {over}",
                expected="at most the slot's rounded size", actual=f"{area.size} bytes", range=area,
            )  # fmt: skip


def _beyond(step: Step, area: Range) -> int | None:
    """The slot whose end a mapping that begins in it crosses."""
    track = step.track
    for slot in _slots_in(step, Range(area.address, 1)):
        if area.end > track.table[slot].address + track.plan.rounded(track.sizes[slot]):
            return slot
    return None
