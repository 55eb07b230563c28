"""What the benchmarks share: the command line, tables, buffers, and a note on how busy the machine is."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vmm_conformance.contracts import Access, Buffer, Driver

Result = dict[str, Any]


def command(
    about: str,
    measure: Callable[[argparse.Namespace], Result],
    lines: Callable[[Result], Iterable[str]],
    *,
    arguments: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> None:
    """The command line of a benchmark: ``measure`` and print ``lines``, or with ``--json`` the result."""
    parser = argparse.ArgumentParser(description=about.strip().splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments(parser)
    parsed = parser.parse_args()
    load = os.getloadavg()[0]
    result = measure(parsed)
    result["load_before"] = round(load, 2)
    print(json.dumps(result) if parsed.json else "\n".join([*lines(result), f"(load before: {load:.1f})"]))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Aligned columns, the first to the left, the others to the right."""
    cells = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


clock = time.thread_time
"""Seconds of this thread's own processor time, the system's work for it included: other processes do not count."""


def seconds(body: Callable[[], object]) -> float:
    """How much processor time one call of ``body`` takes."""
    start = clock()
    body()
    return clock() - start


class Buffers:
    """Makes callers' buffers: memory of their own, mapped at addresses of their own, with rights."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._granule = driver.granularity().recommended
        self._made = 0

    def make(self, size: int) -> Buffer:
        """A fresh buffer of ``size`` bytes."""
        driver = self._driver
        committed = -(-size // self._granule) * self._granule
        address = driver.reserve(committed)
        handle = driver.create(committed)
        driver.map(address, committed, handle)
        driver.set_access(address, committed, {0: Access.READ_WRITE})
        self._made += 1
        return Buffer(address, size, committed, handle, self._made)


class Counted:
    """A driver that counts the calls made to it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if not callable(found):
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            return found(*args, **kwargs)

        return counted
