"""Programs for the contract ``vmm-allocator``: allocations, aliases, and what becomes of them when they end.

Every operation means something under every configuration: blocks, aliases and reservations are taken
modulo what there is, so a program stays a program when operations are removed; where there is none,
nothing is done. Granules are recommended ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vmm_conformance.contracts import UNLIMITED, Status
from vmm_conformance.programs.turns import AT_WAIT

CONTRACT: Final = "vmm-allocator"

WHOLE: Final = -1
"""As a number of granules: all that is committed."""


class Source(StrEnum):
    """Which address a request is about: the block's own, or something it must be refused for.

    ``size``: the block's address, another size. ``interior``: a granule (or a byte) further on. ``gone``: a
    block that was deallocated. ``alias``: a reservation address. ``device``: the block's, on another
    device, or on one that the allocator does not have where it has one alone. ``null``: no address;
    the block's number counts devices then, and one that there is not. ``foreign``: one that was never allocated.
    """

    OWN = "own"
    SIZE = "size"
    INTERIOR = "interior"
    GONE = "gone"
    ALIAS = "alias"
    DEVICE = "device"
    NULL = "null"
    FOREIGN = "foreign"


class Place(StrEnum):
    """Which slice a request is about: the one it names, or one that is not in the reservation.

    ``none``: no reservation. ``beyond``: it ends a granule behind the reservation. ``overflow``: its offset
    and its size together are 2**64.
    """

    INSIDE = "inside"
    NONE = "none"
    BEYOND = "beyond"
    OVERFLOW = "overflow"


class Target(StrEnum):
    """Which slice is unmapped: an active alias's, or something it must be refused for.

    ``again``: of an alias that was unmapped. ``size``: an alias's start, another size. ``interior``: a
    granule (or a byte) further on. ``allocation``: of a mapped allocation. ``free``: where nothing is.
    ``device``: an alias's, on another device, as for `Source`.
    """

    ALIAS = "alias"
    AGAIN = "again"
    SIZE = "size"
    INTERIOR = "interior"
    ALLOCATION = "allocation"
    FREE = "free"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program runs under; the allocator has all devices, each with one stream.

    Granularities, ``capacity`` and ``budget`` (both per device) in bytes. ``exempt``: memory spaces left
    alone by reclaim. ``slots``: granules of a reservation, of which there are ``reservations`` per device.
    ``streams_end``: the streams are destroyed before the allocator is closed. ``eager``: queued work runs
    at once. ``rounds``: the program is run so many times in one life of the allocator, and after each time the
    caller frees all that it has and lets the allocator complete what is pending.
    """

    devices: int = 1
    minimum: int = 4096
    recommended: int = 4096
    capacity: int = 1 << 20
    budget: int = UNLIMITED
    exempt: tuple[int, ...] = ()
    slots: int = 8
    reservations: int = 2
    streams_end: bool = False
    eager: bool = False
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate ``size`` bytes in the ``space``-th memory space that the subject serves, the host's being last.

    ``device``, here and below, counts the allocator's devices; a larger number is a device that it does
    not have. Tokens are written to the block's start and end by work queued on the device's stream.
    """

    size: int
    device: int = 0
    space: int = 0
    retry: bool = True


@dataclass(frozen=True, slots=True)
class AllocateMapped:
    """Allocate ``granules`` at ``offset`` (granules) of a reservation; ``extra`` more bytes are to be mapped.

    ``reservation``, here and below, counts those of the device; each is made when it is first named.
    """

    reservation: int = 0
    offset: int = 0
    granules: int = 1
    device: int = 0
    space: int = 0
    retry: bool = True
    extra: int = 0
    place: Place = Place.INSIDE


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Read the block's tokens back in queued work, and deallocate it."""

    block: int = 0
    source: Source = Source.OWN


@dataclass(frozen=True, slots=True)
class Map:
    """Make ``granules`` at ``offset`` (granules) of a reservation an alias of a block, and use it.

    `WHOLE` granules are all that is committed behind the block.
    """

    block: int = 0
    reservation: int = 0
    offset: int = 0
    granules: int = WHOLE
    source: Source = Source.OWN
    place: Place = Place.INSIDE


@dataclass(frozen=True, slots=True)
class Unmap:
    """Read an alias's tokens back in queued work, and unmap it. ``granules`` 0 asks for no bytes."""

    alias: int = 0
    target: Target = Target.ALIAS
    place: Place = Place.INSIDE
    granules: int = WHOLE


@dataclass(frozen=True, slots=True)
class Synchronize:
    """Call ``synchronize_pending_operations``."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Use:
    """Queue work that reads a block's tokens and writes new ones, through its alias or its own address."""

    block: int = 0
    alias: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Look up every block and alias that is or was there, and addresses that are none."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The host waits for a device's stream; the allocator is not told."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Let a device's stream run ``count`` items of its queue."""

    device: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Churn:
    """Allocate ``count`` blocks of ``size`` bytes, without using them, and deallocate them all."""

    count: int = 2
    size: int = 1
    device: int = 0


@dataclass(frozen=True, slots=True)
class Tag:
    """Enter a context in which allocations are for several devices, or are not."""

    multi_device: bool = True


@dataclass(frozen=True, slots=True)
class Untag:
    """Leave the context that was entered last."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Let the ``k``-th driver call of ``kind`` that the subject makes from now on fail with ``status``.

    A call that this makes fail is made once more at once.
    """

    kind: str
    k: int = 1
    status: int = Status.OUT_OF_MEMORY.value


Call = Allocate | AllocateMapped | Deallocate | Map | Unmap | Synchronize
"""The operations that are one call of the allocator."""


@dataclass(frozen=True, slots=True)
class Together:
    """Two calls at the same time, from two host threads; both are worked out before either begins.

    ``turns`` are the stretches in which they run, ``first`` having the first: so many points (driver calls
    and locks) are passed before the other thread goes on, or up to a wait for the device (-1). Behind the
    last turn a thread goes on to its end, or until it blocks.
    """

    first: Call
    second: Call
    turns: tuple[int, ...] = (AT_WAIT,)


Operation = Call | Use | Look | Drain | Progress | Churn | Tag | Untag | Fail | Together
OPERATIONS: Final[tuple[type, ...]] = (
    Allocate, AllocateMapped, Deallocate, Map, Unmap, Synchronize, Use, Look, Drain, Progress, Churn, Tag, Untag,
    Fail, Together,
)  # fmt: skip
