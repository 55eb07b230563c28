"""Execution scopes that allocate in the wrong order or space, or give back too little, too much or too late."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from vmm_conformance.contracts import BufferKind, Range, VmmAllocator
from vmm_reference.mutants.scope_registry import ScopeRegistry
from vmm_reference.remapping import Remapping, RemapScope
from vmm_reference.scopes import REFUSALS, PlainScope

mutant = ScopeRegistry()


# -- what is given back


@mutant("SCOPE-130", source="openxla/xla va_remap_allocator_test: execution without teardown blocked every later one")
class DropFreesNothing(RemapScope):
    """Leaves what was allocated to a teardown that may never come."""

    def drop(self) -> None:
        try:
            with suppress(*REFUSALS):
                self.remapping.hide_all()
        finally:
            self.remapping.lock.release()


@mutant("SCOPE-130")
class PlainDropFreesNothing(PlainScope):
    """Without remapping, leaves what was allocated to a teardown that may never come."""

    def drop(self) -> None:
        pass


@mutant("SCOPE-130", source="openxla/xla va_remap_allocator_test: teardown and destructor both released")
class FreesTwice(RemapScope):
    """Frees its temporary buffers at teardown, and again when it is dropped."""

    freed: tuple[Range, ...] = ()

    def teardown(self, live: Collection[int]) -> None:
        temps = [range_ for index, range_ in self.allocated.items() if index in self.classes.temps]
        super().teardown(live)
        self.freed = tuple(temps)

    def drop(self) -> None:
        for range_ in self.freed:
            with suppress(*REFUSALS):
                self.vmm.deallocate(self.device, range_)
        super().drop()


@mutant("SCOPE-130")
class TeardownForgetsSlices(RemapScope):
    """Frees at teardown what the allocator has placed, and forgets what lies in the reservation."""

    def teardown(self, live: Collection[int]) -> None:
        slices = [index for index in self.allocated if index in self.classes.temps]
        for index in slices:
            del self.allocated[index]
        super().teardown(live)


@mutant("SCOPE-130")
class FreesLogicalSize(RemapScope):
    """Frees temporary buffers by the size that commands know."""

    def allocate(self, index: int) -> Range:
        made = super().allocate(index)
        size = self.executable.buffers[index].size
        return Range(made.address, size) if index in self.classes.temps else made


# -- a run that fails


@mutant("SCOPE-131", source="openxla/xla va_remap_allocator_test: a failed allocation left a temp active at its slice")
class FailedRunKeepsTemps(RemapScope):
    """When it cannot allocate all it needs keeps what it has got so far."""

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        try:
            return super().generate(arguments)
        except BaseException:
            self.allocated.clear()
            raise


@mutant("SCOPE-131")
class FailedPlainRunKeeps(PlainScope):
    """Without remapping, keeps what it has got when it cannot allocate all it needs."""

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        try:
            return super().generate(arguments)
        except BaseException:
            self.allocated.clear()
            raise


@mutant("SCOPE-131")
class StickyFailure(Remapping):
    """Once it could not reserve its addresses, never tries again."""

    broken: Exception | None = None

    def reserve(self, allocator: VmmAllocator) -> None:
        if self.broken is not None:
            raise self.broken
        try:
            super().reserve(allocator)
        except REFUSALS as error:
            self.broken = error
            raise


@mutant("SCOPE-131")
class HalfReserved(Remapping):
    """Takes its layout for made when the reservation was refused."""

    def reserve(self, allocator: VmmAllocator) -> None:
        if self.slices and self.reservation is None:
            return
        self.slices = self.slices or self.lay_out(self.to_place(), allocator.granularity(self.device))
        super().reserve(allocator)


# -- order and space


@mutant("SCOPE-132")
class IndexOrder(RemapScope):
    """Allocates in the order of the indices alone."""

    def transients(self) -> list[int]:
        return sorted(super().transients())


@mutant("SCOPE-132")
class CollectivesLast(PlainScope):
    """Without remapping, allocates the buffers of collectives behind all others."""

    def transients(self) -> list[int]:
        whole = super().transients()
        return sorted(whole, key=lambda index: self.executable.buffers[index].space == 1)


@mutant("SCOPE-132")
class GroupsBackwards(RemapScope):
    """Allocates each group from its last buffer to its first."""

    def transients(self) -> list[int]:
        spaces = [buffer.space for buffer in self.executable.buffers]
        return sorted(super().transients(), key=lambda index: (spaces[index] != 1, -index))


@mutant("SCOPE-133")
class TempsInSpaceZero(RemapScope):
    """Allocates temporary buffers at their slices without naming their memory space."""

    def allocate(self, index: int) -> Range:
        piece = self.remapping.slices.get(index)
        if index not in self.classes.temps or piece is None:
            return super().allocate(index)
        return self.vmm.allocate_mapped(
            self.device, piece.size, reservation=self.remapping.reservation, offset=piece.offset, map_size=piece.size
        )


@mutant("SCOPE-133")
class OutputsInSpaceZero(PlainScope):
    """Without remapping, allocates outputs without naming their memory space."""

    def allocate(self, index: int) -> Range:
        buffer = self.executable.buffers[index]
        if buffer.kind is not BufferKind.OUTPUT:
            return super().allocate(index)
        return self.allocator.allocate(self.device, buffer.size)


@mutant("SCOPE-133")
class CollectivesOnly(RemapScope):
    """Names the memory space of collectives, and no other."""

    def allocate(self, index: int) -> Range:
        buffer = self.executable.buffers[index]
        if buffer.space > 1 and index not in self.classes.temps:
            return self.vmm.allocate(self.device, buffer.size)
        return super().allocate(index)


# -- the end


@mutant("SCOPE-134")
class ReleasesAtOnce(Remapping):
    """Gives the reservation back while ended aliases and freed buffers are still there."""

    def close(self) -> None:
        with self.lock, suppress(*REFUSALS):
            if self.reservation is not None:
                self.reservation.release()
                self.reservation = None


@mutant("SCOPE-134")
class KeepsReservation(Remapping):
    """Never gives the reservation back."""

    def close(self) -> None:
        with self.lock, suppress(*REFUSALS):
            if self.allocator is not None:
                self.allocator.synchronize_pending_operations(self.device)


@mutant("SCOPE-134")
class DrainsFirstDevice(Remapping):
    """Waits for what is pending on the first device, whichever it is on."""

    def close(self) -> None:
        with self.lock, suppress(*REFUSALS):
            if self.allocator is not None and self.reservation is not None:
                self.clean(self.allocator)
                self.allocator.synchronize_pending_operations(0)
                self.reservation.release()
                self.reservation = None


MUTANTS = mutant.mutants
