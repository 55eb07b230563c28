"""Reservations and handles: address ranges without memory, and memory without addresses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from vmm_conformance.contracts import DriverError, Status
from vmm_conformance.drivers.host.base import Base
from vmm_conformance.drivers.host.objects import Handle, Reservation
from vmm_conformance.drivers.host.system import PUNCH_HOLE


class AddressSpace(Base):
    """V07 to V30. As everywhere, a call checks everything first and changes its tables last (V78)."""

    # -- reservations

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        self._enter()
        try:
            self._check_reserve(size, alignment)
            minimum = self._minimum
            address = self._choose_address(size, alignment if alignment > minimum else minimum, hint)
            self._reservations[address] = Reservation(address, address + size)
            insort(self._bases, address)
            self.serial += 1
            return address
        finally:
            self._leave()

    def address_free(self, address: int, size: int) -> None:
        self._enter()
        try:
            reservation = self._check_free(address, size)
            start = reservation.start
            del self._reservations[start]
            del self._bases[bisect_left(self._bases, start)]
            self._space.give(start, reservation.end - start)
            self.serial += 1
        finally:
            self._leave()

    def _check_reserve(self, size: int, alignment: int) -> None:
        status = Status.OUT_OF_MEMORY if self.capabilities.old_codes else Status.INVALID_VALUE
        if size <= 0 or size % self._minimum:
            raise DriverError(
                status,
                "reserve",
                f"size {size} must be a positive multiple of the granularity, {self._minimum}",
            )
        if alignment < 0 or alignment & (alignment - 1):
            raise DriverError(status, "reserve", f"alignment {alignment} must be a power of two, or 0 for any")

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        """The hint where it is aligned and free, else the address that first fit finds (V08, V11)."""
        if hint and not hint % alignment and self._space.take_at(hint, size):
            return hint
        address = self._space.take(size, alignment)
        if address is None:
            raise DriverError(
                Status.OUT_OF_MEMORY,
                "reserve",
                f"no {size} bytes of address space, aligned to {alignment}, are left",
            )
        return address

    def _check_free(self, address: int, size: int) -> Reservation:
        """Exactly one reservation, by its base and its size, with nothing mapped in it (V13 to V17)."""
        reservation = self._reservations.get(address)
        if reservation is None:
            raise DriverError(
                Status.INVALID_VALUE,
                "address_free",
                f"no reservation begins at {address:#x}; pass what reserve returned, once",
            )
        if address + size != reservation.end:
            raise DriverError(
                Status.INVALID_VALUE,
                "address_free",
                f"size {size} is not that of the reservation at {address:#x}: free all {reservation.size} bytes",
            )
        if reservation.mapped:
            self._on_still_mapped(reservation)
        return reservation

    def _on_still_mapped(self, reservation: Reservation) -> None:
        raise DriverError(
            Status.INVALID_VALUE,
            "address_free",
            f"{reservation.mapped} mapping(s) are left in {reservation.start:#x}+{reservation.size}; unmap them first",
        )

    def _reservation_at(self, address: int) -> Reservation | None:
        """The reservation that ``address`` lies in."""
        index = bisect_right(self._bases, address) - 1
        if index < 0:
            return None
        reservation = self._reservations[self._bases[index]]
        return reservation if address < reservation.end else None

    # -- handles

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        self._enter()
        try:
            size = self._check_create(size, device, space)
            identity = next(self._ids)
            backing = self._backing
            self._handles[identity] = Handle(backing.top, size, identity, device)
            backing.top += size
            self._used[device] += size
            self.serial += 1
            return identity
        finally:
            self._leave()

    def release(self, handle: int) -> None:
        self._enter()
        try:
            memory = self._handle("release", handle)
            memory.references -= 1
            if not self._in_use(memory):
                self._return_memory(memory)
            self.serial += 1
        finally:
            self._leave()

    def _check_create(self, size: int, device: int, space: int) -> int:
        """The size to create: the one asked for, never rounded (V20 to V22)."""
        if size <= 0 or size % self._minimum:
            raise DriverError(
                Status.INVALID_VALUE,
                "create",
                f"size {size} must be a positive multiple of the granularity, {self._minimum}",
            )
        if not 0 <= device < self.device_count:
            self._check_location("create", device)
        if space not in self._spaces:
            self._check_space("create", space)
        if size > self._capacity - self._used[device]:
            self._check_room("create", size, device)
        return size

    def _handle(self, call: str, handle: int) -> Handle:
        """The handle with that id, to which somebody still holds a reference (V27)."""
        memory = self._handles.get(handle)
        if memory is None or not memory.references:
            if not handle:
                raise DriverError(
                    Status.INVALID_VALUE, call, "handle 0 is no handle; pass what create or retain returned"
                )
            state = "was never created, or its last reference is released"
            raise DriverError(Status.INVALID_HANDLE, call, f"handle {handle} {state}")
        return memory

    def _in_use(self, handle: Handle) -> bool:
        """Memory stays while there is a reference or a mapping (V24, V25, V61)."""
        return handle.references > 0 or handle.mappings > 0

    def _return_memory(self, handle: Handle) -> None:
        """The memory goes back to the system and to the device (V19, V72).

        Should the system keep the pages, only the host is poorer, and only until close: their place in
        the file is never used again.
        """
        self._fallocate(self._file, PUNCH_HOLE, handle.start, handle.size)
        del self._handles[handle.id]
        self._used[handle.device] -= handle.size
