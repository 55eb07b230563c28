# ruff: noqa: D102 (`Shape` documents the methods once)
"""How compound values of a program look in JSON: tuples, mappings, classes and unions of them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, get_type_hints

from vmm_conformance.programs.shapes import (
    Choice,
    ProgramError,
    Schema,
    Shape,
    Whole,
    listed,
    mismatch,
    quoted,
)

Find = Callable[[Any], Shape]

TAG: Final = "op"
"""The key that tells which of several classes an object stands for."""


def kebab(name: str) -> str:
    """``StreamWaitEvent`` as ``stream-wait-event``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


class Row(Shape):
    """A tuple: an array. ``parts`` are the shapes of a fixed one, else each item has shape ``item``."""

    kinds = frozenset({list})

    def __init__(self, item: Shape | None, parts: tuple[Shape, ...] = ()) -> None:
        self._item = item
        self._parts = parts
        self.expects = "a list" if item else f"a list of {len(parts)} values"

    def write(self, value: Any) -> Any:
        if not isinstance(value, tuple):
            raise mismatch(self.expects, value)
        return self._each(value, "write")

    def read(self, data: Any) -> Any:
        if type(data) is not list:
            raise mismatch(self.expects, data)
        return tuple(self._each(data, "read"))

    def _each(self, items: Any, action: str) -> list[Any]:
        shapes = (self._item,) * len(items) if self._item else self._parts
        if len(shapes) != len(items):
            raise mismatch(self.expects, items)
        result: list[Any] = []
        try:
            for shape, item in zip(shapes, items, strict=True):
                result.append(getattr(shape, action)(item))
        except ProgramError as error:
            raise error.under(f"[{len(result)}]") from None
        return result

    def schema(self, definitions: Schema) -> Schema:
        if self._item:
            return {"type": "array", "items": self._item.schema(definitions)}
        size = len(self._parts)
        parts = [part.schema(definitions) for part in self._parts]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": size, "maxItems": size}


