"""The caller's side of a run of steps: streams, executables, buffers, and what becomes of them between steps."""

from __future__ import annotations

from typing import Any

from vmm_conformance.contracts import Command, DriverError, Executable, Slot, UpdateMode
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.caller import Caller, CallerBuffer, TokenSource
from vmm_conformance.running.execution import Execution
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder


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


class Bound:
    """The buffers of one executable on one device, and how it is executed there."""

    def __init__(self, buffers: list[CallerBuffer], execution: Execution) -> None:
        self.buffers = buffers
        self.execution = execution


class Callers:
    """Does what an operation of the caller says; one method per kind."""

    def __init__(self, program: Program, recorder: Recorder) -> None:
        self.configuration: ops.Configuration = program.configuration
        self.recorder = recorder
        self.driver = recorder.harness
        self.tokens = TokenSource()
        ids = [0]
        self.callers = [
            Caller(self.driver, d, self.configuration.recommended, self.tokens, ids)
            for d in range(self.configuration.devices)
        ]
        self.streams: list[list[int]] = []
        self.executables: list[Executable] = []
        self.bound: dict[tuple[int, int], Bound] = {}
        self.made: list[tuple[Caller, CallerBuffer]] = []
        """Every buffer that the caller has not given back."""

    # -- operands

    def place(self, operation: Any) -> tuple[int, int, Bound]:
        """The executable, device and buffers that an operation names."""
        index = operation.executable % len(self.executables)
        device = operation.device % self.configuration.devices
        bound = self.bound.get((index, device))
        if bound is None:
            slots = self.configuration.executables[index].slots
            buffers = [self.fresh(index, device, slot, slots[slot].size) for slot in range(len(slots))]
            execution = Execution(self.driver, device, len(slots), capture=self.configuration.capture)
            bound = self.bound[index, device] = Bound(buffers, execution)
        return index, device, bound

    def fresh(self, index: int, device: int, slot: int, size: int) -> CallerBuffer:
        """A new buffer for a slot; says so in the history."""
        planned = self.configuration.executables[index]
        plan_ = planned.slots[slot]
        buffer, contents = self.callers[device].make(
            size, space=plan_.space, extra=plan_.extra, vmm=planned.vmm, read_only=plan_.read_only
        )
        self.recorder.note("contents", allocation=buffer.allocation, tokens=contents)
        self.made.append((self.callers[device], buffer))
        return buffer

    def round_over(self, once: int) -> None:
        """One repetition is over: wait for all work, and give every buffer back, constants aside.

        The next one begins with fresh ones. The note ``round`` has each device's free bytes.
        """
        devices = range(self.configuration.devices)
        try:
            for device in devices:
                self.driver.device_synchronize(device)
            self._renew()
            free = {device: self.driver.mem_info(device).free for device in devices}
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))
        else:
            self.recorder.note("round", number=once, free=free)

    def _renew(self) -> None:
        kept = [
            buffer for (index, _), bound in self.bound.items()
            for slot, buffer in enumerate(bound.buffers) if self._constant(index, slot)
        ]  # fmt: skip
        for caller, buffer in self.made:
            if buffer not in kept:
                caller.free(buffer)
        self.made = [(caller, buffer) for caller, buffer in self.made if buffer in kept]
        for (index, device), bound in self.bound.items():
            for slot, planned in enumerate(self.configuration.executables[index].slots):
                if not planned.constant:
                    bound.buffers[slot] = self.fresh(index, device, slot, planned.size)

    def stream(self, device: int, stream: int) -> int:
        """The driver's stream for a device's stream number."""
        streams = self.streams[device]
        return streams[stream % len(streams)]

    # -- what callers do between steps

    def move(self, operation: ops.Move) -> Outcome:
        """A slot's buffer is replaced by a new one of the same size."""
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        return self._rebind(index, device, bound, slot, bound.buffers[slot].size)

    def resize(self, operation: ops.Resize) -> Outcome:
        """A slot's buffer is replaced by a new one of another size."""
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        return self._rebind(index, device, bound, slot, operation.size)

    def _rebind(self, index: int, device: int, bound: Bound, slot: int, size: int) -> Outcome:
        if self._constant(index, slot):
            return attempt(lambda: None)
        return attempt(lambda: bound.buffers.__setitem__(slot, self.fresh(index, device, slot, size)))

    def _constant(self, index: int, slot: int) -> bool:
        """Constants stay where they are: callers promise so."""
        return self.configuration.executables[index].slots[slot].constant

    def swap(self, operation: ops.Swap) -> Outcome:
        """Two slots exchange their buffers."""
        _, _, bound = self.place(operation)
        a, b = operation.slot % len(bound.buffers), operation.other % len(bound.buffers)
        if self._exchangeable(operation, a, b):
            bound.buffers[a], bound.buffers[b] = bound.buffers[b], bound.buffers[a]
        return attempt(lambda: None)

    def bind(self, operation: ops.Bind) -> Outcome:
        """A slot takes the buffer of another."""
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
        """A buffer's memory is freed, and other memory bound at its address."""
        index, device, bound = self.place(operation)
        slot = operation.slot % len(bound.buffers)
        old = bound.buffers[slot]
        if old.handle is None or self._constant(index, slot):
            return attempt(lambda: None)

        def again() -> None:
            new, contents = self.callers[device].recreate(old)
            self.made = [(caller, new if buffer is old else buffer) for caller, buffer in self.made]
            self.recorder.note("contents", allocation=new.allocation, tokens=contents)
            for other in self.bound.values():
                other.buffers = [new if b is old else b for b in other.buffers]

        return attempt(again)

    def disturb(self, operation: ops.Disturb) -> Outcome:
        """Somebody else damages a buffer."""
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
        """The caller writes into a buffer, in stream order."""
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
        """A later driver call of the subject is made to fail."""
        self.recorder.faults.inject(operation.kind, max(1, operation.k), operation.status or 2)
        return attempt(lambda: None)

    def progress(self, operation: ops.Progress) -> Outcome:
        """A stream runs some of its work."""
        device = operation.device % self.configuration.devices
        stream = self.stream(device, operation.stream)
        return attempt(lambda: self.driver.progress(stream, max(1, operation.count)))

    def order(self, operation: ops.Order) -> Outcome:
        """The caller orders one stream behind another."""
        device = operation.device % self.configuration.devices
        first, then = self.stream(device, operation.first), self.stream(device, operation.then)

        def wait() -> None:
            event = self.driver.event_create(device)
            self.driver.event_record(event, first)
            self.driver.stream_wait_event(then, event)

        return attempt(wait)

    def synchronize(self, operation: ops.Synchronize) -> Outcome:
        """The caller waits for a stream."""
        device = operation.device % self.configuration.devices
        return attempt(lambda: self.driver.stream_synchronize(self.stream(device, operation.stream)))
