"""Waivers and what became of them, for the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.waivers.listed import Waivers, waivers_of
from vmm_conformance.waivers.settle import State, unmatched
from vmm_conformance.waivers.waiver import Waiver

_SIGNS: Final = {State.IN_FORCE: ("⚑", "waived"), State.OPEN: ("○", "not-exercised")}
"""A sign and a style for what does not fail a run."""
_BAD: Final = ("✗", "fail")


def waived(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """For each report with waivers: its label, the day, and a row for each waiver and subject."""
    return [
        {"label": document.label, "today": waivers.today, "rows": list(_all_rows(waivers, document))}
        for document in documents
        if (waivers := waivers_of(document.data)) is not None
    ]


def _all_rows(waivers: Waivers, document: Document) -> Iterator[dict[str, Any]]:
    for waiver, data in zip(waivers.entries, document.data["waivers"]["entries"], strict=True):
        yield from _rows(waiver, data)


def _rows(waiver: Waiver, data: dict[str, Any]) -> list[dict[str, Any]]:
    shown = {"waiver": waiver, "scope": waiver.scope()}
    rows = []
    for each in data["settled"]:
        sign, style = _SIGNS.get(State(each["state"]), _BAD)
        rows.append({**shown, "sign": sign, "style": style, **each})
    stray = {**shown, "sign": _BAD[0], "style": _BAD[1], "state": "matches nothing", "subject": ""}
    return rows or [{**stray, "sentence": unmatched(waiver)}]
