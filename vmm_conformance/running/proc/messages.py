"""What a subject in another process says, one line of JSON each: answers, calls it asks for, and calls it has made.

`CALLS` is what it may ask of the driver before it answers. What it has made itself it reports as in a history file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Access, Code, Driver, DriverError, Status, SubjectError, Work, status_name
from vmm_conformance.history.events import CALLS as EVERY
from vmm_conformance.history.events import CRASHED, FIELDS, SUBJECT, Event
from vmm_conformance.history.stream import event_of
from vmm_conformance.running.histories import resolve
from vmm_conformance.running.recorded import DEFAULTS

PROTOCOL: Final = "vmm-conformance subject"
VERSION: Final = 1
LONGEST: Final = 16 << 20
"""Bytes of a line at most; contents of memory go as two digits per byte."""
_DIGITS: Final = 20
"""A status has fewer digits."""
_REFUSALS: Final = tuple(name for name, status in Status.__members__.items() if status)
_PARTS: Final = 7
"""So many values has an event of a history."""
_LEFT_OUT: Final = frozenset({"launch", "progress", "read", *(kind for kind in EVERY if kind.startswith("graph_"))})
_FACTS: Final = ("device_count", "capabilities")
_QUERIES: Final = {
    **dict.fromkeys(_FACTS, ()),
    "granularity": ("device", "space"),
    "space_alignment": ("device", "space"),
    "can_access_peer": ("device", "peer"),
}
CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    **_QUERIES,
    **{kind: names for kind, names in FIELDS.items() if kind in EVERY - _LEFT_OUT},
    "read": ("source", "size"),
}
"""What ``call`` may be, with its arguments: the driver contract's, but for launches, graphs and queued reads."""


class Unfit(ValueError):
    """A message that means nothing here; the text says what it was, and what was expected."""


def optional(call: str) -> tuple[str, ...]:
    """The arguments of a call that may be left out."""
    if call in _QUERIES:
        return () if call == "can_access_peer" else CALLS[call]
    return tuple(name for name in DEFAULTS.get(call, ()) if name in CALLS[call])


class Shape(NamedTuple):
    """``says`` completes "must be"; ``read`` gives the value, or raises; ``schema`` is of its JSON."""

    says: str
    read: Callable[[Any], Any]
    schema: dict[str, Any]


def whole(value: Any) -> int:
    """``value`` if it is a whole number of 64 bits. Raises ``ValueError``."""
    if type(value) is int and -(1 << 63) <= value < 1 << 64:
        return value
    raise ValueError


def _rights(value: Any) -> dict[int, Access]:
    return {whole(device): Access(access) for device, access in value}


_PAIR: Final = {
    "type": "array",
    "prefixItems": [{"type": "integer"}, {"enum": [access.value for access in Access]}],
    "minItems": 2,
    "maxItems": 2,
}
WHOLE: Final = Shape("a whole number of 64 bits", whole, {"type": "integer"})
_SHAPES: Final = {
    "rights": Shape("a list of [device, access], access 0, 1 or 3", _rights, {"type": "array", "items": _PAIR}),
    "data": Shape("hexadecimal digits, two per byte", bytes.fromhex,
                  {"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"}),
    "table": Shape("a list of [address, size]", lambda value: [(whole(low), whole(size)) for low, size in value],
                   {"type": "array", "items": {"type": "array", "items": {"type": "integer"},
                                               "minItems": 2, "maxItems": 2}}),
    "persistent": Shape("a list of slots, or null", lambda value: None if value is None else tuple(map(whole, value)),
                        {"type": ["array", "null"], "items": {"type": "integer"}}),
    "stream?": Shape("a stream, or null for the host", lambda value: None if value is None else whole(value),
                     {"type": ["integer", "null"]}),
}  # fmt: skip


def shape(call: str, name: str) -> Shape:
    """What an argument of a call must be."""
    queued = name == "stream" and call in ("copy", "fill", "write")
    return _SHAPES.get("stream?" if queued else name, WHOLE)


