"""Where a host driver's addresses and bytes come from: one arena, one memory file, free address ranges."""

from __future__ import annotations

import contextlib
import os
import sys
from bisect import bisect_left, bisect_right
from typing import Final

from vmm_conformance.drivers.host.system import (
    FAILED,
    PAGE,
    PAGE_SHIFT,
    PROT_NONE,
    PUNCH_HOLE,
    RESERVE,
    WITHDRAW,
    HostUnsupported,
    system_calls,
)

POISON: Final = 0xCB
"""The byte that memory holds before anybody has written it."""

_POISON_CHUNK: Final = bytes([POISON]) * max(PAGE, 1 << 16)
_ARENA_SIZES: Final = (1 << 40, 1 << 37, 1 << 34, 1 << 32)
_ARENA_ALIGNMENT: Final = 1 << 30
_FILE_SIZE: Final = 1 << 56
_IDLE_LIMIT: Final = 4


class Memory:
    """``size`` physical bytes: a part of the memory file, from ``start``.

    Poison is written when a page is first touched through the driver, since poisoning at creation
    would cost far more than everything else. ``touched`` has a 1 for each page that was, and is None
    before the first; ``complete`` says that all were. ``file`` is a file of its own, or -1 in the common one.
    """

    __slots__ = ("complete", "file", "size", "start", "touched")

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.size = size
        self.touched: bytearray | None = None
        self.complete = False
        self.file = -1


