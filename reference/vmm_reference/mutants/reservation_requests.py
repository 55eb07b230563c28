"""Memory layers that are wrong about what may be asked of them, or about who may use what they map."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from vmm_conformance.contracts import Access, Code, DriverError, MappingDescriptor, Range, SubjectError
from vmm_reference.descriptors import Descriptor, check_part, place_of, refused
from vmm_reference.mutants.reservation_parts import Registry
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import MemoryReservation, Piece, ScopedMapping

mutant = Registry()

# -- RES-6, RES-12, RES-14 to RES-16: what may be asked


@mutant("RES-6")
class TakesAnything(MemoryReservation):
    """Takes every object with an address for an allocation of its own."""

    def check_memory(self, call: str, one: Descriptor) -> None:
        if isinstance(one.allocation, RawMemoryAllocation):
            super().check_memory(call, one)

    def map(self, one: Descriptor) -> None:
        if isinstance(one.allocation, RawMemoryAllocation):
            super().map(one)
            return
        assert one.allocation is not None
        address = self.base + one.reservation_offset
        self.driver.map(address, one.size, one.allocation.address.address, offset=one.allocation_offset)
        unowned: Any = SimpleNamespace(shown=lambda more: None)
        self.mapped[one.reservation_offset] = Piece(one.reservation_offset, one.size, unowned)


@mutant("RES-6")
class TakesReleased(MemoryReservation):
    """Does not notice that an allocation was released."""

    def check_memory(self, call: str, one: Descriptor) -> None:
        allocation = one.allocation
        if isinstance(allocation, RawMemoryAllocation) and allocation.released:
            check_part(call, one, allocation.size, self.driver.capabilities)
        else:
            super().check_memory(call, one)


@mutant("RES-12")
class LogicalSizes(MemoryReservation):
    """Passes offsets and sizes on to the driver as they come."""

    def check_memory(self, call: str, one: Descriptor) -> None:
        minimum = self.driver.granularity(self.device).minimum
        try:
            super().check_memory(call, one)
        except SubjectError:
            whole = one.size > 0 and not any(n % minimum for n in (one.size, one.reservation_offset))
            if whole or not isinstance(one.allocation, RawMemoryAllocation) or one.allocation.released:
                raise


@mutant("RES-12")
class AccessOnLogicalSize(MemoryReservation):
    """Grants rights on all but the last byte, taking the size for an end."""

    def set_access(self, place: Range) -> None:
        super().set_access(place._replace(size=place.size - 1))


@mutant("RES-14")
class EmptyGoesThrough(MemoryReservation):
    """Maps no slices, and grants rights on none."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        if not descriptors and not self.closed:
            self.set_access(Range(0, 0))
        return super().map_to(descriptors)


@mutant("RES-14")
class EmptyIsNull(MemoryReservation):
    """Returns a null mapping for no slices."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        return super().map_to(descriptors) if descriptors else ScopedMapping()


@mutant("RES-15")
class ChecksLate(MemoryReservation):
    """Finds a gap when it has mapped all that is before it, and leaves that there."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        slices = tuple(descriptors)
        at = next((n for n in range(1, len(slices)) if place_of(slices[n - 1]).end != slices[n].reservation_offset), 0)
        if at and not self.closed:
            self.check_mapping(slices[:at])
            for one in slices[:at]:
                self.map(one)
        return super().map_to(slices)


@mutant("RES-15")
class IgnoresGaps(MemoryReservation):
    """Maps slices wherever they are, and owns all from the first to the last."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        slices = sorted(descriptors)
        if self.closed or len(slices) < 2:
            return super().map_to(slices)
        for one in slices:
            self.check_mapping([one])
        for one in slices:
            self.map(one)
            self.grant([one], place_of(one))
        first = slices[0].reservation_offset
        return self.own(Range(first, place_of(slices[-1]).end - first))


@mutant("RES-16")
class FromStart(MemoryReservation):
    """Wants the first slice at the start of the reservation."""

    def check_mapping(self, slices: Sequence[MappingDescriptor]) -> Range:
        place = super().check_mapping(slices)
        if place.address:
            raise refused(f"map_to: the first slice begins at {place.address}, not at 0")
        return place


@mutant("RES-16")
class RefusesEverything(MemoryReservation):
    """Maps nothing."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        super().check_open("map_to")
        self.check_mapping(tuple(descriptors))
        raise SubjectError(Code.INTERNAL, "map_to: not today")


@mutant("RES-16")
class CrashesOnLarge(MemoryReservation):
    """Takes a list of more than two slices for two."""

    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping:
        made = super().map_to(descriptors)
        if len(descriptors) > 2:
            made.release()
            raise IndexError("list index out of range")
        return made


# -- RES-7, RES-8, RES-10: who may use it


class Granting(MemoryReservation):
    """Grants rights to whom it likes."""

    def rights(self) -> dict[int, Access]:
        """By device."""
        raise NotImplementedError

    def set_access(self, place: Range) -> None:
        self.driver.set_access(self.base + place.address, place.size, self.rights())

    def reach(self) -> list[int]:
        """The peers that can reach the device's memory."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.device)
        return [peer for peer in peers if self.driver.can_access_peer(peer, self.device)]


@mutant("RES-7")
class LocalOnly(Granting):
    """Grants rights to its own device alone."""

    def rights(self) -> dict[int, Access]:
        return {self.device: Access.READ_WRITE}


@mutant("RES-7")
class ReadOnly(Granting):
    """Grants the right to read alone."""

    def rights(self) -> dict[int, Access]:
        return dict.fromkeys((self.device, *self.reach()), Access.READ)


@mutant("RES-7")
class PeersRead(Granting):
    """Lets its peers read and nothing else."""

    def rights(self) -> dict[int, Access]:
        return {**dict.fromkeys(self.reach(), Access.READ), self.device: Access.READ_WRITE}


@mutant("RES-8")
class EveryDevice(Granting):
    """Grants rights to every device, in reach or not."""

    def rights(self) -> dict[int, Access]:
        return dict.fromkeys(range(self.driver.device_count), Access.READ_WRITE)


@mutant("RES-10", "RES-7")
class NoAccess(MemoryReservation):
    """Grants no rights on a mapping of one slice."""

    def map_one(self, *args: Any) -> ScopedMapping:
        self.grant = lambda changed, whole: None  # type: ignore[method-assign]
        try:
            return super().map_one(*args)
        finally:
            del self.grant


@mutant("RES-10", "RES-7")
class AccessLate(MemoryReservation):
    """Grants rights on a mapping when the next one is made."""

    late: Range | None = None

    def grant(self, changed: Any, whole: Range) -> None:
        if self.late and self.pieces(self.late):
            with suppress(DriverError):
                self.set_access(self.late)
        self.late = whole


MUTANTS = mutant.mutants
