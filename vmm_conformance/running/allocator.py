"""Runs a program of the contract ``allocator`` and records what happens.

Each call on the subject stands between two notes: ``call`` with ``name`` (``open``, ``allocate``,
``deallocate``, ``grow``, ``close`` and those of optional parts), ``device`` and the call's arguments, and
``return`` with ``status``, ``code`` and ``message``, for a block also ``block`` (a number that is never used
again), ``address``, ``size`` and ``committed``, for statistics their numbers.
The harness's ``launch`` events between them are the caller's work: reads of what earlier ones wrote, and
writes of new tokens. `allocator_facts.header` says what the driver is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vmm_conformance.contracts import (
    Allocator,
    Block,
    DriverError,
    Range,
    Statistics,
    Write,
    capability,
    status_name,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs import allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator_captures import Captures
from vmm_conformance.running.allocator_facts import driver_options, header
from vmm_conformance.running.allocator_holds import Holds
from vmm_conformance.running.allocator_parts import OK, Held, as_block, outcome_of, skipped
from vmm_conformance.running.allocator_paths import Paths
from vmm_conformance.running.caller import TokenSource, marks
from vmm_conformance.running.caller_order import CallerOrder
from vmm_conformance.running.fitted import fitted
from vmm_conformance.running.opened import OpenDriver, opened
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver."""
    options = driver_options(program.configuration)
    history = History()
    with opened(open_driver, options) as driver:
        program = fitted(program, driver)
        history.header.update(header(program, subject, driver, options))
        running = _Run(program.configuration, subject, Recorder(driver, history))
        for once in range(program.configuration.rounds):
            for number, operation in enumerate(program.operations):
                running.operation(number, operation)
            if program.configuration.rounds > 1:
                running.round_over(len(program.operations), once)
        running.finish(len(program.operations))
    return history


