"""What is wrong in a history from anywhere: legality, lifetime, access and ordering, judged as a stream.

No status is believed to be right: a driver that lets an illegal call pass has not made it legal. What is kept is
bounded by what is live in the history, and by `KEPT` findings of each kind; the rest of them is counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_present import RULED, rules_of_the_present
from vmm_conformance.checkers.touching import untouchable
from vmm_conformance.contracts import DriverCapabilities, DriverOptions, Granularity, Status, status_name
from vmm_conformance.history.events import CALLS, SUBJECT, WORK, Event, History
from vmm_conformance.history.ordering import Hazard, Race
from vmm_conformance.history.replay import Replay, Visitor
from vmm_conformance.history.state import Mapping, Memory, Reservation, State

LEGALITY, LIFETIME, ACCESS, ORDERING = "legality", "lifetime", "access", "ordering"
FAMILIES: Final = (LEGALITY, LIFETIME, ACCESS, ORDERING)
KEPT: Final = 100
"""Findings of each family that are kept; the first ones."""
GIVES_BACK, STAYS, NO_ACCESS = "ALLOCATOR-8", "ALLOCATOR-5", "DRIVER-49"
_LEGAL: Final = (Status.OUT_OF_MEMORY, Status.NOT_SUPPORTED, Status.NOT_READY)
_REMEMBERED: Final = 1000
"""Ranges that ended last, to say when what was there went."""


class ForeignError(ValueError):
    """A header that says something impossible; the message names the key, the value and what is accepted."""


class Wrong(NamedTuple):
    """One finding: ``line`` is that of the event in its file, ``cause`` another line that it is about, or 0."""

    family: str
    invariant: str
    line: int
    message: str
    cause: int


class Judgement:
    """Judges events as they come; ``wrong`` holds what was found, ``times`` how much of each family."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.wrong: list[Wrong] = []
        self.times: Counter[str] = Counter()
        self.events = 0
        self.header = header
        self._facts = _facts(header)

    def judge(self, events: Iterable[Event]) -> None:
        """Take in all of ``events``, to the end of the history."""
        replay = Replay(History(self.header))
        replay.follow(self._counted(events), _Client(self, replay, self._facts))

    def say(self, family: str, invariant: str, seq: int, message: str, cause: int | None = None) -> None:
        """Add a finding at event ``seq``."""
        self.times[family] += 1
        if self.times[family] <= KEPT:
            self.wrong.append(Wrong(family, invariant, seq + 2, message, 0 if cause is None else cause + 2))

    def _counted(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events:
            self.events += 1
            yield event


def _facts(header: dict[str, Any]) -> Facts:
    options = header.get("options")
    given = options if isinstance(options, DriverOptions) else None
    granule = header.get("granule", given.granularity.minimum if given else 1)
    if type(granule) is not int or granule <= 0 or granule & (granule - 1):
        raise ForeignError(f"header: granule must be a power of two, in bytes, got {granule!r:.60}")
    devices = header.get("devices", given.devices if given else 1)
    if type(devices) is not int or devices < 1:
        raise ForeignError(f"header: devices must be a whole number from 1 up, got {devices!r:.60}")
    return Facts(_capabilities(header), devices, True, frozenset(), {(0, 0): Granularity(granule, granule)}, 0)


def _capabilities(header: dict[str, Any]) -> DriverCapabilities:
    declared = header.get("capabilities") or {}
    if isinstance(declared, DriverCapabilities):
        return declared
    names = DriverCapabilities.__slots__
    good = isinstance(declared, dict) and all(k in names and type(v) is bool for k, v in declared.items())
    if not good:
        raise ForeignError(f"header: capabilities must map {', '.join(names)} to true or false, got {declared!r:.80}")
    return DriverCapabilities(**declared)


class _Client(Visitor):
    def __init__(self, judgement: Judgement, replay: Replay, facts: Facts) -> None:
        self._say = judgement.say
        self._state = replay.state
        self._order = replay.order
        self._facts = facts
        self._rules = rules_of_the_present(facts, replay.state)
        self._streams: dict[int, int] = {0: 0}
        self._live: dict[str, set[int]] = {name: set() for name in _MADE_BY.values()}
        self._gone: deque[tuple[int, int, Event]] = deque(maxlen=_REMEMBERED)
        self._befores: dict[str, Callable[[Event], None]] = {
            "free": self._free, "alloc": self._fresh, "reserve": self._fresh, "map": self._map,
        }  # fmt: skip

    # -- calls, before they are taken in

    def before(self, event: Event) -> None:
        """Judge a call while the state is as the call found it."""
        kind = event.kind
        if event.who != SUBJECT or kind not in CALLS:
            return
        status = event.status
        if kind in RULED and status not in _LEGAL:
            self._ruled(event)
        elif status and status not in _LEGAL:
            self._say(LEGALITY, "", event.seq, f"{kind}{_numbers(event)} was refused with {status_name(status)}")
        if status == 0:
            look = self._befores.get(kind)
            if look is not None:
                look(event)
            if kind in _NAMED:
                self._named(event)

    def _ruled(self, event: Event) -> None:
        broken = self._rules.rule(event).refuse
        if broken:
            answer = f"was refused with {status_name(event.status)}" if event.status else "is illegal, and was accepted"
            self._say(LEGALITY, broken[0], event.seq, f"{event.kind}{_numbers(event)} {answer}")
        elif event.status:
            answer = f"was refused with {status_name(event.status)}"
            self._say(LEGALITY, "", event.seq, f"{event.kind}{_numbers(event)} {answer}, and no rule says why")

    def _free(self, event: Event) -> None:
        (address,) = event.args
        memory = self._state.allocation_at(address)
        if memory is None or memory.address != address:
            text = f"free({address:#x}): no live allocation begins there{self._since(address)}"
            self._say(LIFETIME, "", event.seq, text, self._ended_by(address))

    def _map(self, event: Event) -> None:
        memory = self._state.handles.get(event.args[2])
        if memory is None or memory.references <= 0:
            self._say(
                LIFETIME, "", event.seq,
                f"map{_numbers(event)}: handle {event.args[2]} is not live: never made, or released",
            )  # fmt: skip

    def _fresh(self, event: Event) -> None:
        """What a driver hands out must not overlap what is live."""
        low, high = event.result, event.result + event.args[0]
        other = self._state.taken_in(low, high)
        if other is not None:
            self._say(
                LIFETIME, "", event.seq,
                f"{event.kind} gave {_place(low, event.args[0])}, which overlaps {_place(other.address, other.size)}"
                " that is still live", other.made,
            )  # fmt: skip

    def _named(self, event: Event) -> None:
        """Streams, events and graphs that a call names must be live."""
        for name in _NAMED[event.kind]:
            number = event[name]
            live = self._streams if name == "stream" else self._live[name]
            if number is not None and number not in live:
                what = f"{name} {number}, which is not live: never made, or destroyed"
                self._say(LIFETIME, "", event.seq, f"{event.kind} names {what}")

    # -- calls, when they are taken in

    def after(self, event: Event) -> None:
        """Judge what a call did, and work that ran."""
        if event.kind == "ran":
            self._ran(event)
            return
        if event.status:
            return
        follow = _AFTERS.get(event.kind)
        if follow is not None:
            follow(self, event)
        if self._state.ended:
            self._remember(event)
        if event.who == SUBJECT:
            if event.kind in WORK:
                self._work(event)
            if self._order.hazards and event.kind == "unmap" and not self._facts.capabilities.unmap_waits:
                self._hazards(event, self._order.hazards)
            if self._order.races:
                self._races(event, self._order.races)

    def _remember(self, event: Event) -> None:
        self._gone.extend(
            (what.address, what.address + what.size, event)
            for what in self._state.ended
            if isinstance(what, Mapping) or what.address
        )

    def _hazards(self, event: Event, hazards: list[Hazard]) -> None:
        for hazard in hazards:
            use = hazard.use
            what = f"while {use.event.kind} on stream {use.stream} may still use it"
            self._say(ORDERING, STAYS, event.seq, f"{event.kind}{_numbers(event)} {what}", use.event.seq)

    def _races(self, event: Event, races: list[Race]) -> None:
        for race in races:
            first, second = race.first, race.second
            low, high = max(first.low, second.low), min(first.high, second.high)
            self._say(
                ORDERING, "", event.seq,
                f"{second.event.kind} {_on(second.stream)} and {first.event.kind} {_on(first.stream)} are in no order,"
                f" and touch the same {high - low} bytes, from {low} of {_memory(second.memory)}", first.event.seq,
            )  # fmt: skip

    # -- work

    def _work(self, event: Event) -> None:
        if event.kind == "graph_launch":
            for captured in self._order.captured(event.args[0]):
                self._touches(event, captured, event.args[1])
            return
        stream = event["stream"]
        if not self._order.capturing(stream):
            self._touches(event, event, stream)

    def _touches(self, event: Event, work: Event, stream: int | None) -> None:
        device = None if stream is None else self._streams.get(stream, 0)
        for address, text, mapping in untouchable(self._state, work, device):
            since, cause = ("", mapping.made) if mapping else (self._since(address), self._ended_by(address))
            self._say(ACCESS, NO_ACCESS, event.seq, f"{work.kind} {text}{since}", cause)

    def _ran(self, event: Event) -> None:
        work, _, fault = event.args
        if fault is not None:
            self._say(ACCESS, NO_ACCESS, event.seq, f"work {work} met a fault: {fault!s:.200}", event.result)

    def _since(self, address: int) -> str:
        return "" if self._ended_by(address) is None else "; what was there has ended"

    def _ended_by(self, address: int) -> int | None:
        return next((e.seq for low, high, e in reversed(self._gone) if low <= address < high), None)

    # -- streams, events and graphs

    def _stream_create(self, event: Event) -> None:
        self._streams[event.result] = event.args[0]

    def _stream_destroy(self, event: Event) -> None:
        self._streams.pop(event.args[0], None)

    def _made(self, event: Event) -> None:
        self._live[_MADE_BY[event.kind]].add(event.result)

    def _ended(self, event: Event) -> None:
        self._live[_ENDED_BY[event.kind]].discard(event.args[0])

    # -- the end

    def finish(self) -> None:
        """What the history still holds at its end is leaked."""
        state: State = self._state
        held: list[tuple[Memory | Reservation, str]] = [(m, _memory(m)) for m in state.handles.values()]
        held += [(m, _memory(m)) for m in state.allocations]
        held += [(r, f"the reservation {_place(r.address, r.size)}") for r in state.reservations.values()]
        for what, text in held:
            if what.who == SUBJECT:
                self._say(LIFETIME, GIVES_BACK, what.made, f"{text} is never given back")


_MADE_BY: Final = {"event_create": "event", "graph_end": "graph", "graph_instantiate": "executable"}
_ENDED_BY: Final = {"event_destroy": "event", "graph_destroy": "graph", "graph_exec_destroy": "executable"}
_AFTERS: Final[dict[str, Callable[[_Client, Event], None]]] = {
    "stream_create": _Client._stream_create,
    "stream_destroy": _Client._stream_destroy,
    **dict.fromkeys(_MADE_BY, _Client._made),
    **dict.fromkeys(_ENDED_BY, _Client._ended),
}
_NAMED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(WORK | {"graph_begin", "graph_end"}, ("stream",)),
    **dict.fromkeys(("graph_instantiate", "graph_destroy"), ("graph",)),
    "graph_launch": ("executable", "stream"),
    "graph_exec_destroy": ("executable",),
    **dict.fromkeys(("stream_destroy", "stream_synchronize", "stream_query"), ("stream",)),
    **dict.fromkeys(("event_destroy", "event_synchronize", "event_query"), ("event",)),
    **dict.fromkeys(("event_record", "stream_wait_event"), ("event", "stream")),
}
"""What each call names that must be live."""


def _memory(memory: Memory) -> str:
    if not memory.handle:
        return f"the allocation {_place(memory.address, memory.size)}"
    return f"handle {memory.handle} of {memory.size} bytes"


def _on(stream: int) -> str:
    return "by the host" if stream < 0 else f"on stream {stream}"


def _place(address: int, size: int) -> str:
    return f"{address:#x}+{size}"


def _numbers(event: Event) -> str:
    shown = [hex(a) if isinstance(a, int) and a > 0xFFFF else str(a) for a in event.args if not isinstance(a, bytes)]
    return f"({', '.join(shown)})"
