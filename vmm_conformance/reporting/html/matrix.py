"""The matrix: invariants by columns, grouped by contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from vmm_conformance.contracts import CONTRACTS
from vmm_conformance.reporting.html.columns import Column

_ITEMS_NAMED: Final = 4
"""Of what put an invariant to the test a cell names the first; the rest is a number, as there may be a hundred."""
Row = dict[str, Any]
_SHOWN: Final = ("id", "contract", "level", "evidence", "statement", "why", "source", "needs")


class Texts:
    """Texts that many cells share, each written once on the page."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}

    def index(self, text: str) -> int:
        """The number of ``text``."""
        if text not in self._index:
            self._index[text] = len(self.texts)
            self.texts.append(text)
        return self._index[text]


def matrix(columns: Sequence[Column], failing: set[tuple[int, str]], texts: Texts) -> list[dict[str, Any]]:
    """One group per contract with its rows. ``failing`` are the column and id of what has an article."""
    rows = sorted(_rows(columns, failing, texts), key=_order)
    return [
        {"contract": contract, "rows": list(group), "counts": _sums(columns, contract)}
        for contract, group in groupby(rows, key=lambda row: str(row["contract"]))
    ]


def _order(row: Row) -> tuple[int, str, str, int]:
    known = list(CONTRACTS)
    place = known.index(row["contract"]) if row["contract"] in known else len(known)
    area, _, number = row["id"].rpartition("-")
    return place, row["contract"], area, int(number)


def _rows(columns: Sequence[Column], failing: set[tuple[int, str]], texts: Texts) -> list[Row]:
    entries: dict[str, dict[str, Any]] = {}
    for column in columns:
        entries.update(column.entries)
    return [
        {
            **{key: entry[key] for key in _SHOWN},
            "cells": [_cell(column, id, failing, texts) for column in columns],
        }
        for id, entry in entries.items()
    ]  # fmt: skip


def _cell(column: Column, id: str, failing: set[tuple[int, str]], texts: Texts) -> dict[str, Any]:
    entry = column.entries.get(id)
    if entry is None:
        return {"verdict": ""}
    verdict, witnesses = entry["verdict"], entry["witnesses"]
    return {
        "verdict": verdict,
        "word": verdict.replace(" ", "-"),
        "short": compact(witnesses) if verdict == "pass" else "",
        "witnesses": witnesses,
        "reason": texts.index(entry["reason"]) if entry["reason"] else None,
        "items": " ".join(str(texts.index(item)) for item in entry["items"][:_ITEMS_NAMED]),
        "more": max(len(entry["items"]) - _ITEMS_NAMED, 0),
        "article": (column.index, id) in failing,
    }


def compact(number: int) -> str:
    """``231``, ``12k``, ``3M``: how often, in few characters."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number // unit}{letter}"
    return str(number)


def _sums(columns: Sequence[Column], contract: str) -> list[str]:
    """For each column ``12/13``: how many of the contract's invariants pass, of those expected."""
    sums = []
    for column in columns:
        found = Counter(e["verdict"] for e in column.entries.values() if e["contract"] == contract)
        of = found.total() - found["not applicable"]
        sums.append(f"{found['pass']}/{of}" if of else "·")
    return sums


def totals(columns: Sequence[Column]) -> list[str]:
    """The same over all contracts."""
    made = []
    for column in columns:
        found = column.counts
        made.append(f"{found['pass']}/{found.total() - found['not applicable']}")
    return made
