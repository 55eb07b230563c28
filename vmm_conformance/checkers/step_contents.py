"""Rules on bytes: what execution reads, and what the caller's buffers hold afterwards.

Contents are modelled per allocation id, never per address. What nobody can know (after an execution
that raised, after work on two streams that the caller did not order) is not judged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.step_facts import Facts, Step
from vmm_conformance.contracts import Range, Use
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Memory


class Expected(NamedTuple):
    """Bytes that queued work must read: ``at`` is the position in the work's data (until the work is
    known, the number of the read in the plan)."""

    event: Event
    step: Step
    allocation: int
    at: int
    offset: int
    data: bytes
    slot: int
    """The slot that execution reads, or -1 for the caller's look at its buffer."""


class Contents(Visitor):
    """A visitor that follows the tokens in every buffer. Walk it after `Facts`."""

    def __init__(self, replay: Replay, facts: Facts) -> None:
        self.expected: dict[int, list[Expected]] = {}
        self._facts = facts
        self._state = replay.state
        self._order = replay.order
        self._known: dict[int, dict[int, bytes]] = {}
        self._owner: dict[Memory, int] = {}
        self._pending: dict[int, list[Expected]] = {}
        self._over: set[int] = set()
        self._raced: set[int] = set()

    def after(self, event: Event) -> None:
        """Follow what is written, remember what reads must see."""
        if event.kind == "note":
            what, details = event.args
            follow = getattr(self, "_" + what.replace(" ", "_"), None)
            if follow is not None:
                follow(event, details)
        elif event.kind == "ran":
            self._over.add(event.args[0])
        elif self._order.races:
            self._taint()

    def _taint(self) -> None:
        """Streams that nobody ordered touch one buffer: what has not run yet may see anything of it."""
        self._raced.update(race.second.event.result for race in self._order.races)
        memories = {race.first.memory for race in self._order.races}
        lost = {self._owner[memory] for memory in memories if memory in self._owner}
        for allocation in lost:
            self._known.pop(allocation, None)
        for wanted in (*self._pending.values(), *(x for work, x in self.expected.items() if work not in self._over)):
            wanted[:] = [one for one in wanted if one.allocation not in lost]

    def _contents(self, event: Event, details: dict[str, Any]) -> None:
        if details.get("work") in self._raced:  # the last of several unordered writers: nobody knows which
            self._known.pop(details["allocation"], None)
        else:
            self._known[details["allocation"]] = dict(details["tokens"])

    def _step(self, event: Event, details: dict[str, Any]) -> None:
        for buffer in details["buffers"]:
            parts = self._state.parts(buffer.address, 1) if buffer.address else []
            memory = self._state.handles.get(buffer.handle) if buffer.handle else parts[0].memory if parts else None
            if memory is not None:
                self._owner[memory] = buffer.allocation

    def _execute(self, event: Event, details: dict[str, Any]) -> None:
        step = self._facts.steps_by_thread[event.thread]
        self._forget_failed(step)
        todo, pending = details["plan"], []
        for at, (slot, offset, length) in enumerate(todo.reads):
            allocation = step.buffers[slot].allocation
            data = self._known.get(allocation, {}).get(offset)
            if data is not None:
                pending.append(Expected(event, step, allocation, at, offset, data[:length], slot))
        for slot, offset, data in todo.writes:
            self._known.setdefault(step.buffers[slot].allocation, {})[offset] = data
        self._pending[event.thread] = pending

    def _executed(self, event: Event, details: dict[str, Any]) -> None:
        pending = self._pending.pop(event.thread, [])
        by_number = {wanted.at: wanted for wanted in pending}
        for work, numbers in details["results"]:
            mine = [by_number[n]._replace(at=at) for at, n in enumerate(numbers) if n in by_number]
            self.expected[work] = mine

    def _stepped(self, event: Event, details: dict[str, Any]) -> None:
        step = self._facts.steps_by_thread[event.thread]
        if step.executed and (not step.ok or step.injected):
            self._forget_written(step)

    def _forget_failed(self, step: Step) -> None:
        """Another thread's step may have failed, and let this one in before it returned."""
        for other in self._facts.open_steps():
            if other is not step and other.executed and (other.injected or other.wanted != "ok"):
                self._forget_written(other)

    def _forget_written(self, step: Step) -> None:
        """What an execution that failed may have written is unknown."""
        for buffer, use in zip(step.buffers, step.uses, strict=True):
            if use is not None and use.writes:
                self._known.pop(buffer.allocation, None)

    def _observe(self, event: Event, details: dict[str, Any]) -> None:
        step = self._facts.steps_by_thread[event.thread]
        self._forget_failed(step)
        self.expected[details["work"]] = [
            Expected(event, step, allocation, at, offset, known[:length], -1)
            for at, (allocation, offset, length) in enumerate(details["marks"])
            if (known := self._known.get(allocation, {}).get(offset)) is not None
        ]


def check_contents(facts: Facts, contents: Contents, judge: Judge) -> None:
    """Compare what ran with what was expected.

    Of a subject without a trace its copies cannot be seen, and so not what they are ordered with: steps on
    several streams are then not judged by their bytes.
    """
    if not facts.traced and len({step.stream for step in facts.steps}) > 1:
        return
    for work, expected in contents.expected.items():
        ran = facts.ran.get(work)
        if ran is None or ran.args[2] is not None:
            continue
        for wanted in expected:
            data = ran.args[1]
            _compare(wanted, data[wanted.at][: len(wanted.data)], facts, judge)
    _faults(facts, judge)
    _directions(facts, judge)


