"""Cuts a long picture down to the rows around what is wrong."""

from __future__ import annotations

from typing import Any, Final

ROWS: Final = 400
"""Rows that are kept of a long picture."""
BEHIND: Final = 100
"""How many of them lie behind the finding."""


def window(picture: dict[str, Any], rows: int = ROWS, behind: int = BEHIND) -> dict[str, Any]:
    """``picture`` with no more than ``rows`` rows; ``cut`` says how many are left out."""
    total = len(picture["rows"])
    if total <= rows:
        return picture
    bad = next((index for index, row in enumerate(picture["rows"]) if row["bad"]), total - 1)
    first = max(0, min(bad + behind, total) - rows)
    return _between(picture, first, first + rows)


def _between(picture: dict[str, Any], first: int, last: int) -> dict[str, Any]:
    def inside(row: int) -> bool:
        return first <= row < last

    def end(row: int | None) -> int | None:
        return row - first if row is not None and row < last else None

    ranges = [life for life in picture["ranges"] if life["start"] < last and (life["end"] or last) >= first]
    works = [work for work in picture["works"] if inside(work["row"])]
    edges = [edge for edge in picture["edges"] if inside(edge["start"][1]) and inside(edge["end"][1])]
    marked = picture["marked"]
    return {
        **picture,
        "rows": picture["rows"][first:last],
        "ranges": [{**life, "start": max(life["start"] - first, 0), "end": end(life["end"])} for life in ranges],
        "works": [{**work, "row": work["row"] - first, "ran": end(work["ran"])} for work in works],
        "marks": [{**mark, "row": mark["row"] - first} for mark in picture["marks"] if inside(mark["row"])],
        "edges": [{**edge, "start": _up(edge["start"], first), "end": _up(edge["end"], first)} for edge in edges],
        "marked": marked and {**marked, "row": end(marked["row"])},
        "cut": len(picture["rows"]) - (last - first),
    }


def _up(place: tuple[int, int], rows: int) -> tuple[int, int]:
    return place[0], place[1] - rows
