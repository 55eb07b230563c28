"""Writes every driver call into a history, with its result, under the operation that caused it."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from vmm_conformance.contracts import Driver, Work
from vmm_conformance.history.events import DEVICE, HARNESS, SUBJECT, Event, History
from vmm_conformance.running import journal
from vmm_conformance.running.faults import Faults
from vmm_conformance.running.recorded import Now, record


class Recorder:
    """Wraps ``driver``; ``subject`` and ``harness`` are the two views whose calls it records.

    ``op`` is the index of the running operation; the runner moves it on. Faults strike the subject's
    calls alone. ``causes`` maps the driver's serial numbers to event numbers, so that a device fault
    can be attributed to the call that took memory or rights away.
    """

    def __init__(self, driver: Driver, history: History) -> None:
        self.driver = driver
        self.history = history
        self.now = Now()
        self.faults = Faults()
        self.causes: dict[int, int] = {}
        self.subject = record(driver, SUBJECT, history, self.now, self.faults, self.causes)
        self.harness = record(driver, HARNESS, history, self.now, Faults(), self.causes)
        driver.listen(self._ran)

    @property
    def op(self) -> int:
        """The index of the running operation."""
        return self.now.op

    @op.setter
    def op(self, index: int) -> None:
        journal.began(index)
        self.now.op = index

    @property
    def point(self) -> Callable[[str], None] | None:
        """Called with the kind of each of the subject's driver calls, before it is made.

        There a scheduler may let another thread go on.
        """
        return self.now.point

    @point.setter
    def point(self, point: Callable[[str], None] | None) -> None:
        self.now.point = point

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        """Append one event."""
        gate, events = self.now.gate, self.history.events
        mine = get_ident() == gate.runner
        within = mine and gate.inside  # what a call has led to
        if mine:
            gate.inside = True
        held = not within and (not mine or gate.shared)
        if held:
            gate.enter()
        event = Event(len(events), self.now.op, int(not mine), who, kind, args, status, result)
        events.append(event)
        if held:
            gate.leave()
        elif not within:
            gate.inside = False
        return event

    def note(self, what: str, **details: Any) -> Event:
        """Append something that the harness did or saw."""
        return self.event(HARNESS, "note", (what, details))

    def thread(self) -> int:
        """0 for the runner's own host thread, 1 for the one that challenges it."""
        return int(get_ident() != self.now.runner)

    def _ran(self, work: Work) -> None:
        fault = work.fault
        cause = self.causes.get(fault.cause) if fault and fault.cause else None
        self.event(DEVICE, "ran", (work.id, work.data, fault), 0, cause)