def _compare(wanted: Expected, value: bytes, facts: Facts, judge: Judge) -> None:
    rules = _read_rules(wanted) if wanted.slot >= 0 else _real_rules(wanted)
    for id in rules:
        if not judge.good(id, value == wanted.data):
            judge.fail(
                id, wanted.event, _text(wanted),
                expected=wanted.data, actual=value, range=_where(wanted),
            )  # fmt: skip


def _where(wanted: Expected) -> Range | None:
    buffers = [b for b in wanted.step.buffers if b.allocation == wanted.allocation and b.address]
    return Range(buffers[0].address, buffers[0].size) if buffers else None


def _text(wanted: Expected) -> str:
    if wanted.slot >= 0:
        return f"execution reads other bytes through slot {wanted.slot} than the caller's buffer held"
    return f"after the step the caller's buffer (allocation {wanted.allocation}) holds other bytes at {wanted.offset}"


def _kind(step: Step, slot: int) -> str:
    return step.places[slot].kind if slot < len(step.places) else "nothing"


def _read_rules(wanted: Expected) -> list[str]:
    return ["SHADOW-110"] if _kind(wanted.step, wanted.slot) == "shadow" else ["STEP-86"]


def _real_rules(wanted: Expected) -> list[str]:
    """What the bytes of a real buffer after a step put to the test."""
    step = wanted.step
    slots = [slot for slot, buffer in enumerate(step.buffers) if buffer.allocation == wanted.allocation]
    shadowed = [slot for slot in slots if _kind(step, slot) == "shadow"]
    written = [slot for slot in slots if (use := step.uses[slot]) is not None and use.writes]
    if not shadowed:
        return ["STEP-86"]
    if wanted.offset >= step.buffers[slots[0]].size:
        return ["SHADOW-112"]
    if len(slots) > 1:
        return ["SHADOW-161"]
    return ["SHADOW-111"] if written and step.executed else ["SHADOW-160"]


def _faults(facts: Facts, judge: Judge) -> None:
    """Device work that met a fault which the subject is answerable for."""
    for ran in facts.ran.values():
        fault = ran.args[2]
        work = facts.works.get(ran.args[0])
        if fault is None or work is None:
            continue
        step = facts.work_step.get(work.seq)
        cause = facts.event(ran.result)
        if step is None or (cause is not None and cause.who != SUBJECT and cause.seq > work.seq):
            continue
        judge.fail(
            _fault_rule(work, fault.reason, step), work, f"device fault: {fault.reason}",
            expected="an address that the work may use", actual=f"{fault.reason} when it ran",
            range=Range(fault.address, fault.size), cause=ran.result,
        )  # fmt: skip


def _fault_rule(work: Event, reason: str, step: Step) -> str:
    if work.who == SUBJECT:
        return "SHADOW-160" if reason == "read only" else "SHADOW-112"
    return "STEP-88" if reason in ("remapped", "freed") and step.track.plan.optimised else "STEP-83"


def _directions(facts: Facts, judge: Judge) -> None:
    """Both directions are copied where they are needed, whole and no more (SHADOW-109, 112, 117)."""
    for step in facts.steps:
        if not step.submitted:
            continue
        copies = [move for call in step.calls if not call.status for move in _moves(call)]
        for slot in step.track.plan.remapped:
            use = step.uses[slot]
            if _kind(step, slot) == "shadow" and use is not None:
                _slot_directions(step, slot, use, copies, judge)


class _Move(NamedTuple):
    """One copy that the subject queued, by itself or with others in one launch."""

    event: Event
    target: int
    source: int
    size: int


def _moves(call: Event) -> list[_Move]:
    if call.kind == "copy":
        return [_Move(call, *call.args[:3])]
    return [_Move(call, *copy) for copy in call.args[2]] if call.kind == "launch" else []


def _slot_directions(step: Step, slot: int, use: Use, copies: list[_Move], judge: Judge) -> None:
    """One small slot's copies: in before execution, back after it."""
    execute, shadow, size = step.executes[0], step.table[slot], step.buffers[slot].size
    into = [c for c in copies if _touches(c.target, shadow.address, size)]
    out = [c for c in copies if _touches(c.source, shadow.address, size)]
    early = [c for c in out if c.event.seq < execute.seq]
    late = [c for c in into if c.event.seq > execute.seq]
    if use.reads:
        judge.expect(
            "SHADOW-117", execute, len(late) < len(into), f"small slot {slot} is read, and not copied in",
            expected="a copy into its shadow before execution", actual="none", range=shadow,
        )  # fmt: skip
    if use.writes and step.ok and not _shared(step, slot):
        judge.expect(
            "SHADOW-117", execute, len(early) < len(out), f"small slot {slot} is written, and not copied back",
            expected="a copy from its shadow after execution", actual="none", range=shadow,
        )  # fmt: skip
    for wrong in early + late:
        judge.fail(
            "SHADOW-109", wrong.event, f"a copy for small slot {slot} is on the wrong side of execution",
            expected="copy-in before, copy-back after", actual="copied back before" if early else "copied in after",
            range=shadow,
        )  # fmt: skip
    for copy in into + out:
        judge.expect(
            "SHADOW-112", copy.event, copy.size <= size, f"a copy for slot {slot} moves too much",
            expected=f"at most {size} bytes", actual=f"{copy.size} bytes", range=shadow,
        )  # fmt: skip


def _touches(address: int, start: int, size: int) -> bool:
    return start <= address < start + size


def _shared(step: Step, slot: int) -> bool:
    allocation = step.buffers[slot].allocation
    return sum(buffer.allocation == allocation for buffer in step.buffers) > 1
