"""What a program did wrong as a client of a driver: leaks, illegal calls, illegal accesses, unordered unmaps.

Judges the history of any program, with no contract but the driver's between it and us. A call is illegal if the
driver refused it, and the rule that it broke is one of the driver's invariants. A driver that is out of memory,
or has no such function, refuses what was legal to ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from vmm_conformance.checkers.driver_facts import facts_of
from vmm_conformance.checkers.driver_rules import Rules
from vmm_conformance.checkers.driver_trails import Trails
from vmm_conformance.checkers.judge import Finding, Judge
from vmm_conformance.contracts import Granularity, Range, Status, status_name
from vmm_conformance.history.events import SUBJECT, WORK, Event, History
from vmm_conformance.history.ordering import Hazard, accesses
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Mapping, Memory, Reservation

LEAK: Final = "leak"
CALL: Final = "illegal call"
ACCESS: Final = "illegal access"
ORDER: Final = "unordered unmap"

GIVES_BACK, STAYS = "ALLOCATOR-8", "ALLOCATOR-5"
NO_ACCESS = "DRIVER-49"
_LEGAL: Final = (Status.OUT_OF_MEMORY, Status.NOT_SUPPORTED)
_KEPT: Final = 1000
"""How many ended mappings are remembered, to say when what was there went."""


class Complaint(NamedTuple):
    """One thing that is wrong. ``finding`` names the invariant; ``cause`` is the event that led there, or None.

    ``seq`` of the finding and ``cause`` are events that somebody's call stack belongs to.
    """

    kind: str
    finding: Finding

    @property
    def cause(self) -> int | None:
        """The other event that it is about."""
        return self.finding.cause


def complaints(history: History) -> list[Complaint]:
    """All that is wrong in ``history``, in the order in which it came up; leaks are last."""
    replay = Replay(history)
    client = _Client(history, replay)
    replay.walk(client)
    return client.complaints


class _Client(Visitor):
    def __init__(self, history: History, replay: Replay) -> None:
        self.complaints: list[Complaint] = []
        self._state = replay.state
        self._order = replay.order
        facts = facts_of(history)
        if not facts.minimum:  # nothing is judged by a granule that a library does not tell
            facts = replace(facts, granularity={(0, 0): Granularity(1, 1)})
        self._trails = Trails(replay.state, Judge(), facts.minimum)
        self._rules = Rules(facts, replay.state, self._trails)
        self._broken = ""
        self._works: dict[int, Event] = {}
        self._gone: deque[tuple[Range, Event]] = deque(maxlen=_KEPT)
        self._follow: dict[str, Callable[[Event], None]] = {
            "map": self._trails.mapped,
            "unmap": self._trails.unmapped_now,
            "address_free": self._trails.address_freed,
        }

    def before(self, event: Event) -> None:
        """Find the rule that a call breaks, while the state is as the call found it."""
        if event.who == SUBJECT and event.status:
            self._broken = next(iter(self._rules.rule(event).refuse), "")

    def after(self, event: Event) -> None:
        """Judge a call, or work that ran."""
        if event.kind == "ran":
            self._ran(event)
        elif event.kind == "note":
            self._note(event)
        elif event.who == SUBJECT:
            self._called(event)

    def finish(self) -> None:
        """The program is over: what it still holds it has leaked."""
        state = self._state
        for memory in state.handles.values():
            self._leak(memory, _of_handle(memory))
        for allocation in state.allocations:
            self._leak(allocation, f"{allocation.size} bytes of plain memory at {allocation.address:#x}")
        for reservation in state.reservations.values():
            mapped = sum(m.size for m in state.mappings_in(reservation.address, reservation.size))
            inside = f", with {mapped} bytes mapped" if mapped else ""
            self._leak(reservation, f"the reservation {reservation.address:#x}+{reservation.size}{inside}")

    # -- calls

    def _called(self, event: Event) -> None:
        if event.status:
            self._refused(event)
            return
        follow = self._follow.get(event.kind)
        if follow is not None:
            follow(event)
        if event.kind in WORK:
            self._works[event.result] = event
        self._gone.extend((Range(m.address, m.size), event) for m in self._state.ended if isinstance(m, Mapping))
        if event.kind == "unmap":
            for hazard in self._order.hazards:
                self._unordered(event, hazard)

    def _refused(self, event: Event) -> None:
        if event.status in _LEGAL:
            return
        if event.kind in WORK and event.status == Status.ILLEGAL_ADDRESS:
            self._no_access(event)
            return
        self._complain(
            CALL, self._broken, event, f"{event.kind}{_numbers(event)} was refused with {status_name(event.status)}"
        )

    def _note(self, event: Event) -> None:
        """The library itself refused a call, which so never reached the driver."""
        what, details = event.args
        if what == "refused" and details["status"] not in _LEGAL:
            status = status_name(details["status"])
            self._complain(CALL, "", event, f"{details['call']} was refused with {status}: {details['detail']}")

    def _no_access(self, event: Event) -> None:
        """The host may not touch what a call names. If something was there, say what took it away."""
        for address, size, _ in accesses(event):
            gone = next((e for r, e in reversed(self._gone) if r.address <= address < r.end), None)
            if gone is not None and self._state.mapping_at(address) is None:
                what = f"{event.kind} of {_place(Range(address, size))} after it was unmapped"
                self._complain(ACCESS, NO_ACCESS, event, what, gone)
                return
        self._complain(ACCESS, NO_ACCESS, event, f"{event.kind}{_numbers(event)} touches what the host may not touch")

    # -- work

    def _ran(self, event: Event) -> None:
        work, _, fault = event.args
        submitted = self._works.pop(work, event)
        if fault is not None:
            what = f"queued {submitted.kind} touches {_place(Range(fault.address, fault.size))}: {fault.reason}"
            id = NO_ACCESS if event.result is None else STAYS
            self.complaints.append(Complaint(ACCESS, Finding(id, submitted.seq, 0, what, cause=event.result)))

    def _unordered(self, event: Event, hazard: Hazard) -> None:
        use = hazard.use
        self._complain(
            ORDER, STAYS, event,
            f"unmap of {_place(Range(*event.args[:2]))} while {use.event.kind} on stream {use.stream} may still use it",
            use.event,
        )  # fmt: skip

    # -- saying it

    def _leak(self, what: Memory | Reservation, text: str) -> None:
        self.complaints.append(Complaint(LEAK, Finding(GIVES_BACK, what.made, 0, text)))

    def _complain(self, kind: str, invariant: str, event: Event, text: str, cause: Event | None = None) -> None:
        finding = Finding(invariant, event.seq, 0, text, cause=cause.seq if cause else None)
        self.complaints.append(Complaint(kind, finding))


def _of_handle(memory: Memory) -> str:
    held = f"{memory.references} reference(s)" if memory.references else "no reference"
    mapped = f"{memory.mappings} mapping(s)" if memory.mappings else "not mapped"
    return f"handle {memory.handle} of {memory.size} bytes: {held}, {mapped}"


def _place(where: Range) -> str:
    return f"{where.address:#x}+{where.size}"


def _numbers(event: Event) -> str:
    shown = [hex(a) if isinstance(a, int) and a > 0xFFFF else str(a) for a in event.args if not isinstance(a, bytes)]
    return f"({', '.join(shown)})"
