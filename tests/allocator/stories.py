"""Histories of the contract ``allocator``, written by hand."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.allocator import judge
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Access, Fault, Range, Write
from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT, Event, History

G = 4096
FIRST, SECOND = 11, 12
"""Two streams of device 0."""
A, B, C = 0x100000, 0x200000, 0x300000
"""Three addresses, aligned to anything."""
RW = Access.READ_WRITE


class Story:
    """Appends events. Blocks are numbers; ``at`` is where each one lies."""

    def __init__(self, **header: Any) -> None:
        facts = {"alignment": {0: 256, 5: 4 * G}, "granularity": {0: G, 5: G}, "capacity": {0: 8 * G, 1: 8 * G}}
        self.history = History({"contract": "allocator", **facts, **header})
        self.at: dict[int, tuple[int, int]] = {}
        self.op = -1
        self.works = 100
        for stream in (FIRST, SECOND):
            self.harness("stream_create", 0, result=stream)

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        assert len(args) == len(FIELDS[kind]), kind
        event = Event(len(self.history), self.op, 0, who, kind, args, status, result)
        self.history.events.append(event)
        return event

    def subject(self, kind: str, *args: Any, status: int = 0, result: Any = None) -> Event:
        return self.event(SUBJECT, kind, args, status, result)

    def harness(self, kind: str, *args: Any, status: int = 0, result: Any = None) -> Event:
        return self.event(HARNESS, kind, args, status, result)

    # -- calls on the subject

    def call(self, name: str, **details: Any) -> None:
        self.op += 1
        self.event(HARNESS, "note", ("call", {"name": name, "device": 0, "block": 0, **details}))

    def gave(self, status: str = "ok", code: str = "", message: str = "", **details: Any) -> None:
        self.event(HARNESS, "note", ("return", {"status": status, "code": code, "message": message, **details}))

    def gave_block(self, block: int, size: int, address: int, committed: int) -> None:
        self.at[block] = address, size
        self.gave(block=block, address=address, size=size, committed=committed)

    def refused(self, code: str = "OUT_OF_MEMORY") -> None:
        self.gave("refused", code, "no")

    def open(self, device: int = 0) -> None:
        self.call("open", device=device)
        self.gave()

    def allocate(
        self, block: int, address: int, size: int = 100, *, committed: int = G, space: int = 0, **details: Any
    ) -> None:
        """A whole allocation: reserve, create, map, set_access. Its handle has the block's number."""
        self.call("allocate", block=block, size=size, stream=details.pop("stream", FIRST), space=space)
        self.back(address, handle=block, size=committed, space=space, **details)
        self.gave_block(block, size, address, committed)

    def back(
        self, address: int, *, handle: int, size: int = G, space: int = 0, device: int = 0, rights: int | None = RW
    ) -> None:
        self.subject("reserve", size, 0, 0, result=address)
        self.subject("create", size, device, space, result=handle)
        self.show(address, handle=handle, size=size, rights=rights)

    def show(self, address: int, *, handle: int, size: int = G, rights: int | None = RW) -> None:
        self.subject("map", address, size, handle, 0)
        if rights is not None:
            self.subject("set_access", address, size, ((0, rights),))

    def unback(self, address: int, *, handle: int, size: int = G) -> None:
        self.subject("unmap", address, size)
        self.subject("address_free", address, size)
        self.subject("release", handle)

    def deallocate(self, block: int, *, stream: int = FIRST) -> None:
        """The call alone: the block's memory stays for now."""
        self.call("deallocate", block=block, stream=stream)
        self.gave()

    def close(self, *blocks: int) -> None:
        """Wait for the device, give these blocks' memory back, and close again."""
        self.call("close")
        self.subject("device_synchronize", 0)
        for block in blocks:
            self.unback(self.at[block][0], handle=block)
        self.gave()
        self.call("close")
        self.gave()

    # -- the caller's work

    def hold(self, device: int = 0) -> None:
        """What is submitted to the first stream waits for the caller."""
        self.event(HARNESS, "note", ("held", {"stream": FIRST, "device": device}))

    def write(self, block: int, token: bytes, *, offset: int = 0, stream: int = FIRST, status: int = 0) -> int:
        address = self.at[block][0] + offset
        return self.launch(stream, writes=(Write(address, token),), status=status)

    def read(self, block: int, found: bytes | None, *, offset: int = 0, size: int = 8, stream: int = FIRST) -> int:
        """Work that reads; it runs at once if ``found`` says what it finds."""
        work = self.launch(stream, reads=(Range(self.at[block][0] + offset, size),))
        if found is not None:
            self.ran(work, found)
        return work

    def launch(self, stream: int, *, reads: Any = (), writes: Any = (), status: int = 0) -> int:
        self.works += 1
        self.harness("launch", stream, reads, (), writes, status=status, result=self.works)
        return self.works

    def ran(self, work: int, *data: bytes, fault: Fault | None = None, cause: int | None = None) -> None:
        self.event(DEVICE, "ran", (work, data, fault), 0, cause)

    def judged(self) -> Judge:
        return judge(self.history)


def broken(story: Story) -> list[str]:
    """The invariants that were found broken, each once, in order."""
    return list(dict.fromkeys(finding.invariant for finding in story.judged().findings))
