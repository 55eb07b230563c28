"""Draws short sequences of operations that fit together, for the contract ``vmm-allocator``.

Much of what can go wrong needs three or four operations that fit together: single operations, drawn at
random, hardly ever do. So about half of a program is *motifs*, with single operations between and inside
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.turns import AT_WAIT
from vmm_conformance.programs.vmm_allocator_draw import STATUSES, TURNS, Draw, Operations

MANY: Final = 64
"""Operations of a batch, as documented."""

BIG: Final = 1 << 20
"""Granules of which a few fill a batch: 1 MiB."""


class Motifs(Draw):
    """Draws motifs and single operations."""

    def __init__(self, choices: Choices, configuration: ops.Configuration) -> None:
        super().__init__(choices, configuration)
        self._singles = self._wheel(self._single_makers())
        self._motifs = self._wheel(self._motif_makers())

    def _wheel(self, makers: tuple[tuple[Callable[[], Operations], int], ...]) -> list[Callable[[], Operations]]:
        kept = self._choices.subset(makers, keep=176)
        return [make for make, weight in kept for _ in range(weight)]

    def next(self) -> Operations:
        """Some more operations."""
        if self._live <= 0:
            self._live = 1
            return [self._allocate()]
        choose = self._choices.byte()
        if choose < 64:
            return [self._allocate() if choose < 40 else self._allocate_mapped()]
        return self._choices.pick(self._motifs if choose < 150 else self._singles)()

    def _motif_makers(self) -> tuple[tuple[Callable[[], Operations], int], ...]:
        big = 12 if self._granule == BIG else 1
        return (
            (self._again, 4), (self._cycle, 4), (self._realias, 4), (self._steal, 4), (self._move, 3),
            (self._short, 4), (self._exempt_short, 2), (self._nested_tags, 3), (self._crowd, 1), (self._big, big),
            (self._freed_alias, 3), (self._near, 4), (self._sync_tale, 2), (self._raced, 8), (self._failed_marker, 3),
            (self._cancelled, 2), (self._limit, 2), (self._headroom, 3), (self._roles, 6), (self._half_made, 3),
        )  # fmt: skip

    # -- motifs

    def _filler(self) -> Operations:
        """Now and then something else between the operations of a motif."""
        at = self._choices.byte()
        if at < 176:
            return []
        return self._choices.pick(self._singles)() if at < 200 else [self._between(at)]

    def _between(self, at: int) -> ops.Operation:
        return (ops.Look(), ops.Drain(0), ops.Progress(0, 2), ops.Use(-1), ops.Synchronize(0))[at % 5]

    def _again(self) -> Operations:
        """A block is deallocated, and one that may take its place is asked for: of its size, or nearly."""
        first = self._allocate()
        space = first.space if self._choices.chance(160) else 1 - first.space % 2
        size = self._choices.pick((first.size, max(1, first.size - 1), first.size + 1, self._size()))
        return [
            first, *self._filler(), ops.Deallocate(-1), *self._filler(), replace(first, size=size, space=space),
        ]  # fmt: skip

    def _cycle(self) -> Operations:
        """Steps that allocate at one slice and deallocate again."""
        one = self._allocate_mapped()
        changed = replace(one, space=1 - one.space % 2, granules=one.granules + self._choices.below(2))
        self._live -= 1
        return [
            one, *self._filler(), ops.Deallocate(-1), *self._filler(),
            self._choices.pick((one, one, changed)), ops.Deallocate(-1),
        ]  # fmt: skip

    def _realias(self) -> Operations:
        """An alias is unmapped, and asked for again."""
        mapped = self._map(self._block())
        larger = replace(mapped, granules=2) if self._choices.chance(48) else mapped
        end = self._one_of(ops.Synchronize(0), ops.Use(mapped.block, True), ops.Look())
        return [mapped, *self._filler(), ops.Unmap(-1), *self._filler(), larger, *self._filler(), end]

    def _steal(self) -> Operations:
        """A slice shows one block, and then another one."""
        slice = self._slice()
        return [
            self._map(0, slice), *self._filler(), ops.Unmap(-1), *self._filler(), self._map(1, slice),
            ops.Use(1, True), *self._filler(),
        ]  # fmt: skip

    def _move(self) -> Operations:
        """A block has an alias here, and then there."""
        block = self._block()
        return [
            self._map(block), *self._filler(), ops.Unmap(-1), *self._filler(), self._map(block), ops.Use(block, True),
        ]  # fmt: skip

    def _freed_alias(self) -> Operations:
        """A block is deallocated while its alias is on its way out, and memory or the alias's slice is wanted."""
        slice = self._slice()
        reservation, offset = slice
        wanted = self._one_of(
            ops.Synchronize(0), ops.AllocateMapped(reservation, offset, 1), self._map(0, slice), self._hoard()
        )
        return [
            self._allocate(), self._map(-1, slice), ops.Unmap(-1), ops.Deallocate(-1), *self._filler(), wanted,
        ]  # fmt: skip

    def _near(self) -> Operations:
        """Slices that touch, or overlap in part, something active or stale."""
        reservation, offset = self._slice()
        there = self._one_of(
            ops.AllocateMapped(reservation, offset, 2), ops.Map(-1, reservation, offset, self._granules())
        )
        ended: Operations = []
        if self._choices.chance(128):
            ended = [ops.Deallocate(-1) if isinstance(there, ops.AllocateMapped) else ops.Unmap(-1)]
        at = offset + self._choices.pick((-1, 1, 2, 0, -2))
        size = self._granules()
        near = self._one_of(ops.AllocateMapped(reservation, at, size), ops.Map(0, reservation, at, size))
        return [there, *ended, near]

    def _hoard(self) -> ops.Allocate:
        """All that the budget, or the device, allows, or half of that."""
        most = min(self._configuration.budget, self._configuration.capacity) // self._granule * self._granule
        return ops.Allocate(most if self._choices.chance(128) else max(1, most // 2), 0, 0, self._choices.chance(128))

    def _short(self) -> Operations:
        """Memory is deallocated, and then all of it is wanted."""
        return [
            self._hoard(), ops.Deallocate(-1), *self._filler(), self._allocate(), *self._filler(), self._hoard(),
            *self._filler(), ops.Deallocate(-1),
        ]  # fmt: skip

    def _headroom(self) -> Operations:
        """All of memory is stale in a few parts, and as much as one of them is wanted for something else."""
        parts = 2 + self._choices.below(2)
        most = min(self._configuration.budget, self._configuration.capacity) // self._granule // parts
        part = ops.Allocate(max(1, most) * self._granule)
        wanted = replace(part, space=1, retry=self._choices.chance(128))
        freed = [ops.Deallocate(-1)] * parts
        return [ops.Synchronize(0), *[part] * parts, *freed, *self._filler(), wanted, ops.Deallocate(-1)]

    def _exempt_short(self) -> Operations:
        """Memory of several spaces, and aliases, are stale when memory is short."""
        return [
            ops.Allocate(self._granule, 0, 1), ops.Deallocate(-1), self._map(0), ops.Unmap(-1),
            ops.Allocate(self._granule), ops.Deallocate(-1), self._hoard(), ops.Look(),
        ]  # fmt: skip

    def _limit(self) -> Operations:
        """More than there can be, and then what there is."""
        most = min(self._configuration.budget, self._configuration.capacity)
        over = ops.Allocate(most // self._granule * self._granule + 1, 0, 0, self._choices.chance(128))
        return [over, *self._filler(), self._hoard(), ops.Deallocate(-1)]

    def _nested_tags(self) -> Operations:
        """Blocks of one size inside and outside of contexts."""
        outer, inner = self._choices.pick(((True, False), (True, True), (False, True)))
        block = ops.Allocate(self._granule)
        body: Operations = [block, ops.Deallocate(-1)]
        return [
            ops.Tag(outer), *body, ops.Tag(inner), *self._filler(), ops.Untag(), block, ops.Deallocate(-1), ops.Untag(),
            block, ops.Deallocate(-1),
        ]  # fmt: skip

    def _crowd(self) -> Operations:
        """About as many deallocations as a batch takes."""
        count = MANY + self._choices.pick((-1, 0, 1, 2))
        return [ops.Churn(count, 1), *self._filler(), ops.Synchronize(0)]

    def _big(self) -> Operations:
        """Operations that together, or alone, fill a batch where granules are large; those of aliases never do."""
        granules = self._choices.pick((33, 32, 65, 64, 16))
        if self._choices.chance(160):
            return [ops.Churn(self._choices.pick((1, 2, 3)), granules * self._granule), *self._filler()]
        one = ops.Allocate(33 * self._granule)
        return [one, ops.Map(-1, 0, 0), ops.Unmap(-1), one, ops.Map(-1, 0, 40), ops.Unmap(-1), *self._filler()]

    def _sync_tale(self) -> Operations:
        """What is stale can be looked up, until it was synchronized."""
        return [self._allocate(), ops.Deallocate(-1), ops.Look(), *self._filler(), ops.Synchronize(0), ops.Look()]

    def _cancelled(self) -> Operations:
        """Deferred operations that are called off before they have a marker."""
        block = ops.Allocate(self._granule)
        return [ops.Synchronize(0), block, ops.Deallocate(-1), block, *self._filler(), ops.Synchronize(0)]

    def _half_made(self) -> Operations:
        """Something new fails half way."""
        block = ops.Allocate((5 + self._choices.below(2)) * self._granule)
        slice = self._slice()
        made = self._one_call(block, ops.Map(-1, *slice), ops.AllocateMapped(*slice, 1))
        fail = ops.Fail(self._choices.pick(("map", "set_access", "create", "reserve")))
        return [fail, made, *self._filler(), made]

    def _failed_marker(self) -> Operations:
        """The marker of a batch cannot be recorded."""
        fail = ops.Fail("event_record", 1, self._choices.pick(STATUSES).value)
        return [self._allocate(), ops.Deallocate(-1), fail, ops.Synchronize(0), ops.Look(), *self._filler()]

    def _raced(self) -> Operations:
        """Two calls at once, of which the first waits for, or has just looked at, what the second is about."""
        slice = self._slice()
        reservation, offset = slice
        block, freed = ops.Allocate(self._granule), ops.Deallocate(-1)
        most = min(self._configuration.budget, self._configuration.capacity) // self._granule * self._granule
        shown, hidden = self._map(0, slice), ops.Unmap(-1)
        there = ops.AllocateMapped(reservation, offset, 1)
        stories: tuple[tuple[Operations, ops.Call, ops.Call, int], ...] = (
            ([shown, hidden], self._map(1, slice), self._map(0, slice), AT_WAIT),
            ([shown, hidden], there, self._map(0, slice), AT_WAIT),
            ([shown, hidden], self._map(1, slice), self._map(1), AT_WAIT),
            ([shown, hidden], self._map(1, slice), ops.Deallocate(1), AT_WAIT),
            ([shown, hidden], self._map(1, slice), self._call(), AT_WAIT),
            ([block, freed], ops.Allocate(most), block, AT_WAIT),
            ([block, freed], ops.Synchronize(0), block, AT_WAIT),
            ([block, freed], block, block, 0),
            ([block], freed, freed, 0),
            ([shown], ops.Unmap(-1), self._call(), 0),
            ([block, freed], ops.Allocate(most), replace(block, device=1), AT_WAIT),
        )
        before, first, second, turn = self._choices.pick(stories)
        turns = self._choices.pick(TURNS) if self._choices.chance(64) else (turn,)
        return [*before, ops.Together(first, second, turns), *self._filler()]

    def _roles(self) -> Operations:
        """What has been something else is named where an allocation or an alias must be."""
        choices = self._choices
        slice = self._slice()
        reservation, offset = slice
        gone, alias = ops.Source.GONE, ops.Source.ALIAS
        return choices.pick(
            (
                [ops.AllocateMapped(reservation, offset, 1), self._map(), ops.Unmap(-1, ops.Target.ALLOCATION)],
                [self._map(-1, slice), ops.Deallocate(-1, alias)],
                [self._map(-1, slice), ops.Map(-1, *self._slice(), source=alias)],
                [self._allocate(), ops.Deallocate(-1), ops.Map(-1, *slice, source=gone)],
                [self._allocate(), ops.Deallocate(-1), ops.Deallocate(-1, gone)],
                [ops.Map(-1, *slice), ops.Unmap(-1), ops.Unmap(-1, ops.Target.AGAIN)],
                [ops.Map(-1, *slice), ops.Unmap(-1, ops.Target.SIZE)],
                [ops.Map(-1, *slice), ops.Unmap(-1, ops.Target.INTERIOR)],
                [ops.Allocate(2 * self._granule), ops.Map(-1, *slice, source=ops.Source.INTERIOR)],
            )
        )
