"""Stream lanes as shapes: the host and the streams side by side, work and waits where they happened."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from vmm_conformance.reporting.html.layout import GUTTER, ROW, Layout

HOST, STREAM = 178, 112
"""Widths of lanes, in pixels."""
_APART: Final = 30
"""Room between a host's line and the first stream's, for the edges between them."""
_CHARACTER: Final = 5.9
Shape = dict[str, Any]


class Across:
    """The lanes' horizontal places."""

    def __init__(self, lanes: list[dict[str, Any]]) -> None:
        self.lefts: list[int] = []
        self.widths: list[int] = []
        self._streams = [bool(lane.get("stream")) for lane in lanes]
        at = GUTTER
        for lane in lanes:
            self.lefts.append(at)
            self.widths.append(STREAM if lane.get("stream") else HOST)
            at += self.widths[-1]
        self.width = at + 4

    def line(self, lane: int) -> int:
        """Where a lane's line runs: a stream's at its left, a host's at its right, where arrows miss its texts."""
        return self.lefts[lane] + (9 if self._streams[lane] else self.widths[lane] - _APART)

    def texts(self, lane: int) -> dict[str, Any]:
        """Where texts beside the line begin, or end."""
        stream = self._streams[lane]
        return {"tx": self.line(lane) + (9 if stream else -9), "anchor": "" if stream else "end"}

    def fits(self, lane: int) -> int:
        """Characters that fit beside a lane's line."""
        beside = 22 if self._streams[lane] else _APART + 12
        return int((self.widths[lane] - beside) / _CHARACTER)


def lanes(layout: Layout) -> dict[str, Any] | None:
    """The drawing; None if no stream was ever given anything."""
    picture = layout.picture
    if len(picture["lanes"]) < 2:
        return None
    across = Across(picture["lanes"])
    return {
        "width": across.width,
        "height": layout.height,
        "bands": layout.bands(),
        "flags": layout.flags(),
        "heads": layout.heads(),
        "lanes": [_lane(index, lane, across) for index, lane in enumerate(picture["lanes"])],
        "queues": _queues(layout, across),
        "boxes": _boxes(layout, across),
        "ran": _ran(layout, across),
        "marks": [_mark(mark, layout, across) for mark in picture["marks"]],
        "edges": [_edge(edge, layout, across) for edge in picture["edges"]],
    }


def _lane(index: int, lane: dict[str, Any], across: Across) -> Shape:
    name = lane["name"] + (f" dev {lane['device']}" if lane.get("device") else "")
    x, anchor = across.line(index), across.texts(index)["anchor"]
    return {"name": name, "x": x, "head": x + (6 if anchor else -6), "anchor": anchor}


def _queues(layout: Layout, across: Across) -> list[Shape]:
    """Where a lane has work that is queued and has not run: strips along its line."""
    strips: list[Shape] = []
    works = sorted(layout.picture["works"], key=lambda work: (work["lane"], work["row"]))
    for lane, group in groupby(works, key=lambda work: int(work["lane"])):
        for work in group:
            top, bottom = layout.middle(work["row"]), layout.middle(work.get("ran"))
            last = strips[-1] if strips and strips[-1]["lane"] == lane else None
            if last is not None and top <= last["y"] + last["height"]:
                last["height"] = max(last["height"], bottom - last["y"])
            else:
                strips.append({"lane": lane, "x": across.line(lane), "y": top, "height": bottom - top})
    return strips


def _boxes(layout: Layout, across: Across) -> list[Shape]:
    """A box for what one row gives to one lane."""
    made = []
    order = sorted(layout.picture["works"], key=lambda work: (work["row"], work["lane"]))
    for (row, lane), group in groupby(order, key=lambda work: (int(work["row"]), int(work["lane"]))):
        works = list(group)
        told = [f"{work['kind']} {work['work']}" for work in works]
        text = told[0] if len(told) == 1 else f"{len(told)} works"
        about = layout.rows[row]
        made.append({
            "x": across.line(lane) + 8, "y": layout.top(row) + 2, "width": across.widths[lane] - 22, "height": ROW - 4,
            "from": across.line(0) + 4, "own": works[0].get("who") == "subject",
            "flag": "bad" if about.get("bad") else "cause" if about.get("cause") else "",
            "text": clipped(text, across.fits(lane)), "title": f"{', '.join(told)} ({works[0].get('who', '')})",
        })  # fmt: skip
    return made


def _ran(layout: Layout, across: Across) -> list[Shape]:
    """A sign where work of a lane ran, and another where it met a fault."""
    made = []
    over = [work for work in layout.picture["works"] if work.get("ran") is not None]
    over.sort(key=lambda work: (work["ran"], work["lane"]))
    for (row, lane), group in groupby(over, key=lambda work: (int(work["ran"]), int(work["lane"]))):
        works = list(group)
        faults = [work for work in works if work.get("fault")]
        names = ", ".join(str(work["work"]) for work in works)
        text = f"{faults[0]['work']}: {faults[0]['fault']}" if faults else f"{names} ran"
        made.append({
            "x": across.line(lane), "y": layout.middle(row), "fault": bool(faults),
            "text": clipped(text, across.fits(lane)),
            "title": f"work {names} ran" + "".join(f"; {work['work']} met a fault: {work['fault']}" for work in faults),
            **across.texts(lane),
        })  # fmt: skip
    return made


def _mark(mark: dict[str, Any], layout: Layout, across: Across) -> Shape:
    lane, row = mark["lane"], mark["row"]
    return {
        "kind": mark["kind"], "x": across.line(lane), "y": layout.middle(row),
        "refused": "refused" in mark["text"],
        "text": clipped(mark["text"], across.fits(lane)), "title": mark["text"], **across.texts(lane),
    }  # fmt: skip


def _edge(edge: dict[str, Any], layout: Layout, across: Across) -> Shape:
    (lane, row), (other, behind) = edge["start"], edge["end"]
    start, end = across.line(lane), across.line(other)
    top, bottom = layout.middle(row), layout.middle(behind)
    at_host = other == 0 and lane != 0  # in the row of the host's call, beside the first stream, where no work is
    return {
        "kind": edge["kind"], "x1": start, "y1": top, "x2": end, "y2": bottom,
        "tx": across.line(1) + 9 if at_host else (start + end) // 2 - 20,
        "ty": bottom + 4 if at_host else (top + bottom) // 2 - 3,
        "title": _edge_title(edge, layout.picture["lanes"]),
    }  # fmt: skip


def _edge_title(edge: dict[str, Any], named: list[dict[str, Any]]) -> str:
    start, end = named[edge["start"][0]]["name"], named[edge["end"][0]]["name"]
    if edge["kind"] == "missing":
        return f"missing: nothing orders this work on {start} before what {end} does here"
    return f"{end} is behind {start}" + (f" by {edge['text']}" if edge.get("text") else "")


def clipped(text: str, characters: int) -> str:
    """``text``, cut to fit."""
    return text if len(text) <= characters else text[: max(characters - 1, 1)] + "…"
