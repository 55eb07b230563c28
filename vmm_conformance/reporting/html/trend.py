"""Several reports of one subject: a line per invariant over nights or versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vmm_conformance.reporting.html.columns import SIGNS, plain
from vmm_conformance.reporting.html.documents import Document

Night = tuple[Document, dict[str, Any]]
_BROKEN = ("fail", "crash", "timeout", "unknown")


def trends(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """For each subject and driver with several reports: its nights, and its invariants over them."""
    grouped: dict[tuple[str, str], list[Night]] = {}
    for document in documents:
        for section in document.data["subjects"]:
            key = (section["subject"]["spec"], document.data["driver"]["name"])
            grouped.setdefault(key, []).append((document, section))
    return [_trend(nights) for nights in grouped.values() if len(nights) > 1]


def _trend(nights: Sequence[Night]) -> dict[str, Any]:
    lines = _lines(nights)
    broken = [line for line in lines if line["first"]]
    shifted = [line for line in lines if not line["first"] and len({cell["verdict"] for cell in line["cells"]}) > 1]
    document, section = nights[-1]
    return {
        "name": section["subject"]["name"],
        "driver": document.data["driver"]["name"],
        "nights": [_night(night) for night in nights],
        "broken": sorted(broken, key=lambda line: int(line["at"])),
        "shifted": shifted,
        "steady": len(lines) - len(broken) - len(shifted),
        "first": _first(lines, nights),
    }


def _night(night: Night) -> dict[str, str]:
    document, section = night
    return {
        "label": document.label,
        "version": section["subject"]["version"],
        "overall": section["footer"]["overall"],
        "word": plain(section["footer"]["overall"]),
        "catalogue": document.data["catalogue"],
    }


def _lines(nights: Sequence[Night]) -> list[dict[str, Any]]:
    verdicts: dict[str, list[str]] = {}
    for index, (_, section) in enumerate(nights):
        for entry in section["invariants"]:
            verdicts.setdefault(entry["id"], [""] * len(nights))[index] = entry["verdict"]
    return [_line(id, found, nights) for id, found in verdicts.items()]


def _line(id: str, found: list[str], nights: Sequence[Night]) -> dict[str, Any]:
    at = next((index for index, verdict in enumerate(found) if verdict in _BROKEN), None)
    return {
        "id": id,
        "cells": [{"verdict": v, "word": v.replace(" ", "-"), "sign": SIGNS.get(v, "")} for v in found],
        "at": at,
        "first": nights[at][0].label if at is not None else "",
        "still": bool(found) and found[-1] in _BROKEN,
    }


def _first(lines: Iterable[dict[str, Any]], nights: Sequence[Night]) -> str:
    """The first report in which something broke, and what."""
    broken = sorted((line["at"], line["id"]) for line in lines if line["at"] is not None)
    if not broken:
        return ""
    at = broken[0][0]
    ids = [id for where, id in broken if where == at]
    document, section = nights[at]
    version = section["subject"]["version"]
    more = f" and {len(ids) - 6} more" if len(ids) > 6 else ""
    return f"{', '.join(ids[:6])}{more} in {document.label}" + (f" (version {version})" if version else "")
