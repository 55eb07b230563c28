"""Rules on what the execution table says: which slot is where (STEP-81 to 84, 99 to 102, SHADOW-103 to 119)."""

from __future__ import annotations

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.step_facts import Facts, Place, Step, Track
from vmm_conformance.checkers.step_plan import OPTIMISED_PLATFORM
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event


def check_layout(facts: Facts, judge: Judge) -> None:
    """Every execution's table against the plan and against the first execution's."""
    for step in facts.steps:
        if not step.executes:
            continue
        _gates(step, judge)
        if len(step.table) != len(step.buffers):
            judge.expect(
                "STEP-83", step.executes[0], False, "the execution table has the wrong number of entries",
                expected=f"{len(step.buffers)} entries", actual=f"{len(step.table)} entries",
            )  # fmt: skip
            continue
        _originals(step, judge)
        if step.track.plan.optimised:
            _selected(step, judge)
            _stable(step, judge)
            if not step.frozen_before:
                _first_layout(step, facts, judge)
    _reservations(facts, judge)
    _separate(facts, judge)


def _gates(step: Step, judge: Judge) -> None:
    """With the optimisation gated off, execution gets the caller's own addresses (STEP-100)."""
    plan = step.track.plan
    if plan.optimised:
        return
    event = step.executes[0]
    calls = [call for call in step.calls if call.kind in ("reserve", "map", "unmap", "set_access", "alloc")]
    for id in ("STEP-100",) + (("STEP-162",) if not plan.vmm else ()):
        judge.expect(
            id, event, not calls, "the subject maps memory although remapping is gated off",
            expected="no driver call", actual=", ".join(call.kind for call in calls),
        )  # fmt: skip
    judge.expect(
        "STEP-100", event, step.persistent in (None, ()) or set(step.persistent) <= set(plan.constants),
        "slots are promised a fixed address although remapping is gated off",
        expected="no persistent slot but constants", actual=str(step.persistent),
    )  # fmt: skip


def _originals(step: Step, judge: Judge) -> None:
    """Slots that are not remapped keep the caller's address; sizes are logical (STEP-83, 101, 102)."""
    plan = step.track.plan
    event = step.executes[0]
    for slot, (entry, buffer) in enumerate(zip(step.table, step.buffers, strict=True)):
        if not judge.good("STEP-83", entry.size == buffer.size):
            judge.fail(
                "STEP-83", event, f"slot {slot} has the wrong size in the table",
                expected=f"logical size {buffer.size}", actual=str(entry.size), range=entry,
            )  # fmt: skip
        if slot in plan.remapped and buffer.size:
            continue
        unremapped = _why_unremapped(step.track, slot, buffer.size)
        same = entry.address == buffer.address or not buffer.size
        if not judge.good(unremapped, same):
            judge.fail(
                unremapped, event, f"slot {slot} must keep the caller's address",
                expected="the caller's own address", actual=f"another one ({step.places[slot].kind})", range=entry,
            )  # fmt: skip
    for slot in plan.constants if plan.optimised else ():
        judge.expect(
            "STEP-101", event, step.persistent is not None and slot in step.persistent,
            f"constant slot {slot} is not persistent", expected=f"{slot} among the persistent slots",
            actual=str(step.persistent),
        )  # fmt: skip


def _why_unremapped(track: Track, slot: int, size: int) -> str:
    plan = track.plan
    if not plan.optimised:
        return "STEP-100"
    if slot in plan.constants or (not size and slot in plan.remapped):
        return "STEP-101"
    return "STEP-102" if plan.traced_only and slot in plan.untraced else "STEP-83"


def _selected(step: Step, judge: Judge) -> None:
    """Each selected slot is at a fixed address of the subject's, mapped or shadowed by its class."""
    track = step.track
    event = step.executes[0]
    for slot in track.plan.remapped:
        size = step.buffers[slot].size
        if not size:
            continue
        place = step.places[slot]
        small = track.small(slot, size)
        if track.plan.traced_only or slot in track.plan.untraced:
            _fixed(judge, "STEP-102", step, slot, place)
        _fixed(judge, "STEP-83", step, slot, place)
        if place.kind in ("original", "nothing"):
            continue
        if track.plan.threshold:
            judge.expect(
                "SHADOW-103", event, (place.kind == "shadow") == small, f"slot {slot} is in the wrong class",
                expected=_class(small, track.sizes[slot], track.plan.threshold), actual=place.kind,
                range=step.table[slot],
            )  # fmt: skip
            continue
        for id in ("SHADOW-119",) if track.plan.platform == OPTIMISED_PLATFORM else ("SHADOW-119", "STEP-162"):
            judge.expect(
                id, event, place.kind != "shadow", f"slot {slot} is shadowed with no threshold in force",
                expected="no shadow", actual="a shadow", range=step.table[slot],
            )  # fmt: skip


def _class(small: bool, size: int, threshold: int) -> str:
    sign = "<=" if small else ">"
    return f"{'shadow' if small else 'mapped'}, since {size} {sign} {threshold}"


def _fixed(judge: Judge, id: str, step: Step, slot: int, place: Place) -> None:
    if not judge.good(id, place.kind not in ("original", "nothing")):
        judge.fail(
            id, step.executes[0], f"command-buffer slot {slot} has no address of the executor's own",
            expected="mapped at a fixed address, or shadowed", actual=place.kind, range=step.table[slot],
        )  # fmt: skip


