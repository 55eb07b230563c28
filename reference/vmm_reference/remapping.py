"""Execution scopes with remapping: SKIP_TEMP and SKIP_PROFILED.

On each device there is one reservation in which every selected buffer has a slice of its own for ever. Temporary
buffers are allocated right there. Parameters and outputs stay where their owner has them, and are mapped a second
time (aliased) at their slice for as long as a run executes. Numbers in comments are ids of the catalogue's
SCOPE area.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from vmm_conformance.contracts import (
    AddressReservation,
    BufferKind,
    Code,
    Driver,
    Execute,
    ExecutionScope,
    MemoryAllocator,
    Range,
    RemapMode,
    ScopedExecutable,
    SubjectError,
    VmmAllocator,
    is_vmm,
)
from vmm_reference.layout import round_up
from vmm_reference.policies import Classes, Profile
from vmm_reference.scopes import REFUSALS, BufferAllocator, First, PlainScope


class Slice(NamedTuple):
    """A buffer's place in the reservation: whole granules."""

    offset: int
    size: int


class Remapping:
    """What an executable holds on one device between its runs. ``lock`` is held by the scope that is open (122)."""

    def __init__(self, executable: ScopedExecutable, classes: Classes, device: int) -> None:
        self.executable = executable
        self.classes = classes
        self.device = device
        self.lock = threading.Lock()
        self.allocator: VmmAllocator | None = None
        self.reservation: AddressReservation | None = None
        self.granularity = 0
        self.slices: dict[int, Slice] = {}
        self.profile = Profile(executable, classes)
        self.aliases: list[Slice] = []
        """Slices that show a caller's memory. None is left between runs, unless the allocator has refused."""
        self.left: list[Range] = []
        """What earlier runs had allocated, and the allocator has refused to take back so far."""

    def bind(self, allocator: VmmAllocator) -> None:
        """Use ``allocator``, now and always: reservation and slices are worth nothing to another (121)."""
        if self.allocator is not None and self.allocator is not allocator:
            raise SubjectError(
                Code.INTERNAL,
                f"{self.executable.name!r} has got another allocator on device {self.device} than in its first run; "
                "the addresses baked in belong to that one",
            )
        self.allocator = allocator

    # -- the reservation

    def to_place(self) -> tuple[int, ...]:
        """The buffers that need a slice, ascending. While a profile is watched it may come to any candidate (142)."""
        if self.executable.mode is RemapMode.SKIP_TEMP:
            return self.classes.temps
        if self.profile.selected is not None:
            return self.profile.selected
        return tuple(sorted({*self.classes.temps, *self.classes.candidates})) if self.classes.temps else ()

    def reserve(self, allocator: VmmAllocator) -> None:
        """Reserve and lay out at first use; afterwards see that nothing has changed (121).

        Where the reservation is refused nothing is kept, and the next run tries again.
        """
        granularity = allocator.granularity(self.device)
        if self.reservation is not None:
            self.check_granularity(granularity)
            return
        slices = self.lay_out(self.to_place(), granularity)
        total = sum(piece.size for piece in slices.values())
        if total:
            self.reservation = allocator.create_reservation(self.device, total)
            self.granularity, self.slices = granularity, slices

    def lay_out(self, indices: Iterable[int], granularity: int) -> dict[int, Slice]:
        """Slices one behind the other, each rounded up to whole granules (129)."""
        slices: dict[int, Slice] = {}
        end = 0
        for index in indices:
            slices[index] = Slice(end, round_up(self.executable.buffers[index].size, granularity))
            end += slices[index].size
        return slices

    def check_granularity(self, granularity: int) -> None:
        """The layout is made of granules of one size."""
        if granularity != self.granularity:
            raise SubjectError(
                Code.INTERNAL,
                f"the granularity on device {self.device} is {granularity} bytes, but {self.executable.name!r} was "
                f"laid out with {self.granularity}; its addresses are baked in",
            )

    # -- aliases

    def show(self, index: int, buffer: Range, allocator: VmmAllocator) -> Range:
        """Map ``buffer`` at the slice of ``index`` as well; unmoved it takes no driver call (128).

        Returns the address to run with. The size stays the buffer's own (129).
        """
        piece = self.slices[index]
        assert self.reservation is not None, "reserve comes first"
        allocator.map(self.device, buffer, self.reservation, piece.offset, piece.size)
        self.aliases.append(piece)
        return Range(self.reservation.range.address + piece.offset, buffer.size)

    def hide_all(self) -> None:
        """End all aliases. One that is refused is kept for another try, and the first refusal raised (127)."""
        first = First()
        for piece in tuple(self.aliases):
            with first.also():
                assert self.allocator is not None, "there are no aliases without an allocator"
                self.allocator.unmap(self.device, self.reservation, piece.offset, piece.size)
                self.aliases.remove(piece)
        first.reraise()

    def clean(self, allocator: VmmAllocator) -> None:
        """Give back what the allocator has refused to take from earlier runs, as far as it does now."""
        with suppress(*REFUSALS):
            self.hide_all()
        for range_ in tuple(self.left):
            with suppress(*REFUSALS):
                allocator.deallocate(self.device, range_)
                self.left.remove(range_)

    def close(self) -> None:
        """Let pending work on the reservation end, then give it back (134). Raises nothing."""
        with self.lock, suppress(*REFUSALS):
            if self.allocator is not None:
                self.clean(self.allocator)
            if self.allocator is not None and self.reservation is not None:
                self.allocator.synchronize_pending_operations(self.device)
                self.reservation.release()
                self.reservation = None


