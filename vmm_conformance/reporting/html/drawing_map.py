"""The address map over time as shapes: addresses go to the right, sizes to scale, wide gaps broken."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.reporting.html.layout import GUTTER, ROW, Layout
from vmm_conformance.reporting.text import size

GAP: Final = 16
"""Width of a broken gap, in pixels."""
NARROWEST, WIDEST, LEAST_REGION = 300, 520, 14
LETTER, LINE = 6, 6
"""Pixels that a letter takes, and the narrowest box that a label is written down along."""
_COLOURS: Final = 6
_NAMES: Final = {"reservation": "reserved", "mapping": "mapped", "allocation": "allocated", "use": "in use"}


class Scale:
    """From a region and an offset to the right place."""

    def __init__(self, regions: list[dict[str, Any]], width: int) -> None:
        free = width - GUTTER - GAP * max(len(regions) - 1, 0) - 8
        total = sum(max(region["size"], 1) for region in regions) or 1
        spare = max(free - LEAST_REGION * len(regions), len(regions))
        self.places: dict[str, tuple[float, float, int]] = {}
        at = float(GUTTER)
        for region in regions:
            wide = LEAST_REGION + spare * max(region["size"], 1) / total
            self.places[region["name"]] = (at, wide, max(region["size"], 1))
            at += wide + GAP

    def x(self, region: str, offset: int) -> float:
        """Pixels from the left."""
        start, wide, of = self.places[region]
        return start + wide * min(offset, of) / of

    def span(self, thing: dict[str, Any], least: float) -> tuple[float, float]:
        """Left edge and width of a range, no narrower than ``least``."""
        left = self.x(thing["region"], thing["offset"])
        right = self.x(thing["region"], thing["offset"] + thing["size"])
        start, wide, _ = self.places[thing["region"]]
        width = max(right - left, least)
        return round(max(min(left, start + wide - width), start), 1), round(width, 1)


def address_map(layout: Layout) -> dict[str, Any] | None:
    """The drawing: width, height, heads, bands, shapes; None if there was no range at all."""
    picture = layout.picture
    regions = picture["regions"]
    if not regions:
        return None
    width = min(max(NARROWEST, 46 * len(picture["ranges"]) // 3 + GAP * len(regions)), WIDEST)
    scale = Scale(regions, width)
    marked = picture["marked"]
    return {
        "width": width,
        "height": layout.height,
        "bands": layout.bands(),
        "flags": layout.flags(),
        "heads": layout.heads(),
        "regions": [_region(region, scale) for region in regions],
        "gaps": [round(start - GAP / 2, 1) for start, _, _ in list(scale.places.values())[1:]],
        "shapes": [_shape(life, layout, scale) for life in sorted(picture["ranges"], key=_depth)],
        "marked": _mark(marked, layout, scale) if marked else None,
    }


def _depth(life: dict[str, Any]) -> int:
    return list(_NAMES).index(life["kind"])


def _region(region: dict[str, Any], scale: Scale) -> dict[str, Any]:
    start, wide, _ = scale.places[region["name"]]
    return {"name": region["name"], "size": size(region["size"]), "x": round(start, 1), "width": round(wide, 1)}


def _shape(life: dict[str, Any], layout: Layout, scale: Scale) -> dict[str, Any]:
    kind = life["kind"]
    x, width = scale.span(life, 4 if kind == "use" else 6)
    top, bottom = layout.middle(life["start"]), layout.middle(life.get("end"))
    label = _label(life)
    across = width > LETTER * len(label) and bottom - top >= ROW - 4
    down = not across and width >= LINE and bottom - top > LETTER * len(label) + 8
    return {
        "kind": kind,
        "own": life.get("who") == "subject",
        "colour": (life.get("memory", 0) - 1) % _COLOURS if life.get("memory") else None,
        "x": x,
        "y": top,
        "width": width,
        "height": max(bottom - top, 5),
        "label": label if across or down else "",
        "down": down,
        "title": _title(life),
    }


def _label(life: dict[str, Any]) -> str:
    if life["kind"] == "mapping":
        return f"m{life.get('memory', 0)} {life.get('rights', '')}".strip()
    return "alloc" if life["kind"] == "allocation" else ""


def _title(life: dict[str, Any]) -> str:
    what = _NAMES[life["kind"]]
    if life["kind"] == "mapping":
        what += f": memory {life.get('memory', 0)}, {life.get('rights', '')}"
    if life["kind"] == "use":
        what = f"{life.get('note', '')} {life.get('work', 0)}"
    return f"{life['region']}+{life['offset']:#x}, {size(life['size'])}: {what} ({life.get('who', '')})"


def _mark(marked: dict[str, Any], layout: Layout, scale: Scale) -> dict[str, Any]:
    x, width = scale.span(marked, 8)
    row = marked["row"]
    top = layout.top(row) if row is not None else layout.height - ROW
    return {
        "x": x, "y": top, "width": width, "height": ROW,
        "title": f"the offending range: {marked['region']}+{marked['offset']:#x}, {size(marked['size'])}",
    }  # fmt: skip
