"""A history without addresses: what is real in it gets a name, and places are told relative to it.

``R1`` is the first address range that was reserved or allocated, ``R1+4096`` a place in it, ``H2`` the second
physical memory, ``S1`` a stream, ``E1`` an event, ``G1`` a graph, ``W3`` the third work that was submitted.
Numbers that a driver gave to handles and streams have names too, so that another driver's may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Fault, Range, status_name
from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, WORK, Event

KINDS: Final[Mapping[str, str]] = {"handle": "H", "stream": "S", "event": "E", "graph": "G", "work": "W"}
"""What an argument or a detail of this name is the number of, by the letter of its names."""

MADE: Final[Mapping[str, str]] = {
    "create": "H", "retain": "H", "stream_create": "S", "event_create": "E", "graph_end": "G", "graph_instantiate": "G",
}  # fmt: skip
"""Calls whose result is a number, by the letter of its names."""

PLACES: Final = frozenset({"address", "target", "source", "hint"})
"""Arguments that are addresses."""

QUERIES: Final = frozenset({"mem_info", "get_access", "address_range"})
"""Calls of the caller that are left out: looks, which nothing depends on."""

NOT_TOLD: Final = frozenset({"message", "error", "plan", "question"})
"""Details that are left out: words, which an implementation has others for, and what the calls tell anyway."""

CALLER: Final = "caller"
FIRST_ADDRESS: Final = 1 << 32
"""Smaller numbers are never taken for addresses in notes."""
NEAR: Final = 1 << 20
"""How far from a range an address may be to be told relative to it."""


class _Extent(NamedTuple):
    """A range that was reserved or allocated."""

    name: str
    start: int
    size: int

    def place(self, address: int) -> str:
        """``address`` relative to it."""
        offset = address - self.start
        return f"{self.name}{offset:+d}" if offset else self.name


class Neutral:
    """Follows a history and names what is in it, in the order in which it appears."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}
        self._extents: list[_Extent] = []
        self._live: dict[int, _Extent] = {}
        self._writers = self._by_type()

    def event(self, event: Event) -> list[Any] | None:
        """``event`` as JSON data, see `Neutral.call`; None for one that is left out."""
        if event.kind == "note":
            what, details = event.args
            return ["note", what, self.details(details)]
        if event.kind == "ran":
            return self._ran(event)
        if event.who == HARNESS and event.kind in QUERIES:
            return None
        return self.call(event)

    def call(self, event: Event) -> list[Any]:
        """``[who, call, arguments]``, then the result if there is one, or null and the name of the error."""
        who = CALLER if event.who == HARNESS else event.who
        names = ("graph", "stream") if event.kind == "graph_launch" else FIELDS[event.kind]
        arguments = [self.value(argument, name) for name, argument in zip(names, event.args, strict=False)]
        head = [who, event.kind, arguments]
        if event.status:
            return [*head, None, status_name(event.status) if event.status > 0 else "CRASHED"]
        result = self._made(event)
        return head if result is None else [*head, result]

    def _made(self, event: Event) -> Any:
        """The result of a call that went well, which may be something new."""
        kind, result = event.kind, event.result
        if kind in ("reserve", "alloc"):
            self._enter(result, event.args[0])
            return self.place(result)
        if kind in ("address_free", "free"):
            self._live.pop(event.args[0], None)
        if kind in MADE:
            return self.number(MADE[kind], result, new=kind != "retain")
        if kind in WORK:
            return self.number("W", result)
        return self.value(result, "")

    def _enter(self, start: int, size: int) -> None:
        self._counts["R"] = count = self._counts.get("R", 0) + 1
        extent = _Extent(f"R{count}", start, size)
        self._extents.append(extent)
        self._live[start] = extent

    def _ran(self, event: Event) -> list[Any] | None:
        """Work that read something, or met a fault; what went through in silence is left out."""
        work, data, fault = event.args
        if fault is None and not data:
            return None
        head = [DEVICE, "ran", [self.number("W", work)]]
        if isinstance(fault, Fault):
            return [*head, None, f"{fault.reason} at {self.place(fault.address)}"]
        return [*head, [piece.hex() for piece in data]]

    # -- values

    def details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """Details of a note, without texts and what is empty; of warnings only how many there were."""
        told = {str(name): value for name, value in details.items() if name not in NOT_TOLD and value != ""}
        return {name: len(value) if name == "warnings" else self.value(value, name) for name, value in told.items()}

    def value(self, value: Any, name: str) -> Any:
        """``value`` as JSON data; ``name`` says what a number is the number of."""
        return next(write for types, write in self._writers if isinstance(value, types))(value, name)

    def _by_type(self) -> tuple[tuple[type | tuple[type, ...], Callable[[Any, str], Any]], ...]:
        """How a value of each type is written; the first type that fits counts."""
        return (
            (bool, lambda value, name: value),
            (IntEnum, lambda value, name: value.name),
            (Enum, lambda value, name: value.value),
            (int, self._whole),
            (bytes, lambda value, name: value.hex()),
            (Range, self._range),
            (Mapping, lambda value, name: self.details(value)),
            ((tuple, list), self._row),
            ((set, frozenset), lambda value, name: sorted(self.value(each, name) for each in value)),
            (object, self._record),
        )

    def _whole(self, number: int, name: str) -> Any:
        if name in KINDS:
            return self.number(KINDS[name], number)
        if name in PLACES or number >= FIRST_ADDRESS:
            return self.place(number, else_number=name not in PLACES)
        return number

    def _range(self, range: Range, name: str) -> Any:
        """Addresses and their number; in place of an address there may be an offset, or the identity of memory."""
        start, size = range
        if name == "address" and ("H", start) in self._names:
            return [self._names["H", start], size]
        return [self.place(start) if start >= FIRST_ADDRESS or not start else start, size]

    def _row(self, row: Any, name: str) -> Any:
        if names := getattr(row, "_fields", None):
            return {each: self.value(value, each) for each, value in zip(names, row, strict=True)}
        singular = name.removesuffix("s")
        return [self.value(each, singular) for each in row]

    def _record(self, value: Any, name: str) -> Any:
        if is_dataclass(value):
            return {each.name: self.value(getattr(value, each.name), each.name) for each in fields(value)}
        return value if isinstance(value, str | float | None) else type(value).__name__

    def number(self, letter: str, number: int, *, new: bool = False) -> Any:
        """The name of what a driver gave ``number`` to; ``new`` if it is something else than before."""
        if number is None or number == 0:
            return None
        key = (letter, number)
        if new or key not in self._names:
            self._counts[letter] = count = self._counts.get(letter, 0) + 1
            self._names[key] = f"{letter}{count}"
        return self._names[key]

    def place(self, address: int, *, else_number: bool = False) -> Any:
        """``address`` relative to a range: one that holds it, the last one that did, or the nearest."""
        if not address:
            return None
        for extents in (self._live.values(), reversed(self._extents)):
            for extent in extents:
                if extent.start <= address < extent.start + extent.size:
                    return extent.place(address)
        if else_number:
            return address
        near = min(self._extents, key=lambda extent: abs(address - extent.start), default=None)
        if near is None or abs(address - near.start) > near.size + NEAR:
            return "elsewhere"
        return near.place(address)
