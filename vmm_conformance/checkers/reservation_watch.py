"""Walks a history of the contract ``reservation`` once, keeps the ledger, and tells the families of checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vmm_conformance.checkers.reservation_calls import (
    MAPPING,
    RANGED,
    Allocation,
    Call,
    Family,
    Ledger,
    Owned,
    Piece,
    Reserved,
    Step,
)
from vmm_conformance.checkers.reservation_requests import unserved, wrong
from vmm_conformance.history.events import HARNESS, SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Mapping, Memory


def _overridden(families: Sequence[Family], name: str) -> list[Callable[..., None]]:
    """The families' own methods of that name: most do not care for most events."""
    return [getattr(family, name) for family in families if name in type(family).__dict__]


class Watch(Visitor):
    """The visitor: keeps the ledger and tells the families."""

    def __init__(self, replay: Replay, ledger: Ledger, families: Sequence[Family]) -> None:
        self.state = replay.state
        self.ledger = ledger
        self.tell = {name: _overridden(families, name) for name in ("step", "caller", "ran", "returned", "done")}
        self._touched: Sequence[Mapping] = ()

    def before(self, event: Event) -> None:
        """See what the subject's call is about to touch."""
        if event.who == SUBJECT and event.kind in RANGED:
            self._touched = self.state.mappings_in(event.args[0], event.args[1])

    def after(self, event: Event) -> None:
        """Tell the families what the event is to them."""
        if event.kind == "note":
            self._note(event, *event.args)
        elif event.who == SUBJECT:
            self._step(event)
        elif event.kind == "ran":
            for tell in self.tell["ran"]:
                tell(event)
        elif event.who == HARNESS and event.kind in ("launch", "get_access"):
            for tell in self.tell["caller"]:
                tell(event)

    def _note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        ledger = self.ledger
        if what == "call":
            ledger.call = call = Call(details, ledger)
            call.wrong = wrong(call, ledger)
            call.unserved = unserved(call, ledger)
        elif what == "return" and ledger.call:
            call = ledger.call
            call.status, call.code, call.message = details["status"], details["code"], details["message"]
            call.address, call.views = details.get("address"), details["views"]
            settle(call, ledger, self.state.handles)
            for tell in self.tell["returned"]:
                tell(call, event)
            ledger.call = None
        elif what == "done":
            for tell in self.tell["done"]:
                tell(event)

    def _step(self, event: Event) -> None:
        call = self.ledger.call
        if call is None:
            return
        step = Step(event, self._touched if event.kind in RANGED else ())
        if event.kind == "map" and not event.status:
            step.made = self.state.mapping_at(event.args[0])
        if step.injected:
            self._excuse(step, call)
        call.steps.append(step)
        for tell in self.tell["step"]:
            tell(step, call)

    def _excuse(self, step: Step, call: Call) -> None:
        """What an injected failure keeps may stay. But a remap that fails so must try once more (REMAP-36)."""
        event, excused = step.event, self.ledger.excused
        if event.kind == "unmap" and not (call.name == "remap" and call.cause is None):
            for mapping in step.touched:
                excused |= {mapping, mapping.memory}
                if mapping.reservation:
                    excused.add(mapping.reservation)
        elif event.kind == "release" and event.args[0] in self.state.handles:
            excused.add(self.state.handles[event.args[0]])
        elif event.kind == "address_free" and event.args[0] in self.state.reservations:
            excused.add(self.state.reservations[event.args[0]])


def settle(call: Call, ledger: Ledger, handles: dict[int, Memory]) -> None:
    """Enter into the ledger what a call has done."""
    about, name = call.about, call.name
    if name == "close" and call.reserved:
        call.reserved.open = False
        for number in [n for n, owned in ledger.owners.items() if owned.reserved is call.reserved]:
            del ledger.owners[number]
    elif name == "drop" or (name == "remap" and not call.good and call.is_null("mapping")):
        ledger.owners.pop(about["mapping"], None)
    elif call.good:
        _settle_good(call, ledger, handles)


def _settle_good(call: Call, ledger: Ledger, handles: dict[int, Memory]) -> None:
    about, name, owners = call.about, call.name, ledger.owners
    if name == "allocate" and call.address:
        memory = handles.get(call.address.address)
        ledger.allocations[about["allocation"]] = Allocation(about["allocation"], call.address, memory)
    elif name == "reserve" and call.address:
        ledger.reserved[about["reservation"]] = Reserved(about["reservation"], about["device"], call.address)
    elif name == "free" and about["allocation"] in ledger.allocations:
        ledger.allocations[about["allocation"]].held = False
    elif name in MAPPING and call.reserved and call.slices and call.reserved.open:
        owners[about["made"]] = Owned(call.reserved, *call.place, pieces_of(call, ledger, ()))
        call.reserved.used = True
    elif name == "remap" and call.owned:
        owners.pop(about["mapping"], None)
        owners[about["made"]] = call.owned._replace(pieces=pieces_of(call, ledger, call.owned.pieces))
    elif name == "move" and call.owned:
        owners.pop(about["mapping"], None)
        owners[about["made"]] = call.owned
    elif name == "assign" and about["target"] != about["source"]:
        for mapping in ("target", "source"):
            owners.pop(about[mapping], None)
        if call.other:
            owners[about["target"]] = call.other


def pieces_of(call: Call, ledger: Ledger, before: Sequence[Piece]) -> tuple[Piece, ...]:
    """What is shown behind a call that went well; ``before`` what was."""
    known = ledger.allocations
    required = [s for s in call.slices if s.required and s.memory in known]
    pieces = [Piece(s.offset, s.skip, s.size, known[s.memory]) for s in required]
    pieces += [p for p in before if not any(s.offset <= p.offset < s.end for s in required)]
    return tuple(sorted(pieces, key=lambda piece: piece.offset))
