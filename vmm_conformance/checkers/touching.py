"""What work touches and may not: bytes with no memory behind them, or without rights for the device that does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses
from vmm_conformance.history.state import Mapping, State


class Untouchable(NamedTuple):
    """``text`` goes on behind the kind of the work. ``mapping`` is what has not the rights, None where nothing is."""

    address: int
    text: str
    mapping: Mapping | None = None


def untouchable(state: State, work: Event, device: int | None) -> Iterator[Untouchable]:
    """What ``work`` of a stream of ``device`` touches and may not; None is the host, who has its device's rights."""
    for address, size, writes in accesses(work):
        mapping = state.mapping_at(address)
        if mapping is not None and address + size <= mapping.address + mapping.size:
            if (refused := _refused(mapping, device, writes)) is not None:
                yield refused
        elif size > 0:
            yield from _behind(state, address, size, device, writes)


def _behind(state: State, address: int, size: int, device: int | None, writes: bool) -> Iterator[Untouchable]:
    """A range that is not in one mapping: every byte needs memory behind it."""
    parts = state.parts(address, size)
    missing = size - sum(part.high - part.low for part in parts)
    if missing:
        yield Untouchable(address, f"touches {address:#x}+{size}, of which {missing} bytes have no memory")
        return
    for part in parts:
        refused = None if part.mapping is None else _refused(part.mapping, device, writes)
        if refused is not None:
            yield refused


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
