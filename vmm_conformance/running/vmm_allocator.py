"""Runs a program of the contract ``vmm-allocator`` and records what happens.

Each call on the subject stands between two notes of the same host thread: ``call`` with ``name`` and the
call's arguments, and ``return`` with ``status``, ``code``, ``message`` and ``answer``. Look-ups are single
notes, ``look``. ``block`` names a block that a call gave, ``work`` what work on it reads and writes,
``blocked`` says that its thread waits for a lock, and ``at`` where the other one stands, ``abandoned`` that a
thread has waited for ever, ``drained`` that all is over. `vmm_facts.header` says what a judge must know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from vmm_conformance.contracts import (
    AddressReservation,
    DriverError,
    Range,
    RawAllocation,
    VmmAllocator,
    capability,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.fitted import fitted
from vmm_conformance.running.opened import OpenDriver, opened
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.scheduler import Scheduler
from vmm_conformance.running.threads import visible_locks
from vmm_conformance.running.vmm_caller import Alias, Block, Caller, Request, looked_up
from vmm_conformance.running.vmm_facts import device_configs, driver_options, found_options, header
from vmm_conformance.running.vmm_requests import Requests

_OK: Final[Outcome] = {"status": "ok", "code": "", "message": ""}


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver."""
    options = driver_options(program.configuration)
    history = History()
    with opened(open_driver, options) as driver:
        program = fitted(program, driver)
        options = found_options(options, driver)
        recorder = Recorder(driver, history)
        streams = [recorder.harness.stream_create(device) for device in range(options.devices)]
        history.header.update(header(program, subject, driver, options, streams))
        running = _Run(program.configuration, subject, recorder, streams)
        with ExitStack() as stack:
            if running.scheduled and any(type(operation) is ops.Together for operation in program.operations):
                stack.enter_context(visible_locks(running.scheduler))
            running.all(program.operations)
    return history


