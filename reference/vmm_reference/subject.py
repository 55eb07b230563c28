"""The reference as a subject of the conformance suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from vmm_conformance.contracts import (
    Allocator,
    Choice,
    CommandBuffer,
    CommandBufferConsumer,
    CopyCosts,
    DeviceConfig,
    DeviceFigures,
    Driver,
    Executable,
    ExecutableBufferAllocator,
    FlagReader,
    MemoryLayer,
    RemapMode,
    Revision,
    ScopedExecutable,
    StepExecutor,
    VmmAllocator,
)
from vmm_reference.allocator import ADDRESSES, PATHS
from vmm_reference.auto_threshold import BOUNDS
from vmm_reference.step_executor import SkipRemapExecutor

SMALL: Final = {"paths": PATHS, "address_space": ADDRESSES}
SIZED: Final = {**SMALL, "shrink": True, "trim": True, "late_peers": True, "statistics": True}
EXPANDABLE: Final = {**SMALL, "trim": True, "statistics": True}
PAUSING: Final = {**SIZED, "pause": ("backup", "discard")}
CAPTURING: Final = {**PAUSING, "captures": True}
ALLOCATORS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "small": ("vmm_reference.allocator:VmmAllocator", SMALL),
    "sized": ("vmm_reference.allocator_parts:SizedAllocator", SIZED),
    "expandable": ("vmm_reference.expandable:ExpandableAllocator", EXPANDABLE),
    "pausing": ("vmm_reference.allocator_parts:PausingAllocator", PAUSING),
    "capturing": ("vmm_reference.allocator_captures:CapturingAllocator", CAPTURING),
}
"""The reference's allocators: where each is, and the optional parts that it has."""


class Reference:
    """Implements every contract but ``driver``; correct by the catalogue.

    ``markers`` and ``second_alias`` choose the revision of the VMM allocator, see
    `vmm_reference.vmm_allocator.DeviceVmmAllocator`; ``set_access_scope`` and ``unmap_scope`` that of
    reservations, see `vmm_reference.reservation.Scopes`. ``allocator`` is one of `ALLOCATORS`.
    """

    name: Final = "reference"
    version: Final = "0.1.0"

    def __init__(
        self,
        markers: str = "batched",
        second_alias: str = "ALREADY_EXISTS",
        set_access_scope: str = "run",
        unmap_scope: str = "run",
        allocator: str = "capturing",
    ) -> None:
        self._allocator, parts = ALLOCATORS[allocator]
        self._vmm = {"markers": markers, "second_alias": second_alias}
        self._scopes = {"set_access_scope": set_access_scope, "unmap_scope": unmap_scope}
        self.capabilities: Mapping[str, Any] = {
            "grow": True, "spaces": (0, 1, 5), **parts, "auto_bounds": BOUNDS, **self._vmm, **self._scopes,
        }  # fmt: skip

    def step_executor(self, driver: Driver, executable: Executable) -> StepExecutor:
        """A fresh executor of ``executable``."""
        return SkipRemapExecutor(driver, executable)

    def allocator(self, driver: Driver, device: int) -> Allocator:
        """A fresh allocator on ``device``."""
        module, _, kind = self._allocator.partition(":")
        made: Allocator = getattr(import_module(module), kind)(driver, device)
        return made

    def vmm_allocator(self, driver: Driver, devices: Sequence[DeviceConfig]) -> VmmAllocator:
        """A fresh allocator over ``devices``."""
        from vmm_reference.vmm_allocator import DeviceVmmAllocator

        return DeviceVmmAllocator(
            driver, devices, markers=self._vmm["markers"], second_alias=self._vmm["second_alias"]
        )

    def reservation(self, driver: Driver, device: int) -> MemoryLayer:
        """A fresh memory layer on ``device``."""
        from vmm_reference.reservation import Scopes, VmmMemory

        return VmmMemory(driver, device, Scopes(*self._scopes.values()))

    def buffer_allocator(self, driver: Driver, executable: ScopedExecutable) -> ExecutableBufferAllocator:
        """Makes the execution scopes of ``executable``, in its mode."""
        from vmm_reference.remapping import buffer_allocator

        return buffer_allocator(driver, executable)

    def command_consumer(
        self, executable: ScopedExecutable, new_buffer: Callable[[int], CommandBuffer]
    ) -> CommandBufferConsumer:
        """Runs the commands of ``executable`` out of a command buffer."""
        from vmm_reference.command_buffer import CommandBufferRunner

        return CommandBufferRunner(executable, new_buffer)

    def parse_update_mode(self, text: str | None) -> RemapMode:
        """The update mode called ``text``."""
        from vmm_reference.policies import parse_update_mode

        return parse_update_mode(text)

    def flags(self, revision: Revision) -> FlagReader:
        """A fresh reader of ``revision``'s flags."""
        from vmm_reference.flags import flag_reader

        return flag_reader(revision)

    def auto_threshold(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        """The slices that are cheaper to copy than to remap."""
        from vmm_reference.auto_threshold import auto_threshold

        return auto_threshold(device, slices, costs)


reference: Final = Reference()
