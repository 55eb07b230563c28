"""What the harness does when a step executor calls execute: reads, writes and copies that stand for kernels.

Every mark of every slot that execution reads is read, and every mark of every slot that it writes gets
a fresh token. Under capture the first mark of each persistent slot goes through a graph, which keeps
the address of the first execution for ever: tokens and results then lie in scratch buffers at fixed
addresses, refilled and read in stream order, so that no two steps write the same bytes. All else takes
the table of the step. All reads come before all writes; writes go in ascending slot order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmm_conformance.contracts import Copy, Driver, Range, Use, Write
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
    """One execution: what is read, and what is written."""

    reads: tuple[Read, ...]
    writes: tuple[Written, ...]


class Result(NamedTuple):
    """The data of ``work`` is what the plan's reads with these numbers read, in order."""

    work: int
    reads: tuple[int, ...]


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


class Scratch(NamedTuple):
    """Harness memory at fixed addresses for one stream: tokens to write, bytes that were read."""

    tokens: int
    results: int


class Execution:
    """Submits executions of one executable on one device; remembers what was captured."""

    def __init__(self, driver: Driver, device: int, slots: int, *, capture: bool) -> None:
        self._driver = driver
        self._device = device
        self._slots = slots
        self._capture = capture
        self._scratch: dict[int, Scratch] = {}
        self._baked: dict[int, int] = {}
        self._graphs: dict[tuple[int, tuple[Copy, ...]], int] = {}

    def submit(
        self,
        stream: int,
        table: Sequence[Range],
        persistent: Sequence[int] | None,
        todo: Plan,
        *,
        shared: bool = False,
    ) -> tuple[Result, ...]:
        """Give the work to ``stream``, without waiting; says which work reads what.

        Where slots are ``shared`` (two of them show one buffer) the order of writes matters, and nothing
        goes through the graph.
        """
        baked = self._bake(table, persistent)
        captured = {} if shared else baked
        direct = tuple(n for n, read in enumerate(todo.reads) if read.offset or read.slot not in captured)
        reads = [Range(table[r.slot].address + r.offset, r.length) for r in (todo.reads[n] for n in direct)]
        writes = [
            Write(table[w.slot].address + w.offset, w.data)
            for w in todo.writes
            if w.offset or w.slot not in captured
        ]
        if not captured:
            return self._launch(stream, reads, direct, writes)
        results = self._launch(stream, reads, direct, [])
        fetched, through = self._replay(stream, todo, captured)
        return results + self._launch(stream, fetched, through, writes)

    def _launch(
        self, stream: int, reads: Sequence[Range], numbers: tuple[int, ...], writes: Sequence[Write]
    ) -> tuple[Result, ...]:
        if not reads and not writes:
            return ()
        work = self._driver.launch(stream, reads=reads, writes=writes)
        return (Result(work.id, numbers),) if reads else ()

    def _bake(self, table: Sequence[Range], persistent: Sequence[int] | None) -> dict[int, int]:
        """The captured address of each persistent slot; those of the first execution stay."""
        if not self._capture or persistent is None:
            return {}
        for slot in persistent:
            if 0 <= slot < len(table):
                self._baked.setdefault(slot, table[slot].address)
        return {slot: self._baked[slot] for slot in persistent if slot in self._baked}

    def _replay(
        self, stream: int, todo: Plan, captured: dict[int, int]
    ) -> tuple[list[Range], tuple[int, ...]]:
        """Launch the graph of the captured copies; returns where the reads' results will lie, and their numbers."""
        reads = [(n, r) for n, r in enumerate(todo.reads) if not r.offset and r.slot in captured]
        writes = [w for w in todo.writes if not w.offset and w.slot in captured]
        if not reads and not writes:
            return [], ()
        scratch = self._scratch_of(stream)
        ins = [Copy(scratch.results + r.slot * TOKEN, captured[r.slot], r.length) for _, r in reads]
        outs = [Copy(captured[w.slot], scratch.tokens + w.slot * TOKEN, len(w.data)) for w in writes]
        if writes:
            fresh = [Write(scratch.tokens + w.slot * TOKEN, w.data) for w in writes]
            self._driver.launch(stream, writes=fresh)
        self._driver.graph_launch(self._graph(stream, (*ins, *outs)), stream)
        return [Range(copy.target, copy.size) for copy in ins], tuple(n for n, _ in reads)

    def _scratch_of(self, stream: int) -> Scratch:
        scratch = self._scratch.get(stream)
        if scratch is None:
            size = self._slots * TOKEN
            tokens, results = (self._driver.alloc(size, device=self._device) for _ in range(2))
            scratch = self._scratch[stream] = Scratch(tokens, results)
        return scratch

    def _graph(self, stream: int, copies: tuple[Copy, ...]) -> int:
        """The graph of these copies, captured when they are first needed."""
        graph = self._graphs.get((stream, copies))
        if graph is None:
            self._driver.graph_begin(stream)
            self._driver.launch(stream, copies=copies)
            graph = self._driver.graph_instantiate(self._driver.graph_end(stream))
            self._graphs[stream, copies] = graph
        return graph
