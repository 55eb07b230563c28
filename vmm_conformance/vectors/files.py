"""The files that vectors lie in: one for each contract, one vector a line, so that two versions can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import SUBJECT_CAPABILITIES, capability
from vmm_conformance.programs.files import from_data
from vmm_conformance.programs.program import FORMAT_VERSION, Program
from vmm_conformance.programs.schema import program_schema
from vmm_conformance.vectors.neutral import Neutral
from vmm_conformance.vectors.vector import Vector

VERSION: Final = 1
SCHEMA: Final = "vectors.schema.json"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def text(contract: str, subject: object, vectors: Sequence[Vector]) -> str:
    """The file of one contract."""
    declared = {name: Neutral().value(capability(subject, name), name) for name in SUBJECT_CAPABILITIES}
    head = {"version": VERSION, "contract": contract, "catalogue": catalogue().version, "capabilities": declared}
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in vectors)
    start = "".join(f'"{name}": {json.dumps(value)},\n' for name, value in head.items())
    return f'{{\n{start}"vectors": [\n{lines}\n]\n}}\n'


def program_of(contract: str, each: Vector) -> Program:
    """The program of a vector."""
    return from_data({"version": FORMAT_VERSION, "contract": contract, **each["program"]})


def read(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Contract and data of each file of vectors in ``folder``."""
    for path in sorted(folder.glob("*.json")):
        if path.name != SCHEMA:
            data = json.loads(path.read_text("utf-8"))
            yield data["contract"], data


# -- the schema

_ANY: Final[Mapping[str, Any]] = {}
_EVENT: Final = {
    "description": "A driver call: who made it (subject, caller), its name, its arguments, then its result if it has"
    " one, or null and the name of its error. Work that ran: device, ran, the work, what it read, or null and its"
    " fault. Or a note of the harness: note, its name, its details.",
    "type": "array",
    "minItems": 3,
    "maxItems": 5,
    "oneOf": [
        {
            "prefixItems": [
                {"enum": ["subject", "caller", "device"]},
                {"type": "string"},
                {"type": "array"},
                _ANY,
                {"type": "string"},
            ]
        },
        {"prefixItems": [{"const": "note"}, {"type": "string"}, {"type": "object"}], "maxItems": 3},
    ],
}
_EVENTS: Final = {"type": "array", "items": {"$ref": "#/$defs/event"}}
_STATUS: Final = {"enum": ["ok", "refused", "raised", "skipped", "crashed", "not run"]}


def _object(properties: Mapping[str, Any], *optional: str) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the files; it holds the programs' own."""
    programs = program_schema()
    outcome = _object({"status": _STATUS, "code": {"type": "string"}, "events": _EVENTS}, "code")
    definitions = {**programs["$defs"], "event": _EVENT, "outcome": outcome}
    return {
        "$schema": DIALECT,
        "title": "Vectors of vmm-conformance: programs for one contract, and their right outcomes",
        "type": "object",
        "oneOf": [_file(branch) for branch in programs["oneOf"]],
        "$defs": dict(sorted(definitions.items())),
    }


def _file(branch: Mapping[str, Any]) -> dict[str, Any]:
    """The file of the contract whose programs look like ``branch``."""
    program = {name: value for name, value in branch["properties"].items() if name in ("configuration", "operations")}
    vector = {
        "id": {"type": "string", "pattern": "^[a-z-]+-[0-9a-f]{10}$"},
        "reaches": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]+-[0-9]+(:.+)?$"}},
        "program": _object(program),
        "before": _EVENTS,
        "outcomes": {"type": "array", "items": {"$ref": "#/$defs/outcome"}},
        "after": _EVENTS,
    }
    properties = {
        "version": {"const": VERSION},
        "contract": branch["properties"]["contract"],
        "catalogue": {"type": "string"},
        "capabilities": {"type": "object"},
        "vectors": {"type": "array", "items": _object(vector)},
    }
    return _object(properties)


def schema_text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1) + "\n"
