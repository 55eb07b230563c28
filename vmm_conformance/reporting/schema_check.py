"""Checks data against one of the JSON Schemas that ship here, as far as those schemas go.

Reports come back from archives and from other people. What is read is checked first, so that a page or a
verification never trips over a missing key; the message says where in the data what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
_DEPTH: Final = 64
Schema = Mapping[str, Any]


class Mismatch(ValueError):
    """Data that does not fit; ``where`` is its position, as in ``$.subjects[0].items``, ``what`` is wrong there."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


def check(data: Any, schema: Schema) -> None:
    """Raise `Mismatch` unless ``data`` fits ``schema``."""
    _Checker(schema).check(data, schema, "$", 0)


class _Checker:
    def __init__(self, root: Schema) -> None:
        self._definitions: Mapping[str, Schema] = root.get("$defs", {})

    def check(self, data: Any, schema: Schema, where: str, depth: int) -> None:
        if "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        if depth > _DEPTH:
            raise Mismatch(where, "nested too deeply")
        _check_value(data, schema, where)
        if isinstance(data, dict):
            self._object(data, schema, where, depth + 1)
        elif isinstance(data, list):
            self._array(data, schema, where, depth + 1)
        if "anyOf" in schema and not any(self.fits(data, option, depth) for option in schema["anyOf"]):
            self.check(data, schema["anyOf"][-1], where, depth)
        for rule in schema.get("allOf", ()):
            if self.fits(data, rule.get("if", {}), depth):
                self.check(data, rule.get("then", {}), where, depth)

    def fits(self, data: Any, schema: Schema, depth: int) -> bool:
        try:
            self.check(data, schema, "$", depth)
        except Mismatch:
            return False
        return True

    def _object(self, data: dict[str, Any], schema: Schema, where: str, depth: int) -> None:
        known: Mapping[str, Schema] = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in data:
                raise Mismatch(where, f"{key!r} is missing")
        others = schema.get("additionalProperties", True)
        for key, value in data.items():
            if key in known:
                self.check(value, known[key], f"{where}.{key}", depth)
            elif others is False:
                raise Mismatch(where, f"unexpected {key[:40]!r}")
            elif isinstance(others, dict):
                self.check(value, others, f"{where}.{key[:40]}", depth)

    def _array(self, data: list[Any], schema: Schema, where: str, depth: int) -> None:
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(data))
        if not least <= len(data) <= most:
            raise Mismatch(where, f"{len(data)} items, expected {least} to {most}")
        if schema.get("uniqueItems") and len({repr(item) for item in data}) < len(data):
            raise Mismatch(where, "an item is there twice")
        for index, item in enumerate(data):
            self.check(item, schema.get("items", {}), f"{where}[{index}]", depth)


def _check_value(data: Any, schema: Schema, where: str) -> None:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted or []
    if names and not any(_TYPES[name](data) for name in names):
        raise Mismatch(where, f"expected {' or '.join(names)}, got {repr(data)[:60]}")
    accepted = [schema["const"]] if "const" in schema else schema.get("enum")
    if accepted is not None and not any(type(data) is type(value) and data == value for value in accepted):
        raise Mismatch(where, f"{repr(data)[:60]}, accepted: {', '.join(map(repr, accepted))}")
    if "pattern" in schema and isinstance(data, str) and not re.search(schema["pattern"], data):
        raise Mismatch(where, f"{data[:60]!r} does not look like {schema['pattern']}")
    if isinstance(data, str) and len(data) < schema.get("minLength", 0):
        raise Mismatch(where, "is empty")
    if "minimum" in schema and isinstance(data, int | float) and data < schema["minimum"]:
        raise Mismatch(where, f"{data} is below {schema['minimum']}")
