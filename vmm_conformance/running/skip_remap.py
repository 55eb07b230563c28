"""Runs a program of the contract ``skip-remap`` and records what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from vmm_conformance.contracts import (
    Buffer,
    Command,
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Executable,
    ExecuteFailed,
    Granularity,
    Range,
    Slot,
    StepExecutor,
    UpdateMode,
    Use,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.history.observe import observations
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.caller import Caller, CallerBuffer, TokenSource
from vmm_conformance.running.execution import Execution, Plan, plan
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.threads import Duel, visible_locks

OpenDriver = Callable[[DriverOptions], Driver]

COMPARED_THRESHOLD = 1024
"""Copy threshold in bytes of the comparison's third run, where the program sets none."""


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver.

    Under ``configuration.compare`` the program also runs with skip-remap off, on, and on with shadows;
    what those runs observed is appended as notes (STEP-158).
    """
    history = _run_once(program, subject, open_driver)
    if program.configuration.compare:
        recorder_op = len(program.operations)
        for name, variant in _variants(program).items():
            seen = observations(_run_once(variant, subject, open_driver))
            event = history.events[-1]
            history.events.append(
                type(event)(event.seq + 1, recorder_op, 0, HARNESS, "note", ("variant", {"name": name, "seen": seen}))
            )
    return history


def _variants(program: Program) -> dict[str, Program]:
    def changed(skip: bool, shadows: bool) -> Program:
        executables = tuple(
            replace(e, skip_remap=skip, copy_threshold=(e.copy_threshold or COMPARED_THRESHOLD) if shadows else 0)
            for e in program.configuration.executables
        )
        configuration = replace(program.configuration, executables=executables, compare=False)
        return replace(program, configuration=configuration)

    return {"skip off": changed(False, False), "skip on": changed(True, False), "shadows": changed(True, True)}


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=16 << 20,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        capabilities=DriverCapabilities(
            unmap_spans_mappings=configuration.unmap_spans,
            set_access_spans_mappings=configuration.access_spans,
            partial_map=configuration.partial_map,
        ),
        schedule="eager" if configuration.eager else "late",
    )


def executable_of(planned: ops.ExecutablePlan, name: str) -> Executable:
    """The contract's form of a planned executable."""
    return Executable(
        slots=tuple(Slot(s.space, s.use, s.constant) for s in planned.slots),
        commands=tuple(Command(c.slots, c.traced) for c in planned.commands),
        mode=planned.mode,
        platform=planned.platform,
        vmm=planned.vmm,
        skip_remap=planned.skip_remap,
        copy_threshold=planned.copy_threshold,
        name=name,
    )


