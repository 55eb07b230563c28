"""Does the suite catch what it must? Runs known-bad subjects until their own invariant is found broken."""

from __future__ import annotations

import signal
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.judge import Finding
from vmm_conformance.contracts import Mutant
from vmm_conformance.history.events import History
from vmm_conformance.interrupts import Interrupts
from vmm_conformance.programs.failing import FAILING
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import shrink
from vmm_conformance.running.ended import Ended
from vmm_conformance.running.endings import MOST
from vmm_conformance.running.explore import Runs, generate
from vmm_conformance.running.points import Points, bases
from vmm_conformance.running.session import BUDGETS, POINTS, Options, bench_for, bench_of, point_items
from vmm_conformance.running.suites import Exploration, Share, Suite, load_suites

HERE: Final = Options()
"""Programs run in this process."""
CHUNK: Final = 20
"""Programs that one exploration runs before the next one has its turn."""


@dataclass(frozen=True, slots=True)
class Kill:
    """How one mutant fared with one seed.

    ``first`` is the invariant that was named first in the failing history; ``found`` all of them;
    ``by`` the exploration, scenario or share of points; ``programs`` how many were run before; ``operations`` the
    length of the minimal program. ``explored`` says whether no scenario was needed for it.
    """

    mutant: str
    contract: str
    breaks: str
    seed: int
    killed: bool
    explored: bool
    first: str = ""
    found: tuple[str, ...] = ()
    by: str = ""
    programs: int = 0
    operations: int = 0
    seconds: float = 0.0


def kill_matrix(
    mutants: Sequence[Mutant],
    *,
    seeds: Sequence[int] = (0,),
    budget: str = "ci",
    jobs: int = 1,
    only: str = "",
    options: Options = HERE,
    progress: Callable[[Kill], None] = lambda kill: None,
) -> list[Kill]:
    """Every mutant with every seed, over the host driver. ``jobs`` processes share the work.

    With ``only``, nothing is run but the scenarios whose ids begin so. ``options`` may ask for child processes.

    After an interrupt (Ctrl-C) those that were hunted by then are returned.
    """
    tasks = [(mutant, seed, budget, only, options) for seed in seeds for mutant in mutants]
    kills: list[Kill] = []
    with Interrupts() as interrupts, suppress(KeyboardInterrupt), closing(_spread(tasks, jobs)) as hunted:
        for kill in hunted:
            kills.append(kill)
            progress(kill)
            interrupts.check()
    return kills


def _spread(tasks: list[tuple[Mutant, int, str, str, Options]], jobs: int) -> Generator[Kill, None, None]:
    if jobs <= 1:
        yield from (hunt(*task) for task in tasks)
        return
    pool = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        names = [(mutant.id, *asked) for mutant, *asked in tasks]
        yield from pool.map(_hunt_by_name, names, chunksize=4)
    finally:
        pool.shutdown(cancel_futures=True)


def _hunt_by_name(task: tuple[Any, ...]) -> Kill:
    from vmm_conformance.related import all_mutants

    name, *asked = task
    return hunt(next(mutant for mutant in all_mutants() if mutant.id == name), *asked)


def hunt(mutant: Mutant, seed: int, budget: str = "ci", only: str = "", options: Options = HERE) -> Kill:
    """Look for a program on which the mutant's own invariant is found broken, and make it small."""
    start = time.monotonic()
    hit = first_hit(mutant, seed, budget, only, options)
    if hit is None:
        return Kill(mutant.id, mutant.contract, mutant.breaks[0], seed, False, False, seconds=time.monotonic() - start)
    bench = _bench(mutant, options)
    small = shrink(hit.program, lambda program: mutant.breaks[0] in (_broken(bench, program) or ()))
    return Kill(
        mutant.id, mutant.contract, mutant.breaks[0], seed, True, hit.explored, hit.found[0],
        hit.found, hit.by, hit.programs, len(small.operations), time.monotonic() - start,
    )  # fmt: skip


