"""The bytes that each physical memory holds, as far as a history tells. What is not known is not assumed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from vmm_conformance.history.state import Mapping, Memory


class Chunk:
    """Bytes ``low`` to ``high`` of a memory are ``data``, written through ``via`` at event ``seq``.

    ``spread`` says that a copy may have brought the same bytes elsewhere too; ``seen`` holds the
    mappings through which they have been read since.
    """

    __slots__ = ("data", "high", "low", "seen", "seq", "spread", "via")

    def __init__(self, low: int, data: bytes, via: Mapping | None, seq: int, spread: bool = False) -> None:
        self.seen: set[Mapping | None] = {via}
        self.low = low
        self.high = low + len(data)
        self.data = data
        self.via = via
        self.seq = seq
        self.spread = spread

    def cut(self, low: int, high: int) -> Chunk:
        """The part of it between ``low`` and ``high``."""
        low, high = max(low, self.low), min(high, self.high)
        part = Chunk(low, self.data[low - self.low : high - self.low], self.via, self.seq, self.spread)
        part.seen = self.seen
        return part


class Contents:
    """What is known of every memory, keyed by identity: handles and addresses come back."""

    def __init__(self) -> None:
        self._chunks: dict[Memory, list[Chunk]] = {}

    def known(self, memory: Memory, low: int, high: int) -> list[Chunk]:
        """The known pieces between ``low`` and ``high``, in order."""
        return [
            chunk if low <= chunk.low and chunk.high <= high else chunk.cut(low, high)
            for chunk in self._chunks.get(memory, ())
            if chunk.low < high and low < chunk.high
        ]

    def forget(self, memory: Memory, low: int, high: int) -> None:
        """Nothing is known between ``low`` and ``high`` any more."""
        chunks = self._chunks.get(memory)
        if chunks is None:
            return
        kept: list[Chunk] = []
        for chunk in chunks:
            if chunk.high <= low or high <= chunk.low:
                kept.append(chunk)
                continue
            if chunk.low < low:
                kept.append(chunk.cut(chunk.low, low))
            if high < chunk.high:
                kept.append(chunk.cut(high, chunk.high))
        self._chunks[memory] = kept

    def put(self, memory: Memory, chunk: Chunk) -> None:
        """``chunk`` is written."""
        self.forget(memory, chunk.low, chunk.high)
        chunks = self._chunks.setdefault(memory, [])
        chunks.insert(bisect_left(chunks, chunk.low, key=lambda c: c.low), chunk)

    def end(self, memory: Memory) -> None:
        """The memory is gone."""
        self._chunks.pop(memory, None)

    def mark_spread(self, memory: Memory, low: int, high: int) -> None:
        """A copy of what is between ``low`` and ``high`` may lie elsewhere."""
        for chunk in self._chunks.get(memory, ()):
            if chunk.low < high and low < chunk.high:
                chunk.spread = True

    def owners(self, data: bytes, of: Memory, least: int = 8) -> Iterator[Memory]:
        """Other memories with bytes in ``data`` that lie nowhere else."""
        for memory, chunks in self._chunks.items():
            if memory is not of and any(
                not chunk.spread and chunk.high - chunk.low >= least and chunk.data in data for chunk in chunks
            ):
                yield memory

    @property
    def memories(self) -> int:
        """Of how many memories something is known."""
        return sum(map(bool, self._chunks.values()))
