"""What the harness does when a step executor calls execute: copies that stand for kernels.

Every slot that execution reads is copied, token by token, into a scratch buffer that is then read
back; every slot that it writes gets fresh tokens from another. Under capture the first token of each
persistent slot goes through a graph that keeps the address of the first execution for ever; all
else takes the table of the step. All reads come before all writes; writes go in ascending slot order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vmm_conformance.contracts import Copy, Driver, Range, Use, Work
from vmm_conformance.running.caller import TOKEN, TokenSource, marks


class Read(NamedTuple):
    """Execution reads ``length`` bytes at ``offset`` of ``slot``."""

    slot: int
    offset: int
    length: int


class Written(NamedTuple):
    """Execution writes ``data`` at ``offset`` of ``slot``."""

    slot: int
    offset: int
    data: bytes


class Plan(NamedTuple):
    """One execution: what is read, in the order of the result, and what is written."""

    reads: tuple[Read, ...]
    writes: tuple[Written, ...]


def plan(table: Sequence[Range], uses: Sequence[Use | None], tokens: TokenSource) -> Plan:
    """Read every mark of every slot that is read, write every mark of every slot that is written."""
    reads, writes = [], []
    for slot, ((address, size), use) in enumerate(zip(table, uses, strict=True)):
        if use is None or not address:
            continue
        for offset, length in marks(size):
            if use.reads:
                reads.append(Read(slot, offset, length))
            if use.writes:
                writes.append(Written(slot, offset, tokens.take(length)))
    return Plan(tuple(reads), tuple(writes))


class Scratch:
    """Harness memory at fixed addresses for one stream: tokens to write, bytes that were read."""

    def __init__(self, driver: Driver, device: int, slots: int) -> None:
        size = max(1, slots) * 2 * TOKEN
        self.tokens = driver.alloc(size, device=device)
        self.results = driver.alloc(size, device=device)


class Execution:
    """Submits executions of one executable on one device; remembers what was captured."""

    def __init__(self, driver: Driver, device: int, slots: int, *, capture: bool) -> None:
        self._driver = driver
        self._device = device
        self._slots = slots
        self._capture = capture
        self._scratch: dict[int, Scratch] = {}
        self._baked: dict[int, int] = {}
        self._graphs: dict[Any, int] = {}

    def submit(
        self, stream: int, table: Sequence[Range], persistent: Sequence[int] | None, todo: Plan
    ) -> Work | None:
        """Give the work to ``stream``; the returned work's data is what was read, in order."""
        scratch = self._scratch.get(stream)
        if scratch is None:
            scratch = self._scratch[stream] = Scratch(self._driver, self._device, self._slots)
        captured = self._bake(table, persistent)
        if todo.writes:
            self._driver.write(scratch.tokens, b"".join(w.data.ljust(TOKEN) for w in todo.writes), stream=stream)
        ins, outs = self._copies(scratch, table, todo)
        self._launch(stream, [copy for slot, copy in ins if slot not in captured])
        self._replay(stream, scratch, todo, captured)
        self._launch(stream, [copy for slot, copy in outs if slot not in captured])
        if not todo.reads:
            return None
        return self._driver.read(scratch.results, len(todo.reads) * TOKEN, stream=stream)

    def _bake(self, table: Sequence[Range], persistent: Sequence[int] | None) -> dict[int, int]:
        """The captured address of each persistent slot; those of the first execution stay."""
        if not self._capture or persistent is None:
            return {}
        for slot in persistent:
            if 0 <= slot < len(table):
                self._baked.setdefault(slot, table[slot][0])
        return {slot: self._baked[slot] for slot in persistent if slot in self._baked}

    @staticmethod
    def _copies(
        scratch: Scratch, table: Sequence[Range], todo: Plan
    ) -> tuple[list[tuple[int | None, Copy]], list[tuple[int | None, Copy]]]:
        """Copies for the reads and for the writes; None instead of a slot where it is never captured."""
        ins: list[tuple[int | None, Copy]] = []
        for at, (slot, offset, length) in enumerate(todo.reads):
            copy = Copy(scratch.results + at * TOKEN, table[slot][0] + offset, length)
            ins.append((slot if offset == 0 else None, copy))
        outs: list[tuple[int | None, Copy]] = []
        for at, (slot, offset, data) in enumerate(todo.writes):
            copy = Copy(table[slot][0] + offset, scratch.tokens + at * TOKEN, len(data))
            outs.append((slot if offset == 0 else None, copy))
        return ins, outs

    def _launch(self, stream: int, copies: Sequence[Copy]) -> None:
        if copies:
            self._driver.launch(stream, copies=copies)

    def _replay(self, stream: int, scratch: Scratch, todo: Plan, captured: dict[int, int]) -> None:
        """Launch the graph of the captured copies; it is captured again only if its shape changes."""
        copies = [
            Copy(scratch.results + at * TOKEN, captured[read.slot], read.length)
            for at, read in enumerate(todo.reads)
            if read.offset == 0 and read.slot in captured
        ] + [
            Copy(captured[write.slot], scratch.tokens + at * TOKEN, len(write.data))
            for at, write in enumerate(todo.writes)
            if write.offset == 0 and write.slot in captured
        ]
        if not copies:
            return
        shape = (stream, tuple(copies))
        graph = self._graphs.get(shape)
        if graph is None:
            self._driver.graph_begin(stream)
            self._driver.launch(stream, copies=copies)
            captured_graph = self._driver.graph_end(stream)
            graph = self._graphs[shape] = self._driver.graph_instantiate(captured_graph)
        self._driver.graph_launch(graph, stream)