class RemapScope(PlainScope):
    """One run with fixed addresses, or one that is watched for them. It holds the lock of its ``remapping``."""

    va_remap_enabled = True

    def __init__(self, remapping: Remapping, allocator: VmmAllocator) -> None:
        super().__init__(remapping.executable, remapping.classes, remapping.device, allocator)
        self.remapping = remapping
        self.vmm = allocator

    @property
    def watched(self) -> bool:
        """Whether this run belongs to the profile."""
        return self.executable.mode is RemapMode.SKIP_PROFILED and self.remapping.profile.watching

    def selected(self) -> tuple[int, ...]:
        """The buffers that get a fixed address in this run, ascending."""
        if self.executable.mode is RemapMode.SKIP_PROFILED:
            return self.remapping.profile.selected or ()
        return self.classes.temps

    def prepare(self) -> None:
        """Have the reservation; what an earlier run could not give back is tried once more."""
        self.remapping.clean(self.vmm)
        if self.remapping.to_place():
            self.remapping.reserve(self.vmm)

    def allocate(self, index: int) -> Range:
        """Temporary buffers that commands name lie at their slices, from the first run on (123, POLICY-143).

        Outputs never do: the caller will own them (124).
        """
        if index not in self.classes.temps:
            return super().allocate(index)
        piece = self.remapping.slices[index]
        return self.vmm.allocate_mapped(
            self.device,
            piece.size,
            reservation=self.remapping.reservation,
            offset=piece.offset,
            map_size=piece.size,
            space=self.executable.buffers[index].space,
        )

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        """Run with fixed addresses; a run of the profile with those there are, which are noted if it goes well."""
        if self.watched:
            execute(tuple(table), None)
            self.remapping.profile.observe(table)
            return
        try:
            running = self.running_table(table)
            execute(running, self.persistent())
        except BaseException:
            with suppress(*REFUSALS):  # the first error is the one to report (127)
                self.remapping.hide_all()
            raise
        self.remapping.hide_all()

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        """A copy of ``table``, which stays as it is (124), with selected parameters and outputs at their slices.

        They are taken from where they are now: copy protection may have replaced them (125).
        """
        running = list(table)
        for index in self.selected():
            if self.executable.buffers[index].kind is not BufferKind.TEMP:
                self.check_there(index, table[index])
                running[index] = self.remapping.show(index, table[index], self.vmm)
        return tuple(running)

    def check_there(self, index: int, buffer: Range) -> None:
        """What is baked in must not be null (126)."""
        if not buffer.address:
            raise SubjectError(
                Code.INTERNAL,
                f"buffer {index} has a fixed address in {self.executable.name!r}, but is null in this run",
            )

    def persistent(self) -> tuple[int, ...]:
        """The buffers whose address never changes again, ascending (POLICY-136)."""
        return tuple(sorted({*self.classes.constants, *self.selected()}))

    def teardown(self, live: Collection[int]) -> None:
        """An alias that could not be ended in execute is tried first: what it shows cannot be freed before."""
        with suppress(*REFUSALS):
            self.remapping.hide_all()
        super().teardown(live)

    def drop(self) -> None:
        """Give back what is left, then let the next scope in."""
        try:
            with suppress(*REFUSALS):
                self.remapping.hide_all()
            super().drop()
            self.remapping.left += self.allocated.values()
        finally:
            self.remapping.lock.release()


