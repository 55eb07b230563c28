"""The contract ``vmm-allocator``: memory of several devices whose deferred frees follow a stream.

Every size, offset and budget is in bytes. There are two roles of addresses. An *allocator address* is
what an allocate returned: it can be deallocated and be the source of a map. A *reservation address* is
a slice of a reservation behind which ``map`` has put an allocator address, its *source*; the mapping is
an *alias* of the source, and ``unmap`` ends it.

Nothing is taken away at once. ``deallocate`` and ``unmap`` make a record *stale*; it is completed
(unmapped, released) when the device's stream has passed a marker behind the work it was given before.
Until then an equal request takes a stale record back as it is (*reuse*, *reactivation*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from vmm_conformance.contracts.driver import Driver, Range

HOST_SPACE: Final = 5
"""The memory space that is the host's: it is never mapped into a reservation (ALLOC-78)."""

UNLIMITED: Final = (1 << 64) - 1
"""A budget that nothing reaches."""

NULL: Final = Range(0, 0)
"""What an allocation of no bytes is (ALLOC-41)."""


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One device of an allocator, fixed when the allocator is made.

    ``ordinal`` is the driver's device; ``stream`` the stream whose work the deferred frees follow;
    ``budget`` what may be committed on the device at a time. Stale memory of the spaces in ``exempt``
    is left alone when memory is short (ALLOC-71).
    """

    ordinal: int
    stream: int
    budget: int = UNLIMITED
    exempt: tuple[int, ...] = ()


class RawAllocation(NamedTuple):
    """Physical memory: the driver's ``handle``, its identity, and the ``size`` that is committed."""

    handle: int
    size: int


class AddressReservation(Protocol):
    """Addresses without memory, owned by whoever asked for them.

    ``release`` gives them back; it raises `DriverError` while something is mapped there. A released
    reservation must not be used.
    """

    @property
    def range(self) -> Range: ...
    def release(self) -> None: ...


class VmmAllocator(Protocol):
    """An allocator over several devices, safe for use from several threads.

    Refusals raise `SubjectError` or `DriverError`. Every call but ``deallocate`` of a null address,
    an allocation of no bytes, and the two look-ups refuses an ordinal that is no device of the
    allocator with NOT_FOUND (ALLOC-43).

    ``allocate`` returns ``size`` bytes in memory space ``space``; 0 bytes are `NULL`. It raises
    RESOURCE_EXHAUSTED where the budget does not allow it even with all stale memory counted as free;
    ``retry`` has no say in that (ALLOC-70).

    ``allocate_mapped`` returns exactly the slice ``offset``, ``map_size`` of ``reservation``, with
    memory behind it: an allocator address. ``alloc_size`` must be equal to ``map_size``.

    ``map`` makes the slice an alias of ``address``, ``unmap`` ends it. ``size`` 0 is no request at all.

    ``synchronize_pending_operations`` waits for the device's deferred operations and completes them.

    ``raw_allocation`` is the memory behind exactly that range: an allocator address, active or stale,
    or an active alias; else None. ``reservation_of`` is the allocator's own address range behind an
    active address of ``allocate``; else None. Neither ever raises. ``granularity`` is 0 for a device
    that is unknown.

    ``device_tag`` is a context: inside it the calling thread's allocations belong to a program over
    several devices, or do not (outside of any they do not). Contexts nest (ALLOC-79).

    ``close`` waits for all devices, then gives everything back, whatever is live; it uses no stream.
    Reservations are the callers'; again, it does nothing.
    """

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range: ...
    def allocate_mapped(
        self,
        ordinal: int,
        alloc_size: int,
        *,
        reservation: AddressReservation | None,
        offset: int,
        map_size: int,
        retry: bool = True,
        space: int = 0,
    ) -> Range: ...
    def deallocate(self, ordinal: int, address: Range) -> None: ...
    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None: ...
    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None: ...
    def synchronize_pending_operations(self, ordinal: int) -> None: ...
    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None: ...
    def reservation_of(self, ordinal: int, address: Range) -> Range | None: ...
    def granularity(self, ordinal: int) -> int: ...
    def create_reservation(self, ordinal: int, size: int) -> AddressReservation: ...
    def stream(self, ordinal: int) -> int: ...
    def device_tag(self, multi_device: bool) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


VmmAllocatorFactory = Callable[[Driver, Sequence[DeviceConfig]], VmmAllocator]
"""``(driver, devices)`` to a fresh allocator."""
