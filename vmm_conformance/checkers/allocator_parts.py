"""The optional parts of an allocator: trim, pause and resume, peers, statistics. ALLOCATOR-12 to 17."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger, describe
from vmm_conformance.checkers.allocator_layout import common_rights, grants, unusable
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import OPEN, Memory, Reservation

TRIMMED, GIVEN, BACK, AGAIN = "ALLOCATOR-12", "ALLOCATOR-13", "ALLOCATOR-14", "ALLOCATOR-15"
PEERS, COUNTED = "ALLOCATOR-16", "ALLOCATOR-17"

CHANGING: Final = frozenset(
    {"reserve", "address_free", "create", "release", "map", "unmap", "set_access", "alloc", "free"}
)
"""The driver calls that take or give memory, addresses or rights."""


class Trims(Family):
    """After a trim nothing is held that no live block needs and that the host knows to be over."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._idle = False
        self._until: dict[Memory, tuple[int, int]] = {}
        self._behind: dict[int, set[Memory]] = {}
        self._planned: set[Memory] = set()

    def called(self, call: Call) -> None:
        """Whether there is anything to trim."""
        self._idle = call.name == "trim" and bool(self._idle_memory(call.device))
        self._planned = self.ledger.planned.get(call.device, set())
        if call.block:
            self._behind[call.block.id] = {part.memory for part in call.block.parts}

    def returned(self, call: Call, event: Event) -> None:
        """Note behind what memory was given up; or judge what is left."""
        if call.good and call.block and call.name in ("deallocate", "grow", "shrink"):
            stream = call.arguments["stream"]
            until = stream, self.order.position(stream) + bool(self.ledger.held)  # a hold is no item, and not over
            self._until.update(dict.fromkeys(self._memory_of(call.block), until))
        elif call.good and call.name == "drop_capture":
            stream = call.arguments["stream"]
            until = stream, max(1, self.order.position(stream))  # of a stream without work nobody can tell
            self._until.update(dict.fromkeys(self._planned, until))
        if call.name != "trim" or not call.good or not self.ledger.traced:
            return
        if call.device in self.ledger.capturing:
            return
        left = [] if call.struck else self._idle_memory(call.device)
        if self._idle or left:
            self.judge.expect(
                TRIMMED, event, not left, f"trim leaves {', '.join(map(describe, left))}, which no block needs",
                expected="memory that stands behind no live block, and whose work is over, goes back to the device",
                actual=f"{sum(memory.size for memory in left)} bytes left", cause=left[0].made if left else None,
            )  # fmt: skip

    def _memory_of(self, block: Block) -> set[Memory]:
        """What stands behind a block, and what did before the call."""
        now = {part.memory for part in block.parts}
        return now | self._behind.pop(block.id, set())

    def _over(self, memory: Memory) -> bool:
        """Whether the host knows that the work behind which the memory was given up is over."""
        return memory not in self._until or self.order.reached(*self._until[memory])

    def _idle_memory(self, device: int) -> list[Memory]:
        """Memory of a device's allocator that is behind no live block, with no use that the host has not seen over."""
        needed = {part.memory for block in self.ledger.live.values() for part in block.parts}
        needed |= self.ledger.planned.get(device, set())
        busy = {m.memory for m in self.state.mappings if self.order.pending(m)}
        held = (*self.state.handles.values(), *self.state.allocations)
        return [
            memory for memory in held
            if memory.who == SUBJECT and memory.device == device and memory not in needed | busy
            and memory not in self.ledger.excused and not self.order.pending(memory) and self._over(memory)
        ]  # fmt: skip


