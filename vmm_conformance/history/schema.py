"""Writes the JSON Schema of one line of a history: ``python -m vmm_conformance.history.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT
from vmm_conformance.history.files import FORMAT, VERSION
from vmm_conformance.history.shapes import RESULTS, SHAPES

PATH: Final = Path(__file__).with_name("history.schema.json")
"""Where the schema lies; it ships with the package."""
_WHO: Final = (SUBJECT, HARNESS, DEVICE)
_INTEGER: Final = {"type": "integer"}


def history_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a line: the first is a head, each other one an event."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a history of vmm-conformance: the first is the head, each other one an event",
        "anyOf": [{"$ref": "#/$defs/head"}, {"$ref": "#/$defs/event"}],
        "$defs": {"head": _head(), "event": {"anyOf": [_event(kind) for kind in FIELDS]}},
    }


def _head() -> dict[str, Any]:
    pairs = {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}
    header = {"type": "object", "properties": {"d": pairs}, "required": ["d"], "additionalProperties": False}
    properties = {"format": {"const": FORMAT}, "version": {"const": VERSION}, "header": header}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _event(kind: str) -> dict[str, Any]:
    names, shapes = FIELDS[kind], SHAPES[kind]
    args = {
        "type": "array",
        "prefixItems": [{"title": name, **shape.schema} for name, shape in zip(names, shapes, strict=True)],
        "minItems": len(names),
        "maxItems": len(names),
    }
    plain = [_INTEGER, _INTEGER, {"enum": list(_WHO)}, {"const": kind}, args]
    event: dict[str, Any] = {"type": "array", "prefixItems": [*plain, _INTEGER, {}], "minItems": 7, "maxItems": 7}
    if kind in RESULTS:
        succeeded = {"prefixItems": [*[{}] * 5, {"const": 0}]}
        event |= {"if": succeeded, "then": {"prefixItems": [*[{}] * 6, _INTEGER]}}
    return event


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(history_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
