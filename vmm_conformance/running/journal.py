"""Where a program is, written before each operation where it outlives the process that runs it.

Runners call `began`. Outside process isolation there is no journal: it is only kept in mind for `now`.
"""

from __future__ import annotations

import mmap
import struct
from typing import Final

_ENTRY: Final = struct.Struct("=qq")
SIZE: Final = _ENTRY.size
"""Bytes of a journal."""
OUTSIDE: Final = -1
"""The operation before the first."""


class Journal:
    """The last entry: how many there were, and the operation that began with it. Shared memory behind ``file``."""

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, SIZE)
        self._count = 0

    def write(self, op: int) -> None:
        """Operation ``op`` begins."""
        self._count += 1
        _ENTRY.pack_into(self._memory, 0, self._count, op)

    def read(self) -> tuple[int, int]:
        """How many entries there were, and the last one's operation."""
        count, op = _ENTRY.unpack_from(self._memory, 0)
        return count, op

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


_open: Journal | None = None
_now = OUTSIDE


def keep(journal: Journal) -> None:
    """Let every runner of this process write into ``journal``."""
    global _open
    _open = journal


def began(op: int) -> None:
    """Operation ``op`` of the running program begins."""
    global _now
    _now = op
    if _open is not None:
        _open.write(op)


def now() -> int:
    """The operation that began last."""
    return _now
