"""The contract ``allocator``: any allocator that maps physical memory into address ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from vmm_conformance.contracts.driver import Driver


class Block(NamedTuple):
    """One allocation: the ``size`` asked for and the ``committed`` bytes behind it."""

    address: int
    size: int
    committed: int


class Statistics(NamedTuple):
    """Bytes: ``requested`` by live blocks, ``committed`` of the device's memory, ``reserved`` of address space."""

    requested: int
    committed: int
    reserved: int


class Allocator(Protocol):
    """An allocator on one device. Refusals raise `SubjectError` or `DriverError` and change nothing.

    ``allocate`` returns memory that the device may use from work submitted to ``stream`` afterwards.
    ``deallocate`` is ordered with ``stream``: work submitted to it before may still use the block.
    ``grow`` keeps the first ``block.size`` bytes and returns the block that replaces ``block``; it may
    move. ``close`` gives everything back, blocks that are still live included.
    """

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block: ...
    def deallocate(self, block: Block, *, stream: int) -> None: ...
    def grow(self, block: Block, size: int, *, stream: int) -> Block: ...
    def close(self) -> None: ...


class WholeAllocator(Allocator, Protocol):
    """An allocator with every optional part. A subject declares which it has, see `SUBJECT_CAPABILITIES`.

    ``shrink`` keeps the first ``size`` bytes and returns the block that replaces ``block``; it may move,
    and work submitted to ``stream`` before may still use what is cut off. ``trim`` gives back what stands
    behind no live block and is over. ``pause`` gives the device the memory behind live blocks and keeps
    their addresses; ``resume`` puts memory there again, with the contents if there was a ``backup`` and
    with none to rely on if not. ``enable_peer`` lets one more device use all blocks, those to come included.

    Between ``begin_capture`` and ``end_capture`` what the caller submits to ``stream`` is captured, to be launched
    there again and again until ``drop_capture``; launches from before that may then still be queued. There is one
    capture at a time. What was live before it the caller keeps; what is allocated, freed or resized meanwhile is the
    allocator's to keep for the captured work.

    ``taken`` counts, for each declared path ``CALL/WAY``, the calls that went well and took it. Of ``in place`` and
    ``moved`` it is known what they mean: the block is where it was, or is not.
    """

    def shrink(self, block: Block, size: int, *, stream: int) -> Block: ...
    def trim(self) -> None: ...
    def pause(self, *, backup: bool) -> None: ...
    def resume(self) -> None: ...
    def enable_peer(self, peer: int) -> None: ...
    def statistics(self) -> Statistics: ...
    def taken(self) -> Mapping[str, int]: ...
    def begin_capture(self, *, stream: int) -> None: ...
    def end_capture(self, *, stream: int) -> None: ...
    def drop_capture(self, *, stream: int) -> None: ...


AllocatorFactory = Callable[[Driver, int], Allocator]
"""``(driver, device)`` to a fresh allocator."""
