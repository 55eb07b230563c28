"""Ranges of addresses: reservations, slices of them, and how they are told in messages."""

from __future__ import annotations

from vmm_conformance.contracts import AddressReservation, Code, Driver, Range, SubjectError


class Reserved:
    """A reservation that the caller owns."""

    def __init__(self, driver: Driver, range: Range) -> None:
        self.driver = driver
        self.range = range

    def release(self) -> None:
        """Give the addresses back. Raises `DriverError` while something is mapped there."""
        self.driver.address_free(*self.range)


def slice_of(call: str, reservation: AddressReservation | None, offset: int, size: int) -> Range:
    """The addresses of a slice. Raises INVALID_ARGUMENT if there is no such slice (65)."""
    if reservation is None:
        raise SubjectError(Code.INVALID_ARGUMENT, f"{call}: the reservation is null")
    base, whole = reservation.range
    if not (0 <= offset <= whole and 0 <= size <= whole - offset):
        raise SubjectError(
            Code.INVALID_ARGUMENT, f"{call}: {size} bytes from {offset} are not in the reservation's {whole}"
        )
    return Range(base + offset, size)


def shown(range: Range) -> str:
    """A range in a message."""
    return f"{range.address:#x}+{range.size}"
