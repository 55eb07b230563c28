"""When deferred operations may be completed: batches of them, each behind one marker on a stream.

A marker is an event recorded on the stream. Since a stream is in order, a marker that has passed says
that all work before it is over, and every earlier marker has passed too; sequence numbers of batches
say which is earlier.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from vmm_conformance.contracts import Driver, DriverError
from vmm_reference.vmm_records import Record

ENTRIES: Final = 64
"""Entries of a batch, at most."""
BYTES: Final = 64 << 20
"""Bytes that a batch can give back, at most; a single entry with more has a batch of its own."""


class Batch:
    """Deferred records that share a marker. It is open, and takes more, until it has its ``event``.

    ``waiting`` counts the threads that wait for the marker: as long as there are any, the event must not
    be recorded for something else.
    """

    __slots__ = ("bytes", "event", "records", "seqno", "waiting")

    def __init__(self, seqno: int) -> None:
        self.seqno = seqno
        self.records: OrderedDict[Record, int] = OrderedDict()
        self.bytes = 0
        self.event: int | None = None
        self.waiting = 0


class Timeline:
    """The batches of one stream: at most one open one, and those that have their marker (74).

    Not safe for threads: whoever holds the device's lock may use it.
    """

    def __init__(self, driver: Driver, device: int, stream: int, *, batched: bool, limits: tuple[int, int]) -> None:
        self.driver = driver
        self.device = device
        self.stream = stream
        self.entries, self.bytes = limits if batched else (1, 0)
        self.seqno = 0
        self.open = self._next()
        self.marked: OrderedDict[int, Batch] = OrderedDict()
        """Batches that have their marker and still have records, oldest first."""
        self.passed = 0
        """All batches up to this number have passed."""
        self.spare: list[int] = []
        """Events that mark nothing."""

    # -- deferring

    def defer(self, record: Record, size: int) -> None:
        """Put ``record``, which can give back ``size`` bytes, behind the work that the stream has so far.

        Raises `DriverError` if a marker is due and refused; then ``record`` is not deferred (75).
        """
        alone = size > self.bytes or self.entries == 1
        if alone or self.full(size):
            self.flush()
        self.add(self.open, record, size)
        if alone:
            try:
                self.flush()
            except BaseException:
                self.remove(record)
                raise

    def full(self, size: int) -> bool:
        """Whether the open batch has no room for ``size`` more bytes. An entry without bytes needs only a place."""
        batch = self.open
        return len(batch.records) >= self.entries or bool(size and batch.bytes + size > self.bytes)

    def add(self, batch: Batch, record: Record, size: int) -> None:
        """Enter ``record`` into ``batch``."""
        batch.records[record] = size
        batch.bytes += size
        record.batch = batch

    def remove(self, record: Record) -> None:
        """``record`` is not deferred any more: it was taken back, or is being completed.

        A batch that has lost all its records needs no marker, or has no more use for it.
        """
        batch = record.batch
        assert batch is not None
        record.batch = None
        batch.bytes -= batch.records.pop(record)
        self.settle(batch)

    def flush(self) -> None:
        """Give the open batch its marker, unless nothing is in it. Raises `DriverError`; it stays open then (75)."""
        batch = self.open
        if batch.records:
            batch.event = self.mark()
            self.marked[batch.seqno] = batch
            self.open = self._next()

    def mark(self) -> int:
        """Record an event behind all that the stream has been given (45)."""
        event = self.spare.pop() if self.spare else self.driver.event_create(self.device)
        try:
            self.driver.event_record(event, self.stream)
        except BaseException:
            self.spare.append(event)
            raise
        return event

    def _next(self) -> Batch:
        self.seqno += 1
        return Batch(self.seqno)

    # -- waiting

    def last(self) -> Batch | None:
        """The latest batch that has a marker."""
        return next(reversed(self.marked.values()), None)

    def has_passed(self, batch: Batch) -> bool:
        """Whether the stream has passed the marker of ``batch``, as far as can be told without waiting."""
        if batch.event is None:
            return False
        if batch.seqno > self.passed and self.driver.event_query(batch.event):
            self.passed = batch.seqno
        return batch.seqno <= self.passed

    def wait(self, batch: Batch) -> None:
        """Wait for the marker of ``batch``. Needs no lock: ``waiting`` keeps the event from being used again."""
        assert batch.event is not None
        self.driver.event_synchronize(batch.event)

    def settle(self, batch: Batch) -> None:
        """Let go of a batch that nobody needs any more, and keep its event for another."""
        if batch.event is not None and not batch.records and not batch.waiting:
            del self.marked[batch.seqno]
            self.spare.append(batch.event)
            batch.event = None

    def end(self) -> list[DriverError]:
        """Destroy all events; nothing is deferred any more. Returns what the driver refused."""
        refused: list[DriverError] = []
        for event in tuple(self.spare):
            try:
                self.driver.event_destroy(event)
                self.spare.remove(event)
            except DriverError as error:
                refused.append(error)
        return refused
