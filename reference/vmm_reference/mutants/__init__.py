"""Known-bad variants of the reference: what the suites must be able to catch.

Each is a subclass with a few lines overridden, and breaks the invariant that it names first.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from vmm_conformance.contracts import Mutant

_MODULES: Final = (
    "allocator", "auto", "flags", "step", "order",
    "reservation", "shadow", "upstream", "subjects", "va_remap", "vmm",
)  # fmt: skip


def _collect() -> tuple[Mutant, ...]:
    found = (f"{__name__}.{name}" for name in _MODULES if find_spec(f"{__name__}.{name}"))
    return tuple(mutant for name in found for mutant in import_module(name).MUTANTS)


MUTANTS: Final = _collect()
"""Every mutant of the reference."""
