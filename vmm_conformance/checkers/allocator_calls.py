"""What a history of the contract ``allocator`` tells: calls on the subject, and the blocks that are live.

`Watch` walks the history once, keeps the ledger, and tells each family of checks what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Mapping, Memory, Part, Reservation

Taken = Reservation | Memory | Mapping
"""What a driver call gives and another takes back."""

GIVING_BACK: Final = frozenset({"address_free", "release", "unmap", "free", "event_destroy", "stream_destroy"})
"""The driver calls that give something back."""


def describe(taken: Taken) -> str:
    """One thing taken from the driver, for a message."""
    if isinstance(taken, Reservation):
        return f"the reservation {taken.address:#x}+{taken.size}"
    if isinstance(taken, Mapping):
        return f"the mapping {taken.address:#x}+{taken.size}"
    if taken.handle:
        return f"handle {taken.handle} of {taken.size} bytes"
    return f"the allocation {taken.address:#x}+{taken.size}"


class Block:
    """A block as its allocator described it. ``parts`` is what stood behind it when last looked at.

    ``usable`` until its memory was found wrong. ``contents`` maps offsets to the token there and the
    invariant that has carried it there, or none; ``spoiled`` once a fault has left the contents unknown.
    """

    __slots__ = (
        "address", "committed", "contents", "device", "id", "parts", "size", "space", "spoiled", "usable",
    )  # fmt: skip

    def __init__(self, identity: int, device: int, space: int) -> None:
        self.id = identity
        self.device = device
        self.space = space
        self.address = self.size = self.committed = 0
        self.parts: list[Part] = []
        self.contents: dict[int, tuple[bytes, str]] = {}
        self.usable = True
        self.spoiled = False

    @property
    def range(self) -> Range:
        """The committed bytes."""
        return Range(self.address, self.committed)

    def behind(self) -> set[Mapping | Memory]:
        """The mappings and plain allocations that the block lies in."""
        return {part.mapping or part.memory for part in self.parts}

    def __str__(self) -> str:
        return f"block {self.id} ({self.size} bytes at {self.address:#x}, {self.committed} committed)"


_SHOWN: Final = ("size", "space", "stream", "backup", "peer")
"""The arguments of calls that messages show."""


class Call:
    """One call on the subject, from its ``call`` note to its ``return`` note.

    ``block`` is the block it is about or has made. ``failures`` are the driver calls that were refused in
    it, ``made`` what it took from the driver, ``struck`` whether a failure was injected into it. ``again``:
    it closes what is closed. ``asleep``: its device's allocator is paused. ``answer``: the details of its return.
    """

    __slots__ = (
        "again", "answer", "arguments", "asleep", "block", "code", "device", "event", "failures", "made", "message",
        "name", "status", "struck",
    )  # fmt: skip

    def __init__(self, event: Event, details: dict[str, Any], again: bool, asleep: bool) -> None:
        self.again = again
        self.asleep = asleep
        self.answer: dict[str, Any] = {}
        self.event = event
        self.name: str = details["name"]
        self.device: int = details["device"]
        self.arguments = details
        self.block: Block | None = None
        self.status = self.code = self.message = ""
        self.failures: list[Event] = []
        self.made: list[Taken] = []
        self.struck = False

    @property
    def good(self) -> bool:
        """Whether the subject did what it was asked to."""
        return self.status == "ok"

    @property
    def shaken(self) -> bool:
        """Whether a failure was injected into its undo as well: what it leaves then cannot be as before."""
        return [event.result for event in self.failures].count("injected") > 1

    def __str__(self) -> str:
        shown = {name: self.arguments[name] for name in _SHOWN if name in self.arguments}
        about = f"block {self.block.id}, " if self.block and self.name != "allocate" else ""
        return f"{self.name}({about}{', '.join(f'{name}={value}' for name, value in shown.items())})"


class Ledger:
    """The live blocks by number, the devices with an open allocator, and the call that is going on.

    ``planned`` is memory that is kept for captured work, by the device whose allocator keeps it; there is an entry
    from begin_capture to drop_capture. ``capturing`` are the devices of which a capture is under way.
    ``held`` maps streams whose work the caller holds back to their device. ``reserved`` are device and size of what the
    subject has reserved, by address, and ``room`` is how much of that there may be on a device, where it was declared.
    ``paused`` are the devices whose allocator is paused, ``peers`` what was enabled for each device, and
    ``reaches`` what could be. ``excused`` holds what a freeing call that was made to fail was to give back: it may
    stay behind.
    """

    def __init__(self, header: dict[str, Any]) -> None:
        self.live: dict[int, Block] = {}
        self.open: set[int] = set()
        self.paused: set[int] = set()
        self.capturing: set[int] = set()
        self.planned: dict[int, set[Memory]] = {}
        self.held: dict[int, int] = {}
        self.reserved: dict[int, tuple[int, int]] = {}
        times = header.get("address_space", 0)
        self.room = {device: times * total for device, total in header.get("memory", {}).items()} if times else {}
        self.peers: dict[int, set[int]] = {}
        self.call: Call | None = None
        self.reaches: dict[int, tuple[int, ...]] = header.get("reaches", {})
        self.segment: int = header.get("segment", 0)
        self.traced: bool = header.get("traced", True)
        self.alignment: dict[int, int] = header["alignment"]
        self.granularity: dict[int, int] = header["granularity"]
        self.capacity: dict[int, int] = header["capacity"]
        self.excused: set[Taken] = set()
        self.excused_events: set[int] = set()

    def at(self, address: int) -> Block | None:
        """The live block with ``address`` in its committed bytes, or within its size."""
        blocks = self.live.values()
        return next((b for b in blocks if b.address <= address < b.address + max(b.committed, b.size)), None)

    def on(self, device: int) -> list[Block]:
        """The live blocks of a device."""
        return [block for block in self.live.values() if block.device == device]

    def addresses(self, device: int) -> int:
        """Bytes of address space that the subject has reserved on a device."""
        return sum(size for where, size in self.reserved.values() if where == device)

    def wanted(self, call: Call) -> int:
        """Bytes that a call asks for, in pieces in which the allocator takes memory; 0 of one that asks for none."""
        if call.name not in ("allocate", "grow"):
            return 0
        space = call.block.space if call.block else call.arguments["space"]
        piece = max(self.granularity[space], self.segment)
        return -(-int(call.arguments["size"]) // piece) * piece


class Family:
    """One family of checks. It is told of events that concern an allocator, and judges what it likes."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        self.replay = replay
        self.state = replay.state
        self.order = replay.order
        self.ledger = ledger
        self.judge = judge

    def called(self, call: Call) -> None:
        """The subject was called."""

    def driver_call(self, event: Event, call: Call | None) -> None:
        """The subject made a driver call, in ``call``."""

    def work(self, event: Event, block: Block | None) -> None:
        """The caller submitted work on ``block``, or launched what was captured (None)."""

    def captured(self, event: Event) -> None:
        """The caller submitted work that was captured."""

    def ran(self, event: Event) -> None:
        """Queued work ran, or faulted."""

    def returned(self, call: Call, event: Event) -> None:
        """The call has returned; the ledger shows what came of it."""


