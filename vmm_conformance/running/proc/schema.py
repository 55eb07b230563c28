"""Writes the JSON Schema of what harness and subject say: ``python -m vmm_conformance.running.proc.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from vmm_conformance.contracts import Block, Code, Statistics
from vmm_conformance.running.proc.messages import (
    CALLS,
    CONTRACTS,
    PROTOCOL,
    REQUESTS,
    VERSION,
    WHOLE,
    optional,
    shape,
)

PATH: Final = Path(__file__).with_name("subject.schema.json")
"""Where the schema lies; it ships with the package."""
Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_VALUES: Final[dict[str, Schema]] = {
    "protocol": {"const": PROTOCOL},
    "version": {"const": VERSION},
    "backup": _FLAG,
    "block": {"$ref": "#/$defs/block"},
}


def subject_schema() -> Schema:
    """The schema (draft 2020-12) of a line, from the harness or from the subject."""
    ours = {f"do {do}": _object({"do": {"const": do}, **{key: _VALUES.get(key, WHOLE.schema) for key in keys}})
            for do, keys in REQUESTS.items()}  # fmt: skip
    calls = {f"call {call}": _call(call) for call in CALLS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line between vmm-conformance and a subject in another process",
        "anyOf": [{"$ref": "#/$defs/from harness"}, {"$ref": "#/$defs/from subject"}],
        "$defs": {
            "from harness": _any(*ours, "result", "error"),
            "from subject": _any("return", "refuse", *calls),
            **ours,
            "result": _object({"return": {"description": "what the driver call returned"}}),
            "error": _object({"error": _TEXT, "status": WHOLE.schema, "message": _TEXT}),
            "return": _object({"return": _any("described", "block", "statistics", "nothing")}),
            "refuse": _object({"refuse": {"anyOf": [{"enum": list(Code.__members__)}, _TEXT]}}, message=_TEXT),
            **calls,
            "described": _described(),
            "block": _object(dict.fromkeys(Block._fields, WHOLE.schema)),
            "statistics": _object(dict.fromkeys(Statistics._fields, WHOLE.schema)),
            "nothing": {"type": "null"},
        },
    }


def _any(*names: str) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}


def _object(properties: dict[str, Schema], **more: Schema) -> Schema:
    """An object with all of ``properties``, and perhaps with ``more``."""
    return {
        "type": "object",
        "properties": {**properties, **more},
        "required": list(properties),
        "additionalProperties": False,
    }


def _call(call: str) -> Schema:
    may = {name: shape(call, name).schema for name in optional(call)}
    must = {name: shape(call, name).schema for name in CALLS[call] if name not in may}
    return _object({"call": {"const": call}, **must}, **may)


def _described() -> Schema:
    """What a subject says of itself when it is started."""
    capabilities = {
        **dict.fromkeys(("grow", "shrink", "trim", "late_peers", "statistics", "captures"), _FLAG),
        "pause": {"type": "array", "items": {"enum": ["backup", "discard"]}},
        "deallocate": {"enum": ["stream", "immediate"]},
        "segment": {"type": "integer", "minimum": 0},
        "spaces": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    }
    contracts = {"type": "array", "items": {"enum": list(CONTRACTS)}, "minItems": 1, "maxItems": len(CONTRACTS)}
    declared = {"type": "object", "properties": capabilities, "additionalProperties": False}
    return _object({"name": {**_TEXT, "minLength": 1}, "contracts": contracts}, version=_TEXT, capabilities=declared)


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(subject_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
