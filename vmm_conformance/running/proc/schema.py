"""Writes the JSON Schema of what harness and subject say: ``python -m vmm_conformance.running.proc.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from vmm_conformance.contracts import Block, Buffer, Code, Range, RawAllocation, Revision, UpdateMode, Use
from vmm_conformance.contracts.allocator import Statistics
from vmm_conformance.history.events import CALLS as EVERY
from vmm_conformance.history.events import FIELDS, SUBJECT
from vmm_conformance.running.allocator_holds import HELD_OVER
from vmm_conformance.running.proc.described import CALLS as KNOWN
from vmm_conformance.running.proc.described import WAY, Device
from vmm_conformance.running.proc.messages import CALLS, PROTOCOL, VERSION, WHOLE, optional, shape
from vmm_conformance.running.proc.spoken import CALLBACKS, CALLER, REQUESTS, SPOKEN

PATH: Final = Path(__file__).with_name("subject.schema.json")
"""Where the schema lies; it ships with the package."""
Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_POSITIVE: Final[Schema] = {"type": "integer", "minimum": 1}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_WHOLES: Final[Schema] = {"type": "array", "items": WHOLE.schema}


def _object(properties: dict[str, Schema], **more: Schema) -> Schema:
    """An object with all of ``properties``, and perhaps with ``more``."""
    return {
        "type": "object",
        "properties": {**properties, **more},
        "required": list(properties),
        "additionalProperties": False,
    }


def _record(*names: str, **others: Schema) -> Schema:
    """An object of whole numbers, and of ``others``."""
    return _object({**dict.fromkeys(names, WHOLE.schema), **others})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _any(*names: str) -> Schema:
    return {"anyOf": [_ref(name) for name in names]}


_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
_VALUES: Final[dict[str, Schema]] = {
    "protocol": {"const": PROTOCOL},
    "version": {"const": VERSION},
    **dict.fromkeys(("backup", "retry", "multi_device"), _FLAG),
    "block": _ref("block"),
    "address": _ref("range"),
    "reservation": _OR_NULL,
    "thread": {"enum": [0, 1]},
    "configs": _list(_record("ordinal", "stream", "budget", exempt=_WHOLES)),
    "revision": {"enum": [*Revision]},
    "platform": _TEXT,
    "environment": _TEXTS,
    "options": _TEXTS,
    "buffers": _list(_object({**dict.fromkeys(Buffer._fields, WHOLE.schema), "handle": _OR_NULL})),
    "executable": _object({
        "slots": _list(_record("space", use={"enum": [use.value for use in Use]}, constant=_FLAG)),
        "commands": _list(_object({"slots": _WHOLES, "traced": _FLAG})),
        "mode": {"enum": [mode.value for mode in UpdateMode]},
        "platform": _TEXT, "vmm": _FLAG, "skip_remap": _FLAG, "copy_threshold": WHOLE.schema, "name": _TEXT,
    }),
}  # fmt: skip
"""The arguments of requests that are no whole numbers."""
_RECORDS: Final[dict[str, Schema]] = {
    "block": _record(*Block._fields),
    "statistics": _record(*Statistics._fields),
    "range": _record(*Range._fields),
    "raw allocation": _record(*RawAllocation._fields),
    "reservation": _record("reservation", *Range._fields),
    "settings": _object({
        "skip_remap": _FLAG, "copy_threshold": {"anyOf": [WHOLE.schema, {"const": "auto"}]}, "warnings": _list(_TEXT),
    }),
    "number": WHOLE.schema,
    "counts": {"type": "object", "propertyNames": {"pattern": WAY}, "additionalProperties": WHOLE.schema},
    "nothing": {"type": "null"},
}  # fmt: skip
"""What a subject may return."""


def subject_schema() -> Schema:
    """The schema (draft 2020-12) of a line, from the harness or from the subject."""
    ours = {"start": _request("start", ("protocol", "version"))}
    for contract, asked in REQUESTS.items():
        ours |= {f"{contract} {do}": _request(do, keys) for do, keys in asked.items()}
    ours |= {do: _request(do, keys) for do, keys in CALLER.items()}
    calls = {f"call {call}": _call(call) for call in CALLS}
    calls |= {f"call {call}": _object({"call": {"const": call}, **{name: shape(call, name).schema for name in names}})
              for call, names in CALLBACKS.items()}  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line between vmm-conformance and a subject in another process",
        "anyOf": [_ref("from harness"), _ref("from subject")],
        "$defs": {
            "from harness": _any(*ours, "result", "error"),
            "from subject": _any("return", "refuse", *calls, "made"),
            **ours,
            "result": _object({"return": {"description": "what the driver call returned"}}),
            "error": _object({"error": _TEXT, "status": WHOLE.schema, "message": _TEXT}),
            "return": _object({"return": _any("described", *_RECORDS)}),
            "refuse": _object({"refuse": {"anyOf": [{"enum": list(Code.__members__)}, _TEXT]}}, message=_TEXT),
            **calls,
            "made": _made(),
            "described": _described(),
            **_RECORDS,
        },
    }


def _request(do: str, keys: tuple[str, ...]) -> Schema:
    return _object({"do": {"const": do}, **{key: _VALUES.get(key, WHOLE.schema) for key in keys}})


def _call(call: str) -> Schema:
    may = {name: shape(call, name).schema for name in optional(call)}
    must = {name: shape(call, name).schema for name in CALLS[call] if name not in may}
    return _object({"call": {"const": call}, **must}, **may)


def _made() -> Schema:
    """A driver call that the subject has made: an event of a history."""
    most = max(len(FIELDS[kind]) for kind in EVERY)
    arguments = {"type": "array", "maxItems": most}
    event = [WHOLE.schema, WHOLE.schema, {"const": SUBJECT}, {"enum": sorted(EVERY)}, arguments, WHOLE.schema, {}]
    return {
        "description": "operation, thread, who, kind, arguments, status, result; see history.schema.json",
        "type": "array", "prefixItems": event, "minItems": len(event), "maxItems": len(event),
    }  # fmt: skip


def _described() -> Schema:
    """What a subject says of itself when it is started."""
    names = ("grow", "shrink", "trim", "late_peers", "statistics", "captures", "host_allocator")
    capabilities = {
        **dict.fromkeys(names, _FLAG),
        "pause": _list({"enum": ["backup", "discard"]}),
        "address_space": {"type": "integer", "minimum": 0},
        "paths": _list({"type": "string", "pattern": WAY}),
        "waits": _list({"enum": sorted(HELD_OVER)}),
        "deallocate": {"enum": ["stream", "immediate"]},
        "segment": {"type": "integer", "minimum": 0},
        "spaces": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "second_alias": {"enum": ["ALREADY_EXISTS", "FAILED_PRECONDITION"]},
        "markers": {"enum": ["batched", "per-operation"]},
        "revisions": {"type": "array", "items": {"enum": [*Revision]}, "minItems": 1},
        "batch_limits": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    }
    contracts = {"type": "array", "items": {"enum": list(SPOKEN)}, "minItems": 1}
    declared = {"type": "object", "properties": capabilities, "additionalProperties": False}
    device = _object({}, **{**dict.fromkeys(Device.__dataclass_fields__, _POSITIVE), "peers": _FLAG})
    return _object(
        {"name": {**_TEXT, "minLength": 1}, "contracts": contracts},
        version=_TEXT, capabilities=declared, calls={"enum": list(KNOWN)}, device=device,
    )  # fmt: skip


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(subject_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
