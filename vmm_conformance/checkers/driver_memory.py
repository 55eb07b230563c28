"""Free memory: what each call must do to it, and which call to blame when it is not what it must be."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_trails import FAILED_CALL, MANY, Tags, Trails
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.state import Mapping, Memory, State

CREATE: Final = "DRIVER-19"
ADDRESSES_ARE_FREE: Final = "DRIVER-12"
TEARDOWN: Final = "DRIVER-71"
FAILED_MAP: Final = "DRIVER-38"

_QUESTIONS: Final = frozenset({"get_access", "address_range", "mem_info", "read"})


class Accounting:
    """Compares every answer of mem_info with what the calls before it add up to.

    ``free`` is what each device should have free, by device; it lacks a device until the driver has
    been asked. Plain memory costs what the driver says it does. After the first wrong answer the books
    cannot be kept any more.
    """

    def __init__(self, facts: Facts, state: State, trails: Trails, judge: Judge) -> None:
        self.free: dict[int, int] = {}
        self._facts = facts
        self._state = state
        self._trails = trails
        self._judge = judge
        self._first: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._open: set[int] = set()
        self._closed = False
        self._suspects: dict[int, list[tuple[Tags, Event]]] = {}

    def refused(self, event: Event, tags: Tags) -> None:
        """A refused call costs nothing and gives nothing back."""
        if event.kind in _QUESTIONS:
            return
        self._suspect(event, (*tags, FAILED_CALL))
        if event.kind == "map":
            memory = self._state.handles.get(event.args[2])
            if memory is not None:
                self._trails.past(memory).failed_map = True

    def accepted(self, event: Event) -> None:
        """Take an accepted call into account, after the state has."""
        kind = event.kind
        if kind in ("alloc", "free"):
            self._open |= set(self.free)
        elif kind == "create":
            size, device, _ = event.args
            if device in self.free:
                self.free[device] -= size
            self._suspect(event, (CREATE,))
        elif kind in ("reserve", "address_free"):
            self._suspect(event, (ADDRESSES_ARE_FREE,))
        elif kind == "release":
            self._released(event)
        elif kind == "unmap":
            self._unmapped(event)
        elif kind == "map":
            memory = self._state.handles.get(event.args[2])
            many = memory is not None and self._trails.times.get((event.args[0], memory), 0) > MANY
            self._suspect(event, ("DRIVER-46",) if many else (CREATE,))
        elif kind == "retain":
            memory = self._state.handles.get(event.result)
            if memory is not None:
                self._trails.past(memory).retained = True
            self._suspect(event, (CREATE,))

    def _released(self, event: Event) -> None:
        for gone in self._state.ended:
            if isinstance(gone, Memory):
                self._back(gone)
                past = self._trails.past(gone)
                self._suspect(event, (*self._history_tags(gone), "DRIVER-26" if past.mapped else CREATE))
                return
        memory = self._state.handles.get(event.args[0])
        held = memory is not None and memory.references > 0
        self._suspect(event, ("DRIVER-29" if held else "DRIVER-25",))

    def _unmapped(self, event: Event) -> None:
        tags: list[str] = []
        for gone in self._state.ended:
            if isinstance(gone, Memory):
                self._back(gone)
                tags += [*self._history_tags(gone), "DRIVER-25", "DRIVER-72"]
        for gone in self._state.ended:
            if isinstance(gone, Mapping) and gone.memory.ended < 0:
                tags += self._held_tags(gone)
        self._suspect(event, tuple(dict.fromkeys(tags)))

    def _held_tags(self, gone: Mapping) -> Tags:
        """What keeps the memory of a mapping that went alive: other mappings, or references."""
        memory = gone.memory
        if memory.references <= 0:
            return ("DRIVER-61",)
        past = self._trails.past(memory)
        if self._trails.times.get((gone.address, memory), 0) >= MANY:
            return ("DRIVER-46",)
        return ("DRIVER-29",) if past.retained and past.released else ("DRIVER-26",)

    def _history_tags(self, memory: Memory) -> Tags:
        """Invariants about when memory comes back, by what it has been through."""
        past = self._trails.past(memory)
        return (
            *(("DRIVER-29",) if past.retained else ()),
            *(("DRIVER-61",) if past.aliased else ()),
            *((FAILED_MAP,) if past.failed_map else ()),
        )

    def _back(self, memory: Memory) -> None:
        if memory.device in self.free:
            self.free[memory.device] += memory.size

    def _suspect(self, event: Event, tags: Tags) -> None:
        for device in self.free:
            self._suspects.setdefault(device, []).append((tags, event))

    # -- answers

    def asked(self, event: Event) -> None:
        """The driver said what is free."""
        device, (free, _) = event.args[0], event.result
        self._first.setdefault(device, free)
        suspects = self._suspects.pop(device, [])
        if self._closed:
            return
        expected = self.free.get(device, free)
        if device not in self._open and abs(free - expected) > self._facts.tolerance:
            self._wrong(event, suspects, expected, free)
        elif not self._facts.real or self._telling(device, expected):
            for tags, _ in suspects:
                for tag in tags:
                    self._judge.witness(tag)
        self.free[device] = self._seen[device] = free
        self._open.discard(device)

    def _telling(self, device: int, expected: int) -> bool:
        """Whether a change of this size, or none at all, can be told from noise."""
        change = abs(expected - self._seen.get(device, expected))
        return change == 0 or change > self._facts.tolerance

    def _wrong(self, event: Event, suspects: list[tuple[Tags, Event]], expected: int, free: int) -> None:
        self._closed = True
        tags, cause = suspects[-1] if suspects else ((TEARDOWN,), event)
        if cause.who != SUBJECT:  # the teardown looks once, when all is done
            tags = (TEARDOWN,)
        for tag in dict.fromkeys(tags):
            self._judge.expect(
                tag, event, False, f"free memory of device {event.args[0]} after {cause.kind}",
                expected=f"{expected} bytes", actual=f"{free} bytes", cause=cause.seq,
            )  # fmt: skip

    def torn_down(self, event: Event) -> None:
        """Everything was given back, and the driver took it: all memory is free again."""
        details = event.args[1]
        if not details["complete"] or not self._first or self._closed:
            return
        tolerance = self._facts.tolerance
        for device, first in self._first.items():
            left = self._seen[device]
            self._judge.expect(
                TEARDOWN, event, abs(left - first) <= tolerance,
                f"free memory of device {device} after everything was given back",
                expected=f"{first} bytes, as before", actual=f"{left} bytes",
            )  # fmt: skip
        live = details["live"]
        if live is None:
            return
        self._judge.expect(
            TEARDOWN, event, not any(live), "the driver still holds something after everything was given back",
            expected="no reservation, handle, mapping, allocation or byte",
            actual=", ".join(f"{n} {what}" for n, what in zip(live, _LIVE, strict=True)),
        )  # fmt: skip


_LIVE: Final = ("reservations", "handles", "mappings", "allocations", "bytes")
