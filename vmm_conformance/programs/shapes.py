# ruff: noqa: D102 (`Shape` documents the methods once)
"""How single values of a program look in JSON: one class per kind of Python type.

A shape writes a value, reads it back and describes itself as a JSON Schema. `codec` finds the shape of
a type; `compounds` has the shapes that are made of others. A shape that meets a wrong value raises
`ProgramError` without a position; each enclosing shape puts its own step in front, so a program without
faults pays nothing for positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import Any

Schema = dict[str, Any]


class ProgramError(ValueError):
    """A program that cannot be read. ``where`` is the position, like ``$.operations[3].slot``."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message, where)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def under(self, step: str) -> ProgramError:
        """The same fault seen from one level further out, where it lies at ``step``."""
        return ProgramError(self.message, step + self.where)


def quoted(data: object) -> str:
    """``data`` as short JSON, for a message."""
    text = json.dumps(data, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def listed(names: Iterable[object]) -> str:
    """``names`` as a list of JSON values, for a message."""
    return ", ".join(quoted(name) for name in names)


def mismatch(expects: str, data: object) -> ProgramError:
    """The fault of ``data`` where ``expects`` should stand."""
    return ProgramError(f"expected {expects}, got {quoted(data)}")


class Shape:
    """How values of one type look in JSON. ``kinds`` are the Python classes of JSON data it may accept."""

    expects: str
    kinds: frozenset[type]

    def write(self, value: Any) -> Any:
        """``value`` as plain JSON data."""
        raise NotImplementedError

    def read(self, data: Any) -> Any:
        """The value that ``data`` stands for. Raises `ProgramError`."""
        raise NotImplementedError

    def schema(self, definitions: Schema) -> Schema:
        """The JSON Schema of this shape; named parts go to ``definitions``."""
        raise NotImplementedError


class Plain(Shape):
    """``str``, ``bool`` and ``None``: the same in Python and in JSON."""

    def __init__(self, type_: type, expects: str, name: str) -> None:
        self.type = type_
        self.expects = expects
        self.kinds = frozenset({type_})
        self.name = name

    def write(self, value: Any) -> Any:
        if type(value) is self.type:
            return value
        if self.type is str and isinstance(value, str):
            return str(value)
        raise mismatch(self.expects, value)

    def read(self, data: Any) -> Any:
        if type(data) is self.type:
            return data
        raise mismatch(self.expects, data)

    def schema(self, definitions: Schema) -> Schema:
        return {"type": self.name}


class Whole(Shape):
    """``int``: a JSON number without a fraction; never a bool."""

    expects = "a number"
    kinds = frozenset({int, float})

    def write(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        raise mismatch(self.expects, value)

    def read(self, data: Any) -> Any:
        if type(data) is int:
            return data
        if type(data) is float:
            if data.is_integer():  # as JSON Schema has it, 3.0 is an integer
                return int(data)
            raise mismatch("a whole number", data)
        raise mismatch(self.expects, data)

    def schema(self, definitions: Schema) -> Schema:
        return {"type": "integer"}


class Real(Shape):
    """``float``: any JSON number."""

    expects = "a number"
    kinds = frozenset({int, float})

    def write(self, value: Any) -> Any:
        if type(value) in self.kinds:
            return float(value)
        raise mismatch(self.expects, value)

    def read(self, data: Any) -> Any:
        return self.write(data)

    def schema(self, definitions: Schema) -> Schema:
        return {"type": "number"}


class Hex(Shape):
    """``bytes``: a string of two hexadecimal digits for each."""

    expects = "bytes as pairs of hexadecimal digits"
    kinds = frozenset({str})
    _pattern = "^([0-9a-fA-F]{2})*$"

    def write(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return value.hex()
        raise mismatch(self.expects, value)

    def read(self, data: Any) -> Any:
        if type(data) is str and re.fullmatch(self._pattern[1:-1], data):
            return bytes.fromhex(data)
        raise mismatch(self.expects, data)

    def schema(self, definitions: Schema) -> Schema:
        return {"type": "string", "pattern": self._pattern}


class Choice(Shape):
    """One of a few values: a ``Literal``, a ``StrEnum`` (its values) or an ``IntEnum`` (its names)."""

    def __init__(self, values: Mapping[Any, Any]) -> None:
        # keyed by class too, as True == 1
        self._values = {(type(data), data): value for data, value in values.items()}
        self._data = {(type(value), value): data for data, value in values.items()}
        self.expects = listed(values) if len(values) == 1 else f"one of {listed(values)}"
        self.kinds = frozenset(map(type, values))

    @classmethod
    def of_enum(cls, type_: type[Enum]) -> Choice:
        """The choice of an enum's members."""
        by_name = issubclass(type_, IntEnum)
        return cls({member.name if by_name else member.value: member for member in type_})

    def write(self, value: Any) -> Any:
        return self._look_up(self._data, value)

    def read(self, data: Any) -> Any:
        return self._look_up(self._values, data)

    def _look_up(self, table: Mapping[Any, Any], key: Any) -> Any:
        try:
            return table[type(key), key]
        except (KeyError, TypeError):
            raise mismatch(self.expects, key) from None

    def schema(self, definitions: Schema) -> Schema:
        return {"enum": [data for _, data in self._values]}
