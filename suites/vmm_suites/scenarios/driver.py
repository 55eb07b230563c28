"""Scenarios of the contract ``driver``: what vendors' tests, growing allocators and step executors do.

Several repeat public tests of drivers in our own words: growing by moving the memory to larger addresses,
rights for the tail of a grown range, release while mapped, handles mapped in reverse order.
"""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import Access
from vmm_conformance.programs.driver_operations import (
    AddressFree,
    AddressRange,
    Alloc,
    Capture,
    Configuration,
    Copy,
    Create,
    Cycle,
    Free,
    GetAccess,
    Inspect,
    Map,
    Read,
    Release,
    Reserve,
    Retain,
    SetAccess,
    Synchronize,
    Unmap,
    Write,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_suites.scenarios.driver_courses import COURSES

READ, NONE = Access.READ, Access.NONE


def _ids(*numbers: int) -> tuple[str, ...]:
    return tuple(f"DRIVER-{number}" for number in numbers)


def _scenario(name: str, note: str, exercises: tuple[str, ...], *operations: Any, **configuration: Any) -> Scenario:
    return Scenario(name, Program("driver", Configuration(**configuration), operations), exercises, note)


def _each(kind: type, *twists: str, **operands: int) -> tuple[Any, ...]:
    """One operation of a kind for each mistake."""
    return tuple(kind(twist=twist, **operands) for twist in twists)


def _mapped(granules: int = 1) -> tuple[Any, ...]:
    """One mapping of ``granules`` with rights, in a reservation with a granule to spare."""
    return Reserve(granules + 1), Create(granules), Map(), SetAccess()


def _row(count: int, granules: int = 1) -> tuple[Any, ...]:
    """``count`` adjacent mappings that fill a reservation, each of a handle of its own, with rights."""
    handles = [operation for n in range(count) for operation in (Create(granules), Map(handle=n))]
    rights = [SetAccess(mapping=n) for n in range(count)]
    return Reserve(count * granules), *handles, *rights


SCENARIOS: Final[tuple[Scenario, ...]] = (
    # -- life
    _scenario(
        "life-cycle", "the shortest use of virtual memory, and everything given back",
        _ids(1, 2, 3, 4, 7, 12, 19, 20, 40, 48, 58, 71, 72),
        Inspect(), Reserve(1), Create(1), Map(), SetAccess(), Inspect(), Write(), Read(),
        Release(), Unmap(), AddressFree(), Inspect(),
    ),
    _scenario(
        "grow-by-moving", "old memory is mapped again in a larger reservation, with new memory behind it",
        _ids(41, 45, 51, 62),
        Reserve(2), Create(2), Map(), SetAccess(), Write(size=64), Write(where="last", size=64),
        Unmap(), AddressFree(),
        Reserve(5), Map(), Create(3), Map(handle=1), SetAccess(count=2),
        Read(size=64), Read(where="granule"), Write(twist="seam", size=24), Read(twist="seam", size=24),
        Unmap(count=2), AddressFree(),
    ),
    _scenario(
        "tail-rights", "three reservations grow in turn, and each new tail gets its rights alone",
        _ids(40, 51, 52, 54, 58),
        Reserve(6), Reserve(6), Reserve(6), *(Create(1) for _ in range(3)), *(Create(2) for _ in range(3)),
        *(Map(reservation=n, handle=n) for n in range(3)), *(SetAccess(mapping=n) for n in range(3)),
        Map(reservation=2, handle=5), SetAccess(mapping=3, twist="tail"),
        Map(reservation=0, handle=3), SetAccess(mapping=0, twist="tail"),
        Map(reservation=1, handle=4), SetAccess(mapping=1, twist="tail"),
        SetAccess(mapping=0, count=2), SetAccess(mapping=1, twist="hole"), SetAccess(mapping=4, count=2),
    ),
    _scenario(
        "reverse-order", "six handles are mapped from the end of a range to its start, with one call for rights",
        _ids(39, 41, 51, 62),
        Reserve(6), *(Create(1) for _ in range(6)), *(Map(at=5 - n, handle=n) for n in range(6)),
        SetAccess(count=6), *(Write(mapping=n, where="middle") for n in range(6)),
        *(Read(mapping=n, twist="seam", size=16) for n in range(5)), Unmap(count=6), AddressFree(),
    ),
    _scenario(
        "release-while-mapped", "memory outlives its handles, and comes back before its addresses do",
        _ids(24, 25, 41, 72),
        *_row(3), Release(), Release(), Release(), Write(mapping=1), Read(mapping=1), Unmap(count=3),
        Create(3), AddressFree(),
    ),
    _scenario(
        "both-orders", "unmap then release, and release then unmap",
        _ids(24, 25, 26, 71),
        *_mapped(2), Unmap(), Release(), Create(2), Map(), SetAccess(), Release(), Unmap(), Create(2), Release(),
    ),
    _scenario(
        "retained", "a retained reference holds the memory when everything else is gone",
        _ids(28, 29, 30),
        *_mapped(2), Retain(where="last"), Retain(where="middle"), Release(), Unmap(),
        Map(), SetAccess(), Read(), Unmap(), Release(), Release(), Retain(twist="unmapped"), Retain(twist="reserved"),
    ),
    _scenario(
        "plain-memory", "plain memory is no mapping, and shares nothing with one",
        _ids(9, 30, 39),
        Alloc(5000), Alloc(1, space=1), *_mapped(), Retain(twist="plain"), Copy(source=1, target=0, size=64),
        Write(mapping=1), Read(mapping=1),
        Free(), Reserve(3), Free(),
    ),
    # -- many mappings
    _scenario(
        "one-place-many-handles", "handles take turns at one address",
        _ids(44, 45, 48, 57),
        Reserve(2), *(Create(2) for _ in range(3)),
        *(
            operation
            for n in (0, 1, 2, 0, 2, 1)
            for operation in (Map(handle=n), SetAccess(), Write(where="middle"), Read(where="middle"), Unmap())
        ),
    ),
    _scenario(
        "one-handle-many-places", "a handle moves from range to range",
        _ids(45),
        Create(2), *(Reserve(2) for _ in range(3)),
        *(
            operation
            for n in (0, 1, 2, 1)
            for operation in (Map(reservation=n), SetAccess(), Write(where="granule"), Read(), Unmap())
        ),
    ),
    _scenario(
        "thousand-cycles", "one mapping is taken away and put back a thousand times",
        _ids(46, 71), *_mapped(2), Write(), Cycle(times=1000), Read(),
    ),
    _scenario(
        "aliases", "three views of one handle: bytes are shared, rights and life are not",
        _ids(59, 60, 61),
        Create(2), *(Reserve(2) for _ in range(3)), *(Map(reservation=n) for n in range(3)),
        SetAccess(mapping=0), SetAccess(mapping=1), SetAccess(mapping=2, access=READ),
        Write(mapping=0), Write(mapping=1, where="last"), Read(mapping=2), Read(mapping=2, where="last"),
        SetAccess(mapping=1, access=NONE), Release(), Unmap(mapping=0), Read(mapping=1), Unmap(mapping=0),
        Read(), Unmap(),
    ),
    # -- refusals
    _scenario(
        "wrong-reserves", "sizes, alignments and hints",
        _ids(7, 8, 9, 10, 11),
        Reserve(1, twist="empty"), Reserve(1, twist="less"), Reserve(2, twist="more"),
        Reserve(2, twist="odd-alignment"),
        Reserve(2, 1), Reserve(2, 6), Reserve(1, 12), Reserve(3), Reserve(1, twist="hint-free"),
        Reserve(1, twist="hint-taken"), Reserve(4, twist="hint-taken"),
    ),
    _scenario(
        "wrong-frees", "a reservation is freed by its base and its size, once, and empty",
        _ids(13, 14, 15, 16),
        Reserve(4), *_each(AddressFree, "interior", "inside", "short", "long", "empty"),
        Create(2), Map(), SetAccess(), AddressFree(twist="mapped"), Read(), Unmap(), AddressFree(),
        AddressFree(twist="stale"),
    ),
    _scenario(
        "two-neighbours", "adjacent reservations stay two",
        _ids(11, 17, 32),
        Reserve(2), Reserve(2, twist="hint-free"), Create(2), AddressFree(twist="both"), Map(twist="across"),
        Map(reservation=1), SetAccess(), Map(reservation=0, twist="past-end"), Unmap(), AddressFree(), AddressFree(),
    ),
    _scenario(
        "wrong-creates", "sizes, devices, spaces, and the end of memory",
        _ids(20, 21, 22),
        *_each(Create, "empty", "less", "more", "bad-device", "negative-device"),
        Create(1, twist="bad-space"), Create(3), Create(1, twist="over-free"), Create(1, twist="over-capacity"),
        Create(1), Create(1), Release(), Create(1),
        capacity=4,
    ),
    _scenario(
        "wrong-releases", "handle 0 and handles whose last reference is gone",
        _ids(27), *_mapped(), Create(2), Release(handle=1), Release(twist="stale"), Release(twist="null"),
        Release(), Release(twist="stale"), Read(), Create(1),
    ),
    _scenario(
        "wrong-maps", "nowhere, askew, too far, too large, from an offset, and onto what is mapped",
        _ids(31, 32, 33, 34, 35, 36, 38),
        Reserve(8), Create(2), Create(3), Map(at=2), SetAccess(), Write(),
        *_each(Map, "outside", "past-end", "unaligned-address", "unaligned-size", "empty", handle=1),
        *_each(Map, "offset", "too-big", handle=1),
        *(Map(handle=1, at=n, twist="onto") for n in range(3)), Read(), Release(handle=1),
    ),
    _scenario(
        "wrong-unmaps", "parts, holes, reserved addresses, twice",
        _ids(42, 43, 78),
        Reserve(10), Create(3), Create(2), Map(at=1), Map(at=2, handle=1), SetAccess(mapping=0), SetAccess(mapping=1),
        *_each(Unmap, "left", "middle", "right", "hole", "gap", "reserved", "empty"),
        Read(), Read(mapping=1), Unmap(mapping=1), Unmap(twist="twice"), Map(handle=1), Unmap(twist="skew"),
    ),
    _scenario(
        "wrong-rights", "no such right, no such device, nobody, nothing, and addresses that are not mapped",
        _ids(53, 54, 55, 58),
        Reserve(8), Create(3), Create(1), Map(at=1), Map(at=3, handle=1), SetAccess(mapping=0, access=READ),
        *(SetAccess(mapping=n, twist="bad-flag") for n in range(4)),
        *(SetAccess(mapping=n, twist="bad-device") for n in range(2)),
        *_each(SetAccess, "nobody", "empty", "short", "long", "part", "hole", "gap", "reserved"),
        Unmap(mapping=1), SetAccess(twist="unmapped"), GetAccess(where="last"), GetAccess(twist="end"),
        GetAccess(twist="unmapped"),
        devices=2,
    ),
    _scenario(
        "no-rights", "memory without rights cannot be used, by the host or by a stream",
        _ids(48, 49, 57),
        *_mapped(), Write(), SetAccess(access=NONE), Read(twist="denied"), Write(twist="denied"),
        Write(twist="denied", stream=0), Synchronize(), Read(twist="reserved"), SetAccess(access=READ), Read(),
        Unmap(), Map(), Read(twist="denied"),
    ),
    _scenario(
        "read-only", "memory that may only be read keeps its bytes",
        _ids(50), *_mapped(), Write(), SetAccess(access=READ), Write(twist="read-only"),
        Write(twist="read-only", stream=1), Synchronize(1), Read(),
    ),
    _scenario(
        "read-only-is-advice", "where read-only is declared not to be enforced, a write goes through",
        _ids(50), *_mapped(), SetAccess(access=READ), Write(twist="read-only"), Read(), read_only=False,
    ),
    # -- what drivers declare
    _scenario(
        "one-at-a-time", "a driver that takes one mapping at a time says so, and refuses more",
        _ids(41, 51), *_row(3), SetAccess(count=3, access=READ), Unmap(count=2), Unmap(mapping=2), Unmap(), Unmap(),
        unmap_spans=False, access_spans=False,
    ),
    _scenario(
        "parts-of-handles", "mappings that are smaller than their handle, and that begin inside it",
        _ids(35, 37), Reserve(8), Create(3), Map(twist="part"), Map(twist="offset"), SetAccess(mapping=0),
        SetAccess(mapping=1), Write(mapping=0, where="granule"), Read(mapping=1), map_offset=True,
    ),
    _scenario(
        "whole-handles", "a driver that maps whole handles refuses a part",
        _ids(37, 38), Reserve(4), Create(3), Map(twist="part"), Release(), partial_map=False,
    ),
    _scenario(
        "parts-of-mappings", "rights for one granule, and for no more",
        _ids(53), Reserve(4), Create(4), Map(), SetAccess(access=READ),
        *(SetAccess(count=n, twist="part") for n in range(3)), SetAccess(count=1, access=NONE, twist="part"),
        GetAccess(where="first"), GetAccess(where="granule"), GetAccess(where="before-granule"),
        GetAccess(where="last"),
        access_part=True,
    ),
    # -- several devices
    _scenario(
        "peers", "rights of one device at a time, on memory of another",
        _ids(48, 56, 58), Reserve(4), Create(2, device=1), Map(), SetAccess(devices=1), SetAccess(devices=2),
        SetAccess(devices=4, access=READ), SetAccess(devices=1, access=NONE), *(GetAccess(device=n) for n in range(3)),
        devices=3,
    ),
    _scenario(
        "memory-of-each", "each device is charged for its own memory",
        _ids(19, 71, 72), Reserve(6), *(Create(1, device=n) for n in range(3)), *(Map(handle=n) for n in range(3)),
        SetAccess(count=1), Release(), Release(), Unmap(count=3), Create(2, device=2),
        devices=3,
    ),
    # -- order
    _scenario(
        "at-once", "streams use memory right after it was given to them",
        _ids(74), Reserve(8), *(Create(1) for _ in range(4)),
        *(
            operation
            for n in range(4)
            for operation in (
                Map(handle=n), SetAccess(mapping=n), Write(mapping=n, stream=n % 2, where="middle"),
                Read(mapping=n, stream=n % 2, where="middle"),
            )
        ),
        Synchronize(0), Synchronize(1),
    ),
    _scenario(
        "unmap-waits", "unmap is declared to wait for work in flight",
        _ids(75), *_row(2), Write(mapping=0, stream=0), Write(mapping=1, stream=1), Unmap(), Unmap(), unmap_waits=True,
    ),
    _scenario(
        "capture", "memory is reserved, mapped and taken away while a stream captures",
        _ids(80), Capture(), *_mapped(2), Write(), Retain(), Release(), GetAccess(), AddressRange(), Unmap(),
        AddressFree(), Create(1), Capture(),
    ),
    _scenario(
        "ranges", "an address-range query finds the mapping, and not its reservation",
        _ids(64), *_row(2, 2), *(
            operation
            for n in range(2)
            for operation in (AddressRange(n), AddressRange(n, "last"), AddressRange(n, "granule"))
        ),
    ),
    _scenario(
        "after-an-error", "errors of all kinds, and valid calls after each",
        _ids(78, 79), *_mapped(2), Write(), Unmap(twist="left"), Read(), Map(twist="onto"),
        Create(1, twist="bad-device"),
        Create(1), SetAccess(twist="bad-flag"), Write(), AddressFree(twist="mapped"), Reserve(1), AddressFree(),
    ),
    *COURSES,
)  # fmt: skip
"""What random programs reach rarely, or not in this order."""
