"""Known-bad VMM allocators."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Mutant
from vmm_reference.mutants import vmm_aliases, vmm_deferral, vmm_memory, vmm_requests, vmm_waits

MUTANTS: Final[tuple[Mutant, ...]] = (
    *vmm_requests.MUTANTS, *vmm_deferral.MUTANTS, *vmm_aliases.MUTANTS, *vmm_memory.MUTANTS, *vmm_waits.MUTANTS,
)  # fmt: skip
