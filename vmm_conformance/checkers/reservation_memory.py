"""Allocations and reservations: what is handed out, and that it goes back once. RAW-1 to 3, RES-4, 5 and 9."""

from __future__ import annotations

from vmm_conformance.checkers.reservation_calls import Allocation, Call, Family, Reserved, Step
from vmm_conformance.contracts import Range, status_name
from vmm_conformance.history.events import Event

ROUNDED, IDENTITY, RELEASED = "RAW-1", "RAW-2", "RAW-3"
PLACED, APART, CLOSED = "RES-4", "RES-5", "RES-9"


class Possessions(Family):
    """Judges what allocate and reserve return, and what free and close do."""

    def returned(self, call: Call, event: Event) -> None:
        """Look at what was made, or at what is left."""
        if call.name == "allocate" and call.good:
            self._allocated(self.ledger.allocations[call.about["allocation"]], call, event)
        elif call.name == "reserve" and call.good:
            self._reserved(self.ledger.reserved[call.about["reservation"]], call, event)
        elif call.name == "close" and call.reserved:
            self._closed(call.reserved, call, event)

    # -- what is made

    def _allocated(self, made: Allocation, call: Call, event: Event) -> None:
        granule = self.ledger.recommended
        self.judge.expect(
            ROUNDED, event, made.size >= call.about["size"] and made.size % granule == 0,
            f"{call} returned an allocation of {made.size} bytes",
            expected=f"at least the size that was asked for, in multiples of {granule}", actual=f"{made.size}",
        )  # fmt: skip
        others = [other for other in self.ledger.allocations.values() if other is not made and other.held]
        same = any(other.number == made.number for other in others)
        self.judge.expect(
            IDENTITY, event, made.number != 0 and not same, f"{call} returned the identity {made.number}",
            expected="not null, and no other live allocation's", actual="null" if not made.number else "another's",
        )  # fmt: skip
        if self.ledger.traced:
            self._real(made, call, event)

    def _real(self, made: Allocation, call: Call, event: Event) -> None:
        memory, about = made.memory, call.about
        found = "no handle of the driver"
        if memory:
            found = f"{memory.size} bytes in space {memory.space} of device {memory.device}"
        wanted = f"{made.size} bytes in space {about['space']} of device {about['device']}"
        if found != wanted:
            self.judge.fail(
                IDENTITY, event, f"{call} returned the identity {made.number}, which is {found}",
                expected=f"a handle of {wanted}", actual=found,
            )  # fmt: skip

    def _reserved(self, made: Reserved, call: Call, event: Event) -> None:
        minimum, asked = self.ledger.minimum, call.about["alignment"]
        alignment = max(minimum, asked if self.ledger.header["aligned"] else 0)
        good = made.base > 0 and made.base % alignment == 0 and made.size % minimum == 0
        self.judge.expect(
            PLACED, event, good and made.size >= call.about["size"], f"{call} returned {made}", range=made.range,
            expected=f"at least the size that was asked for, in multiples of {minimum}, aligned to {alignment}",
            actual=f"{made.base:#x}+{made.size}",
        )  # fmt: skip
        if self.ledger.traced and made.base not in self.state.reservations:
            self.judge.fail(
                PLACED, event, f"{call} returned {made}, which the driver has not reserved", range=made.range,
                expected="the base of a reservation of the driver", actual=f"{made.base:#x}",
            )  # fmt: skip
        others = [other for other in self.ledger.reserved.values() if other is not made and other.open]
        if others:
            self.judge.witness(APART)
        for other in others:
            if made.base < other.range.end and other.base < made.range.end:
                self.judge.fail(
                    APART, event, f"{made} and {other} are both live and overlap", range=made.range,
                    expected="live reservations have no address in common", actual=f"{other.base:#x}+{other.size}",
                )  # fmt: skip

    # -- what goes back

    def step(self, step: Step, call: Call) -> None:
        """Judge each release of memory, and each address range that is freed."""
        if step.event.kind == "release":
            self._release(step, call)
        elif step.event.kind == "address_free":
            self._free(step, call)

    def _release(self, step: Step, call: Call) -> None:
        """Once, after its owner has given it up, and after the last mapping of it was asked to unmap."""
        if step.injected:
            return
        number = step.event.args[0]
        owner = next((a for a in reversed(self.ledger.allocations.values()) if a.number == number), None)
        actual = ""
        if step.refused:
            actual = f"{status_name(step.event.status)}: it was released before, or never created"
        elif owner and owner.held and not (call.name == "free" and call.about["allocation"] == owner.id):
            actual = f"allocation {owner.id} is still held by its owner"
        elif owner and owner.memory:
            shown = [m for m in self.state.mappings if m.memory is owner.memory and m not in self.ledger.excused]
            actual = f"it is still mapped at {shown[0].address:#x}" if shown else ""
        self.judge.expect(
            RELEASED, step.event, not actual, f"{call} releases handle {number}", actual=actual or "so it is",
            expected="a handle is released once, when nobody holds it and nothing shows it",
        )  # fmt: skip

    def _free(self, step: Step, call: Call) -> None:
        """Once, exactly as reserved, with nothing mapped in it."""
        if step.injected:
            return
        shown = [m for m in step.touched if m.reservation is None or m.reservation.address == step.range.address]
        actual = f"{len(shown)} mappings are left in it" if shown else ""
        if step.refused and not shown:
            actual = f"{status_name(step.event.status)}: it is no reservation, or was freed before"
        if any(one.base == step.range.address and one.used for one in self.ledger.reserved.values()):
            self.judge.witness(CLOSED)
        if actual:
            self.judge.fail(
                CLOSED, step.event, f"{call} frees {step.range.address:#x}+{step.range.size}", range=step.range,
                expected="a reservation is freed once and whole, with nothing mapped in it", actual=actual,
            )  # fmt: skip

    def _closed(self, reserved: Reserved, call: Call, event: Event) -> None:
        """Nothing is left of it. One unmap of the whole range may fail because not all of it is mapped."""
        refused = [step for step in call.of("unmap") if step.refused]
        if len(refused) > 1 or any(step.range != reserved.range for step in refused):
            self.judge.fail(
                CLOSED, refused[-1].event, f"{call} unmaps what is not mapped", range=refused[-1].range,
                expected="what is mapped is unmapped; one unmap of the whole range may fail besides",
                actual=f"{len(refused)} unmaps were refused",
            )  # fmt: skip
        if not self.ledger.traced:
            return
        left = self.left(self.state.mappings_in(*reserved.range)) if self._unfreed(reserved) else []
        what = f"{len(left)} mappings" if left else "its addresses" if self._unfreed(reserved) else ""
        if what:
            self.judge.fail(
                CLOSED, event, f"{call} leaves {what} of {reserved} behind", range=reserved.range,
                expected="a reservation that is closed is unmapped and freed", actual=f"{what} left",
            )  # fmt: skip

    def _unfreed(self, reserved: Reserved) -> bool:
        """Whether the range is still reserved without an excuse, for the reservation that was closed."""
        addresses = self.state.reservations.get(reserved.base)
        others = (other for other in self.ledger.reserved.values() if other is not reserved and other.open)
        if addresses is None or addresses in self.ledger.excused:
            return False
        return not any(other.base == reserved.base for other in others)

    def done(self, event: Event) -> None:
        """All allocations were released twice, and nothing is mapped: no reference may be left."""
        for allocation in self.ledger.allocations.values():
            memory = allocation.memory
            if not self.ledger.traced or memory is None or memory in self.ledger.excused:
                continue
            self.judge.expect(
                RELEASED, event, memory.references <= 0, f"allocation {allocation.id} is never given back",
                expected="its handle is released", actual=f"{memory.references} references are left",
                range=Range(0, memory.size), cause=memory.made,
            )  # fmt: skip
