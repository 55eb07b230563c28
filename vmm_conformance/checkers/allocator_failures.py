"""Refusals: a failed call changes nothing, one that nothing stands against succeeds. ALLOCATOR-7, 9 and 10."""

from __future__ import annotations

from collections.abc import Iterable

from vmm_conformance.checkers.allocator_calls import GIVING_BACK, Block, Call, Family, Ledger, Taken, describe
from vmm_conformance.checkers.allocator_waits import in_vain
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Code, Range, Status, status_name
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import OPEN, Memory

UNDONE, SERVED, SIZED = "ALLOCATOR-7", "ALLOCATOR-9", "ALLOCATOR-10"

SHORT = frozenset({Status.OUT_OF_MEMORY.name, Code.RESOURCE_EXHAUSTED.value})
INVALID = frozenset({Status.INVALID_VALUE.name, Code.INVALID_ARGUMENT.value})
_CODES = frozenset(code.value for code in Code)


class Refusals(Family):
    """Judges each call by what it answered, and each failed one by what it left."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._stumbled: dict[tuple[str, int], Call] = {}

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Remember what a call takes, and what an injected failure keeps it from giving back."""
        if event.status and event.kind in GIVING_BACK and event.result == "injected":
            self._excuse(event)
        elif call and not event.status:
            taken = self._taken(event)
            if taken is not None:
                call.made.append(taken)

    def returned(self, call: Call, event: Event) -> None:
        """Judge the answer. Closing again is judged elsewhere."""
        if call.again:
            return
        if call.name == "allocate" and call.arguments["size"] == 0 and not call.struck:
            self._empty(call, event)
        else:
            self._answer(call, event)
        if not call.good:
            self._failed(call, event)

    def _empty(self, call: Call, event: Event) -> None:
        refused = call.status == "refused" and call.code in INVALID
        self.judge.expect(
            SIZED, event, refused, f"{call} must be refused", expected="refused with INVALID_ARGUMENT",
            actual=f"{call.status} {call.code}".strip(),
        )  # fmt: skip

    def _answer(self, call: Call, event: Event) -> None:
        """A call that fails has a reason: an injected failure, or memory that is really short."""
        about = [("device", call.device), *([("block", call.block.id)] if call.block else [])]
        if call.good or call.status == "crashed" or not self._reason(call):
            self.judge.expect(
                SERVED, event, call.good, f"{call} failed although nothing stands against it",
                expected="the call succeeds", actual=f"{call.status}: {call.code}: {call.message}",
            )  # fmt: skip
            before = [self._stumbled.pop(key) for key in about if key in self._stumbled]
            if before:
                self._recovered(call, before[-1], event)
        else:
            self._stumbled.update(dict.fromkeys(about, call))

    def _recovered(self, call: Call, before: Call, event: Event) -> None:
        """The first call after a failed one, on its device or its block, that nothing stands against."""
        self.judge.expect(
            UNDONE, event, call.good, f"{call} fails since {before} has failed", cause=before.event.seq,
            expected="after a failed call the next one works", actual=f"{call.status}: {call.code}: {call.message}",
        )  # fmt: skip

    def _reason(self, call: Call) -> str:
        if call.struck:
            return "a failure was injected"
        if call.name == "enable_peer" and call.arguments["peer"] not in self.ledger.reaches.get(call.device, ()):
            return "the peer cannot reach this device"
        if any(in_vain(failure, self.ledger) for failure in call.failures):
            return "it waits for work that the caller holds back"  # which is right or wrong by itself: ALLOCATOR-21
        if call.name not in ("allocate", "grow", "resume") or call.code not in SHORT:
            return ""
        if any(e.status == Status.OUT_OF_MEMORY and e.kind not in ("create", "alloc") for e in call.failures):
            return "the system is out of addresses or mappings"
        if self.ledger.capturing:
            return "nothing may be given back while a capture is under way"
        if call.device in self.ledger.held.values():
            return "memory comes back behind work that the caller holds"
        if call.name == "resume":
            return "memory that could not be given back is missing" if self.ledger.excused else ""
        wanted = self.ledger.wanted(call)
        free = self.ledger.capacity[call.device] - self._used(call.device)
        return f"{wanted} bytes are more than the {free} free" if wanted > free else ""

    def _used(self, device: int) -> int:
        """Bytes that no allocator could hand out now: memory that live blocks lie in, whole, for it cannot be
        given back in parts; and memory that an injected failure has kept from going back."""
        live = self.ledger.on(device)
        stuck = {what for what in self.ledger.excused if isinstance(what, Memory) and what.ended == OPEN}
        planned = self.ledger.planned.get(device, set())
        pinned = stuck | planned | {part.memory for block in live for part in block.parts}
        kept = sum(memory.size for memory in pinned if memory.device == device)
        return max(kept, sum(block.committed for block in live))

    def _failed(self, call: Call, event: Event) -> None:
        """Nothing that the call took may be left, save what stands behind a live block again."""
        if self.ledger.traced and (call.made or call.block):
            self.judge.witness(UNDONE)
        behind = _backing(self.ledger.live.values()) if call.made else set()
        left = [taken for taken in call.made if taken.ended == OPEN]
        left = [taken for taken in left if taken not in behind and taken not in self.ledger.excused]
        if left:
            self.judge.fail(
                UNDONE, event, f"{call} failed and left behind {', '.join(map(describe, left))}",
                expected="a failed call gives back all that it took", cause=left[0].made,
                actual=f"{len(left)} left", range=Range(left[0].address, left[0].size),
            )  # fmt: skip
        self._first_error(call, event)

    def _first_error(self, call: Call, event: Event) -> None:
        """The error that is reported is one that made the call fail, and not one met while undoing."""
        causes = _causes(call)
        names = [status_name(cause.status) for cause in causes]
        if names and call.status == "refused" and call.code not in _CODES and call.code not in names:
            self.judge.fail(
                UNDONE, event, f"{call} reports an error that it met while undoing", actual=call.code,
                expected=f"the first error: {names[0]} of {causes[0].kind}", cause=causes[0].seq,
            )  # fmt: skip

    # -- what was taken

    def _taken(self, event: Event) -> Taken | None:
        state, kind = self.state, event.kind
        if kind == "reserve":
            return state.reservations.get(event.result)
        if kind == "create":
            return state.handles.get(event.result)
        if kind == "map":
            return state.mapping_at(event.args[0])
        return state.allocation_at(event.result) if kind == "alloc" else None

    def _excuse(self, event: Event) -> None:
        """What ``event`` was to give back, and what cannot go before that has."""
        state, excused, first = self.state, self.ledger.excused, event.args[0]
        if event.kind == "unmap":
            for mapping in state.mappings_in(*event.args):
                excused |= {mapping, mapping.memory}
                if mapping.reservation:
                    excused.add(mapping.reservation)
        elif event.kind in ("event_destroy", "stream_destroy"):
            self.ledger.excused_events.add(first)
        else:
            known = {"address_free": state.reservations.get(first), "release": state.handles.get(first)}
            what = known.get(event.kind) or state.allocation_at(first)
            if what:
                excused.add(what)


def _causes(call: Call) -> list[Event]:
    """The driver calls that made ``call`` fail.

    One that takes or marks something undoes by giving back. One whose work it is to give back undoes by mapping again
    what it has unmapped before it was refused.
    """
    failures = call.failures
    if call.name in ("pause", "trim"):
        refused = next((n for n, event in enumerate(failures) if event.kind in GIVING_BACK), len(failures))
        return [e for n, e in enumerate(failures) if n <= refused or e.kind not in ("map", "set_access")]
    return [event for event in failures if event.kind not in GIVING_BACK] or failures


def _backing(blocks: Iterable[Block]) -> set[Taken]:
    """All that stands behind live blocks."""
    parts = [part for block in blocks for part in block.parts]
    mappings = [part.mapping for part in parts if part.mapping]
    reservations = (mapping.reservation for mapping in mappings if mapping.reservation)
    return {*(part.memory for part in parts), *mappings, *reservations}
