"""What a request must come to, by the book as it stands when the request is made.

`decide` names what stands against a request (with the code it must then be refused with) and, where
nothing does, what a success shows. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vmm_conformance.checkers.vmm_ledger import Alias, Allocation, Call, Entity, Ledger, State
from vmm_conformance.contracts import HOST_SPACE, Code, Range, Status

SERVED: Final = "ALLOC-181"
"""A request that nothing stands against succeeds: what a success shows if it shows nothing else."""

SHORT: Final = frozenset({Code.RESOURCE_EXHAUSTED.value, Status.OUT_OF_MEMORY.name})
"""How a request is refused where memory is short."""


class Objection(NamedTuple):
    """Something against a request: ``codes`` are those it may be refused with. ``quiet``: no driver call is made."""

    invariant: str
    codes: frozenset[str]
    text: str
    quiet: bool


@dataclass(slots=True)
class Decision:
    """What a request must come to.

    ``objections``: it must be refused with a code of one of them.
    ``merits``: what a success shows, the most special first. ``nothing``: it asks for nothing, so nothing
    happens. ``takes_back``: stale records of which one must be the answer; ``conflicts``: stale records
    that must be completed first. ``open``: either way is right, since the state is not known.
    """

    objections: list[Objection] = field(default_factory=list)
    merits: list[str] = field(default_factory=list)
    nothing: bool = False
    takes_back: list[Entity] = field(default_factory=list)
    conflicts: list[Entity] = field(default_factory=list)
    open: bool = False

    def object(self, invariant: str, codes: str | frozenset[str], text: str, *, quiet: bool = True) -> None:
        """One more thing against the request."""
        found = codes if isinstance(codes, frozenset) else frozenset({str(codes)})
        self.objections.append(Objection(invariant, found, text, quiet))

    def merit(self, invariant: str) -> None:
        """A success shows this too."""
        self.merits.append(invariant)


def decide(ledger: Ledger, call: Call) -> Decision:
    """What must come of ``call``."""
    decision = Decision()
    rule = _RULES.get(call.name)
    if rule is not None:
        rule(ledger, call, decision)
    decision.merits.append(SERVED)
    return decision


def _known(ledger: Ledger, call: Call, decision: Decision) -> bool:
    if call.ordinal not in ledger.streams:
        decision.object("ALLOC-43", Code.NOT_FOUND, f"the allocator has no device {call.ordinal}")
        return False
    return True


# -- allocations


def _allocate(ledger: Ledger, call: Call, decision: Decision) -> None:
    size, space = call["size"], call["space"]
    if size == 0:
        decision.nothing = True
        decision.merit("ALLOC-41")
        return
    if space == HOST_SPACE:
        if ledger.header["host_allocator"]:
            decision.open = True
        else:
            decision.object("ALLOC-78", Code.FAILED_PRECONDITION, "there is no host allocator")
    if not _known(ledger, call, decision) or decision.objections:
        return
    _fits(ledger, call, decision)
    wanted = (False, call["tag"], space, ledger.rounded(size))
    decision.takes_back = [e for e in _stale_allocations(ledger, call.ordinal) if _key(e) == wanted]
    if decision.takes_back:
        decision.merit("ALLOC-50")
    if ledger.traced:
        decision.open = decision.open or any(e.damaged for e in decision.takes_back)


def _allocate_mapped(ledger: Ledger, call: Call, decision: Decision) -> None:
    size = call["size"]
    if size != call["map_size"]:
        decision.object("ALLOC-68", Code.INVALID_ARGUMENT, f"{size} bytes to allocate and {call['map_size']} to map")
        return
    if size == 0:
        decision.nothing = True
        decision.merit("ALLOC-41")
        return
    known = _known(ledger, call, decision)
    inside = _inside(call, decision)
    if call["space"] == HOST_SPACE:
        decision.object("ALLOC-78", Code.INVALID_ARGUMENT, "the host's memory is never mapped into a reservation")
    if known and inside and not decision.objections:
        _at_slice(ledger, call, decision)


def _at_slice(ledger: Ledger, call: Call, decision: Decision) -> None:
    """An allocation at a slice takes back what lies there, if it is alike, or must have it to itself."""
    size, slice = call["size"], call["slice"]
    wanted = (True, call["tag"], call["space"], ledger.rounded(size))
    there = ledger.overlapping(call.ordinal, slice)
    own = [e for e in there if e.extent == slice and isinstance(e, Allocation) and _key(e) == wanted]
    if own and own[0].state is State.STALE:
        decision.takes_back = [*own]
        decision.merit("ALLOC-67")
        decision.open = own[0].damaged
    else:
        _place(ledger, call, decision, there, None)
        _fits(ledger, call, decision)


def _stale_allocations(ledger: Ledger, ordinal: int) -> list[Allocation]:
    return [e for e in ledger.allocations.values() if e.ordinal == ordinal and e.state is State.STALE]


def _key(allocation: Allocation) -> tuple[bool, bool, int, int]:
    return allocation.mapped, allocation.tag, allocation.space, allocation.committed


def _fits(ledger: Ledger, call: Call, decision: Decision) -> None:
    """More than there can ever be is refused; what the rest may cost is seen when memory is created."""
    if ledger.rounded(call["size"]) > ledger.limit:
        decision.object("ALLOC-69", SHORT, f"more than the {ledger.limit} bytes that the device may have", quiet=False)


def _deallocate(ledger: Ledger, call: Call, decision: Decision) -> None:
    address: Range = call["address"]
    if address.address == 0:
        decision.nothing = True
        decision.merit("ALLOC-43")
        return
    if not _known(ledger, call, decision):
        return
    found = ledger.allocation(call.ordinal, address)
    if found is None or found.state is not State.ACTIVE:
        decision.object(_unknown(ledger, call, "ALLOC-46"), Code.NOT_FOUND, "this is no active allocation")
    elif found.alias is not None and found.alias.state is State.ACTIVE:
        decision.object("ALLOC-48", Code.FAILED_PRECONDITION, f"{found.alias} shows it")
        decision.open = found.alias.damaged
    elif found.alias is not None:
        decision.merit("ALLOC-48")
    decision.open = decision.open or (found is not None and found.damaged)


def _unknown(ledger: Ledger, call: Call, otherwise: str) -> str:
    """The invariant that an address is about which is no active allocation's."""
    address: Range = call["address"]
    begins = ledger.allocations.get((call.ordinal, address.address))
    if otherwise == "ALLOC-46" and begins is not None and begins.range != address:
        return "ALLOC-47"
    if otherwise == "ALLOC-46" and (call.ordinal, address.address) in ledger.aliases:
        return "ALLOC-49"
    if any(e.extent.address == address.address for e in ledger.allocations.values() if e.ordinal != call.ordinal):
        return "ALLOC-77"
    return otherwise


