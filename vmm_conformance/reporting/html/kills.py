"""The kill matrix: which invariant catches which known-bad variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from vmm_conformance.reporting.html.documents import Document

Kill = dict[str, Any]


def kill_pages(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """One page per kill matrix."""
    return [_page(document) for document in documents if document.kills]


def _page(document: Document) -> dict[str, Any]:
    data = document.data
    notes = data.get("notes", {})
    mutants = [_mutant(list(group), notes) for _, group in groupby(_sorted(data["kills"]), key=_mutant_key)]
    by_contract = [(name, list(group)) for name, group in groupby(mutants, key=lambda mutant: str(mutant["contract"]))]
    return {
        "label": document.label,
        "killed": data["killed"],
        "of": data["of"],
        "left_out": data.get("planned", data["of"]) - data["of"],
        "explored": data["explored"],
        "word": _word(data),
        "seeds": sorted({kill["seed"] for kill in data["kills"]}),
        "survivors": [mutant for mutant in mutants if not mutant["killed"]],
        "groups": [_group(name, own, data.get("statements", {})) for name, own in by_contract],
    }


def _word(data: dict[str, Any]) -> str:
    """The verdict that the banner looks like."""
    if data["full"]:
        return "conformant"
    return "partial" if data["killed"] == data["of"] < data.get("planned", data["of"]) else "not-conformant"


def _sorted(kills: Iterable[Kill]) -> list[Kill]:
    return sorted(kills, key=lambda kill: (*_mutant_key(kill), kill["seed"]))


def _mutant_key(kill: Kill) -> tuple[str, str]:
    return kill["contract"], kill["mutant"]


def _mutant(kills: Sequence[Kill], notes: dict[str, str]) -> dict[str, Any]:
    """One known-bad variant over its seeds."""
    caught = [kill for kill in kills if kill["killed"]]
    best = min(caught, key=lambda kill: kill["operations"], default=kills[0])
    return {
        "name": kills[0]["mutant"],
        "note": notes.get(kills[0]["mutant"], ""),
        "contract": kills[0]["contract"],
        "breaks": kills[0]["breaks"],
        "killed": len(caught) == len(kills),
        "times": f"{len(caught)} of {len(kills)}",
        "explored": all(kill["explored"] for kill in kills),
        "found": {id for kill in caught for id in kill["found"]},
        "best": best,
    }


def _group(contract: str, mutants: Sequence[dict[str, Any]], statements: dict[str, str]) -> dict[str, Any]:
    ids = sorted({mutant["breaks"] for mutant in mutants}.union(*(m["found"] for m in mutants)), key=_number)
    return {
        "contract": contract,
        "mutants": mutants,
        "noted": any(mutant["note"] for mutant in mutants),
        "statements": [(id, statements[id]) for id in ids if id in statements],
        "rows": [{"id": id, "cells": [_cell(id, mutant) for mutant in mutants]} for id in ids],
    }


def _number(id: str) -> tuple[str, int]:
    area, _, number = id.rpartition("-")
    return area, int(number) if number.isdigit() else 0


def _cell(id: str, mutant: dict[str, Any]) -> str:
    """``own`` (made to break it, and found), ``also`` (found too), ``missed``, or nothing."""
    if id == mutant["breaks"]:
        return "own" if mutant["killed"] else "missed"
    return "also" if id in mutant["found"] else ""
