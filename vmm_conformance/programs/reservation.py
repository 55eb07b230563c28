"""Programs for the contract ``reservation``: memory, addresses, and mappings that are made, changed and moved.

Every operation means something under every configuration: devices, spaces, allocations, reservations and
mappings are taken modulo what there is, and an operation on something that there is none of does nothing.
Which memory fills which slice is worked out from what there is, so that most requests are good ones; `Odd`
says what is to be wrong with the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vmm_conformance.contracts import Status

CONTRACT: Final = "reservation"


class Teardown(StrEnum):
    """What is given up first when a program has ended."""

    MAPPINGS = "mappings"
    RESERVATIONS = "reservations"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program runs under. Granularities and capacity (per device) in bytes.

    There is one memory layer per device. ``peers``: devices reach each other's memory. ``unmap_spans``,
    ``access_spans``, ``partial_map`` and ``map_offset`` are the driver's capabilities.
    """

    devices: int = 1
    minimum: int = 4096
    recommended: int = 4096
    capacity: int = 1 << 20
    spaces: tuple[int, ...] = (0, 1)
    peers: bool = True
    unmap_spans: bool = True
    access_spans: bool = True
    partial_map: bool = True
    map_offset: bool = False
    teardown: Teardown = Teardown.MAPPINGS


class Odd(StrEnum):
    """What is wrong with the descriptors of one call. ``at`` chooses the slice.

    Where a call has no use for one, it means ``none``: ``outside``, ``occupied`` and ``closed`` (the last
    reservation that was closed is used) concern mapping alone, ``null``, ``short``, ``long``, ``shifted``
    and ``cut`` (a mapping described as two slices of which one is remapped) remapping alone. ``gone`` names
    an allocation that was released.
    """

    NONE = "none"
    EMPTY = "empty"
    GAP = "gap"
    BACK = "back"
    FOREIGN = "foreign"
    UNALIGNED = "unaligned"
    NO_BYTES = "no-bytes"
    TOO_LARGE = "too-large"
    OFFSET = "offset"
    OUTSIDE = "outside"
    OCCUPIED = "occupied"
    CLOSED = "closed"
    GONE = "gone"
    NULL = "null"
    SHORT = "short"
    LONG = "long"
    SHIFTED = "shifted"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate ``size`` bytes in the ``space``-th memory space that the subject serves."""

    size: int
    device: int = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """Release an allocation, whether a mapping shows it or not."""

    allocation: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reserve ``size`` bytes of addresses, look at them, and try to reach them before anything is mapped."""

    size: int
    alignment: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class CloseReservation:
    """Close a reservation with whatever is mapped in it, and once more."""

    reservation: int


@dataclass(frozen=True, slots=True)
class MapOne:
    """Map one allocation at the ``place``-th offset where it fits; ``part``: half of it, where that works.

    A mapping that was made, by this or by another operation, is read and written at once. One that an
    injected failure has prevented is asked for once more.
    """

    reservation: int
    allocation: int
    place: int = 0
    part: bool = False
    odd: Odd = Odd.NONE


@dataclass(frozen=True, slots=True)
class MapTo:
    """Map several allocations side by side, from the ``place``-th offset where they fit all."""

    reservation: int
    allocations: tuple[int, ...]
    place: int = 0
    part: bool = False
    odd: Odd = Odd.NONE
    at: int = 0


@dataclass(frozen=True, slots=True)
class Remap:
    """Remap a mapping: bit ``i`` of ``required`` says whether slice ``i`` gets other memory.

    ``allocations`` choose that memory, in turn, among what fits. With ``lie`` unchanged slices name other
    memory than they show. With ``merge`` slices that touch and are both required are described as one,
    where there is memory of that size; with ``split`` a required slice of several granules as two. A
    mapping that was refused is read; where an injected failure has ended it, its range is mapped again
    with the same memory.
    """

    mapping: int
    required: int
    allocations: tuple[int, ...] = (0,)
    lie: bool = False
    merge: bool = False
    split: bool = False
    odd: Odd = Odd.NONE
    at: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Move a mapping into a new object, and release the old one, which is null."""

    mapping: int


@dataclass(frozen=True, slots=True)
class Assign:
    """Assign one mapping to another, both counted among the live ones and the last that became null."""

    target: int
    source: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Release a mapping, or let a ``with`` block end if ``scoped``; then try to reach its addresses."""

    mapping: int
    scoped: bool = False


class Touch(StrEnum):
    """What is done to a null mapping."""

    ADDRESS = "address"
    DROP = "drop"
    MOVE = "move"
    REMAP = "remap"


@dataclass(frozen=True, slots=True)
class TouchNull:
    """Use the last mapping that became null."""

    how: Touch


@dataclass(frozen=True, slots=True)
class Use:
    """Let a device read a mapping's tokens and write new ones to the start and end of each slice."""

    mapping: int
    device: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Let a device read a mapping's tokens."""

    mapping: int
    device: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the driver what rights each device has on the ``granule``-th granule of a reservation."""

    reservation: int
    granule: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """Let the ``k``-th driver call of ``kind`` that the subject makes from now on fail with ``status``."""

    kind: str
    k: int = 1
    status: int = Status.OUT_OF_MEMORY.value


Operation = (
    Allocate | Free | Reserve | CloseReservation | MapOne | MapTo | Remap | Move | Assign | Drop | TouchNull
    | Use | Check | Probe | Fail
)  # fmt: skip
OPERATIONS: Final[tuple[type, ...]] = (
    Allocate, Free, Reserve, CloseReservation, MapOne, MapTo, Remap, Move, Assign, Drop, TouchNull,
    Use, Check, Probe, Fail,
)  # fmt: skip