def _stable(step: Step, judge: Judge) -> None:
    """Addresses never change from the first execution on (STEP-84, SHADOW-106, SHADOW-114)."""
    track = step.track
    event = step.executes[0]
    promised = set(step.persistent or ())
    for slot in sorted(promised & set(range(len(step.table)))):
        address = step.table[slot].address
        if slot not in track.promised:
            track.promised[slot] = address
            continue
        judge.expect(
            "STEP-84", event, address == track.promised[slot], f"persistent slot {slot} has moved",
            expected="the address it had when it was first promised", actual="another one", range=step.table[slot],
        )  # fmt: skip
    for slot in track.plan.remapped:
        if not track.sizes[slot] or not step.buffers[slot].size:
            continue
        now, then = step.table[slot], track.table[slot]
        details = {
            "expected": "the address of the first execution",
            "actual": f"moved by {now.address - then.address:+d} bytes",
            "range": now,
        }
        same = now.address == then.address
        if step.frozen_before:
            judge.expect("STEP-84", event, same, f"slot {slot} has moved under a live capture", **details)
            if track.small(slot, step.buffers[slot].size):
                judge.expect("SHADOW-106", event, same, f"the shadow of slot {slot} has moved", **details)
                if step.buffers[slot].size < track.sizes[slot]:
                    good = same and now.size == step.buffers[slot].size
                    judge.expect("SHADOW-114", event, good, f"slot {slot} shrank and its shadow changed", **details)
        judge.expect(
            "STEP-84", event, slot in promised, f"slot {slot} is not among the persistent slots",
            expected="every selected slot is persistent", actual=str(step.persistent),
        )  # fmt: skip


def _first_layout(step: Step, facts: Facts, judge: Judge) -> None:
    """Mapped slots lie in ascending order at cumulative rounded sizes (STEP-82, SHADOW-104, 105, 107)."""
    track = step.track
    plan = track.plan
    event = step.executes[0]
    live = [slot for slot in plan.remapped if step.buffers[slot].size]
    mapped = [slot for slot in live if not plan.is_small(step.buffers[slot].size)]
    small = [slot for slot in live if plan.is_small(step.buffers[slot].size)]
    if mapped:
        base = step.table[mapped[0]].address
        offset = 0
        for slot in mapped:
            at = step.table[slot].address - base
            for id in ("STEP-82",) + (("SHADOW-104",) if small else ()):
                judge.expect(
                    id, event, at == offset, f"slot {slot} is not where the layout puts it",
                    expected=f"offset {offset}", actual=f"offset {at}", range=step.table[slot],
                )  # fmt: skip
            offset += plan.rounded(step.buffers[slot].size)
        _reserved(step, mapped[0], offset, bool(small), judge)
    elif small:
        reserved = [call for call in step.calls if call.kind in ("reserve", "map")]
        judge.expect(
            "SHADOW-105", event, not reserved, "an executable with small slots alone reserves or maps",
            expected="no reserve, no map", actual=", ".join(call.kind for call in reserved),
        )  # fmt: skip
    for slot in small:
        memory = step.places[slot].memory
        if step.places[slot].kind == "shadow" and memory is not None:
            wanted = facts.spaces[track.executable][slot]
            judge.expect(
                "SHADOW-107", event, memory.space == wanted, f"the shadow of slot {slot} is in the wrong memory space",
                expected=f"space {wanted}", actual=f"space {memory.space}", range=step.table[slot],
            )  # fmt: skip


def _reserved(step: Step, slot: int, total: int, small: bool, judge: Judge) -> None:
    reservation = step.places[slot].reservation
    if reservation is None:
        return
    for id in ("STEP-82",) + (("SHADOW-104",) if small else ()):
        judge.expect(
            id, step.executes[0], reservation.size == total, "the reservation is not the sum of the mapped slots",
            expected=f"{total} bytes", actual=f"{reservation.size} bytes",
            range=Range(reservation.address, reservation.size),
        )  # fmt: skip


def _reservations(facts: Facts, judge: Judge) -> None:
    """One reservation per executable and device, made once (STEP-81)."""
    for step in facts.steps:
        if not step.track.plan.optimised or not step.frozen_before or not step.executed:
            continue
        reserves = [call for call in step.calls if call.kind == "reserve" and not call.status]
        moved = [
            slot
            for slot, (now, then) in enumerate(zip(step.places, step.track.places, strict=False))
            if now.kind == then.kind == "mapped" and now.reservation is not then.reservation
        ]
        judge.expect(
            "STEP-81", step.executes[0], not reserves and not moved, "the address range is not the first one any more",
            expected="one reservation, made at the first step",
            actual=f"{len(reserves)} more reserved; slots {moved} in another range",
        )  # fmt: skip


def _separate(facts: Facts, judge: Judge) -> None:
    """Executables and devices share no address range and no shadow (STEP-99)."""
    tracks = [track for track in facts.tracks.values() if track.frozen and track.plan.optimised]
    for number, track in enumerate(tracks):
        for other in tracks[:number]:
            mine, theirs = (_own_ranges(t) for t in (track, other))
            shared = [a for a in mine for b in theirs if a.address < b.end and b.address < a.end]
            event, before = (_first_execution(facts, t) for t in (track, other))
            over = _over(other, event) or _over(track, before)  # addresses may come back
            judge.expect(
                "STEP-99", event, not shared or over,
                f"executable {track.executable} on device {track.device} shares addresses with "
                f"executable {other.executable} on device {other.device}",
                expected="ranges of its own", actual="shared ranges", range=shared[0] if shared else None,
            )  # fmt: skip


def _first_execution(facts: Facts, track: Track) -> Event:
    return next(step.executes[0] for step in facts.steps if step.track is track and step.executed)


def _over(track: Track, event: Event) -> bool:
    return track.closed_at is not None and track.closed_at < event.seq


def _own_ranges(track: Track) -> list[Range]:
    return [
        entry
        for slot, (entry, place) in enumerate(zip(track.table, track.places, strict=True))
        if place.kind in ("mapped", "shadow") and slot in track.plan.remapped and entry.size
    ]
