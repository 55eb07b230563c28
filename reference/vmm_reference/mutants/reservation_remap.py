"""Memory layers that are wrong about what a remap may be asked for, and about what it changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from vmm_conformance.contracts import DriverError, Range, RemappingDescriptor, SubjectError
from vmm_reference.descriptors import Descriptor, changed_runs, check_contiguous, place_of, refused
from vmm_reference.mutants.reservation_parts import Registry
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import MemoryReservation, Piece, ScopedMapping, Scopes

mutant = Registry()
BY_SLICE = Scopes("run", "slice")
OVER_ALL = Scopes("full", "run")

# -- REMAP-26 to REMAP-29: what must be refused


@mutant("REMAP-26", source="ROCm/xla#1001, review finding 11")
class NullCrashes(ScopedMapping):
    """Takes for granted that it owns something."""

    def owner(self, call: str) -> MemoryReservation:
        reservation: Any = self._reservation
        return reservation.base and super().owner(call) if call == "remap" else super().owner(call)


@mutant("REMAP-26")
class NullIsFine(ScopedMapping):
    """Remaps nothing to nothing."""

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        return ScopedMapping() if self.is_null else super().remap(descriptors)


@mutant("REMAP-27")
class EmptyConsumes(ScopedMapping):
    """Gives its range up before it sees that there are no slices."""

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        if not descriptors and not self.is_null:
            self.release()
            raise refused("remap: no descriptor was given")
        return super().remap(descriptors)


@mutant("REMAP-27")
class EmptyIsUnchanged(ScopedMapping):
    """Takes no slices for slices that all stay as they are."""

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        return super().remap(descriptors) if descriptors or self.is_null else self.move()


@mutant("REMAP-28")
class CoversPart(MemoryReservation):
    """Takes slices that leave the end of the range out."""

    def check_remapping(self, owned: Range, slices: Sequence[RemappingDescriptor]) -> None:
        place = check_contiguous("remap", slices)
        if place.address == owned.address and place.end < owned.end:
            owned = place
        super().check_remapping(owned, slices)


@mutant("REMAP-28")
class CountsBytes(MemoryReservation):
    """Compares how many bytes are described, not where they are."""

    def check_remapping(self, owned: Range, slices: Sequence[RemappingDescriptor]) -> None:
        place = check_contiguous("remap", slices)
        super().check_remapping(place if place.size == owned.size else owned, slices)


@mutant("REMAP-28", "REMAP-29")
class ConsumesFirst(ScopedMapping):
    """Gives its range up before the slices are checked."""

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        owned = ScopedMapping() if self.is_null else ScopedMapping(*self.give_up())
        try:
            return owned.remap(descriptors)
        except SubjectError:
            owned.release()
            raise


@mutant("REMAP-29")
class NullUnchecked(MemoryReservation):
    """Looks at a slice's allocation only where it is required."""

    def check_remapping(self, owned: Range, slices: Sequence[RemappingDescriptor]) -> None:
        some: Any = object()
        seen = [one if one.remap_required or one.allocation else one._replace(allocation=some) for one in slices]
        super().check_remapping(owned, seen)


# -- REMAP-30 to REMAP-33, REMAP-40: which slices are changed


class Changing(MemoryReservation):
    """Changes other slices than it is asked to."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        """The slices as it takes them."""
        raise NotImplementedError

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        super().remap(place, self.changed(descriptors))

    def at(self, one: Descriptor) -> Piece | None:
        """What is mapped at exactly that slice."""
        pieces = self.pieces(place_of(one))
        return pieces[0] if len(pieces) == 1 and pieces[0].place == place_of(one) else None

    def fits(self, one: RemappingDescriptor) -> bool:
        """Whether the slice could be mapped as it is described."""
        try:
            self.check_memory("remap", one)
        except SubjectError:
            return False
        return self.at(one) is not None


@mutant("REMAP-30")
class AccessAnyway(MemoryReservation):
    """Grants rights on the whole range when nothing has changed."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        super().remap(place, descriptors)
        if not any(one.remap_required for one in descriptors):
            for piece in self.pieces(place):
                self.set_access(piece.place)


