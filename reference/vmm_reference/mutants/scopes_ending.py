"""Execution scopes that end their aliases wrongly, map what has not moved, or take the wrong sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from vmm_conformance.contracts import Execute, Range, VmmAllocator
from vmm_reference.mutants.scope_registry import ScopeRegistry
from vmm_reference.remapping import Remapping, RemapScope, Slice
from vmm_reference.scopes import REFUSALS, PlainScope

mutant = ScopeRegistry()


# -- the end of aliases


@mutant("SCOPE-127")
class ReleasesOnSuccessOnly(RemapScope):
    """Ends no alias when execution has failed."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if self.watched:
            super().execute(table, execute)
            return
        try:
            running = self.running_table(table)
        except BaseException:
            with suppress(*REFUSALS):
                self.remapping.hide_all()
            raise
        execute(running, self.persistent())
        self.remapping.hide_all()


@mutant("SCOPE-127")
class ReleaseErrorWins(RemapScope):
    """Reports that an alias could not be ended, though execution had failed before."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if self.watched:
            super().execute(table, execute)
            return
        try:
            execute(self.running_table(table), self.persistent())
        finally:
            self.remapping.hide_all()


@mutant("SCOPE-127")
class SwallowsReleaseError(RemapScope):
    """Says nothing of an alias that could not be ended."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if self.watched:
            super().execute(table, execute)
            return
        try:
            execute(self.running_table(table), self.persistent())
        finally:
            with suppress(*REFUSALS):
                self.remapping.hide_all()


@mutant("SCOPE-127", source="openxla/xla va_remap_allocator_test ExecutionScopeAliasReleaseRetriesFailedBatchFlush")
class ForgetsFailedRelease(Remapping):
    """Tries to end each alias once, and forgets it if that is refused."""

    def hide_all(self) -> None:
        try:
            super().hide_all()
        finally:
            self.aliases.clear()


@mutant("SCOPE-127")
class AliasesStay(RemapScope):
    """Leaves the aliases for the next run, which may want them again."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if self.watched:
            super().execute(table, execute)
            return
        with suppress(*REFUSALS):
            self.remapping.hide_all()
        execute(self.running_table(table), self.persistent())

    def drop(self) -> None:
        PlainScope.drop(self)
        self.remapping.lock.release()

    def teardown(self, live: Collection[int]) -> None:
        PlainScope.teardown(self, live)


# -- unmoved buffers


@mutant("SCOPE-128")
class WaitsAfterRelease(Remapping):
    """Lets every ended alias really go, so that the next run has to map it anew."""

    def hide_all(self) -> None:
        ended = bool(self.aliases)
        super().hide_all()
        if ended and self.allocator is not None:
            self.allocator.synchronize_pending_operations(self.device)


@mutant("SCOPE-128", "POLICY-138")
class TwoSlicesInTurn(Remapping):
    """Has two sets of slices, and uses them in turn."""

    turn = 0

    def reserve(self, allocator: VmmAllocator) -> None:
        fresh = self.reservation is None
        super().reserve(allocator)
        if fresh and self.reservation is not None:
            self.home = self.reservation
            self.other = allocator.create_reservation(self.device, self.home.range.size)

    def hide_all(self) -> None:
        super().hide_all()
        if self.profile.selected and self.reservation is not None and not self.aliases and not self.classes.temps:
            self.turn += 1
            self.reservation = (self.home, self.other)[self.turn // 2 % 2]

    def close(self) -> None:
        if self.reservation is not None and self.allocator is not None:
            self.reservation = self.home
            with suppress(*REFUSALS):
                self.allocator.synchronize_pending_operations(self.device)
                self.other.release()
        super().close()


# -- sizes


@mutant("SCOPE-129")
class MapsLogicalSize(Remapping):
    """Maps as many bytes as a buffer has, and no whole granules."""

    def show(self, index: int, buffer: Range, allocator: VmmAllocator) -> Range:
        piece = self.slices[index]
        self.slices = {**self.slices, index: piece._replace(size=buffer.size)}
        try:
            return super().show(index, buffer, allocator)
        finally:
            self.slices = {**self.slices, index: piece}


@mutant("SCOPE-129")
class ShowsPaddedSize(PlainScope):
    """Gives the caller outputs as large as what stands behind them."""

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        table = super().generate(arguments)
        return [Range(entry.address, -(-entry.size // 4096) * 4096) for entry in table]


@mutant("SCOPE-129")
class LaysOutLogicalSizes(Remapping):
    """Lays buffers out one behind the other without rounding."""

    def lay_out(self, indices: Iterable[int], granularity: int) -> dict[int, Slice]:
        return super().lay_out(indices, 1)


MUTANTS = mutant.mutants
