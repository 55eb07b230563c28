"""Scopes on one device come one after the other, those on others do not wait: SCOPE-122."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_facts import Facts, Family, Request, Scope
from vmm_conformance.history.events import Event

SERIAL = "SCOPE-122"


class _Challenge:
    """A second run that begins while the first is under way. ``got_in`` is the first thing that it got done."""

    def __init__(self, event: Event, first: int, second: int, apart: bool) -> None:
        self.event = event
        self.first = first
        self.second = second
        self.apart = apart
        self.got_in: Event | None = None
        self.blocked = False
        self.overlap: Event | None = None


class Threads(Family):
    """Judges where the second run gets in, and whether it ever does."""

    def __init__(self, facts: Facts, judge: Judge) -> None:
        super().__init__(facts, judge)
        self._current: _Challenge | None = None

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """A second run begins, waits for a lock, or is given up."""
        current = self._current
        if what == "challenge":
            self._current = _Challenge(event, details["first"], details["second"], details["apart"])
        elif what == "blocked" and current is not None and event.thread:
            current.blocked = True
        elif what == "abandoned":
            self.judge.fail(
                SERIAL, event, "a second run waits for ever", expected="it goes on when the first scope is dropped",
                actual="the lock that it waits for is never given back",
            )  # fmt: skip

    def created(self, scope: Scope) -> None:
        """The second run has got its scope; a first run that waits for nobody would wait for ever."""
        call = scope.calls["create"]
        if call.status == "crashed" and "deadlock" in call.message:
            self.judge.fail(
                SERIAL, call.event, f"{scope.name} waits for ever, though no other scope is open",
                expected="a scope that is dropped lets the next one in", actual=call.message,
            )  # fmt: skip
        self._done(scope, scope.calls["create"].returned or scope.event)

    def request(self, scope: Scope | None, request: Request) -> None:
        """Something is done for a run."""
        if scope is not None:
            self._done(scope, request.event)

    def _done(self, scope: Scope, event: Event) -> None:
        current = self._current
        if current is None:
            return
        if scope.number == current.second and scope.status("create") != "refused":
            first = self.facts.scopes[current.first]
            if current.got_in is None:
                current.got_in = event
                if "drop" not in first.calls:
                    current.overlap = event
        elif scope.number == current.first and current.got_in is not None:
            current.overlap = current.overlap or event

    def ended(self, scope: Scope, event: Event) -> None:
        """The first run is over: judge the two."""
        current = self._current
        if current is None or scope.number != current.first:
            return
        second = self.facts.scopes[current.second]
        if "any" in (scope.path, second.path) or "refused" in (scope.path, second.path):
            return
        if current.apart:
            self.judge.expect(
                SERIAL, current.event, not current.blocked,
                f"{second.name} waits for {scope.name}, which is another one's",
                expected="runs on another device, or of another executable, do not wait", actual="it waits for a lock",
            )  # fmt: skip
        elif scope.path != "plain" and scope.status("create") == "ok":
            where = current.overlap or current.event
            self.judge.expect(
                SERIAL, where, current.overlap is None, f"{second.name} gets in before {scope.name} is dropped",
                expected="create_scope returns when the scope before it has been dropped",
                actual=f"{where.kind} {where.args[0]} in between",
            )  # fmt: skip
