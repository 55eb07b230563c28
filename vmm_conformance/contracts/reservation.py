"""The contract ``reservation``: physical memory, reserved addresses, and the one mapped at the other.

Every size and offset is in bytes. A ``reservation_offset`` counts from the start of a reservation, an
``allocation_offset`` from the start of an allocation. Nothing here is ordered with a stream: whoever takes
a mapping away has waited for the work that uses it.

Refusals raise `SubjectError`, or the driver's own `DriverError`. Using what is released, closed or moved
from is refused with FAILED_PRECONDITION; releasing or closing it again is no error and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol

from vmm_conformance.contracts.driver import Driver, Range


class RawMemory(Protocol):
    """Physical memory of one device (RAW-1 to RAW-3).

    ``address`` is an identity, the driver's handle, with the size that the memory really has; nothing
    can be read there. ``release`` gives the memory back and raises nothing. Memory that a mapping still
    shows stays until that has been unmapped; a subject may also refuse to release it so early, with
    FAILED_PRECONDITION.
    """

    @property
    def address(self) -> Range: ...
    def release(self) -> None: ...


class MappingDescriptor(NamedTuple):
    """``size`` bytes of ``allocation`` from ``allocation_offset``, to be shown at ``reservation_offset``."""

    reservation_offset: int
    allocation_offset: int
    size: int
    allocation: RawMemory | None


class RemappingDescriptor(NamedTuple):
    """One slice of a mapping. Where ``remap_required`` is false it stays as it is, whatever else is said."""

    reservation_offset: int
    allocation_offset: int
    size: int
    allocation: RawMemory | None
    remap_required: bool


class ScopedMapping(Protocol):
    """What one mapping call has mapped: the only owner of that part of a reservation.

    It is null once it was released, moved from, assigned from, remapped, or its reservation closed. The
    end of a ``with`` block releases it, whatever happened in the block.
    """

    @property
    def is_null(self) -> bool: ...
    @property
    def address(self) -> Range:
        """Where the mapping lies, and its size."""
        ...

    def release(self) -> None:
        """Unmap. Raises nothing: what the driver refuses to unmap is left to the reservation's close."""
        ...

    def move(self) -> ScopedMapping:
        """A new object that owns what this one did."""
        ...

    def assign(self, other: ScopedMapping) -> None:
        """Release what this one owns, then take over what ``other`` does. Itself: nothing happens."""
        ...

    def remap(self, descriptors: Sequence[RemappingDescriptor]) -> ScopedMapping:
        """Show other memory in the slices that require it, at the same addresses (REMAP-26 to REMAP-40).

        ``descriptors`` cover exactly what this mapping owns, without gaps. A list that is refused for
        what it says changes nothing. From then on this mapping is null: the one that is returned owns
        the range, and after an error nothing is mapped there.
        """
        ...

    def __enter__(self) -> ScopedMapping: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...


class Reservation(Protocol):
    """An address range (RES-4, RES-5). ``address`` is its base, and its size after rounding.

    ``map_to`` maps slices that touch, and grants the device and its peers the right to read and write;
    ``map_one`` does so for a single one. ``close`` unmaps what is still mapped, frees the range and
    raises nothing (RES-9); closing again tries again what the driver has refused.
    """

    @property
    def address(self) -> Range: ...
    def map_to(self, descriptors: Sequence[MappingDescriptor]) -> ScopedMapping: ...
    def map_one(
        self, reservation_offset: int, allocation_offset: int, size: int, allocation: RawMemory
    ) -> ScopedMapping: ...
    def close(self) -> None: ...


class MemoryLayer(Protocol):
    """Makes allocations and reservations for one device."""

    def allocate(self, size: int, space: int = 0) -> RawMemory: ...
    def reserve(self, size: int, alignment: int = 0) -> Reservation: ...


MemoryLayerFactory = Callable[[Driver, int], MemoryLayer]
"""``(driver, device)`` to a fresh layer."""
