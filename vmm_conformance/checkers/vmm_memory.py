"""What stands behind what was given, and what is left: ALLOC-55, 57, 59, 69, 76, 183 and 184."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_calls import Family
from vmm_conformance.checkers.vmm_ledger import Alias, Allocation, Call
from vmm_conformance.checkers.vmm_rules import Decision
from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.events import SUBJECT, Event
from vmm_conformance.history.state import OPEN, Mapping, Memory, Part, Reservation

REACTIVATED, BUDGET, CLOSED = "ALLOC-55", "ALLOC-69", "ALLOC-76"
USABLE, UNDONE = "ALLOC-183", "ALLOC-184"

GIVING_BACK: Final = frozenset({"unmap", "release", "address_free", "free", "event_destroy"})


class Behind(Family):
    """Judges the memory behind new allocations and aliases, and what a call leaves."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.live: Counter[int] = Counter()
        """Bytes that are committed, by device."""

    def driver_call(self, event: Event, call: Call | None) -> None:
        """No device ever has more committed than its budget."""
        for gone in self.state.ended:
            if isinstance(gone, Memory) and gone.who == SUBJECT and gone.handle:
                self.live[gone.device] -= gone.size
        if event.kind == "create" and not event.status:
            device = event.args[1]
            self.live[device] += event.args[0]
            self.judge.expect(
                BUDGET, event, self.live[device] <= self.ledger.budget,
                f"{call or 'no call'} exceeds the budget of device {device}",
                expected=f"{self.ledger.budget} bytes at most", actual=f"{self.live[device]} bytes",
            )  # fmt: skip

    def after(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Judge what is there now."""
        if not self.ledger.traced:
            return
        given = not decision.nothing and not decision.objections
        if not call.good:
            self._undone(call, judge)
        elif given and call.name in ("allocate", "allocate_mapped"):
            self._allocation(call, judge)
        elif given and call.name == "map":
            self._alias(call, decision, judge)

    # -- what is given

    def _allocation(self, call: Call, judge: Judge) -> None:
        found = self.ledger.allocation(call.ordinal, call.answer)
        if found is None or found.damaged:
            return
        why = self._unusable(found, found.extent.size, call.parts) or self._shared(found, call.parts)
        judge.expect(
            USABLE, call.returned, not why, f"{call} gives memory that cannot be used as it must", range=found.extent,
            expected="its own memory, of the device and the space, behind every byte, to read and write", actual=why,
        )  # fmt: skip

    def _unusable(self, entity: Allocation, size: int, parts: list[Part]) -> str:
        covered = sum(part.high - part.low for part in parts)
        if covered < size:
            return f"{covered} of {size} bytes have memory behind them"
        for part in parts:
            if part.mapping in self.ledger.over:
                return f"what was mapped at offset {part.low} was unmapped meanwhile"
            if not _grants(part, entity.ordinal):
                return f"no right to write at offset {part.low}"
            if part.memory.device != entity.ordinal:
                return f"memory of device {part.memory.device}"
            if part.memory.space != entity.space:
                return f"memory of space {part.memory.space}"
        return ""

    def _shared(self, entity: Allocation, parts: list[Part]) -> str:
        for other in self.ledger.allocations.values():
            if other is entity or other.damaged:
                continue
            if any(part.memory is other.memory for part in parts):
                return f"the memory of {other}"
            if other.extent.address < entity.extent.end and entity.extent.address < other.extent.end:
                return f"the addresses of {other}"
        return ""

    def _alias(self, call: Call, decision: Decision, judge: Judge) -> None:
        slice: Range = call["slice"]
        alias = self.ledger.aliases.get((call.ordinal, slice.address))
        if alias is None or alias.damaged or alias.source.damaged:
            return
        if decision.takes_back and call.calls and not decision.takes_back[0].damaged:
            judge.fail(
                REACTIVATED, call.returned, f"{call} takes its own alias back with driver calls",
                expected="no driver call: nothing has changed", actual=", ".join(event.kind for event in call.calls),
                range=slice,
            )  # fmt: skip
        why = self._not_shown(alias, call.parts)
        judge.expect(
            alias.by, call.returned, not why, f"{call} does not show its source", range=slice,
            expected="the source's memory from its start, to read and write", actual=why,
        )  # fmt: skip

    def _not_shown(self, alias: Alias, parts: list[Part]) -> str:
        covered = sum(part.high - part.low for part in parts)
        if covered < alias.extent.size:
            return f"{covered} of {alias.extent.size} bytes have memory behind them"
        if any(part.memory is not alias.source.memory for part in parts):
            return "other memory"
        if any(part.mapping in self.ledger.over for part in parts):
            return "what was mapped was unmapped meanwhile"
        if parts[0].low:
            return f"the source from its byte {parts[0].low}"
        return "" if all(_grants(part, alias.ordinal) for part in parts) else "no right to write"

    # -- what is left

    def _undone(self, call: Call, judge: Judge) -> None:
        """A call that fails has given back what it took, unless giving back was made to fail."""
        if not call.made or call.name == "close":
            return
        excused = any(e.kind in GIVING_BACK and e.result == "injected" for e in call.failures)
        left = [taken for taken in call.made if taken.ended == OPEN]
        if not excused:
            judge.expect(
                UNDONE, call.returned, not left, f"{call} fails, and keeps what it took",
                expected="nothing is left of it", actual=", ".join(map(_described, left)),
            )  # fmt: skip


class Ends(Family):
    """Judges how the allocator is closed, and that nothing is left: ALLOC-76."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._told = False
        self._excused: set[Any] = set()
        self._events: set[int] = set()
        self._closes = 0
        self._refused = False

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Follow events, and what is excused; at close nothing is given back before all devices are waited for."""
        if event.status:
            if event.kind in GIVING_BACK and event.result == "injected":
                self._excuse(event)
            return
        if event.kind == "event_create":
            self._events.add(event.result)
        elif event.kind == "event_destroy":
            self._events.discard(event.args[0])
        elif event.kind in GIVING_BACK and call is not None and call.name == "close":
            self._waited_for(event, call)

    def _excuse(self, event: Event) -> None:
        if event.kind == "event_destroy":
            self._events.discard(event.args[0])
        mapping = self.state.mapping_at(event.args[0]) if event.kind == "unmap" else None
        memory = self.state.handles.get(event.args[0]) if event.kind == "release" else None
        found = mapping or memory or self.state.reservations.get(event.args[0])
        self._excused |= {found, *((mapping.memory, mapping.reservation) if mapping else ())}

    def _busy(self) -> list[int]:
        """Devices that may still have something to do, as far as the host knows."""
        streams = self.ledger.streams.items()
        return [device for device, stream in streams if not self.order.reached(stream, self.order.position(stream))]

    def _waited_for(self, event: Event, call: Call) -> None:
        busy = self._busy()
        self.judge.witness(CLOSED)
        if busy and not self._told:
            self._told = True
            self.judge.fail(
                CLOSED, event, f"{event.kind} in {call} while device(s) {busy} may still have work to do",
                expected="every device is waited for before anything of any of them is given back",
                actual="not waited for", cause=call.event.seq,
            )  # fmt: skip

    def after(self, call: Call, decision: Decision, judge: Judge) -> None:
        """A close succeeds, waits for every device, and leaves nothing; the next one does nothing."""
        if call.name != "close":
            return
        if call.good:
            self._closes += 1
            if self._refused and not call.failures:
                self._excused.clear()
            if self.ledger.traced:
                self._left(call, judge)
        elif not call.struck:
            judge.expect(
                CLOSED, call.returned, False, "close fails", expected="it gives everything back, whatever is live",
                actual=f"{call.status}: {call.code}: {call.message}",
            )  # fmt: skip
        self._refused = not call.good

    def _left(self, call: Call, judge: Judge) -> None:
        judge.witness(CLOSED)
        busy = self._busy()
        if self._closes == 1 and busy:
            judge.fail(
                CLOSED, call.returned, f"close does not wait for device(s) {busy}",
                expected="every device is waited for", actual="not waited for",
            )  # fmt: skip
        if self._closes > 1 and call.calls:
            judge.fail(
                CLOSED, call.returned, "closing what is closed makes driver calls", expected="nothing happens",
                actual=", ".join(event.kind for event in call.calls),
            )  # fmt: skip
        self._nothing(call, judge)

    def _nothing(self, call: Call, judge: Judge) -> None:
        """Nothing of the subject's is there any more; reservations that it made for the caller are the caller's."""
        left: list[Any] = [m for m in self.state.mappings if m.who == SUBJECT]
        left += [m for m in (*self.state.handles.values(), *self.state.allocations) if m.who == SUBJECT]
        ours = self.ledger.reservations
        left += [r for r in self.state.reservations.values() if r.who == SUBJECT and r.address not in ours]
        left = [taken for taken in left if taken not in self._excused]
        events = [f"event {number}" for number in sorted(self._events)]
        if left or events:
            judge.fail(
                CLOSED, call.returned, "close leaves something behind",
                expected="nothing is left of what it took", actual=", ".join([*map(_described, left), *events]),
                range=Range(left[0].address, left[0].size) if left else None,
            )  # fmt: skip
            self._excused |= set(left)
            self._events.clear()


def _grants(part: Part, device: int) -> bool:
    return part.mapping is None or part.mapping.rights.get(device, 0) == Access.READ_WRITE


def _described(taken: Memory | Mapping | Reservation) -> str:
    if isinstance(taken, Memory):
        return f"{taken.size} bytes of memory"
    kind = "mapping" if isinstance(taken, Mapping) else "reservation"
    return f"the {kind} {taken.address:#x}+{taken.size}"


