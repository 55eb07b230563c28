"""Events, the walk over them, and what a caller has seen."""

from __future__ import annotations

from typing import Any

import pytest
from event_line import A, G

from vmm_conformance.history.events import CALLS, FIELDS, WORK, Event, History
from vmm_conformance.history.observe import observations
from vmm_conformance.history.replay import Replay, Visitor


def reserve(seq: int = 0) -> Event:
    return Event(seq, 2, 0, "subject", "reserve", (G, 0, 0), 0, A)


def test_arguments_have_names() -> None:
    assert reserve()["size"] == G
    with pytest.raises(KeyError, match=r"a reserve event has no argument .handle., only \(.size., .align"):
        reserve()["handle"]


def test_an_event_shows_all_there_is_to_it() -> None:
    assert repr(reserve(7)) == f"<7 op2 t0 subject reserve(size={G}, alignment=0, hint=0) -> 0 {A}>"


def test_calls_and_work_are_kinds_of_events() -> None:
    assert WORK < CALLS < set(FIELDS)
    assert set(FIELDS) - CALLS == {"ran", "begin", "end", "note"}


class Watcher(Visitor):
    """Notes how many reservations there are before and after each event."""

    def __init__(self, replay: Replay) -> None:
        self.state = replay.state
        self.counts: list[tuple[int, int]] = []
        self.finished = False

    def before(self, event: Event) -> None:
        self.counts.append((len(self.state.reservations), -1))

    def after(self, event: Event) -> None:
        self.counts[-1] = (self.counts[-1][0], len(self.state.reservations))

    def finish(self) -> None:
        self.finished = True


class Idle(Visitor):
    """Looks at nothing."""


def test_a_walk_shows_the_state_before_and_after_each_event() -> None:
    free = Event(1, 2, 0, "subject", "address_free", (A, G))
    replay = Replay(History(events=[reserve(), free]))
    watcher = Watcher(replay)
    replay.walk(Idle(), watcher)
    assert watcher.counts == [(0, 1), (1, 0)]
    assert watcher.finished


def test_observations_are_free_of_addresses() -> None:
    def note(what: str, **details: Any) -> Event:
        return Event(0, 4, 0, "harness", "note", (what, details))

    marks = ((5, 0, 8), (5, 56, 8))
    events = [
        note("stepped", outcome={"status": "ok"}),
        note("observe", work=7, marks=marks),
        note("stepped", outcome={"status": "refused"}),
        note("observe", work=8, marks=marks),
        Event(0, 5, 0, "device", "ran", (7, (b"a", b"b"), None)),
    ]
    assert observations(History(events=events)) == [
        {"op": 4, "status": "ok", "bytes": {(5, 0): b"a", (5, 56): b"b"}},
        {"op": 4, "status": "refused", "bytes": {(5, 0): None, (5, 56): None}},
    ]