@mutant("REMAP-30")
class RemapsUnchanged(Changing):
    """Remaps all slices if it is asked to change none."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        if any(one.remap_required for one in descriptors) or not all(map(self.fits, descriptors)):
            return descriptors
        return [one._replace(remap_required=True) for one in descriptors]


@mutant("REMAP-31")
class RemapsAll(Changing):
    """Remaps all slices if it is asked to change one."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        if not any(one.remap_required for one in descriptors):
            return descriptors
        return [one._replace(remap_required=one.remap_required or self.fits(one)) for one in descriptors]


@mutant("REMAP-31")
class TakesNeighbour(Changing):
    """Remaps the slice behind a required one too."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        before = (False, *(one.remap_required for one in descriptors))
        taken = [
            one.remap_required or (left and self.fits(one)) for one, left in zip(descriptors, before, strict=False)
        ]
        return [one._replace(remap_required=required) for one, required in zip(descriptors, taken, strict=True)]


@mutant("REMAP-32")
class KeepsOld(Changing):
    """Maps the memory again that a slice has shown before."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        kept = []
        for one in descriptors:
            piece = self.at(one)
            old = one._replace(allocation=piece.allocation, allocation_offset=0) if piece else one
            kept.append(old if piece and not piece.allocation.released and self.fits(old) else one)
        return kept


@mutant("REMAP-32")
class RemapsFirstOnly(Changing):
    """Stops at the first required slice."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        first = next((n for n, one in enumerate(descriptors) if one.remap_required), 0)
        return [one._replace(remap_required=one.remap_required and n == first) for n, one in enumerate(descriptors)]


@mutant("REMAP-33")
class MapsOver(MemoryReservation):
    """Maps the new memory first, then finds out whether the old one is in the way."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        for one in descriptors:
            if one.remap_required and isinstance(one.allocation, RawMemoryAllocation):
                with suppress(DriverError):
                    self.driver.map(self.base + one.reservation_offset, one.size, one.allocation.handle)
        super().remap(place, descriptors)


@mutant("REMAP-33")
class UnmapsFirstRun(MemoryReservation):
    """Unmaps the first run alone."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        runs = len(changed_runs(one for one in descriptors if one.remap_required))
        whole = self.unmap_calls
        if runs > 1:
            self.unmap_calls = lambda pieces, **how: whole(pieces, **how)[:1]  # type: ignore[method-assign]
        try:
            super().remap(place, descriptors)
        finally:
            if runs > 1:
                del self.unmap_calls


@mutant("REMAP-40", source="openxla/xla#41757")
class Compares(Changing):
    """Remaps a slice that is to stay, if its descriptor names other memory than it shows."""

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        return [one._replace(remap_required=one.remap_required or self.differs(one)) for one in descriptors]

    def differs(self, one: RemappingDescriptor) -> bool:
        """Whether the slice shows something else."""
        piece = self.at(one)
        return piece is not None and piece.allocation is not one.allocation and self.fits(one)


@mutant("REMAP-40")
class RefusesLies(Changing):
    """Refuses slices that are to stay and whose descriptor names other memory than they show."""

    def check_remapping(self, owned: Range, slices: Sequence[RemappingDescriptor]) -> None:
        super().check_remapping(owned, slices)
        for one in slices:
            piece = self.at(one)
            if piece and not one.remap_required and piece.allocation is not one.allocation:
                raise refused("remap: this slice shows other memory")

    def changed(self, descriptors: Sequence[RemappingDescriptor]) -> Sequence[RemappingDescriptor]:
        return descriptors


# -- REMAP-34, REMAP-35: rights, and how calls are grouped


@mutant("REMAP-34")
class MissesLastRun(MemoryReservation):
    """Grants rights on a run when the next one begins, and so never on the last."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        runs = changed_runs(one for one in descriptors if one.remap_required)
        whole = self.set_access
        if len(runs) > 1:
            self.set_access = lambda place: None if place == runs[-1] else whole(place)  # type: ignore[method-assign]
        try:
            super().remap(place, descriptors)
        finally:
            if len(runs) > 1:
                del self.set_access


