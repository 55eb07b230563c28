"""Known-bad memory layers."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Mutant
from vmm_reference.mutants import (
    reservation_mapping,
    reservation_memory,
    reservation_remap,
    reservation_remap_failures,
    reservation_requests,
)

MUTANTS: Final[tuple[Mutant, ...]] = (
    *reservation_memory.MUTANTS,
    *reservation_requests.MUTANTS,
    *reservation_mapping.MUTANTS,
    *reservation_remap.MUTANTS,
    *reservation_remap_failures.MUTANTS,
)
