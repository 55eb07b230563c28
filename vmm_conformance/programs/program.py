"""Programs: what is run, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Program:
    """A list of operations for one contract under one configuration.

    ``configuration`` and each operation are frozen dataclasses of the contract's own module.
    """

    contract: str
    configuration: Any
    operations: tuple[Any, ...]

    def with_operations(self, operations: tuple[Any, ...]) -> Program:
        """The same program with other operations."""
        return replace(self, operations=operations)
