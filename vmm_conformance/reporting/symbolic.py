"""Failures without absolute addresses, which differ from run to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vmm_conformance.reporting.addressmap import Symbols, sorted_rows
from vmm_conformance.running.results import Failure


def symbolic(failure: Failure) -> Failure:
    """``failure`` with the addresses in its texts as its map names them."""
    put = Symbols(sorted_rows(failure.map)).put_into
    return replace(
        failure,
        message=put(failure.message),
        expected=put(failure.expected),
        actual=put(failure.actual),
        outcomes=[put(outcome) for outcome in failure.outcomes],
    )


def symbolic_map(failure: Failure) -> list[dict[str, Any]]:
    """The rows of its map, each with its region and its distance from the region's start, in bytes."""
    rows = sorted_rows(failure.map)
    symbols = Symbols(rows)
    placed = [(symbols.place(row.address), row) for row in rows]
    return [
        {"region": region, "offset": offset, "size": row.size, "label": row.label, "marked": row.marked}
        for (region, offset), row in placed
    ]
