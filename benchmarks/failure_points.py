"""How many failure points do the contracts have, and how many are covered a second?

Each contract's points on the reference, up to the bound, in one process. Seconds are processor time.
``python benchmarks/failure_points.py [--json] [--bound N]``
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import process_time

from measuring import Result, command, table

from vmm_conformance.programs.failing import FAILING
from vmm_conformance.running.results import Coverage
from vmm_conformance.running.session import Options, point_items, run_item
from vmm_conformance.running.suites import Suite, load_suites

BOUND = 5_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bound", type=int, default=BOUND, metavar="N", help=f"points of each (default: {BOUND})")


def measure(parsed: argparse.Namespace) -> Result:
    suites = [suite for suite in load_suites() if suite.contract in FAILING]
    return {"contracts": {suite.contract: _one(suite, parsed.bound) for suite in suites}}


def _one(suite: Suite, bound: int) -> Result:
    start, total, broken = process_time(), Coverage(), 0
    for item in point_items(suite, "reference", "host", bound):
        result = run_item(item, Options())
        total += result.points or Coverage()
        broken += len(result.failures)
    taken = process_time() - start
    return {
        "reached": total.reached, "covered": total.covered, "undo_reached": total.undo_reached,
        "undo_covered": total.undo_covered, "per_second": (total.covered + total.undo_covered) / taken,
        "broken": broken,
    }  # fmt: skip


def lines(result: Result) -> Iterator[str]:
    head = ("contract", "reached", "covered", "in undo, reached", "covered", "points/s", "broken")
    rows = [(contract, *numbers.values()) for contract, numbers in result["contracts"].items()]
    yield from table(head, rows)


if __name__ == "__main__":
    command(__doc__ or "", measure, lines, arguments=arguments)
