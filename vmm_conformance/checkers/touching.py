"""What work touches and may not: bytes with no memory behind them, or without rights for the device that does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses
from vmm_conformance.history.state import Mapping, Part, State


class Untouchable(NamedTuple):
    """``text`` goes on behind the kind of the work. ``mapping`` is what has not the rights, None where nothing is.

    ``address`` is where that begins: the mapping, or the first byte with no memory behind it.
    """

    address: int
    text: str
    mapping: Mapping | None = None


def untouchable(state: State, work: Event, device: int | None) -> Iterator[Untouchable]:
    """What ``work`` of a stream of ``device`` touches and may not; None is the host, who has its device's rights."""
    for address, size, writes in accesses(work):
        if size > 0:
            yield from _in_range(state, address, size, device, writes)


def _in_range(state: State, address: int, size: int, device: int | None, writes: bool) -> Iterator[Untouchable]:
    """Every byte needs memory behind it, and then rights."""
    parts = state.parts(address, size)
    missing = size - sum(part.high - part.low for part in parts)
    if missing > 0:
        text = f"touches {address:#x}+{size}, of which {missing} bytes have no memory"
        yield Untouchable(_first_hole(parts, address), text)
        return
    for part in parts:
        refused = None if part.mapping is None else _refused(part.mapping, device, writes)
        if refused is not None:
            yield refused


def _first_hole(parts: Iterable[Part], address: int) -> int:
    """The first address from ``address`` on with nothing behind it; ``parts`` are what stands behind some."""
    for part in parts:
        if part.mapping is not None and part.mapping.address > address:
            break
        address += part.high - part.low
    return address


def _refused(mapping: Mapping, device: int | None, writes: bool) -> Untouchable | None:
    needed = 3 if writes else 1
    owner = mapping.memory.device if device is None else device
    rights = mapping.rights.get(owner, 0)
    if rights & needed == needed:
        return None
    where = f"{mapping.address:#x}+{mapping.size}"
    to = "write to" if writes else "read from"
    text = f"may not {to} the mapping {where}: device {owner} has the rights {rights}"
    return Untouchable(mapping.address, text, mapping)
