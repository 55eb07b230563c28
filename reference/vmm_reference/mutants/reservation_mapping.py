"""Memory layers that are wrong about mapping, about undoing it, or about who owns a mapping."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from vmm_conformance.contracts import Code, Driver, DriverError, MappingDescriptor, Range, SubjectError
from vmm_conformance.contracts import ScopedMapping as AnyMapping
from vmm_reference.descriptors import Descriptor, place_of
from vmm_reference.mutants.reservation_parts import Registry
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import EMPTY, MemoryReservation, Piece, ScopedMapping

mutant = Registry()

# -- RES-11, RES-13, RES-17: what the driver is asked for


@mutant("RES-11")
class OffsetCopied(MemoryReservation):
    """Passes the reservation's offset on as the allocation's."""

    def map(self, one: Descriptor) -> None:
        super().map(one._replace(allocation_offset=one.reservation_offset))


@mutant("RES-11")
class OffsetDropped(MemoryReservation):
    """Maps every allocation from its start."""

    def map(self, one: Descriptor) -> None:
        super().map(one._replace(allocation_offset=0))


@mutant("RES-13")
class UnmapsParts(MemoryReservation):
    """Unmaps the slices that a remap describes, whether they are whole mappings or not."""

    def check_whole(self, run: Range) -> None:
        for piece in self.pieces(run):
            if piece.offset < run.address or piece.place.end > run.end:
                self.driver.unmap(self.base + run.address, run.size)


@mutant("RES-13")
class TakesTheRest(MemoryReservation):
    """Unmaps all of a mapping for a slice that is a part of it, and loses the rest."""

    def check_whole(self, run: Range) -> None:
        pass


@mutant("RES-13", "MAP-21")
class GranuleByGranule(MemoryReservation):
    """Unmaps one granule after the other."""

    def unmap(self, pieces: Sequence[Piece]) -> None:
        minimum = self.driver.granularity(self.device).minimum
        if len(pieces) == 1 and pieces[0].size > minimum:
            self.driver.unmap(self.base + pieces[0].offset, minimum)
        super().unmap(pieces)


@mutant("RES-17")
class AccessEach(MemoryReservation):
    """Grants rights slice by slice when it maps several."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        def grant(changed: Any, whole: Range) -> None:
            for one in changed:
                self.set_access(place_of(one))

        self.grant = grant  # type: ignore[method-assign]
        try:
            return super().map_to(descriptors)
        finally:
            del self.grant


@mutant("RES-17")
class AccessTwice(MemoryReservation):
    """Grants rights on each mapping as it is made, and on all of them again."""

    def map(self, one: Descriptor) -> None:
        super().map(one)
        self.set_access(place_of(one))


class Reordering(MemoryReservation):
    """Maps the slices of map_to in an order, or with memory, of its own."""

    def reordered(self, slices: list[MappingDescriptor]) -> list[MappingDescriptor]:
        """The slices as they are mapped."""
        raise NotImplementedError

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        self.waiting = self.reordered(list(descriptors))
        return super().map_to(descriptors)

    def map(self, one: Descriptor) -> None:
        super().map(self.waiting.pop(0) if isinstance(one, MappingDescriptor) else one)


@mutant("RES-17")
class MapsBackwards(Reordering):
    """Maps the last slice first."""

    def reordered(self, slices: list[MappingDescriptor]) -> list[MappingDescriptor]:
        return slices[::-1]


@mutant("RES-17")
class SwapsMemory(Reordering):
    """Shows the first slice's memory in the last slice too, where their sizes are equal."""

    def reordered(self, slices: list[MappingDescriptor]) -> list[MappingDescriptor]:
        if len(slices) > 1 and slices[0].size == slices[-1].size:
            slices[-1] = slices[0]._replace(reservation_offset=slices[-1].reservation_offset)
        return slices


# -- RES-18 to RES-20: undoing


class Undoing(MemoryReservation):
    """Undoes a mapping call in a way of its own."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        """What is done when ``error`` has stopped the mapping of ``place``."""
        raise NotImplementedError

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        self.check_open("map_to")
        place = self.check_mapping(tuple(descriptors))
        self.clear_left(place)
        try:
            for one in descriptors:
                self.map(one)
            self.grant(descriptors, place)
        except DriverError as error:
            self.undo(place, self.pieces(place), error)
            raise
        return self.own(place)


@mutant("RES-18", "RES-19")
class LeavesLast(Undoing):
    """Unmaps all but the last slice that it had mapped."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        for piece in mapped[:-1]:
            with suppress(DriverError):
                self.unmap((piece,))


@mutant("RES-18", "RES-19")
class UndoErrorWins(Undoing):
    """Reports what went wrong while undoing."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        for pieces in self.unmap_calls(mapped):
            try:
                self.unmap(pieces)
            except DriverError:
                self.left.update(piece.offset for piece in pieces)
                raise


@mutant("RES-18", "RES-19", "RES-20")
class ErrorLost(Undoing):
    """Reports a generic failure of its own making, with a code that no driver has."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        self.withdraw(place)
        raise RuntimeError(f"mapping failed: {error}")


