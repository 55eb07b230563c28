"""Happens-before: which work is over, for whom, and which work may run at the same time.

Vector clocks over streams. Each stream counts its work items; an event remembers the clock of its
stream when it was recorded; waits join clocks. The host has one clock, shared by its threads: what
one thread has waited for is over for all of them. A use ``(stream, tick)`` is ordered before a host
call if the host's clock has reached ``tick`` for that stream, and before a work item if the clock of
that item's stream has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from vmm_conformance.contracts import Copy, Range, Write
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Memory, Part, State

Clock = dict[int, int]
Accesses = dict[tuple[int, int, bool], "Use"]
"""The last use of each piece of memory, by ``(low, high, writes)``."""
HOST: Final = -1
"""In place of a stream: the host itself."""
_MANY: Final = 1024
"""At each multiple of so many remembered uses of one memory on one stream, those that are over are forgotten."""


class Use:
    """One range that a work item touches: bytes ``low`` to ``high`` of ``memory``."""

    __slots__ = ("event", "high", "low", "mapping", "memory", "stream", "tick", "writes")

    def __init__(self, event: Event, stream: int, tick: int, part: Part, writes: bool) -> None:
        self.event = event
        self.stream = stream
        self.tick = tick
        self.memory = part.memory
        self.mapping = part.mapping
        self.low = part.low
        self.high = part.high
        self.writes = writes


class Hazard:
    """``event`` took ``what`` (or rights on it) away, and ``use`` of it is not ordered before."""

    __slots__ = ("event", "use", "what")

    def __init__(self, event: Event, what: Mapping | Memory, use: Use) -> None:
        self.event = event
        self.what = what
        self.use = use


class Race:
    """Two uses of the same bytes, one of them a write, in no order."""

    __slots__ = ("first", "second")

    def __init__(self, first: Use, second: Use) -> None:
        self.first = first
        self.second = second


def _join(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick


def accesses(event: Event) -> Iterable[tuple[int, int, bool]]:
    """The ``(address, size, writes)`` that one submission names, reads before writes."""
    kind, args = event.kind, event.args
    if kind == "launch":
        reads: Iterable[Range] = args[1]
        copies: Iterable[Copy] = args[2]
        writes: Iterable[Write] = args[3]
        yield from ((address, size, False) for address, size in reads)
        for target, source, size in copies:
            yield source, size, False
            yield target, size, True
        yield from ((address, len(data), True) for address, data in writes)
    elif kind == "copy":
        yield args[1], args[2], False
        yield args[0], args[2], True
    elif kind == "fill":
        yield args[0], args[2], True
    elif kind == "write":
        yield args[0], len(args[1]), True
    elif kind == "read":
        yield args[0], args[1], False


_STREAM_ARGUMENT = {"launch": 0, "copy": 3, "fill": 3, "write": 2, "read": 2}


class Order:
    """Follows a history and collects `Hazard` and `Race` records.

    Call `apply` with each event after the state has taken it in. After it, ``hazards`` and ``races``
    hold what this event brought.
    """

    def __init__(self, state: State) -> None:
        self.hazards: list[Hazard] = []
        self.races: list[Race] = []
        self._state = state
        self._host: Clock = {}
        self._streams: dict[int, Clock] = {}
        self._devices: dict[int, int] = {}
        self._events: dict[int, Clock] = {}
        self._capturing: dict[int, list[Event]] = {}
        self._graphs: dict[int, list[Event]] = {}
        self._lifetimes: dict[Mapping | Memory, dict[int, Use]] = {}
        self._accesses: dict[Memory, dict[int, Accesses]] = {}

    def over(self, use: Use) -> bool:
        """Whether the host has waited for ``use``."""
        return self._host.get(use.stream, 0) >= use.tick

    def pending(self, what: Mapping | Memory) -> bool:
        """Whether the host has not waited for some use of a mapping or plain allocation."""
        return not all(map(self.over, self._lifetimes.get(what, {}).values()))

    def position(self, stream: int) -> int:
        """How many items ``stream`` has been given so far: work, and waits for other streams."""
        return self._streams.get(stream, {}).get(stream, 0)

    def reached(self, stream: int, tick: int) -> bool:
        """Whether the host knows that the first ``tick`` items of ``stream`` are over."""
        return self._host.get(stream, 0) >= tick

    def device(self, stream: int) -> int:
        """The device of a stream."""
        return self._devices.get(stream, 0)

    def capturing(self, stream: int | None) -> bool:
        """Whether work that is given to ``stream`` is captured."""
        return stream in self._capturing

    def captured(self, graph: int) -> Sequence[Event]:
        """The work in a graph, or in what was instantiated from it."""
        return self._graphs.get(graph, ())

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        if self.hazards:
            self.hazards = []
        if self.races:
            self.races = []
        if event.status != 0:
            return
        follow = _FOLLOWED.get(event.kind)
        if follow is not None:
            follow(self, event)
        for gone in self._state.ended:
            self._check_lifetime(event, gone)
            if type(gone) is Memory:
                self._accesses.pop(gone, None)
        for lowered in self._state.lowered:
            self._check_lifetime(event, lowered, keep=True)

    def _check_lifetime(self, event: Event, gone: Mapping | Memory, *, keep: bool = False) -> None:
        uses = self._lifetimes.get(gone) if keep else self._lifetimes.pop(gone, None)
        for use in (uses or {}).values():
            if not self.over(use):
                self.hazards.append(Hazard(event, gone, use))

    # -- work

    def _submit(self, event: Event) -> None:
        stream = event.args[_STREAM_ARGUMENT[event.kind]]
        if stream is None:
            self._host_access(event)
            return
        captured = self._capturing.get(stream)
        if captured is not None:
            captured.append(event)
        else:
            self._run(event, stream, accesses(event))

    def _host_access(self, event: Event) -> None:
        """The host touches memory now: whatever it has not waited for races with it."""
        for address, size, writes in accesses(event):
            for part in self._state.parts(address, size):
                self._compare(Use(event, HOST, 0, part, writes), self._host)

    def _graph_launch(self, event: Event) -> None:
        captured = self.captured(event.args[0])
        self._run(event, event.args[1], [access for item in captured for access in accesses(item)])

    def _run(self, event: Event, stream: int, touched: Iterable[tuple[int, int, bool]]) -> None:
        clock = self._streams.setdefault(stream, {})
        _join(clock, self._host)
        tick = clock[stream] = clock.get(stream, 0) + 1
        for address, size, writes in touched:
            for part in self._state.parts(address, size):
                use = Use(event, stream, tick, part, writes)
                self._lifetimes.setdefault(part.mapping or part.memory, {})[stream] = use
                streams = self._accesses.setdefault(part.memory, {})
                mine = streams.get(stream)
                if mine is None:
                    mine = streams[stream] = {}
                if len(streams) > 1:
                    self._compare(use, clock)
                mine[part.low, part.high, writes] = use
                if not len(mine) % _MANY:
                    self._forget_over(streams)

    def _forget_over(self, streams: dict[int, Accesses]) -> None:
        """What the host has waited for is ordered before all work to come, and races with none of it."""
        for stream, uses in streams.items():
            streams[stream] = {key: use for key, use in uses.items() if not self.over(use)}

    def _compare(self, use: Use, clock: Clock) -> None:
        """Compare with the last uses of the same bytes on other streams.

        The last use on a stream stands for the earlier ones: what is ordered after it is ordered after them.
        """
        for stream, uses in self._accesses.get(use.memory, {}).items():
            if stream == use.stream:
                continue
            reached = clock.get(stream, 0)
            for other in uses.values():
                overlaps = other.low < use.high and use.low < other.high
                if overlaps and other.tick > reached and (use.writes or other.writes):
                    self.races.append(Race(other, use))

    # -- graphs: what was captured runs with the addresses it was captured with

    def _graph_begin(self, event: Event) -> None:
        self._capturing[event.args[0]] = []

    def _graph_end(self, event: Event) -> None:
        self._graphs[event.result] = self._capturing.pop(event.args[0], [])

    def _graph_instantiate(self, event: Event) -> None:
        self._graphs[event.result] = self._graphs.get(event.args[0], [])

    # -- clocks

    def _stream_create(self, event: Event) -> None:
        """A number that comes back counts on: uses by the stream that had it before are not taken for its own."""
        stream = event.result
        self._devices[stream] = event.args[0]
        before = self.position(stream)
        self._streams[stream] = {stream: before} if before else {}

    def _event_record(self, event: Event) -> None:
        clock = self._streams.setdefault(event.args[1], {})
        _join(clock, self._host)
        self._events[event.args[0]] = dict(clock)

    def _event_gone(self, event: Event) -> None:
        self._events.pop(event.args[0], None)

    def _graph_gone(self, event: Event) -> None:
        self._graphs.pop(event.args[0], None)

    def _wait(self, event: Event) -> None:
        """A wait is an item like work: what comes behind it is not over before it."""
        stream = event.args[0]
        clock = self._streams.setdefault(stream, {})
        _join(clock, self._events.get(event.args[1], {}))
        clock[stream] = clock.get(stream, 0) + 1

    def _event_done(self, event: Event) -> None:
        if event.result is not False:
            _join(self._host, self._events.get(event.args[0], {}))

    def _stream_done(self, event: Event) -> None:
        if event.result is not False:
            _join(self._host, self._streams.get(event.args[0], {}))

    def _device_done(self, event: Event) -> None:
        for stream, clock in self._streams.items():
            if self._devices.get(stream) == event.args[0]:
                _join(self._host, clock)


_FOLLOWED: Final[dict[str, Callable[[Order, Event], None]]] = {
    **dict.fromkeys(("launch", "copy", "fill", "write", "read"), Order._submit),
    "graph_launch": Order._graph_launch,
    "graph_begin": Order._graph_begin,
    "graph_end": Order._graph_end,
    "graph_instantiate": Order._graph_instantiate,
    "stream_create": Order._stream_create,
    "event_record": Order._event_record,
    "stream_wait_event": Order._wait,
    "event_destroy": Order._event_gone,
    **dict.fromkeys(("graph_destroy", "graph_exec_destroy"), Order._graph_gone),
    **dict.fromkeys(("event_synchronize", "event_query"), Order._event_done),
    **dict.fromkeys(("stream_synchronize", "stream_query"), Order._stream_done),
    "device_synchronize": Order._device_done,
}
"""What each call orders. Not bound to an order: one that refers to itself is left to the garbage collector."""
