"""The contract ``allocator``: any allocator that maps physical memory into address ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from vmm_conformance.contracts.driver import Driver


class Block(NamedTuple):
    """One allocation: the ``size`` asked for and the ``committed`` bytes behind it."""

    address: int
    size: int
    committed: int


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


AllocatorFactory = Callable[[Driver, int], Allocator]
"""``(driver, device)`` to a fresh allocator."""
