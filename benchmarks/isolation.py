"""What does process isolation cost? Programs per second with and without it, by turns, and how long a child takes.

Wall time, since two processes share the work. ``python benchmarks/isolation.py [--json] [--rounds N]``
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import time
from dataclasses import replace

from measuring import Result, command, table

from vmm_conformance.running.ended import Ended
from vmm_conformance.running.isolated.process import KEEPER
from vmm_conformance.running.session import Item, Options, bench_of, end_children, plan, resolve_known, run_item

CONTRACTS = ("flags", "allocator", "skip-remap", "vmm-allocator")
PROGRAMS = 200
HERE, CHILD = Options(), Options(isolation="process")


def item_of(contract: str) -> Item:
    """The first exploration of ``contract`` on the reference, with `PROGRAMS` programs."""
    items = plan({"reference": resolve_known("reference")}, HERE)
    found = next(item for item in items if item.contract == contract and item.kind == "exploration")
    return replace(found, planned=PROGRAMS)


def rate(item: Item, options: Options) -> float:
    """Programs per second of wall time."""
    result = run_item(item, options)
    assert result.executed == PROGRAMS
    assert not result.failures
    assert not result.endings
    return PROGRAMS / result.seconds


def start() -> float:
    """Seconds from nothing to the first judged program in a child."""
    end_children()
    begin = time.perf_counter()
    run_item(replace(item_of("flags"), planned=1), CHILD)
    return time.perf_counter() - begin


def again() -> float:
    """Seconds from the end of a child that was killed to the next judged program in its replacement."""
    item = item_of("flags")
    bench = bench_of(item.contract, "reference", resolve_known("reference"), CHILD)
    program = bench.decode(b"", {})
    bench.run(program)
    assert KEEPER.pid is not None
    os.kill(KEEPER.pid, signal.SIGKILL)
    try:
        bench.run(program)
    except Ended:
        begin = time.perf_counter()
        bench.run(program)
        return time.perf_counter() - begin
    raise AssertionError("a program ran in a child that was killed")


def measure(parsed: argparse.Namespace) -> Result:
    rows = []
    for contract in CONTRACTS:
        item = item_of(contract)
        for options in (HERE, CHILD):
            run_item(replace(item, planned=5), options)
        pairs = [(rate(item, HERE), rate(item, CHILD)) for _ in range(parsed.rounds)]
        here, child = (statistics.median(column) for column in zip(*pairs, strict=True))
        rows.append({"contract": contract, "here": here, "isolated": child, "ratio": child / here})
    seconds = statistics.median(start() for _ in range(parsed.rounds))
    following = statistics.median(again() for _ in range(parsed.rounds))
    end_children()
    return {"contracts": rows, "start_ms": seconds * 1e3, "again_ms": following * 1e3}


def lines(result: Result) -> list[str]:
    rows = [(row["contract"], row["here"], row["isolated"], row["ratio"]) for row in result["contracts"]]
    head = ("reference, one exploration", "programs/s", "isolated", "ratio")
    first, again = (f"{result[name]:.0f} ms" for name in ("start_ms", "again_ms"))
    return [
        *table(head, rows),
        f"(start of a child, its first program included: {first}; of the one after it ended: {again})",
    ]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind, by turns; medians are over them")


if __name__ == "__main__":
    command(__doc__, measure, lines, arguments=arguments)