class Backing:
    """An arena of inaccessible addresses and a memory file, both owned by one driver at a time.

    They are expensive to make and cheap to reset, so closed drivers leave them to the next ones: see
    `acquire` and `give_back`. The file is used up to ``top``. No offset is used twice by one driver: the
    file is sparse, and what has been punched costs nothing.
    """

    __slots__ = ("_raw", "_raw_size", "base", "calls", "file", "size", "top")

    def __init__(self) -> None:
        self.file = -1
        self.calls = system_calls()
        self._raw, self._raw_size = self._reserve_arena()
        self.base = -(-self._raw // _ARENA_ALIGNMENT) * _ARENA_ALIGNMENT
        self.size = self._raw_size - _ARENA_ALIGNMENT
        self.file = os.memfd_create("vmm-conformance")
        os.ftruncate(self.file, _FILE_SIZE)
        self.top = 0

    def _reserve_arena(self) -> tuple[int, int]:
        for size in _ARENA_SIZES:
            address = self.calls.mmap(0, size + _ARENA_ALIGNMENT, PROT_NONE, RESERVE, -1, 0)
            if address != FAILED:
                return address, size + _ARENA_ALIGNMENT
        raise HostUnsupported(
            f"the host driver cannot reserve {_ARENA_SIZES[-1]} bytes of addresses: "
            f"{self.calls.reason()}; raise the limit on virtual memory (ulimit -v)"
        )

    def touch(self, memory: Memory, start: int, end: int, overwrites: bool) -> None:
        """Bytes ``start`` to ``end`` of ``memory`` are about to be used: poison pages never used before.

        With ``overwrites`` every byte of the range is about to be written, so inner pages need none.
        """
        touched = memory.touched
        if touched is not None and touched[start >> PAGE_SHIFT] and (end - 1) >> PAGE_SHIFT == start >> PAGE_SHIFT:
            return  # one page, touched before: nearly always
        if touched is None:
            touched = memory.touched = bytearray((memory.size + PAGE - 1) >> PAGE_SHIFT)
        if overwrites:
            first, last = (start + PAGE - 1) >> PAGE_SHIFT, end >> PAGE_SHIFT
            if first < last:
                touched[first:last] = b"\1" * (last - first)
        last = (end + PAGE - 1) >> PAGE_SHIFT
        page = touched.find(0, start >> PAGE_SHIFT, last)
        while page >= 0:
            stop = touched.find(1, page, last)
            stop = last if stop < 0 else stop
            self._poison(memory.start + page * PAGE, memory.start + stop * PAGE)
            touched[page:stop] = b"\1" * (stop - page)
            page = touched.find(0, stop, last)
        memory.complete = 0 not in touched

    def _poison(self, start: int, end: int) -> None:
        """Write poison into the holes of the file. What native code has put there already stays."""
        while start < end:
            data = self._seek(start, end, os.SEEK_DATA)
            for offset in range(start, data, len(_POISON_CHUNK)):
                os.pwrite(self.file, _POISON_CHUNK[: data - offset], offset)
            start = self._seek(data, end, os.SEEK_HOLE) if data < end else end

    def _seek(self, start: int, end: int, what: int) -> int:
        try:
            return min(end, os.lseek(self.file, start, what))
        except OSError:  # no data up to the end of the file
            return end

    def reset(self, regions: tuple[tuple[int, int], ...]) -> bool:
        """Withdraw the addresses in ``regions`` (start, end) and all memory. False if that failed."""
        good = True
        for start, end in regions:
            if end > start:
                good &= self.calls.mmap(start, end - start, PROT_NONE, WITHDRAW, -1, 0) == start
        if self.top:
            good &= self.calls.fallocate(self.file, PUNCH_HOLE, 0, self.top) == 0
        self.top = 0
        return good

    def __del__(self) -> None:
        # At the end of the interpreter the process gives everything back, and modules may be gone.
        if self.file >= 0 and not sys.is_finalizing():
            self.calls.munmap(self._raw, self._raw_size)
            os.close(self.file)


_idle: Final[list[Backing]] = []


def acquire() -> Backing:
    """A clean backing: one that a closed driver has left, or a new one."""
    with contextlib.suppress(IndexError):
        return _idle.pop()
    return Backing()


def give_back(backing: Backing, regions: tuple[tuple[int, int], ...]) -> None:
    """Clean ``backing`` and keep it for the next driver; a backing that cannot be cleaned is dropped."""
    if backing.reset(regions) and len(_idle) < _IDLE_LIMIT:
        _idle.append(backing)


if hasattr(os, "register_at_fork"):
    # A child that took an idle backing would share its bytes with a parent that took the same one.
    os.register_at_fork(after_in_child=_idle.clear)


class Addresses:
    """Free addresses between ``start`` and ``end``; addresses come back in a fixed order.

    A freed range is the first to be given out again for a request of its size (last freed, first used).
    Otherwise the lowest place that fits is taken. Freed ranges are merged with their neighbours only
    when no freed range of the size asked for is at hand, so the common cycle is cheap.
    """

    __slots__ = ("_ends", "_parked", "_starts", "high", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.high = start
        self._starts = [start]
        self._ends = [end]
        self._parked: dict[int, list[int]] = {}

    def take(self, size: int, alignment: int) -> int | None:
        """``size`` free bytes at a multiple of ``alignment``, or None where there are none."""
        parked = self._parked.get(size)
        if parked and not parked[-1] % alignment:
            return parked.pop()
        self._merge_parked()
        for index, start in enumerate(self._starts):
            address = -(-start // alignment) * alignment
            if address + size <= self._ends[index]:
                self._cut(index, address, size)
                return address
        return None

    def take_at(self, address: int, size: int) -> bool:
        """Take exactly this range. False if any of it is in use or out of bounds."""
        self._merge_parked()
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address + size > self._ends[index]:
            return False
        self._cut(index, address, size)
        return True

    def give(self, address: int, size: int) -> None:
        """The range is free again."""
        parked = self._parked.get(size)
        if parked is None:
            self._parked[size] = [address]
        else:
            parked.append(address)

    def _cut(self, index: int, address: int, size: int) -> None:
        start, end = self._starts[index], self._ends[index]
        rest = [(a, b) for a, b in ((start, address), (address + size, end)) if a < b]
        self._starts[index : index + 1] = [a for a, _ in rest]
        self._ends[index : index + 1] = [b for _, b in rest]
        self.high = max(self.high, address + size)

    def _merge_parked(self) -> None:
        for size, addresses in self._parked.items():
            for address in addresses:
                self._merge(address, address + size)
        self._parked.clear()

    def _merge(self, start: int, end: int) -> None:
        index = bisect_left(self._starts, start)
        first = last = index
        if index and self._ends[index - 1] == start:
            first, start = index - 1, self._starts[index - 1]
        if index < len(self._starts) and self._starts[index] == end:
            last, end = index + 1, self._ends[index]
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
