"""Memory layers that are wrong about what a failed remap leaves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from vmm_conformance.contracts import Code, DriverError, Range, RemappingDescriptor, SubjectError
from vmm_reference.descriptors import place_of
from vmm_reference.mutants.reservation_parts import Registry
from vmm_reference.reservation import MemoryReservation, Piece, ScopedMapping

mutant = Registry()


class Failing(MemoryReservation):
    """Cleans up after a failed remap in a way of its own."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        """What is done when a remap of ``place`` has failed."""
        raise NotImplementedError

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        own = self.withdraw
        self.withdraw = lambda place, *, singly=False: self.clean(place, descriptors)  # type: ignore[method-assign]
        try:
            super().remap(place, descriptors)
        finally:
            self.withdraw = own  # type: ignore[method-assign]

    def give_up(self, place: Range) -> None:
        """As the reference does."""
        MemoryReservation.withdraw(self, place, singly=True)


@mutant("REMAP-36")
class LeavesMapped(Failing):
    """Leaves what is mapped to the close of the reservation."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.left.update(piece.offset for piece in self.pieces(place))


@mutant("REMAP-36")
class CleansRequired(Failing):
    """Unmaps the slices that were to change, and leaves the others."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        for one in descriptors:
            if one.remap_required:
                self.give_up(place_of(one))
        self.left.update(piece.offset for piece in self.pieces(place))


@mutant("REMAP-36", source="ROCm/xla#1001, review finding 11")
class StaysOwner(ScopedMapping):
    """Owns its range again after a remap that failed, though nothing is mapped there."""

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        before = self._reservation, self._place
        try:
            return super().remap(descriptors)
        except DriverError:
            self._reservation, self._place = before
            raise


@mutant("REMAP-36")
class GivesUpOnUnmap(Failing):
    """Does not try again to unmap what it could not unmap at first."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        if self.stuck:
            self.left.update(piece.offset for piece in self.pieces(place))
        else:
            self.give_up(place)

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.stuck = False
        super().remap(place, descriptors)

    def unmap(self, pieces: Sequence[Piece]) -> None:
        try:
            super().unmap(pieces)
        except DriverError:
            self.stuck = True
            raise


@mutant("REMAP-36")
class ErrorLost(MemoryReservation):
    """Reports a failed remap with another error than the driver's."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        try:
            super().remap(place, descriptors)
        except DriverError as error:
            raise DriverError(1, "remap", error.detail) from error


@mutant("REMAP-37")
class CleansBlindly(Failing):
    """Unmaps every slice, whether it is mapped or not."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        for one in descriptors:
            if not self.pieces(place_of(one)):
                with suppress(DriverError):
                    self.driver.unmap(self.base + one.reservation_offset, one.size)
        self.give_up(place)


@mutant("REMAP-37")
class CleansTwice(Failing):
    """Unmaps slice by slice, then the whole range."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.give_up(place)
        with suppress(DriverError):
            self.driver.unmap(self.base + place.address, place.size)


@mutant("REMAP-38")
class BooksRemain(Failing):
    """Takes a range for mapped for ever where a remap has failed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lost: list[Range] = []

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.give_up(place)
        self.lost.append(place)

    def check_mapping(self, slices: Any) -> Range:
        place = super().check_mapping(slices)
        if any(one.address < place.end and place.address < one.end for one in self.lost):
            raise SubjectError(Code.FAILED_PRECONDITION, "map_to: something is mapped there")
        return place


@mutant("REMAP-38")
class Poisoned(Failing):
    """Maps nothing any more once a remap has failed."""

    poisoned = False

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.give_up(place)
        self.poisoned = True

    def check_mapping(self, slices: Any) -> Range:
        place = super().check_mapping(slices)
        if self.poisoned:
            raise SubjectError(Code.ABORTED, "map_to: this reservation is in an unknown state")
        return place


@mutant("REMAP-39")
class CleanupErrorWins(Failing):
    """Reports what went wrong while cleaning up."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        last: DriverError | None = None
        for piece in self.pieces(place):
            try:
                self.unmap((piece,))
            except DriverError as error:
                last = error
        self.left.update(piece.offset for piece in self.pieces(place))
        if last:
            raise last


@mutant("REMAP-39")
class CleanupCrashes(Failing):
    """Is surprised by an error while cleaning up."""

    def clean(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        self.give_up(place)
        if self.pieces(place):
            raise RuntimeError("remap: the cleanup has failed")


MUTANTS = mutant.mutants
