"""Histories of the contract ``reservation``, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.reservation import judge
from vmm_conformance.contracts import Access, DriverCapabilities, Fault, Range, Write
from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT, Event, History

G = 4096
BASE = 3 * G
"""Where reservation 1 lies: so low and odd that nothing which is done with an address does by chance."""
RW = Access.READ_WRITE
INVALID, PAST = "INVALID_ARGUMENT", "FAILED_PRECONDITION"
Slice = tuple[int, int, int, int, bool]


def one(offset: int, memory: int, *, size: int = G, skip: int = 0, required: bool = True) -> Slice:
    """One slice; ``offset`` counts granules."""
    return offset * G, skip, size, memory, required


def handle(memory: int) -> int:
    """The handle of an allocation."""
    return 100 + memory


def base(reserved: int) -> int:
    """Where a reservation lies."""
    return BASE + 16 * G * (reserved - 1)


def three(s: Story) -> None:
    """Mapping 1: allocations 1 to 3 at the second to fourth granule."""
    s.map_to(1, one(1, 1), one(2, 2), one(3, 3))


class Story:
    """Appends events. Allocations, reservations and mappings are numbers; all is on device 0 by default."""

    def __init__(self, **header: Any) -> None:
        takes = DriverCapabilities(**header.pop("takes", {}))
        facts = {
            "contract": "reservation", "granularity": (G, G), "reach": {0: (0,), 1: (1,)}, "devices": 1,
            "capacity": {0: 64 * G, 1: 64 * G}, "scopes": {"set_access": "run", "unmap": "run"}, "aligned": True,
            "spaces": (0,), "traced": True,
        }  # fmt: skip
        self.history = History({**facts, "takes": takes, **header})
        self.op = -1
        self.works = 1000
        self.places: dict[int, tuple[int, int]] = {}
        """By mapping: where it lies."""

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        assert len(args) == len(FIELDS[kind]), kind
        event = Event(len(self.history), self.op, 0, who, kind, args, status, result)
        self.history.events.append(event)
        return event

    def subject(self, kind: str, *args: Any, status: int = 0, result: Any = None) -> Event:
        return self.event(SUBJECT, kind, args, status, result)

    def fails(self, kind: str, *args: Any, status: int = 2) -> Event:
        """A driver call that was made to fail."""
        return self.subject(kind, *args, status=status, result="injected")

    # -- calls on the subject

    def call(self, name: str, **about: Any) -> None:
        self.op += 1
        self.event(HARNESS, "note", ("call", {"name": name, **about}))

    def gave(
        self, status: str = "ok", code: str = "", message: str = "", address: Range | None = None, **views: Any
    ) -> None:
        """``views``: ``m3=(False, Range)`` is how mapping 3 looks."""
        seen = {int(name[1:]): view for name, view in views.items()}
        details = {"status": status, "code": code, "message": message, "views": seen}
        self.event(HARNESS, "note", ("return", {**details, **({"address": address} if address else {})}))

    def refused(self, code: str = "OUT_OF_MEMORY", **views: Any) -> None:
        self.gave("refused", code, "no", **views)

    def allocate(self, memory: int, size: int = G, *, device: int = 0, space: int = 0) -> None:
        self.call("allocate", allocation=memory, device=device, size=size, space=space)
        self.subject("create", size, device, space, result=handle(memory))
        self.gave(address=Range(handle(memory), size))

    def free(self, memory: int, *, released: bool = True) -> None:
        self.call("free", allocation=memory)
        if released:
            self.subject("release", handle(memory))
        self.gave()

    def reserve(self, reserved: int, size: int = 8 * G, *, at: int = 0) -> None:
        self.call("reserve", reservation=reserved, device=0, size=size, alignment=0)
        self.subject("reserve", size, 0, 0, result=at or base(reserved))
        self.gave(address=Range(at or base(reserved), size))

    def close(self, reserved: int = 1, *unmapped: tuple[int, int], size: int = 8 * G) -> None:
        """Unmap places, then free."""
        self.call("close", reservation=reserved)
        for offset, length in unmapped:
            self.unmap(offset, length, reserved)
        self.subject("address_free", base(reserved), size)
        self.gave()

    # -- mapping, from the driver's side

    def map(self, offset: int, memory: int, *, size: int = G, skip: int = 0, reserved: int = 1) -> None:
        self.subject("map", base(reserved) + offset, size, handle(memory), skip)

    def unmap(self, offset: int, size: int = G, reserved: int = 1, *, status: int = 0) -> None:
        self.subject("unmap", base(reserved) + offset, size, status=status)

    def access(self, offset: int, size: int = G, devices: Sequence[int] = (0,), *, right: int = RW) -> None:
        self.subject("set_access", BASE + offset, size, tuple((device, right) for device in devices))

    # -- whole mapping calls, done well

    def map_to(self, made: int, *slices: Slice, reserved: int = 1, devices: Sequence[int] = (0,)) -> None:
        """One map for each slice, then rights on all."""
        self.asks(made, *slices, reserved=reserved)
        for offset, skip, size, memory, _ in slices:
            self.map(offset, memory, size=size, skip=skip, reserved=reserved)
        start, size = self.places[made]
        self.subject("set_access", start, size, tuple((device, RW) for device in devices))
        self.made(made)

    def asks(self, made: int, *slices: Slice, reserved: int = 1) -> None:
        """The call alone."""
        self.call("map_to", reservation=reserved, made=made, slices=slices)
        if slices:
            start = slices[0][0]
            self.places[made] = base(reserved) + start, slices[-1][0] + slices[-1][2] - start

    def made(self, made: int, **views: Any) -> None:
        """The call has made a mapping."""
        self.gave(**{f"m{made}": (False, Range(*self.places[made])), **views})

    def remaps(self, mapping: int, made: int, *slices: Slice) -> None:
        """The call alone."""
        self.call("remap", mapping=mapping, made=made, slices=slices)
        self.places[made] = self.places.get(mapping, (0, 0))

    def remapped(self, mapping: int, made: int) -> None:
        """The call has gone well."""
        self.made(made, **{f"m{mapping}": (True, None)})

    def remap(self, mapping: int, made: int, *slices: Slice, runs: Sequence[tuple[int, int]] = ()) -> None:
        """Unmap and map each required slice; rights for ``runs``, or for each required slice."""
        self.remaps(mapping, made, *slices)
        required = [s for s in slices if s[4]]
        for offset, size in runs or [(s[0], s[2]) for s in required]:
            self.unmap(offset, size)
        for offset, skip, size, memory, _ in required:
            self.map(offset, memory, size=size, skip=skip)
        for offset, size in runs or [(s[0], s[2]) for s in required]:
            self.access(offset, size)
        self.remapped(mapping, made)

    def lost(self, mapping: int, code: str = "OUT_OF_MEMORY") -> None:
        """A remap has failed after its start."""
        self.refused(code, **{f"m{mapping}": (True, None)})

    def kept(self, mapping: int, code: str = INVALID) -> None:
        """A remap was refused, and its mapping is what it was."""
        self.refused(code, **{f"m{mapping}": (False, Range(*self.places[mapping]))})

    def drop(self, mapping: int) -> None:
        self.call("drop", mapping=mapping)
        self.subject("unmap", *self.places[mapping])
        self.null(mapping)

    def null(self, mapping: int) -> None:
        """A call has gone well, and this mapping is null by then."""
        self.gave(**{f"m{mapping}": (True, None)})

    # -- the caller

    def use(
        self, mapping: int, found: bytes | None = None, writes: bytes | None = None, *, at: int = 0,
        fault: Fault | None = None, status: int = 0,
    ) -> None:  # fmt: skip
        """Work that reads one token ``at`` bytes into a mapping, and may write one; it runs at once."""
        self.works += 1
        address = self.places[mapping][0] + at
        written = (Write(address, writes),) if writes else ()
        reads = (Range(address, 8),)
        self.event(HARNESS, "launch", (1, reads, (), written), status, self.works)
        if not status:
            self.event(DEVICE, "ran", (self.works, (found or bytes(8),), fault), 0, None)

    def asked(self, offset: int, right: int | None, *, device: int = 0) -> None:
        """The driver is asked for rights; None: it refuses to tell."""
        status = 1 if right is None else 0
        result = None if right is None else Access(right)
        self.event(HARNESS, "get_access", (BASE + offset, device), status, result)

    def done(self) -> None:
        self.event(HARNESS, "note", ("done", {}))

    def judged(self) -> Judge:
        return judge(self.history)


def ready(memories: int = 6, **header: Any) -> Story:
    """Reservation 1 of 8 granules, and allocations 1 to ``memories`` of one granule each."""
    story = Story(**header)
    story.reserve(1)
    for memory in range(1, memories + 1):
        story.allocate(memory)
    return story


def broken(story: Story) -> list[str]:
    """The invariants that were found broken, each once, in order."""
    return list(dict.fromkeys(finding.invariant for finding in story.judged().findings))
