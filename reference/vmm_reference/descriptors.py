"""Descriptors of slices: what can be refused of them for what they say, and the runs they make up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from vmm_conformance.contracts import Code, DriverCapabilities, Range, SubjectError
from vmm_conformance.contracts.reservation import MappingDescriptor, RemappingDescriptor
from vmm_reference.mapping import runs

Descriptor = MappingDescriptor | RemappingDescriptor


def check_contiguous(call: str, slices: Sequence[Descriptor]) -> Range:
    """The place that ``slices`` make up. Refuses none, and gaps (RES-14, RES-15; REMAP-27, REMAP-28).

    The first may begin anywhere (RES-16).
    """
    if not slices:
        raise refused(f"{call}: no descriptor was given")
    for one, behind in pairwise(slices):
        if behind.reservation_offset != one.reservation_offset + one.size:
            raise refused(
                f"{call}: a slice at {behind.reservation_offset} follows one that ends at "
                f"{one.reservation_offset + one.size}; slices must touch, in ascending order"
            )
    first, last = slices[0].reservation_offset, slices[-1]
    return Range(first, last.reservation_offset + last.size - first)


def changed_runs(required: Iterable[Descriptor]) -> list[Range]:
    """The maximal runs of slices that touch, as offset and size."""
    return [run for run, _ in runs((place_of(one) for one in required), join=True)]


def check_numbers(call: str, one: Descriptor, minimum: int, available: int) -> None:
    """Refuse a slice that is not made of whole granules (RES-12), or leaves the memory it names.

    ``minimum`` is the driver's granularity, ``available`` the size of the allocation, both in bytes.
    """
    numbers = (one.reservation_offset, one.allocation_offset, one.size)
    if one.size <= 0 or any(number % minimum for number in numbers):
        raise refused(f"{call}: offsets and size {numbers} must be multiples of {minimum}, and the size positive")
    if one.allocation_offset < 0 or one.allocation_offset + one.size > available:
        raise refused(
            f"{call}: {one.size} bytes from offset {one.allocation_offset} leave the allocation, which has {available}"
        )


def check_part(call: str, one: Descriptor, available: int, capabilities: DriverCapabilities) -> None:
    """Refuse a part of an allocation that this driver does not map."""
    whole = one.allocation_offset + one.size == available
    if (one.allocation_offset and not capabilities.map_offset) or not (whole or capabilities.partial_map):
        raise SubjectError(
            Code.UNIMPLEMENTED,
            f"{call}: this driver does not map {one.size} bytes from offset {one.allocation_offset} "
            f"of an allocation of {available}",
        )


def place_of(one: Descriptor) -> Range:
    """Where a slice lies, as offset and size."""
    return Range(one.reservation_offset, one.size)


def round_up(size: int, granularity: int) -> int:
    """``size`` in whole granules, in bytes."""
    return -(-size // granularity) * granularity


# -- errors


def check_size(call: str, size: int) -> None:
    """Refuse a size that is not positive."""
    if size <= 0:
        raise refused(f"{call}: size is {size} bytes, and must be positive")


def refused(message: str) -> SubjectError:
    """The request itself is wrong."""
    return SubjectError(Code.INVALID_ARGUMENT, message)


def used_after(message: str) -> SubjectError:
    """The object is past its life."""
    return SubjectError(Code.FAILED_PRECONDITION, message)


def shown(place: Range) -> str:
    """Offset and size for a message."""
    return f"{place.address}+{place.size}"
