"""The step executor: skip-remap and copy-into-shadow, behind the gates that switch them on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from vmm_conformance.contracts import Buffer, Code, Driver, Executable, Execute, Range, SubjectError
from vmm_reference.layout import Selection, select
from vmm_reference.va_ranges import StepSettings, VaRanges, closed_error

OPTIMISED_PLATFORM: Final = "ROCM"
"""The one platform on which the two optimisations apply, spelled exactly so (STEP-162)."""


class SkipRemapExecutor:
    """Runs the steps of one executable so that the addresses its command buffers bake in stay valid.

    On each device it reserves one address range in which every slot named by a command buffer has a
    fixed place, and maps the caller's buffer of the step there. Slots whose memory has not moved stay
    mapped (skip-remap). Small slots are not mapped but copied into a shadow and back.
    """

    def __init__(self, driver: Driver, executable: Executable) -> None:
        self.driver = driver
        self.executable = executable
        self.selection = self.select()
        self.settings = self.settings_in_force()
        self.lock = threading.Lock()
        self.closed = False
        self.ranges: dict[int, VaRanges] = {}
        """Device to what the executable holds there (STEP-99)."""

    def step(self, buffers: Sequence[Buffer], *, device: int, stream: int, execute: Execute) -> None:
        """Run one step; see `StepExecutor`.

        Raises FAILED_PRECONDITION after close, INVALID_ARGUMENT for a wrong number of buffers, INTERNAL
        for a command that names no slot, and what `VaRanges.step` raises.
        """
        if self.closed:
            raise closed_error()
        self.check_count(buffers)
        if not self.remaps():
            execute(tuple(Range(buffer.address, buffer.size) for buffer in buffers), None)
            return
        self.check_selection()
        self.ranges_on(device).step(buffers, stream, execute)

    def close(self) -> None:
        """Wait for every device, and give everything back. Closing again does nothing more."""
        with self.lock:
            self.closed = True
            ranges = tuple(self.ranges.values())
        for held in ranges:
            held.close()

    # -- gates

    def select(self) -> Selection:
        """The slots that this executable's mode gives a fixed address."""
        return select(self.executable)

    def settings_in_force(self) -> StepSettings:
        """What was asked for, on the platform that has it; elsewhere every step maps everything."""
        if self.executable.platform != OPTIMISED_PLATFORM:
            return StepSettings(skip_remap=False, copy_threshold=0)
        return StepSettings(self.executable.skip_remap, max(0, self.executable.copy_threshold))

    def remaps(self) -> bool:
        """Whether there is anything to remap, and buffers to remap it to (STEP-100)."""
        return self.executable.vmm and bool(self.selection.remapped or self.selection.unknown)

    # -- checks that need no device

    def check_count(self, buffers: Sequence[Buffer]) -> None:
        """One buffer per slot: state is kept by slot, and must never meet another slot's (STEP-94)."""
        if len(buffers) != len(self.executable.slots):
            raise SubjectError(
                Code.INVALID_ARGUMENT,
                f"step: {len(buffers)} buffers for the {len(self.executable.slots)} slots of "
                f"{self.executable.name!r}; pass one per slot, in slot order",
            )

    def check_selection(self) -> None:
        """Every index that a command names is a slot; none is guessed for it (SHADOW-108)."""
        for index in self.selection.unknown:
            raise SubjectError(
                Code.INTERNAL,
                f"slot {index}: a command of {self.executable.name!r} names it, but slots run from 0 to "
                f"{len(self.executable.slots) - 1}; the executable is inconsistent, compile it again",
            )

    def ranges_on(self, device: int) -> VaRanges:
        """What is held on ``device``, made at first use."""
        with self.lock:
            if self.closed:
                raise closed_error()
            if device not in self.ranges:
                self.ranges[device] = self.new_ranges(device)
            return self.ranges[device]

    def new_ranges(self, device: int) -> VaRanges:
        """Fresh state for ``device``. Makes no driver call."""
        return VaRanges(self.driver, device, self.executable, self.selection, self.settings)
