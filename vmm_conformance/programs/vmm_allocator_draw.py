"""Draws single operations of the contract ``vmm-allocator``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vmm_conformance.contracts import Status
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.turns import AT_WAIT

Operations = list[ops.Operation]

FAILING: Final = (
    *("event_record", "create", "map", "set_access", "event_record", "event_create", "reserve", "unmap"),
    *("event_synchronize", "release", "address_free", "device_synchronize", "create", "map", "event_query"),
)
"""Kinds of driver call that are made to fail; those at the heart of the contract come first, or twice."""

STATUSES: Final = (Status.OUT_OF_MEMORY, Status.UNKNOWN, Status.OUT_OF_MEMORY, Status.INVALID_VALUE)

SPACES: Final = (0, 0, 0, 1, 0, 1, 0, 2)
"""Which memory space: mostly the first, now and then the last one, the host's."""

WRONG_SOURCES: Final = (
    *(ops.Source.GONE, ops.Source.SIZE, ops.Source.ALIAS, ops.Source.INTERIOR, ops.Source.DEVICE),
    *(ops.Source.NULL, ops.Source.FOREIGN, ops.Source.GONE),
)
WRONG_TARGETS: Final = (
    *(ops.Target.AGAIN, ops.Target.SIZE, ops.Target.ALLOCATION, ops.Target.INTERIOR, ops.Target.FREE),
    ops.Target.DEVICE,
)
WRONG_PLACES: Final = (ops.Place.BEYOND, ops.Place.NONE, ops.Place.OVERFLOW, ops.Place.BEYOND)

TURNS: Final[tuple[tuple[int, ...], ...]] = (
    (AT_WAIT,), (0,), (1,), (2,), (AT_WAIT,), (0,), (3,), (5,), (1, 1), (0, AT_WAIT), (2, 1), (0, 0, 1), (3, 3),
    (AT_WAIT, AT_WAIT), (AT_WAIT, 2), (1, 1, 1, 1),
)  # fmt: skip


