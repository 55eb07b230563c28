"""Writes the JSON Schema of program files: ``python -m vmm_conformance.programs.schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from vmm_conformance.programs.codec import OneOf, schema
from vmm_conformance.programs.files import CONTRACT_TYPES, KEYS
from vmm_conformance.programs.program import FORMAT_VERSION

PATH: Final = Path(__file__).with_name("program.schema.json")
"""Where the schema lies; it ships with the package."""


def program_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a program file, of any contract."""
    definitions: dict[str, Any] = {}
    branches = [_branch(contract, definitions) for contract in CONTRACT_TYPES]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A program of vmm-conformance: operations for one contract under one configuration",
        "type": "object",
        "oneOf": branches,
        "$defs": dict(sorted(definitions.items())),
    }


def _branch(contract: str, definitions: dict[str, Any]) -> dict[str, Any]:
    types = CONTRACT_TYPES[contract]
    configuration, operation = schema(types.configuration), schema(OneOf(types.operations))
    definitions |= configuration["$defs"] | operation["$defs"]
    properties = {
        "version": {"const": FORMAT_VERSION},
        "contract": {"const": contract},
        "configuration": {"$ref": configuration["$ref"]},
        "operations": {"type": "array", "items": {"oneOf": operation["oneOf"]}},
    }
    needed = bool(definitions[configuration["$ref"].rpartition("/")[2]].get("required"))
    required = [key for key in KEYS if key != "configuration" or needed]
    return {"properties": properties, "required": required, "additionalProperties": False}


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(program_schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
