"""What is left at the end, and what is given back twice: ALLOCATOR-8."""

from __future__ import annotations

from vmm_conformance.checkers.allocator_calls import GIVING_BACK, Call, Family, Ledger, Taken, describe
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range, status_name
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.replay import Replay

CLOSED = "ALLOCATOR-8"


class Leaks(Family):
    """Closing gives all back, and everything is given back once."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._events: dict[int, str] = {}
        self._used = False

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Follow events and streams; nothing may be given back that is not held."""
        if event.status:
            if event.kind in GIVING_BACK and event.result != "injected":
                self._refused(event, call)
        elif event.kind in ("event_create", "stream_create"):
            self._events[event.result] = event.kind.removesuffix("_create")
        elif event.kind in ("event_destroy", "stream_destroy"):
            self._events.pop(event.args[0], None)
        self._used = self._used or event.kind in ("reserve", "create", "map", "alloc", "event_create")

    def _refused(self, event: Event, call: Call | None) -> None:
        """The driver refused to take something back: was there anything to give?"""
        first, state = event.args[0], self.state
        held = {
            "address_free": first in state.reservations,
            "release": first in state.handles and state.handles[first].references > 0,
            "unmap": event.kind == "unmap" and bool(state.mappings_in(*event.args)),
            "free": state.allocation_at(first) is not None,
        }.get(event.kind, first in self._events)
        if not held:
            self.judge.fail(
                CLOSED, event, f"{event.kind}({', '.join(map(hex, event.args))}) in {call or 'no call'} "
                "gives back what the allocator does not hold",
                expected="everything is given back exactly once", actual=status_name(event.status),
            )  # fmt: skip

    def returned(self, call: Call, event: Event) -> None:
        """Judge what is left when the last allocator has closed, and that closing again is harmless."""
        if call.again:
            self._closed_again(call, event)
        elif call.name == "close" and (call.good or not call.struck) and not self.ledger.open:
            self._left(event)

    def _closed_again(self, call: Call, event: Event) -> None:
        if self.ledger.traced:
            self.judge.witness(CLOSED)
        if not call.good and not call.struck:
            self.judge.fail(
                CLOSED, event, "closing a closed allocator is not harmless",
                expected="nothing happens", actual=f"{call.status}: {call.code}: {call.message}",
            )  # fmt: skip

    def _left(self, event: Event) -> None:
        excused = self.ledger.excused
        left: list[Taken] = [r for r in self.state.reservations.values() if r.who == SUBJECT]
        left += [m for m in self.state.mappings if m.who == SUBJECT]
        left += [m for m in (*self.state.handles.values(), *self.state.allocations) if m.who == SUBJECT]
        left = [taken for taken in left if taken not in excused]
        others = [f"{kind} {n}" for n, kind in self._events.items() if n not in self.ledger.excused_events]
        if self._used:
            self.judge.witness(CLOSED)
        if left or others:
            self.judge.fail(
                CLOSED, event, f"close leaves behind {', '.join([*map(describe, left), *others])}",
                expected="nothing of the subject's is left", actual=f"{len(left) + len(others)} left",
                range=Range(left[0].address, left[0].size) if left else None,
                cause=left[0].made if left else None,
            )  # fmt: skip
        excused.update(left)
        self.ledger.excused_events.update(self._events)
        self._used = False
