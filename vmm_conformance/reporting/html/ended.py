"""Programs that ended their process, for the page."""

from __future__ import annotations

from typing import Any

from vmm_conformance.reporting.ended import where
from vmm_conformance.reporting.endings import from_data, replay_isolated
from vmm_conformance.reporting.html.columns import Column
from vmm_conformance.reporting.text import pairs


def ended(column: Column) -> list[dict[str, Any]]:
    """Every ending of a column, in the order of its items."""
    items = column.section["items"]
    return [_ending(item, data, column) for item in items for data in item.get("endings", ())]


def _ending(item: dict[str, Any], data: dict[str, Any], column: Column) -> dict[str, Any]:
    made = from_data(data)
    return {
        **data,
        "item": item["id"],
        "waived": item.get("waived", ""),
        "where": where(made),
        "operations": [_operation(number, each, made.op) for number, each in enumerate(made.program["operations"])],
        "replay": replay_isolated(str(data["file"]), column.section["subject"]["spec"], column.driver),
    }


def _operation(number: int, operation: Any, bad: int) -> dict[str, Any]:
    data = operation if isinstance(operation, dict) else {"op": str(operation)}
    return {"name": str(data.get("op", "?")), "given": pairs(data, skip=("op",)), "bad": number == bad}
