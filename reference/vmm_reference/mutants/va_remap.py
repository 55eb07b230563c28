"""Known-bad subjects of the contract ``va-remap``."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Mutant
from vmm_reference.mutants import command_buffers, scope_policies, scopes, scopes_ending, scopes_memory

MUTANTS: Final[tuple[Mutant, ...]] = (
    *scopes.MUTANTS,
    *scopes_ending.MUTANTS,
    *scopes_memory.MUTANTS,
    *scope_policies.MUTANTS,
    *command_buffers.MUTANTS,
)
