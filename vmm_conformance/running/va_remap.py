"""Runs a program of the contract ``va-remap`` and records what happens.

Scopes get an allocator of the harness (`StrictAllocator`), and not one of the subject's: so a fault of the
one is never taken for a fault of the other, every request of a scope is seen as what it is, and each can be
made to fail. See `scope_run` and `watched_allocator` for the notes; besides, ``call`` and ``return`` with
``name`` ``open`` and ``close`` stand around the life of a subject's ``buffer_allocator``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmm_conformance.contracts import (
    UNLIMITED,
    BufferSpec,
    CommandBufferConsumer,
    DeviceConfig,
    Driver,
    DriverError,
    DriverOptions,
    ExecutableBufferAllocator,
    Granularity,
    Range,
    ScopedExecutable,
    SpaceSpec,
    SubjectError,
    status_name,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs import va_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.caller import TokenSource
from vmm_conformance.running.opened import OpenDriver, opened
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.scope_buffers import BoundBuffers
from vmm_conformance.running.scope_run import OK, ScopeRun, skipped
from vmm_conformance.running.scope_work import Baked, RecordedCommands
from vmm_conformance.running.strict_allocator import StrictAllocator
from vmm_conformance.running.threads import Duel, visible_locks
from vmm_conformance.running.watched_allocator import CallFaults, WatchedAllocator, WatchedPlain, Witness

CONSUMER = ("POLICY-144", "POLICY-145", "POLICY-146")
PARSER = "FLAG-153"


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver."""
    options = driver_options(program.configuration)
    history = History()
    with opened(open_driver, options) as driver:
        history.header.update(header(program, subject, driver, options))
        harness = Harness(program.configuration, subject, Recorder(driver, history))
        with visible_locks(harness.duel):
            for number, operation in enumerate(program.operations):
                harness.operation(number, operation)
            harness.finish(len(program.operations))
    return history


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        spaces={0: SpaceSpec(256), 1: SpaceSpec(1024), 2: SpaceSpec(256)},
        schedule="eager" if configuration.eager else "late",
    )


def header(program: Program, subject: Any, driver: Driver, options: DriverOptions) -> dict[str, Any]:
    """What a judge must know."""
    inapplicable = {}
    if not callable(getattr(subject, "command_consumer", None)):
        inapplicable = dict.fromkeys(CONSUMER, "the subject offers no command_consumer")
    if not callable(getattr(subject, "parse_update_mode", None)):
        inapplicable[PARSER] = "the subject offers no parse_update_mode"
    return {
        "contract": program.contract,
        "configuration": program.configuration,
        "options": options,
        "granularity": driver.granularity(0).recommended,
        "consumer": not set(CONSUMER) & set(inapplicable),
        "not_applicable": inapplicable,
    }


class Opened:
    """An executable that is open: the subject's parts of it, and the harness's own execution."""

    def __init__(
        self,
        executable: ScopedExecutable,
        buffers: ExecutableBufferAllocator,
        consumer: CommandBufferConsumer | None,
    ) -> None:
        self.executable = executable
        self.buffers = buffers
        self.consumer = consumer
        self._baked: dict[int, Baked] = {}

    def baked_on(self, device: int) -> Baked:
        """The harness's own execution on a device."""
        return self._baked.setdefault(device, Baked(self.executable))