class Draw:
    """Draws operations under one configuration. What was named before is named again half of the time."""

    def __init__(self, choices: Choices, configuration: ops.Configuration) -> None:
        self._choices = choices
        self._configuration = configuration
        self._granule = configuration.recommended
        self._sizes = _sizes(configuration)
        self._slices: list[tuple[int, int]] = []
        self._live = 0

    def _one_of(self, *operations: ops.Operation) -> ops.Operation:
        return self._choices.pick(operations)

    def _one_call(self, *calls: ops.Call) -> ops.Call:
        return self._choices.pick(calls)

    def _single_makers(self) -> tuple[tuple[Callable[[], Operations], int], ...]:
        choices = self._choices
        return (
            (lambda: [self._deallocate()], 5),
            (lambda: [self._map()], 5),
            (lambda: [ops.Unmap(choices.byte() & 3)], 4),
            (lambda: [ops.Use(choices.byte() & 7, choices.chance(128))], 3),
            (lambda: [ops.Synchronize(self._device())], 3),
            (lambda: [ops.Look()], 2),
            (lambda: [ops.Drain(self._device())], 2),
            (lambda: [ops.Progress(self._device(), 1 + choices.below(4))], 2),
            (self._failure, 3),
            (self._refused, 8),
            (lambda: [self._together()], 4),
            (self._nothing, 2),
            (self._tagged, 2),
        )

    # -- operands

    def _device(self) -> int:
        at = self._choices.byte()
        return 9 if at >= 250 else at % self._configuration.devices

    def _size(self) -> int:
        return self._choices.pick(self._sizes)

    def _slice(self) -> tuple[int, int]:
        """Reservation and offset: half of the time those that were named before."""
        at = self._choices.byte()
        if self._slices and at & 1:
            return self._slices[-1 - (at >> 1) % min(3, len(self._slices))]
        found = (at >> 1) & 1, (at >> 2) % self._configuration.slots
        self._slices.append(found)
        return found

    def _granules(self) -> int:
        return (1, 1, 2, 1, 1, 2, 1, 3)[self._choices.byte() & 7]

    def _block(self) -> int:
        """A number, counted from the end half of the time: what came last is what most is about."""
        at = self._choices.byte()
        return -1 - (at >> 1 & 3) if at & 1 else at >> 1 & 7

    def _allocate(self) -> ops.Allocate:
        self._live += 1
        how = self._choices.byte()
        return ops.Allocate(self._size(), self._device(), SPACES[how & 7], how < 192)

    def _allocate_mapped(self) -> ops.AllocateMapped:
        self._live += 1
        how = self._choices.byte()
        reservation, offset = self._slice()
        return ops.AllocateMapped(
            reservation, offset, self._granules(), self._device(), SPACES[how & 7], how < 192
        )

    def _deallocate(self, block: int | None = None) -> ops.Deallocate:
        self._live -= 1
        return ops.Deallocate(self._block() if block is None else block)

    def _map(self, block: int | None = None, slice: tuple[int, int] | None = None) -> ops.Map:
        reservation, offset = slice or self._slice()
        granules = (ops.WHOLE, ops.WHOLE, ops.WHOLE, 1)[self._choices.byte() & 3]
        return ops.Map(self._block() if block is None else block, reservation, offset, granules)

    def _call(self) -> ops.Call:
        makers: tuple[Callable[[], ops.Call], ...] = (
            self._map, self._deallocate, lambda: ops.Unmap(self._block()), self._allocate, self._allocate_mapped,
            lambda: ops.Synchronize(self._device()), self._map, self._allocate,
        )  # fmt: skip
        return self._choices.pick(makers)()

    def _together(self, first: ops.Call | None = None, second: ops.Call | None = None) -> ops.Together:
        turns = self._choices.pick(TURNS)
        return ops.Together(first or self._call(), second or self._call(), turns)

    # -- what is not to be had, and what is nothing

    def _refused(self) -> Operations:
        """One request that has something against it."""
        choices = self._choices
        kind = choices.below(8)
        reservation, offset = self._slice()
        place = choices.pick(WRONG_PLACES)
        if kind < 2:
            return [ops.Deallocate(self._block(), choices.pick(WRONG_SOURCES))]
        if kind == 2:
            return [ops.Map(self._block(), reservation, offset, source=choices.pick(WRONG_SOURCES))]
        if kind == 3:
            return [ops.Unmap(self._block(), choices.pick(WRONG_TARGETS))]
        if kind == 4:
            device, space = choices.pick(((0, 0), (0, 2), (9, 0), (0, 0), (0, 1)))
            extra = choices.pick((self._granule, 1, -1))
            place = place if choices.chance(64) else ops.Place.INSIDE
            return [ops.AllocateMapped(reservation, offset, 1, device, space, True, extra, place)]
        if kind == 5:
            return [ops.AllocateMapped(reservation, offset, 1, place=place)]
        if kind == 6:
            mapped = ops.Map(self._block(), reservation, offset, place=place)
            return [self._one_of(mapped, ops.Unmap(0, place=place))]
        return [self._unheard_of(reservation, offset)]

    def _unheard_of(self, reservation: int, offset: int) -> ops.Operation:
        """Unknown devices, the host's memory, too much of a block, and all memory there could be."""
        huge = (1 << 64) - self._granule
        return self._one_of(
            ops.Allocate(1, 9), ops.AllocateMapped(reservation, offset, 1, 9), ops.Synchronize(9),
            ops.Allocate(1, 0, 2), ops.AllocateMapped(reservation, offset, 1, 0, 2),
            ops.Map(self._block(), reservation, 0, 6), ops.Map(-1, reservation, 0, 2), ops.Allocate(huge),
        )  # fmt: skip

    def _nothing(self) -> Operations:
        """Requests for no bytes, and a null address to deallocate."""
        reservation, offset = self._slice()
        device = self._choices.pick((0, 9))
        return [
            self._one_of(
                ops.Allocate(0, device), ops.AllocateMapped(reservation, offset, 0, device),
                ops.Map(self._block(), reservation, offset, 0), ops.Unmap(0, granules=0),
                ops.Deallocate(self._choices.byte() & 3, ops.Source.NULL),
            )
        ]  # fmt: skip

    def _failure(self) -> Operations:
        kind = self._choices.pick(FAILING)
        how = self._choices.byte()
        failing = ops.Fail(kind, 1 + (0, 0, 1, 2)[how & 3], STATUSES[how >> 2 & 3].value)
        return [failing, self._call()]

    def _tagged(self) -> Operations:
        return [ops.Tag(self._choices.chance(160)) if self._choices.chance(128) else ops.Untag()]


def _sizes(configuration: ops.Configuration) -> tuple[int, ...]:
    """Sizes in bytes, boundaries first; few of them, so that equal ones meet."""
    granule = configuration.recommended
    return (granule, 1, granule - 1, granule + 1, 2 * granule, 100, granule, 1, 3 * granule)
