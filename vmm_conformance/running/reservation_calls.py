"""Calls on a subject of the contract ``reservation``, recorded, and what the caller knows of what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from vmm_conformance.contracts import Driver, DriverError, Range, Write
from vmm_conformance.running.caller import TokenSource, marks
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.reservation_requests import FOREIGN, Memory, Piece, Slice

View = tuple[bool, Range | None]
"""Whether a mapping is null, and where it lies if it is not."""


class Reserved:
    """A reservation that the caller has."""

    __slots__ = ("base", "device", "id", "object", "size")

    def __init__(self, identity: int, device: int, made: Any, address: Range) -> None:
        self.id = identity
        self.device = device
        self.object = made
        self.base, self.size = address


class Held:
    """A mapping that is not null, as far as the caller knows."""

    __slots__ = ("id", "object", "pieces", "reserved")

    def __init__(self, identity: int, made: Any, reserved: Reserved, pieces: list[Piece]) -> None:
        self.id = identity
        self.object = made
        self.reserved = reserved
        self.pieces = pieces


class Holdings:
    """All that the caller has: what it has not released or closed yet, and the last mapping that became null."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []
        self.reserved: list[Reserved] = []
        self.closed: list[Reserved] = []
        self.held: list[Held] = []
        self.null: tuple[int, Any] | None = None

    def taken(self, reserved: Reserved) -> list[tuple[int, int]]:
        """The places of a reservation that are in use, as first and last offset."""
        return sorted((p.offset, p.offset + p.size) for h in self.held if h.reserved is reserved for p in h.pieces)

    def usable(self) -> list[Reserved]:
        """The reservations with room, on devices with memory; if there are none, all."""
        devices = {memory.device for memory in self.memories if memory.held}
        usable = [
            reserved
            for reserved in self.reserved
            if reserved.device in devices and sum(end - start for start, end in self.taken(reserved)) < reserved.size
        ]
        return usable or self.reserved

    def mapping(self, number: int) -> Held | None:
        """The mapping that a program means by ``number``, if there is any."""
        return self.held[number % len(self.held)] if self.held else None

    def replace(self, held: Held, by: Held) -> None:
        """``by`` owns what ``held`` did."""
        self.became_null(held)
        self.held.append(by)

    def became_null(self, held: Held) -> None:
        """``held`` owns nothing any more."""
        self.held.remove(held)
        self.null = held.id, held.object


class Calls:
    """Makes calls and records them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def call(
        self, name: str, action: Callable[[], object], look: Iterable[tuple[int, Any]] = (), **about: Any
    ) -> tuple[Outcome, Any]:
        """One call. ``look``: the mappings to look at when it has returned, with their numbers.

        A mapping that is returned is looked at as number ``about["made"]``; an allocation or a reservation
        that is, for its address. The outcome has besides ``struck`` (a failure was injected), ``seen``
        (that address) and ``null`` (by number of mapping).
        """
        answer: list[Any] = []
        note = self._recorder.note("call", name=name, **about)
        outcome = attempt(lambda: answer.append(action()))
        seen: list[Range] = []
        views: dict[int, View] = {}
        if outcome["status"] == "ok":
            if name in ("allocate", "reserve"):
                outcome = attempt(lambda: seen.append(as_range(answer[0].address)))
            elif "made" in about:
                look = (*look, (about["made"], answer[0]))
        for number, mapping in look:
            looked = _look(number, mapping, views)
            outcome = looked if outcome["status"] == "ok" else outcome
        found = {"address": seen[0]} if seen else {}
        self._recorder.note("return", **outcome, **found, views=views)
        outcome["struck"] = any(event.result == "injected" for event in self._recorder.history.events[note.seq :])
        outcome["seen"] = seen[0] if seen else None
        outcome["null"] = {number: view[0] for number, view in views.items()}
        return outcome, answer[0] if answer else None


def _look(number: int, mapping: Any, views: dict[int, View]) -> Outcome:
    """Look at a mapping; that fails where the subject has returned something else."""

    def look() -> None:
        null = mapping.is_null
        views[number] = null, None if null else as_range(mapping.address)

    looked = attempt(look)
    return looked if looked["status"] == "ok" else {**looked, "message": f"mapping {number}: {looked['message']}"}


def as_range(answer: object) -> Range:
    """``answer`` as a range. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Range) and all(type(number) is int for number in answer):
        return answer
    raise TypeError(f"address is {answer!r} where a Range (address, size) was expected")


def repeated(call: Callable[[], tuple[Outcome, Any]]) -> tuple[Outcome, Any]:
    """A call, once more where an injected failure made it fail."""
    outcome, made = call()
    if outcome["status"] != "ok" and outcome["struck"]:
        before = outcome["message"]
        outcome, made = call()
        outcome["message"] = f"{outcome['message'] or outcome['status']} (before: {before})"
    return outcome, made


class Foreign:
    """What looks like an allocation, and was not made by the subject."""

    def __init__(self, address: Range) -> None:
        self.address = address

    def release(self) -> None:
        """Nothing: the harness owns it."""


class Objects:
    """The subject's objects for slices, while they are needed: null is None, a foreign one is the harness's."""

    def __init__(self, driver: Driver, memories: Iterable[Memory], slices: Sequence[Slice]) -> None:
        self._driver = driver
        self._known = {memory.id: memory.object for memory in memories}
        self._slices = slices
        self._handles: list[int] = []

    def __enter__(self) -> list[Any]:
        return [self._foreign(one) if one.memory == FOREIGN else self._known.get(one.memory) for one in self._slices]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            self._driver.release(handle)

    def _foreign(self, one: Slice) -> Foreign:
        handle = self._driver.create(one.size)
        self._handles.append(handle)
        return Foreign(Range(handle, one.size))


class Users:
    """The caller's own work on mappings: one stream for each device, waited for at once."""

    def __init__(self, driver: Driver, devices: int) -> None:
        self._driver = driver
        self._streams = [driver.stream_create(device) for device in range(devices)]
        self._tokens = TokenSource()

    def work(self, held: Held, device: int, *, write: bool = False) -> None:
        """``device`` reads the tokens of every slice, and writes new ones if ``write``; then it is waited for."""
        base = held.reserved.base
        places = [
            Range(base + piece.offset + mark.address, mark.size) for piece in held.pieces for mark in marks(piece.size)
        ]
        writes = [Write(place.address, self._tokens.take(place.size)) for place in places] if write else []
        if places:
            self._driver.launch(self._streams[device], reads=places, writes=writes)
            self._driver.stream_synchronize(self._streams[device])

    def reach(self, reserved: Reserved, offset: int) -> None:
        """Ask what rights the reservation's device has there."""
        self.ask(reserved.base + offset, reserved.device)

    def ask(self, address: int, device: int) -> None:
        """Ask what rights ``device`` has at ``address``. To be refused is an answer too, and recorded."""
        with suppress(DriverError):
            self._driver.get_access(address, device)


# -- what an operation came to


def outcome_of(status: str, code: str, message: str) -> Outcome:
    """An outcome that is no call's."""
    return {"status": status, "code": code, "message": message}


def skipped(why: str) -> Outcome:
    """Nothing was done."""
    return outcome_of("skipped", "", why)


def shown(outcome: Outcome) -> Outcome:
    """The part of a call's outcome that is the operation's."""
    return {name: outcome[name] for name in ("status", "code", "message")}
