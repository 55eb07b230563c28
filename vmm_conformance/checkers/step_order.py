"""Rules on order: waits, events, streams and threads (STEP-88 to 90, 98, 163, SHADOW-109, 116, 118)."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.step_facts import FREEING, SYNCS, Facts, Step, TakenAway
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.ordering import HOST, Race, Use
from vmm_conformance.history.state import Memory

HELD: Final = frozenset({"mapping", "reservation", "handle", "allocation", "event", "stream"})
"""All that an executor may hold."""
EXCUSED: Final = {
    **dict.fromkeys(SYNCS | {"event_query", "stream_query"}, HELD),
    "unmap": frozenset({"mapping", "reservation", "handle"}),
    "address_free": frozenset({"reservation"}),
    "release": frozenset({"handle"}),
    "free": frozenset({"allocation"}),
    "event_destroy": frozenset({"event"}),
    "stream_destroy": frozenset({"stream"}),
}
"""What may be left behind at close where a call of this kind was made to fail."""


def check_order(facts: Facts, judge: Judge) -> None:
    """Unmaps and frees against the work that uses the memory; copies against execution."""
    for taken in facts.taken:
        _taken(taken, judge)
    _unmap_witnesses(facts, judge)
    for race in facts.races:
        _race(race, facts, judge)
    _shadow_witnesses(facts, judge)


def _taken(taken: TakenAway, judge: Judge) -> None:
    hazard, use = taken.hazard, taken.hazard.use
    for id in _unordered_rules(taken):
        judge.fail(
            id, hazard.event,
            f"{hazard.event.kind} is not ordered after work that uses the memory "
            f"(operation {use.event.op}, stream {use.stream})",
            expected=f"a wait for stream {use.stream} between that work and this call",
            actual=_missing(taken), range=Range(hazard.what.address, hazard.what.size), cause=use.event.seq,
        )  # fmt: skip


def _unordered_rules(taken: TakenAway) -> list[str]:
    """The invariants that one unordered unmap or free breaks."""
    rules = [unordered_rule(taken)]
    if type(taken.hazard.what) is Memory and not taken.hazard.what.handle:
        rules = ["SHADOW-116", *(rule for rule in rules if rule != "STEP-88")]
    if taken.user is not None and not taken.user.track.plan.skips and not taken.closing:
        rules.append("STEP-91")
    return rules


def unordered_rule(taken: TakenAway) -> str:
    """Which invariant an unordered unmap breaks: it depends on why the wait did not cover the use."""
    user, use = taken.user, taken.hazard.use
    if user is None:
        return "STEP-88"
    if user.outcome.get("status") == "raised" or (user.wanted != "ok" and not user.thread):
        return "STEP-90"
    if taken.last is not None and taken.last.stream != use.stream:
        return "STEP-163"
    records = [c for c in user.calls if c.kind == "event_record" and c.args[1] == use.stream and not c.status]
    if records and records[-1].seq < use.event.seq:
        return "STEP-89"
    return "STEP-88"


def _missing(taken: TakenAway) -> str:
    use = taken.hazard.use
    return f"nothing orders {use.event.kind} {use.event.result} before {taken.hazard.event.kind}"


def _unmap_witnesses(facts: Facts, judge: Judge) -> None:
    """An unmap after a step that gave work to a stream puts the waiting rules to the test."""
    for event, step in facts.unmaps:
        users = [s for s in facts.steps if s.submitted and s.begun.seq < event.seq and s is not step]
        if step is not None:
            users = [s for s in users if s.track is step.track]
        if not users:
            continue
        judge.witness("STEP-88")
        if users[-1].ok:
            judge.witness("STEP-89")
        if users[-1].wanted == "raise-after":
            judge.witness("STEP-90")
        if len({s.stream for s in users}) > 1:
            judge.witness("STEP-163")


def _race(race: Race, facts: Facts, judge: Judge) -> None:
    first, second = race.first, race.second
    one, other = (facts.work_step.get(use.event.seq) for use in (first, second))
    subjects = SUBJECT in (first.event.who, second.event.who)
    if second.stream == HOST and second.event.who == SUBJECT:
        rule = "SHADOW-109"
    elif first.memory.who == SUBJECT and one is not other:
        rule = "SHADOW-118"
    elif subjects and first.event.op == second.event.op:
        rule = "SHADOW-109"
    else:
        return
    judge.fail(
        rule, second.event, f"{_text(second)} is not ordered after {_text(first)}",
        expected=f"an edge from stream {first.stream} to {_actor(second)}", actual="none",
        range=_range(second), cause=first.event.seq,
    )  # fmt: skip


def _actor(use: Use) -> str:
    return "the host" if use.stream == HOST else f"stream {use.stream}"


def _text(use: Use) -> str:
    verb = "writes" if use.writes else "reads"
    return f"{use.event.kind} of operation {use.event.op} on {_actor(use)} (which {verb} the same bytes)"


def _range(use: Use) -> Range:
    start = use.mapping.address if use.mapping else use.memory.address
    return Range(start + use.low, use.high - use.low)


def _shadow_witnesses(facts: Facts, judge: Judge) -> None:
    """Steps with shadows put the copy order to the test; a change of stream the order between runs."""
    last: dict[tuple[int, int], Step] = {}
    for step in facts.steps:
        if not step.submitted or not any(place.kind == "shadow" for place in step.places):
            continue
        judge.witness("SHADOW-109")
        key = step.track.executable, step.track.device
        if key in last and last[key].stream != step.stream:
            judge.witness("SHADOW-118")
        last[key] = step


def check_threads(facts: Facts, judge: Judge) -> None:
    """A second step must not get in before the first is done (STEP-98)."""
    for event, first in facts.challenges:
        second = [s for s in facts.steps if s.thread and event.seq < s.begun.seq]
        last = max((e.seq for e in _own(facts, first)), default=0)
        overlap = [e for e in _doings(second) if e.seq < last]
        judge.expect(
            "STEP-98", overlap[0] if overlap else event, not overlap,
            "a second thread's step got in before the first step was done",
            expected="the second step waits until the first has recorded its event",
            actual=f"it made {len(overlap)} call(s) meanwhile, first {overlap[0].kind if overlap else ''}",
        )  # fmt: skip


def _doings(steps: list[Step]) -> list[Event]:
    calls = [call for step in steps for call in step.calls + step.executes]
    return sorted(calls, key=lambda e: e.seq)


def _own(facts: Facts, step: Step) -> list[Event]:
    return step.calls + [w for w in facts.works.values() if facts.work_step.get(w.seq) is step]


def check_close(facts: Facts, judge: Judge) -> None:
    """Closing frees every shadow once and leaves nothing (SHADOW-116, STEP-164)."""
    drained = next((note for note in facts.notes if note.args[0] == "drained"), None)
    if drained is None:
        return
    used = [t for t in facts.tracks.values() if t.frozen and t.plan.optimised]
    shadows = any(place.kind == "shadow" for track in used for place in track.places)
    refused = [c for c in facts.close_calls if c.kind in FREEING and c.status and c.result != "injected"]
    for call in refused:
        judge.fail(
            "SHADOW-116" if call.kind == "free" else "STEP-164", call, f"close calls {call.kind} for what is not there",
            expected="each object given back once", actual=f"status {call.status}",
        )  # fmt: skip
    excused = frozenset().union(*(EXCUSED.get(kind, ()) for kind in facts.struck))
    left = [(kind, what) for kind, what in facts.left if kind not in excused]
    lost = [what for kind, what in left if kind == "allocation"]
    if shadows:
        judge.expect(
            "SHADOW-116", drained, not lost, "shadows are left behind after close",
            expected="every shadow freed once", actual=", ".join(lost),
        )  # fmt: skip
    if used:
        judge.expect(
            "STEP-164", drained, not left, "the executor still holds something after close",
            expected="nothing", actual=", ".join(what for _, what in left),
        )  # fmt: skip
    for note in facts.notes:
        if note.args[0] == "closed":
            status = note.args[1]["outcome"]["status"]
            good = status == "ok" or bool(facts.struck & EXCUSED.keys())
            judge.expect("STEP-164", note, good, "close does not succeed", expected="ok", actual=status)
