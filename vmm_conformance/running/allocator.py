"""Runs a program of the contract ``allocator`` and records what happens.

Each call on the subject stands between two notes: ``call`` with ``name`` (``open``, ``allocate``,
``deallocate``, ``grow``, ``close``), ``device`` and the call's arguments, and ``return`` with ``status``,
``code`` and ``message``, for a block also ``block`` (a number that is never used again), ``address``,
``size`` and ``committed``. The harness's ``launch`` events between them are the caller's work: reads of
what earlier ones wrote, and writes of new tokens. `allocator_facts.header` says what the driver is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vmm_conformance.contracts import (
    Allocator,
    Block,
    Driver,
    DriverError,
    DriverOptions,
    Range,
    Write,
    capability,
    status_name,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs import allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator_facts import driver_options, header
from vmm_conformance.running.caller import TokenSource, marks
from vmm_conformance.running.caller_order import CallerOrder, Moment
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder

OpenDriver = Callable[[DriverOptions], Driver]


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver."""
    options = driver_options(program.configuration)
    driver = open_driver(options)
    history = History()
    try:
        history.header.update(header(program, subject, driver, options))
        running = _Run(program.configuration, subject, Recorder(driver, history))
        for number, operation in enumerate(program.operations):
            running.operation(number, operation)
        running.finish(len(program.operations))
    finally:
        driver.listen(None)
        driver.close()
    return history


class _Held:
    """A live block: where its tokens are (offset and length), and the last the caller did with it.

    ``told`` is the stream that the allocator last heard of for it.
    """

    __slots__ = ("block", "device", "id", "last", "marks", "size", "told")

    def __init__(self, identity: int, device: int, block: Block, size: int, last: Moment) -> None:
        self.id = identity
        self.device = device
        self.block = block
        self.size = size
        self.last = last
        self.told = last.stream
        self.marks: list[Range] = []


