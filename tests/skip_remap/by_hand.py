"""Histories of the contract ``skip-remap``, written by hand.

A step is a row of phases. What each does is right by itself; a wrong history leaves one out, adds one, or puts them in
another order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.skip_remap import judge
from vmm_conformance.contracts import Access, Buffer, Fault, Range, Use, Write
from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT, Event, History
from vmm_conformance.programs.skip_remap import Configuration, ExecutablePlan
from vmm_conformance.running.caller import guard, marks, round_up
from vmm_suites.scenarios.steps import G

RW: Final = Access.READ_WRITE
BASE: Final = 0x10_0000
"""Where the executor's range lies; its shadows lie a megabyte behind it, one a granule."""
SHADOWS: Final = 2 * BASE
BUFFERS: Final = 16 * BASE
EVENT: Final = 900
FIRST: Final = ("acquire", "create_event", "map", "copy_in", "execute", "copy_back", "record")
REMAP: Final = ("wait", "unmap", "map", "copy_in", "execute", "copy_back", "record")
STEADY: Final = ("copy_in", "execute", "copy_back", "record")
CLOSE: Final = ("wait", "unmap", "free_range", "free_shadows", "destroy_event")

Phase = str | Callable[[], object]


class Hand:
    """Writes events. One executable on device 0 unless told otherwise; streams are numbered from 1."""

    def __init__(self, *plans: ExecutablePlan, **configuration: Any) -> None:
        self.configuration = Configuration(plans, **configuration)
        repeated = {"rounds": self.configuration.rounds}
        self.history = History({"contract": "skip-remap", "configuration": self.configuration, **repeated})
        self.op, self.thread = -1, 0
        self.where = {"executable": 0, "device": 0, "stream": 1}
        self.buffers: tuple[Buffer, ...] = ()
        self.uses: tuple[Use | None, ...] = ()
        self.places: dict[int, int] = {}
        self.shadows: dict[int, int] = {}
        self.total = self.offset = 0
        self.states: dict[tuple[int, int], tuple[dict[int, int], dict[int, int], int, int]] = {}
        self.moving: Collection[int] = ()
        self.known: dict[int, dict[int, bytes]] = {}
        self.queue: list[tuple[int, tuple[bytes, ...]]] = []
        self._number = 0
        for number in range(1, 1 + self.configuration.streams * self.configuration.devices):
            self.harness("stream_create", (number - 1) // self.configuration.streams, result=number)

    # -- events

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        assert len(args) == len(FIELDS[kind]), kind
        event = Event(len(self.history), self.op, self.thread, who, kind, args, status, result)
        self.history.events.append(event)
        return event

    def subject(self, kind: str, *args: Any, status: int = 0, result: Any = None) -> Event:
        return self.event(SUBJECT, kind, args, status, result)

    def fails(self, kind: str, *args: Any) -> Event:
        """A call of the subject's that was made to fail."""
        return self.subject(kind, *args, status=2, result="injected")

    def harness(self, kind: str, *args: Any, result: Any = None) -> Event:
        return self.event(HARNESS, kind, args, 0, result)

    def note(self, what: str, **details: Any) -> Event:
        return self.event(HARNESS, "note", (what, details))

    def number(self) -> int:
        self._number += 1
        return self._number

    def token(self) -> bytes:
        return self.number().to_bytes(8, "little")

    # -- the caller's side

    def buffer(self, size: int, *, at: int = 0, committed: int = 0, handle: bool = True, device: int = 0) -> Buffer:
        """A buffer of the caller's with memory and contents. ``at`` takes an address a second time."""
        number = self.number()
        committed = committed or round_up(size, G)
        buffer = Buffer(at or BUFFERS + BASE * number, size, committed, 1000 + number, number)
        if not at:
            self.harness("reserve", committed, 0, 0, result=buffer.address)
        self.harness("create", committed, device, 0, result=buffer.handle)
        self.harness("map", buffer.address, committed, buffer.handle, 0)
        self.harness("set_access", buffer.address, committed, ((device, RW),))
        self.contents(buffer)
        return buffer if handle else buffer._replace(handle=None)

    def contents(self, buffer: Buffer, **work: int) -> None:
        """The caller has written ``buffer`` afresh."""
        self.known[buffer.allocation] = {offset: self.token()[:length] for offset, length in watched(buffer)}
        self.note("contents", allocation=buffer.allocation, tokens=dict(self.known[buffer.allocation]), **work)

    def free(self, buffer: Buffer) -> None:
        """The caller frees the memory of ``buffer`` and keeps the addresses."""
        self.harness("unmap", buffer.address, buffer.committed)
        self.harness("release", buffer.handle)

    def launch(self, stream: int = 1, *, reads: Sequence[Range] = (), writes: Sequence[Write] = ()) -> int:
        work = self.number()
        self.harness("launch", stream, tuple(reads), (), tuple(writes), result=work)
        return work

    # -- a step

    def turn_to(self, executable: int = 0, device: int = 0) -> None:
        """Go on with another executable, or on another device: each has addresses and an event of its own."""
        self.states[self.where["executable"], self.where["device"]] = self.places, self.shadows, self.total, self.offset
        fresh: Any = {}, {}, 0, len(self.states)
        self.places, self.shadows, self.total, self.offset = self.states.get((executable, device), fresh)
        self.where.update(executable=executable, device=device)

    def step(
        self,
        *buffers: Buffer,
        phases: Sequence[Phase] = FIRST,
        moved: Collection[int] | None = None,
        **how: Any,
    ) -> None:
        """One step; ``moved`` are the slots that the phases unmap and map, all mapped ones if it is None."""
        self.begin(*buffers, **{name: how.pop(name) for name in ("stream", "uses", "outcome") if name in how})
        self.moving = self.mapped() if moved is None else moved
        self.run(*phases)
        self.end(**how)

    def run(self, *phases: Phase) -> None:
        for phase in phases:
            (getattr(self, phase) if isinstance(phase, str) else phase)()

    def begin(
        self, *buffers: Buffer, stream: int = 1, uses: Sequence[Use | None] = (), outcome: str = "ok"
    ) -> None:
        self.op += not self.thread
        slots = self.configuration.executables[self.where["executable"]].slots
        self.buffers = buffers
        declared = (slot.use if buffer.size else None for slot, buffer in zip(slots, buffers, strict=True))
        self.uses = tuple(uses or declared)
        self.where["stream"] = stream
        self.note("step", **self.where, buffers=buffers, uses=self.uses, outcome=outcome)

    def end(self, status: str = "ok", code: str = "", message: str = "", *, look: bool = True, **sees: Any) -> None:
        outcome = {"status": status, "code": code, "message": message}
        self.note("stepped", **self.where, outcome=outcome)
        if look:
            self.observe(**sees)

    def refused(self, *buffers: Buffer, code: str = "INTERNAL", message: str, phases: Sequence[Phase] = ()) -> None:
        """A step that calls nothing but ``phases``, and is refused."""
        self.step(*buffers, phases=phases, moved=(), status="refused", code=code, message=message, look=False)

    def selected(self) -> list[int]:
        """The slots in use that are remapped."""
        slots = self.configuration.executables[self.where["executable"]].slots
        return [s for s in self.named() if self.buffers[s].size and not slots[s].constant]

    def named(self) -> list[int]:
        """The slots that the mode selects, constants included."""
        plan = self.configuration.executables[self.where["executable"]]
        counted = (c for c in plan.commands if c.traced or plan.mode == "NEVER_UPDATE")
        gated = plan.mode == "ALWAYS_UPDATE" or not plan.vmm
        return sorted({s for c in counted for s in c.slots if s < len(plan.slots) and not gated})

    def small(self) -> list[int]:
        """The selected slots that are shadowed, or would be if nothing had been settled yet."""
        plan = self.configuration.executables[self.where["executable"]]
        threshold = plan.copy_threshold if plan.platform == "ROCM" else 0
        fresh = not self.places and not self.shadows
        return [s for s in self.selected() if s in self.shadows or (fresh and self.buffers[s].size <= threshold)]

    def mapped(self) -> list[int]:
        return [slot for slot in self.selected() if slot not in self.small()]

    # -- phases, each right by itself

    def acquire(self) -> None:
        """Reserve what the mapped slots need, and allocate the shadows."""
        self.lay_out()
        if self.places:
            self.subject("reserve", self.total, G, 0, result=self.base)
        for slot, address in self.shadows.items():
            self.subject("alloc", self.buffers[slot].size, self.where["device"], 0, result=address)

    def lay_out(self) -> None:
        """Settle where slots lie; calls nothing."""
        small, mapped = self.small(), self.mapped()
        self.total = 0
        for slot in mapped:
            self.places[slot] = self.base + self.total
            self.total += round_up(self.buffers[slot].size, G)
        self.shadows = {slot: self.base + SHADOWS + G * slot for slot in small}

    @property
    def base(self) -> int:
        return BASE + self.offset * BASE // 8

    @property
    def end_event(self) -> int:
        return EVENT + self.offset

    def create_event(self) -> None:
        self.subject("event_create", self.where["device"], result=self.end_event)

    def map(self) -> None:
        for slot in self.moving:
            self.map_one(slot)
        self.grant()

    def map_one(self, slot: int, *, size: int = 0, status: int = 0) -> None:
        buffer = self.buffers[slot]
        size = size or self.room(slot)
        call = self.fails if status else self.subject
        call("map", self.places[slot], size, buffer.handle, 0)

    def room(self, slot: int) -> int:
        """What a slot's buffer takes up at its place, in bytes."""
        return min(self.buffers[slot].committed, round_up(self.buffers[slot].size, G))

    def grant(self) -> None:
        for slot in self.moving:
            self.subject("set_access", self.places[slot], self.room(slot), ((self.where["device"], RW),))

    def unmap(self) -> None:
        for slot in self.moving:
            self.subject("unmap", self.places[slot], G)

    def wait(self) -> None:
        self.subject("event_synchronize", self.end_event)

    def record(self) -> None:
        self.subject("event_record", self.end_event, self.where["stream"])

    def copy_in(self, *slots: int, extra: int = 0, stream: int | None = 0) -> None:
        for slot in slots or self.small():
            self.copy(self.shadows[slot], self.buffers[slot].address, self.buffers[slot].size + extra, stream)

    def copy_back(self, *slots: int, extra: int = 0, stream: int | None = 0) -> None:
        for slot in slots or self.written():
            self.copy(self.buffers[slot].address, self.shadows[slot], self.buffers[slot].size + extra, stream)

    def copy(self, target: int, source: int, size: int, stream: int | None = 0) -> None:
        """Stream 0 stands for the run stream, None for the host."""
        on = self.where["stream"] if stream == 0 else stream
        self.subject("copy", target, source, size, on, result=self.number())

    def written(self) -> list[int]:
        return [s for s in self.small() if (use := self.uses[s]) is not None and use.writes]

    def table(self, **changes: int) -> tuple[Range, ...]:
        """The right execution table, with ``changes`` by ``at0``, ``size2`` and so on."""
        fixed = {**self.places, **self.shadows}
        return tuple(
            Range(changes.get(f"at{n}", fixed.get(n, b.address)), changes.get(f"size{n}", b.size))
            for n, b in enumerate(self.buffers)
        )

    def execute(
        self,
        table: Sequence[Range] | None = None,
        persistent: tuple[int, ...] | None = (),
        *,
        submits: bool = True,
        sees: Mapping[int, bytes] = {},
    ) -> None:
        """The callback. ``sees`` is what it finds at a slot's start instead of what the buffer holds."""
        entries = self.table() if table is None else tuple(table)
        kept = tuple(s for s in self.named() if self.buffers[s].size) if persistent == () else persistent
        reads = [r for slot, use in enumerate(self.uses) if use is not None and use.reads for r in self.marks(slot)]
        writes = [
            (slot, offset, self.token()[:length])
            for slot, use in enumerate(self.uses)
            if use is not None and use.writes
            for _, offset, length in self.marks(slot)
        ]
        self.note("execute", **self.where, table=entries, persistent=kept, plan=Plan(reads, writes))
        if submits:
            self.submit(entries, reads, writes, sees)

    def marks(self, slot: int) -> list[tuple[int, int, int]]:
        return [(slot, offset, length) for offset, length in marks(self.buffers[slot].size)]

    def submit(
        self, table: Sequence[Range], reads: Sequence[Any], writes: Sequence[Any], sees: Mapping[int, bytes]
    ) -> None:
        work = self.launch(
            self.where["stream"],
            reads=[Range(table[slot].address + offset, length) for slot, offset, length in reads],
            writes=[Write(table[slot].address + offset, data) for slot, offset, data in writes],
        )
        found = [self.known.get(self.buffers[slot].allocation, {}).get(offset, b"?") for slot, offset, _ in reads]
        for at, (slot, offset, _) in enumerate(reads):
            if slot in sees and not offset:
                found[at] = sees[slot]
        self.queue.append((work, tuple(found)))
        for slot, offset, data in writes:
            self.known[self.buffers[slot].allocation][offset] = data
        self.note("executed", **self.where, results=((work, tuple(range(len(reads)))),))

    def observe(self, **sees: bytes) -> None:
        """The caller's look at its buffers. ``sees`` is what it finds at ``at0_8`` (slot 0, offset 8)."""
        looks: dict[tuple[int, int, int], bytes] = {}
        ranges = []
        for slot, buffer in enumerate(self.buffers):
            for offset, length in watched(buffer) if buffer.size and buffer.address else ():
                right = self.known[buffer.allocation][offset]
                if (buffer.allocation, offset, length) not in looks:
                    ranges.append(Range(buffer.address + offset, length))
                    looks[buffer.allocation, offset, length] = sees.get(f"at{slot}_{offset}", right)
        work = self.launch(self.where["stream"], reads=ranges)
        self.note("observe", **self.where, work=work, marks=tuple(looks))
        self.queue.append((work, tuple(looks.values())))

    # -- the end

    def free_range(self) -> None:
        if self.places:
            self.subject("address_free", self.base, self.total)

    def free_shadows(self) -> None:
        for address in self.shadows.values():
            self.subject("free", address)

    def destroy_event(self) -> None:
        self.subject("event_destroy", self.end_event)

    def close(self, *phases: Phase, status: str = "ok", executable: int = 0) -> None:
        """Close, with the right phases if none are given."""
        self.moving = list(self.places)
        self.note("close", executable=executable)
        self.run(*(phases or CLOSE))
        self.note("closed", executable=executable, outcome={"status": status, "code": "", "message": ""})

    def drain(self) -> None:
        """Everything that is queued runs, and the run is over."""
        self.complete()
        self.note("drained")

    def complete(self) -> None:
        """Everything that is queued runs."""
        self.harness("device_synchronize", 0)
        for work, data in self.queue:
            self.event(DEVICE, "ran", (work, data, None))
        self.queue.clear()

    def faults(self, work: Event, reason: str, *, cause: Event | None = None) -> None:
        """``work`` ran into a fault; ``cause`` is the call that took the memory or the rights away."""
        fault = Fault(BASE, 8, reason, 1)
        self.event(DEVICE, "ran", (work.result, (), fault), 0, cause.seq if cause else None)

    def last(self, kind: str) -> Event:
        """The latest event of a kind."""
        return next(event for event in reversed(self.history.events) if event.kind == kind)

    def judged(self) -> Judge:
        return judge(self.history)


class Plan:
    """What an execution reads and writes, as checkers look at it."""

    def __init__(self, reads: Sequence[Any], writes: Sequence[Any]) -> None:
        self.reads = tuple(reads)
        self.writes = tuple(writes)


def watched(buffer: Buffer) -> tuple[Range, ...]:
    """The tokens in a buffer and behind it."""
    return marks(buffer.size) + guard(buffer.size, buffer.committed)
