"""Values of a program to JSON data and back, by the types of the values.

Handled are frozen dataclasses and NamedTuples (objects by field name), ``StrEnum`` (its value), ``IntEnum``
(its name), tuples (lists), mappings (objects), ``bytes`` (hexadecimal), ``int``, ``float``, ``bool``,
``str``, ``None``, ``Literal`` and unions. In a union of several classes the key ``op`` holds the class's
name in kebab case. Fields that hold their default are left out, and filled in when reading.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, overload

from vmm_conformance.programs.compounds import Either, Record, Row, Table, Tagged, kebab
from vmm_conformance.programs.shapes import Choice, Hex, Plain, ProgramError, Real, Schema, Shape, Whole

__all__ = ["OneOf", "ProgramError", "from_json", "kebab", "schema", "to_json"]

T = TypeVar("T")

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_SINGLE: Final[dict[Any, Shape]] = {
    int: Whole(),
    float: Real(),
    bytes: Hex(),
    bool: Plain(bool, "true or false", "boolean"),
    str: Plain(str, "a string", "string"),
    type(None): Plain(type(None), "null", "null"),
    None: Plain(type(None), "null", "null"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """Stands for a type: one of ``classes``, always told apart by ``op``, even where there is but one."""

    classes: tuple[type, ...]


def to_json(value: Any, type_: Any = None) -> Any:
    """``value`` as JSON data, seen as a ``type_``; without one, as what it is.

    Raises `ProgramError` if it is no such value, ``TypeError`` if the codec does not know the type.
    """
    shown: Any = type(value) if type_ is None else type_
    try:
        return _shape(shown).write(value)
    except ProgramError as error:
        raise error.under("$") from None


@overload
def from_json(type_: type[T], data: Any, where: str = "$") -> T: ...
@overload
def from_json(type_: Any, data: Any, where: str = "$") -> Any: ...
def from_json(type_: Any, data: Any, where: str = "$") -> Any:
    """The value of ``type_`` that ``data`` stands for.

    Raises `ProgramError` with the position, below ``where``, and what is accepted there.
    """
    try:
        return _shape(type_).read(data)
    except ProgramError as error:
        raise error.under(where) from None


def schema(type_: Any) -> Schema:
    """The JSON Schema (draft 2020-12) of ``type_``."""
    definitions: Schema = {}
    root = _shape(type_).schema(definitions)
    return {"$schema": DIALECT, **root, "$defs": dict(sorted(definitions.items()))}


@cache
def _shape(type_: Any) -> Shape:
    if type_ in _SINGLE:
        return _SINGLE[type_]
    if isinstance(type_, OneOf):
        return Tagged(tuple(Record(class_, _shape, tagged=True) for class_ in type_.classes))
    if isinstance(type_, type) and issubclass(type_, Enum):
        return Choice.of_enum(type_)
    if _is_record(type_):
        return Record(type_, _shape)
    return _generic(type_)


def _generic(type_: Any) -> Shape:
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Literal:
        return Choice({value: value for value in arguments})
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return Row(_shape(arguments[0]))
    if origin is tuple:
        return Row(None, tuple(map(_shape, arguments)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Table(*map(_shape, arguments))
    if origin in (Union, types.UnionType):
        return _union(arguments)
    raise TypeError(f"no JSON form for the type {type_}: use frozen dataclasses, NamedTuples, enums, tuples, mappings")


def _union(members: tuple[Any, ...]) -> Shape:
    records = tuple(member for member in members if _is_record(member))
    if len(records) < 2:
        return Either(tuple(map(_shape, members)))
    others = tuple(member for member in members if member not in records)
    tagged = _shape(OneOf(records))
    return Either((*map(_shape, others), tagged)) if others else tagged


def _is_record(type_: Any) -> bool:
    if not isinstance(type_, type):
        return False
    return dataclasses.is_dataclass(type_) or (issubclass(type_, tuple) and hasattr(type_, "_fields"))