def parse(line: bytes) -> dict[str, Any] | Event:
    """The message in ``line``, or the call that it reports. Raises `Unfit`."""
    try:
        message = json.loads(line)
        if b"\\u" in line or not line.isascii():
            message = _whole_text(message)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"sent what is no JSON ({type(error).__name__}): {shortened(line)}") from None
    if isinstance(message, dict) and sum(key in message for key in ("return", "refuse", "call")) == 1:
        return message
    if isinstance(message, list) and len(message) == _PARTS:
        return _reported(message)
    expected = 'an object with "return", "refuse" or "call", or an event of a history was expected'
    raise Unfit(f"sent {shortened(line)} where {expected}")


def _whole_text(message: Any) -> Any:
    """With a question mark for each half of a character, as in a text that was cut: nobody could write it down."""
    return json.loads(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))


def _reported(values: list[Any]) -> Event:
    """A driver call that the subject has made."""
    try:
        event = event_of(values, 0, resolve)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise Unfit(f"reported {values!r:.80}, which is no event: {error}") from None
    if event.who != SUBJECT or event.kind not in EVERY:
        raise Unfit(f"reported {values!r:.80}; only driver calls of the {SUBJECT!r} can be reported")
    return event


def shortened(line: bytes) -> str:
    """The beginning of what was sent, to be shown."""
    return repr(line[:80].decode("utf-8", "replace").rstrip("\n")) + ("..." if len(line) > 80 else "")


def carry_out(message: Mapping[str, Any], driver: Driver) -> dict[str, Any]:
    """Make the driver call that a subject asks for: the answer to it. Raises `Unfit`."""
    call = message["call"]
    if not isinstance(call, str) or call not in CALLS:
        raise Unfit(f"asked for the driver call {call!r:.60}, which is none of {', '.join(CALLS)}")
    read = arguments_of(message, CALLS[call], optional(call))
    positional = [read.pop(name) for name in CALLS[call] if name not in optional(call)]
    try:
        asked = getattr(driver, call)
        return {"return": _result(call, asked if call in _FACTS else asked(*positional, **read))}
    except DriverError as error:
        return {"error": status_name(error.status), "status": error.status, "message": str(error)}
    except Exception as error:  # the driver broke: the subject hears of it, as in this process
        return {"error": type(error).__name__, "status": CRASHED, "message": str(error)}


def arguments_of(message: Mapping[str, Any], names: Sequence[str], may: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments ``names`` of the call in ``message``, of which ``may`` may be missing. Raises `Unfit`."""
    call = message["call"]
    given = {name: value for name, value in message.items() if name != "call"}
    if any(name not in given and name not in may for name in names) or any(name not in names for name in given):
        wanted = ", ".join(name + "?" * (name in may) for name in names)
        raise Unfit(f"called {call} with {', '.join(given) or 'nothing'}; its arguments are {wanted or 'none'}")
    return {name: _argument(call, name, value) for name, value in given.items()}


def _argument(call: str, name: str, value: Any) -> Any:
    expected = shape(call, name)
    try:
        return expected.read(value)
    except (TypeError, ValueError):
        raise Unfit(f"called {call} with {name} {value!r:.60}, which must be {expected.says}") from None


def _result(call: str, value: Any) -> Any:
    """A call's result as JSON: of work only a read has one, its bytes."""
    if isinstance(value, Work):
        return value.data[0].hex() if call == "read" else None
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    fields: Callable[[], dict[str, int]] | None = getattr(value, "_asdict", None)
    return value if fields is None else fields()


def refusal(request: str, message: Mapping[str, Any]) -> Exception:
    """What a refused request raises: a code of ours or a driver's status by its name. Raises `Unfit`."""
    code, text = str(message["refuse"]), str(message.get("message", ""))
    if code in Code.__members__:
        return SubjectError(Code[code], text)
    name, _, number = code.partition(" ")
    if name == "status" and number.isdecimal() and len(number) < _DIGITS and int(number):
        return DriverError(int(number), request, text)
    if code in _REFUSALS:
        return DriverError(Status[code], request, text)
    known = ", ".join([*Code.__members__, *_REFUSALS])
    raise Unfit(f"refused {request} with {code!r:.60}, which is no code; there are {known}, and 'status N'")
