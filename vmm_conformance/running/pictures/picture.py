"""Puts a picture together: one walk over the history that a finding was made in."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from vmm_conformance.checkers.judge import Finding
from vmm_conformance.history.events import CALLS, Event, History
from vmm_conformance.history.ordering import Order
from vmm_conformance.history.state import State
from vmm_conformance.running.pictures.lanes import Lanes
from vmm_conformance.running.pictures.naming import Names
from vmm_conformance.running.pictures.ranges import Ranges
from vmm_conformance.running.pictures.rows import Rows
from vmm_conformance.running.pictures.submissions import Submissions
from vmm_conformance.running.pictures.window import window

Picture = dict[str, Any]


def picture(history: History, finding: Finding) -> Picture | None:
    """What happened in ``history`` as data to draw; None if no driver was called.

    ``rows`` are the steps of time; ``ranges`` the address ranges, each from a row to a row; ``lanes``,
    ``works``, ``marks`` and ``edges`` the streams and the order between them; ``marked`` the offending
    range and its row. Addresses are absolute. Of a long history the rows around the finding are kept.
    """
    if not any(event.kind in CALLS for event in history.events):
        return None
    artist = _Artist(history, finding)
    for event in history.events:
        artist.take(event)
    return window(artist.result())


class _Artist:
    """Follows the history with all that is drawn."""

    def __init__(self, history: History, finding: Finding) -> None:
        self.finding = finding
        self.state = State()
        self.order = Order(self.state)
        self.names = Names(history)
        self.rows = Rows({finding.seq, finding.cause} - {None})  # type: ignore[arg-type]
        self.ranges = Ranges(self.state, self.names)
        self.lanes = Lanes()
        self.submissions = Submissions()
        self.unordered: list[tuple[int, int]] = []
        self.bad_row: int | None = None

    def take(self, event: Event) -> None:
        """One more event."""
        text = self.names.text(event) if event.kind in CALLS else ""
        self.state.apply(event)
        self.order.apply(event)
        self._unordered(event)
        if event.kind in CALLS:
            self._call(event, text)
        elif event.kind == "ran":
            self._ran(event)
        elif event.seq == self.finding.seq:
            self._flag(event, self.rows.place(event, _seen_at(event)))
        if event.kind == "end":
            self.rows.empty(event)

    def _call(self, event: Event, text: str) -> None:
        captured = self.submissions.captures(event)
        submission = self.submissions.take(event)
        group = "capture" if captured else ""
        if submission is not None:
            group = "host work" if submission.stream is None else f"stream {submission.stream}"
        row = self.rows.place(event, text, group)
        self._flag(event, row)
        if submission is not None and submission.stream is not None:
            self.lanes.submit(submission, row)
            self.ranges.queued(submission, row)
        elif event.kind not in _ON_STREAMS or event.status:
            self.lanes.call(event, row, _short(event, submission is not None))
        if not event.status:
            self.ranges.take(event, row)
            if event.kind in _ON_STREAMS or event.kind == "stream_create":
                self.lanes.take(event, row)

    def _ran(self, event: Event) -> None:
        fault = event.args[2]
        row = self.rows.place(event, f"work {event.args[0]} " + (f"met a fault: {fault.reason}" if fault else "ran"))
        self._flag(event, row)
        self.lanes.ran(event, row)
        self.ranges.ran(event.args[0], row)

    def _flag(self, event: Event, row: int) -> None:
        if event.seq == self.finding.seq:
            self.rows.rows[row].bad = True
            self.bad_row = row
        elif event.seq == self.finding.cause:
            self.rows.rows[row].cause = True

    def _unordered(self, event: Event) -> None:
        """Remember the pairs of events that the finding may be about and that nothing orders."""
        if event.seq not in (self.finding.seq, self.finding.cause):
            return
        self.unordered += [(hazard.use.event.seq, event.seq) for hazard in self.order.hazards]
        self.unordered += [(race.first.event.seq, event.seq) for race in self.order.races]

    def result(self) -> Picture:
        """The picture as data."""
        about = {self.finding.seq, self.finding.cause}
        exact = [pair for pair in self.unordered if set(pair) == about]
        here = [pair for pair in self.unordered if pair[1] == self.finding.seq]
        for pair in (exact or here or self.unordered)[:1]:
            self.lanes.missing(*pair)
        where = self.finding.range
        marked = where and {"address": where.address, "size": where.size, "row": self.bad_row}
        return {
            "rows": [asdict(row) for row in self.rows.rows],
            "ranges": [asdict(life) for life in self.ranges.lives],
            "lanes": [asdict(lane) for lane in self.lanes.lanes],
            "works": [asdict(item) for item in self.lanes.queued],
            "marks": [asdict(mark) for mark in self.lanes.marks],
            "edges": [asdict(edge) for edge in self.lanes.edges],
            "marked": marked,
            "cut": 0,
        }


_ON_STREAMS: Final = frozenset(
    {"event_record", "stream_wait_event", "event_synchronize", "event_query"}
    | {"stream_synchronize", "stream_query", "device_synchronize"}
)


def _short(event: Event, by_host: bool) -> str:
    return event.kind + (" refused" if event.status else " by the host" if by_host else "")


def _seen_at(event: Event) -> str:
    if event.kind == "end":
        return "the operation is over"
    return f"seen by the harness ({event.args[0]})" if event.kind == "note" else "the operation begins"
