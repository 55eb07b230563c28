"""What calls answer: refusals with the right code and without any effect, and successes as they must be."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_calls import Family
from vmm_conformance.checkers.vmm_ledger import Alias, Allocation, Call, State, told
from vmm_conformance.checkers.vmm_rules import SERVED, SHORT, Decision
from vmm_conformance.contracts import NULL, Code, Range, RawAllocation
from vmm_conformance.history.events import Event

NOTHING, REQUESTED, UNKNOWN = "ALLOC-41", "ALLOC-42", "ALLOC-43"
ROLES = "ALLOC-49"
AGAIN, KEY, NEW_SIZE = "ALLOC-50", "ALLOC-51", "ALLOC-52"
SEEN, HIDDEN, SAME_SLICE = "ALLOC-53", "ALLOC-54", "ALLOC-67"
RELIEF, ACCOUNT, APART, NESTED, USABLE = "ALLOC-70", "ALLOC-72", "ALLOC-77", "ALLOC-79", "ALLOC-183"

ALLOCATING: Final = frozenset({"allocate", "allocate_mapped"})


class Answers(Family):
    """Judges what each call came to by what `decide` says it must come to."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._short: set[int] = set()
        """Devices on which memory was short once."""

    def before(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Judge the answer."""
        if call.status == "crashed":
            self._wrong(judge, SERVED, call, "crashes", "an answer, or an error of the contract")
        elif not decision.open and call.name not in ("open", "close", "release"):
            self._answer(call, decision, judge)

    def _answer(self, call: Call, decision: Decision, judge: Judge) -> None:
        if decision.objections:
            self._refusal(call, decision, judge)
        elif not call.good:
            self._refused(call, decision, judge)
        else:
            self._success(call, decision, judge)

    def _wrong(self, judge: Judge, invariant: str, call: Call, what: str, expected: str) -> None:
        range = call.details.get("slice") or call.details.get("address")
        judge.expect(
            invariant, call.returned, False, f"{call} {what}", expected=expected,
            actual=": ".join(text for text in (call.status, call.code, call.message) if text), range=range or None,
        )  # fmt: skip

    # -- refusals

    def _refusal(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Something stands against the call."""
        first = decision.objections[0]
        codes = frozenset.union(*(objection.codes for objection in decision.objections))
        if len(decision.objections) == 1:
            judge.witness(first.invariant)
        if not call.good and call.struck:
            return
        if call.good or call.code not in codes:
            what = "succeeds" if call.good else "is refused with another code"
            expected = f"refused with {' or '.join(sorted(codes))}"
            self._wrong(judge, first.invariant, call, f"{what} although {first.text}", expected)
        elif first.quiet and call.alone and (made := self._changing(call)):
            self._wrong(
                judge, first.invariant, call, f"is refused, but makes {made} driver calls before",
                "a refusal changes nothing, marks nothing and waits for nothing",
            )  # fmt: skip

    def _changing(self, call: Call) -> int:
        """How many driver calls it makes; to release what nobody has any more, as it failed before, changes nothing."""
        held = {entity.memory.handle for entity in self.ledger.entities(call.ordinal) if entity.memory is not None}
        return sum(event.kind != "release" or event.args[0] in held for event in call.calls)

    def _refused(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Nothing stands against the call, and yet it was refused."""
        if call.struck or (call.code == Code.ABORTED.value and not call.alone):
            return
        about = decision.merits[0]
        if call.code in SHORT and call.name in ALLOCATING and not decision.takes_back:
            if not call.alone:
                return
            self._short.add(call.ordinal)
            reason = self._shortage(call, decision)
            if reason is None:
                return
            about = reason
        self._wrong(judge, about, call, "is refused although nothing stands against it", "it succeeds")

    def _shortage(self, call: Call, decision: Decision) -> str | None:
        """The invariant that a shortage breaks; None if memory was really short."""
        ledger = self.ledger
        needed = ledger.rounded(call["size"])
        live = call.live[call.ordinal]
        freed = {entity: entity.committed for entity in ledger.reclaimable(call.ordinal)}
        freed |= {e: e.committed for e in decision.conflicts if isinstance(e, Allocation)}
        if live + needed <= ledger.limit:
            return ACCOUNT
        return RELIEF if live - sum(freed.values()) + needed <= ledger.limit else None

    # -- successes

    def _success(self, call: Call, decision: Decision, judge: Judge) -> None:
        for invariant in dict.fromkeys(decision.merits):
            judge.witness(invariant)
        if call.name in ALLOCATING and not decision.nothing and not decision.takes_back:
            self._found_room(call, judge)
        if decision.nothing:
            self._nothing(call, judge)
        elif call.name in ALLOCATING:
            self._allocated(call, decision, judge)
        elif call.name in ("stream", "granularity"):
            self._told(call, judge)

    def _found_room(self, call: Call, judge: Judge) -> None:
        """Memory was short and yet found, or was found again after it had been short."""
        if call.live[call.ordinal] + self.ledger.rounded(call["size"]) > self.ledger.limit:
            judge.witness(RELIEF)
        elif call.ordinal in self._short:
            judge.witness(ACCOUNT)

    def _nothing(self, call: Call, judge: Judge) -> None:
        about = UNKNOWN if call.name == "deallocate" else NOTHING
        count = len(call.calls)
        if count:
            self._wrong(judge, about, call, f"asks for nothing, but makes {count} driver calls", "no driver call")
        if call.name in ALLOCATING and call.answer != NULL:
            self._wrong(judge, about, call, f"asks for no bytes, but gets {told(call.answer)}", "a null range")

    def _allocated(self, call: Call, decision: Decision, judge: Judge) -> None:
        """The size asked for, at a slice if one was named, and a stale record taken back only with an equal key."""
        answer: Range = call.answer
        back = next((e for e in decision.takes_back if e.extent.address == answer.address), None)
        about = NEW_SIZE if back is not None else REQUESTED
        judge.witness(about)
        if answer.size != call["size"]:
            self._wrong(judge, about, call, f"tells {answer.size} bytes", f"{call['size']} bytes, as was asked for")
        if call.name == "allocate_mapped":
            judge.witness(SAME_SLICE)
            if answer != call["slice"]:
                self._wrong(judge, SAME_SLICE, call, f"gives {told(answer)}", "exactly the slice")
        self._taken_back(call, decision, judge, back)

    def _taken_back(self, call: Call, decision: Decision, judge: Judge, back: Any) -> None:
        there = self.ledger.allocations.get((call.ordinal, call.answer.address))
        others = [e for e in self.ledger.stale(call.ordinal) if isinstance(e, Allocation) and not e.damaged]
        ended = {ending.entity for ending in call.endings}
        about = SAME_SLICE if call.name == "allocate_mapped" else AGAIN
        if there is not None and there.state is State.ACTIVE and there not in ended and not there.damaged:
            self._wrong(judge, USABLE, call, f"gives what is in use: {there}", "memory of its own")
            return
        if others and not decision.takes_back:
            judge.witness(NESTED if call["restored"] else KEY)
        if decision.takes_back and back is None and self.ledger.traced:
            about = NESTED if call["restored"] else about
            self._wrong(judge, about, call, f"makes something new instead of {decision.takes_back[0]}", "that one")
        elif back is not None and call.calls and call.alone:  # otherwise it may have been freed while this one waited
            self._wrong(judge, about, call, f"takes {back} back with {len(call.calls)} driver calls", "no driver call")
        elif back is None and there in others and there not in ended:
            about = NESTED if call["restored"] else KEY
            self._wrong(judge, about, call, f"takes back {there}, of another kind", "equal kind, tag, space and size")

    def _told(self, call: Call, judge: Judge) -> None:
        known = call.ordinal in self.ledger.streams
        wanted = self.ledger.granule if known else 0
        if call.name == "stream":
            wanted = self.ledger.streams[call.ordinal]
        about = SERVED if known else UNKNOWN
        judge.witness(about)
        if call.answer != wanted:
            self._wrong(judge, about, call, f"tells {call.answer}", str(wanted))

    # -- look-ups

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Judge a look-up: an allocation until it is completed, an alias until it is unmapped."""
        if what != "look":
            return
        ordinal, address = details["ordinal"], details["address"]
        if details["status"] != "ok":
            actual = f"{details['code']}: {details['message']}"
            text = f"looking up {told(address)} raises"
            self.judge.fail(SERVED, event, text, expected="an answer, or None", actual=actual)
            return
        entity = self.ledger.aliases.get((ordinal, address.address)) or self.ledger.allocation(ordinal, address)
        if entity is not None and (entity.damaged or (entity.state is State.STALE and not self.ledger.traced)):
            return
        shown = entity.source if isinstance(entity, Alias) else entity
        if isinstance(entity, Alias) and (entity.extent != address or entity.state is State.STALE):
            shown = None
        about = HIDDEN if isinstance(entity, Alias) else SEEN
        if entity is None and any(e.extent.address == address.address for e in self.ledger.allocations.values()):
            about = APART if self.ledger.allocations.get((ordinal, address.address)) is None else SEEN
        self._raw(event, about, address, shown, details["raw"])
        self._own(event, address, entity, details["own"])

    def _raw(
        self, event: Event, about: str, address: Range, shown: Allocation | None, raw: RawAllocation | None
    ) -> None:
        wanted: RawAllocation | None = None
        if shown is not None:
            handle = shown.memory.handle if shown.memory is not None else (raw.handle if raw is not None else 0)
            wanted = RawAllocation(handle, shown.committed)
        failed = SEEN if shown is None or not shown.marker_failed else "ALLOC-75"
        about = failed if about == SEEN else about
        self.judge.witness(about)
        if raw != wanted:
            there = str(shown) if shown is not None else "nothing to be told"
            self.judge.fail(
                about, event, f"the memory behind {told(address)} is not told as it is: {there}",
                expected=f"{wanted}", actual=f"{raw}", range=address,
            )  # fmt: skip

    def _own(self, event: Event, address: Range, entity: Any, own: Range | None) -> None:
        has = isinstance(entity, Allocation) and entity.state is State.ACTIVE and not entity.mapped
        good = own is None
        if has:
            good = own is not None and own.address <= address.address and address.end <= own.end
        self.judge.witness(ROLES)
        if not good:
            self.judge.fail(
                ROLES, event, f"the reservation of {told(address)} is not told as it is",
                expected="the allocator's own addresses around it" if has else "None", actual=told(own), range=address,
            )  # fmt: skip
