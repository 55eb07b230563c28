"""Correct memory layers that are built in other ways than the reference: the checker must have no word on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from vmm_conformance.contracts import (
    Access,
    Code,
    Driver,
    DriverError,
    MemoryLayer,
    Range,
    RemappingDescriptor,
    SubjectError,
)
from vmm_conformance.running.recorded import RecordedDriver
from vmm_reference.descriptors import Descriptor, changed_runs, check_contiguous, check_numbers
from vmm_reference.mutants.reservation_parts import assembled
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import MemoryReservation, Piece, ScopedMapping, Scopes, VmmMemory


class SliceBySlice(MemoryReservation):
    """Unmaps and maps one slice after the other; rights for each run as it is done."""

    def remap(self, place: Range, descriptors: Sequence[RemappingDescriptor]) -> None:
        required = [one for one in descriptors if one.remap_required]
        try:
            for run in changed_runs(required):
                inside = [one for one in required if run.address <= one.reservation_offset < run.end]
                for piece in self.pieces(run):
                    self.unmap((piece,))
                for one in inside:
                    self.map(one)
                self.grant(inside, run)
        except DriverError:
            self.withdraw(place, singly=True)
            raise


class DeviceByDevice(MemoryReservation):
    """One set_access for each device, its own first; what a peer is refused is passed over."""

    def set_access(self, place: Range) -> None:
        address = self.base + place.address
        self.driver.set_access(address, place.size, {self.device: Access.READ_WRITE})
        for peer in range(self.driver.device_count):
            if peer != self.device:
                try:
                    self.driver.set_access(address, place.size, {peer: Access.READ_WRITE})
                except DriverError:
                    if self.driver.can_access_peer(peer, self.device):
                        raise


class WholeFirst(MemoryReservation):
    """Tries to unmap all of its range at once when it closes, though not all of it may be mapped."""

    def close(self) -> None:
        if not self.closed and self.mapped:
            first, last = self.mapped.peekitem(0)[1], self.mapped.peekitem(-1)[1]
            whole = (first.offset, last.place.end, len(self.mapped)) == (0, self.size, 1)
            if not whole:
                with suppress(DriverError):
                    self.driver.unmap(self.base, self.size)
                    self.forget()
        super().close()

    def forget(self) -> None:
        """All has been unmapped at once."""
        for piece in self.mapped.values():
            piece.allocation.shown(-1)
        self.mapped.clear()
        self.left.clear()


class LeavesToDriver(MemoryReservation):
    """Checks what the specification says, and leaves the rest to the driver."""

    def map_to(self, descriptors: Any) -> ScopedMapping:
        slices = tuple(descriptors)
        self.check_open("map_to")
        place = check_contiguous("map_to", slices)
        for one in slices:
            self.check_memory("map_to", one)
        made: list[Piece] = []
        try:
            for one in slices:
                self.map(one)
                made.append(self.mapped[one.reservation_offset])
            self.grant(slices, place)
        except DriverError:
            for piece in made:
                try:
                    self.unmap((piece,))
                except DriverError:
                    self.left.add(piece.offset)
            raise
        return self.own(place)

    def check_memory(self, call: str, one: Descriptor) -> None:
        if isinstance(one.allocation, RawMemoryAllocation) and not one.allocation.released:
            check_numbers(call, one, self.driver.granularity(self.device).minimum, 1 << 62)
        else:
            super().check_memory(call, one)


class OwnCodes(MemoryReservation):
    """Reports the driver's errors by codes of its own."""

    def map_to(self, descriptors: Any) -> ScopedMapping:
        try:
            return super().map_to(descriptors)
        except DriverError as error:
            raise SubjectError(Code.INTERNAL, str(error)) from error

    def remap(self, place: Range, descriptors: Any) -> None:
        try:
            super().remap(place, descriptors)
        except DriverError as error:
            raise SubjectError(Code.UNAVAILABLE, str(error)) from error


class KeepsShown(RawMemoryAllocation):
    """Refuses to be released while a mapping shows it."""

    def release(self) -> None:
        if self.mappings:
            raise SubjectError(Code.FAILED_PRECONDITION, "release: the memory is still mapped")
        super().release()


class Unaligned(VmmMemory):
    """Takes no heed of an alignment."""

    def reserve(self, size: int, alignment: int = 0) -> MemoryReservation:
        return super().reserve(size)


class SubjectOf:
    """A subject with one of these layers."""

    def __init__(self, kind: type, scopes: Scopes = Scopes(), *, traced: bool = True, **capabilities: Any) -> None:  # noqa: B008
        self.name = "-".join((kind.__name__, *scopes, "traced" if traced else "untraced"))
        self.layer: Any = kind if issubclass(kind, VmmMemory) else assembled(kind)
        self.scopes = scopes
        self.traced = traced
        named = {"set_access_scope": scopes.set_access, "unmap_scope": scopes.unmap}
        self.capabilities: Mapping[str, Any] = {"spaces": (0, 1), "traced": traced, **named, **capabilities}

    def reservation(self, driver: Driver, device: int) -> MemoryLayer:
        if not self.traced:
            assert isinstance(driver, RecordedDriver)
            driver = driver.unrecorded
        layer: MemoryLayer = self.layer(driver, device, self.scopes)
        return layer


def every_scope() -> list[Scopes]:
    return [Scopes(access, unmap) for access in ("run", "full", "slice") for unmap in ("run", "slice")]


CORRECT = (
    *(SubjectOf(VmmMemory, scopes) for scopes in every_scope()),
    SubjectOf(SliceBySlice, Scopes("run", "slice")),
    SubjectOf(DeviceByDevice),
    SubjectOf(DeviceByDevice, Scopes("full", "run")),
    SubjectOf(WholeFirst),
    SubjectOf(LeavesToDriver),
    SubjectOf(OwnCodes),
    SubjectOf(KeepsShown),
    SubjectOf(Unaligned, reserve_alignment=False),
    SubjectOf(VmmMemory, traced=False),
)