@mutant("REMAP-34")
class StaleAccess(MemoryReservation):
    """Trusts that rights outlive the mapping they were granted on."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.grant = lambda changed, whole: None  # type: ignore[method-assign]
        try:
            super().remap(place, descriptors)
        finally:
            del self.grant


@mutant("REMAP-34", scopes=OVER_ALL)
class EachInsteadOfFull(MemoryReservation):
    """Grants rights slice by slice, where it declares to do so over the whole range."""

    def grant(self, changed: Iterable[Descriptor], whole: Range) -> None:
        slices = list(changed)
        if isinstance(slices[0], RemappingDescriptor):
            for one in slices:
                self.set_access(place_of(one))
        else:
            super().grant(slices, whole)


@mutant("REMAP-34")
class FullInsteadOfRun(MemoryReservation):
    """Grants rights over the whole range, where it declares to do so run by run."""

    def grant(self, changed: Iterable[Descriptor], whole: Range) -> None:
        if self.driver.capabilities.set_access_spans_mappings:
            self.set_access(whole)
        else:
            super().grant(changed, whole)


@mutant("REMAP-34")
class OwnDeviceAgain(MemoryReservation):
    """Grants rights to its own device alone when it remaps."""

    def grant(self, changed: Iterable[Descriptor], whole: Range) -> None:
        slices = list(changed)
        if isinstance(slices[0], RemappingDescriptor):
            alone: Any = _Alone(self.driver)
            own, self.driver = self.driver, alone
            try:
                super().grant(slices, whole)
            finally:
                self.driver = own
        else:
            super().grant(slices, whole)


class _Alone:
    """A driver on which no device reaches another."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def can_access_peer(self, device: int, peer: int) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)


class Grouping(MemoryReservation):
    """Groups the calls of a remap in a way of its own."""

    def joined(self, run: Range, owned: Range) -> bool:
        """Whether a run shares its calls."""
        raise NotImplementedError

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.owned = place
        super().remap(place, descriptors)

    def grant(self, changed: Iterable[Descriptor], whole: Range) -> None:
        slices = list(changed)
        if not isinstance(slices[0], RemappingDescriptor):
            super().grant(slices, whole)
            return
        for run in changed_runs(slices):
            inside = [one for one in slices if run.address <= one.reservation_offset < run.end]
            if self.joined(run, whole):
                super().grant(inside, whole)
            else:
                for one in inside:
                    super().grant([one], place_of(one))


@mutant("REMAP-35")
class NotAcrossEdges(Grouping):
    """Takes slices one by one in a run at the edge of its range."""

    def joined(self, run: Range, owned: Range) -> bool:
        return run.address > owned.address and run.end < owned.end


@mutant("REMAP-35")
class NeverJoins(Grouping):
    """Grants rights slice by slice."""

    def joined(self, run: Range, owned: Range) -> bool:
        return False


@mutant("REMAP-35")
class UnmapsEach(MemoryReservation):
    """Unmaps slice by slice, where it declares to do so run by run."""

    def unmap_calls(self, pieces: Sequence[Piece], *, singly: bool = False) -> list[list[Piece]]:
        return super().unmap_calls(pieces, singly=True)


@mutant("REMAP-35", scopes=BY_SLICE)
class UnmapsTogether(MemoryReservation):
    """Unmaps run by run, where it declares to do so slice by slice."""

    def unmap_calls(self, pieces: Sequence[Piece], *, singly: bool = False) -> list[list[Piece]]:
        before, self.scopes = self.scopes, Scopes()
        try:
            return super().unmap_calls(pieces, singly=singly)
        finally:
            self.scopes = before


MUTANTS = mutant.mutants