class _Run(Captures):
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, recorder: Recorder) -> None:
        super().__init__(subject)
        self.recorder = recorder
        self.driver = recorder.harness
        self.devices = min(configuration.devices, recorder.driver.device_count)
        self.streams_each = configuration.streams
        self.spaces = tuple(recorder.history.header["granularity"])
        self.grows = bool(capability(subject, "grow"))
        self.order = CallerOrder()
        self.holds = Holds(recorder, subject)
        self.paths = Paths(subject)
        self.tokens = TokenSource()
        self.streams = [
            self.driver.stream_create(device)
            for device in range(self.devices)
            for _ in range(configuration.streams)
        ]
        self.events: dict[int, int] = {}
        self.allocators: dict[int, Allocator] = {}
        self.live: list[Held] = []
        self.blocks = 0
        self._handlers = self._table()

    def _table(self) -> dict[type, Callable[[Any], Outcome]]:
        """What to do for each kind of operation."""
        return {
            ops.Allocate: self._allocate,
            ops.Deallocate: self._on_block(self._deallocate),
            ops.Grow: self._on_block(self._grow),
            ops.Shrink: self._on_block(self._shrink),
            **self.parts_table(),
            **self.captures_table(),
            ops.Use: self._on_block(self._use),
            ops.Check: self._on_block(self._check),
            ops.Hold: self._hold,
            ops.Order: self._order,
            ops.Synchronize: self._synchronize,
            ops.Progress: self._progress,
            ops.Fail: self._fail,
            ops.Close: self._close,
        }

    def operation(self, number: int, operation: ops.Operation) -> None:
        """Run one operation of the program."""
        self.recorder.op = number
        self.recorder.event(HARNESS, "begin", (operation,))
        if type(operation) not in ops.WHILE_HELD:
            self.holds.let_go()
        try:
            outcome = self._handlers[type(operation)](operation)
        except DriverError as error:
            outcome = outcome_of("refused", status_name(error.status), f"the caller's own call: {error}")
        self.recorder.event(HARNESS, "end", (outcome,))

    def round_over(self, number: int, once: int) -> None:
        """One repetition is over: give back all that the caller has, and wait for all work.

        What is held by then the allocator holds for itself. The note ``round`` has each device's free bytes.
        """
        self.recorder.op = number
        self.holds.let_go()
        try:
            for device in tuple(self.captures):
                self.drop_capture(device)
            for device in tuple(self.paused):
                self.awake(device)
            self._wait_for_all()
            for held in tuple(self.live):
                self._give_up(held, held.last.stream)
            self._wait_for_all()
            free = {device: self.driver.mem_info(device).free for device in range(self.devices)}
            self.recorder.note("round", number=once, free=free)
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))

    def _wait_for_all(self) -> None:
        for device in range(self.devices):
            self.driver.device_synchronize(device)
        for stream in range(len(self.streams)):
            self.order.synchronize(stream)

    def finish(self, number: int) -> None:
        """Read all live blocks, close with that work still queued, then let everything run."""
        self.recorder.op = number
        self.holds.let_go()
        try:
            for device in list(self.captures):
                self.drop_capture(device)
            for held in self.live:
                if held.device not in self.paused:
                    self._submit(held, held.last.stream)
            self.recorder.faults.clear()
            for device in sorted(self.allocators):
                self._close_device(device)
            for device in range(self.devices):
                self.driver.device_synchronize(device)
            for event in self.events.values():
                self.driver.event_destroy(event)
            for stream in self.streams:
                self.driver.stream_destroy(stream)
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))

    # -- calls on the subject

    def _call(
        self, name: str, device: int, action: Callable[[], object], block: int = 0, **arguments: Any
    ) -> tuple[Outcome, Block | None]:
        """One call on the subject, recorded; once more where an injected failure made it fail.

        A block that is returned gets the number ``block``.
        """
        self.holds.before(name)
        before = len(self.recorder.history.events)
        outcome, made = self._call_once(name, device, action, block, **arguments)
        if outcome["status"] == "ok" or name == "close" or not self._struck_since(before):
            return outcome, made
        again, made = self._call_once(name, device, action, block, **arguments)
        return {**again, "message": f"{again['message'] or again['status']} (before: {outcome['message']})"}, made

    def _struck_since(self, before: int) -> bool:
        return any(event.result == "injected" for event in self.recorder.history.events[before:])

    def _call_once(
        self, name: str, device: int, action: Callable[[], object], block: int, **arguments: Any
    ) -> tuple[Outcome, Block | None]:
        answer: list[object] = []
        self.recorder.note("call", name=name, device=device, block=block, **arguments)
        outcome = attempt(lambda: answer.append(action()))
        made = answer[0] if answer and isinstance(answer[0], Block) else None
        told = self.paths.behind(name, self.allocators.get(device))
        if made is None:
            counted = answer[0]._asdict() if answer and isinstance(answer[0], Statistics) else {}
            self.recorder.note("return", **outcome, **counted, **told)
        else:
            outcome["message"] = f"block {block}: {made.committed} bytes at {made.address:#x}"
            self.recorder.note("return", **outcome, block=block, **made._asdict(), **told)
        return outcome, made

    def _open(self, device: int) -> Outcome:
        """A fresh allocator on ``device``, unless one is open."""
        if device in self.allocators:
            return OK

        def make() -> None:
            self.allocators[device] = self.subject.allocator(self.recorder.subject, device)

        return self._call("open", device, make)[0]

    def _allocate(self, operation: ops.Allocate) -> Outcome:
        stream = operation.stream % len(self.streams)
        device = stream // self.streams_each
        space = self.spaces[operation.space % len(self.spaces)]
        opened = self._open(device)
        if opened["status"] != "ok":
            return opened
        if not self.awake(device):
            return skipped("the allocator stays paused")
        allocator, handle, size = self.allocators[device], self.streams[stream], operation.size
        self.blocks += 1
        outcome, block = self._call(
            "allocate",
            device,
            lambda: as_block("allocate", allocator.allocate(size, stream=handle, space=space)),
            self.blocks,
            size=size,
            stream=handle,
            space=space,
        )
        if block is not None:
            held = Held(self.blocks, device, block, size, self.order.submit(stream))
            self.live.append(held)
            self.resized(held)
            self._submit(held, stream, marks(size))
        return outcome

    def _deallocate(self, held: Held, stream: int, operation: ops.Deallocate) -> Outcome:
        if held.device not in self.paused:
            self._submit(held, stream)
        return self._give_up(held, stream)

    def _give_up(self, held: Held, stream: int) -> Outcome:
        self.wait(held)
        allocator, handle = self.allocators[held.device], self.streams[stream]
        outcome, _ = self._call(
            "deallocate",
            held.device,
            partial(allocator.deallocate, held.block, stream=handle),
            held.id,
            stream=handle,
        )
        if outcome["status"] == "ok":
            self.live.remove(held)
        return outcome

    def _grow(self, held: Held, stream: int, operation: ops.Grow) -> Outcome:
        if not self.grows:
            return skipped("the subject declares grow=False")
        size = operation.size if operation.size > held.size else held.size + operation.size
        self.wait(held)
        allocator, handle = self.allocators[held.device], self.streams[stream]
        outcome, block = self._call(
            "grow",
            held.device,
            lambda: as_block("grow", allocator.grow(held.block, size, stream=handle)),
            held.id,
            size=size,
            stream=handle,
        )
        if block is not None:
            held.block, held.size, held.told = block, size, stream
            self.resized(held)
            held.last = self.order.submit(stream)
            self._submit(held, stream, marks(size)[-1:])
        return outcome

    def _close(self, operation: ops.Close) -> Outcome:
        device = operation.device % self.devices
        if device not in self.allocators:
            return skipped("nothing is open on this device")
        return self._close_device(device)

    def _close_device(self, device: int) -> Outcome:
        """Close and close again; where a failure was injected, once more without it."""
        self.drop_capture(device)
        self.captures.pop(device, None)
        for held in self.on(device):
            if not self.order.ordered(held.last, held.told):
                # The allocator cannot know of work on a stream that it was never told of.
                self._give_up(held, held.last.stream)
        self.wait(*self.on(device))
        self.live = [held for held in self.live if held.device != device]
        self.paused.discard(device)
        allocator = self.allocators.pop(device)
        outcome, _ = self._call("close", device, allocator.close)
        if outcome["status"] != "ok":
            self.recorder.faults.clear()
            self._call("close", device, allocator.close)
        self._call("close", device, allocator.close)
        return outcome

    # -- the caller's work

    def _on_block(self, handler: Callable[[Held, int, Any], Outcome]) -> Callable[[Any], Outcome]:
        """``handler`` with the live block that an operation means, and a stream that may use it."""

        def handle(operation: Any) -> Outcome:
            if not self.live:
                return skipped("no block is live")
            held = self.live[operation.block % len(self.live)]
            if type(operation) is not ops.Deallocate and not self.awake(held.device):
                return skipped("the allocator stays paused")
            if self.is_kept(held) and type(operation) not in (ops.Use, ops.Check):
                return skipped("the block is kept for captured work")
            stream = held.device * self.streams_each + operation.stream % self.streams_each
            return handler(held, stream if self.order.ordered(held.last, stream) else held.last.stream, operation)

        return handle

    def _submit(self, held: Held, stream: int, written: tuple[Range, ...] = ()) -> None:
        """Queue work that reads the block's tokens, and writes new ones where ``written`` says."""
        base = held.block.address
        held.last = self.order.submit(stream)
        if self.capturing(stream):
            self.capture_reads(held, stream)
            return
        reads = [Range(base + mark.address, mark.size) for mark in held.marks]
        writes = [Write(base + mark.address, self.tokens.take(mark.size)) for mark in written]
        if written:
            held.marks = [mark for mark in held.marks if not _overlaps(mark, written)] + list(written)
        if reads or writes:
            self.driver.launch(self.streams[stream], reads=reads, writes=writes)

    def _use(self, held: Held, stream: int, operation: ops.Use) -> Outcome:
        self._submit(held, stream, marks(held.size))
        return OK

    def _check(self, held: Held, stream: int, operation: ops.Check) -> Outcome:
        self._submit(held, stream)
        return OK

    def _hold(self, operation: ops.Hold) -> Outcome:
        stream = operation.stream % len(self.streams)
        if self.capturing(stream):
            return skipped("the stream is captured")
        return self.holds.hold(self.streams[stream], stream // self.streams_each)

    def _order(self, operation: ops.Order) -> Outcome:
        first, then = operation.first % len(self.streams), operation.then % len(self.streams)
        if first == then:
            return skipped("a stream is always in order with itself")
        if self.capturing(first) or self.capturing(then):
            return skipped("a stream is captured")
        if first not in self.events:
            self.events[first] = self.driver.event_create(first // self.streams_each)
        self.driver.event_record(self.events[first], self.streams[first])
        self.driver.stream_wait_event(self.streams[then], self.events[first])
        self.order.wait(first, then)
        return OK

    def _synchronize(self, operation: ops.Synchronize) -> Outcome:
        stream = operation.stream % len(self.streams)
        if self.capturing(stream):
            return skipped("the stream is captured")
        self.driver.stream_synchronize(self.streams[stream])
        self.order.synchronize(stream)
        return OK

    def _progress(self, operation: ops.Progress) -> Outcome:
        self.driver.progress(self.streams[operation.stream % len(self.streams)], operation.count)
        return OK

    def _fail(self, operation: ops.Fail) -> Outcome:
        self.recorder.faults.inject(operation.kind, operation.k, operation.status)
        return OK


def _overlaps(mark: Range, written: tuple[Range, ...]) -> bool:
    return any(mark.address < other.end and other.address < mark.end for other in written)
