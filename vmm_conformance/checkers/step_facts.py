"""What a history of steps says, gathered in one walk for every rule of ``skip-remap``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vmm_conformance.checkers.step_plan import PlanFacts
from vmm_conformance.contracts import Buffer, Range, Use
from vmm_conformance.history.events import CALLS, SUBJECT, WORK, Event
from vmm_conformance.history.ordering import Hazard, Race
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Memory, Reservation, State

SYNCS = frozenset({"stream_synchronize", "event_synchronize", "device_synchronize"})
FREEING = frozenset({"unmap", "address_free", "release", "free", "event_destroy", "stream_destroy"})


@dataclass(slots=True)
class Place:
    """What stands behind one table entry when execution begins.

    ``kind``: ``original`` (the caller's own address), ``mapped`` (caller's memory at an address of the
    subject's), ``shadow`` (memory of the subject's own), ``nothing``.
    """

    kind: str
    memory: Memory | None = None
    reservation: Reservation | None = None
    rights: int = 0
    covered: bool = False


@dataclass(slots=True)
class Track:
    """One executable on one device: what froze when execute was first called there."""

    executable: int
    device: int
    plan: PlanFacts
    frozen: bool = False
    table: list[Range] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    promised: dict[int, int] = field(default_factory=dict)
    """Persistent slots and the address each had when it was promised first."""
    closed_at: int | None = None
    attempts: int = 0
    failed_at: int = -1
    """Number of the event at which a step last failed before it executed."""
    struck: set[str] = field(default_factory=set)
    """Kinds of driver calls made to fail since the last step that executed."""

    def small(self, slot: int, size: int) -> bool:
        """Whether a slot is small: as frozen, or as its size says before that."""
        frozen = self.sizes[slot] if self.frozen else size
        return self.plan.is_small(frozen)


@dataclass(slots=True)
class Step:
    """One step, from the harness's call to its return, as one thread saw it."""

    begun: Event
    track: Track
    stream: int
    buffers: tuple[Buffer, ...]
    uses: tuple[Use | None, ...]
    wanted: str
    thread: int
    first: bool
    frozen_before: bool
    closed: bool
    moved: set[int] = field(default_factory=set)
    """Selected mapped slots whose address did not show the buffer's memory when the step began."""
    calls: list[Event] = field(default_factory=list)
    executes: list[Event] = field(default_factory=list)
    submitted: bool = False
    table: tuple[Range, ...] = ()
    persistent: tuple[int, ...] | None = None
    places: list[Place] = field(default_factory=list)
    ended: Event | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    previous: Step | None = None
    struck_before: frozenset[str] = frozenset()
    """Kinds of driver calls made to fail between the last executed step and this one."""
    failed_before: int = -1
    left: list[str] = field(default_factory=list)
    """What the subject made in this step and still holds at its end."""

    @property
    def injected(self) -> list[Event]:
        """The calls of this step that a fault struck."""
        return [call for call in self.calls if call.result == "injected" and call.status]

    @property
    def executed(self) -> bool:
        """Whether execute was called."""
        return bool(self.executes)

    @property
    def ok(self) -> bool:
        """Whether the step ended well."""
        return self.outcome.get("status") == "ok"


@dataclass(slots=True)
class TakenAway:
    """A hazard of the subject's making, with the step that used the memory and the track's last step."""

    hazard: Hazard
    user: Step | None
    last: Step | None
    closing: bool


