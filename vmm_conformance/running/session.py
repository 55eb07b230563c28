"""Plans what is to be run for a subject, and runs one item of the plan."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from vmm_conformance.contracts import contracts_of
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.history.events import History
from vmm_conformance.programs.failing import FAILING
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.benches import bench_for, know, resolve_known, unseen
from vmm_conformance.running.ended import Ended, reason
from vmm_conformance.running.endings import endings, given_up
from vmm_conformance.running.explore import Bench, Runs, Seen, failures, generate, rarely_collecting, whole
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.points import Points, bases
from vmm_conformance.running.proc.subject import be_patient
from vmm_conformance.running.remembered import Remembered
from vmm_conformance.running.results import ALL, NOT_APPLICABLE, UNAVAILABLE, ItemResult
from vmm_conformance.running.scheduler import Unseen
from vmm_conformance.running.shards import members
from vmm_conformance.running.subjects import DRIVERS, unavailable
from vmm_conformance.running.suites import Exploration, Share, Suite, load_suites

__all__ = ["BUDGETS", "DRIVERS", "Item", "Options", "bench_for", "know", "part", "plan", "resolve_known", "run_item"]

BUDGETS: Final[Mapping[str, int]] = {"smoke": 50, "dev": 500, "ci": 2_000, "nightly": 100_000}
"""Programs per contract."""

POINTS: Final = 5
"""One failure point is covered for so many programs of the budget."""
LARGEST: Final = 1_000
"""Failure points of one item: a larger share is cut in several, for workers to divide."""

ISOLATIONS: Final = ("none", "process")
"""Where programs run: in this process, or in a child of it whose end is a verdict."""

Progress = Callable[[int, int, int], None]
"""``progress(done, planned, broken)``: programs done and planned, invariants found broken so far."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for, see the plugin's options of the same names."""

    budget: str = "ci"
    seed: int = 0
    driver: str = "host"
    prefix: str = ""
    database: str = ""
    hardened: bool = False
    isolation: str = "none"
    timeout: int = 60
    shard: str = ""

    @property
    def isolated(self) -> bool:
        """Whether programs run in a child process."""
        return self.isolation == "process"


@dataclass(frozen=True, slots=True)
class Item:
    """One exploration or scenario, or a share of failure points, for one subject: what a pytest item runs.

    ``id`` looks like ``skip-remap/explore/shadows[reference]``; ``planned`` counts programs, or failure points.
    """

    id: str
    kind: str
    contract: str
    subject_spec: str
    driver: str
    planned: int
    part: Exploration | Scenario | Share


def plan(subjects: Mapping[str, object], options: Options) -> tuple[Item, ...]:
    """Every item for ``subjects`` (spec to object), in a fixed order.

    With ``options.prefix`` only contracts that have a matching invariant are left.
    """
    return tuple(
        item
        for spec, subject in subjects.items()
        for suite in load_suites()
        if suite.contract in contracts_of(subject) and _wanted(suite, options.prefix)
        for item in _items(suite, spec, options)
    )


def part(items: Sequence[Item], options: Options) -> tuple[Item, ...]:
    """Those of ``items`` that are to be run here: all, or with ``options.shard`` a part of each subject's."""
    specs = dict.fromkeys(item.subject_spec for item in items)
    own = [members((item for item in items if item.subject_spec == spec), options.shard) for spec in specs]
    return tuple(item for item in items if any(item.id in ids for ids in own))


def _wanted(suite: Suite, prefix: str) -> bool:
    from vmm_conformance.catalogue import catalogue

    return not prefix or any(entry.contract == suite.contract for entry in catalogue().matching(prefix))


