"""While work is captured nothing is given back, and what it uses stays until it is dropped: ALLOCATOR-19 and 20."""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger, describe
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import Mapping, Memory, Part

QUIET, KEPT = "ALLOCATOR-19", "ALLOCATOR-20"

FREEING: Final = frozenset({"unmap", "release", "address_free", "free"})
RESIZING: Final = frozenset({"deallocate", "grow", "shrink"})
ASKING: Final = {
    "stream_synchronize": 0, "stream_query": 0, "stream_wait_event": 0, "event_record": 1, "stream_destroy": 0,
}  # fmt: skip
"""The calls that must not name a captured stream, and where they name it."""


class _Use(NamedTuple):
    """The last captured work that uses something, and the block that it was a part of."""

    event: Event
    block: int


class _Capture:
    """One capture: its stream, the blocks that the allocator has to keep, and what captured work uses."""

    __slots__ = ("ours", "stream", "uses")

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.ours: set[int] = set()
        self.uses: dict[Mapping | Memory, _Use] = {}

    def kept(self) -> dict[Mapping | Memory, _Use]:
        """What captured work uses of blocks that the allocator has to keep."""
        return {what: use for what, use in self.uses.items() if use.block in self.ours}


class Captures(Family):
    """Follows the capture of each device."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._captures: dict[int, _Capture] = {}

    def called(self, call: Call) -> None:
        """A block that is freed or resized while a capture is under way is the allocator's to keep; so is what it was
        given since by growing."""
        under_way = call.device in self.ledger.capturing
        if under_way and call.name in {"allocate", "trim", *RESIZING}:
            self.judge.witness(QUIET)
        capture = self._captures.get(call.device)
        if capture and call.block and call.name in RESIZING:
            if under_way or call.block.id in capture.ours:
                self._keep(capture, call.block)
            if any(use.block == call.block.id for use in capture.kept().values()):
                self.judge.witness(KEPT)

    def _keep(self, capture: _Capture, block: Block) -> None:
        capture.ours.add(block.id)
        self.ledger.planned[block.device].update(part.memory for part in block.parts)

    def captured(self, event: Event) -> None:
        """Note what captured work uses."""
        for address, size, _ in accesses(event):
            block = self.ledger.at(address)
            capture = self._captures.get(block.device) if block else None
            if block and capture:
                touched = map(_what, self.state.parts(address, size))
                capture.uses.update(dict.fromkeys(touched, _Use(event, block.id)))

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Judge what is called while a capture is under way, and what goes that captured work uses."""
        if call and call.device in self.ledger.capturing:
            if event.kind in FREEING and not _undoes(event, call):
                self._loud(event, call, "gives something back")
            elif self._asks(event, call.device):
                self._loud(event, call, "names the stream that is captured")
        if call is None or call.name not in ("close", "drop_capture"):
            for gone in self.state.ended:
                self._gone(gone, event, call)

    def _asks(self, event: Event, device: int) -> bool:
        if event.kind == "device_synchronize":
            return bool(event.args[0] == device)
        place = ASKING.get(event.kind)
        return place is not None and event.args[place] == self._captures[device].stream

    def _loud(self, event: Event, call: Call, what: str) -> None:
        self.judge.fail(
            QUIET, event, f"{event.kind} in {call} {what} while a capture is under way",
            expected="nothing is given back, and the captured stream is left alone, until end_capture",
            actual=f"{event.kind}({', '.join(map(str, event.args))})",
        )  # fmt: skip

    def _gone(self, gone: Mapping | Memory, event: Event, call: Call | None) -> None:
        for capture in self._captures.values():
            use = capture.kept().get(gone)
            if use:
                self._lost(event, f"{event.kind} in {call or 'no call'} takes away {describe(gone)}", gone, use)

    def _lost(self, event: Event, what: str, gone: Mapping | Memory, use: _Use) -> None:
        self.judge.fail(
            KEPT, event, f"{what}, which captured work uses as block {use.block}", cause=use.event.seq,
            expected="what captured work uses stays behind its addresses, and nobody else's, until drop_capture",
            actual="a launch would use what is not there, or another's", range=Range(gone.address, gone.size),
        )  # fmt: skip

    def returned(self, call: Call, event: Event) -> None:
        """Follow captures, and judge memory that goes to another block."""
        if call.name in ("drop_capture", "close") and call.good:
            self._captures.pop(call.device, None)
        elif call.name == "begin_capture" and call.good:
            self._captures[call.device] = _Capture(call.arguments["stream"])
        elif call.good and call.block and call.name in ("allocate", "grow", "shrink"):
            self._handed(call, call.block, event)

    def _handed(self, call: Call, block: Block, event: Event) -> None:
        capture = self._captures.get(call.device)
        if capture is None:
            return
        memory = {part.memory for part in block.parts}
        for what, use in capture.kept().items():
            behind = what.memory if isinstance(what, Mapping) else what
            if behind in memory and use.block != block.id:
                self._lost(event, f"{call} hands out {describe(behind)}", behind, use)
        if call.device in self.ledger.capturing:
            self._keep(capture, block)


def _what(part: Part) -> Mapping | Memory:
    return part.mapping or part.memory


def _undoes(event: Event, call: Call) -> bool:
    """Whether a driver call gives back what the same call on the subject has taken."""
    first = event.args[0]
    return any(first in (taken.address, getattr(taken, "handle", 0)) for taken in call.made)