# -- aliases


def _inside(call: Call, decision: Decision) -> bool:
    """Whether the slice is one of the reservation."""
    whole, slice = call["reservation"], call["slice"]
    if whole is None:
        decision.object("ALLOC-65", Code.INVALID_ARGUMENT, "the reservation is null")
    elif slice.address < whole.address or slice.end > whole.end:
        decision.object("ALLOC-65", Code.INVALID_ARGUMENT, "the slice is not in the reservation")
    else:
        return True
    return False


def _map(ledger: Ledger, call: Call, decision: Decision) -> None:
    address, slice = call["address"], call["slice"]
    if slice.size == 0:
        decision.nothing = True
        decision.merit("ALLOC-41")
        decision.open = call.ordinal not in ledger.streams
        return
    if not _known(ledger, call, decision):
        return
    if address.address == 0:
        decision.object("ALLOC-63", Code.INVALID_ARGUMENT, "the source is null")
    inside = _inside(call, decision)
    source = ledger.allocation(call.ordinal, address)
    if address.address and (source is None or source.state is not State.ACTIVE):
        decision.object(_unknown(ledger, call, "ALLOC-63"), Code.NOT_FOUND, "the source is no active allocation")
        source = None
    if source is not None:
        decision.open = source.damaged or (source.alias is not None and source.alias.damaged)
        _source(ledger, slice, source, decision)
    if inside:
        _place(ledger, call, decision, ledger.overlapping(call.ordinal, slice), source)