class _Run:
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, recorder: Recorder) -> None:
        self.subject = subject
        self.recorder = recorder
        self.driver = recorder.harness
        self.devices = min(configuration.devices, recorder.driver.device_count)
        self.streams_each = configuration.streams
        self.spaces = tuple(recorder.history.header["granularity"])
        self.grows = bool(capability(subject, "grow"))
        self.order = CallerOrder()
        self.tokens = TokenSource()
        self.streams = [
            self.driver.stream_create(device)
            for device in range(self.devices)
            for _ in range(configuration.streams)
        ]
        self.events: dict[int, int] = {}
        self.allocators: dict[int, Allocator] = {}
        self.live: list[_Held] = []
        self.blocks = 0
        self._handlers = self._table()

    def _table(self) -> dict[type, Callable[[Any], Outcome]]:
        """What to do for each kind of operation."""
        return {
            ops.Allocate: self._allocate,
            ops.Deallocate: self._on_block(self._deallocate),
            ops.Grow: self._on_block(self._grow),
            ops.Use: self._on_block(self._use),
            ops.Check: self._on_block(self._check),
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
        try:
            outcome = self._handlers[type(operation)](operation)
        except DriverError as error:
            outcome = _outcome("refused", status_name(error.status), f"the caller's own call: {error}")
        self.recorder.event(HARNESS, "end", (outcome,))

    def finish(self, number: int) -> None:
        """Read all live blocks, close with that work still queued, then let everything run."""
        self.recorder.op = number
        try:
            for held in self.live:
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
        if made is None:
            self.recorder.note("return", **outcome)
        else:
            outcome["message"] = f"block {block}: {made.committed} bytes at {made.address:#x}"
            self.recorder.note("return", **outcome, block=block, **made._asdict())
        return outcome, made

    def _open(self, device: int) -> Outcome:
        """A fresh allocator on ``device``, unless one is open."""
        if device in self.allocators:
            return _OK

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
            held = _Held(self.blocks, device, block, size, self.order.submit(stream))
            self.live.append(held)
            self._submit(held, stream, marks(size))
        return outcome

    def _deallocate(self, held: _Held, stream: int, operation: ops.Deallocate) -> Outcome:
        self._submit(held, stream)
        return self._give_up(held, stream)

    def _give_up(self, held: _Held, stream: int) -> Outcome:
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

    def _grow(self, held: _Held, stream: int, operation: ops.Grow) -> Outcome:
        if not self.grows:
            return _skipped("the subject declares grow=False")
        size = operation.size if operation.size > held.size else held.size + operation.size
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
            held.last = self.order.submit(stream)
            self._submit(held, stream, marks(size)[-1:])
        return outcome

    def _close(self, operation: ops.Close) -> Outcome:
        device = operation.device % self.devices
        if device not in self.allocators:
            return _skipped("nothing is open on this device")
        return self._close_device(device)

    def _close_device(self, device: int) -> Outcome:
        """Close and close again; where a failure was injected, once more without it."""
        for held in [held for held in self.live if held.device == device]:
            if not self.order.ordered(held.last, held.told):
                # The allocator cannot know of work on a stream that it was never told of.
                self._give_up(held, held.last.stream)
        self.live = [held for held in self.live if held.device != device]
        allocator = self.allocators.pop(device)
        outcome, _ = self._call("close", device, allocator.close)
        if outcome["status"] != "ok":
            self.recorder.faults.clear()
            self._call("close", device, allocator.close)
        self._call("close", device, allocator.close)
        return outcome

    # -- the caller's work

    def _on_block(self, handler: Callable[[_Held, int, Any], Outcome]) -> Callable[[Any], Outcome]:
        """``handler`` with the live block that an operation means, and a stream that may use it."""

        def handle(operation: Any) -> Outcome:
            if not self.live:
                return _skipped("no block is live")
            held = self.live[operation.block % len(self.live)]
            stream = held.device * self.streams_each + operation.stream % self.streams_each
            return handler(held, stream if self.order.ordered(held.last, stream) else held.last.stream, operation)

        return handle

    def _submit(self, held: _Held, stream: int, written: tuple[Range, ...] = ()) -> None:
        """Queue work that reads the block's tokens, and writes new ones where ``written`` says."""
        base = held.block.address
        held.last = self.order.submit(stream)
        reads = [Range(base + mark.address, mark.size) for mark in held.marks]
        writes = [Write(base + mark.address, self.tokens.take(mark.size)) for mark in written]
        if written:
            held.marks = [mark for mark in held.marks if not _overlaps(mark, written)] + list(written)
        if reads or writes:
            self.driver.launch(self.streams[stream], reads=reads, writes=writes)

    def _use(self, held: _Held, stream: int, operation: ops.Use) -> Outcome:
        self._submit(held, stream, marks(held.size))
        return _OK

    def _check(self, held: _Held, stream: int, operation: ops.Check) -> Outcome:
        self._submit(held, stream)
        return _OK

    def _order(self, operation: ops.Order) -> Outcome:
        first, then = operation.first % len(self.streams), operation.then % len(self.streams)
        if first == then:
            return _skipped("a stream is always in order with itself")
        if first not in self.events:
            self.events[first] = self.driver.event_create(first // self.streams_each)
        self.driver.event_record(self.events[first], self.streams[first])
        self.driver.stream_wait_event(self.streams[then], self.events[first])
        self.order.wait(first, then)
        return _OK

    def _synchronize(self, operation: ops.Synchronize) -> Outcome:
        stream = operation.stream % len(self.streams)
        self.driver.stream_synchronize(self.streams[stream])
        self.order.synchronize(stream)
        return _OK

    def _progress(self, operation: ops.Progress) -> Outcome:
        self.driver.progress(self.streams[operation.stream % len(self.streams)], operation.count)
        return _OK

    def _fail(self, operation: ops.Fail) -> Outcome:
        self.recorder.faults.inject(operation.kind, operation.k, operation.status)
        return _OK


_OK: Outcome = {"status": "ok", "code": "", "message": ""}


def _outcome(status: str, code: str, message: str) -> Outcome:
    return {"status": status, "code": code, "message": message}


def _skipped(why: str) -> Outcome:
    return _outcome("skipped", "", why)


def _overlaps(mark: Range, written: tuple[Range, ...]) -> bool:
    return any(mark.address < other.end and other.address < mark.end for other in written)


def as_block(call: str, answer: object) -> Block:
    """``answer`` as a block. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Block) and all(type(number) is int for number in answer):
        return answer
    raise TypeError(f"{call} returned {answer!r} where a Block (address, size, committed) was expected")

