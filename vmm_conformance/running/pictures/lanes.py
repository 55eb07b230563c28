"""Lanes: the host and the streams, the work and the waits on them, and the order between them."""

from __future__ import annotations

from dataclasses import dataclass

from vmm_conformance.history.events import Event
from vmm_conformance.running.pictures.submissions import Submission

Place = tuple[int, int]
"""A lane and a row."""
HOST_LANE = 0


@dataclass(slots=True)
class Lane:
    """``stream`` is 0 for a host thread; ``device`` and ``stream`` are the driver's numbers."""

    name: str
    stream: int = 0
    device: int = 0


@dataclass(slots=True)
class Queued:
    """A work item: submitted at row ``row``, run at row ``ran`` (None: never), with what it met."""

    work: int
    lane: int
    row: int
    kind: str
    who: str
    ran: int | None = None
    fault: str = ""


@dataclass(slots=True)
class Mark:
    """Something else on a lane: ``call``, ``record``, ``wait`` or ``sync``."""

    lane: int
    row: int
    kind: str
    text: str


@dataclass(slots=True)
class Edge:
    """An order between two places: ``wait`` (between streams), ``sync`` (seen by the host), ``missing``."""

    kind: str
    start: Place
    end: Place
    text: str = ""


class Lanes:
    """Follows a history, told of each event that succeeded and its row."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = [Lane("host")]
        self.queued: list[Queued] = []
        self.marks: list[Mark] = []
        self.edges: list[Edge] = []
        self.places: dict[int, Place] = {}
        self._threads = {0: HOST_LANE}
        self._streams: dict[int, int] = {}
        self._works: dict[int, Queued] = {}
        self._recorded: dict[int, Place] = {}

    def host(self, event: Event) -> int:
        """The lane of the thread that made a call."""
        if event.thread not in self._threads:
            self._threads[event.thread] = len(self.lanes)
            self.lanes.append(Lane(f"host thread {event.thread + 1}"))
        return self._threads[event.thread]

    def stream(self, stream: int) -> int:
        """The lane of a stream."""
        if stream not in self._streams:
            self._streams[stream] = len(self.lanes)
            self.lanes.append(Lane(f"stream {stream}", stream))
        return self._streams[stream]

    def take(self, event: Event, row: int) -> None:
        """One more call that succeeded."""
        host = self.host(event)
        self.places[event.seq] = host, row
        if event.kind == "stream_create":
            self.lanes[self.stream(event.result)].device = event.args[0]
        elif event.kind == "event_record":
            place = self._mark(self.stream(event.args[1]), row, "record", f"event {event.args[0]}")
            self._recorded[event.args[0]] = place
        elif event.kind == "stream_wait_event":
            place = self._mark(self.stream(event.args[0]), row, "wait", f"after event {event.args[1]}")
            self._edge("wait", event.args[1], place)
        elif event.kind in ("event_synchronize", "event_query"):
            self._seen(event, [self._recorded.get(event.args[0])], host, row)
        elif event.kind in ("stream_synchronize", "stream_query"):
            self._seen(event, [(self.stream(event.args[0]), row)], host, row)
        elif event.kind == "device_synchronize":
            lanes = [lane for s, lane in self._streams.items() if self.lanes[lane].device == event.args[0] and s]
            self._seen(event, [(lane, row) for lane in lanes], host, row)

    def call(self, event: Event, row: int, text: str) -> None:
        """A call that the host lane shows by name."""
        lane = self.host(event)
        last = self.marks[-1] if self.marks else None
        if last is not None and (last.lane, last.row, last.kind) == (lane, row, "call"):
            if text not in last.text.split(", "):
                last.text += f", {text}"
        else:
            self._mark(lane, row, "call", text)
        self.places[event.seq] = lane, row

    def submit(self, submission: Submission, row: int) -> None:
        """Work went to its stream."""
        event = submission.event
        assert submission.stream is not None
        item = Queued(event.result, self.stream(submission.stream), row, event.kind, event.who)
        self.queued.append(item)
        self._works[event.result] = item
        self.places[event.seq] = item.lane, row

    def ran(self, event: Event, row: int) -> None:
        """Work has run."""
        item = self._works.pop(event.args[0], None)
        if item is not None:
            item.ran = row
            item.fault = event.args[2].reason if event.args[2] is not None else ""
            self.places[event.seq] = item.lane, row

    def missing(self, first: int, second: int) -> None:
        """Nothing orders the event ``first`` before the event ``second`` (event numbers), as it should."""
        start, end = self.places.get(first), self.places.get(second)
        if start is not None and end is not None:
            self.edges.append(Edge("missing", start, end, "no order"))

    def _mark(self, lane: int, row: int, kind: str, text: str) -> Place:
        self.marks.append(Mark(lane, row, kind, text))
        return lane, row

    def _edge(self, kind: str, recorded: int, end: Place) -> None:
        start = self._recorded.get(recorded)
        if start is not None:
            self.edges.append(Edge(kind, start, end, f"event {recorded}"))

    def _seen(self, event: Event, starts: list[Place | None], host: int, row: int) -> None:
        """The host learns that what ``starts`` stand for is over, unless a query says that it is not."""
        done = event.result is not False
        what = {"event": "event", "stream": "stream", "device": "device"}[event.kind.partition("_")[0]]
        verb = "waits for" if event.kind.endswith("synchronize") else "sees done" if done else "sees pending"
        self._mark(host, row, "sync", f"{verb} {what} {event.args[0]}")
        if done:
            self.edges += [Edge("sync", start, (host, row)) for start in starts if start is not None]
