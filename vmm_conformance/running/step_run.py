"""One program of steps being run: builds the subject, calls it, and is called back by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import Buffer, DriverError, ExecuteFailed, Range, StepExecutor, Use
from vmm_conformance.history.events import HARNESS
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.caller import CallerBuffer, marks
from vmm_conformance.running.execution import Plan, plan
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.step_callers import Bound, Callers, executable_of
from vmm_conformance.running.threads import Duel


class StepRun(Callers):
    """One program being run."""

    def __init__(self, program: Program, subject: Any, recorder: Recorder) -> None:
        super().__init__(program, recorder)
        self.program = program
        self.subject = subject
        self.duel = Duel(lambda: recorder.note("blocked"))
        self.executors: list[StepExecutor | None] = []

    def all(self) -> None:
        """Run every operation, close what is open while work is pending, then drain."""
        self.start()
        for once in range(self.configuration.rounds):
            for index, operation in enumerate(self.program.operations):
                self.recorder.op = index
                self.recorder.event(HARNESS, "begin", (operation,))
                outcome = _ACTIONS[type(operation)](self, operation)
                self.recorder.event(HARNESS, "end", (outcome,))
            self.recorder.op = len(self.program.operations)
            if self.configuration.rounds > 1:
                self.round_over(once)
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

    def close(self, operation: ops.Close) -> Outcome:
        """Close one executor."""
        index = operation.executable % len(self.executors)
        executor = self.executors[index]
        self.recorder.note("close", executable=index)
        outcome = attempt(executor.close if executor is not None else lambda: None)
        self.recorder.note("closed", executable=index, outcome=outcome)
        return outcome

    # -- the step

    def step(self, operation: ops.Step) -> Outcome:
        """Run one step, and a second one from inside it if the program says so."""
        index, device, bound = self.place(operation)
        stream = self.stream(device, operation.stream)
        uses = self._uses(index, bound.buffers, operation)
        self.duel.acquired = 0
        outcome = self._one_step(operation, index, device, stream, bound, uses)
        if operation.probe and not self.duel.settle():
            self.recorder.note("abandoned", executable=index, device=device)
        return outcome

    def _one_step(
        self, operation: ops.Step, index: int, device: int, stream: int, bound: Bound, uses: list[Use | None]
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
        """What execution does to each slot: the declared use, narrowed where no buffer is shared.

        Nothing to a buffer that shows at no address any more, neither the caller's nor the executor's.
        """
        selected = self._selected(index)
        slots = self.configuration.executables[index].slots
        wanted = operation.uses if not self.configuration.capture else None
        shared = len({b.allocation for b in buffers}) < len(buffers)
        uses: list[Use | None] = []
        for number, (slot, buffer) in enumerate(zip(slots, buffers, strict=True)):
            declared = Use.READ if slot.constant or slot.read_only else slot.use
            narrow = wanted[number] if wanted and number < len(wanted) and not shared else declared
            fits = narrow is declared or declared is Use.READ_WRITE
            reachable = buffer.size and (buffer.visible or number in selected)
            uses.append((narrow if fits else declared) if reachable else None)
        return uses

    def _execute(
        self,
        operation: ops.Step,
        where: dict[str, int],
        bound: Bound,
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

    def _challenge(self, operation: ops.Step, where: dict[str, int], bound: Bound, uses: list[Use | None]) -> None:
        """Start a second step from a second thread, here, in the middle of the first."""
        if not self.duel.acquired:
            self.recorder.note("unseen locks")
            return
        again = replace(operation, probe=False, outcome=ops.Outcome.OK)
        self.recorder.note("challenge", **where)
        self.duel.challenge(
            lambda: void(self._one_step(again, where["executable"], where["device"], where["stream"], bound, uses))
        )

    def _observe(self, bound: Bound, where: dict[str, int], uses: list[Use | None]) -> None:
        """Queue a read of the real buffers on the run stream, waiting for nothing.

        Those that execution wrote, and small ones whole, with what lies behind them: only they can be shadowed.
        """
        threshold = self.configuration.executables[where["executable"]].copy_threshold
        what: dict[tuple[int, int], Range] = {}
        for buffer, use in zip(bound.buffers, uses, strict=True):
            if buffer.visible:
                small = buffer.size <= threshold
                watched = buffer.watched if small else marks(buffer.size) if use and use.writes else ()
                for offset, length in watched:
                    what[buffer.allocation, offset] = Range(buffer.address + offset, length)
        if not what:
            return
        try:
            work = self.driver.launch(where["stream"], reads=tuple(what.values()))
        except DriverError as error:
            self.recorder.note("observe refused", error=str(error))
            return
        seen = tuple((allocation, offset, read.size) for (allocation, offset), read in what.items())
        self.recorder.note("observe", **where, work=work.id, marks=seen)


def void(_: object) -> None:
    """Drop a value."""


_ACTIONS: Final[dict[type, Callable[[StepRun, Any], Outcome]]] = {
    ops.Step: StepRun.step, ops.Move: StepRun.move, ops.Swap: StepRun.swap, ops.Bind: StepRun.bind,
    ops.Recreate: StepRun.recreate, ops.Resize: StepRun.resize, ops.Disturb: StepRun.disturb,
    ops.Refill: StepRun.refill, ops.Fail: StepRun.fail, ops.Progress: StepRun.progress,
    ops.Order: StepRun.order, ops.Synchronize: StepRun.synchronize, ops.Close: StepRun.close,
}  # fmt: skip
"""Not bound to a run: one that refers to itself is left to the garbage collector, with its whole driver."""
