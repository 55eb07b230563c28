"""Finds vectors of one contract: programs that reach different things, each made as small as it gets.

Directed scenarios come first, then drawn programs, short ones before long ones. A program that reaches
what another has reached is dropped; the others are made smaller as long as they reach exactly the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Final

from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import shrink
from vmm_conformance.running.explore import Bench
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.suites import Suite, load_suites
from vmm_conformance.vectors.vector import Made, Reached, Vector, WrongSubject, run, vector

COUNT: Final = 210
"""Vectors of a contract that are kept, where there are as many."""
SPARE: Final = 80
"""How many more are looked for, to choose from."""
PROGRAMS: Final = 6_000
"""Programs that are drawn at most."""
SHORTEST, LONGEST, GROWTH = 12, 260, 12
"""Bytes of drawn programs: the first ones' and the last ones', and how many have the same."""
LARGEST: Final = 7_000
"""Bytes of JSON beyond which a vector is no good to a reader."""
RUNS: Final = 150
"""Runs that making one program smaller may take."""

Progress = Callable[[int, int], None]
"""``progress(programs, vectors)``: how many were looked at, how many found."""


def collect(
    contract: str, subject: object, *, count: int = COUNT, progress: Progress = lambda programs, vectors: None
) -> list[Vector]:
    """The vectors of ``contract`` as ``subject`` has them, shortest first. Equal calls give equal vectors.

    Raises `WrongSubject` if the subject breaks an invariant.
    """
    bench = bench_for(contract, subject)
    found: dict[Reached, Made] = {}
    for number, program in enumerate(_candidates(contract, bench), 1):
        made = run(bench, program)
        if made.reached.invariants and made.reached not in found:
            found[made.reached] = _smaller(bench, made)
            progress(number, len(found))
        if len(found) >= count + SPARE:
            break
    chosen = choose([vector(made) for made in found.values() if _steady(bench, made)], count)
    return sorted(chosen, key=_length)


def _candidates(contract: str, bench: Bench) -> Iterator[Program]:
    suite: Suite = next(suite for suite in load_suites() if suite.contract == contract)
    yield from (scenario.program for scenario in suite.scenarios)
    source = random.Random(f"vectors of {contract}")
    once = [exploration for exploration in suite.explorations if exploration.pins.get("rounds", 1) == 1]
    for number, exploration in enumerate(islice(cycle(once), PROGRAMS)):  # repeated programs are long to read
        size = min(LONGEST, SHORTEST + number // GROWTH)
        yield bench.decode(source.randbytes(size), exploration.pins)


def _smaller(bench: Bench, made: Made) -> Made:
    def reaches_the_same(candidate: Program) -> bool:
        try:
            return run(bench, candidate).reached == made.reached
        except WrongSubject:
            return False

    return run(bench, shrink(made.program, reaches_the_same, runs=RUNS))


def _steady(bench: Bench, made: Made) -> bool:
    """Whether another run comes to the same: host threads that race have no right outcome to write down."""
    return vector(run(bench, made.program)) == vector(made)


def choose(vectors: Sequence[Vector], count: int) -> list[Vector]:
    """``count`` of ``vectors``: those it takes to reach all that they reach, then short ones and long ones.

    Of more than `LARGEST` bytes are only those that reach what no other does.
    """
    chosen: list[Vector] = []
    seen: set[Hashable] = set()
    for each in sorted(vectors, key=lambda each: (_large(each), -len(each["reaches"]), _length(each))):
        new = set(_features(each)) - seen
        if new:
            seen |= new
            chosen.append(each)
    rest = sorted((each for each in vectors if each not in chosen and not _large(each)), key=_length)
    wanted = min(len(rest), max(0, count - len(chosen)))
    return chosen + [rest[number * len(rest) // wanted] for number in range(wanted)]


def _large(each: Vector) -> bool:
    return len(json.dumps(each)) > LARGEST


def _features(each: Vector) -> Iterable[Hashable]:
    yield from each["reaches"]
    for operation, outcome in zip(each["program"]["operations"], each["outcomes"], strict=True):
        yield (operation.get("op"), outcome["status"], outcome.get("code", ""))


def _length(each: Vector) -> tuple[int, int, str]:
    """Sort key: few operations first, then few invariants."""
    return len(each["program"]["operations"]), len(each["reaches"]), each["id"]
