"""While work is captured nothing is given back, and what it uses stays until it is dropped: ALLOCATOR-19 and 20."""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger, Taken, describe
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import Mapping, Memory, Part, Reservation

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


class Captures(Family):
    """Follows each device's capture: the blocks that its allocator has to keep, and what captured work uses."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._streams: dict[int, int] = {}
        self._ours: dict[int, set[int]] = {}
        self._uses: dict[int, dict[Mapping | Memory, _Use]] = {}

    def called(self, call: Call) -> None:
        """A block that is freed or resized while a capture is under way is the allocator's to keep; so is what it was
        given since by growing."""
        under_way = call.device in self.ledger.capturing
        if under_way and call.name in {"allocate", "trim", *RESIZING}:
            self.judge.witness(QUIET)
        if call.block and call.name in RESIZING:
            if under_way or call.block.id in self._ours.get(call.device, ()):
                self._keep(call.device, call.block)
            if any(use.block == call.block.id for _, use in self._kept(call.device)):
                self.judge.witness(KEPT)

    def _keep(self, device: int, block: Block) -> None:
        self._ours[device].add(block.id)
        self.ledger.planned[device].update(part.memory for part in block.parts)

    def _kept(self, device: int) -> list[tuple[Mapping | Memory, _Use]]:
        """What captured work uses of blocks that the allocator has to keep."""
        ours = self._ours.get(device, set())
        return [(what, use) for what, use in self._uses.get(device, {}).items() if use.block in ours]

    def captured(self, event: Event) -> None:
        """Note what captured work uses."""
        for device, stream in self._streams.items():
            if stream == event.args[0]:
                for address, size, _ in accesses(event):
                    block = self.ledger.at(address)
                    for part in self.state.parts(address, size) if block else ():
                        self._uses[device][_what(part)] = _Use(event, block.id if block else 0)

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
        return place is not None and event.args[place] == self._streams[device]

    def _loud(self, event: Event, call: Call, what: str) -> None:
        self.judge.fail(
            QUIET, event, f"{event.kind} in {call} {what} while a capture is under way",
            expected="nothing is given back, and the captured stream is left alone, until end_capture",
            actual=f"{event.kind}({', '.join(map(str, event.args))})",
        )  # fmt: skip

    def _gone(self, gone: Taken, event: Event, call: Call | None) -> None:
        if isinstance(gone, Reservation):
            return
        for device in self._uses:
            use = next((use for what, use in self._kept(device) if what is gone), None)
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
        device = call.device
        if call.name in ("drop_capture", "close") and call.good:
            self._streams.pop(device, None)
            self._ours.pop(device, None)
            self._uses.pop(device, None)
        elif call.name == "begin_capture" and call.good:
            self._streams[device] = call.arguments["stream"]
            self._ours[device], self._uses[device] = set(), {}
        elif call.good and call.block and call.name in ("allocate", "grow", "shrink"):
            self._handed(call, call.block, event)

    def _handed(self, call: Call, block: Block, event: Event) -> None:
        memory = {part.memory for part in block.parts}
        for what, use in self._kept(call.device):
            behind = what.memory if isinstance(what, Mapping) else what
            if behind in memory and use.block != block.id:
                self._lost(event, f"{call} hands out {describe(behind)}", behind, use)
        if call.device in self.ledger.capturing:
            self._keep(call.device, block)


def _what(part: Part) -> Mapping | Memory:
    return part.mapping or part.memory


def _undoes(event: Event, call: Call) -> bool:
    """Whether a driver call gives back what the same call on the subject has taken."""
    first = event.args[0]
    return any(first in (taken.address, getattr(taken, "handle", 0)) for taken in call.made)
