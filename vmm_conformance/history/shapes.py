"""What the arguments and results of each kind of event look like, for readers and for the JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from vmm_conformance.history.events import CALLS, FIELDS

_INTEGER: Final = {"type": "integer"}
_ANY: Final[dict[str, Any]] = {}


class Shape(NamedTuple):
    """``says`` completes "must be"; ``fits`` decides on a decoded value; ``schema`` is of its JSON."""

    says: str
    fits: Callable[[Any], bool]
    schema: dict[str, Any]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tuples(*parts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test for a list of lists with these parts."""

    def fits(value: Any) -> bool:
        return isinstance(value, list | tuple) and all(
            isinstance(item, list | tuple)
            and len(item) == len(parts)
            and all(part(each) for part, each in zip(parts, item, strict=True))
            for item in value
        )

    return fits


def _bytes(value: Any) -> bool:
    return isinstance(value, bytes)


def _listed(*parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of lists, each also as a tuple or a record of ours."""
    item = {"type": "array", "prefixItems": list(parts), "minItems": len(parts), "maxItems": len(parts)}
    items = {"type": "array", "items": {"anyOf": [item, {"type": "object"}]}}
    return {"anyOf": [items, {"type": "object", "properties": {"t": items}, "required": ["t"]}]}


_BYTES: Final = {
    "type": "object",
    "properties": {"x": {"type": "string", "pattern": "^([0-9a-f]{2})*$"}},
    "required": ["x"],
    "additionalProperties": False,
}
WHOLE: Final = Shape("a whole number", _whole, _INTEGER)
STREAM: Final = Shape(
    "a whole number, or null for the host", lambda v: v is None or _whole(v), {"type": ["integer", "null"]}
)
BYTES: Final = Shape('bytes, as {"x": "00ff"}', _bytes, _BYTES)
RIGHTS: Final = Shape("a list of [device, access]", _tuples(_whole, _whole), _listed(_INTEGER, _INTEGER))
RANGES: Final = Shape("a list of [address, size]", _tuples(_whole, _whole), _listed(_INTEGER, _INTEGER))
COPIES: Final = Shape(
    "a list of [target, source, size]", _tuples(_whole, _whole, _whole), _listed(_INTEGER, _INTEGER, _INTEGER)
)
WRITES: Final = Shape('a list of [address, {"x": bytes}]', _tuples(_whole, _bytes), _listed(_INTEGER, _BYTES))
TEXT: Final = Shape("text", lambda value: isinstance(value, str), {"type": "string"})
ANYTHING: Final = Shape("anything", lambda value: True, _ANY)

_BY_NAME: Final = {
    "rights": RIGHTS, "reads": RANGES, "copies": COPIES, "writes": WRITES, "what": TEXT, "details": ANYTHING,
    "operation": ANYTHING, "outcome": ANYTHING, "data": ANYTHING, "fault": ANYTHING, "count": ANYTHING,
}  # fmt: skip
_HOST_TOO: Final = frozenset({"copy", "fill", "write", "read", "launch", "progress"})
RESULTS: Final = frozenset(
    {"reserve", "create", "retain", "alloc", "stream_create", "event_create", "graph_end", "graph_instantiate"}
)
"""The calls whose result, where they succeed, is the number of something new: it must be there."""


def shape(kind: str, name: str) -> Shape:
    """What the argument ``name`` of an event of ``kind`` looks like."""
    if kind == "write" and name == "data":
        return BYTES
    if name == "stream" and kind in _HOST_TOO:
        return STREAM
    return _BY_NAME.get(name, WHOLE)


SHAPES: Final = {kind: tuple(shape(kind, name) for name in names) for kind, names in FIELDS.items()}
"""Kind of event to the shapes of its arguments, in their order."""


def complaint(kind: str, args: tuple[Any, ...], status: int, result: Any) -> str:
    """What is wrong with the types in an event, or nothing. The number of arguments is right."""
    for name, one, value in zip(FIELDS[kind], SHAPES[kind], args, strict=True):
        if not one.fits(value):
            return f"{name} of {kind} must be {one.says}, got {value!r:.60}"
    if status == 0 and kind in RESULTS and not _whole(result):
        return f"the result of a {kind} that succeeded must be a whole number, got {result!r:.60}"
    return ""


def is_plain(kind: str) -> bool:
    """Whether all arguments of ``kind`` are whole numbers."""
    return all(one is WHOLE for one in SHAPES[kind])


PLAIN: Final = frozenset(kind for kind in CALLS if is_plain(kind))
