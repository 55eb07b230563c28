"""What is wrong with a request, worked out from the specification and the ledger alone.

`wrong` lists the rules that a request breaks for what it says; it must be refused before the first driver
call. `unserved` says why else it cannot be done: then it is open who refuses it, the subject or the driver.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from vmm_conformance.checkers.reservation_calls import FOREIGN, MAPPING, NULL, Call, Ledger, Slice, Wrong
from vmm_conformance.contracts import Code
from vmm_conformance.history.state import Mapping

KNOWN, OVER, NONE, GAPS = "RES-6", "RES-9", "RES-14", "RES-15"
NULL_MAPPING, NO_SLICES, COVERAGE, NULL_MEMORY = "REMAP-26", "REMAP-27", "REMAP-28", "REMAP-29"

INVALID: Final = Code.INVALID_ARGUMENT.value
PAST: Final = Code.FAILED_PRECONDITION.value


def wrong(call: Call, ledger: Ledger) -> list[Wrong]:
    """The rules that a mapping or remapping request breaks."""
    if call.name in MAPPING:
        return _wrong_mapping(call, ledger)
    return _wrong_remapping(call, ledger) if call.name == "remap" else []


def _wrong_mapping(call: Call, ledger: Ledger) -> list[Wrong]:
    found = []
    if call.reserved and not call.reserved.open:
        found.append(Wrong(OVER, PAST, "the reservation is closed"))
    if not call.slices:
        found.append(Wrong(NONE, INVALID, "there is no descriptor"))
    if gaps(call.slices):
        found.append(Wrong(GAPS, INVALID, "the slices do not touch"))
    return [*found, *_wrong_memory(call.slices, ledger)]


def _wrong_remapping(call: Call, ledger: Ledger) -> list[Wrong]:
    owned = call.owned
    if owned is None:
        return [Wrong(NULL_MAPPING, PAST, "the mapping is null")]
    if not call.slices:
        return [Wrong(NO_SLICES, INVALID, "there is no descriptor")]
    found = []
    if gaps(call.slices) or call.place != (owned.offset, owned.size):
        why = f"the slices are not exactly {owned.offset}+{owned.size}, which is owned"
        found.append(Wrong(COVERAGE, INVALID, why))
    if any(one.memory == NULL for one in call.slices):
        found.append(Wrong(NULL_MEMORY, INVALID, "a slice names no allocation"))
    return [*found, *_wrong_memory([one for one in call.slices if one.required], ledger)]


def gaps(slices: tuple[Slice, ...]) -> bool:
    """Whether some slice does not begin where the one before it ends."""
    return any(one.end != behind.offset for one, behind in pairwise(slices))


def _wrong_memory(slices: tuple[Slice, ...] | list[Slice], ledger: Ledger) -> list[Wrong]:
    found = []
    if any(one.memory == FOREIGN for one in slices):
        found.append(Wrong(KNOWN, INVALID, "a slice names something that is no allocation of the subject"))
    known = (ledger.allocations.get(one.memory) for one in slices)
    if any(allocation is not None and not allocation.held for allocation in known):
        found.append(Wrong(KNOWN, PAST, "a slice names an allocation that was released"))
    return found


def unserved(call: Call, ledger: Ledger) -> str:
    """Why the driver must refuse what a mapping or remapping request asks for; nothing if it need not."""
    required = [one for one in call.slices if one.required]
    for one in required:
        why = _no_fit(one, ledger)
        if why:
            return why
    if call.name in MAPPING and call.reserved and call.slices:
        return _no_place(call, ledger)
    return cuts(call)


def _no_fit(one: Slice, ledger: Ledger) -> str:
    if one.size <= 0 or any(number % ledger.minimum for number in (one.offset, one.skip, one.size)):
        return f"a slice is not made of whole granules of {ledger.minimum} bytes"
    allocation = ledger.allocations.get(one.memory)
    if allocation is None:
        return ""
    if one.skip < 0 or one.skip + one.size > allocation.size:
        return f"a slice leaves allocation {allocation.id}, which has {allocation.size} bytes"
    if one.skip and not ledger.takes.map_offset:
        return "the driver maps allocations from their start alone"
    if one.skip + one.size < allocation.size and not ledger.takes.partial_map:
        return "the driver maps allocations to their end alone"
    return ""


def _no_place(call: Call, ledger: Ledger) -> str:
    reserved, (offset, size) = call.reserved, call.place
    assert reserved is not None
    if offset < 0 or offset + size > reserved.size:
        return f"the slices leave {reserved}"
    for owned in ledger.live(reserved):
        if owned.offset < offset + size and offset < owned.offset + owned.size:
            return f"{owned.offset}+{owned.size} is mapped there"
    for mapping in ledger.excused:
        if not isinstance(mapping, Mapping) or mapping.ended >= 0:
            continue
        start = mapping.address - reserved.base
        if start < offset + size and offset < start + mapping.size:
            return f"{start}+{mapping.size} could not be unmapped before"
    return ""


def cuts(call: Call) -> str:
    """Whether a run of a remap's required slices begins or ends within what one call has mapped."""
    if call.name != "remap" or call.owned is None:
        return ""
    edges: set[int] = set()
    for one in call.slices:
        if one.required:  # an edge between two of them is no edge of a run
            edges ^= {one.offset}
            edges ^= {one.end}
    for piece in call.owned.pieces:
        if any(piece.offset < edge < piece.end for edge in edges):
            return f"a run of slices cuts {piece.offset}+{piece.size}, which one call has mapped"
    return ""
