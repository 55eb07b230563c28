"""Every failure point: each call that a program reaches fails, once going forward and once inside the undo.

A program without failures is run, and its history says which calls the subject makes. Each of them, with each code
that is documented for it, is a point: the same program with that failure ahead of the operation that makes the call.
What the subject calls afterwards, until the failed call has returned, are points of a second failure.

Points are covered in an order that has no chance in it, those of one and of two failures by turns: first one of each
sort (operation, call and code), then a second one of each, and so on, in the order in which programs reach them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, NamedTuple

from vmm_conformance.history.events import CALLS, HARNESS, SUBJECT, Event, History
from vmm_conformance.programs.failing import Failing
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import BYTES
from vmm_conformance.running.results import Coverage
from vmm_conformance.running.suites import Share

FEWEST: Final = 5
EACH: Final = 50
"""A share takes the points of `FEWEST` programs, and of one more for each so many points."""
BEHIND: Final = 4
"""Operations of the program that are run behind the failing one: what a failure has damaged shows in them."""


class Called(NamedTuple):
    """One call of a subject: where in the history, in which operation, and the how-manieth of its kind there."""

    seq: int
    op: int
    kind: str
    k: int
    struck: bool


class Strike(NamedTuple):
    """The ``k``-th call of ``kind`` in an operation fails with ``code``."""

    kind: str
    k: int
    code: Any


class Point(NamedTuple):
    """One or two failures in the operation ``op`` of a program without failures."""

    program: Program
    op: int
    strikes: tuple[Strike, ...]


def bases(share: Share, seed: int, decode: Callable[[bytes, Mapping[str, Any]], Program]) -> Iterator[Program]:
    """The programs whose points a share covers: drawn ones of all explorations in turn, and scenarios, by turns."""
    explorations, scenarios = share.suite.explorations, share.suite.scenarios
    for number in range(share.number, share.of * (FEWEST + share.bound // EACH), share.of):
        turn, drawn = divmod(number, 2)
        if drawn or turn >= len(scenarios):
            data = Random(f"{seed}/{share.suite.contract}/points/{number}").randbytes(BYTES)
            yield decode(data, explorations[number // 2 % len(explorations)].pins)
        else:
            yield scenarios[turn].program


Waiting = tuple[int, int, Point]
"""How many of its sort come first, its number, and the point."""


def calls(history: History, failing: Failing) -> list[Called]:
    """The calls that can be made to fail."""
    counts: Counter[tuple[int, str]] = Counter()
    found = []
    for event in history.events:
        kind = _kind(event, noted=failing.noted)
        if kind in failing.codes:
            counts[event.op, kind] += 1
            found.append(Called(event.seq, event.op, kind, counts[event.op, kind], _struck(event)))
    return found


def _kind(event: Event, *, noted: bool) -> str:
    if not noted:
        return event.kind if event.who == SUBJECT and event.kind in CALLS else ""
    return str(event.args[1]["name"]) if event.kind == "note" and event.args[0] == "memory" else ""


def _struck(event: Event) -> bool:
    return event.result == "injected" or (event.kind == "note" and event.args[1]["reason"] == "injected")


def program_of(point: Point, failing: Failing) -> Program:
    """The program in which the failures of ``point`` strike."""
    operations, op = point.program.operations, point.op
    fails = tuple(failing.fail(strike.kind, strike.k, strike.code) for strike in point.strikes)
    hit = operations[op : op + 1]
    repeated = hit if hit and isinstance(hit[0], failing.again) else ()
    behind = operations[op + 1 : op + 1 + BEHIND]
    return point.program.with_operations((*operations[:op], *fails, *hit, *repeated, *behind))


@dataclass(slots=True)
class Points:
    """The points of some programs, waiting to be covered.

    ``run`` runs a program and returns its history, or None if there is none.
    """

    failing: Failing
    run: Callable[[Program], History | None]
    coverage: Coverage = field(default_factory=Coverage)
    _waiting: tuple[list[Waiting], list[Waiting]] = field(default_factory=lambda: ([], []))
    """Those of one failure, and those of two."""
    _sorts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    _number: int = 0

    def reach(self, programs: Iterable[Program]) -> None:
        """Run each of ``programs`` without failures: its points are waiting then."""
        for program in dict.fromkeys(map(self.failing.base, programs)):
            history = self.run(program)
            last = len(program.operations) - (not self.failing.at_end)
            for call in calls(history, self.failing) if history else ():
                if 0 <= call.op <= last:
                    self._wait(program, call.op, (), call)

    def cover(self, bound: int) -> Iterator[Point]:
        """Cover up to ``bound`` points, each as it is yielded.

        One whose failure does not strike is not covered, and another takes its place: at most as often as that.
        """
        covered = 0
        for turn in range(2 * bound):
            waiting = self._waiting[turn % 2] or self._waiting[not turn % 2]
            if covered == bound or not waiting:
                return
            _, _, point = heappop(waiting)
            if self._cover(point):
                covered += 1
                yield point

    def _wait(self, program: Program, op: int, before: tuple[Strike, ...], call: Called) -> None:
        """Let the points of ``call``, one for each code, wait; ``before`` is the failure that strikes earlier."""
        of = type(program.operations[op]) if op < len(program.operations) else None
        for code in self.failing.codes[call.kind]:
            sort = (of, *(strike.kind for strike in before), call.kind, code)
            point = Point(program, op, (*before, Strike(call.kind, call.k, code)))
            heappush(self._waiting[bool(before)], (self._sorts[sort], self._number, point))
            self._sorts[sort] += 1
            self._number += 1
            if before:
                self.coverage.undo_reached += 1
            else:
                self.coverage.reached += 1

    def _cover(self, point: Point) -> bool:
        """Run the program of ``point``. Whether its failures struck."""
        history = self.run(program_of(point, self.failing))
        if history is None:  # it ended its process: covered, and what would have come after it is not known
            self._count(point)
            return True
        op = point.op + len(point.strikes)
        made = [call for call in calls(history, self.failing) if call.op == op]
        if sum(call.struck for call in made) < len(point.strikes):
            return False
        self._count(point)
        if len(point.strikes) == 1:
            for call in _undo(history, made, self.failing):
                self._wait(point.program, point.op, point.strikes, call)
        return True

    def _count(self, point: Point) -> None:
        if len(point.strikes) > 1:
            self.coverage.undo_covered += 1
        else:
            self.coverage.covered += 1


def _undo(history: History, made: list[Called], failing: Failing) -> list[Called]:
    """What is called behind the failure, until the call on the subject that it struck has returned."""
    first = next(call.seq for call in made if call.struck)
    behind = history.events[first + 1 :]
    end = next((event.seq for event in behind if _returns(event, failing)), len(history))
    return [call for call in made if first < call.seq < end]


def _returns(event: Event, failing: Failing) -> bool:
    return event.who == HARNESS and event.kind == "note" and event.args[0] in failing.returns
