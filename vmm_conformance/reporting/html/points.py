"""Failure points, for the page: how many were covered, of how many that were reached."""

from __future__ import annotations

from typing import Any

from vmm_conformance.reporting.html.columns import Column
from vmm_conformance.running.results import Coverage


def points_of(column: Column) -> list[tuple[str, Coverage]]:
    """Of each contract of a column the sum, and behind it its items, where it has several."""
    rows: list[tuple[str, Coverage]] = []
    items = [item for item in column.section["items"] if item.get("points")]
    for contract in dict.fromkeys(item["contract"] for item in items):
        own = [(str(item["id"]), _coverage(item)) for item in items if item["contract"] == contract]
        rows.append((str(contract), sum((points for _, points in own), Coverage())))
        rows += own if len(own) > 1 else []
    return rows


def _coverage(item: dict[str, Any]) -> Coverage:
    return Coverage(**item["points"])
