"""Small pieces of text that reports are made of."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any


def count(number: int, noun: str) -> str:
    """``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def few(names: Sequence[str], limit: int = 4) -> str:
    """The first names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def size(number: int) -> str:
    """Bytes, exactly: ``4 KiB``, ``4,097 B``."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number and number % unit == 0:
            return f"{number // unit:,} {name}"
    return f"{number:,} B"


def clip(text: str, width: int, *, indent: int = 0) -> str:
    """``text`` in one line of at most ``width`` characters, ``indent`` spaces included."""
    line = " " * indent + " ".join(text.split())
    return line if len(line) <= width else line[: max(width - 3, 0)] + "..."


def wrap(text: str, width: int, *, indent: str = "", hang: str | None = None, lines: int = 0) -> list[str]:
    """``text`` in lines of at most ``width``; with ``lines``, no more than that many."""
    hang = " " * len(indent) if hang is None else hang
    wrapped = textwrap.wrap(
        " ".join(text.split()), width, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False
    )
    if lines and len(wrapped) > lines:
        wrapped = wrapped[:lines]
        cut, rest = wrapped[-1][: width - 4], wrapped[-1][width - 4 :]
        if cut[-1:].isalnum() and rest[:1].isalnum():  # inside a word
            cut = cut.rpartition(" ")[0]
        wrapped[-1] = cut.rstrip() + " ..."
    return wrapped


def pairs(data: Mapping[str, Any], skip: Sequence[str] = ()) -> str:
    """A JSON object as ``key=value`` pairs, nested ones as ``outer.inner=value``; to be read by people."""
    return " ".join(f"{key}={_value(value)}" for key, value in _flat(data, "") if key not in skip)


def _flat(data: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat


def _value(value: Any) -> str:
    if isinstance(value, str) and value and not set(value) & set(" \t\n\"'=,[]{}"):
        return value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
