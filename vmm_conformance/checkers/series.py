"""Leaks as series: a program repeated, and what its subject holds each time. ALLOCATOR-18, ALLOC-185, STEP-186.

Close gives back everything at the end, and so hides what grew until then. A note ``round`` ends each repetition, when
the caller has given back all that it had and waited for all work: ``free`` are each device's free bytes by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import CALLS, SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor

WARM: Final = 3
"""Repetitions in which what a subject holds for itself may still grow."""
SHOWN: Final = 3
"""Objects named in a finding."""

_MAKING: Final = {
    "event_create": "event", "stream_create": "stream", "retain": "reference", "graph_end": "graph",
    "graph_instantiate": "executable graph",
}  # fmt: skip
_ENDING: Final = {
    "event_destroy": "event", "stream_destroy": "stream", "release": "reference", "graph_destroy": "graph",
    "graph_exec_destroy": "executable graph",
}  # fmt: skip


class Thing(NamedTuple):
    """Something that a subject holds: its kind, the event that made it, and its bytes where it is memory."""

    kind: str
    made: int
    bytes: int = 0


class Round(NamedTuple):
    """What was held at the end of one repetition, and each device's free bytes."""

    event: Event
    held: tuple[Thing, ...]
    free: dict[int, int]


class Series(Visitor):
    """Looks at what is held at the end of each repetition; judges when all are over.

    A series in which a failure was injected is not judged: what could not be given back may be kept. ``tolerance``
    is how far the free bytes of a device may be off, for real ones count in granules of their own.
    """

    def __init__(self, replay: Replay, judge: Judge, invariant: str) -> None:
        self._state = replay.state
        self._events = replay.history.events
        self._judge = judge
        self._invariant = invariant
        self._tolerance: int = replay.history.header.get("tolerance", 0)
        self._made: dict[tuple[str, int], list[int]] = {}
        self._rounds: list[Round] = []
        self._struck = False
        self._used = False

    def after(self, event: Event) -> None:
        """Follow what has no place in the driver's state, and look around at the end of a repetition."""
        if event.who == SUBJECT and event.kind in CALLS:
            self._call(event)
        elif event.kind == "note" and event.args[0] == "round":
            self._rounds.append(Round(event, tuple(self._held()), event.args[1]["free"]))
        elif event.kind == "note" and not self._used:
            what, details = event.args
            self._used = what in ("block", "executed") or (what == "return" and bool(details.get("block")))

    def _call(self, event: Event) -> None:
        if event.status:
            self._struck = self._struck or event.result == "injected"
        elif event.kind in _MAKING:
            self._made.setdefault((_MAKING[event.kind], event.result), []).append(event.seq)
        elif event.kind in _ENDING:
            made = self._made.get((_ENDING[event.kind], event.args[0]))
            if made:
                made.pop()

    def _held(self) -> Iterator[Thing]:
        state = self._state
        yield from (Thing("reservation", r.made) for r in state.reservations.values() if r.who == SUBJECT)
        yield from (Thing("mapping", m.made) for m in state.mappings if m.who == SUBJECT)
        yield from (Thing("handle", m.made, m.size) for m in state.handles.values() if m.who == SUBJECT)
        yield from (Thing("allocation", m.made, m.size) for m in state.allocations if m.who == SUBJECT)
        yield from (Thing(kind, seq) for (kind, _), made in self._made.items() for seq in made)

    def finish(self) -> None:
        """Judge: after the last repetition there is no more than there was after some warm one."""
        if len(self._rounds) <= WARM or self._struck or not self._used:
            return
        warm, last = self._rounds[:WARM], self._rounds[-1]
        grown = [*self._grown(warm, last), *self._gone(warm, last)]
        self._judge.expect(
            self._invariant, last.event, not grown,
            f"repeating the same {len(self._rounds)} times leaves ever more behind: {'; '.join(grown)}",
            expected=f"after the first {WARM} times, what is held does not grow", actual=grown[0] if grown else "",
            cause=self._stayed(warm, last)[0].made if grown and self._stayed(warm, last) else None,
        )  # fmt: skip

    def _grown(self, warm: list[Round], last: Round) -> Iterator[str]:
        for kind in dict.fromkeys(thing.kind for thing in last.held):
            counts = [sum(thing.kind == kind for thing in each.held) for each in (*warm, last)]
            if counts[-1] > max(counts[:-1]):
                stayed = [thing for thing in self._stayed(warm, last) if thing.kind == kind]
                named = ", ".join(map(self._name, stayed[:SHOWN])) + (", ..." if len(stayed) > SHOWN else "")
                yield f"{counts[-1]} {kind}s where there were {max(counts[:-1])} ({named})"
        total = [sum(thing.bytes for thing in each.held) for each in (*warm, last)]
        if total[-1] > max(total[:-1]):
            yield f"{total[-1]} bytes of memory where there were {max(total[:-1])}"

    def _gone(self, warm: list[Round], last: Round) -> Iterator[str]:
        for device, free in last.free.items():
            least = min(each.free[device] for each in warm)
            if free < least - self._tolerance:
                yield f"{free} bytes free on device {device} where there were {least}"

    def _stayed(self, warm: list[Round], last: Round) -> list[Thing]:
        """What the repetitions behind the warm ones have made and left."""
        return [thing for thing in last.held if thing.made > warm[-1].event.seq]

    def _name(self, thing: Thing) -> str:
        made = self._events[thing.made]
        return f"{made.kind} at event {made.seq} in operation {made.op}"


def is_series(header: dict[str, Any]) -> bool:
    """Whether a history is one of a series."""
    return int(header.get("rounds", 1)) > 1
