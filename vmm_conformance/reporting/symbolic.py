"""Failures without absolute addresses, which differ from run to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vmm_conformance.reporting.addressmap import Row, Symbols, sorted_rows
from vmm_conformance.running.results import Failure


def symbolic(failure: Failure) -> Failure:
    """``failure`` with the addresses in its texts as its map and picture name them."""
    put = symbols_of(failure).put_into
    return replace(
        failure,
        message=put(failure.message),
        expected=put(failure.expected),
        actual=put(failure.actual),
        outcomes=[put(outcome) for outcome in failure.outcomes],
    )


def symbols_of(failure: Failure) -> Symbols:
    """The names of addresses in all that is shown of ``failure``: the same in texts, map and picture."""
    rows = sorted_rows(failure.map)
    if failure.picture:
        rows += [Row(life["address"], life["size"], "", False) for life in failure.picture["ranges"]]
        rows.sort()
    return Symbols(rows)


def symbolic_map(failure: Failure) -> list[dict[str, Any]]:
    """The rows of its map, each with its region and its distance from the region's start, in bytes."""
    symbols = symbols_of(failure)
    placed = [(symbols.place(row.address), row) for row in sorted_rows(failure.map)]
    return [
        {"region": region, "offset": offset, "size": row.size, "label": row.label, "marked": row.marked}
        for (region, offset), row in placed
    ]


def symbolic_picture(failure: Failure) -> dict[str, Any] | None:
    """Its picture with regions and distances for addresses; what is zero, false or empty is left out."""
    picture = failure.picture
    if picture is None:
        return None
    symbols = symbols_of(failure)
    made: dict[str, Any] = {"regions": [{"name": name, "size": size} for name, size in symbols.regions()]}
    made["rows"] = [
        _short({**row, "calls": [symbols.put_into(call) for call in row["calls"]]}, {"op"}) for row in picture["rows"]
    ]
    made["ranges"] = [_short(_placed(life, symbols), {"offset", "size", "start"}) for life in picture["ranges"]]
    made["lanes"] = [_short(lane, ()) for lane in picture["lanes"]]
    for name in ("works", "marks", "edges"):
        made[name] = [_short(thing, {"lane", "row", "start", "end"}) for thing in picture[name]]
    marked = picture["marked"]
    made["marked"] = _placed(marked, symbols) if marked and symbols.knows(marked["address"]) else None
    made["cut"] = picture["cut"]
    return made


def _placed(life: Mapping[str, Any], symbols: Symbols) -> dict[str, Any]:
    region, offset = symbols.place(life["address"])
    return {"region": region, "offset": offset, **{key: value for key, value in life.items() if key != "address"}}


def _short(thing: Mapping[str, Any], keep: Any) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in thing.items()
        if value or (key in keep and value is not None)
    }
