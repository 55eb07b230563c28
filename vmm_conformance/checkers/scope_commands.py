"""What is recorded into command buffers, and when: POLICY-144 to 146."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_facts import Facts, Family, Request, Scope, Track
from vmm_conformance.history.events import Event

UPDATED, ASKED, DISCARDED = "POLICY-144", "POLICY-145", "POLICY-146"


class _Recorded:
    """One command buffer: the addresses that each command was recorded with last, and when it was used."""

    def __init__(self) -> None:
        self.places: dict[int, dict[int, int]] = {}
        self.promised: bool | None = None
        self.broken: Event | None = None


class _Execution:
    """What one execution has recorded and submitted so far."""

    def __init__(self) -> None:
        self.records: dict[int, set[int]] = {}
        self.failed = False
        self.submits = 0


class Commands(Family):
    """Follows every command buffer of the harness and judges each submission."""

    def __init__(self, facts: Facts, judge: Judge) -> None:
        super().__init__(facts, judge)
        self._buffers: dict[int, _Recorded] = {}
        self._executions: dict[int, _Execution] = {}
        self._broken: set[Track] = set()
        """Tracks on which recording has failed, and that have submitted nothing since."""
        self._last: dict[Track, tuple[int, int]] = {}
        """The command buffer that a track submitted last, and how many executables had been opened then."""
        self._opened = 0

    def request(self, scope: Scope | None, request: Request) -> None:
        """A command was recorded, or recording it has failed."""
        if request.name != "record" or scope is None:
            return
        number, command = request.details["buffer"], request.details["command"]
        execution = self._executions.setdefault(scope.number, _Execution())
        recorded = self._buffers.setdefault(number, _Recorded())
        if not request.ok:
            recorded.broken = request.event
            execution.failed = True
            self._broken.add(scope.track)
            return
        if command in recorded.places and self._idle(scope, recorded, command):
            self.judge.fail(
                UPDATED, request.event,
                f"{scope.name} records command {command} anew, all of whose buffers are persistent",
                expected="it keeps what it was recorded with", actual="recorded again",
            )  # fmt: skip
        recorded.places[command] = dict(request.details["places"])
        execution.records.setdefault(number, set()).add(command)

    def _idle(self, scope: Scope, recorded: _Recorded, command: int) -> bool:
        """Whether nothing that a command holds can have changed."""
        persistent, one = scope.persistent, scope.plan.commands[command]
        settled = persistent is not None and recorded.promised is True
        return settled and not one.always_update and {*one.reads, *one.writes} <= set(persistent or ())

    def _named(self, scope: Scope, command: int) -> set[int]:
        one = scope.plan.commands[command]
        return {index for index in (*one.reads, *one.writes) if scope.plan.buffers[index].size}

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """A command buffer was submitted; opening an executable may make room by discarding others' buffers."""
        if what == "open":
            self._opened += 1
        elif what == "submit" and details["scope"] in self.facts.scopes:
            self._submit(self.facts.scopes[details["scope"]], event, details["buffer"])

    def _submit(self, scope: Scope, event: Event, number: int) -> None:
        execution = self._executions.setdefault(scope.number, _Execution())
        execution.submits += 1
        recorded = self._buffers.setdefault(number, _Recorded())
        self._whole(scope, event, recorded)
        done = execution.records.get(number, set())
        promises = scope.persistent is not None
        if recorded.promised is not None and recorded.promised is not promises:
            missing = sorted(set(range(len(scope.plan.commands))) - done)
            self.judge.expect(
                UPDATED, event, not missing, f"{scope.name} keeps commands that were recorded under another policy",
                expected="every command recorded anew when promises begin", actual=f"not recorded: {missing}",
            )  # fmt: skip
        self._addresses(scope, event, recorded)
        self._needed(scope, event, number)
        for command, one in enumerate(scope.plan.commands):
            if one.always_update:
                self.judge.expect(
                    ASKED, event, command in done, f"{scope.name} does not record command {command}, which asks for it",
                    expected="recorded for every run", actual="not recorded",
                )  # fmt: skip
        recorded.promised = promises

    def _needed(self, scope: Scope, event: Event, number: int) -> None:
        """Another command buffer than the last is for other addresses, or instead of a broken one."""
        before, opened = self._last.get(scope.track, (number, self._opened))
        self._last[scope.track] = number, self._opened
        last, told = self._buffers[before], scope.persistent
        if before == number or opened != self._opened or last.broken is not None or not last.promised or told is None:
            return
        same = all(
            last.places.get(command, {}).get(index) == scope.running[index].address
            for command in range(len(scope.plan.commands))
            for index in self._named(scope, command) - set(told)
        )
        if same:
            self.judge.fail(
                UPDATED, event, f"{scope.name} records another command buffer, though nothing has moved",
                expected="the last one is submitted again", actual="another one",
            )  # fmt: skip

    def _whole(self, scope: Scope, event: Event, recorded: _Recorded) -> None:
        if scope.track in self._broken:
            self.judge.witness(DISCARDED)
            self._broken.remove(scope.track)
        if recorded.broken is not None:
            self.judge.fail(
                DISCARDED, event, f"{scope.name} submits a command buffer into which recording has failed",
                expected="it is discarded, and another one recorded", actual="submitted", cause=recorded.broken.seq,
            )  # fmt: skip

    def _addresses(self, scope: Scope, event: Event, recorded: _Recorded) -> None:
        """Everything submitted uses this run's addresses."""
        for command in range(len(scope.plan.commands)):
            wanted = {index: scope.running[index].address for index in self._named(scope, command)}
            held = recorded.places.get(command)
            if held == wanted:
                self.judge.witness(UPDATED)
                continue
            stale = sorted(index for index, address in wanted.items() if not held or held.get(index) != address)
            broken = recorded.broken is not None
            self.judge.expect(
                DISCARDED if broken else UPDATED, event, False,
                f"{scope.name} submits command {command} with old addresses",
                expected=f"the addresses of this run for buffers {stale}",
                actual="not recorded" if held is None else "old",
            )  # fmt: skip

    def executed(self, scope: Scope) -> None:
        """An execution that went well has submitted once."""
        if not self.facts.consumes or not scope.submitted:
            return
        execution = self._executions.pop(scope.number, _Execution())
        self.judge.expect(
            DISCARDED if execution.failed else UPDATED, scope.calls["execute"].event, execution.submits == 1,
            f"{scope.name} submits {execution.submits} command buffers", expected="one", actual=f"{execution.submits}",
        )  # fmt: skip
