"""Looks at what a driver call may have changed. See `running.driver`.

Every look is a recorded call of the harness. None of them is needed to run a program; without them a
refused call that changed something would go unnoticed until it is too late to say which call it was.
"""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import Access
from vmm_conformance.history.events import HARNESS
from vmm_conformance.history.state import Mapping, Memory
from vmm_conformance.running.driver_calls import Calls

_TOKEN: Final = 8

_MOVES_MEMORY: Final = frozenset(
    {"reserve", "address_free", "create", "retain", "release", "map", "unmap", "alloc", "free"}
)
"""Calls after which free memory is looked at."""

_RANGED: Final = frozenset({"address_free", "map", "unmap", "set_access", "write", "read"})
"""Calls whose first two arguments are an address and a size, or bytes."""


class Probes:
    """Looks around, through ``calls``."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._state = calls.state
        self._devices = calls.ranges.devices
        self._turn = 0
        self._marks: dict[Memory, dict[int, int]] = {}

    def memory(self) -> None:
        """How much is free on every device."""
        ranges = self._calls.ranges
        for device in range(self._devices):
            if self._calls.call(HARNESS, "mem_info", device) == 0:
                ranges.free[device], ranges.total[device] = self._calls.result
            else:
                ranges.free.setdefault(device, 0)
                ranges.total.setdefault(device, 0)

    def watched(self, kind: str, args: tuple[Any, ...]) -> list[Mapping]:
        """The mappings that a call names, before it is made."""
        if kind in _RANGED:
            size = args[1] if isinstance(args[1], int) else len(args[1])
            return self._state.mappings_in(args[0], max(size, 1))
        if kind == "release":
            memory = self._state.handles.get(args[0])
            return [m for m in self._state.mappings if m.memory is memory][:1] if memory else []
        return []

    def after(self, kind: str, args: tuple[Any, ...], status: int, watched: list[Mapping], result: Any) -> None:
        """Look at what the call may have changed, and may not have.

        Free memory comes last: that a mapping has gone says more than that its memory has come back.
        """
        if status != 0 or kind == "release":
            for mapping in {id(m): m for m in watched[:1] + watched[-1:]}.values():
                self.mapping(mapping)
        elif kind == "map":
            self._fresh(args[0], args[1])
        elif kind == "unmap":
            self._gone(watched)
        elif kind == "set_access":
            self._granted(watched)
        elif kind == "write":
            self._written(args[0], len(args[1]))
        elif kind == "alloc":
            self._allocated(result, args[0])
        if status != 0 or kind in _MOVES_MEMORY:
            self.memory()

    # -- what each call may have changed

    def _fresh(self, address: int, size: int) -> None:
        """A new mapping, which nobody may touch yet."""
        for device in range(self._devices):
            self._calls.call(HARNESS, "get_access", address, device)
        self._calls.call(HARNESS, "get_access", address + size - 1, self._next_device())

    def _gone(self, ended: list[Mapping]) -> None:
        """Nothing is mapped there any more; what is beside it and what shares its memory is as before."""
        if not ended:
            return
        for mapping in {id(m): m for m in (ended[0], ended[-1])}.values():
            self._calls.call(HARNESS, "get_access", mapping.address, self._next_device())
        for beside in self._beside(ended):
            self.mapping(beside)
        self._alias(ended[-1])

    def _granted(self, changed: list[Mapping]) -> None:
        """Rights, at both ends; then tokens, so that there is something to lose."""
        for mapping in {id(m): m for m in (changed[:1] + changed[-1:])}.values():
            self._rights(mapping)
        for beside in self._beside(changed):
            self._calls.call(HARNESS, "get_access", beside.address, self._next_device())
        if changed:
            other = self._other_mapping(changed[0])
            if other is not None:
                self._rights(other)
        for mapping in changed:
            self._seed(mapping)

    def _written(self, address: int, size: int) -> None:
        """The bytes, through another mapping of the same memory."""
        mapping = self._state.mapping_at(address)
        if mapping is None:
            return
        low = mapping.offset + address - mapping.address
        self._marks.setdefault(mapping.memory, {})[low] = size
        other = self._other_mapping(mapping)
        if other is not None:
            self._read_memory(other, low, size)

    def _allocated(self, address: int, size: int) -> None:
        if size >= _TOKEN:
            self._calls.call(HARNESS, "write", address, self._calls.tokens.take(), None)

    # -- looking

    def mapping(self, mapping: Mapping, *, thorough: bool = False) -> None:
        """Rights at both ends of a mapping, and tokens in it that can be read."""
        if mapping.ended >= 0:
            return
        self._rights(mapping)
        marks = self._marks.get(mapping.memory)
        if marks and mapping.rights.get(mapping.memory.device, 0) & Access.READ:
            chosen = list(marks.items())[: 16 if thorough else 2]
            for low, size in chosen:
                self._read_memory(mapping, low, size)

    def _rights(self, mapping: Mapping) -> None:
        """The rights of its own device at its start, and those of each device in turn at its end."""
        self._calls.call(HARNESS, "get_access", mapping.address, mapping.memory.device)
        self._calls.call(HARNESS, "get_access", mapping.address + mapping.size - 1, self._next_device())

    def _read_memory(self, mapping: Mapping, low: int, size: int) -> None:
        """Read bytes ``low`` on of the memory behind ``mapping``, through it, if it can be."""
        at = low - mapping.offset
        if at >= 0 and at + size <= mapping.size and mapping.rights.get(mapping.memory.device, 0) & Access.READ:
            self._calls.call(HARNESS, "read", mapping.address + at, size, None)

    def _seed(self, mapping: Mapping) -> None:
        """Tokens at both ends of a mapping that can be written, where there is none yet."""
        if mapping.rights.get(mapping.memory.device, 0) != Access.READ_WRITE or self._calls.pending:
            return
        marks = self._marks.setdefault(mapping.memory, {})
        for low in (mapping.offset, mapping.offset + mapping.size - _TOKEN):
            if low in marks:
                self._read_memory(mapping, low, marks[low])
            else:
                marks[low] = _TOKEN
                address = mapping.address + low - mapping.offset
                self._calls.call(HARNESS, "write", address, self._calls.tokens.take(), None)

    def _alias(self, mapping: Mapping) -> None:
        other = self._other_mapping(mapping)
        if other is not None:
            self.mapping(other)

    def _other_mapping(self, mapping: Mapping) -> Mapping | None:
        """Another live mapping of the same memory."""
        if mapping.memory.mappings < (1 if mapping.ended >= 0 else 2):
            return None
        return next((m for m in self._state.mappings if m.memory is mapping.memory and m is not mapping), None)

    def _beside(self, run: list[Mapping]) -> list[Mapping]:
        """The mappings on both sides of a run."""
        if not run:
            return []
        found = (self._state.mapping_at(run[0].address - 1), self._state.mapping_at(run[-1].address + run[-1].size))
        return [mapping for mapping in found if mapping is not None]

    def _next_device(self) -> int:
        self._turn += 1
        return self._turn % self._devices