class Pauses(Family):
    """A pause gives memory and keeps addresses; a resume brings blocks back as they were; twice is once."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._memory: dict[int, set[Memory]] = {}
        self._rights: dict[int, dict[int, int]] = {}
        self._changes: list[Event] = []

    def called(self, call: Call) -> None:
        """Remember what the blocks have before they lose it."""
        self._changes = []
        if call.name == "pause" and not call.asleep:
            for block in self.ledger.on(call.device):
                self._memory[block.id] = {part.memory for part in block.parts}
                self._rights[block.id] = common_rights(block.parts) or {}

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Note what a call changes."""
        if event.kind in CHANGING:
            self._changes.append(event)

    def returned(self, call: Call, event: Event) -> None:
        """Judge a pause, a resume, and either when there is nothing to do."""
        if call.name not in ("pause", "resume") or not self.ledger.traced:
            return
        if call.asleep == (call.name == "pause"):
            self._idle(call, event)
        elif call.good:
            for block in self.ledger.on(call.device):
                if block.usable:
                    (self._paused if call.name == "pause" else self._resumed)(block, call, event)

    def _idle(self, call: Call, event: Event) -> None:
        """Nothing to do, and nothing done: unless an earlier failure has left something to repair."""
        if call.struck or self.ledger.excused or not all(block.usable for block in self.ledger.on(call.device)):
            return
        changes = self._changes
        what = f"{call.status} {call.code}".strip() if not call.good else f"{len(changes)} driver call(s) changed it"
        self.judge.expect(
            AGAIN, event, call.good and not changes, f"{call.name} of an allocator that is not to {call.name} again",
            expected="the call succeeds and changes nothing", actual=what, cause=changes[0].seq if changes else None,
        )  # fmt: skip

    def _paused(self, block: Block, call: Call, event: Event) -> None:
        kept = [m for m in self._memory.get(block.id, ()) if m.ended == OPEN and m not in self.ledger.excused]
        there = self.state.reservation_at(block.address)
        reserved = there is not None and block.range.end <= there.address + there.size
        wrong = f"{', '.join(map(describe, kept))} kept" if kept else "" if reserved else "its addresses are given up"
        self.judge.expect(
            GIVEN, event, not wrong, f"{call} of {block}", range=block.range,
            expected="the device has the memory behind the block back, and the block's addresses stay reserved",
            actual=wrong,
        )  # fmt: skip

    def _resumed(self, block: Block, call: Call, event: Event) -> None:
        why = unusable(block)
        after = common_rights(block.parts) or {}
        enabled = dict.fromkeys(self.ledger.peers.get(call.device, ()), int(Access.READ_WRITE))
        before = {**self._rights.get(block.id, {}), **enabled}
        lost = sorted(device for device, right in before.items() if right & ~after.get(device, 0))
        if lost and not why:
            why = f"rights of device(s) {lost} are lost"
        block.usable = not why
        self.judge.expect(
            BACK, event, not why, f"{call} leaves {block} without what it had", range=block.range,
            expected="memory behind every committed byte, with the rights of before", actual=why,
        )  # fmt: skip


class Peers(Family):
    """A device that was enabled can use every block; one that cannot reach the memory is refused."""

    def returned(self, call: Call, event: Event) -> None:
        """Judge the enabling itself, and later every block that is made."""
        if call.name == "enable_peer":
            self._enabled(call, event)
        elif call.good and call.device in self.ledger.peers and call.device not in self.ledger.paused:
            made = call.name in ("allocate", "grow", "shrink")
            blocks = [call.block] if call.block else self.ledger.on(call.device)
            if made or call.name == "resume":
                self._granted(blocks, self.ledger.peers[call.device], call, event)

    def _enabled(self, call: Call, event: Event) -> None:
        peer = call.arguments["peer"]
        if peer not in self.ledger.reaches.get(call.device, ()):
            self.judge.expect(
                PEERS, event, call.status == "refused" or call.struck,
                f"device {peer} cannot reach memory of device {call.device}: {call} must be refused",
                expected="refused, with nothing changed", actual=f"{call.status} {call.code}".strip(),
            )  # fmt: skip
        elif call.good and call.device not in self.ledger.paused:
            self._granted(self.ledger.on(call.device), {peer}, call, event)

    def _granted(self, blocks: Iterable[Block], peers: set[int], call: Call, event: Event) -> None:
        for block in blocks if self.ledger.traced else ():
            without = sorted(peer for peer in peers if not all(grants(part, peer) for part in block.parts))
            self.judge.expect(
                PEERS, event, not without or not block.usable, f"{call}: not every enabled device can use {block}",
                expected=f"read and write rights for device(s) {sorted(peers)}", actual=f"none for {without}",
                range=block.range,
            )  # fmt: skip


class Counts(Family):
    """What an allocator says of itself is what its caller and its driver know."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._reserved: dict[Reservation, int] = {}

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Whose reservation it is: a reservation itself belongs to no device."""
        if event.kind == "reserve" and not event.status and call:
            self._reserved[self.state.reservations[event.result]] = call.device

    def returned(self, call: Call, event: Event) -> None:
        """Compare the numbers."""
        if call.name != "statistics" or not call.good or not self.ledger.traced:
            return
        true = {
            "requested": sum(block.size for block in self.ledger.on(call.device)),
            "committed": self._committed(call),
            "reserved": sum(r.size for r, d in self._reserved.items() if d == call.device and r.ended == OPEN),
        }
        wrong = {name: call.answer[name] for name, value in true.items() if call.answer[name] != value}
        self.judge.expect(
            COUNTED, event, not wrong, "statistics are not what is so", range=Range(0, 0),
            expected=", ".join(f"{name} {true[name]}" for name in wrong),
            actual=", ".join(f"{name} {value}" for name, value in wrong.items()),
        )  # fmt: skip

    def _committed(self, call: Call) -> int:
        """What the driver has given; what an injected failure has kept from going back may be counted or not."""
        held = (*self.state.handles.values(), *self.state.allocations)
        ours = [memory for memory in held if memory.who == SUBJECT and memory.device == call.device]
        least = sum(memory.size for memory in ours if memory not in self.ledger.excused)
        told: int = call.answer["committed"]
        return min(max(told, least), sum(memory.size for memory in ours))
