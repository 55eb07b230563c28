"""Generates programs, runs each once, lets every checker judge it, and makes failing ones small."""

from __future__ import annotations

import gc
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from vmm_conformance.checkers.judge import Finding, Judge
from vmm_conformance.history.events import History
from vmm_conformance.programs.files import to_data
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import shrink
from vmm_conformance.running.ended import Ended, Way, way_of
from vmm_conformance.running.evidence import address_map, outcomes
from vmm_conformance.running.histories import dumps
from vmm_conformance.running.opened import OpenDriver
from vmm_conformance.running.pictures.picture import picture
from vmm_conformance.running.plugs import Plug
from vmm_conformance.running.results import Coverage, Failure

BYTES: Final = 400
"""Bytes that a program is decoded from."""
COLLECT_AFTER: Final = (100_000, 10, 10)
"""Thresholds of the garbage collector while programs run."""
BATCH: Final = 1_000
"""Programs that one run of Hypothesis makes: it remembers them all, and a nightly run makes 100,000."""
REPEATS: Final = 5
"""Re-runs of a minimal program that decide whether it fails every time."""
MOST_DEATHS: Final = 10
"""Candidates that may end their process while one failing program is made small."""


class Judged(NamedTuple):
    """One run of a program, judged."""

    history: History
    judge: Judge

    def broken(self) -> dict[str, Finding]:
        """The first finding of each broken invariant."""
        first: dict[str, Finding] = {}
        for finding in self.judge.findings:
            first.setdefault(finding.invariant, finding)
        return first


@dataclass(slots=True)
class Bench:
    """A subject on its driver, ready to run programs of one contract."""

    plug: Plug
    subject: Any
    open_driver: OpenDriver
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Invariants that cannot be judged, and why: the subject's driver calls, or its memory, cannot be seen."""

    def decode(self, data: bytes, pins: Mapping[str, Any]) -> Program:
        """The program that ``data`` stands for, with nothing in it that the subject does not declare."""
        return self.plug.decode(data, self.plug.declared(pins, self.subject))

    def run(self, program: Program) -> Judged:
        """Run and judge ``program`` once."""
        history = self.plug.run(program, self.subject, self.open_driver)
        judge = self.plug.judge(history)
        if self.unseen:
            judge.forget(self.unseen)
        return Judged(history, judge)

    def missing(self) -> str:
        """Nothing: what a bench in this process needs was had when it was made."""
        return ""

    def brief(self, program: Program) -> Judged:
        """The same, for callers that need no events: a bench in another process leaves them there."""
        return self.run(program)


class Runs(Protocol):
    """What runs programs: a `Bench`, here or in another process, where a program may end it (`Ended`)."""

    @property
    def plug(self) -> Plug:
        """The contract."""
        ...

    @property
    def unseen(self) -> Mapping[str, str]:
        """See `Bench.unseen`."""
        ...

    def decode(self, data: bytes, pins: Mapping[str, Any]) -> Program:
        """See `Bench.decode`."""
        ...

    def run(self, program: Program) -> Judged:
        """Run and judge ``program`` once."""
        ...

    def brief(self, program: Program) -> Judged:
        """The same; the history may be without events."""
        ...

    def missing(self) -> str:
        """Why nothing can be run here, or empty."""
        ...


class Lost(NamedTuple):
    """A program that ended its process, and its number among those of its item."""

    program: Program
    before: int
    ended: Ended


@dataclass(slots=True)
class Seen:
    """What many programs came to.

    ``first`` keeps the first failing program of each invariant; ``inapplicable`` says of an invariant why the
    subject's declarations rule it out, and ``each_of`` which parts of it must be witnessed, see `whole`. ``lost``
    keeps, by the way it did so, the first program that ended its process, and ``deaths`` counts all of them.
    ``points`` says which failure points these programs covered.
    """

    programs: int = 0
    witnesses: dict[str, int] = field(default_factory=dict)
    inapplicable: dict[str, str] = field(default_factory=dict)
    each_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    first: dict[str, tuple[Program, int]] = field(default_factory=dict)
    lost: dict[Way, Lost] = field(default_factory=dict)
    deaths: Counter[Way] = field(default_factory=Counter)
    points: Coverage | None = None

    def add(self, program: Program, judged: Judged) -> None:
        """Count one judged program."""
        self.programs += 1
        self.inapplicable |= judged.history.header.get("not_applicable", {})
        self.each_of |= judged.history.header.get("each_of", {})
        for id, count in judged.judge.witnesses.items():
            self.witnesses[id] = self.witnesses.get(id, 0) + count
        for id in judged.broken():
            self.first.setdefault(id, (program, self.programs))

    @property
    def state(self) -> str:
        """That of the item: ``done``, or how a process ended first."""
        return next((way.kind for way in self.lost), "done")

    @property
    def found(self) -> int:
        """How many different things went wrong."""
        return len(self.first) + len(self.lost)

    def lose(self, program: Program, ended: Ended) -> None:
        """Remember a program that ended its process."""
        way = way_of(ended, program)
        self.deaths[way] += 1
        self.lost.setdefault(way, Lost(program, self.programs + self.deaths.total(), ended))