@mutant("RES-18", "RES-19")
class UndoesTooMuch(Undoing):
    """Unmaps all of the reservation."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        if mapped:
            self.withdraw(Range(0, self.size))


@mutant("RES-19")
class KeepsWithoutAccess(Undoing):
    """Undoes nothing when rights cannot be granted: all is mapped, after all."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        if error.call != "set_access":
            self.withdraw(place)


@mutant("RES-20")
class UnmapsNothing(Undoing):
    """Unmaps the range of what it was to map, though nothing is mapped yet."""

    def undo(self, place: Range, mapped: list[Piece], error: DriverError) -> None:
        if mapped:
            self.withdraw(place)
        else:
            with suppress(DriverError):
                self.driver.unmap(self.base + place.address, place.size)


@mutant("RES-20", "RES-18")
class UnmapsFailed(MemoryReservation):
    """Counts a slice as mapped before it is, so that undoing unmaps it too."""

    def map(self, one: Descriptor) -> None:
        try:
            super().map(one)
        except DriverError:
            with suppress(DriverError):
                self.driver.unmap(self.base + one.reservation_offset, one.size)
            raise


# -- MAP: who owns a mapping


@mutant("MAP-21")
class NeverUnmaps(ScopedMapping):
    """Forgets its range without unmapping it."""

    def release(self) -> None:
        if not self.is_null:
            self.give_up()


@mutant("MAP-21")
class UnmapsTwice(ScopedMapping):
    """Unmaps its range again when it is gone."""

    def release(self) -> None:
        if self.is_null:
            return
        start, size = self.address
        reservation = self.owner("release")
        super().release()
        with suppress(DriverError):
            reservation.driver.unmap(start, size)


@mutant("MAP-21")
class UnmapsLast(ScopedMapping):
    """Unmaps its last slice."""

    def release(self) -> None:
        if not self.is_null:
            reservation, place = self.give_up()
            reservation.withdraw(reservation.pieces(place)[-1].place)


@mutant("MAP-21")
class ExitForgets(ScopedMapping):
    """Does nothing at the end of a with block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@mutant("MAP-22", "MAP-21")
class MoveCopies(ScopedMapping):
    """Goes on owning what was moved."""

    def move(self) -> ScopedMapping:
        return self._reservation.own(self._place) if self._reservation else ScopedMapping()


@mutant("MAP-22")
class NullAddress(ScopedMapping):
    """Has an address when it is null."""

    @property
    def address(self) -> Range:
        return EMPTY if self.is_null else super().address


@mutant("MAP-22")
class RemapsAndStays(ScopedMapping):
    """Goes on owning its range when the range is remapped."""

    def remap(self, descriptors: Any) -> ScopedMapping:
        before = self._reservation, self._place
        made = super().remap(descriptors)
        self._reservation, self._place = before
        return made


@mutant("MAP-22")
class NullRaises(ScopedMapping):
    """Refuses to be released twice."""

    def release(self) -> None:
        if self._reservation is None:
            raise SubjectError(Code.FAILED_PRECONDITION, "release: this mapping is null")
        super().release()


@mutant("MAP-23")
class AssignForgets(ScopedMapping):
    """Forgets what it owned when it takes over another range."""

    def assign(self, other: AnyMapping) -> None:
        if other is not self and not self.is_null:
            self.give_up()
        super().assign(other)


@mutant("MAP-23")
class AssignsItselfAway(ScopedMapping):
    """Does not notice that it is assigned to itself."""

    def assign(self, other: AnyMapping) -> None:
        assert isinstance(other, ScopedMapping)
        self.release()
        if not other.is_null:
            self._reservation, self._place = other.give_up()


@mutant("MAP-23")
class AssignCopies(ScopedMapping):
    """Leaves the other mapping as it is."""

    def assign(self, other: AnyMapping) -> None:
        assert isinstance(other, ScopedMapping)
        if other is not self:
            self.release()
            self._reservation, self._place = other._reservation, other._place


@mutant("MAP-24")
class ReleaseRaises(ScopedMapping):
    """Raises what the driver answers to an unmap."""

    def release(self) -> None:
        if not self.is_null:
            reservation, place = self.give_up()
            calls = reservation.unmap_calls(reservation.pieces(place))
            try:
                for pieces in calls:
                    reservation.unmap(pieces)
            except DriverError:
                reservation.left.update(piece.offset for piece in reservation.pieces(place))
                raise


@mutant("MAP-25")
class BaseOnly(ScopedMapping):
    """Has the address of its reservation."""

    @property
    def address(self) -> Range:
        return Range(self.owner("address").base, self._place.size)


@mutant("MAP-25")
class FirstSliceOnly(ScopedMapping):
    """Has the size of its first slice."""

    @property
    def address(self) -> Range:
        start, _ = super().address
        return Range(start, self.owner("address").pieces(self._place)[0].size)


@mutant("MAP-21", "RES-9")
class LosesBooks(MemoryReservation):
    """Does not enter what it maps into its books beyond the fourth mapping."""

    def __init__(self, driver: Driver, device: int, size: int, alignment: int, scopes: Any) -> None:
        super().__init__(driver, device, size, alignment, scopes)
        self.entered = 0

    def map(self, one: Descriptor) -> None:
        super().map(one)
        self.entered += 1
        if self.entered > 4:
            piece = self.mapped.pop(one.reservation_offset)
            assert isinstance(piece.allocation, RawMemoryAllocation)


MUTANTS = mutant.mutants
