"""Copies by the host and by streams: whether they had to be accepted, and whether the bytes are right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.driver_bytes import Chunk, Contents
from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_rules import OPEN, Ruling, blamed, right_of_host
from vmm_conformance.checkers.driver_trails import LIFE_CYCLE, Tags, Trails, later
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Memory, Part, State

NO_ACCESS: Final = "DRIVER-49"
READ_ONLY: Final = "DRIVER-50"
SEAM: Final = "DRIVER-62"
RESERVATIONS: Final = "DRIVER-63"
SHARED: Final = "DRIVER-39"
ALIAS: Final = "DRIVER-60"
OTHER_ALIAS: Final = "DRIVER-61"
NEW_MEMORY: Final = "DRIVER-44"
AT_ONCE: Final = "DRIVER-74"
WAITS: Final = "DRIVER-75"

_STREAM: Final = {"write": 2, "read": 2, "copy": 3, "fill": 3}


class Touch(NamedTuple):
    """One range that a call reads or writes, and what stands behind it."""

    range: Range
    writes: bool
    parts: list[Part]


class Job:
    """Submitted work. ``unclear``: other work in flight touches the same bytes, in no order."""

    __slots__ = ("event", "ruling", "stream", "touches", "unclear")

    def __init__(self, event: Event, stream: int | None, touches: list[Touch], ruling: Ruling) -> None:
        self.event = event
        self.stream = stream
        self.touches = touches
        self.ruling = ruling
        self.unclear = False


class Data:
    """Follows the bytes through a history."""

    def __init__(self, facts: Facts, state: State, trails: Trails, judge: Judge) -> None:
        self.contents = Contents()
        self._facts = facts
        self._state = state
        self._trails = trails
        self._judge = judge
        self._streams: dict[int, int] = {}
        self._jobs: dict[int, Job] = {}
        self._early: dict[int, Event] = {}
        self._just_ran: list[Job] = []
        self._next: Job

    # -- rulings

    def rule(self, event: Event) -> Ruling:
        """The ruling on a call that moves bytes. That on queued work concerns its run as well."""
        stream = event.args[_STREAM[event.kind]]
        touches = [Touch(r, writes, self._state.parts(*r)) for r, writes in _ranges(event)]
        rulings = [self._rule_touch(touch, stream) for touch in touches]
        refuse = tuple(tag for ruling in rulings for tag in ruling.refuse)
        clear = all(ruling.tags for ruling in rulings)
        accept = tuple(dict.fromkeys(tag for ruling in rulings for tag in ruling.accept)) if clear else ()
        ruling = Ruling(refuse) if refuse else Ruling((), accept)
        self._next = Job(event, stream, touches, ruling)
        return ruling if stream is None or not refuse else OPEN

    def _rule_touch(self, touch: Touch, stream: int | None) -> Ruling:
        parts, (address, size) = touch.parts, touch.range
        if size <= 0:
            return OPEN
        if sum(part.high - part.low for part in parts) < size:
            plain = any(a.address < address + size and address < a.address + a.size for a in self._state.allocations)
            return OPEN if plain else Ruling((NO_ACCESS,))  # nothing is said of what lies in plain memory in part
        seam = _seam(parts)
        if seam == RESERVATIONS and not self._facts.capabilities.copy_spans_reservations:
            return Ruling((RESERVATIONS,))
        rulings = [self._rule_part(part, touch.writes, stream) for part in parts]
        refused = tuple(tag for ruling in rulings for tag in ruling.refuse)
        if refused or not all(ruling.accept for ruling in rulings):
            return Ruling(refused)
        return Ruling((), (seam,) if len(parts) > 1 else rulings[0].accept)

    def _rule_part(self, part: Part, writes: bool, stream: int | None) -> Ruling:
        device = part.memory.device if stream is None else self._streams.get(stream)
        if device is None:
            return OPEN  # of a stream that nobody has created it is not known whose rights count
        view = self._trails.views.get(part.mapping) if part.mapping else None
        if view is None:
            return Ruling((), (LIFE_CYCLE,)) if device == part.memory.device else OPEN
        start = view.mapping.address - view.mapping.offset
        low, high = start + part.low, start + part.high
        if stream is None:
            sure, most = right_of_host(view, low, high, self._facts)
        else:
            sure = most = view.least(device, low, high)
        if most == Access.NONE:
            return Ruling((NO_ACCESS,))
        if not writes or sure == Access.READ_WRITE:
            blame: Tags = (AT_ONCE,)
            if stream is None:
                blame = blamed(later(view.bytes.culprit, view.access.culprit), (LIFE_CYCLE,))
            return Ruling((), blame) if sure else OPEN
        if self._facts.capabilities.read_only_enforced:
            return Ruling((READ_ONLY,)) if most == Access.READ else OPEN
        return Ruling((), (READ_ONLY,)) if sure else OPEN

    # -- what happened

    def submitted(self, event: Event) -> None:
        """A call that moves bytes was accepted: it has run already, or will."""
        job = self._next
        for other in self._jobs.values():
            if other.stream != job.stream and _conflict(other, job):
                other.unclear = job.unclear = True
        ran = self._early.pop(event.result, None)
        if ran is not None:
            self._perform(job, ran)
        else:
            self._jobs[event.result] = job

    def stream_created(self, event: Event) -> None:
        """Streams belong to a device."""
        self._streams[event.result] = event.args[0]

    def ran(self, event: Event) -> None:
        """Work ran, or met a fault. On an eager schedule that is reported before its submission is."""
        job = self._jobs.pop(event.args[0], None)
        if job is None:
            self._early[event.args[0]] = event
        else:
            if job.stream is not None:
                self._just_ran.append(job)
            self._perform(job, event)

    def call_over(self, event: Event) -> None:
        """Some call returned. If it was an unmap that has to wait, no work on its range may be left."""
        if event.kind == "unmap" and event.status == 0 and self._facts.capabilities.unmap_waits:
            ended = [m for m in self._state.ended if isinstance(m, Mapping)]
            waited = any(_uses(job, ended) for job in self._just_ran)
            left = [job for job in self._jobs.values() if _uses(job, ended)]
            if waited or left:
                self._judge.expect(
                    WAITS, event, not left, "unmap returned while work that uses the range was in flight",
                    expected="unmap waits for it, as declared", actual="it had not run yet",
                )  # fmt: skip
        if self._just_ran:
            self._just_ran = []

    def ended(self) -> None:
        """Forget memory that is gone."""
        for gone in self._state.ended:
            if isinstance(gone, Memory):
                self.contents.end(gone)

    def _perform(self, job: Job, ran: Event) -> None:
        fault = ran.args[2]
        if fault is not None or job.ruling.refuse:
            self._judge_fault(job, ran)
        if fault is None and not job.ruling.refuse and not job.unclear:
            for touch in job.touches:
                if not touch.writes and job.event.kind == "read" and ran.args[1]:
                    self._check(job, ran, touch, ran.args[1][0])
            self._apply(job, ran.seq)
            return
        if fault is None:
            self._lose(job)

    def _lose(self, job: Job) -> None:
        """Work ran, and nobody knows what it found there."""
        for touch in job.touches:
            for part in touch.parts:
                if touch.writes:
                    self.contents.forget(part.memory, part.low, part.high)
                else:
                    self.contents.mark_spread(part.memory, part.low, part.high)

    def _judge_fault(self, job: Job, ran: Event) -> None:
        fault, ruling = ran.args[2], job.ruling
        where = job.touches[0].range
        if ruling.refuse:
            if job.stream is not None:
                for tag in dict.fromkeys(ruling.refuse):
                    self._judge.expect(
                        tag, ran, fault is not None, f"queued {job.event.kind} must not touch its range",
                        expected="it is refused, or faults", actual="it ran", range=where,
                    )  # fmt: skip
        elif ruling.accept:
            for tag in ruling.accept:
                self._judge.expect(
                    tag, ran, False, f"queued {job.event.kind} on memory with rights met a fault",
                    expected="it runs", actual=f"fault: {fault.reason}", range=where,
                )  # fmt: skip

    # -- bytes

    def _apply(self, job: Job, seq: int) -> None:
        event = job.event
        if event.kind == "write":
            self._store(job.touches[0].parts, 0, event.args[1], seq)
        elif event.kind == "fill":
            self._store(job.touches[0].parts, 0, bytes([event.args[1]]) * event.args[2], seq, spread=True)
        elif event.kind == "copy":
            self._copy(job, seq)

    def _store(self, parts: Iterable[Part], at: int, data: bytes, seq: int, *, spread: bool = False) -> None:
        for part in parts:
            size = part.high - part.low
            self.contents.put(part.memory, Chunk(part.low, data[at : at + size], part.mapping, seq, spread))
            at += size

    def _copy(self, job: Job, seq: int) -> None:
        source, target = job.touches
        known = self._gather(source.parts)
        for part in source.parts:
            self.contents.mark_spread(part.memory, part.low, part.high)
        at = 0
        for part in target.parts:
            size = part.high - part.low
            self.contents.forget(part.memory, part.low, part.high)
            for low, data in known:
                first, last = max(low, at), min(low + len(data), at + size)
                if first < last:
                    piece = data[first - low : last - low]
                    self.contents.put(part.memory, Chunk(part.low + first - at, piece, part.mapping, seq, True))
            at += size

    def _gather(self, parts: Iterable[Part]) -> list[tuple[int, bytes]]:
        """The known pieces of a range: distance from its start, and bytes."""
        pieces: list[tuple[int, bytes]] = []
        at = 0
        for part in parts:
            known = self.contents.known(part.memory, part.low, part.high)
            pieces += [(at + chunk.low - part.low, chunk.data) for chunk in known]
            at += part.high - part.low
        return pieces

    def _check(self, job: Job, ran: Event, touch: Touch, data: bytes) -> None:
        at = 0
        for part in touch.parts:
            size = part.high - part.low
            self._check_part(job, ran, part, data[at : at + size], _seam(touch.parts))
            at += size

    def _check_part(self, job: Job, ran: Event, part: Part, data: bytes, seam: str) -> None:
        chunks = self.contents.known(part.memory, part.low, part.high)
        for chunk in chunks:
            got = data[chunk.low - part.low : chunk.high - part.low]
            if got == chunk.data:
                self._right(job, part, chunk, seam)
            else:
                self._wrong(job, ran, part, chunk, got, seam)
        if len(data) >= 8 and not chunks:
            self._unknown(ran, part, data)

    def _unknown(self, ran: Event, part: Part, data: bytes) -> None:
        """Nobody wrote here, so anything may be here but what is alive in other memory."""
        if self.contents.memories:
            owner = next(self.contents.owners(data, part.memory), None)
            self._judge.expect(
                SHARED, ran, owner is None, "memory shows the bytes of another handle", range=_where(part),
                expected="anything but bytes that were written to another handle", actual=data[:24],
            )  # fmt: skip

    def _right(self, job: Job, part: Part, chunk: Chunk, seam: str) -> None:
        view = self._trails.views.get(part.mapping) if part.mapping else None
        chunk.seen.add(part.mapping)
        tags: list[str] = [seam] if seam else []
        if job.stream is not None:
            tags.append(AT_ONCE)
        if self.contents.memories > 1:
            tags.append(SHARED)
        if view is not None:
            self._trails.prove_bytes(view.bytes, chunk.seq)
            if _alias_of(chunk, part):
                tags.append(ALIAS)
            if view.replaced:
                tags.append(NEW_MEMORY)
        for tag in tags or [LIFE_CYCLE]:
            self._judge.witness(tag)

    def _wrong(self, job: Job, ran: Event, part: Part, chunk: Chunk, got: bytes, seam: str) -> None:
        tags, cause = self._blame(part, chunk, got, seam, job)
        self.contents.forget(part.memory, chunk.low, chunk.high)
        for tag in tags:
            self._judge.expect(
                tag, ran, False, f"bytes {chunk.low} to {chunk.high} of the memory are not what was written",
                expected=chunk.data[:24], actual=got[:24], range=_where(part), cause=cause,
            )  # fmt: skip

    def _blame(self, part: Part, chunk: Chunk, got: bytes, seam: str, job: Job) -> tuple[Tags, int | None]:
        """Which invariants are broken by bytes that are not what was written, and by which event."""
        view = self._trails.views.get(part.mapping) if part.mapping else None
        if any(self.contents.owners(got, part.memory)):
            return (NEW_MEMORY, SHARED) if view is not None and view.replaced else (SHARED,), None
        if _alias_of(chunk, part) and part.mapping not in chunk.seen:
            return (ALIAS,), chunk.seq
        suspect = view.bytes.culprit if view is not None else None
        if suspect is not None and suspect.event.seq > chunk.seq and suspect.tags:
            return suspect.tags, suspect.event.seq
        if seam:
            return (seam,), chunk.seq
        return (AT_ONCE if job.stream is not None else LIFE_CYCLE,), chunk.seq


def _alias_of(chunk: Chunk, part: Part) -> bool:
    """Whether ``chunk`` was written through another mapping, which is still there."""
    return chunk.via is not None and chunk.via is not part.mapping and chunk.via.ended < 0


def _seam(parts: list[Part]) -> str:
    """Which invariant is about a range of several parts: they lie in one reservation, or in several."""
    if len(parts) < 2:
        return ""
    inside = {part.mapping.reservation if part.mapping else None for part in parts}
    return SEAM if len(inside) == 1 else RESERVATIONS


def _where(part: Part) -> Range:
    mapping = part.mapping
    start = part.memory.address if mapping is None else mapping.address - mapping.offset
    return Range(start + part.low, part.high - part.low)


def _ranges(event: Event) -> list[tuple[Range, bool]]:
    args: tuple[Any, ...] = event.args
    if event.kind == "write":
        return [(Range(args[0], len(args[1])), True)]
    if event.kind == "read":
        return [(Range(args[0], args[1]), False)]
    if event.kind == "fill":
        return [(Range(args[0], args[2]), True)]
    return [(Range(args[1], args[2]), False), (Range(args[0], args[2]), True)]


def _conflict(one: Job, other: Job) -> bool:
    return any(
        (a.writes or b.writes) and p.memory is q.memory and p.low < q.high and q.low < p.high
        for a in one.touches for b in other.touches for p in a.parts for q in b.parts
    )  # fmt: skip


def _uses(job: Job, mappings: list[Mapping]) -> bool:
    return any(part.mapping in mappings for touch in job.touches for part in touch.parts)
