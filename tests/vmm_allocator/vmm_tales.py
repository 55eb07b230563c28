"""Histories of the contract ``vmm-allocator``, written by hand."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_allocator import judge
from vmm_conformance.contracts import Access, DriverOptions, Fault, Range, RawAllocation, Write
from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT, Event, History
from vmm_conformance.programs.vmm_allocator import Configuration

G = 4096
MIB = 1 << 20
STREAMS = (11, 12)
A, B, C = 0x100000, 0x200000, 0x300000
"""Addresses of allocations."""
R = Range(0x800000, 8 * G)
"""A reservation."""
RW = Access.READ_WRITE


def slot(number: int, granules: int = 1) -> Range:
    """A slice of the reservation."""
    return Range(R.address + number * G, granules * G)


class Tale:
    """Appends events. Handles are numbers; an event's number is that of its marker."""

    def __init__(self, configuration: Configuration | None = None, **header: Any) -> None:
        configuration = configuration or Configuration(devices=2)
        self.history = History(
            {
                "contract": "vmm-allocator", "configuration": configuration, "streams": STREAMS,
                "options": DriverOptions(devices=2, capacity=configuration.capacity), "spaces": (0, 1, 5),
                "second_alias": "ALREADY_EXISTS", "markers": "batched", "batch_limits": (64, 64 * MIB),
                "host_allocator": False, "traced": True, "scheduled": True, **header,
            }
        )  # fmt: skip
        self.op = -1
        self.thread = 0
        self.works = 100
        self.blocks = 0
        for device, stream in enumerate(STREAMS):
            self.event(HARNESS, "stream_create", (device,), result=stream)
        self.call("open")
        self.gave()
        self.call("create_reservation", size=R.size)
        self.driver("reserve", R.size, 0, 0, result=R.address)
        self.gave()
        self.note("reservation", ordinal=0, address=R)

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        assert len(args) == len(FIELDS[kind]), kind
        event = Event(len(self.history), self.op, self.thread, who, kind, args, status, result)
        self.history.events.append(event)
        return event

    def driver(self, kind: str, *args: Any, status: int = 0, result: Any = None) -> Event:
        """A driver call of the subject."""
        return self.event(SUBJECT, kind, args, status, result)

    def note(self, what: str, **details: Any) -> None:
        self.event(HARNESS, "note", (what, details))

    # -- calls

    def call(self, name: str, ordinal: int = 0, **details: Any) -> None:
        self.op += 1
        about = {} if name in ("open", "close") else {"ordinal": ordinal}
        self.note("call", name=name, **about, **details)

    def gave(self, answer: Any = None, status: str = "ok", code: str = "") -> None:
        self.note("return", name="", status=status, code=code, message="", answer=answer)

    def refused(self, code: str) -> None:
        self.gave(None, "refused", code)

    def ask(self, name: str, code: str = "", ordinal: int = 0, **details: Any) -> None:
        """A call that makes no driver call, and is refused with a code, or not."""
        self.call(name, ordinal, **details)
        if code:
            self.refused(code)
        else:
            self.gave(details.pop("answer", None))

    # -- allocations

    def wants(self, size: int, ordinal: int = 0, *, space: int = 0, tag: bool = False, restored: bool = False) -> None:
        self.call("allocate", ordinal, size=size, space=space, retry=True, tag=tag, restored=restored)

    def wants_at(
        self, place: Range, ordinal: int = 0, *, size: int | None = None, space: int = 0, whole: Range | None = R
    ) -> None:
        self.call(
            "allocate_mapped", ordinal, size=place.size if size is None else size, map_size=place.size, space=space,
            retry=True, tag=False, restored=False, reservation=whole, offset=place.address - R.address, slice=place,
        )  # fmt: skip

    def back(
        self, address: int, handle: int, size: int = G, *, device: int = 0, space: int = 0, own: bool = True
    ) -> None:
        """Memory behind an address."""
        self.driver("create", size, device, space, result=handle)
        if own:
            self.driver("reserve", size, 0, 0, result=address)
        self.show(address, handle, size, device)

    def show(self, address: int, handle: int, size: int = G, device: int = 0, rights: int = RW) -> None:
        self.driver("map", address, size, handle, 0)
        self.driver("set_access", address, size, ((device, rights),))

    def allocate(self, address: int, handle: int, size: int = G, ordinal: int = 0, **key: Any) -> Range:
        """A whole allocation with work queued on it."""
        committed = -(-size // G) * G
        self.wants(size, ordinal, **key)
        self.back(address, handle, committed, device=ordinal, space=key.get("space", 0))
        made = Range(address, size)
        self.gave(made)
        self.block(made, ordinal)
        return made

    def allocate_at(self, place: Range, handle: int) -> Range:
        self.wants_at(place)
        self.back(place.address, handle, place.size, own=False)
        self.gave(place)
        self.block(place)
        return place

    def block(self, made: Range, ordinal: int = 0) -> None:
        self.blocks += 1
        self.note("block", number=self.blocks, ordinal=ordinal, address=made)
        self.work(self.blocks, made.address, b"%08d" % self.blocks, ordinal=ordinal)

    def again(self, address: int, size: int = G, **key: Any) -> Range:
        """An allocation that is taken back."""
        self.wants(size, **key)
        self.gave(Range(address, size))
        return Range(address, size)

    def deallocate(self, made: Range, ordinal: int = 0) -> None:
        self.call("deallocate", ordinal, address=made)
        self.gave()

    def complete(self, address: int, handle: int, size: int = G, *, own: bool = True) -> None:
        """Take everything behind an address away."""
        self.driver("unmap", address, size)
        if own:
            self.driver("address_free", address, size)
        self.driver("release", handle)

    # -- aliases

    def maps(self, source: Range, place: Range, ordinal: int = 0, whole: Range | None = R) -> None:
        self.call("map", ordinal, address=source, reservation=whole, offset=place.address - R.address, slice=place)

    def unmaps(self, place: Range, ordinal: int = 0, whole: Range | None = R) -> None:
        self.call("unmap", ordinal, reservation=whole, offset=place.address - R.address, slice=place)

    def map(self, source: Range, place: Range, handle: int) -> None:
        self.maps(source, place)
        self.show(place.address, handle, place.size)
        self.gave()

    def unmap(self, place: Range) -> None:
        self.unmaps(place)
        self.gave()

    # -- markers

    def mark(self, event: int, stream: int = STREAMS[0], status: int = 0) -> None:
        self.driver("event_create", 0, result=event)
        self.driver("event_record", event, stream, status=status, result="injected" if status else None)

    def wait(self, event: int) -> None:
        self.driver("event_synchronize", event)

    def synchronize(self, event: int, *complete: tuple[int, int]) -> None:
        """Marks, waits, and completes these: (address, handle), handle 0 for an alias."""
        self.call("synchronize")
        self.mark(event)
        self.wait(event)
        for address, handle in complete:
            if handle:
                self.complete(address, handle)
            else:
                self.driver("unmap", address, G)
        self.gave()

    # -- what the harness sees

    def work(
        self, block: int, address: int, token: bytes, *, alias: bool = False, read: bytes = b"", ordinal: int = 0
    ) -> int:
        """Queued work that reads 8 bytes, and writes a token."""
        self.works += 1
        reads = (Range(address, 8),) if read else ()
        self.event(HARNESS, "launch", (STREAMS[ordinal], reads, (), (Write(address, token),)), result=self.works)
        offsets = ((0, 8),) if read else ()
        self.note("work", work=self.works, block=block, alias=alias, reads=offsets, writes=((0, token),))
        return self.works

    def ran(self, work: int, *data: bytes, fault: Fault | None = None) -> None:
        self.event(DEVICE, "ran", (work, data, fault))

    def look(self, address: Range, raw: tuple[int, int] | None, own: Range | None = None, ordinal: int = 0) -> None:
        found = RawAllocation(*raw) if raw else None
        self.note("look", ordinal=ordinal, address=address, raw=found, own=own, status="ok", code="", message="")

    def close(self) -> None:
        self.call("close")
        for device in (0, 1):
            self.driver("device_synchronize", device)

    def judged(self) -> Judge:
        return judge(self.history)


def broken(tale: Tale) -> list[str]:
    """The invariants that were found broken, each once, in order."""
    return list(dict.fromkeys(finding.invariant for finding in tale.judged().findings))
