"""Walks a history of the contract ``vmm-allocator``: gathers each call, and has it judged when it is over.

Calls that were going on at the same time are judged together. They must come to what they would have
come to one after the other, in one order or the other (ALLOC-80). A call that waits stands in two places: what
it has ended before it waited again is ended for the other, which may have come in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations, product
from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_entries import enter
from vmm_conformance.checkers.vmm_ledger import WAITING, Call, Ending, Entity, Ledger
from vmm_conformance.checkers.vmm_rules import Decision, decide
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Mapping, Memory, Reservation

APART, AGAIN = "ALLOC-77", "ALLOC-80"

TAKING: Final = frozenset({"reserve", "create", "map", "alloc"})
"""The driver calls that take something which another gives back."""


class Family:
    """One family of checks. What it is told of single events is judged at once, whole calls by `over`."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        self.state = replay.state
        self.order = replay.order
        self.ledger = ledger
        self.judge = judge

    def driver_call(self, event: Event, call: Call | None) -> None:
        """The subject made a driver call, in ``call``."""

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """The harness noted something that is no call."""

    def ran(self, event: Event) -> None:
        """Queued work ran, or faulted."""

    def before(self, call: Call, decision: Decision, judge: Judge) -> None:
        """``call`` is over, and the ledger still as before it."""

    def after(self, call: Call, decision: Decision, judge: Judge) -> None:
        """The same, when the ledger has taken it in."""

    def settled(self, calls: Sequence[Call], judge: Judge) -> None:
        """All calls that were going on together are over and judged."""


