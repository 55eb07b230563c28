"""Writes every driver call into a history, with its result, under the operation that caused it."""

from __future__ import annotations

import threading
from typing import Any

from vmm_conformance.contracts import Driver, Work
from vmm_conformance.history.events import DEVICE, HARNESS, SUBJECT, Event, History
from vmm_conformance.running.faults import Faults
from vmm_conformance.running.recorded import RecordedDriver


class Recorder:
    """Wraps ``driver``; ``subject`` and ``harness`` are the two views whose calls it records.

    ``op`` is the index of the running operation; the runner moves it on. Faults strike the subject's
    calls alone. ``causes`` maps the driver's serial numbers to event numbers, so that a device fault
    can be attributed to the call that took memory or rights away.
    """

    def __init__(self, driver: Driver, history: History) -> None:
        self.driver = driver
        self.history = history
        self.op = -1
        self.faults = Faults()
        self.causes: dict[int, int] = {}
        self.subject: Driver = RecordedDriver(self, SUBJECT)
        self.harness: Driver = RecordedDriver(self, HARNESS)
        self._first_thread = threading.get_ident()
        driver.listen(self._ran)

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        """Append one event."""
        events = self.history.events
        event = Event(len(events), self.op, self.thread(), who, kind, args, status, result)
        events.append(event)
        return event

    def note(self, what: str, **details: Any) -> Event:
        """Append something that the harness did or saw."""
        return self.event(HARNESS, "note", (what, details))

    def thread(self) -> int:
        """0 for the runner's own host thread, 1 for the one that challenges it."""
        return int(threading.get_ident() != self._first_thread)

    def _ran(self, work: Work) -> None:
        fault = work.fault
        cause = self.causes.get(fault.cause) if fault and fault.cause else None
        self.event(DEVICE, "ran", (work.id, work.data, fault), 0, cause)
