"""Programs that ended their process: remembered, made small within a few runs, run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from vmm_conformance.programs.files import to_data
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import shrink
from vmm_conformance.running.ended import CRASH, TIMEOUT, Ended, Way, way_of
from vmm_conformance.running.explore import Lost, Runs, Seen
from vmm_conformance.running.results import Ending

MOST: Final = 5
"""Programs of one item that may end their process; after so many the item is given up. A count and not a time."""
SHRINKING: Final = {CRASH: 60, TIMEOUT: 4}
"""Runs that making such a program small may take: a hanging one costs the watchdog's whole patience."""
CONFIRMING: Final = {CRASH: 3, TIMEOUT: 1}
"""Re-runs of the small program that say whether it ends its process every time."""


def given_up(seen: Seen) -> bool:
    """Whether so many programs ended their process that the item is not gone on with."""
    return seen.deaths.total() >= MOST


def endings(bench: Runs, seen: Seen, *, small: bool = True, after: Callable[[], None] = lambda: None) -> list[Ending]:
    """The evidence of each way in which programs ended their process, the first way first."""
    made = []
    numbers: Counter[str] = Counter()
    for way, lost in seen.lost.items():
        numbers[way.kind] += 1
        made.append(ending_of(bench, lost, small=small, times=seen.deaths[way], number=numbers[way.kind]))
        after()
    return made


def ending_of(bench: Runs, lost: Lost, *, small: bool = True, times: int = 1, number: int = 1) -> Ending:
    """The evidence, with the program made small unless told not to; ``times`` and ``number`` as `Ending` has them."""
    kind, program, again = lost.ended.kind, lost.program, lost.ended
    repeats = "not re-run"
    if small:
        program, again, repeats = _confirmed(bench, lost, _small(bench, lost))
    return Ending(
        kind=kind,
        how=again.how,
        op=again.op,
        program=to_data(program),
        stack=list(again.stack),
        repeats=repeats,
        programs_before=lost.before,
        times=times,
        history=again.trail,
        number=number,
    )


def _small(bench: Runs, lost: Lost) -> Program:
    """The program up to the operation that did not return, if that is enough, then without what can be left out."""
    left, way = SHRINKING[lost.ended.kind], way_of(lost.ended, lost.program)

    def fails(program: Program) -> bool:
        return ended_as(bench, program, way) is not None

    cut = lost.program.with_operations(lost.program.operations[: max(0, lost.ended.op) + 1])
    if len(cut.operations) < len(lost.program.operations):
        left -= 1
        if not fails(cut):
            cut = lost.program
    return shrink(cut, fails, runs=left)


def ended_as(bench: Runs, program: Program, way: Way, *, whole: bool = False) -> Ended | None:
    """How ``program`` ends its process, if it does so in the same way; with ``whole`` what was recorded comes back."""
    try:
        (bench.run if whole else bench.brief)(program)
    except Ended as ended:
        return ended if way_of(ended, program) == way else None
    return None


def _confirmed(bench: Runs, lost: Lost, small: Program) -> tuple[Program, Ended, str]:
    runs, way = CONFIRMING[lost.ended.kind], way_of(lost.ended, lost.program)
    tried = [ended_as(bench, small, way, whole=True) for _ in range(runs)]
    ends = [end for end in tried if end is not None]
    label = "deterministic" if len(ends) == runs else f"flaky {len(ends)}/{runs}"
    return (small, ends[0], label) if ends else (lost.program, lost.ended, label)
