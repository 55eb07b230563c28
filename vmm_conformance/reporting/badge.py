"""A badge on a report: ``badge.json`` (an endpoint for shields.io) and ``badge.svg``.

It is green only for a complete run in which every documented must holds. A badge never says more than the
report: a partial run is yellow and says so, as one with waivers does, and the count is of the expected invariants.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any, Final

from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.model import Report
from vmm_conformance.reporting.verdicts import OVERALL_SIGNS, Overall, Verdict

LABEL: Final = "vmm conformance"
JSON_FILE, SVG_FILE = "badge.json", "badge.svg"
_COLOURS: Final = {
    "hardened": ("brightgreen", "#2c7a3f"),
    "conformant": ("green", "#2c7a3f"),
    "conformant-with-waivers": ("yellow", "#8a6100"),
    "partial": ("yellow", "#8a6100"),
    "not as waived": ("red", "#b3261e"),
    "not conformant": ("red", "#b3261e"),
}
_BAD: Final = ("not conformant", "not as waived")
_WIDTH: Final = 6.6
"""Pixels of a character, on average."""


def endpoint(data: dict[str, Any]) -> dict[str, Any]:
    """The badge as JSON data, for a report as JSON data."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": message(data),
        "color": _colours(data)[0],
        "isError": _overall(data) in _BAD,
    }


def message(data: dict[str, Any]) -> str:
    """``conformant 230/231``: the verdict, and how many of the expected invariants pass."""
    expected = sum(len(section["footer"]["expected"]) for section in data["subjects"])
    passed = sum(entry["verdict"] == Verdict.PASS for section in data["subjects"] for entry in section["invariants"])
    return f"{_overall(data)} {passed}/{expected}"


def _overall(data: dict[str, Any]) -> str:
    """The verdict; whatever it says, a run that left something out is no more than partial."""
    overall = str(data["overall"])
    complete = data["complete"] and data["subjects"]
    return overall if complete or overall in _BAD else "partial"


def _colours(data: dict[str, Any]) -> tuple[str, str]:
    return _COLOURS[Overall.of(_overall(data)).value]


def svg(data: dict[str, Any]) -> str:
    """The badge as an SVG picture, for a report as JSON data."""
    text = f"{OVERALL_SIGNS[Overall.of(_overall(data)).value]} {message(data)}"
    left, right = (round(len(part) * _WIDTH) + 12 for part in (LABEL, text))
    title = escape(f"{LABEL}: {message(data)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#454b52"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_colours(data)[1]}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{escape(LABEL)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
    )


def write(report: Report, directory: Path) -> None:
    """Write both badges of ``report`` into ``directory``."""
    save(to_json(report), directory / JSON_FILE)
    save(to_json(report), directory / SVG_FILE)


def save(data: dict[str, Any], path: Path) -> None:
    """Write the badge for a report as JSON data: a picture if ``path`` ends in ``.svg``, else the endpoint."""
    text = svg(data) if path.suffix == ".svg" else json.dumps(endpoint(data), indent=2) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
