"""Turns any bytes into a long program of the contract ``reservation``.

A program takes a swarm subset of the kinds of operations; where there is nothing yet for one to work on,
what it needs comes instead. Most requests are good ones, and what fails is followed by what it may strike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import Status
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.reservation import (
    CONTRACT,
    Allocate,
    Assign,
    Check,
    CloseReservation,
    Configuration,
    Drop,
    Fail,
    Free,
    MapOne,
    MapTo,
    Move,
    Odd,
    Operation,
    Probe,
    Remap,
    Reserve,
    Teardown,
    Touch,
    TouchNull,
    Use,
)

LENGTHS: Final = (25, 37)
"""Fewest and most operations of a drawn program whose bytes do not run out."""

WEIGHTS: Final[tuple[tuple[type, int], ...]] = (
    (Fail, 6), (Use, 2), (Free, 2), (Drop, 3), (Assign, 2), (TouchNull, 2), (MapOne, 2), (Reserve, 1), (Move, 1),
    (Check, 1), (Probe, 1), (CloseReservation, 2),
)  # fmt: skip
"""How often each kind is drawn, if it is kept, beside those in `ALWAYS`."""

ALWAYS: Final = (*(Allocate,) * 2, *(MapTo,) * 4, *(Remap,) * 6)
"""What every program is made of."""

FAILING: Final = ("map", "set_access", "unmap", "map", "set_access", "map", "unmap", "release", "create", "reserve",
                  "address_free")  # fmt: skip
"""Kinds of driver call that are made to fail, those of mapping most often."""

STATUSES: Final = (Status.OUT_OF_MEMORY, Status.UNKNOWN, Status.NOT_PERMITTED)
"""What they fail with: several, so that two errors can be told apart."""

AFTER_FAIL: Final[Mapping[str, tuple[type, ...]]] = {
    "map": (Remap, MapTo, MapTo, Fail),
    "set_access": (Remap, MapTo, Fail),
    "unmap": (Remap, Drop, Assign, Fail, CloseReservation, Remap),
    "release": (Free, Free, Remap, Drop),
    "create": (Allocate,),
    "reserve": (Reserve,),
    "address_free": (CloseReservation,),
}
"""What an injected failure may strike."""

MAP_ODDS: Final = (
    Odd.EMPTY, Odd.GAP, Odd.FOREIGN, Odd.BACK, Odd.UNALIGNED, Odd.OCCUPIED, Odd.GONE, Odd.OUTSIDE, Odd.GAP,
    Odd.NO_BYTES, Odd.TOO_LARGE, Odd.OFFSET, Odd.CLOSED, Odd.FOREIGN, Odd.EMPTY,
)  # fmt: skip
REMAP_ODDS: Final = (
    Odd.EMPTY, Odd.GAP, Odd.NULL, Odd.SHORT, Odd.LONG, Odd.SHIFTED, Odd.CUT, Odd.FOREIGN, Odd.UNALIGNED, Odd.BACK,
    Odd.NULL, Odd.CUT, Odd.TOO_LARGE, Odd.OFFSET, Odd.GONE, Odd.NO_BYTES,
)  # fmt: skip
ODD_CHANCE: Final = 56
"""Of 256 requests so many are wrong on purpose."""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for; ``pins`` fixes fields of its configuration.

    About 250 bytes make 30 operations.
    """
    choices = Choices(data)
    configuration = replace(_configuration(choices), **(pins or {}))
    draw = _Draw(choices, configuration)
    shortest, longest = LENGTHS
    length = shortest + choices.below(longest - shortest + 1)
    operations: list[Operation] = []
    while len(operations) < length and not choices.exhausted:
        operations.append(draw.operation(operations[-1] if operations else None))
    return Program(CONTRACT, configuration, tuple(operations))


def _configuration(choices: Choices) -> Configuration:
    shape, switches = choices.byte(), choices.byte()
    recommended = 4096 << (0, 0, 1, 2)[shape & 3]
    return Configuration(
        devices=(1, 2, 1, 3)[shape >> 2 & 3],
        recommended=recommended,
        capacity=recommended * (48, 24, 96, 48)[shape >> 4 & 3],
        peers=switches & 3 != 3,
        unmap_spans=switches & 12 != 12,
        access_spans=switches & 48 != 48,
        partial_map=switches & 64 == 0,
        map_offset=switches & 128 != 0,
        teardown=(Teardown.MAPPINGS, Teardown.RESERVATIONS, Teardown.MEMORY)[(shape >> 6) % 3],
    )


