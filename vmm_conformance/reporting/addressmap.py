"""Draws address ranges in characters: sizes to scale, gaps broken, addresses relative.

Absolute addresses differ from run to run, so none is shown: ranges that lie close together form a region
``A``, ``B``, ... in the order of their addresses, and an address is its distance from its region's start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from vmm_conformance.reporting.text import clip, size

BREAK: Final = "//"
_LEAST_BAR: Final = 16
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{5,16}\b")


class Row(NamedTuple):
    """One range of the map; ``marked`` is the offending one."""

    address: int
    size: int
    label: str
    marked: bool

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.size


Span = tuple[int, int]
"""Start and end of ranges without a wide gap between them."""


class Symbols:
    """Names for addresses: the regions of a map and the distances from their starts."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._spans = _spans(rows)

    def place(self, address: int) -> tuple[str, int]:
        """The region of an address in it or just behind it, and the distance from its start.

        Raises ``KeyError`` for an address in no region.
        """
        for index, (start, end) in enumerate(self._spans):
            if start <= address <= end:
                return _letter(index), address - start
        raise KeyError(f"{address:#x} is in no region of the map")

    def knows(self, address: int) -> bool:
        """Whether an address is in a region or just behind one."""
        return any(start <= address <= end for start, end in self._spans)

    def regions(self) -> list[tuple[str, int]]:
        """The regions' names and sizes in bytes, by address."""
        return [(_letter(index), end - start) for index, (start, end) in enumerate(self._spans)]

    def name(self, address: int) -> str:
        """``A+0x1000``, or the bare address if it is in no region."""
        try:
            region, offset = self.place(address)
        except KeyError:
            return f"{address:#x}"
        return f"{region}+{offset:#x}"

    def put_into(self, text: str) -> str:
        """``text`` with every address that has a name replaced by it."""
        return _ADDRESS.sub(lambda found: self.name(int(found[0], 16)), text)


class Region(NamedTuple):
    """A span and the number of columns it is drawn in."""

    start: int
    end: int
    columns: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Where an address is drawn: ``unit`` bytes a column."""

    unit: int
    regions: tuple[Region, ...]

    def bar(self, row: Row) -> str:
        """The row's range among empty columns."""
        region = next(region for region in reversed(self.regions) if region.start <= row.address)
        first = min((row.address - region.start) // self.unit, region.columns - 1)
        behind = -((region.start - row.end) // self.unit)  # rounded up
        length = max(min(behind, region.columns) - first, 1)
        own = "." * first + ("#" if row.marked else "=") * length
        return BREAK.join(own.ljust(r.columns, ".") if r is region else "." * r.columns for r in self.regions)


def sorted_rows(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows as they are stored (address, size, label, marked), in the order of the map."""
    made = (Row(r["address"], r["size"], str(r["label"]), bool(r.get("marked"))) for r in rows)
    return sorted(made, key=lambda row: (row.address, -row.size, row.label))


def draw(rows: Sequence[Row], width: int = 80, limit: int = 10) -> list[str]:
    """The picture of ``rows`` (in the order of `sorted_rows`), a heading first; empty for no rows.

    Of more than ``limit`` rows those around the marked ones are shown.
    """
    if not rows:
        return []
    shown = _around_marked(rows, limit)
    left = _addresses(shown, Symbols(rows))
    free = width - len(left[0]) - 6
    spans = _spans(shown)
    least = max(_LEAST_BAR, len(spans) + len(BREAK) * (len(spans) - 1))
    label = min(max(len(row.label) for row in shown), free - least)
    scale = _scale(spans, free - label)
    lines = [f"(one column is {size(scale.unit)}, {BREAK} a gap)"]
    for row, text in zip(shown, left, strict=True):
        sign = ">" if row.marked else " "
        lines.append(f"{sign} {text}  {scale.bar(row)}  {clip(row.label, label)}".rstrip())
    if len(shown) < len(rows):
        lines.append(f"  ({len(rows) - len(shown)} more ranges elsewhere)")
    return lines


def _around_marked(rows: Sequence[Row], limit: int) -> Sequence[Row]:
    if len(rows) <= limit:
        return rows
    marked = [index for index, row in enumerate(rows) if row.marked] or [0]
    nearest = sorted(range(len(rows)), key=lambda i: (min(abs(i - m) for m in marked), i))
    return [rows[index] for index in sorted(nearest[:limit])]


def _addresses(rows: Sequence[Row], symbols: Symbols) -> list[str]:
    """Each row's address and size, aligned."""
    texts = [(symbols.name(row.address), size(row.size)) for row in rows]
    wide, high = (max(len(text[i]) for text in texts) for i in (0, 1))
    return [f"{address:<{wide}}  {amount:>{high}}" for address, amount in texts]


def _spans(rows: Sequence[Row]) -> list[Span]:
    """The stretches of addresses without a wide gap; wide is an eighth of all that is covered."""
    covered: list[Span] = []
    for row in rows:
        if covered and row.address <= covered[-1][1]:
            covered[-1] = (covered[-1][0], max(covered[-1][1], row.end))
        else:
            covered.append((row.address, row.end))
    wide = max(sum(end - start for start, end in covered) // 8, 1)
    spans = covered[:1]
    for start, end in covered[1:]:
        if start - spans[-1][1] <= wide:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _scale(spans: Sequence[Span], columns: int) -> Scale:
    free = columns - len(BREAK) * (len(spans) - 1)
    unit = 1
    while sum(_columns(span, unit) for span in spans) > max(free, len(spans)):
        unit *= 2
    return Scale(unit, tuple(Region(*span, _columns(span, unit)) for span in spans))


def _columns(span: Span, unit: int) -> int:
    return max(-((span[0] - span[1]) // unit), 1)


def _letter(index: int) -> str:
    letter = chr(ord("A") + index % 26)
    return letter if index < 26 else f"{letter}{index // 26}"
