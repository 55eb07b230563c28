"""Subjects that do nothing, refuse everything, leak, lie, or throw dice."""

from __future__ import annotations

import random
from collections.abc import Sequence

from vmm_conformance.contracts import Buffer, Code, Driver, Executable, Execute, Range, SubjectError, Table
from vmm_reference.layout import Layout
from vmm_reference.mutants.registry import Registry
from vmm_reference.step_executor import SkipRemapExecutor
from vmm_reference.va_ranges import VaRanges

mutant = Registry()


@mutant("STEP-166", "STEP-100", "STEP-162")
class DoesNothing:
    """Never executes, and says that all is well."""

    def __init__(self, driver: Driver, executable: Executable) -> None:
        pass

    def step(self, buffers: Sequence[Buffer], *, device: int, stream: int, execute: Execute) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


@mutant("STEP-166", "STEP-100", "STEP-162")
class RefusesEverything(DoesNothing):
    """Refuses every step."""

    def step(self, buffers: Sequence[Buffer], *, device: int, stream: int, execute: Execute) -> None:
        """Raises INTERNAL."""
        raise SubjectError(Code.INTERNAL, "step: not today")


@mutant("STEP-164", "SHADOW-116")
class GivesNothingBack(SkipRemapExecutor):
    """Keeps everything when it is closed."""

    def close(self) -> None:
        self.closed = True


@mutant("STEP-83", "STEP-84")
class LiesInTable(VaRanges):
    """Gives execution addresses that lie one granule behind the real ones."""

    def make_table(self, layout: Layout, buffers: Sequence[Buffer]) -> Table:
        fixed = {slot.slot for slot in layout.mapped}
        table = super().make_table(layout, buffers)
        return tuple(
            Range(place.address + layout.granularity, place.size) if slot in fixed else place
            for slot, place in enumerate(table)
        )


@mutant("STEP-84", "STEP-101")
class LiesAboutPersistence(VaRanges):
    """Promises that no slot's address ever changes, those of the caller's own buffers included."""

    def execute(self, execute: Execute, table: Table, persistent: tuple[int, ...]) -> None:
        super().execute(execute, table, tuple(range(len(table))))


@mutant("STEP-86", "STEP-87", repeatable=False)
class ThrowsDice(VaRanges):
    """Takes a mapped slot for unmoved half of the time, at random."""

    def unmoved(self, index: int, buffer: Buffer) -> bool:
        return super().unmoved(index, buffer) or (index in self.mappings.mapped and random.random() < 0.5)


MUTANTS = mutant.mutants
