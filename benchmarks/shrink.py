"""From a failing program to its 1-minimal form: how long, over all mutants? And how long to find it?

Each mutant is hunted as the kill matrix does it, by exploration and then by scenarios; the first program
that breaks its own invariant is then made small, once, in-process. Processor time of one core.
``python benchmarks/shrink.py [--json] [--contract C] [--seed N]``
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from itertools import groupby

from measuring import Result, clock, command, table

from vmm_conformance.contracts import Mutant
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import shrink
from vmm_conformance.related import all_mutants
from vmm_conformance.running.explore import Bench
from vmm_conformance.running.kills import first_hit
from vmm_conformance.running.session import bench_for

GOALS = {"median": 50, "worst": 1_000}
KILLS_WITHIN = 60


def measured(mutant: Mutant, seed: int) -> Result:
    start = clock()
    hit = first_hit(mutant, seed)
    found = clock() - start
    name = {"mutant": mutant.id, "contract": mutant.contract}
    result: Result = {**name, "killed": hit is not None, "hunt_ms": found * 1e3}
    if hit is not None:
        result |= shrunk(bench_for(mutant.contract, mutant.subject), mutant.breaks[0], hit.program)
    return result


def shrunk(bench: Bench, invariant: str, program: Program) -> Result:
    runs = 0

    def fails(candidate: Program) -> bool:
        nonlocal runs
        runs += 1
        return invariant in bench.run(candidate).broken()

    start = clock()
    small = shrink(program, fails)
    spent = (clock() - start) * 1e3
    lengths = {"operations_before": len(program.operations), "operations": len(small.operations)}
    return {"shrink_ms": spent, "runs": runs, **lengths}


def measure(parsed: argparse.Namespace) -> Result:
    chosen = [m for m in all_mutants() if not parsed.contract or m.contract in parsed.contract]
    rows = [measured(mutant, parsed.seed) for mutant in chosen]
    return {"seed": parsed.seed, "mutants": rows, "goals_ms": GOALS, "kills_within_s": KILLS_WITHIN}


def lines(result: Result) -> list[str]:
    rows = sorted(result["mutants"], key=lambda row: row["contract"])
    groups = [(contract, list(group)) for contract, group in groupby(rows, key=lambda row: row["contract"])]
    head = ("contract", "mutants", "killed", "hunt, ms median", "shrink, ms median", "worst", "operations", "runs")
    total = sum(row["hunt_ms"] + row.get("shrink_ms", 0.0) for row in rows) / 1e3
    return [
        *table(head, (_row(contract, group) for contract, group in [*groups, ("all", rows)])),
        f"(goals: median {GOALS['median']} ms, worst {GOALS['worst']:,} ms)",
        f"all found and made small in {total:.0f} s of one core (goal: under {KILLS_WITHIN} s)",
        *_slowest(rows),
    ]


def _row(contract: str, group: list[Result]) -> tuple[object, ...]:
    killed = [row for row in group if row["killed"]]

    def median(name: str) -> float:
        return float(statistics.median(row[name] for row in killed))

    worst = max(row["shrink_ms"] for row in killed)
    found = (median("hunt_ms"), median("shrink_ms"), worst, median("operations"), median("runs"))
    return (contract, len(group), len(killed), *found)


def _slowest(rows: list[Result]) -> Iterator[str]:
    slow = sorted(rows, key=lambda row: -row.get("shrink_ms", 0.0))[:5]
    yield "slowest to shrink: " + ", ".join(f"{row['mutant']} {row.get('shrink_ms', 0.0):,.0f} ms" for row in slow)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", action="append", metavar="C", help="only mutants of this one (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the exploration (default: 0)")


if __name__ == "__main__":
    command(__doc__, measure, lines, arguments=arguments)
