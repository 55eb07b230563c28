"""One executable on one device: its reservation, its shadows, and a step from lock to event."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from vmm_conformance.contracts import (
    Buffer,
    Code,
    Driver,
    DriverError,
    Executable,
    Execute,
    Range,
    SubjectError,
    Table,
)
from vmm_reference.in_flight import InFlight
from vmm_reference.layout import (
    Layout,
    Selection,
    check_capacities,
    check_committed,
    check_constants,
    check_sources,
    plan,
)
from vmm_reference.mapping import MappedRange, SlotMappings
from vmm_reference.shadows import Shadows

NO_RANGE: Final = Range(0, 0)
NO_TABLE: Final[tuple[tuple[Buffer, ...], Table]] = ((), ())


class StepSettings(NamedTuple):
    """The settings in force: whether unmoved slots stay mapped, and the copy threshold in bytes."""

    skip_remap: bool
    copy_threshold: int


class VaRanges:
    """What one executable holds on one device.

    Until execute is called for the first time there is no ``layout``, and a step that fails leaves
    nothing behind: the next one starts afresh (STEP-96). From then on addresses are baked into captured
    work, so ``layout`` is frozen: no slot changes its class, its address or its capacity (STEP-84).
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        executable: Executable,
        selection: Selection,
        settings: StepSettings,
    ) -> None:
        self.driver = driver
        self.device = device
        self.selection = selection
        self.settings = settings
        self.lock = threading.Lock()
        self.closed = False
        self.layout: Layout | None = None
        self.reservation = NO_RANGE
        self.mappings = SlotMappings(driver, device)
        self.shadows = Shadows(driver, device, executable.slots)
        self.in_flight = InFlight(driver, device)
        self.last_table: tuple[tuple[Buffer, ...], Table] = NO_TABLE

    def step(self, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        """One step, alone on this device from its first look at the state to its event (STEP-98).

        Raises what `StepExecutor.step` may raise; what execute raises goes through unchanged.
        """
        with self.lock:
            if self.closed:
                raise closed_error()
            self.check_memory(buffers)
            layout = self.layout or self.plan(buffers)
            self.check_fit(layout, buffers)
            try:
                self.prepare(layout, buffers, stream)
                self.run(layout, buffers, stream, execute)
            except BaseException:
                if self.layout is None:
                    self.give_back()
                raise

    def close(self) -> None:
        """Wait for what is in flight, and give everything back (SHADOW-116). Raises nothing.

        What the driver refuses to take back is kept, and closing again tries again.
        """
        with self.lock:
            self.closed = True
            self.give_back()

    # -- before anything is touched

    def check_memory(self, buffers: Sequence[Buffer]) -> None:
        """Refuse buffers without memory behind them."""
        check_sources(self.selection, buffers)

    def plan(self, buffers: Sequence[Buffer]) -> Layout:
        """The layout that this step would freeze."""
        granularity = self.driver.granularity(self.device).recommended
        return plan(self.selection, buffers, granularity, self.settings.copy_threshold)

    def check_fit(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        """Refuse buffers that do not fit ``layout``."""
        check_constants(layout, buffers)
        check_capacities(layout, buffers)
        check_committed(layout, buffers, self.driver.capabilities.partial_map)

    # -- memory behind every address

    def prepare(self, layout: Layout, buffers: Sequence[Buffer], stream: int) -> None:
        """Have everything that execution needs. Submits no work but a wait between two streams."""
        if self.layout is None:
            self.acquire(layout)
        self.in_flight.prepare(stream)
        self.establish(layout, buffers)
        if layout.small:
            self.in_flight.order_behind_last_step(stream)

    def acquire(self, layout: Layout) -> None:
        """Reserve the addresses and allocate the shadows, once (STEP-81, SHADOW-105, SHADOW-106)."""
        self.give_back()  # what an earlier step, which failed, could not
        if self.reservation.size or self.shadows.addresses:
            raise SubjectError(
                Code.FAILED_PRECONDITION,
                "the driver does not take back what an earlier step, which failed, had acquired; "
                "close the executor and start afresh",
            )
        if layout.reserved:
            base = self.driver.reserve(layout.reserved, alignment=layout.granularity)
            self.reservation = Range(base, layout.reserved)
        self.shadows.allocate(layout.small)

    def establish(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        """Map what moved, and nothing else (STEP-85, STEP-86); without skip-remap, everything (STEP-91).

        After an error the slots concerned are unmapped or remembered as they are, so the next step maps
        them in full (STEP-92).
        """
        wanted = self.wanted(layout, buffers)
        mapped = self.mappings.mapped
        stale = [slot for slot in mapped if slot in wanted or not self.settings.skip_remap]
        if stale:
            self.in_flight.wait()  # STEP-88
            self.mappings.unmap(stale)
        if wanted:
            self.mappings.map(wanted)

    def wanted(self, layout: Layout, buffers: Sequence[Buffer]) -> dict[int, MappedRange]:
        """What has to be mapped before this step, by slot, ascending."""
        skip = self.settings.skip_remap
        wanted: dict[int, MappedRange] = {}
        for index, offset, capacity in layout.mapped:
            buffer = buffers[index]
            if buffer.size and not (skip and self.unmoved(index, buffer)):
                wanted[index] = self.mapping_of(offset, capacity, buffer)
        return wanted

    def unmoved(self, index: int, buffer: Buffer) -> bool:
        """Whether the memory behind ``buffer`` is what is mapped at its slot.

        Memory is told by its handle. An address says nothing: a new buffer may have the address of one
        that was freed (STEP-87). A handle names the same memory for as long as that is mapped somewhere.
        """
        entry = self.mappings.mapped.get(index)
        return entry is not None and entry.handle == buffer.handle

    def mapping_of(self, offset: int, capacity: int, buffer: Buffer) -> MappedRange:
        """``buffer`` at its slot: as much as stands behind it, and no more than fits (STEP-97, STEP-159)."""
        assert buffer.handle is not None, "check_sources lets no such buffer pass"
        place = Range(self.reservation.address + offset, min(capacity, buffer.committed))
        return MappedRange(place, buffer.handle)

    # -- execution

    def run(self, layout: Layout, buffers: Sequence[Buffer], stream: int, execute: Execute) -> None:
        """Copy in, execute, copy back, and mark the end on the stream, whatever happened (STEP-89, STEP-90).

        If execution failed nothing is copied back: nobody knows what the shadows hold.
        """
        table = self.table(layout, buffers)
        written = self.shadows.written(buffers)
        try:
            self.shadows.copy_in(buffers, stream)
            self.layout = layout
            self.execute(execute, table, layout.persistent)
            self.shadows.copy_back(written, buffers, stream)
        except BaseException:
            with suppress(DriverError):  # the first error is the one to report
                self.in_flight.record(stream)
            raise
        self.in_flight.record(stream)

    def execute(self, execute: Execute, table: Table, persistent: tuple[int, ...]) -> None:
        """Call the caller's ``execute``."""
        execute(table, persistent)

    def table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        """The execution table: fixed addresses with today's sizes, the caller's own for all other slots
        (STEP-83). Equal buffers give the same table, so the last one is kept."""
        seen, table = self.last_table
        current = tuple(buffers)
        if seen != current:
            table = self.make_table(layout, current)
            self.last_table = (current, table)
        return table

    def make_table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        """The table, made afresh."""
        table = [Range(buffer.address, buffer.size) for buffer in buffers]
        for index, offset, _ in layout.mapped:
            table[index] = Range(self.reservation.address + offset, buffers[index].size)
        for index, shadow in self.shadows.addresses.items():
            table[index] = Range(shadow, buffers[index].size)
        return tuple(table)

    # -- the end

    def give_back(self) -> None:
        """Give back all that is held, in the order that is safe; raises nothing, keeps what is refused.

        First wait, then unmap, then free the addresses that nothing is mapped at any more. Where the driver
        refuses to wait, all is kept.
        """
        if not self.in_flight.settle():
            return
        self.mappings.unmap_all()
        if self.reservation.size and not self.mappings.mapped:
            with suppress(DriverError):
                self.driver.address_free(self.reservation.address, self.reservation.size)
                self.reservation = NO_RANGE
        self.shadows.free()
        self.in_flight.destroy_events()
        self.last_table = NO_TABLE


def closed_error() -> SubjectError:
    """The error of a step after close."""
    return SubjectError(Code.FAILED_PRECONDITION, "step: the executor is closed; make a new one to go on")