class RemappingAllocator(BufferAllocator):
    """Makes scopes with remapping, and plain ones where there is nothing to remap or nothing to do it with."""

    def __init__(self, driver: Driver, executable: ScopedExecutable) -> None:
        super().__init__(driver, executable)
        self.lock = threading.Lock()
        self.remappings: dict[int, Remapping] = {}

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        """A scope on ``device``; waits until the one before it has been dropped (122).

        Raises INTERNAL for a stream that is not the allocator's (120) and for another allocator (121).
        """
        self.check_open()
        if not self.selects() or not is_vmm(allocator):
            return self.plain_scope(device, allocator)
        self.check_stream(device, stream, allocator)
        remapping = self.remapping_on(device)
        remapping.lock.acquire()
        try:
            remapping.bind(allocator)
            scope = self.scope_of(remapping, allocator)
        except BaseException:
            remapping.lock.release()
            raise
        if scope is None:
            remapping.lock.release()
            return self.plain_scope(device, allocator)
        return scope

    def close(self) -> None:
        """Give back every reservation, once nothing that is pending needs it (134). Raises nothing."""
        super().close()
        for remapping in self.remappings.values():
            remapping.close()

    def scope_of(self, remapping: Remapping, allocator: VmmAllocator) -> RemapScope | None:
        """A scope; None if the profile has found nothing to remap."""
        profile = remapping.profile
        if self.executable.mode is RemapMode.SKIP_PROFILED and profile.seen_enough():
            profile.decide(lambda address: allocator.raw_allocation(remapping.device, address) is not None)
        return None if profile.disabled else self.remap_scope(remapping, allocator)

    def selects(self) -> bool:
        """Whether there may be something to remap."""
        if self.executable.mode is RemapMode.SKIP_PROFILED:
            return bool(self.classes.temps or self.classes.candidates)
        return bool(self.classes.temps)

    def check_stream(self, device: int, stream: int, allocator: VmmAllocator) -> None:
        """What the allocator frees late is in order with its own stream alone."""
        own = allocator.stream(device)
        if own != stream:
            raise SubjectError(
                Code.INTERNAL,
                f"{self.executable.name!r} is to run on stream {stream}, but its allocator follows stream {own} of "
                f"device {device}; run it there",
            )

    def remapping_on(self, device: int) -> Remapping:
        """What is held on ``device``, made at first use."""
        with self.lock:
            if device not in self.remappings:
                self.remappings[device] = self.remapping(device)
            return self.remappings[device]

    # -- parts

    def remapping(self, device: int) -> Remapping:
        """Fresh state for a device."""
        return Remapping(self.executable, self.classes, device)

    def remap_scope(self, remapping: Remapping, allocator: VmmAllocator) -> RemapScope:
        """A scope that holds the lock of ``remapping``."""
        return RemapScope(remapping, allocator)


def buffer_allocator(driver: Driver, executable: ScopedExecutable) -> BufferAllocator:
    """What the executable's mode asks for."""
    if executable.mode is RemapMode.ALWAYS_UPDATE:
        return BufferAllocator(driver, executable)
    return RemappingAllocator(driver, executable)
