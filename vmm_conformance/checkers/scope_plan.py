"""What an executable says of its buffers, worked out from the description alone."""

from __future__ import annotations

from typing import Any

from vmm_conformance.contracts import COLLECTIVE_SPACE, BufferKind, RemapMode


class PlanFacts:
    """One executable's static facts.

    ``constants``, ``temps`` and ``candidates`` are the buffers that commands name and that are not empty, by
    what they may come to; ``transients`` those that a scope has to allocate, in the order in which it must.
    """

    def __init__(self, planned: Any) -> None:
        self.buffers = planned.buffers
        self.commands = planned.commands
        self.mode: RemapMode = planned.mode
        named: set[int] = set()
        for command in planned.commands:
            named.update(command.reads)
            named.update(command.writes)
        of: dict[BufferKind, list[int]] = {kind: [] for kind in BufferKind}
        for index, buffer in enumerate(planned.buffers):
            if index in named and buffer.size > 0:
                of[buffer.kind].append(index)
        self.named = frozenset(named)
        self.constants = frozenset(of[BufferKind.CONSTANT])
        self.temps = frozenset(of[BufferKind.TEMP])
        self.candidates = frozenset([*of[BufferKind.PARAMETER], *of[BufferKind.OUTPUT]])
        own = [i for i, b in enumerate(planned.buffers) if b.size and b.kind in (BufferKind.OUTPUT, BufferKind.TEMP)]
        first = [i for i in own if planned.buffers[i].space == COLLECTIVE_SPACE]
        self.transients = (*first, *(i for i in own if i not in first))
        self.mixed = 0 < len(first) < len(own)

    @property
    def profiled(self) -> bool:
        """Whether addresses are watched before anything is decided."""
        return self.mode is RemapMode.SKIP_PROFILED

    @property
    def selects(self) -> bool:
        """Whether there may be something to remap."""
        if self.mode is RemapMode.ALWAYS_UPDATE:
            return False
        return bool(self.temps) or (self.profiled and bool(self.candidates))

    def kind(self, index: int) -> BufferKind:
        """Whose a buffer is."""
        found: BufferKind = self.buffers[index].kind
        return found

    def is_parameter(self, index: int) -> bool:
        """Whether the caller hands the buffer in."""
        return self.kind(index) is BufferKind.PARAMETER

    def rounded(self, index: int, granularity: int) -> int:
        """The bytes of whole granules that a buffer needs."""
        size: int = self.buffers[index].size
        return (size + granularity - 1) // granularity * granularity

    def laid_out(self, indices: frozenset[int], granularity: int) -> int:
        """The bytes of a reservation that has a place for each of ``indices``."""
        return sum(self.rounded(index, granularity) for index in indices)