def _items(suite: Suite, spec: str, options: Options) -> list[Item]:
    total = sum(exploration.share for exploration in suite.explorations)
    budget = BUDGETS[options.budget]
    items = [
        Item(
            f"{suite.contract}/explore/{exploration.id}[{spec}]",
            "exploration", suite.contract, spec, options.driver,
            max(1, budget * exploration.share // total // exploration.pins.get("rounds", 1)), exploration,
        )
        for exploration in suite.explorations
    ]  # fmt: skip
    items += [
        Item(
            f"{suite.contract}/scenario/{scenario.id}[{spec}]",
            "scenario", suite.contract, spec, options.driver, 1, scenario,
        )
        for scenario in suite.scenarios
    ]  # fmt: skip
    points = 0 if options.driver == OWN else budget // POINTS  # calls that were made elsewhere cannot be made to fail
    return [*items, *point_items(suite, spec, options.driver, points)]


def point_items(suite: Suite, spec: str, driver: str, bound: int) -> list[Item]:
    """``bound`` failure points of a suite's contract, in shares of at most `LARGEST`; none where it has no points."""
    shares = -(-bound // LARGEST) if suite.contract in FAILING else 0
    return [
        Item(
            f"{suite.contract}/points/{number + 1}[{spec}]",
            "points", suite.contract, spec, driver, share,
            Share(f"points/{number + 1}", suite, number, shares, share),
        )
        for number in range(shares)
        for share in [bound // shares + (number < bound % shares)]
    ]  # fmt: skip


def bench_of(contract: str, spec: str, subject: object, options: Options) -> Runs:
    """The same as ``options`` ask: in this process, or in a child that finds the subject by ``spec``."""
    if not options.isolated:
        be_patient(subject, options.timeout)
        return bench_for(contract, subject, options.driver)
    from vmm_conformance.running.isolated.bench import IsolatedBench
    from vmm_conformance.running.isolated.child import Place

    place = Place(contract, spec, options.driver)
    return IsolatedBench(plug(contract), place, subject, options.timeout, unseen(contract, subject, options.driver))


def end_children() -> None:
    """End the child process of this one, if there is one."""
    module = sys.modules.get("vmm_conformance.running.isolated.process")
    if module is not None:
        module.KEEPER.close()


def item_seed(item: Item, seed: int) -> int:
    """A seed of the item's own, the same wherever and in whatever order it runs."""
    return zlib.crc32(f"{seed}/{item.contract}/{item.part.id}".encode())


def run_item(item: Item, options: Options, *, progress: Progress | None = None) -> ItemResult:
    """Run one item. A subject's misbehaviour is in the result; an interrupt leaves it ``stopped``."""
    start = time.monotonic()
    result = ItemResult(item.id, item.kind, item.contract, item.subject_spec, item.driver, item.planned)
    subject = resolve_known(item.subject_spec)
    bench = bench_of(item.contract, item.subject_spec, subject, replace(options, driver=item.driver))
    seen = Seen()
    try:
        missing = _missing(subject, item.driver, bench)
        if missing:
            result.state, result.untested = UNAVAILABLE, {ALL: missing}
            return result
        _programs(item, options, bench, seen, progress)
        result.failures = failures(bench, seen, after=_still(item, seen, progress))
        result.endings = endings(bench, seen, after=_still(item, seen, progress))
        result.state = seen.state
    except KeyboardInterrupt:
        result.state = "stopped"
    except (Exception, Unseen) as error:  # a checker or the harness broke: a verdict of its own, never a lost run
        result.unknown = {ALL: reason(error)}
    if result.state == "stopped" or result.unknown:
        _keep(result, bench, seen)
    _sum_up(result, bench, seen)
    result.seconds = time.monotonic() - start
    return result


def _keep(result: ItemResult, bench: Runs, seen: Seen) -> None:
    """What was found until the item was cut short. What breaks once more is not made small, nor run again."""
    try:
        result.failures = failures(bench, seen, small=False)
        result.endings = endings(bench, seen, small=False)
    except (Exception, Unseen) as error:
        result.unknown.setdefault(ALL, reason(error))


def _missing(subject: object, driver: str, bench: Runs) -> str:
    """Why nothing can be run; asked where programs will run, since it may open a device."""
    if isinstance(bench, Bench):
        return unavailable(subject, driver)
    try:
        return bench.missing()
    except Ended:  # so will the first program, which is then the evidence
        return ""


def _sum_up(result: ItemResult, bench: Runs, seen: Seen) -> None:
    result.untested |= dict(sorted(bench.unseen.items()))
    result.untested |= {id: f"{NOT_APPLICABLE}{why}" for id, why in sorted(seen.inapplicable.items())}
    result.executed, result.points = seen.programs, seen.points
    witnesses, missing = whole(seen.witnesses, seen.each_of)
    result.witnesses = dict(sorted(witnesses.items()))
    result.untested |= missing


def _still(item: Item, seen: Seen, progress: Progress | None) -> Callable[[], None]:
    """Tells ``progress`` that the run goes on, while failing programs are made small."""

    def tell() -> None:
        if progress is not None:
            progress(seen.programs, item.planned, len(seen.first))

    return tell


def _programs(item: Item, options: Options, bench: Runs, seen: Seen, progress: Progress | None) -> None:
    if isinstance(item.part, Exploration):
        _explore(item, item.part, options, bench, seen, progress)
    elif isinstance(item.part, Share):
        _cover(item.part, options, bench, seen, progress)
    else:
        _one(item.part.program, bench, seen)


def _one(program: Program, bench: Runs, seen: Seen, *, passing: bool = True) -> bool:
    """Run ``program`` and count it, one that passes only if ``passing``. Whether something new was found broken."""
    found = seen.found
    try:
        judged = bench.brief(program)
    except Ended as ended:
        seen.lose(program, ended)
    else:
        if passing or judged.broken():
            seen.add(program, judged)
    return seen.found > found


def _cover(share: Share, options: Options, bench: Runs, seen: Seen, progress: Progress | None) -> None:
    def run(program: Program) -> History | None:
        if given_up(seen):
            return None
        try:
            judged = bench.run(program)
        except Ended as ended:
            seen.lose(program, ended)
            return None
        seen.add(program, judged)
        return judged.history

    points = Points(FAILING[share.suite.contract], run)
    seen.points = points.coverage
    with rarely_collecting():
        points.reach(bases(share, options.seed, bench.decode))
        for done, _ in enumerate(() if given_up(seen) else points.cover(share.bound), 1):
            if given_up(seen):
                return
            if progress is not None:
                progress(done, share.bound, len(seen.first))


def _explore(
    item: Item, exploration: Exploration, options: Options, bench: Runs, seen: Seen, progress: Progress | None
) -> None:
    remembered = Remembered(options.database, f"{item.id}@{item.driver}")

    def consume(data: bytes) -> None:
        if given_up(seen):
            return
        if _one(bench.decode(data, exploration.pins), bench, seen):
            remembered.keep(data)
        if progress is not None:
            progress(seen.programs, item.planned, len(seen.first))

    for data in remembered.all():  # those that pass by now are not counted, so that a pass rests on the seed alone
        if not given_up(seen) and not _one(bench.decode(data, exploration.pins), bench, seen, passing=False):
            remembered.forget(data)
    seed = item_seed(item, options.seed)
    generate(item.planned, seed, consume, over=lambda: given_up(seen))
