"""Articles on what is broken, consequences folded under their root."""

from __future__ import annotations

from typing import Any

from vmm_conformance.reporting.html.columns import Column
from vmm_conformance.reporting.html.drawing_lanes import lanes
from vmm_conformance.reporting.html.drawing_map import address_map
from vmm_conformance.reporting.html.layout import Layout
from vmm_conformance.reporting.screen import replay_command
from vmm_conformance.reporting.text import count, pairs

Article = dict[str, Any]


def articles(column: Column) -> list[Article]:
    """The broken invariants of a column, roots only; each has its consequences, articles too, in ``folded``.

    An invariant is a consequence if another one breaks in its own shortest program, and that one has a
    program at least as short.
    """
    broken = [entry for entry in column.entries.values() if entry["failures"]]
    broken.sort(key=_order)
    roots: list[Article] = []
    for entry in broken:
        with_it = entry["failures"][0]["consequences"]
        root = next((root for root in roots if root["id"] in with_it), None)
        made = _article(entry, column)
        (roots if root is None else root["folded"]).append(made)
    return roots


def _order(entry: dict[str, Any]) -> tuple[int, int, str, int]:
    first = entry["failures"][0]
    area, _, number = entry["id"].rpartition("-")
    return len(first["program"]["operations"]), first["op"], area, int(number)


def _article(entry: dict[str, Any], column: Column) -> Article:
    failure = entry["failures"][0]
    program, spec = failure["program"], column.section["subject"]["spec"]
    picture = failure["picture"]
    layout = Layout(picture, len(program["operations"])) if picture else None
    return {
        "entry": entry,
        "id": entry["id"],
        "column": column.index,
        "anchor": f"f{column.index}-{entry['id']}",
        "failure": failure,
        "operations": _operations(failure),
        "length": count(len(program["operations"]), "operation"),
        "configuration": pairs(program.get("configuration") or {}) or "default",
        "replay": replay_command(str(entry["program"] or "PROGRAM.json"), spec, column.driver),
        "map": address_map(layout) if layout else None,
        "lanes": lanes(layout) if layout else None,
        "rows": layout.told() if layout else [],
        "cut": picture["cut"] if picture else 0,
        "found": _found(failure),
        "again": len(entry["failures"]) - 1,
        "folded": [],
    }


def _found(failure: dict[str, Any]) -> str:
    item = failure.get("item", "").partition("[")[0]
    return f"by program {max(failure['programs_before'], 1)}" + (f" of {item}" if item else "")


def _operations(failure: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [_operation(n, each, failure) for n, each in enumerate(failure["program"]["operations"])]
    end = failure["op"] >= len(rows)
    drawn = failure["picture"] and any(row["op"] >= len(rows) for row in failure["picture"]["rows"])
    if end or drawn or len(failure["outcomes"]) > len(rows):
        rows.append({"op": len(rows), "name": "(end of the program)", "given": "", "returned": "", "bad": end})
    return rows


def _operation(number: int, operation: Any, failure: dict[str, Any]) -> dict[str, Any]:
    data = operation if isinstance(operation, dict) else {"op": str(operation)}
    outcomes = failure["outcomes"]
    return {
        "op": number,
        "name": str(data.get("op", "?")),
        "given": pairs(data, skip=("op",)),
        "returned": outcomes[number] if number < len(outcomes) else "not run",
        "bad": number == failure["op"],
    }
