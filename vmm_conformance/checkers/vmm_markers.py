"""Markers: on the right stream, for a reason, and as many as are declared. ALLOC-45, 74 and 75."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_calls import Family
from vmm_conformance.checkers.vmm_ledger import WAITING, Allocation, Call, Entity, State
from vmm_conformance.history.events import Event

PLACED, BATCHED, REPORTED = "ALLOC-45", "ALLOC-74", "ALLOC-75"

ON_STREAM: Final = {"event_record": 1, "write": 2, "fill": 3, "copy": 3, "launch": 0}
"""The driver calls that can be a marker, and which of their arguments is the stream."""

ASKING: Final = WAITING | {"event_query", "stream_query"}

LOOSE: Final = frozenset({"event_record", "event_create"})
"""The calls whose failure is that of a marker."""


class Batch:
    """What was deferred on a device since its last marker, with the bytes that it can give back.

    ``certain``: whether that is known; after failures, and calls made at once, it is not until all is
    synchronized.
    """

    __slots__ = ("certain", "entries")

    def __init__(self) -> None:
        self.entries: dict[Entity, int] = {}
        self.certain = True


class Markers(Family):
    """Counts markers, and what they stand behind."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._batches: dict[int, Batch] = {}
        self._batched = self.ledger.header["markers"] == "batched"
        self._limits: tuple[int, int] = tuple(self.ledger.header["batch_limits"])

    def driver_call(self, event: Event, call: Call | None) -> None:
        """A marker is on the stream of the device that the call is about; a close is about no single one."""
        at = ON_STREAM.get(event.kind)
        if at is None or event.status or call is None or "ordinal" not in call.details:
            return
        stream = event.args[at]
        wanted = self.ledger.streams.get(call.ordinal)
        self.judge.witness(PLACED)
        if stream != wanted:
            self.judge.fail(
                PLACED, event, f"{call} marks stream {stream}",
                expected=f"stream {wanted}, which is that of device {call.ordinal}", actual=f"stream {stream}",
            )  # fmt: skip

    def settled(self, calls: Any, judge: Judge) -> None:
        """Judge the markers of a call that was alone; of others only that they made the count uncertain."""
        for call in calls:
            batch = self._batches.setdefault(call.ordinal, Batch())
            if not call.alone or call.struck:
                batch.certain = False
            self._failed(call, batch, judge)
            self._count(call, batch, judge)

    # -- failures

    def _failed(self, call: Call, batch: Batch, judge: Judge) -> None:
        """A marker that is refused is the call's error, and what it was for stays deferred."""
        failed = [e for e in call.failures if e.kind in LOOSE and e.result == "injected"]
        if not failed or call.name in ("open", "close") or not call.alone:
            return
        marked = any(e.kind in ON_STREAM and not e.status and e.seq > failed[-1].seq for e in call.calls)
        judge.expect(
            REPORTED, call.returned, marked or not call.good, f"{call} says nothing of its refused marker",
            expected="the error of the marker, or another marker", actual=f"{call.status} {call.code}".strip(),
        )  # fmt: skip
        for entity in self.ledger.stale(call.ordinal):
            entity.marker_failed = True

    # -- counting

    def _count(self, call: Call, batch: Batch, judge: Judge) -> None:
        markers = sum(1 for e in call.calls if e.kind in ON_STREAM and not e.status)
        entity = self._deferred(call)
        weight = entity.committed if isinstance(entity, Allocation) else 0
        if batch.certain and call.name not in ("open", "close") and self.ledger.traced:
            self._judge(call, batch, entity, weight, markers, judge)
        for gone in [e for e in batch.entries if e.state is not State.STALE]:
            del batch.entries[gone]
        self._advance(call, batch, entity, weight, markers)

    def _deferred(self, call: Call) -> Entity | None:
        """What the call deferred."""
        if not call.good or call.name not in ("deallocate", "unmap"):
            return None
        named = call.details.get("address") or call.details["slice"]
        table: Any = self.ledger.allocations if call.name == "deallocate" else self.ledger.aliases
        found: Entity | None = table.get((call.ordinal, named.address))
        return found if found is not None and found.state is State.STALE and found.since == call.returned.seq else None

    def _judge(
        self, call: Call, batch: Batch, entity: Entity | None, weight: int, markers: int, judge: Judge
    ) -> None:
        if entity is None and not markers and not (call.name == "synchronize" and call.good):
            return
        judge.witness(BATCHED)
        fewest, most = self._due(call, batch, entity, weight)
        if not fewest <= markers <= most:
            judge.fail(
                BATCHED, call.returned, f"{call} records {markers} marker(s)",
                expected=f"{fewest}" if fewest == most else f"{fewest} or {most}",
                actual=f"{markers}; unmarked: {len(batch.entries)} operations, {sum(batch.entries.values())} bytes",
            )  # fmt: skip

    def _due(self, call: Call, batch: Batch, entity: Entity | None, weight: int) -> tuple[int, int]:
        """Fewest and most markers that the call may record."""
        entries, held = len(batch.entries), sum(batch.entries.values())
        if not self._batched:
            return (1, 1) if entity is not None else (0, 0)
        most_entries, most_bytes = self._limits
        if entity is not None:
            alone = weight > most_bytes
            full = entries >= most_entries or bool(weight and entries and held + weight > most_bytes)
            due = int(full) + int(alone)
            early = not due and (entries + 1 == most_entries or held + weight == most_bytes)
            return due, due + int(early)
        if call.name == "synchronize" and call.good:
            return (1, 1) if entries else (0, 0)
        short = call.name in ("allocate", "allocate_mapped") and (bool(call.endings) or not call.good)
        return 0, int(entries > 0 and (short or any(event.kind in ASKING for event in call.calls)))

    def _advance(self, call: Call, batch: Batch, entity: Entity | None, weight: int, markers: int) -> None:
        entries, held = len(batch.entries), sum(batch.entries.values())
        if markers:
            batch.entries.clear()
        if call.name == "synchronize" and call.good and call.alone:
            batch.entries.clear()
            batch.certain = True
        if entity is None or not self._batched or weight > self._limits[1]:
            return
        over = entries >= self._limits[0] or bool(weight and held + weight > self._limits[1])
        if not markers or over:
            batch.entries[entity] = weight