class Hit(NamedTuple):
    """The first program on which a mutant's own invariant was found broken, and what was found with it.

    ``by`` is the exploration, scenario or share of points, ``programs`` how many of its kind were run to find it.
    """

    program: Program
    found: tuple[str, ...]
    by: str
    programs: int
    explored: bool


def _bench(mutant: Mutant, options: Options) -> Runs:
    """A child process finds a mutant by its id, among all that are installed."""
    if not options.isolated:
        return bench_for(mutant.contract, mutant.subject)
    return bench_of(mutant.contract, f"vmm_conformance.related:known_bad,id={mutant.id}", mutant.subject, options)


def _broken(bench: Runs, program: Program) -> dict[str, Finding] | None:
    """What ``program`` breaks, or None if it ended its process."""
    try:
        return bench.brief(program).broken()
    except Ended:
        return None


def first_hit(mutant: Mutant, seed: int, budget: str = "ci", only: str = "", options: Options = HERE) -> Hit | None:
    """Explore, then cover failure points, then try the directed scenarios.

    Explorations take turns in chunks of `CHUNK` programs, within the contract's ``budget`` in all.
    With ``only``, nothing is run but the scenarios whose ids begin so. A mutant that ended `MOST` processes is given
    up: what it is known to break was not found.
    """
    suite = next(suite for suite in load_suites() if suite.contract == mutant.contract)
    bench, deaths = _bench(mutant, options), 0
    explorations = () if only else _explorations(suite, seed, BUDGETS[budget], bench)
    points = () if only else _points(suite, seed, BUDGETS[budget], bench)
    for explored, runs in ((True, explorations), (True, points), (False, _directed(suite, only))):
        for count, (by, program) in enumerate(runs, 1):
            broken = _broken(bench, program)
            deaths += broken is None
            if deaths == MOST:
                return None
            if broken and mutant.breaks[0] in broken:
                return Hit(program, tuple(broken), by, count, explored)
    return None


Run = tuple[str, Program]


def _directed(suite: Suite, only: str) -> Iterator[Run]:
    chosen = (scenario for scenario in suite.scenarios if scenario.id.startswith(only))
    return ((f"scenario/{scenario.id}", scenario.program) for scenario in chosen)


def _points(suite: Suite, seed: int, budget: int, bench: Runs) -> Iterator[Run]:
    """Programs that cover failure points; each is run once here, for what it reaches."""
    for item in point_items(suite, "", "", budget // POINTS):
        assert isinstance(item.part, Share)
        ran: list[Program] = []

        def run(program: Program, ran: list[Program] = ran) -> History:
            ran.append(program)
            return bench.run(program).history

        points = Points(FAILING[suite.contract], run)
        points.reach(bases(item.part, seed, bench.decode))
        yield from ((item.part.id, program) for program in ran)
        for _ in points.cover(item.part.bound):
            yield item.part.id, ran[-1]


def _explorations(suite: Suite, seed: int, budget: int, bench: Runs) -> Iterator[Run]:
    """Programs of all explorations in turn, the larger shares more often."""
    done = 0
    turn = 0
    while done < budget:
        for exploration in _by_share(suite.explorations, turn):
            for data in _chunk(suite.contract, exploration, seed, turn):
                yield f"explore/{exploration.id}", bench.decode(data, exploration.pins)
                done += 1
        turn += 1


def _by_share(explorations: Sequence[Exploration], turn: int) -> list[Exploration]:
    return [e for e in explorations if turn % max(1, 6 // e.share) == 0]


def _chunk(contract: str, exploration: Exploration, seed: int, turn: int) -> list[bytes]:
    out: list[bytes] = []
    generate(CHUNK, zlib.crc32(f"{seed}/{contract}/{exploration.id}/{turn}".encode()), out.append)
    return out


__all__ = ["Hit", "Kill", "first_hit", "hunt", "kill_matrix"]