def _overridden(families: Sequence[Family], name: str) -> list[Callable[..., None]]:
    """The families' own methods of that name: most do not care for most events."""
    return [getattr(family, name) for family in families if name in type(family).__dict__]


class Watch(Visitor):
    """The visitor: keeps the ledger and tells the families."""

    def __init__(self, replay: Replay, ledger: Ledger, families: Sequence[Family]) -> None:
        self.state = replay.state
        self.ledger = ledger
        self.called = _overridden(families, "called")
        self.driver_called = _overridden(families, "driver_call")
        self.worked = _overridden(families, "work")
        self.captured = _overridden(families, "captured")
        self._captured: set[int] = set()
        self.ran = _overridden(families, "ran")
        self.returned = _overridden(families, "returned")

    def before(self, event: Event) -> None:
        """Nothing is judged by the state before an event."""

    def after(self, event: Event) -> None:
        """Tell the families what the event is to an allocator."""
        if event.kind == "note":
            self._note(event, *event.args)
        elif event.who == SUBJECT:
            self._driver_call(event)
        elif event.kind == "launch":
            self._work(event)
        elif event.kind == "graph_launch":
            for tell in self.worked:
                tell(event, None)
        elif event.kind == "graph_begin":
            self._captured.add(event.args[0])
        elif event.kind == "graph_end":
            self._captured.discard(event.args[0])
        elif event.kind == "ran":
            for tell in self.ran:
                tell(event)

    def finish(self) -> None:
        """All has been said at the last return."""

    def _note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        if what == "call":
            again = details["name"] == "close" and details["device"] not in self.ledger.open
            asleep = details["device"] in self.ledger.paused
            self.ledger.call = call = Call(event, details, again, asleep)
            call.block = self.ledger.live.get(details.get("block", 0))
            if call.name == "end_capture":
                self.ledger.capturing.discard(call.device)
            for tell in self.called:
                tell(call)
        elif what == "return" and self.ledger.call:
            self._returned(self.ledger.call, event, details)
        elif what == "held":
            self.ledger.held[details["stream"]] = details["device"]
        elif what == "let_go":
            self.ledger.held.pop(details["stream"], None)

    def _returned(self, call: Call, event: Event, details: dict[str, Any]) -> None:
        call.status, call.code, call.message = details["status"], details["code"], details["message"]
        call.answer = details
        if call.name == "close":
            self._close(call)
        elif call.good:
            self._settle(call, details)
        for tell in self.returned:
            tell(call, event)
        self.ledger.call = None

    def _close(self, call: Call) -> None:
        """A close that fails may have given back any part: no block outlives it, but it can be repeated."""
        if call.good or not call.struck:
            self.ledger.open.discard(call.device)
        for block in self.ledger.on(call.device):
            del self.ledger.live[block.id]
        self.ledger.paused.discard(call.device)
        self.ledger.capturing.discard(call.device)
        self.ledger.planned.pop(call.device, None)
        self.ledger.peers.pop(call.device, None)

    def _settle(self, call: Call, details: dict[str, Any]) -> None:
        """Enter into the ledger what a call that went well has done."""
        ledger = self.ledger
        if call.name == "open":
            ledger.open.add(call.device)
        elif call.name == "deallocate" and call.block:
            ledger.live.pop(call.block.id, None)
        elif call.name == "allocate":
            call.block = Block(details["block"], call.device, call.arguments["space"])
            ledger.live[call.block.id] = call.block
        elif call.name in ("pause", "resume", "enable_peer"):
            self._turn(call)
        elif call.name == "begin_capture":
            ledger.capturing.add(call.device)
            ledger.planned[call.device] = set()
        elif call.name == "drop_capture":
            ledger.planned.pop(call.device, None)
        if call.block and call.name in ("allocate", "grow", "shrink"):
            block = call.block
            block.address, block.committed, block.size = details["address"], details["committed"], details["size"]
            block.parts = self.state.parts(block.address, block.committed)

    def _turn(self, call: Call) -> None:
        """Enter what a call changes for all blocks of its device."""
        ledger = self.ledger
        if call.name == "enable_peer":
            ledger.peers.setdefault(call.device, set()).add(call.arguments["peer"])
        elif call.name == "pause":
            ledger.paused.add(call.device)
        elif call.asleep:
            ledger.paused.discard(call.device)
            for block in ledger.on(call.device):
                block.parts = self.state.parts(block.address, block.committed)

    def _driver_call(self, event: Event) -> None:
        call = self.ledger.call
        if call and event.status:
            call.failures.append(event)
            call.struck = call.struck or event.result == "injected"
        for tell in self.driver_called:
            tell(event, call)

    def _work(self, event: Event) -> None:
        if event.args[0] in self._captured:
            for tell in self.captured:
                tell(event)
            return
        _, reads, _, writes = event.args
        first = reads[0] if reads else writes[0] if writes else None
        block = self.ledger.at(first[0]) if first else None
        for tell in self.worked:
            tell(event, block)
