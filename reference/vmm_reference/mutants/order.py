"""Step executors that wait, record, lock or close wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from vmm_conformance.contracts import Buffer, DriverError, Execute, Table
from vmm_reference.in_flight import InFlight
from vmm_reference.layout import Layout
from vmm_reference.mutants.registry import Registry
from vmm_reference.va_ranges import NO_RANGE, VaRanges

mutant = Registry()


@mutant("STEP-85")
class WaitAnyway(VaRanges):
    """Waits for the last step before every step, also where nothing moved."""

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        self.in_flight.wait()
        super().establish(layout, buffers)


@mutant("STEP-88")
class UnmapWithoutWait(InFlight):
    """Waits for nothing before it unmaps."""

    def wait(self) -> None:
        pass

    def settle(self) -> bool:
        with suppress(DriverError):
            super().wait()
        return True


@mutant("STEP-88")
class SettlesBlindly(InFlight):
    """Gives everything back when nothing could be waited for, neither an event nor the device."""

    def settle(self) -> bool:
        if not super().settle():
            self._forget_all()
        return True


class _RecordsItself(InFlight):
    """Leaves recording to whoever calls `record_now`."""

    def record(self, stream: int) -> None:
        pass

    def record_now(self, stream: int) -> None:
        super().record(stream)


@mutant("STEP-89", parts=(_RecordsItself,))
class RecordBeforeExecution(VaRanges):
    """Records the step's event before it executes."""

    def run(self, layout: Layout, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        def record_then_execute(table: Table, persistent: tuple[int, ...] | None) -> None:
            assert isinstance(self.in_flight, _RecordsItself)
            self.in_flight.record_now(stream)
            execute(table, persistent)

        super().run(layout, buffers, stream, record_then_execute)


@mutant("STEP-89", "SHADOW-109", parts=(_RecordsItself,))
class RecordBeforeCopyBack(VaRanges):
    """Records the step's event before it copies back."""

    def run(self, layout: Layout, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        def execute_then_record(table: Table, persistent: tuple[int, ...] | None) -> None:
            assert isinstance(self.in_flight, _RecordsItself)
            try:
                execute(table, persistent)
            finally:
                self.in_flight.record_now(stream)

        super().run(layout, buffers, stream, execute_then_record)


@mutant("STEP-90", source="hazard b")
class NoRecordAfterError(VaRanges):
    """Records no event if execution or a copy failed, though work may have been submitted."""

    def run(self, layout: Layout, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        table = self.table(layout, buffers)
        written = self.shadows.written(buffers)
        self.shadows.copy_in(buffers, stream)
        self.layout = layout
        self.execute(execute, table, layout.persistent)
        self.shadows.copy_back(written, buffers, stream)
        self.in_flight.record(stream)


@mutant("STEP-91")
class WaitOnFirstStep(VaRanges):
    """Waits for an event that was never recorded before the first step maps anything."""

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        if self.layout is None:
            self.driver.event_synchronize(self.in_flight.spare[0])
        super().establish(layout, buffers)


@mutant("STEP-91", "STEP-88")
class FullRemapWithoutWait(VaRanges):
    """Where every step maps everything, unmaps without waiting."""

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        if not self.settings.skip_remap:
            self.mappings.unmap_all()
        super().establish(layout, buffers)


@mutant("STEP-98", source="ROCm/xla#1001 F15")
class UnlockedExecution(VaRanges):
    """Lets other threads in while execute runs."""

    def execute(self, execute: Execute, table: Table, persistent: tuple[int, ...]) -> None:
        self.lock.release()
        try:
            super().execute(execute, table, persistent)
        finally:
            self.lock.acquire()


@mutant("STEP-163")
class OneEventForAllStreams(InFlight):
    """Remembers the last step on any stream alone, and forgets those that still run on others."""

    def record(self, stream: int) -> None:
        for other in [other for other in self.events if other != stream]:
            self.spare.append(self.events.pop(other))
        super().record(stream)


@mutant("STEP-163", "SHADOW-116")
class WaitForOneStream(InFlight):
    """Waits for the stream of the last step, and forgets the others without waiting."""

    def wait(self) -> None:
        for stream in [stream for stream in self.events if stream != self.last_stream]:
            self.spare.append(self.events.pop(stream))
        super().wait()


@mutant("STEP-164")
class EventsKept(InFlight):
    """Never destroys an event."""

    def destroy_events(self) -> None:
        pass


@mutant("STEP-164")
class ReservationKept(VaRanges):
    """Unmaps everything at the end, but keeps the addresses."""

    def close(self) -> None:
        self.reservation = NO_RANGE
        super().close()


@mutant("STEP-186")
class EventForEachStep(InFlight):
    """Marks each step with an event of its own, and destroys them all when it closes."""

    def record(self, stream: int) -> None:
        if stream in self.events:
            self.spare.append(self.events.pop(stream))
            self.spare.append(self.driver.event_create(self.device))
        super().record(stream)


MUTANTS = mutant.mutants
