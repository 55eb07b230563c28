"""Answers: what must be refused is refused at once, and what nothing stands against is done.

RES-6, 9, 14 and 15, REMAP-26 to 29; and for each call the invariant that says it must succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vmm_conformance.checkers.reservation_calls import MAPPING, NOT_SEEN, Call, Family, Wrong
from vmm_conformance.checkers.reservation_requests import COVERAGE, KNOWN, NO_SLICES, NULL_MEMORY, PAST
from vmm_conformance.contracts import Code, Range, Status
from vmm_conformance.history.events import Event

SERVED: Final = {
    "allocate": "RAW-2", "free": "RAW-3", "reserve": "RES-4", "close": "RES-9", "map_to": "RES-16",
    "map_one": "RES-16", "remap": "REMAP-32", "move": "MAP-22", "assign": "MAP-23", "drop": "MAP-21",
}  # fmt: skip
"""The invariant that a call breaks which fails although nothing stands against it."""

PEERS, NULL, UNCHANGED, AGAIN, TRUSTED = "RES-8", "MAP-22", "REMAP-30", "REMAP-38", "REMAP-40"
SHORT: Final = frozenset({Status.OUT_OF_MEMORY.name, Code.RESOURCE_EXHAUSTED.value})
KEEPS_MAPPING: Final = frozenset({NO_SLICES, COVERAGE, NULL_MEMORY})


class Answers(Family):
    """Judges each call by what it answered."""

    def returned(self, call: Call, event: Event) -> None:
        """A request that is wrong has its own answer; any other succeeds, unless there is a reason."""
        if call.name == "address":
            self._past(call, event)
        elif call.wrong:
            self._refused(call, event)
        elif call.good or not self._reason(call):
            self._succeeds(call, event)

    # -- requests that are wrong

    def _refused(self, call: Call, event: Event) -> None:
        codes = {wrong.code for wrong in call.wrong}
        at_once = call.name in MAPPING or any(wrong.invariant != KNOWN for wrong in call.wrong)
        good = call.status == "refused" and call.code in codes and not (at_once and call.steps)
        expected = f"refused with {' or '.join(sorted(codes))}" + (", and no driver call" if at_once else "")
        made = f", {len(call.steps)} driver calls" if call.steps else ""
        for wrong in call.wrong:
            self.judge.expect(
                wrong.invariant, event, good, f"{call} must be refused: {wrong.why}", expected=expected,
                actual=f"{call.answer}{made}",
            )  # fmt: skip
        keeping = [wrong for wrong in call.wrong if wrong.invariant in KEEPS_MAPPING]
        if keeping:
            self._kept(call, event, keeping)

    def _kept(self, call: Call, event: Event, because: Sequence[Wrong]) -> None:
        """The mapping is still the owner, and all of it is still there."""
        assert call.owned is not None
        null, range = call.views.get(call.about["mapping"], NOT_SEEN)
        good = null is False and range == call.owned.range
        for wrong in because:
            if not good:
                self.judge.fail(
                    wrong.invariant, event, f"{call} was refused, and its mapping is not what it was",
                    expected=f"it still owns {_hex(call.owned.range)}", range=call.owned.range,
                    actual="it is null" if null else f"it owns {_hex(range)}",
                )  # fmt: skip

    def _past(self, call: Call, event: Event) -> None:
        """A null mapping has no address."""
        if call.owned is None:
            self.judge.expect(
                NULL, event, call.status == "refused" and call.code == PAST, f"{call} is asked of a null mapping",
                expected=f"refused with {PAST}", actual=call.answer,
            )  # fmt: skip

    # -- requests that are right

    def _succeeds(self, call: Call, event: Event) -> None:
        failed = self._failed_before(call)
        self.judge.expect(
            AGAIN if failed else self._invariant(call), event, call.good,
            f"{call} failed although nothing stands against it{', behind a remap that had failed' if failed else ''}",
            expected="the call succeeds", actual=call.answer, range=call.owned.range if call.owned else None,
        )  # fmt: skip
        if call.name in (*MAPPING, "remap") and self._unreachable(call):
            self._past_peers(call, event)

    def _invariant(self, call: Call) -> str:
        if call.name == "remap" and not any(one.required for one in call.slices):
            return TRUSTED if any(map(call.lies, call.slices)) else UNCHANGED
        if call.name in ("move", "drop", "assign") and call.owned is None:
            return NULL if call.name != "assign" else SERVED["assign"]
        return SERVED[call.name]

    def _reason(self, call: Call) -> str:
        """Why a call may fail."""
        if call.name == "close":
            return ""  # closing never fails
        if call.name == "free":
            return "it is still shown" if call.code == PAST and self._is_shown(call) else ""
        if call.struck:
            return "a failure was injected"
        if call.name == "allocate":
            return self._short(call)
        if call.name == "reserve":
            return "addresses are short" if call.code in SHORT and call.cause else ""
        return call.unserved

    def _is_shown(self, call: Call) -> bool:
        allocation = self.ledger.allocations[call.about["allocation"]]
        if allocation.memory and allocation.memory.mappings:
            return True
        return any(piece.allocation is allocation for owned in self.ledger.owners.values() for piece in owned.pieces)

    def _short(self, call: Call) -> str:
        if call.code not in SHORT:
            return ""
        granules = -(-call.about["size"] // self.ledger.recommended)
        device = call.about["device"]
        used = sum(memory.size for memory in self.state.handles.values() if memory.device == device)
        free = self.ledger.header["capacity"][device] - used
        short = not self.ledger.traced or granules * self.ledger.recommended > free
        return f"{free} bytes are free" if short else ""

    def _unreachable(self, call: Call) -> bool:
        return bool(call.reserved and len(self.ledger.reach[call.reserved.device]) < self.ledger.header["devices"])

    def _past_peers(self, call: Call, event: Event) -> None:
        """Devices that cannot reach the memory do not make the call fail."""
        assert call.reserved is not None
        reach = self.ledger.reach[call.reserved.device]
        grants = [step for step in call.of("set_access") if {device for device, _ in step.event.args[2]} - {*reach}]
        self.judge.expect(
            PEERS, event, call.good or not any(step.refused for step in grants),
            f"{call} asks for rights of devices that cannot reach the memory, and fails for it",
            expected=f"rights for the devices {reach}; others are passed over", actual=call.answer,
        )  # fmt: skip

    def _failed_before(self, call: Call) -> bool:
        """Whether a remap has failed where the call maps; that is settled then."""
        if call.name not in MAPPING or call.reserved is None:
            return False
        start, end = call.place.address, call.place.end
        failed = [place for place in call.reserved.failed if place.address < end and start < place.end]
        call.reserved.failed = [place for place in call.reserved.failed if place not in failed]
        return bool(failed)


def _hex(range: Range | None) -> str:
    return f"{range.address:#x}+{range.size}" if range else "nothing"