class Watch(Visitor):
    """The visitor: gathers calls, tells the families, and enters what came of it into the ledger."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge, families: Sequence[Family]) -> None:
        self.state = replay.state
        self.order = replay.order
        self.ledger = ledger
        self.judge = judge
        self.driver_called, self.noted, self.ran = (
            [getattr(f, name) for f in families if name in type(f).__dict__] for name in ("driver_call", "note", "ran")
        )
        self.befores, self.afters, self.settlers = (
            [getattr(f, name) for f in families if name in type(f).__dict__] for name in ("before", "after", "settled")
        )
        self.open: dict[int, Call] = {}
        self.over: list[Call] = []
        self.stopped = False
        """A thread has waited for ever: nothing is as it seems from there on."""
        self.live: Counter[int] = Counter()

    def after(self, event: Event) -> None:
        """One more event."""
        if self.stopped:
            return
        if event.kind == "note":
            self._note(event, *event.args)
        elif event.who == SUBJECT:
            self._driver_call(event)
        elif event.kind == "ran":
            for tell in self.ran:
                tell(event)

    def _note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        if what == "call":
            tick = self.order.position(self.ledger.streams.get(details.get("ordinal", 0), 0))
            call = self.open[event.thread] = Call(event, details, Counter(self.live), tick)
            for other in (*self.open.values(), *self.over):
                call.alone = call.alone and other is call
                other.alone = other.alone and other is call
        elif what == "return":
            self._returned(event, details)
        elif what == "blocked":
            self._blocked(event, details)
        elif what == "abandoned":
            self.stopped = True
            self.judge.fail(
                AGAIN, event, "a call waits for a lock that is never given back",
                expected="every call returns", actual="; ".join(map(str, self.open.values())),
            )  # fmt: skip
        elif what == "reservation":
            self.ledger.reservations.add(details["address"].address)
        else:
            for tell in self.noted:
                tell(event, what, details)

    # -- driver calls

    def _driver_call(self, event: Event) -> None:
        call = self.open.get(event.thread)
        self._count(event)
        if call is not None:
            call.calls.append(event)
            if event.status:
                call.failures.append(event)
                call.struck = call.struck or event.result == "injected"
                self._kept(event, call)
            else:
                self._exchanged(event, call)
        for tell in self.driver_called:
            tell(event, call)

    def _count(self, event: Event) -> None:
        """Keep up what is committed on each device."""
        if event.kind in ("create", "alloc") and not event.status:
            self.live[event.args[1]] += event.args[0]
        for gone in self.state.ended:
            if isinstance(gone, Memory):
                self.live[gone.device] -= gone.size

    def _kept(self, event: Event, call: Call) -> None:
        """An unmap that was made to fail leaves behind something that is neither here nor there."""
        mapping = self.state.mapping_at(event.args[0]) if event.kind == "unmap" else None
        entity = self.ledger.of_mapping.get(mapping) if mapping is not None else None
        if entity is not None:
            call.damaged.append(entity)

    def _exchanged(self, event: Event, call: Call) -> None:
        """What the call took, gave back, and ended."""
        if event.kind in TAKING:
            found = self._taken(event)
            if found is not None:
                call.made.append(found)
        for gone in self.state.ended:
            entity = self.ledger.of_mapping.get(gone) if not isinstance(gone, Memory) else None
            if entity is not None:
                stream = self.ledger.streams[entity.ordinal]
                call.endings.append(Ending(entity, event, self.order.reached(stream, entity.tick)))

    def _taken(self, event: Event) -> Reservation | Memory | Mapping | None:
        if event.kind == "reserve":
            return self.state.reservations.get(event.result)
        if event.kind == "create":
            return self.state.handles.get(event.result)
        return self.state.mapping_at(event.args[0]) if event.kind == "map" else self.state.allocation_at(event.result)

    # -- calls

    def _returned(self, event: Event, details: dict[str, Any]) -> None:
        call = self.open.pop(event.thread)
        call.returned = event
        call.status, call.code, call.message = details["status"], details["code"], details["message"]
        call.answer = details["answer"]
        shown = call.answer if isinstance(call.answer, Range) else call.details.get("slice")
        if call.good and shown is not None and shown.size:
            size = self.ledger.rounded(shown.size) if call.name == "allocate" else shown.size
            call.parts = self.state.parts(shown.address, size)
        self.over.append(call)
        if not self.open:
            over, self.over = self.over, []
            self._settle(over)

    def _settle(self, calls: list[Call]) -> None:
        if len(calls) == 1:
            self._judge(calls, self.judge)
        else:
            self._judge_together(calls)
        for tell in self.settlers:
            tell(calls, self.judge)

    def _judge(self, calls: Sequence[Call], judge: Judge) -> None:
        """Judge the calls as if they had been made in this order."""
        for call in calls:
            decision = decide(self.ledger, call)
            for tell in self.befores:
                tell(call, decision, judge)
            enter(self.ledger, call, decision)
            for tell in self.afters:
                tell(call, decision, judge)

    def _judge_together(self, calls: list[Call]) -> None:
        """Is there an order that explains what the calls came to?"""
        saved = self.ledger.save()
        tried: list[Judge] = []
        for call in calls:
            call.in_way = decide(self.ledger, call).conflicts
        for ended, order in product(({}, _ended_among(calls)), permutations(calls)):
            self.ledger.restore(saved)
            for entity in ended:
                self.ledger.remove(entity)
            judge = Judge()
            self._judge(order, judge)
            tried.append(judge)
            if not judge.findings:
                break
        best = tried[-1]
        if best.findings:
            self.ledger.restore(saved)
            best = Judge()
            self._judge(calls, best)
            self._unexplained(calls, tried, best)
        elif len({call.ordinal for call in calls}) == 1:
            self.judge.witness(AGAIN)
        else:
            self.judge.witness(APART)
        self.judge.witnesses.update(best.witnesses)

    def _unexplained(self, calls: list[Call], tried: list[Judge], best: Judge) -> None:
        """No order explains it: what is wrong in every order is wrong by itself, all else for being at once."""
        seen = [{(f.invariant, f.seq) for f in judge.findings} for judge in tried]
        always = set.intersection(*seen)
        self.judge.findings += [finding for finding in best.findings if (finding.invariant, finding.seq) in always]
        if not always:
            first = best.findings[0]
            self.judge.expect(
                AGAIN, calls[-1].returned, False,
                f"{' and '.join(map(str, calls))}, made at once, come to what they cannot come to one after the other",
                expected="what one order of the two comes to: after a wait the allocator looks at everything anew",
                actual=f"{'; '.join(f'{c.name}: {c.status} {c.code}'.strip() for c in calls)}: {first.message}",
            )  # fmt: skip

    def _blocked(self, event: Event, details: dict[str, Any]) -> None:
        """A thread waits for a lock while another stands somewhere in a call."""
        call = self.open.get(event.thread)
        holder = next((other for thread, other in self.open.items() if thread != event.thread), None)
        if call is None or holder is None:
            return
        if call.ordinal != holder.ordinal:
            self.judge.fail(
                APART, event, f"{call} waits for {holder}, which is about another device",
                expected="devices do not wait for each other", actual=f"blocked, the other at {details['at']}",
            )  # fmt: skip
        elif details["at"] in WAITING:
            self.judge.fail(
                AGAIN, event, f"{call} waits for {holder}, which waits for the device with its lock held",
                expected="a lock is given back while its holder waits", actual=f"blocked, the other at {details['at']}",
            )  # fmt: skip


def _ended_among(calls: Sequence[Call]) -> dict[Entity, None]:
    """What one of the calls ended while none of them was over."""
    first = min(call.returned.seq for call in calls)
    return {ending.entity: None for call in calls for ending in call.endings if ending.event.seq < first}