class _Run:
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, recorder: Recorder, streams: list[int]) -> None:
        self.configuration = configuration
        self.subject = subject
        self.recorder = recorder
        self.driver = recorder.harness
        self.streams = streams
        self.scheduled = bool(capability(subject, "scheduled"))
        self.scheduler = Scheduler(self._blocked)
        self.caller = Caller(configuration, recorder, streams)
        self.allocator: VmmAllocator | None = None
        self.requests = Requests(self.caller, recorder.history.header["spaces"])
        self.asked = False
        self.contexts: list[AbstractContextManager[None]] = []
        self._handlers: dict[type, Callable[[Any], Outcome]] = {
            ops.Use: self._use, ops.Look: self._look, ops.Drain: self._drain, ops.Progress: self._progress,
            ops.Churn: self._churn, ops.Tag: self._tag, ops.Untag: self._untag, ops.Fail: self._fail,
            ops.Together: self._together,
        }  # fmt: skip

    def all(self, operations: tuple[ops.Operation, ...]) -> None:
        """Make the allocator, run every operation, close with work still queued, then let everything run."""
        opened = self._once(Request("open", {}, self._make))
        for once in range(self.configuration.rounds):
            for number, operation in enumerate(operations):
                self.recorder.op = number
                self.recorder.event(HARNESS, "begin", (operation,))
                outcome = opened if opened["status"] != "ok" else self._guarded(operation)
                self.recorder.event(HARNESS, "end", (outcome,))
            self.recorder.op = len(operations)
            if self.configuration.rounds > 1 and self.allocator is not None:
                self._round_over(once)
        if self.allocator is not None:
            self._finish(self.allocator)
        self.recorder.note("drained")

    def _make(self) -> None:
        configs = device_configs(self.configuration, self.streams)
        self.allocator = self.requests.allocator = self.subject.vmm_allocator(self.recorder.subject, configs)

    def _guarded(self, operation: ops.Operation) -> Outcome:
        try:
            handler = self._handlers.get(type(operation))
            return handler(operation) if handler else self._request(operation)
        except DriverError as error:
            return {"status": "refused", "code": "", "message": f"the caller's own call: {error}"}

    # -- calls

    def _request(self, operation: Any) -> Outcome:
        """One call, worked out and made; once more where an injected failure made it fail."""
        request = self._worked_out(operation)
        if request is None:
            return _skipped("there is nothing of the kind")
        request.before()
        outcome = self._once_more_if_struck(request)
        self._look_at(request)
        return outcome

    def _worked_out(self, operation: Any) -> Request | None:
        """The call that an operation means. Reservations that it names are made first."""
        for device, number in self.requests.reservations(operation):
            if (device, number) not in self.caller.reservations and self._reserve(device, number)["status"] != "ok":
                return None
        return self.requests.of(operation)

    def _struck_since(self, before: int) -> bool:
        return any(event.result == "injected" for event in self.recorder.history.events[before:])

    def _once_more_if_struck(self, request: Request) -> Outcome:
        before = len(self.recorder.history.events)
        outcome = self._once(request)
        if outcome["status"] == "ok" or not self._struck_since(before):
            return outcome
        again = self._once(request)
        return {**again, "message": f"{again['message'] or again['status']} (before: {outcome['message']})"}

    def _once(self, request: Request) -> Outcome:
        outcome, answer = self._recorded(request)
        if outcome["status"] == "ok":
            request.settle(answer)
        return outcome

    def _recorded(self, request: Request) -> tuple[Outcome, Any]:
        """One call between its two notes, on whatever thread this is."""
        answers: list[Any] = []
        self.recorder.note("call", name=request.name, **request.details)
        outcome = attempt(lambda: answers.append(request.action()))
        answer = answers[0] if answers else None
        shown = answer if isinstance(answer, (Range, int)) else None
        self.recorder.note("return", name=request.name, **outcome, answer=shown)
        return outcome, answer

    def _reserve(self, device: int, number: int) -> Outcome:
        size = self.configuration.slots * self.caller.granule

        def settle(answer: tuple[AddressReservation, Range]) -> None:
            self.caller.reservations[device, number] = answer[0]
            self.recorder.note("reservation", ordinal=device, address=answer[1])

        request = Request(
            "create_reservation", {"ordinal": device, "size": size}, lambda: self.requests.reserve(device, size), settle
        )
        return self._once_more_if_struck(request)

    def _together(self, operation: ops.Together) -> Outcome:
        """Two calls at once, both worked out before. What follows from them follows when both are over."""
        requests = [r for r in map(self._worked_out, (operation.first, operation.second)) if r is not None]
        if not requests:
            return _skipped("there is nothing of the kind")
        for request in requests:
            request.before()
        if len(requests) == 2:
            requests[1].details.update({"tag": False, "restored": False} if "tag" in requests[1].details else {})
        over = self._at_once(requests, operation.turns)
        for request, outcome, answer in over:
            if outcome["status"] == "ok":
                request.settle(answer)
        for request, _, _ in over:
            self._look_at(request)
        return {**_OK, "message": "; ".join(f"{r.name}: {o['status']} {o['code']}".strip() for r, o, _ in over)}

    def _at_once(self, requests: list[Request], turns: tuple[int, ...]) -> list[tuple[Request, Outcome, Any]]:
        """Make each call on a thread of its own, in turns or where that cannot be, in order; by order of return."""
        over: list[tuple[Request, Outcome, Any]] = []

        def body(request: Request) -> Callable[[], None]:
            return lambda: over.append((request, *self._recorded(request)))

        bodies = [body(request) for request in requests]
        if not self.scheduled:
            for number, each in enumerate(bodies):
                _on_a_thread(each) if number else each()  # contexts belong to threads (ALLOC-79)
            return over
        self.recorder.point = self.scheduler.point
        if not self.scheduler.together(bodies, turns):
            self.recorder.note("abandoned")
        self.recorder.point = None
        return over

    def _blocked(self, thread: int, holder_at: str) -> None:
        self.recorder.note("blocked", at=holder_at)

    def _churn(self, operation: ops.Churn) -> Outcome:
        known = len(self.caller.blocks)
        for _ in range(operation.count):
            self._once(self.requests.allocate(ops.Allocate(operation.size, operation.device), used=False))
        made = self.caller.blocks[known:]
        for block in made:
            self._once(self.requests.give_up(block.device, block.range))
        return {**_OK, "message": f"{len(made)} allocated"}

    # -- contexts

    def _tag(self, operation: ops.Tag) -> Outcome:
        tag = operation.multi_device

        def enter() -> None:
            assert self.allocator is not None
            context = self.allocator.device_tag(tag)
            context.__enter__()
            self.contexts.append(context)
            self.caller.tags.append(tag)
            self.caller.restored = False

        return self._once(Request("tag", {"value": tag}, enter))

    def _untag(self, operation: ops.Untag) -> Outcome:
        if not self.contexts:
            return _skipped("no context was entered")

        def leave() -> None:
            self.caller.tags.pop()
            self.caller.restored = True
            self.contexts.pop().__exit__(None, None, None)

        return self._once(Request("untag", {"value": bool(self.caller.tags[:-1] and self.caller.tags[-2])}, leave))

    # -- looking

    def _look(self, operation: ops.Look) -> Outcome:
        assert self.allocator is not None
        for ordinal, address in looked_up(self.caller):
            self._look_up(ordinal, address)
        if not self.asked:
            self._ask()
        return _OK

    def _ask(self) -> None:
        """What is fixed: streams and granularities; and that an unknown device has none of either. Once is enough."""
        self.asked = True
        for ordinal in range(len(self.streams) + 1):
            for name in ("stream", "granularity"):
                self._once(Request(name, {"ordinal": ordinal}, self.requests.asks(name, ordinal)))
        size, unknown = self.caller.granule, len(self.streams)
        reserve = Request(
            "create_reservation", {"ordinal": unknown, "size": size}, lambda: self.requests.reserve(unknown, size)
        )
        self._once(reserve)

    def _look_at(self, request: Request) -> None:
        """Look up what a call was about."""
        ordinal = request.details.get("ordinal", 0)
        ranges = [request.details[name] for name in ("address", "slice") if name in request.details]
        for address in dict.fromkeys(range for range in ranges if range.size > 0):
            self._look_up(ordinal, address)

    def _look_up(self, ordinal: int, address: Range) -> None:
        allocator = self.allocator
        assert allocator is not None
        found: list[Any] = []

        def look() -> None:
            raw, own = allocator.raw_allocation(ordinal, address), allocator.reservation_of(ordinal, address)
            _check("raw_allocation", raw, RawAllocation)
            _check("reservation_of", own, Range)
            found.extend((raw, own))

        outcome = attempt(look)
        raw, own = found or (None, None)
        self.recorder.note("look", ordinal=ordinal, address=address, raw=raw, own=own, **outcome)

    # -- the caller's own

    def _use(self, operation: ops.Use) -> Outcome:
        block = self.caller.block(operation.block)
        if block is None:
            return _skipped("no block is there")
        self.caller.use(block, alias=block.alias if operation.alias else None, write=True)
        return _OK

    def _drain(self, operation: ops.Drain) -> Outcome:
        self.driver.stream_synchronize(self.streams[operation.device % len(self.streams)])
        return _OK

    def _progress(self, operation: ops.Progress) -> Outcome:
        self.driver.progress(self.streams[operation.device % len(self.streams)], operation.count)
        return _OK

    def _fail(self, operation: ops.Fail) -> Outcome:
        self.recorder.faults.inject(operation.kind, operation.k, operation.status)
        return _OK

    # -- the end

    def _round_over(self, once: int) -> None:
        """One repetition is over: give up all that the caller has, and let the allocator complete what is pending."""
        while self.contexts:
            self._untag(ops.Untag())
        for alias in tuple(self.caller.aliases):
            self._once(self.requests.hide(alias.block.device, alias.slice))
        for block in tuple(self.caller.blocks):
            self._once(self.requests.give_up(block.device, block.range))
        for ordinal in range(len(self.streams)):
            self._once(self.requests.synchronize(ops.Synchronize(ordinal)))
        free = {device: self.driver.mem_info(device).free for device in range(len(self.streams))}
        self.recorder.note("round", number=once, free=free)

    def _finish(self, allocator: VmmAllocator) -> None:
        """Use everything once more, close while that is queued, and give the reservations back."""
        while self.contexts:
            self._untag(ops.Untag())
        try:
            self._last_uses(self.caller.blocks, self.caller.aliases)
            if self.configuration.streams_end:
                self._destroy_streams()
            self._close(allocator)
            for device in range(len(self.streams)):
                self.driver.device_synchronize(device)
            for reservation in self.caller.reservations.values():
                self._once_more_if_struck(Request("release", {}, reservation.release))
            if not self.configuration.streams_end:
                self._destroy_streams()
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))

    def _last_uses(self, blocks: list[Block], aliases: list[Alias]) -> None:
        for block in blocks:
            self.caller.use(block)
        for alias in aliases:
            self.caller.use(alias.block, alias=alias)

    def _destroy_streams(self) -> None:
        for stream in self.streams:
            self.driver.stream_destroy(stream)

    def _close(self, allocator: VmmAllocator) -> None:
        """Close, once more where that failed, now without failures; and when it is closed."""
        request = Request("close", {}, allocator.close)
        if self._once(request)["status"] != "ok":
            self.recorder.faults.clear()
            self._once(request)
        self._once(request)


def _skipped(why: str) -> Outcome:
    return {"status": "skipped", "code": "", "message": why}


def _check(call: str, answer: object, kind: type) -> None:
    if answer is not None and not isinstance(answer, kind):
        raise TypeError(f"{call} returned {answer!r} where a {kind.__name__} or None was expected")


def _on_a_thread(body: Callable[[], None]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
