"""Expandable-segment allocators that get one thing wrong each."""

from __future__ import annotations

from collections.abc import Iterator

from vmm_reference.expandable import ExpandableAllocator, Freed, Segment


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


class GrowsOverNeighbour(ExpandableAllocator):
    """Grows in place whatever stands behind the block."""

    def room_behind(self, segment: Segment, offset: int, stream: int) -> int:
        return segment.size - offset


class MovesWithoutCopy(ExpandableAllocator):
    """Moves a block that cannot grow where it is, and copies only what would be new."""

    def move(self, segment: Segment, offset: int, size: int, stream: int) -> tuple[Segment, int]:
        _, old = segment.blocks[offset]
        grown, place, _ = self.take(size, stream, segment.space)
        self.freed.append(Freed(segment, offset, old, self.driver.event_create(self.device), stream, marked=False))
        del segment.blocks[offset]
        self.mark_freed()
        return grown, place


class FreesMovedAtOnce(ExpandableAllocator):
    """Takes the old bytes of a block that has moved for free as soon as the copy is queued."""

    def move(self, segment: Segment, offset: int, size: int, stream: int) -> tuple[Segment, int]:
        grown = super().move(segment, offset, size, stream)
        self.spent.append(self.freed.pop().event)
        return grown
