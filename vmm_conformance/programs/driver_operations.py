"""What programs for the contract ``driver`` consist of: calls of the API, good ones and bad ones.

Operands are symbolic: the runner takes numbers modulo what exists at that moment, and picks among the
places where the call would be legal. A ``twist`` other than `EXACT` turns a call into one particular
mistake. An operation with nothing to work on is skipped, so a program stays a program when operations
are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from vmm_conformance.contracts import Access

CONTRACT = "driver"

Where: TypeAlias = Literal["first", "last", "middle", "granule", "before-granule"]
"""A byte of a mapping: its first, last or middle one, or those on both sides of its first granule's end."""

EXACT = "exact"

ReserveTwist: TypeAlias = Literal["exact", "empty", "less", "more", "odd-alignment", "hint-free", "hint-taken"]
FreeTwist: TypeAlias = Literal["exact", "mapped", "interior", "inside", "short", "long", "empty", "both", "stale"]
CreateTwist: TypeAlias = Literal[
    "exact", "empty", "less", "more", "bad-device", "negative-device", "bad-space", "over-capacity", "over-free"
]
RetainTwist: TypeAlias = Literal["exact", "reserved", "unmapped", "plain"]
ReleaseTwist: TypeAlias = Literal["exact", "null", "stale"]
MapTwist: TypeAlias = Literal[
    "exact", "part", "unaligned-address", "unaligned-size", "empty", "offset",
    "past-end", "across", "outside", "too-big", "onto",
]  # fmt: skip
UnmapTwist: TypeAlias = Literal["exact", "left", "middle", "right", "skew", "hole", "gap", "reserved", "twice", "empty"]
AccessTwist: TypeAlias = Literal[
    "exact", "latest", "tail", "part", "bad-flag", "bad-device", "nobody", "empty",
    "short", "long", "hole", "gap", "reserved", "unmapped",
]  # fmt: skip
QueryTwist: TypeAlias = Literal["exact", "end", "reserved", "unmapped"]
ShareTwist: TypeAlias = Literal["facts", "export", "import", "outlive", "child", "grandchild"]
DataTwist: TypeAlias = Literal["exact", "seam", "across", "denied", "read-only", "reserved"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The driver that a program asks for. ``capacity`` counts granules per device, sizes are in bytes.

    The switches from ``unmap_spans`` on are the driver's declared capabilities.
    """

    devices: int = 1
    minimum: int = 4096
    recommended: int = 4096
    capacity: int = 64
    peers: bool = True
    eager: bool = False
    unmap_spans: bool = True
    access_spans: bool = True
    access_part: bool = False
    partial_map: bool = True
    map_offset: bool = False
    read_only: bool = True
    unmap_waits: bool = False
    copy_across: bool = False
    sharing: bool = True
    old_codes: bool = False


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reserve ``granules`` of addresses; ``alignment`` 0 is the driver's own, n is ``minimum << n``.

    ``hint-free`` asks for the address behind the latest reservation, ``hint-taken`` for that of it.
    """

    granules: int = 1
    alignment: int = 0
    twist: ReserveTwist = "exact"


@dataclass(frozen=True, slots=True)
class AddressFree:
    """Free a reservation: ``exact`` one with nothing mapped in it, ``mapped`` one that is in use.

    ``interior`` names the rest of it from its second granule, ``inside`` its whole size from there;
    ``both`` two adjacent ones at once; ``stale`` one that is freed already.
    """

    reservation: int = 0
    twist: FreeTwist = "exact"


@dataclass(frozen=True, slots=True)
class Create:
    """Create physical memory. ``over-free`` asks for one granule more than is free."""

    granules: int = 1
    device: int = 0
    space: int = 0
    twist: CreateTwist = "exact"


@dataclass(frozen=True, slots=True)
class Retain:
    """Retain the handle behind an address: of a mapping, or where there is none to retain."""

    mapping: int = 0
    where: Where = "first"
    twist: RetainTwist = "exact"


@dataclass(frozen=True, slots=True)
class Release:
    """Give back one reference; ``stale`` is a handle whose last one is gone."""

    handle: int = 0
    twist: ReleaseTwist = "exact"


@dataclass(frozen=True, slots=True)
class Map:
    """Map a handle at the ``at``-th place where it fits, looking from ``reservation`` on.

    ``part`` maps one granule less than the handle has, ``offset`` leaves its first granule out. ``onto``
    overlaps what is mapped, ``past-end`` leaves the reservation, ``across`` ends in the next one.
    """

    reservation: int = 0
    at: int = 0
    handle: int = 0
    twist: MapTwist = "exact"


@dataclass(frozen=True, slots=True)
class Unmap:
    """Unmap ``count`` adjacent mappings, or something that is no whole mapping.

    ``skew`` takes a mapping and a piece of the next, ``hole`` one with the unmapped granule beside it,
    ``gap`` two with what is between them, ``twice`` a range that was unmapped before.
    """

    mapping: int = 0
    count: int = 1
    twist: UnmapTwist = "exact"


@dataclass(frozen=True, slots=True)
class SetAccess:
    """Set the rights of ``devices`` on ``count`` adjacent mappings.

    Bit 0 of ``devices`` is the memory's own, further bits are those behind it, in a circle. ``latest``
    chooses the newest mapping, ``tail`` one that is not the first of its reservation, ``part`` one granule.
    """

    mapping: int = 0
    count: int = 1
    devices: int = 1
    access: Access = Access.READ_WRITE
    twist: AccessTwist = "exact"


@dataclass(frozen=True, slots=True)
class GetAccess:
    """Ask for the rights of ``device`` at an address."""

    mapping: int = 0
    where: Where = "first"
    device: int = 0
    twist: QueryTwist = "exact"


@dataclass(frozen=True, slots=True)
class AddressRange:
    """Ask for the range that an address lies in."""

    mapping: int = 0
    where: Where = "first"


@dataclass(frozen=True, slots=True)
class Write:
    """Write ``size`` fresh bytes, by the host now or as work of a stream.

    ``denied`` chooses a mapping without rights, ``read-only`` one that may only be read, ``seam`` writes
    across the border of two adjacent mappings, ``across`` across that of two adjacent reservations.
    """

    mapping: int = 0
    where: Where = "first"
    size: int = 8
    stream: int | None = None
    twist: DataTwist = "exact"


@dataclass(frozen=True, slots=True)
class Read:
    """Read ``size`` bytes, by the host now or as work of a stream."""

    mapping: int = 0
    where: Where = "first"
    size: int = 8
    stream: int | None = None
    twist: DataTwist = "exact"


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy ``size`` bytes from the start of one mapping to ``where`` in another."""

    source: int = 0
    target: int = 1
    where: Where = "first"
    size: int = 16
    stream: int | None = None


@dataclass(frozen=True, slots=True)
class Synchronize:
    """Wait for a stream."""

    stream: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """Begin to capture a stream of its own, or end that capture and launch what it holds."""


@dataclass(frozen=True, slots=True)
class Alloc:
    """Allocate plain memory of ``size`` bytes and write into it."""

    size: int = 100
    device: int = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """Free plain memory."""

    allocation: int = 0


@dataclass(frozen=True, slots=True)
class Cycle:
    """Unmap a mapping and map it again with the same rights, ``times`` times."""

    mapping: int = 0
    times: int = 3


@dataclass(frozen=True, slots=True)
class Inspect:
    """Ask for the granularities again."""

    device: int = 0
    space: int = 0


# -- courses: many calls on memory of their own, which they give back


@dataclass(frozen=True, slots=True)
class Turnover:
    """Reserve a large range and free it again, ``times`` times."""

    times: int = 600


@dataclass(frozen=True, slots=True)
class Pieces:
    """A range of ``count`` granules made of as many handles, and one made of one handle: the same bytes in both."""

    count: int = 3
    device: int = 0


@dataclass(frozen=True, slots=True)
class Hoard:
    """Create and map up to ``count`` handles, count this process's descriptors, and give all of it back."""

    count: int = 32


@dataclass(frozen=True, slots=True)
class Threads:
    """``count`` threads at once, each ``rounds`` times through the life of a mapping of its own.

    ``shared`` puts their mappings into one reservation, a granule for each; otherwise each makes its own.
    """

    count: int = 4
    rounds: int = 2
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The life of a mapping on ``device`` while one of its streams is held."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """Memory of ``device`` goes out as a descriptor and comes back as a handle.

    ``facts`` asks what handles tell; ``export`` what may go out, and how often; ``import`` looks through both
    handles, in this process, by a ``child`` or by a ``grandchild`` of it; ``outlive`` gives back one after the other.
    """

    device: int = 0
    twist: ShareTwist = "facts"


@dataclass(frozen=True, slots=True)
class Leave:
    """A process takes memory of ``device`` and ends; another one looks at what is free."""

    device: int = 0


OPERATIONS: tuple[type, ...] = (
    Reserve, AddressFree, Create, Retain, Release, Map, Unmap, SetAccess, GetAccess, AddressRange,
    Write, Read, Copy, Synchronize, Capture, Alloc, Free, Cycle, Inspect,
    Turnover, Pieces, Hoard, Threads, Held, Share, Leave,
)  # fmt: skip