def whole(
    witnesses: Mapping[str, int], each_of: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, int], dict[str, str]]:
    """Witnesses by invariant; and of one that must be witnessed in each of several parts, which of them never was.

    ``INVARIANT:PART`` counts witnesses of a part. The rarest part counts for the whole.
    """
    counted = {id: number for id, number in witnesses.items() if ":" not in id}
    untested = {}
    for id, parts in each_of.items():
        numbers = {part: witnesses.get(f"{id}:{part}", 0) for part in parts}
        counted[id] = min(numbers.values())
        missing = [part for part, number in numbers.items() if not number]
        if missing:
            untested[id] = f"never taken: {', '.join(missing)}"
    return {id: number for id, number in counted.items() if number}, untested


def generate(
    count: int,
    seed: int,
    consume: Callable[[bytes], None],
    *,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Hand ``count`` byte strings to ``consume``; equal seeds give equal strings, in batches of `BATCH`.

    When ``over`` says so, no further batch is begun.
    """
    from hypothesis import HealthCheck, Phase, given, settings, strategies
    from hypothesis import seed as seeded

    def body(data: bytes) -> None:
        consume(data)

    with rarely_collecting():
        for number, size in enumerate(_batches(count)):
            if over():
                return
            wrapped = given(strategies.binary(min_size=BYTES, max_size=BYTES))(body)
            configured = settings(
                max_examples=size,
                phases=[Phase.generate, Phase.target],
                database=None,
                deadline=None,
                derandomize=False,
                print_blob=False,
                suppress_health_check=list(HealthCheck),
            )(wrapped)
            seeded(zlib.crc32(f"{seed}/{number}".encode()) if number else seed)(configured)()


def _batches(count: int) -> list[int]:
    """Sizes of the batches that make ``count``."""
    whole, rest = divmod(count, BATCH)
    return [BATCH] * whole + ([rest] if rest else [])


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Let the garbage collector look up less often: a history is ten thousand objects that die together."""
    usual = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def failures(
    bench: Runs, seen: Seen, *, small: bool = True, after: Callable[[], None] = lambda: None
) -> list[Failure]:
    """For each broken invariant its failing program, made small unless told not to.

    ``after`` is called after each.
    """
    made = []
    for id, (program, before) in seen.first.items():
        made.append(failure_of(bench, id, program, before, small=small))
        after()
    return made


def failure_of(bench: Runs, id: str, program: Program, before: int = 1, *, small: bool = True) -> Failure:
    """The evidence that ``program`` breaks ``id``; made small first unless told not to."""

    deaths = 0

    def fails(candidate: Program) -> bool:
        nonlocal deaths
        if deaths == MOST_DEATHS:
            return False
        try:
            return id in bench.brief(candidate).broken()
        except Ended:  # fails in another way, and each time that takes a process
            deaths += 1
            return False

    smaller = shrink(program, fails) if small else program
    shown, judged, repeats = _confirm(bench, id, (smaller, program))
    broken = judged.broken()
    finding = broken.get(id) or Finding(id, 0, 0, "not seen again when the program was re-run")
    return Failure(
        invariant=id,
        message=finding.message,
        expected=finding.expected,
        actual=finding.actual,
        op=finding.op,
        program=to_data(shown),
        outcomes=outcomes(judged.history),
        map=address_map(judged.history, finding),
        consequences=sorted(other for other in broken if other != id),
        repeats=repeats,
        programs_before=before,
        picture=picture(judged.history, finding) if judged.history.events else None,
        history=dumps(judged.history),
    )


def _again(bench: Runs, program: Program) -> Judged:
    """One more run; one that ends its process shows nothing."""
    try:
        return bench.run(program)
    except Ended:
        return Judged(History(), Judge())


def _confirm(bench: Runs, id: str, candidates: Iterable[Program]) -> tuple[Program, Judged, str]:
    """Run candidates until one fails again: that one, a failing run of it, and how often it fails."""
    last: tuple[Program, Judged, str] | None = None
    for program in candidates:
        runs = [_again(bench, program) for _ in range(REPEATS)]
        failing = [judged for judged in runs if id in judged.broken()]
        label = "deterministic" if len(failing) == REPEATS else f"flaky {len(failing)}/{REPEATS}"
        last = program, (failing or runs)[0], label
        if failing:
            break
    assert last is not None
    return last