class Facts(Visitor):
    """A visitor that gathers steps, tracks, hazards, races and leftovers."""

    def __init__(self, replay: Replay, plans: list[PlanFacts], spaces: list[list[int]]) -> None:
        self.state: State = replay.state
        self.steps: list[Step] = []
        self.steps_by_thread: dict[int, Step] = {}
        self.taken: list[TakenAway] = []
        self.races: list[Race] = []
        self.unmaps: list[tuple[Event, Step | None]] = []
        self.challenges: list[tuple[Event, Step]] = []
        self.notes: list[Event] = []
        self.ran: dict[int, Event] = {}
        self.works: dict[int, Event] = {}
        self.work_step: dict[int, Step] = {}
        self.tracks: dict[tuple[int, int], Track] = {}
        self.struck: set[str] = set()
        self.closing: int | None = None
        self.close_calls: list[Event] = []
        self.made: dict[tuple[str, int], int] = {}
        """The subject's events and streams, by kind and number, and the calls that made them."""
        self.references: dict[int, list[int]] = {}
        """The calls by which the subject came to the references that it holds, by handle."""
        self.left: list[tuple[str, str]] = []
        self.spaces = spaces
        self._order = replay.order
        self._events = replay.history.events
        self.traced = bool(replay.history.header.get("traced", True))
        self._plans = plans
        self._open: dict[int, Step] = {}
        self._closed: dict[int, int] = {}
        self._last: dict[tuple[int, int], Step] = {}

    def event(self, seq: int | None) -> Event | None:
        """The event with a number, if there is one."""
        return self._events[seq] if seq is not None and 0 <= seq < len(self._events) else None

    def open_steps(self) -> list[Step]:
        """The steps that have begun and not returned, of all threads."""
        return list(self._open.values())

    # -- the walk

    def after(self, event: Event) -> None:
        """File the event under its step."""
        kind = event.kind
        if kind == "note":
            self._note(event)
        elif kind == "ran":
            self.ran[event.args[0]] = event
        elif kind in CALLS:
            self._call(event)

    def _call(self, event: Event) -> None:
        step = self._open.get(event.thread)
        if event.kind in WORK and event.status == 0:
            self.works[event.result] = event
            if step is not None:
                self.work_step[event.seq] = step
        if event.who == SUBJECT:
            self._subject_call(event, step)
        for hazard in self._order.hazards:
            if event.who == SUBJECT:
                self._take(hazard, step)
        self.races.extend(self._order.races)

    def _subject_call(self, event: Event, step: Step | None) -> None:
        if step is not None:
            step.calls.append(event)
        elif self.closing is not None:
            self.close_calls.append(event)
        if event.status:
            if event.result == "injected":
                self.struck.add(event.kind)
            return
        if event.kind == "unmap":
            self.unmaps.append((event, step))
        elif event.kind in ("event_create", "stream_create"):
            self.made[event.kind.removesuffix("_create"), event.result] = event.seq
        elif event.kind in ("event_destroy", "stream_destroy"):
            self.made.pop((event.kind.removesuffix("_destroy"), event.args[0]), None)
        elif event.kind in ("create", "retain"):
            self.references.setdefault(event.result, []).append(event.seq)
        elif event.kind == "release":
            del self.references.get(event.args[0], [])[-1:]

    def _take(self, hazard: Hazard, step: Step | None) -> None:
        user = self.work_step.get(hazard.use.event.seq)
        track = step.track if step else user.track if user else None
        last = self._last.get((track.executable, track.device)) if track else None
        self.taken.append(TakenAway(hazard, user, last, step is None))

    # -- notes

    def _note(self, event: Event) -> None:
        what, details = event.args
        self.notes.append(event)
        if what == "step":
            self._begin(event)
        elif what == "execute":
            self._execute(event, details)
        elif what == "executed":
            self._open[event.thread].submitted = True
        elif what == "stepped":
            self._end(event, details)
        elif what == "close":
            self.closing = details["executable"]
        elif what == "closed":
            self.closing = None
            self._closed.setdefault(details["executable"], event.seq)
            for (executable, _), track in self.tracks.items():
                track.closed_at = self._closed.get(executable)
        elif what == "challenge":
            self.challenges.append((event, self._open[event.thread]))
        elif what == "drained":
            self.left = self._subject_objects(0)

    def _track(self, details: dict[str, Any]) -> Track:
        key = details["executable"], details["device"]
        track = self.tracks.get(key)
        if track is None:
            track = self.tracks[key] = Track(*key, self._plans[key[0]], closed_at=self._closed.get(key[0]))
        return track

    def _begin(self, event: Event) -> None:
        details = event.args[1]
        track = self._track(details)
        track.attempts += 1
        step = Step(
            event, track, details["stream"], details["buffers"], details["uses"], details["outcome"],
            event.thread, track.attempts == 1, track.frozen, track.closed_at is not None,
        )  # fmt: skip
        step.failed_before = track.failed_at
        step.previous = self._last.get((track.executable, track.device))
        if track.frozen:
            step.moved = {
                slot
                for slot in track.plan.remapped
                if step.buffers[slot].size
                and not track.small(slot, step.buffers[slot].size)
                and not self.shows(track.table[slot].address, step.buffers[slot], track.device)
            }
        self._open[event.thread] = self.steps_by_thread[event.thread] = step
        self.steps.append(step)

    def shows(self, address: int, buffer: Buffer, device: int) -> bool:
        """Whether ``address`` shows the buffer's memory, with rights, for its whole logical size."""
        mapping = self.state.mapping_at(address)
        return (
            mapping is not None
            and mapping.memory.handle == buffer.handle
            and mapping.rights.get(device) == 3
            and mapping.address + mapping.size >= address + buffer.size
        )

    def _execute(self, event: Event, details: dict[str, Any]) -> None:
        step = self._open[event.thread]
        step.executes.append(event)
        step.table, step.persistent = details["table"], details["persistent"]
        if len(step.table) != len(step.buffers):
            return
        track = step.track
        entries = enumerate(zip(step.table, step.buffers, strict=True))
        step.places = [self._place(entry, buffer, track, slot) for slot, (entry, buffer) in entries]
        if not track.frozen:
            track.frozen = True
            track.table = list(step.table)
            track.sizes = [buffer.size for buffer in step.buffers]
            track.places = step.places

    def _place(self, entry: Range, buffer: Buffer, track: Track, slot: int) -> Place:
        if entry.address == buffer.address:
            return Place("original")
        mapping = self.state.mapping_at(entry.address)
        memory = mapping.memory if mapping else self.state.allocation_at(entry.address)
        reservation = mapping.reservation if mapping else self.state.reservation_at(entry.address)
        if memory is None and self.traced:
            return Place("nothing", reservation=reservation)
        if memory is None:  # the subject's calls cannot be seen: its class is the one the slot should have
            return Place("shadow" if track.small(slot, buffer.size) else "mapped")
        place = Place("shadow" if memory.who == SUBJECT else "mapped", memory, reservation)
        if mapping is not None:
            place.rights = mapping.rights.get(track.device, 0)
            place.covered = entry.address + entry.size <= mapping.address + mapping.size
        return place

    def _end(self, event: Event, details: dict[str, Any]) -> None:
        step = self._open.pop(event.thread)
        step.ended = event
        step.outcome = details["outcome"]
        if not step.frozen_before and not step.executed:
            step.left = [what for _, what in self._subject_objects(step.begun.seq)]
        track = step.track
        step.struck_before = frozenset(track.struck)
        if step.executed:
            self._last[track.executable, track.device] = step
            track.struck.clear()
        else:
            track.failed_at = event.seq
        track.struck.update(call.kind for call in step.injected)

    def _subject_objects(self, since: int) -> list[tuple[str, str]]:
        """What the subject made from event ``since`` on and still holds: kind and description."""
        state = self.state
        found = [("reservation", f"reservation of {r.size} bytes", r.who, r.made) for r in state.reservations.values()]
        found += [("mapping", f"mapping of {m.size} bytes", m.who, m.made) for m in state.mappings]
        found += [("allocation", f"allocation of {a.size} bytes", a.who, a.made) for a in state.allocations]
        found += [(kind, kind, SUBJECT, made) for (kind, _), made in self.made.items()]
        found += [
            ("handle", f"reference to handle {handle}", SUBJECT, made)
            for handle, references in self.references.items()
            for made in references
        ]
        return [(kind, what) for kind, what, who, made in found if who == SUBJECT and made >= since]