class _Draw:
    """Draws operations under one configuration, and guesses what there is by then."""

    def __init__(self, choices: Choices, configuration: Configuration) -> None:
        self._choices = choices
        self._devices = configuration.devices
        self._minimum = configuration.minimum
        self._granule = granule = configuration.recommended
        self._sizes = (granule, 1, granule, 2 * granule, granule - 1, granule, granule + 1, 3 * granule, 2 * granule)
        self._rooms = (*(n * granule for n in (12, 8, 20, 5)), 8 * granule - 1, 1, 5 * granule + 1)
        kept = choices.subset(WEIGHTS, keep=176)
        self._wheel = [*ALWAYS, *(kind for kind, weight in kept for _ in range(weight))]
        self._memory = self._reserved = self._mapped = self._null = 0
        self._makers: dict[type, Callable[[], Operation]] = {
            Allocate: self._allocate,
            Free: lambda: Free(choices.byte() & 7),
            Reserve: self._reserve,
            CloseReservation: lambda: CloseReservation(choices.byte() & 3),
            MapOne: self._map_one,
            MapTo: self._map_to,
            Remap: self._remap,
            Move: lambda: Move(choices.byte() & 7),
            Assign: self._assign,
            Drop: self._drop,
            TouchNull: lambda: TouchNull(choices.pick(tuple(Touch))),
            Use: self._use,
            Check: lambda: Check(choices.byte() & 7, choices.below(self._devices)),
            Probe: lambda: Probe(choices.byte() & 3, choices.byte() & 15),
            Fail: self._fail,
        }

    def operation(self, before: Operation | None) -> Operation:
        """The next operation. After a `Fail` comes what it may strike: failures are for something."""
        choices = AFTER_FAIL[before.kind] if isinstance(before, Fail) else self._wheel
        made = self._makers[self._possible(self._choices.pick(choices))]()
        self._count(made)
        return made

    def _possible(self, kind: type) -> type:
        """``kind``, or what it needs first."""
        if kind in (Remap, Move, Assign, Drop, Use, Check) and not self._mapped:
            kind = MapTo
        elif kind is TouchNull and not self._null:
            kind = Move if self._mapped else MapTo
        if kind in (MapOne, MapTo, CloseReservation, Probe) and not self._reserved:
            return Reserve
        if kind in (MapOne, MapTo, Free) and self._memory < 3:
            return Allocate
        return kind

    def _count(self, made: Operation) -> None:
        kind = type(made)
        self._memory += (kind is Allocate) - (kind is Free)
        self._reserved += (kind is Reserve) - (kind is CloseReservation)
        self._mapped += isinstance(made, MapTo | MapOne) and made.odd is Odd.NONE
        self._mapped -= kind in (Drop, Assign, CloseReservation) and self._mapped > 0
        self._null += kind in (Move, Remap, Drop, Assign)

    def _allocate(self) -> Allocate:
        place = self._choices.byte()
        return Allocate(self._choices.pick(self._sizes), self._device(place), (0, 0, 0, 1)[place >> 6])

    def _reserve(self) -> Reserve:
        place = self._choices.byte()
        alignment = (0, 0, self._granule, 0, 4 * self._granule, 0, 256, 1 << 20)[place >> 3 & 7]
        return Reserve(self._choices.pick(self._rooms), alignment, self._device(place))

    def _device(self, place: int) -> int:
        """Mostly the first device, so that memory and addresses meet."""
        return place % self._devices if place & 4 else 0

    def _odd(self, odds: tuple[Odd, ...]) -> Odd:
        return self._choices.pick(odds) if self._choices.chance(ODD_CHANCE) else Odd.NONE

    def _map_one(self) -> MapOne:
        c = self._choices
        place = c.byte()
        return MapOne(place & 3, c.byte() & 7, place >> 3 & 15, place >= 192, self._odd(MAP_ODDS))

    def _map_to(self) -> MapTo:
        c = self._choices
        place, which = c.byte(), c.byte()
        count = (3, 2, 4, 3, 1, 5, 2, 3)[which & 7]
        allocations = tuple((which >> 3) + i * (1 + (which >> 5)) & 7 for i in range(count))
        odd = self._odd(MAP_ODDS)
        return MapTo(place & 3, allocations, place >> 3 & 15, place >= 224, odd, c.below(count) if odd is not Odd.NONE
                     else 0)  # fmt: skip

    def _remap(self) -> Remap:
        c = self._choices
        which, how = c.byte(), c.byte()
        required = (5, 1, 3, 0, 6, 2, 7, 15, 4, 9, 13, 11, 31, 10, 14, 0)[how & 15]
        odd = self._odd(REMAP_ODDS)
        at = c.byte() & 3 if odd is not Odd.NONE else 0
        allocations = (which >> 3, (which >> 3) + (which >> 6))
        lie, shape = how >> 4 & 3 == 3, how >> 6
        return Remap(which & 7, required, allocations, lie, shape == 3, shape == 2, odd, at)

    def _assign(self) -> Assign:
        which = self._choices.byte()
        return Assign(which & 7, which >> 3 & 7)

    def _drop(self) -> Drop:
        which = self._choices.byte()
        return Drop(which & 7, which >= 128)

    def _use(self) -> Use:
        return Use(self._choices.byte() & 7, self._choices.below(self._devices))

    def _fail(self) -> Fail:
        kind = self._choices.pick(FAILING)
        how = self._choices.byte()
        k = (1, 2, 2, 3)[how & 3] if kind == "map" else (1, 1, 2, 3)[how & 3]
        return Fail(kind, k, STATUSES[(how >> 4) % 3].value)
