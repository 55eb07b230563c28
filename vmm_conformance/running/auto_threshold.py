"""Runs programs of the contract ``auto-threshold``.

A question is the note ``asked`` (``device``, ``slices`` and ``costs``), then ``chose`` (``cutoff`` and
``selected``) or ``failed`` (the outcome). After an answer, `Allocate` leaves the note ``allocated``: how many
``shadows`` of the last answer there was memory for, of how ``many``, and the driver's ``error``. `Step` leaves
``stepped``: the ``outcome``, and which slices were ``copied``. Both give the number of the event that asked as
``question``. Driver calls are not recorded: what counts is what came of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import Choice, Driver, DriverError, DriverOptions, capability
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs import auto_threshold as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running import journal
from vmm_conformance.running.auto_step import step_with
from vmm_conformance.running.opened import OpenDriver
from vmm_conformance.running.outcome import Outcome, attempt

UNDECLARED: Final = "the subject declares no auto_bounds"
MAXIMAL: Final = "AUTO-177"
GRANULE: Final = 4096
MOST_BYTES: Final = 128 << 20
"""Bytes that the buffers of a step may have: a wrong choice copies all of them."""


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """What ``subject`` (which offers ``auto_threshold``) answers to ``program``."""
    bounds = capability(subject, "auto_bounds")
    header = {
        "contract": ops.CONTRACT,
        "configuration": program.configuration,
        "bounds": bounds,
        "ties": capability(subject, "auto_ties"),
        "not_applicable": {} if bounds else {MAXIMAL: UNDECLARED},
    }
    history = History(header)
    running = _Run(program.configuration, subject, open_driver, history)
    for number, operation in enumerate(program.operations):
        running.operation(number, operation)
    return history


class _Run:
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, open_driver: OpenDriver, history: History):
        self.subject = subject
        self.open_driver = open_driver
        self.history = history
        self.op = -1
        self.device = configuration.device
        self.costs = configuration.costs
        self.slices = _sizes(configuration.slices)
        self.answer: tuple[Event, Choice] | None = None
        self._handlers: dict[type, Callable[[Any], Outcome]] = {
            ops.Ask: self._ask,
            ops.Mix: self._mix,
            ops.Reverse: self._reverse,
            ops.Measure: self._measure,
            ops.Allocate: self._allocate,
            ops.Step: self._step,
        }

    def operation(self, number: int, operation: ops.Operation) -> None:
        """Run one operation of the program."""
        self.op = number
        journal.began(number)
        self._event("begin", operation)
        self._event("end", self._handlers[type(operation)](operation))

    def _event(self, kind: str, *arguments: Any) -> Event:
        event = Event(len(self.history), self.op, 0, HARNESS, kind, arguments)
        self.history.events.append(event)
        return event

    def _note(self, what: str, **details: Any) -> Event:
        return self._event("note", what, details)

    # -- operations

    def _ask(self, operation: ops.Ask) -> Outcome:
        given = {name: getattr(operation, name) for name in ("free", "bandwidth", "capacity")}
        device = replace(self.device, **{name: value for name, value in given.items() if value is not None})
        capacity = max(0, device.capacity)
        device = replace(device, capacity=capacity, free=max(0, min(device.free, capacity)))
        asked = self._note("asked", device=device, slices=self.slices, costs=self.costs)
        got: list[Choice] = []
        outcome = attempt(lambda: got.append(_as_choice(self.subject.auto_threshold(device, self.slices, self.costs))))
        if not got:
            self._note("failed", **outcome)
            return outcome
        self._note("chose", **got[0]._asdict())
        self.answer = (asked, got[0])
        return {**outcome, "cutoff": got[0].cutoff, "selected": len(got[0].selected)}

    def _mix(self, operation: ops.Mix) -> Outcome:
        self.slices = _sizes(operation.slices)
        return _OK

    def _reverse(self, operation: ops.Reverse) -> Outcome:
        self.slices = self.slices[::-1]
        return _OK

    def _measure(self, operation: ops.Measure) -> Outcome:
        self.costs = operation.costs
        return _OK

    def _allocate(self, operation: ops.Allocate) -> Outcome:
        if self.answer is None:
            return _skipped("nothing has been chosen yet")
        asked, choice = self.answer
        device, slices = asked.args[1]["device"], asked.args[1]["slices"]
        sizes = [slices[index] for index in choice.selected if 0 <= index < len(slices)]
        driver = self.open_driver(DriverOptions(capacity=device.capacity))
        try:
            if driver.real:
                return _skipped("this driver's free memory is what it is")
            done, error = _allocate_all(driver, device.capacity - device.free, sizes)
        finally:
            driver.close()
        self._note("allocated", question=asked.seq, shadows=done, many=len(sizes), error=error)
        return {**_OK, "shadows": done, "message": error}

    def _step(self, operation: ops.Step) -> Outcome:
        if self.answer is None:
            return _skipped("nothing has been chosen yet")
        if not callable(getattr(self.subject, "step_executor", None)):
            return _skipped("the subject has no step executor")
        asked, choice = self.answer
        slices = asked.args[1]["slices"]
        if sum(slices) > MOST_BYTES:
            return _skipped(f"the slices have more than {MOST_BYTES} bytes together")
        driver = self.open_driver(DriverOptions(capacity=3 * sum(slices) + 3 * GRANULE * (len(slices) + 1)))
        try:
            outcome, copied = step_with(driver, self.subject, slices, choice.cutoff)
        finally:
            driver.close()
        self._note("stepped", question=asked.seq, outcome=outcome, copied=copied)
        return {**outcome, "copied": len(copied)}


_OK: Outcome = {"status": "ok", "code": "", "message": ""}


def _skipped(why: str) -> Outcome:
    return {"status": "skipped", "code": "", "message": why}


def _sizes(groups: Sequence[ops.Group]) -> tuple[int, ...]:
    return tuple(max(0, group.size) for group in groups for _ in range(group.count))


def _as_choice(answer: object) -> Choice:
    """``answer`` as a choice. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Choice) and type(answer.cutoff) is int and isinstance(answer.selected, tuple):
        return answer
    raise TypeError(f"auto_threshold returned {answer!r} where a Choice (cutoff, selected) was expected")


def _allocate_all(driver: Driver, taken: int, sizes: Sequence[int]) -> tuple[int, str]:
    """With ``taken`` bytes in use allocate ``sizes``: how many there was room for, and the error behind them."""
    whole = taken // GRANULE * GRANULE
    if whole:
        driver.create(whole)
    if taken > whole:
        driver.alloc(taken - whole)
    for done, size in enumerate(sizes):
        try:
            driver.alloc(size)
        except DriverError as refusal:
            return done, str(refusal)
    return len(sizes), ""
