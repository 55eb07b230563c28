"""What the scenarios of the contract ``vmm-allocator`` have in common."""

from __future__ import annotations

from typing import Final

from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.vmm_allocator import Configuration, Operation

G: Final = 4096
PLAIN: Final = Configuration()
SHORT: Final = Configuration(budget=8 * G)

Operations = tuple[Operation, ...]


def scenario(
    name: str, configuration: Configuration, operations: Operations, numbers: tuple[int, ...], note: str
) -> Scenario:
    """The scenario ``vmm-name``; ``numbers`` are those of the invariants that it exercises."""
    program = Program("vmm-allocator", configuration, operations)
    return Scenario(f"vmm-{name}", program, tuple(f"ALLOC-{number}" for number in numbers), note)
