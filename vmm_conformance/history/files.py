"""Histories as text, JSON Lines: a head, then one event a line; the same history comes back.

The first line is ``{"format": "vmm-conformance history", "version": 1, "header": ...}``, each other one
``[op, thread, who, kind, args, status, result]``; an event's number is its line. What JSON has no word for
is an object with one key::

    {"t": [...]}                a tuple             {"x": "00ff"}           bytes
    {"d": [[key, value]...]}    a mapping           {"s": [...]}            a set
    {"e": [class, name]}        a member of an enum {"o": [class, [...]]}   a record, by its fields
    {"r": "<...>"}              anything else, as Python shows it; it comes back as that text

Classes are named by module and name below this package. They are found by the reader's ``resolve``: a
history can name data, and never make anything else run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from vmm_conformance.history.events import FIELDS, Event, History

FORMAT: Final = "vmm-conformance history"
VERSION: Final = 1
_PACKAGE: Final = "vmm_conformance."
_PLAIN: Final = (type(None), bool, int, str, float)
Resolve = Callable[[str], type]


class HistoryError(ValueError):
    """Text that is no history; the message names the line and what is wrong with it."""


def dumps(history: History) -> str:
    """``history`` as text."""
    return "\n".join([head_line(history), *map(event_line, history.events)]) + "\n"


def head_line(history: History) -> str:
    """The first line of its text."""
    return json.dumps({"format": FORMAT, "version": VERSION, "header": _encode(history.header)})


def event_line(event: Event) -> str:
    """The line of one event."""
    return json.dumps(_line(event), separators=(",", ":"))


def loads(text: str, resolve: Resolve) -> History:
    """The history that ``text`` holds. ``resolve`` gives the class for a name, or raises `HistoryError`."""
    lines = text.splitlines()
    header = _guarded(1, lambda: read_head(lines, resolve))
    history = History(header)
    for number, line in enumerate(lines[1:], 2):
        history.events.append(_guarded(number, lambda line=line, at=number - 2: _event(line, at, resolve)))  # type: ignore[misc]
    return history


def _guarded(number: int, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except HistoryError as error:
        raise HistoryError(f"line {number}: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise HistoryError(f"line {number}: {type(error).__name__}: {error}") from None


def read_head(lines: list[str], resolve: Resolve) -> dict[str, Any]:
    """The header in the first of ``lines``. Raises `HistoryError` and whatever wrong types raise."""
    head = json.loads(lines[0]) if lines else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise HistoryError(f"no history: expected a first line with the format {FORMAT!r}")
    if head.get("version") != VERSION:
        raise HistoryError(f"version {head.get('version')!r} of the format, accepted: {VERSION}")
    header = decode(head["header"], resolve)
    if not isinstance(header, dict):
        raise HistoryError("the header must be a mapping")
    return header


def _line(event: Event) -> list[Any]:
    return [
        event.op, event.thread, event.who, event.kind,
        [_encode(value) for value in event.args], event.status, _encode(event.result),
    ]  # fmt: skip


def _event(line: str, seq: int, resolve: Resolve) -> Event:
    op, thread, who, kind, args, status, result = json.loads(line)
    if kind not in FIELDS:
        raise HistoryError(f"unknown kind of event {kind!r}")
    if not all(type(number) is int for number in (op, thread, status)) or not isinstance(who, str):
        raise HistoryError("op, thread and status must be whole numbers, who must be text")
    if len(args) != len(FIELDS[kind]):
        raise HistoryError(f"a {kind} event has the arguments {FIELDS[kind]}, got {len(args)} of them")
    values = tuple(decode(value, resolve) for value in args)
    return Event(seq, op, thread, who, kind, values, status, decode(result, resolve))


def _encode(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Enum):
        return {"e": [_name(kind), value.name]}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _record(kind, value)
    if is_dataclass(kind):
        return _record(kind, (getattr(value, field.name) for field in fields(kind)))
    return _container(value)


def _container(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"t": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return {"x": bytes(value).hex()}
    if isinstance(value, Mapping):
        return {"d": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return {"s": sorted((_encode(item) for item in value), key=json.dumps)}
    return {"r": repr(value)}


def _record(kind: type, values: Iterable[Any]) -> dict[str, Any]:
    if not kind.__module__.startswith(_PACKAGE):
        return {"r": f"{kind.__module__}.{kind.__qualname__}{tuple(values)!r}"}
    return {"o": [_name(kind), [_encode(value) for value in values]]}


def _name(kind: type) -> str:
    return f"{kind.__module__.removeprefix(_PACKAGE)}.{kind.__qualname__}"


def decode(value: Any, resolve: Resolve) -> Any:
    """The value that ``value``, as JSON gives it, stands for. Raises `HistoryError` and whatever wrong types raise."""
    if isinstance(value, list):
        return [decode(item, resolve) for item in value]
    if not isinstance(value, dict):
        return value
    (tag, content), *more = value.items()
    if more or tag not in _READERS:
        raise HistoryError(f"unknown value with the keys {', '.join(value)}; accepted: {', '.join(_READERS)}")
    return _READERS[tag](content, resolve)


def _member(content: Any, resolve: Resolve) -> Any:
    name, member = content
    kind = resolve(name)
    if not issubclass(kind, Enum):
        raise HistoryError(f"{name} is no enum")
    return kind[member]


def _object(content: Any, resolve: Resolve) -> Any:
    name, values = content
    kind = resolve(name)
    names = getattr(kind, "_fields", None) or tuple(field.name for field in fields(kind))
    if len(names) != len(values):
        raise HistoryError(f"{name} has the fields {', '.join(names)}, got {len(values)} values")
    return kind(**{key: decode(item, resolve) for key, item in zip(names, values, strict=True)})


_READERS: Final[Mapping[str, Callable[[Any, Resolve], Any]]] = {
    "t": lambda content, resolve: tuple(decode(item, resolve) for item in content),
    "d": lambda content, resolve: {decode(key, resolve): decode(item, resolve) for key, item in content},
    "s": lambda content, resolve: frozenset(decode(item, resolve) for item in content),
    "x": lambda content, _: bytes.fromhex(content),
    "r": lambda content, _: str(content),
    "e": _member,
    "o": _object,
}