class Harness:
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, recorder: Recorder) -> None:
        self.configuration = configuration
        self.subject = subject
        self.recorder = recorder
        self.driver = recorder.harness
        self.devices = min(configuration.devices, recorder.driver.device_count)
        self.duel = Duel(lambda: recorder.note("blocked"))
        self.faults = CallFaults()
        self.tokens = TokenSource()
        self.streams = [[self.driver.stream_create(d) for _ in range(2)] for d in range(self.devices)]
        self.witness = Witness(recorder, self.faults, lambda: self._scope_of.get(recorder.thread(), 0))
        self.memory: list[StrictAllocator | None] = [None, None]
        self.allocators: list[WatchedAllocator | WatchedPlain] = []
        self.opened: dict[int, Opened] = {}
        self.bound: dict[tuple[int, int], BoundBuffers] = {}
        self.last: dict[tuple[int, int], tuple[Range, ...]] = {}
        self.held: list[tuple[int, int, int, Range]] = []
        """What the caller holds: scope it is from (0: none), allocator, device, range."""
        self.entitled = {0}
        """Scopes that are open, and 0: the caller."""
        self._scope_of: dict[int, int] = {}
        self._scopes = 0
        self._command_buffers = 0
        self._make_allocators()
        self._handlers = self._table()

    def _make_allocators(self) -> None:
        for label in range(2):
            if self.configuration.vmm:
                memory = StrictAllocator(self.driver, self._configs(), self.witness.scope)
                memory.entitled = self.entitled
                self.memory[label] = memory
                self.allocators.append(WatchedAllocator(memory, self.witness, label))
            else:
                self.allocators.append(WatchedPlain(self.driver, self.witness, label))

    def _configs(self) -> list[DeviceConfig]:
        granule = self.configuration.recommended
        budget = self.configuration.budget * granule or UNLIMITED
        return [
            DeviceConfig(device, self.streams[device][0], budget, self.configuration.exempt)
            for device in range(self.devices)
        ]

    def _table(self) -> dict[type, Callable[[Any], Outcome]]:
        return {
            ops.Run: self._run, ops.Bind: self._bind, ops.Share: self._share, ops.Foreign: self._foreign,
            ops.Nullify: self._nullify, ops.Hold: self._hold, ops.Free: self._free, ops.Drain: self._drain,
            ops.Coarsen: self._coarsen, ops.Synchronize: self._synchronize, ops.Fail: self._fail,
            ops.Close: self._close, ops.ParseMode: self._parse_mode,
        }  # fmt: skip

    def operation(self, number: int, operation: ops.Operation) -> None:
        """Run one operation of the program."""
        self.recorder.op = number
        self.recorder.event(HARNESS, "begin", (operation,))
        try:
            outcome = self._handlers[type(operation)](operation)
        except DriverError as error:
            outcome = {"status": "refused", "code": status_name(error.status), "message": f"the caller's own: {error}"}
        except SubjectError as error:
            outcome = skipped(f"the caller's own allocator: {error}")
        self.recorder.event(HARNESS, "end", (outcome,))

    def finish(self, number: int) -> None:
        """Close what is open with work still queued, then free and let everything run."""
        self.recorder.op = number
        self.faults.clear()
        try:
            for executable in sorted(self.opened):
                self._close(ops.Close(executable))
            for memory in self.memory:
                if memory is not None:
                    memory.close()
            for device in range(self.devices):
                self.driver.device_synchronize(device)
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))

    # -- runs

    def _run(self, operation: ops.Run) -> Outcome:
        executable = operation.executable % len(self.configuration.executables)
        device = operation.device % self.devices
        opened = self._open(executable)
        if opened["status"] != "ok":
            return opened
        self._bound(executable, device)
        self.duel.acquired = 0
        outcome = ScopeRun(self, operation, executable, device).run()
        if operation.probe is not ops.Probe.NONE and not self.duel.settle():
            self.recorder.note("abandoned")
        return outcome

    def challenge(self, first: ScopeRun) -> None:
        """From inside ``first``, begin another run in a second thread."""
        if self.recorder.thread() or not self.duel.acquired:
            return
        executable, device = first.where
        if first.operation.apart:
            if self.devices > 1:
                device = (device + 1) % self.devices
            else:
                executable = (executable + 1) % len(self.configuration.executables)
            if (executable, device) == first.where or executable not in self.opened:
                return
        try:
            self._bound(executable, device)
        except (DriverError, SubjectError):
            return  # the caller has no memory for buffers of a second run; the first is not to suffer for that
        second = ScopeRun(self, ops.Run(executable, device, donate=first.operation.donate), executable, device)
        self.recorder.note("challenge", first=first.number, second=second.number, apart=first.operation.apart)
        self.duel.challenge(lambda: _void(second.run()))

    def next_scope(self) -> int:
        """A number for a scope, never used again."""
        self._scopes += 1
        self.entitled.add(self._scopes)
        return self._scopes

    def works_for(self, scope: int) -> int:
        """The calling thread works for ``scope`` from now on (0: for nobody). Returns whom it worked for before."""
        thread = self.recorder.thread()
        before, self._scope_of[thread] = self._scope_of.get(thread, 0), scope
        return before

    def _open(self, index: int) -> Outcome:
        """The subject's parts of an executable, made afresh unless it is open."""
        if index in self.opened:
            return OK
        planned = self.configuration.executables[index]
        executable = ScopedExecutable(
            planned.buffers, planned.commands, planned.mode, planned.multi_device, f"executable{index}"
        )

        def make() -> None:
            buffers = self.subject.buffer_allocator(self.recorder.subject, executable)
            consumer = None
            if self.configuration.consumer and callable(getattr(self.subject, "command_consumer", None)):
                consumer = self.subject.command_consumer(executable, lambda device: self._new_buffer(executable))
            self.opened[index] = Opened(executable, buffers, consumer)

        self.recorder.note("call", scope=0, name="open", executable=index)
        outcome = attempt(make)
        self.recorder.note("return", scope=0, name="open", executable=index, outcome=outcome)
        return outcome

    def _new_buffer(self, executable: ScopedExecutable) -> RecordedCommands:
        self._command_buffers += 1
        return RecordedCommands(self.witness, self.driver, executable, self.tokens, self._command_buffers)

    def _bound(self, executable: int, device: int) -> BoundBuffers:
        where = executable, device
        if where not in self.bound:
            buffers = self.configuration.executables[executable].buffers
            before = self.works_for(0)  # they are the caller's, also where a run is met in its execution
            try:
                self.bound[where] = BoundBuffers(self.driver, self.memory[0], device, buffers)
            finally:
                self.works_for(before)
        return self.bound[where]

    def _close(self, operation: ops.Close) -> Outcome:
        index = operation.executable % len(self.configuration.executables)
        opened = self.opened.pop(index, None)
        if opened is None:
            return skipped("it is not open")
        for where in [where for where in self.last if where[0] == index]:
            del self.last[where]
        self.recorder.note("call", scope=0, name="close", executable=index)
        outcome = attempt(lambda: opened.buffers.close())
        self.recorder.note("return", scope=0, name="close", executable=index, outcome=outcome)
        return outcome

    # -- what callers do to their buffers

    def _parameter(self, operation: Any) -> tuple[BoundBuffers, int | None]:
        executable = operation.executable % len(self.configuration.executables)
        bound = self._bound(executable, operation.device % self.devices)
        return bound, bound.parameter(operation.buffer)

    def _bind(self, operation: ops.Bind) -> Outcome:
        bound, index = self._parameter(operation)
        if index is None:
            return skipped("the executable has no parameter")
        bound.bind(index, operation.to)
        return OK

    def _share(self, operation: ops.Share) -> Outcome:
        bound, index = self._parameter(operation)
        other = bound.parameter(operation.other)
        if index is None or other is None or not bound.share(index, other):
            return skipped("there are no two parameters that are alike")
        return OK

    def _foreign(self, operation: ops.Foreign) -> Outcome:
        bound, index = self._parameter(operation)
        if index is None:
            return skipped("the executable has no parameter")
        bound.foreign(index)
        return OK

    def _nullify(self, operation: ops.Nullify) -> Outcome:
        bound, index = self._parameter(operation)
        if index is None or not bound.nullify(index):
            return skipped("there is no such parameter that may be null")
        return OK

    def allocate(self, label: int, device: int, buffer: BufferSpec) -> Range:
        """The caller's own allocation. Raises RESOURCE_EXHAUSTED."""
        memory = self.memory[label]
        if memory is not None:
            try:
                return memory.allocate(device, buffer.size, space=buffer.space)
            finally:
                self.recorder.note("own")  # what this has taken away is not the subject's doing
        return Range(self.driver.alloc(buffer.size, device=device, space=buffer.space), buffer.size)

    def hold(self, scope: int, label: int, device: int, range_: Range) -> None:
        """The caller owns ``range_`` from now on, which it has from ``scope`` (0: from nobody)."""
        memory = self.memory[label]
        if memory is not None:
            memory.adopt(device, range_)
        self.held.append((scope, label, device, range_))

    def free(self, number: int) -> None:
        """The caller frees the ``number``-th thing that it holds."""
        scope, label, device, range_ = self.held.pop(number)
        memory = self.memory[label]
        if memory is None:
            self.driver.device_synchronize(device)
            self.driver.free(range_.address)
            return
        try:
            memory.deallocate(device, range_)
        except SubjectError as error:
            self.recorder.note("not freed", scope=scope, range=range_, reason=getattr(error, "reason", ""))

    def order(self, device: int, first: int, then: int) -> None:
        """Let stream ``then`` wait for all that ``first`` has been given."""
        event = self.driver.event_create(device)
        self.driver.event_record(event, first)
        self.driver.stream_wait_event(then, event)

    def _hold(self, operation: ops.Hold) -> Outcome:
        device = operation.device % self.devices
        made = self.allocate(0, device, BufferSpec(max(1, operation.size), space=operation.space % 3))
        self.hold(0, 0, device, made)
        return OK

    def _free(self, operation: ops.Free) -> Outcome:
        if not self.held:
            return skipped("the caller holds nothing")
        self.free(operation.held % len(self.held))
        return OK

    def _drain(self, operation: ops.Drain) -> Outcome:
        for memory in self.memory:
            if memory is not None:
                memory.synchronize_pending_operations(operation.device % self.devices)
        return OK

    def _coarsen(self, operation: ops.Coarsen) -> Outcome:
        for memory in self.memory:
            if memory is not None:
                memory.factor = 3 - memory.factor
                self.recorder.note("granularity", factor=memory.factor)
        return OK

    def _synchronize(self, operation: ops.Synchronize) -> Outcome:
        self.driver.device_synchronize(operation.device % self.devices)
        return OK

    def _fail(self, operation: ops.Fail) -> Outcome:
        self.faults.inject(operation.call, operation.k, operation.code)
        return OK

    def _parse_mode(self, operation: ops.ParseMode) -> Outcome:
        parse = getattr(self.subject, "parse_update_mode", None)
        if not callable(parse):
            return skipped("the subject offers no parse_update_mode")
        answer: list[object] = []
        outcome = attempt(lambda: answer.append(parse(operation.text)))
        self.recorder.note("mode", text=operation.text, answer=answer[0] if answer else None, outcome=outcome)
        return outcome


def _void(_: object) -> None:
    """Drop a value."""