def _run_once(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    options = driver_options(program.configuration)
    driver = open_driver(options)
    history = History({"contract": program.contract, "configuration": program.configuration, "options": options})
    try:
        with ExitStack() as stack:
            run = _Run(program, subject, Recorder(driver, history))
            if any(isinstance(operation, ops.Step) and operation.probe for operation in program.operations):
                stack.enter_context(visible_locks(run.duel))
            run.all()
    finally:
        driver.listen(None)
        driver.close()
    return history


class _Bound:
    """The buffers of one executable on one device, and how it is executed there."""

    def __init__(self, buffers: list[CallerBuffer], execution: Execution) -> None:
        self.buffers = buffers
        self.execution = execution


class _Run:
    """One program being run."""

    def __init__(self, program: Program, subject: Any, recorder: Recorder) -> None:
        self.configuration: ops.Configuration = program.configuration
        self.program = program
        self.recorder = recorder
        self.driver = recorder.harness
        self.duel = Duel(lambda: recorder.note("blocked"))
        self.tokens = TokenSource()
        self.subject = subject
        ids = [0]
        self.callers = [
            Caller(self.driver, d, self.configuration.recommended, self.tokens, ids)
            for d in range(self.configuration.devices)
        ]
        self.streams: list[list[int]] = []
        self.executables: list[Executable] = []
        self.executors: list[StepExecutor | None] = []
        self.bound: dict[tuple[int, int], _Bound] = {}
        self.actions: dict[type, Callable[[Any], Outcome]] = {
            ops.Step: self.step, ops.Move: self.move, ops.Swap: self.swap, ops.Bind: self.bind,
            ops.Recreate: self.recreate, ops.Resize: self.resize, ops.Disturb: self.disturb,
            ops.Refill: self.refill, ops.Fail: self.fail, ops.Progress: self.progress,
            ops.Order: self.order, ops.Synchronize: self.synchronize, ops.Close: self.close,
        }  # fmt: skip

    def all(self) -> None:
        """Run every operation, close what is open while work is pending, then drain."""
        self.start()
        for index, operation in enumerate(self.program.operations):
            self.recorder.op = index
            self.recorder.event(HARNESS, "begin", (operation,))
            outcome = self.actions[type(operation)](operation)
            self.recorder.event(HARNESS, "end", (outcome,))
        self.recorder.op = len(self.program.operations)
        self.recorder.faults.clear()
        for index in range(len(self.executors)):
            self.close(ops.Close(index))
        for device in range(self.configuration.devices):
            self.driver.device_synchronize(device)
        self.recorder.note("drained")

    def start(self) -> None:
        """Make streams, executables and executors."""
        for device in range(self.configuration.devices):
            self.streams.append([self.driver.stream_create(device) for _ in range(self.configuration.streams)])
        for index, planned in enumerate(self.configuration.executables):
            executable = executable_of(planned, f"executable{index}")
            self.executables.append(executable)
            made: list[StepExecutor] = []
            outcome = attempt(
                lambda e=executable, made=made: made.append(self.subject.step_executor(self.recorder.subject, e))  # type: ignore[misc] # bound now
            )
            self.executors.append(made[0] if made else None)
            self.recorder.note("built", executable=index, outcome=outcome)

    # -- operands

    def place(self, operation: Any) -> tuple[int, int, _Bound]:
        """The executable, device and buffers that an operation names."""
        index = operation.executable % len(self.executables)
        device = operation.device % self.configuration.devices
        bound = self.bound.get((index, device))
        if bound is None:
            slots = self.configuration.executables[index].slots
            buffers = [self.fresh(index, device, slot, slots[slot].size) for slot in range(len(slots))]
            execution = Execution(self.driver, device, len(slots), capture=self.configuration.capture)
            bound = self.bound[index, device] = _Bound(buffers, execution)
        return index, device, bound

    def fresh(self, index: int, device: int, slot: int, size: int) -> CallerBuffer:
        """A new buffer for a slot; says so in the history."""
        planned = self.configuration.executables[index]
        plan_ = planned.slots[slot]
        buffer, contents = self.callers[device].make(
            size, space=plan_.space, extra=plan_.extra, vmm=planned.vmm, read_only=plan_.read_only
        )
        self.recorder.note("contents", allocation=buffer.allocation, tokens=contents)
        return buffer

    def stream(self, device: int, stream: int) -> int:
        """The driver's stream for a device's stream number."""
        streams = self.streams[device]
        return streams[stream % len(streams)]

    # -- what callers do between steps

    def move(self, operation: ops.Move) -> Outcome:
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        return self._rebind(index, device, bound, slot, bound.buffers[slot].size)

    def resize(self, operation: ops.Resize) -> Outcome:
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        return self._rebind(index, device, bound, slot, operation.size)

    def _rebind(self, index: int, device: int, bound: _Bound, slot: int, size: int) -> Outcome:
        if self._constant(index, slot):
            return attempt(lambda: None)
        return attempt(lambda: bound.buffers.__setitem__(slot, self.fresh(index, device, slot, size)))

    def _constant(self, index: int, slot: int) -> bool:
        """Constants stay where they are: callers promise so."""
        return self.configuration.executables[index].slots[slot].constant

    def swap(self, operation: ops.Swap) -> Outcome:
        _, _, bound = self.place(operation)
        a, b = operation.slot % len(bound.buffers), operation.other % len(bound.buffers)
        if self._exchangeable(operation, a, b):
            bound.buffers[a], bound.buffers[b] = bound.buffers[b], bound.buffers[a]
        return attempt(lambda: None)

    def bind(self, operation: ops.Bind) -> Outcome:
        _, _, bound = self.place(operation)
        a, b = operation.slot % len(bound.buffers), operation.other % len(bound.buffers)
        if self._exchangeable(operation, a, b):
            bound.buffers[a] = bound.buffers[b]
        return attempt(lambda: None)

    def _exchangeable(self, operation: Any, a: int, b: int) -> bool:
        """Slots share buffers only of one space and one set of rights; constants share none."""
        index = operation.executable % len(self.executables)
        slots = self.configuration.executables[index].slots
        alike = (slots[a].space, slots[a].read_only) == (slots[b].space, slots[b].read_only)
        return alike and not slots[a].constant and not slots[b].constant

    def recreate(self, operation: ops.Recreate) -> Outcome:
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        old = bound.buffers[slot]
        if old.handle is None or self._constant(index, slot):
            return attempt(lambda: None)

        def again() -> None:
            new, contents = self.callers[device].recreate(old)
            self.recorder.note("contents", allocation=new.allocation, tokens=contents)
            for other in self.bound.values():
                other.buffers = [new if b is old else b for b in other.buffers]

        return attempt(again)

    def disturb(self, operation: ops.Disturb) -> Outcome:
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        buffer = bound.buffers[slot]
        if self._constant(index, slot):
            return attempt(lambda: None)
        if operation.damage is ops.Damage.UNMAPPED:
            small = buffer.size <= self.configuration.executables[index].copy_threshold
            if buffer.handle is None or not buffer.visible or small or slot not in self._selected(index):
                return attempt(lambda: None)
            return attempt(lambda: self.callers[device].unmap(buffer))
        lost = CallerBuffer(buffer.size, buffer.space, buffer.read_only, buffer.allocation)
        lost.committed = buffer.committed
        lost.address = 0 if operation.damage is ops.Damage.NULL else buffer.address
        bound.buffers[slot] = lost
        return attempt(lambda: None)

    def _selected(self, index: int) -> set[int]:
        """Slots that some command names: execution reaches them through an address of the executor's."""
        planned = self.configuration.executables[index]
        gated = not planned.vmm or planned.mode is not UpdateMode.NEVER_UPDATE
        named = {slot for command in planned.commands for slot in command.slots}
        return set() if gated else {s for s in named if s < len(planned.slots) and not planned.slots[s].constant}

    def refill(self, operation: ops.Refill) -> Outcome:
        _, device, bound = self.place(operation)
        buffer = bound.buffers[operation.slot % len(bound.buffers)]
        if not buffer.visible or buffer.read_only:
            return attempt(lambda: None)
        stream = self.stream(device, operation.stream)
        contents = {offset: self.tokens.take(length) for offset, length in buffer.watched}
        buffer.streams.add(stream)

        def write() -> None:
            work = self.driver.launch(stream, writes=[(buffer.address + o, d) for o, d in contents.items()])  # type: ignore[misc] # plain pairs
            self.recorder.note("contents", allocation=buffer.allocation, tokens=contents, work=work.id)

        return attempt(write)

    def fail(self, operation: ops.Fail) -> Outcome:
        self.recorder.faults.inject(operation.kind, max(1, operation.k), operation.status or 2)
        return attempt(lambda: None)

    def progress(self, operation: ops.Progress) -> Outcome:
        device = operation.device % self.configuration.devices
        stream = self.stream(device, operation.stream)
        return attempt(lambda: self.driver.progress(stream, max(1, operation.count)))

    def order(self, operation: ops.Order) -> Outcome:
        device = operation.device % self.configuration.devices
        first, then = self.stream(device, operation.first), self.stream(device, operation.then)

        def wait() -> None:
            event = self.driver.event_create(device)
            self.driver.event_record(event, first)
            self.driver.stream_wait_event(then, event)

        return attempt(wait)

    def synchronize(self, operation: ops.Synchronize) -> Outcome:
        device = operation.device % self.configuration.devices
        return attempt(lambda: self.driver.stream_synchronize(self.stream(device, operation.stream)))

    def close(self, operation: ops.Close) -> Outcome:
        index = operation.executable % len(self.executors)
        executor = self.executors[index]
        self.recorder.note("close", executable=index)
        outcome = attempt(executor.close if executor is not None else lambda: None)
        self.recorder.note("closed", executable=index, outcome=outcome)
        return outcome

    # -- the step

    def step(self, operation: ops.Step) -> Outcome:
        index, device, bound = self.place(operation)
        stream = self.stream(device, operation.stream)
        uses = self._uses(index, bound.buffers, operation)
        self.duel.acquired = 0
        outcome = self._one_step(operation, index, device, stream, bound, uses)
        if operation.probe and not self.duel.settle():
            self.recorder.note("abandoned", executable=index, device=device)
        return outcome

    def _one_step(
        self, operation: ops.Step, index: int, device: int, stream: int, bound: _Bound, uses: list[Use | None]
    ) -> Outcome:
        buffers = [buffer.as_buffer() for buffer in bound.buffers]
        where = {"executable": index, "device": device, "stream": stream}
        self.recorder.note("step", **where, buffers=tuple(buffers), uses=tuple(uses), outcome=operation.outcome)
        for buffer in bound.buffers:
            buffer.streams.add(stream)

        def execute(table: Sequence[Range], persistent: tuple[int, ...] | None) -> None:
            self._execute(operation, where, bound, uses, table, persistent)

        executor = self.executors[index]
        outcome = attempt(lambda: self._call(executor, buffers, device, stream, execute))
        self.recorder.note("stepped", **where, outcome=outcome)
        if outcome["status"] != "crashed":
            self._observe(bound, where, uses)
        return outcome

    @staticmethod
    def _call(executor: StepExecutor | None, buffers: list[Buffer], device: int, stream: int, execute: Any) -> None:
        if executor is None:
            raise RuntimeError("the subject gave no step executor")
        executor.step(buffers, device=device, stream=stream, execute=execute)

    def _uses(self, index: int, buffers: list[CallerBuffer], operation: ops.Step) -> list[Use | None]:
        """What execution does to each slot: the declared use, narrowed where no buffer is shared."""
        slots = self.configuration.executables[index].slots
        wanted = operation.uses if not self.configuration.capture else None
        shared = len({b.allocation for b in buffers}) < len(buffers)
        uses: list[Use | None] = []
        for number, (slot, buffer) in enumerate(zip(slots, buffers, strict=True)):
            declared = Use.READ if slot.constant or slot.read_only else slot.use
            narrow = wanted[number] if wanted and number < len(wanted) and not shared else declared
            fits = narrow is declared or declared is Use.READ_WRITE
            uses.append((narrow if fits else declared) if buffer.size else None)
        return uses

    def _execute(
        self,
        operation: ops.Step,
        where: dict[str, int],
        bound: _Bound,
        uses: list[Use | None],
        table: Sequence[Range],
        persistent: tuple[int, ...] | None,
    ) -> None:
        """The execute callback."""
        entries = [Range(int(address), int(size)) for address, size in table]
        kept = None if persistent is None else tuple(int(slot) for slot in persistent)
        if len(entries) != len(uses):
            self.recorder.note("execute", **where, table=tuple(entries), persistent=kept, plan=Plan((), ()))
            raise ExecuteFailed(f"the table has {len(entries)} entries for {len(uses)} slots")
        before = operation.outcome is ops.Outcome.RAISE_BEFORE
        todo = Plan((), ()) if before else plan(entries, uses, self.tokens)
        self.recorder.note("execute", **where, table=tuple(entries), persistent=kept, plan=todo)
        if operation.probe and not self.duel.blocked and self.recorder.thread() == 0:
            self._challenge(operation, where, bound, uses)
        if not before:
            shared = len({buffer.allocation for buffer in bound.buffers}) < len(bound.buffers)
            results = bound.execution.submit(where["stream"], entries, kept, todo, shared=shared)
            self.recorder.note("executed", **where, results=results)
        if operation.outcome is not ops.Outcome.OK:
            raise ExecuteFailed(f"the program lets this execution fail ({operation.outcome.value})")

    def _challenge(self, operation: ops.Step, where: dict[str, int], bound: _Bound, uses: list[Use | None]) -> None:
        """Start a second step from a second thread, here, in the middle of the first."""
        if not self.duel.acquired:
            self.recorder.note("unseen locks")
            return
        again = replace(operation, probe=False, outcome=ops.Outcome.OK)
        self.recorder.note("challenge", **where)
        self.duel.challenge(
            lambda: void(self._one_step(again, where["executable"], where["device"], where["stream"], bound, uses))
        )

    def _observe(self, bound: _Bound, where: dict[str, int], uses: list[Use | None]) -> None:
        """Queue a read of every real buffer on the run stream, waiting for nothing."""
        reads: list[Range] = []
        what: list[tuple[int, int, int]] = []
        seen: set[int] = set()
        for buffer in bound.buffers:
            if buffer.visible and buffer.allocation not in seen:
                seen.add(buffer.allocation)
                for offset, length in buffer.watched:
                    reads.append(Range(buffer.address + offset, length))
                    what.append((buffer.allocation, offset, length))
        if not reads:
            return
        try:
            work = self.driver.launch(where["stream"], reads=reads)
        except DriverError as error:
            self.recorder.note("observe refused", error=str(error))
            return
        self.recorder.note("observe", **where, work=work.id, marks=tuple(what))


def void(_: object) -> None:
    """Drop a value."""
