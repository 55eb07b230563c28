"""Enters into the ledger what a call has done, when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vmm_conformance.checkers.vmm_ledger import Alias, Allocation, Call, Entity, Ledger, State
from vmm_conformance.checkers.vmm_rules import Decision
from vmm_conformance.contracts import Range


def enter(ledger: Ledger, call: Call, decision: Decision) -> None:
    """First what the call ended, then what it was for, if it went well."""
    for ending in call.endings:
        if ending.entity.state is not State.GONE:
            ledger.remove(ending.entity)
    for entity in call.damaged:
        entity.damaged = True
    action = _ENTRIES.get(call.name)
    if call.good and action is not None and not decision.nothing:
        for entity in decision.conflicts if not ledger.traced else ():
            ledger.remove(entity)  # it was in the way, so it must have ended, though that could not be seen
        action(ledger, call, decision)
        if decision.objections:
            _accepted(ledger, call)


def _accepted(ledger: Ledger, call: Call) -> None:
    """Something was accepted that must be refused: of what it is about nothing can be said any more."""
    about = call.details.get("slice") or call.details.get("address")
    for entity in ledger.overlapping(call.ordinal, about) if about is not None else ():
        entity.damaged = True


def _stand(ledger: Ledger, entity: Entity, call: Call) -> None:
    """What stands behind a new entity, which has lost something when any of its mappings ends."""
    if call.parts:
        entity.mapping, entity.memory = call.parts[0].mapping, call.parts[0].memory
    for part in call.parts:
        if part.mapping is not None:
            ledger.of_mapping[part.mapping] = entity


def _allocated(ledger: Ledger, call: Call, decision: Decision) -> None:
    answer: Range = call.answer
    there = ledger.allocations.get((call.ordinal, answer.address))
    if there is not None and there.state is State.STALE and ledger.traced:
        _revive(there)
        there.range = answer
        return
    if call.ordinal not in ledger.streams:
        return
    committed = ledger.rounded(call["size"])
    made = Allocation(call.ordinal, answer, committed, call["space"], call["tag"], call.name == "allocate_mapped")
    _stand(ledger, made, call)
    ledger.add(made)


def _revive(entity: Entity) -> None:
    entity.state = State.ACTIVE
    entity.revived = True
    entity.marker_failed = False


def _deallocated(ledger: Ledger, call: Call, decision: Decision) -> None:
    found = ledger.allocation(call.ordinal, call["address"])
    if found is not None:
        _defer(found, call)


def _defer(entity: Entity, call: Call) -> None:
    entity.state = State.STALE
    entity.since = call.returned.seq
    entity.tick = call.tick


def _mapped(ledger: Ledger, call: Call, decision: Decision) -> None:
    source = ledger.allocation(call.ordinal, call["address"])
    if source is None:
        return
    alias = source.alias
    if alias is not None and alias.state is State.STALE and alias.extent == call["slice"]:
        _revive(alias)
        alias.by = "ALLOC-55"
        return
    by = next((merit for merit in decision.merits if merit in ("ALLOC-57", "ALLOC-59")), "ALLOC-183")
    made = Alias(call.ordinal, call["slice"], source, by)
    _stand(ledger, made, call)
    source.alias = made
    ledger.add(made)


def _unmapped(ledger: Ledger, call: Call, decision: Decision) -> None:
    alias = ledger.aliases.get((call.ordinal, call["slice"].address))
    if alias is not None:
        _defer(alias, call)


def _synchronized(ledger: Ledger, call: Call, decision: Decision) -> None:
    """Where endings cannot be seen, this is when all that is stale must have ended."""
    for entity in ledger.stale(call.ordinal) if not ledger.traced else ():
        ledger.remove(entity)


Entry = Callable[[Ledger, Call, Decision], None]

_ENTRIES: Final[dict[str, Entry]] = {
    "allocate": _allocated, "allocate_mapped": _allocated, "deallocate": _deallocated, "map": _mapped,
    "unmap": _unmapped, "synchronize": _synchronized,
}  # fmt: skip

