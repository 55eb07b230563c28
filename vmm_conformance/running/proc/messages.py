"""What is said to a subject in another process and by it: one JSON object per line, in turns.

`REQUESTS` is what the harness may ask, `CALLS` what the subject may ask of the driver before it answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Access, Code, Driver, DriverError, Status, SubjectError, Work, status_name
from vmm_conformance.history.events import CALLS as EVERY
from vmm_conformance.history.events import CRASHED, FIELDS
from vmm_conformance.running.recorded import DEFAULTS

PROTOCOL: Final = "vmm-conformance subject"
VERSION: Final = 1
LONGEST: Final = 16 << 20
"""Bytes of a line at most; contents of memory go as two digits per byte."""
CONTRACTS: Final = ("allocator",)
"""The contracts that can be spoken so far."""

REQUESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("protocol", "version"),
    "open": ("allocator", "device", "devices"),
    "allocate": ("allocator", "size", "stream", "space"),
    "deallocate": ("allocator", "block", "stream"),
    "grow": ("allocator", "block", "size", "stream"),
    "shrink": ("allocator", "block", "size", "stream"),
    "trim": ("allocator",),
    "pause": ("allocator", "backup"),
    "resume": ("allocator",),
    "enable_peer": ("allocator", "peer"),
    "statistics": ("allocator",),
    "begin_capture": ("allocator", "stream"),
    "end_capture": ("allocator", "stream"),
    "drop_capture": ("allocator", "stream"),
    "close": ("allocator",),
}
"""What ``do`` may be, with the other keys of the request."""

_LEFT_OUT: Final = frozenset({"launch", "progress", "read", *(kind for kind in EVERY if kind.startswith("graph_"))})
_QUERIES: Final = {
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
    "stream?": Shape("a stream, or null for the host", lambda value: None if value is None else whole(value),
                     {"type": ["integer", "null"]}),
}  # fmt: skip


def shape(call: str, name: str) -> Shape:
    """What an argument of a call must be."""
    queued = name == "stream" and call in ("copy", "fill", "write")
    return _SHAPES.get("stream?" if queued else name, WHOLE)


def parse(line: bytes) -> dict[str, Any]:
    """The message in ``line``. Raises `Unfit`."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"sent what is no JSON ({type(error).__name__}): {shortened(line)}") from None
    if isinstance(message, dict) and sum(key in message for key in ("return", "refuse", "call")) == 1:
        return message
    raise Unfit(f'sent {shortened(line)} where an object with "return", "refuse" or "call" was expected')


def shortened(line: bytes) -> str:
    """The beginning of what was sent, to be shown."""
    return repr(line[:80].decode("utf-8", "replace").rstrip("\n")) + ("..." if len(line) > 80 else "")


def carry_out(message: Mapping[str, Any], driver: Driver) -> dict[str, Any]:
    """Make the driver call that a subject asks for: the answer to it. Raises `Unfit`."""
    call = message["call"]
    if not isinstance(call, str) or call not in CALLS:
        raise Unfit(f"asked for the driver call {call!r:.60}, which is none of {', '.join(CALLS)}")
    given = {name: value for name, value in message.items() if name != "call"}
    may = optional(call)
    missing = [name for name in CALLS[call] if name not in given and name not in may]
    strange = [name for name in given if name not in CALLS[call]]
    if missing or strange:
        wanted = ", ".join(name + "?" * (name in may) for name in CALLS[call])
        raise Unfit(f"called {call} with {', '.join(given) or 'nothing'}; its arguments are {wanted or 'none'}")
    read = {name: _argument(call, name, value) for name, value in given.items()}
    positional = [read.pop(name) for name in CALLS[call] if name not in may]
    try:
        return {"return": _result(call, getattr(driver, call)(*positional, **read))}
    except DriverError as error:
        return {"error": status_name(error.status), "status": error.status, "message": str(error)}
    except Exception as error:  # the driver broke: the subject hears of it, and the record has it
        return {"error": type(error).__name__, "status": CRASHED, "message": str(error)}


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
    fields: Callable[[], dict[str, int]] | None = getattr(value, "_asdict", None)
    return value if fields is None else fields()


def refusal(request: str, message: Mapping[str, Any]) -> Exception:
    """What a refused request raises: a code of ours or a driver's status by its name. Raises `Unfit`."""
    code, text = str(message["refuse"]), str(message.get("message", ""))
    if code in Code.__members__:
        return SubjectError(Code[code], text)
    name, _, number = code.partition(" ")
    if name == "status" and number.isdecimal():
        return DriverError(int(number), request, text)
    if code in Status.__members__:
        return DriverError(Status[code], request, text)
    known = ", ".join([*Code.__members__, *Status.__members__])
    raise Unfit(f"refused {request} with {code!r:.60}, which is no code; there are {known}, and 'status N'")