def _source(ledger: Ledger, slice: Range, source: Allocation, decision: Decision) -> None:
    """What stands against this source, and what it must wait for."""
    if slice.size > source.committed:
        decision.object("ALLOC-64", Code.INVALID_ARGUMENT, f"{source.committed} bytes are committed behind the source")
    elif source.range.size < slice.size:
        decision.merit("ALLOC-64")
    alias = source.alias
    if alias is not None and alias.state is State.ACTIVE:
        decision.object("ALLOC-61", str(ledger.header["second_alias"]), f"{alias} shows the source already")
    elif alias is not None and alias.extent == slice:
        decision.takes_back = [alias]
        decision.merits.insert(0, "ALLOC-55")
    elif alias is not None:
        decision.conflicts.append(alias)
        decision.merits.insert(0, "ALLOC-59")


def _place(
    ledger: Ledger, call: Call, decision: Decision, there: list[Entity], source: Allocation | None
) -> None:
    """What stands against this slice, and what must be waited for there."""
    slice: Range = call["slice"]
    for entity in [e for e in there if e not in decision.takes_back]:
        own = isinstance(entity, Alias) and entity.source is source and entity.extent.address == slice.address
        decision.open = decision.open or entity.damaged
        if entity.extent != slice:
            about = "ALLOC-56" if own and entity.state is State.STALE else "ALLOC-62"
            decision.object(about, Code.FAILED_PRECONDITION, f"{entity} overlaps the slice in part")
            decision.open = decision.open or (entity.state is State.STALE and not ledger.traced)
        elif entity.state is State.ACTIVE:
            decision.object("ALLOC-60", Code.ALREADY_EXISTS, f"{entity} is there")
        elif entity not in decision.conflicts:
            decision.conflicts.append(entity)
            decision.merits.insert(0, "ALLOC-57")
    if not there and ledger.touching(call.ordinal, slice):
        decision.merit("ALLOC-62")


def _unmap(ledger: Ledger, call: Call, decision: Decision) -> None:
    slice: Range = call["slice"]
    if slice.size == 0:
        decision.nothing = True
        decision.merit("ALLOC-41")
        decision.open = call.ordinal not in ledger.streams
        return
    if not _known(ledger, call, decision) or not _inside(call, decision):
        return
    alias = ledger.aliases.get((call.ordinal, slice.address))
    if alias is None:
        allocated = (call.ordinal, slice.address) in ledger.allocations
        decision.object("ALLOC-49" if allocated else "ALLOC-66", Code.NOT_FOUND, "no alias begins there")
        return
    decision.open = alias.damaged
    if alias.extent != slice:
        decision.object("ALLOC-66", Code.INVALID_ARGUMENT, f"the alias there has {alias.extent.size} bytes")
    if alias.state is State.STALE:
        decision.object("ALLOC-66", Code.FAILED_PRECONDITION, "the alias there is unmapped already")
        decision.open = decision.open or not ledger.traced


def _device_alone(ledger: Ledger, call: Call, decision: Decision) -> None:
    _known(ledger, call, decision)


Rule = Callable[[Ledger, Call, Decision], None]

_RULES: Final[dict[str, Rule]] = {
    "allocate": _allocate, "allocate_mapped": _allocate_mapped, "deallocate": _deallocate, "map": _map, "unmap": _unmap,
    "synchronize": _device_alone, "stream": _device_alone, "create_reservation": _device_alone,
}  # fmt: skip
