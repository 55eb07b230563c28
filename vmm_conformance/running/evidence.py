"""What is shown of a failure: what each operation returned, and the address map at that moment."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.judge import Finding
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import SUBJECT, History
from vmm_conformance.history.state import State
from vmm_conformance.running.pictures.naming import memory_numbers

Row = dict[str, Any]


def outcomes(history: History) -> list[str]:
    """One line per operation: how it ended."""
    lines: dict[int, str] = {}
    for event in history.events:
        if event.kind == "end":
            lines[event.op] = _outcome(event.args[0])
    return [lines.get(index, "not run") for index in range(max(lines, default=-1) + 1)]


def _outcome(outcome: dict[str, Any]) -> str:
    status = str(outcome.get("status", ""))
    detail = ": ".join(text for text in (outcome.get("code", ""), outcome.get("message", "")) if text)
    return f"{status} ({detail})" if detail and status != "ok" else status


def address_map(history: History, finding: Finding) -> list[Row]:
    """The live ranges just before the event where the invariant broke, by address; the offending one marked.

    Each row has ``address``, ``size`` (bytes), ``label`` and ``marked``.
    """
    state, numbers = State(), memory_numbers(history)
    for event in history.events:
        if event.seq >= finding.seq:
            break
        state.apply(event)
    rows = [_row(r.address, r.size, f"reserved by {r.who}") for r in state.reservations.values()]
    for mapping in state.mappings:
        number = numbers.get(mapping.memory.made, 0)
        label = f"mapped by {mapping.who}: memory {number} of {mapping.memory.who}"
        rows.append(_row(mapping.address, mapping.size, label))
    own = [allocation for allocation in state.allocations if allocation.who == SUBJECT]
    rows += [_row(a.address, a.size, f"allocated by {a.who}, space {a.space}") for a in own]
    if finding.range is not None:
        for row in rows:
            row["marked"] = _overlap(row, finding.range)
        if not any(row["marked"] for row in rows):
            rows.append({**_row(finding.range.address, finding.range.size, "the offending range"), "marked": True})
    return sorted(rows, key=lambda row: (row["address"], -row["size"]))


def _row(address: int, size: int, label: str) -> Row:
    return {"address": address, "size": size, "label": label, "marked": False}


def _overlap(row: Row, range: Range) -> bool:
    return bool(row["address"] < range.end and range.address < row["address"] + row["size"])
