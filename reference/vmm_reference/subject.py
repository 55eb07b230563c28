"""The reference as a subject of the conformance suites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vmm_conformance.contracts import Allocator, Driver, Executable, FlagReader, Revision, StepExecutor
from vmm_reference.step_executor import SkipRemapExecutor


class Reference:
    """Implements every contract but ``driver``; correct by the catalogue."""

    name: Final = "reference"
    version: Final = "0.1.0"
    capabilities: Final[Mapping[str, Any]] = {"grow": True, "spaces": (0, 1, 5)}

    def step_executor(self, driver: Driver, executable: Executable) -> StepExecutor:
        """A fresh executor of ``executable``."""
        return SkipRemapExecutor(driver, executable)

    def allocator(self, driver: Driver, device: int) -> Allocator:
        """A fresh allocator on ``device``."""
        from vmm_reference.allocator import VmmAllocator

        return VmmAllocator(driver, device)

    def flags(self, revision: Revision) -> FlagReader:
        """A fresh reader of ``revision``'s flags."""
        from vmm_reference.flags import flag_reader

        return flag_reader(revision)


reference: Final = Reference()
