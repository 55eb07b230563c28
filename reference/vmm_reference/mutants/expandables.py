"""Expandable-segment allocators that get one thing wrong each."""

from __future__ import annotations

from collections.abc import Iterator

from vmm_reference.expandable import ExpandableAllocator, Segment


class ReusesAny(ExpandableAllocator):
    """Hands on what any stream has freed, ordering nothing."""

    def occupied(self, segment: Segment, *, reusing: bool) -> Iterator[tuple[int, int]]:
        blocks = ((offset, taken) for offset, (_, taken) in segment.blocks.items())
        return blocks if reusing else super().occupied(segment, reusing=False)


class TrimsUnseen(ExpandableAllocator):
    """Gives back granules for which an event is still awaited."""

    def occupied(self, segment: Segment, *, reusing: bool) -> Iterator[tuple[int, int]]:
        blocks = ((offset, taken) for offset, (_, taken) in segment.blocks.items())
        return super().occupied(segment, reusing=True) if reusing else blocks


class GapTooSmall(ExpandableAllocator):
    """Takes the first gap for large enough when it has half of the bytes."""

    def gap(self, segment: Segment, taken: int, unit: int) -> int:
        return super().gap(segment, taken // 2, unit)


class HoardsSpent(ExpandableAllocator):
    """Keeps every event that it has waited for until it is closed."""

    def destroy_spent(self) -> None:
        pass