class Table(Shape):
    """A mapping: an object. Keys that are no strings are written as the JSON text of what they are."""

    kinds = frozenset({dict})
    expects = "an object"

    def __init__(self, key: Shape, value: Shape) -> None:
        self._key = key
        self._value = value
        self._bare = key.kinds <= {str}

    def write(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise mismatch(self.expects, value)
        result = {}
        for key, item in value.items():
            written = self._key.write(key)
            name = written if self._bare else json.dumps(written)
            try:
                result[name] = self._value.write(item)
            except ProgramError as error:
                raise error.under(_step(name)) from None
        return result

    def read(self, data: Any) -> Any:
        if type(data) is not dict:
            raise mismatch(self.expects, data)
        result = {}
        for key, item in data.items():
            try:
                result[self._key_of(key)] = self._value.read(item)
            except ProgramError as error:
                raise error.under(_step(key)) from None
        return result

    def _key_of(self, text: str) -> Any:
        try:
            if self._bare:
                return self._key.read(text)
            key = self._key.read(json.loads(text))
            if json.dumps(self._key.write(key)) == text:  # one spelling for each key
                return key
        except ValueError:
            pass
        raise ProgramError(f"as a key expected {self._key.expects}, got {quoted(text)}")

    def schema(self, definitions: Schema) -> Schema:
        result: Schema = {"type": "object", "additionalProperties": self._value.schema(definitions)}
        if isinstance(self._key, Choice):
            result["propertyNames"] = self._key.schema(definitions)
        elif isinstance(self._key, Whole):
            result["propertyNames"] = {"pattern": "^(0|-?[1-9][0-9]*)$"}
        return result


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    shape: Shape
    default: Any  # dataclasses.MISSING: must be there

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING

    def holds_default(self, value: Any) -> bool:
        return value is self.default or (type(value) is type(self.default) and bool(value == self.default))


class Record(Shape):
    """A dataclass or NamedTuple: an object, without what holds its default.

    With ``tagged`` it says by the key `TAG` which class it is. Its parts are found at first use, so a
    class may contain itself.
    """

    kinds = frozenset({dict})
    expects = "an object"

    def __init__(self, type_: type, find: Find, *, tagged: bool = False) -> None:
        self.type = type_
        self.tag = kebab(type_.__name__) if tagged else None
        self._find = find

    @cached_property
    def parts(self) -> dict[str, _Part]:
        """The fields by name."""
        hints = get_type_hints(self.type)
        parts = {name: _Part(self._part(name, hints[name]), default) for name, default in _fields(self.type)}
        if self.tag and TAG in parts:
            raise TypeError(f"{self.type.__name__} may not have a field {TAG!r}: the key tells operations apart")
        return parts

    def _part(self, name: str, hint: Any) -> Shape:
        try:
            return self._find(hint)
        except TypeError as error:
            raise TypeError(f"{self.type.__name__}.{name}: {error}") from None

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(name for name, part in self.parts.items() if part.required)

    def write(self, value: Any) -> Any:
        if not isinstance(value, self.type):
            raise mismatch(f"a {self.type.__name__}", value)
        result: dict[str, Any] = {TAG: self.tag} if self.tag else {}
        for name, part in self.parts.items():
            item = getattr(value, name)
            if not part.holds_default(item):
                try:
                    result[name] = part.shape.write(item)
                except ProgramError as error:
                    raise error.under(f".{name}") from None
        return result

    def read(self, data: Any) -> Any:
        if type(data) is not dict:
            raise mismatch(self.expects, data)
        values = {}
        parts = self.parts
        for name, item in data.items():
            part = parts.get(name)
            if part is None:
                if name == TAG and self.tag:
                    continue
                raise ProgramError(f"unknown key, accepted: {listed(self._keys())}", _step(name))
            try:
                values[name] = part.shape.read(item)
            except ProgramError as error:
                raise error.under(f".{name}") from None
        return self._made(values)

    def _made(self, values: dict[str, Any]) -> Any:
        if not self._required <= values.keys():
            name = next(name for name in self.parts if name in self._required and name not in values)
            raise ProgramError(f"missing, expected {self.parts[name].shape.expects}", f".{name}")
        try:
            return self.type(**values)
        except ValueError as error:  # the class refuses the values
            raise ProgramError(str(error)) from error

    def _keys(self) -> list[str]:
        return [*([TAG] if self.tag else []), *self.parts]

    def schema(self, definitions: Schema) -> Schema:
        name = f"{self.type.__module__.rpartition('.')[2]}.{self.tag or self.type.__name__}"
        if name not in definitions:
            definitions[name] = {}  # a class that contains itself finds it
            definitions[name] = self._definition(definitions)
        return {"$ref": f"#/$defs/{name}"}

    def _definition(self, definitions: Schema) -> Schema:
        properties: Schema = {TAG: {"const": self.tag}} if self.tag else {}
        for name, part in self.parts.items():
            properties[name] = dict(part.shape.schema(definitions))
            if not part.required:
                properties[name]["default"] = part.shape.write(part.default)
        required = [TAG] if self.tag else []
        required += [name for name, part in self.parts.items() if part.required]
        result: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            result["required"] = required
        first = (self.type.__doc__ or "").strip().partition("\n")[0]
        if first and not first.startswith(f"{self.type.__name__}("):  # not the one dataclass makes up
            result["description"] = first
        return result


def _fields(type_: Any) -> list[tuple[str, Any]]:
    if not dataclasses.is_dataclass(type_):
        defaults = type_._field_defaults
        return [(name, defaults.get(name, dataclasses.MISSING)) for name in type_._fields]
    return [(field.name, _default(field)) for field in dataclasses.fields(type_) if field.init]


def _default(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


class Tagged(Shape):
    """One of several classes, told apart by the key `TAG`, which holds the class's name in kebab case."""

    kinds = frozenset({dict})

    def __init__(self, records: tuple[Record, ...]) -> None:
        self._by_tag = {record.tag: record for record in records}
        self._by_type = {record.type: record for record in records}
        if len(self._by_tag) != len(records):
            raise TypeError(f"two of these have one name: {', '.join(r.type.__name__ for r in records)}")
        self.expects = f'an object with "{TAG}" one of {listed(self._by_tag)}'

    def write(self, value: Any) -> Any:
        try:
            return self._by_type[type(value)].write(value)
        except KeyError:
            raise mismatch(self.expects, value) from None

    def read(self, data: Any) -> Any:
        if type(data) is not dict:
            raise mismatch(self.expects, data)
        if TAG not in data:
            raise ProgramError(f"missing, accepted: {listed(self._by_tag)}", f".{TAG}")
        name = data[TAG]
        if not isinstance(name, str) or name not in self._by_tag:
            raise ProgramError(f"unknown operation {quoted(name)}, accepted: {listed(self._by_tag)}", f".{TAG}")
        return self._by_tag[name].read(data)

    def schema(self, definitions: Schema) -> Schema:
        return {"oneOf": [record.schema(definitions) for record in self._by_tag.values()]}


class Either(Shape):
    """A value of one of several shapes, told apart by what kind of JSON data it is where that will do."""

    def __init__(self, shapes: tuple[Shape, ...]) -> None:
        self._shapes = shapes
        self.kinds = frozenset().union(*(shape.kinds for shape in shapes))
        self.expects = " or ".join(shape.expects for shape in shapes)

    def write(self, value: Any) -> Any:
        return self._first(self._shapes, "write", value)

    def read(self, data: Any) -> Any:
        fitting = tuple(shape for shape in self._shapes if type(data) in shape.kinds)
        if len(fitting) == 1 and type(data) in (dict, list):
            return fitting[0].read(data)  # its own message names the position inside
        return self._first(fitting, "read", data)

    def _first(self, shapes: tuple[Shape, ...], action: str, value: Any) -> Any:
        for shape in shapes:
            try:
                return getattr(shape, action)(value)
            except ProgramError:
                continue
        raise mismatch(self.expects, value)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [shape.schema(definitions) for shape in self._shapes]}
