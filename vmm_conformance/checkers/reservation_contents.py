"""What the caller's own work meets: RES-10, and the contents that MAP and REMAP invariants promise.

Judged by what was read, so it needs no sight of the subject's driver calls.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.reservation_calls import Call, Family, Ledger, Owned
from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay

REACHED, BATCH = "RES-10", "RES-17"
UNTOUCHED, OTHERS, SHOWN = "REMAP-30", "REMAP-31", "REMAP-32"
KEEPING: Final = frozenset({"REMAP-27", "REMAP-28", "REMAP-29"})

Place = tuple[int, int]
"""An allocation's number and an offset in it."""
NOWHERE: Final[Place] = (0, 0)
"""No byte of any allocation: nothing is known of it."""


class _Pending(NamedTuple):
    """Work that the caller has submitted: what each read must find if anything is known, and what it writes."""

    event: Event
    mapping: int
    reads: list[tuple[Place, str]]
    writes: list[tuple[Place, bytes]]


class Contents(Family):
    """Models the tokens in every allocation. All work is waited for at once, so its order is the program's."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._tokens: dict[Place, bytes] = {}
        self._promises: dict[tuple[int, int], str] = {}
        self._pending: dict[int, _Pending] = {}

    def returned(self, call: Call, event: Event) -> None:
        """Note which invariant answers for what each piece of a remap shows, until it is read for the first time."""
        if call.name == "remap" and call.good:
            changes = any(one.required for one in call.slices)
            self._promise(call.about["made"], SHOWN, OTHERS if changes else UNTOUCHED, call)
        elif call.name == "remap" and call.wrong and call.wrong[0].invariant in KEEPING:
            self._promise(call.about["mapping"], call.wrong[0].invariant, call.wrong[0].invariant, call)

    def _promise(self, mapping: int, changed: str, kept: str, call: Call) -> None:
        owned = self.ledger.owners.get(mapping)
        required = {one.offset for one in call.slices if one.required}
        for piece in owned.pieces if owned else ():
            self._promises[mapping, piece.offset] = changed if piece.offset in required else kept

    # -- work

    def caller(self, event: Event) -> None:
        """Work on a mapping, or a question for rights."""
        if event.kind == "get_access":
            self._asked(event)
            return
        _, reads, _, writes = event.args
        found = self.ledger.owner_at(reads[0][0]) if reads else None
        if found is None:
            return
        mapping, owned = found
        if event.status:
            self._unusable(event, owned, f"it was refused with status {event.status}")
            return
        wanted = [self._place(mapping, owned, address) for address, _ in reads]
        stored = [(self._place(mapping, owned, address)[0], data) for address, data in writes]
        self._pending[event.result] = _Pending(event, mapping, wanted, stored)

    def _place(self, mapping: int, owned: Owned, address: int) -> tuple[Place, str]:
        """The byte of an allocation that ``address`` shows, and the invariant that answers for it."""
        offset = address - owned.reserved.base
        for piece in owned.pieces:
            if piece.offset <= offset < piece.end:
                place = piece.allocation.id, piece.skip + offset - piece.offset
                return place, self._promises.get((mapping, piece.offset), BATCH)
        return NOWHERE, BATCH

    def ran(self, event: Event) -> None:
        """Compare what was read, then take in what was written."""
        work, data, fault = event.args
        pending = self._pending.pop(work, None)
        if pending is None:
            return
        owned = self.ledger.owners[pending.mapping]
        if fault:
            self._unusable(pending.event, owned, f"{fault.reason} at {fault.address:#x}")
            return
        self.judge.witness(REACHED)
        for (place, invariant), found in zip(pending.reads, data, strict=False):
            token = self._tokens.get(place)
            if token is not None:
                self._compare(invariant, pending.event, owned, place, token, found)
        for key in [key for key in self._promises if key[0] == pending.mapping]:
            del self._promises[key]
        self._tokens.update(pending.writes)
        self._tokens.pop(NOWHERE, None)

    def _compare(self, invariant: str, event: Event, owned: Owned, place: Place, token: bytes, found: bytes) -> None:
        good = self.judge.expect(
            invariant, event, found == token,
            f"a mapping at {owned.range.address:#x} does not show byte {place[1]} of allocation {place[0]}",
            expected=token, actual=found, range=owned.range,
        )  # fmt: skip
        if not good:
            del self._tokens[place]  # one finding tells it

    def _unusable(self, event: Event, owned: Owned, actual: str) -> None:
        self.judge.expect(
            REACHED, event, False, f"the caller cannot use its mapping at {owned.range.address:#x}",
            expected="work on a mapping is done", actual=actual, range=owned.range,
        )  # fmt: skip

    # -- rights

    def _asked(self, event: Event) -> None:
        """Addresses can be reached where something is mapped, and nowhere else."""
        address, device = event.args
        right = Access.NONE if event.status else event.result
        found = self.ledger.owner_at(address)
        if found:
            reserved = found[1].reserved
            self.judge.expect(
                REACHED, event, device not in self.ledger.reach[reserved.device] or right == Access.READ_WRITE,
                f"device {device} cannot use a mapping at {address:#x}", range=found[1].range,
                expected="read and write", actual=f"rights {int(right)}",
            )  # fmt: skip
        elif not self._excused(address):
            self.judge.expect(
                REACHED, event, right == Access.NONE, f"device {device} reaches {address:#x}, where nothing is mapped",
                expected="no rights, or a refusal", actual=f"rights {int(right)}", range=Range(address, 1),
            )  # fmt: skip

    def _excused(self, address: int) -> bool:
        mapping = self.state.mapping_at(address)
        return mapping is not None and (mapping in self.ledger.excused or mapping.reservation in self.ledger.excused)
