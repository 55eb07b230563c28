"""How fast is a foreign history judged, parsing included, how fast put in order alone, and in how much memory?

Writes histories of growing length with 10, 100 and 1,000 live blocks, and judges each in a process of its own.
``python benchmarks/judge.py [--json] [--events N]``
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from measuring import Result, clock, command, table

from vmm_conformance.history.ordering import Order
from vmm_conformance.history.state import State
from vmm_conformance.history.stream import HistoryStream
from vmm_conformance.judging import judge_file
from vmm_conformance.running.histories import resolve

GRANULE = 65536
BATCH = 20_000
LEAST, MOST_MB = 50_000, 300


def history(events: int, live: int) -> Iterator[str]:
    """Lines of a right history: ``live`` blocks, of which the oldest is taken down for each that is made and used."""
    head = {"format": "vmm-conformance history", "version": 1, "header": {"d": [["granule", GRANULE]]}}
    yield json.dumps(head)
    yield from (_line("stream_create", [0], stream) for stream in (1, 2))
    yield from (_line("event_create", [0], event) for event in (1, 2))
    for block in range(live):
        yield from _made(block)
    turns = (events - 8 * live) // 16
    for block in range(turns):
        yield from _gone(block)
        yield from _made(block + live)
        yield from _used(block + live)
    for block in range(turns, turns + live):
        yield from _gone(block)


def _line(kind: str, args: list[object], result: object = None) -> str:
    return json.dumps([0, 0, "subject", kind, args, 0, result], separators=(",", ":"))


def _made(block: int) -> Iterator[str]:
    address = (1 << 40) + block % 5000 * 4 * GRANULE
    yield _line("reserve", [GRANULE, 0, 0], address)
    yield _line("create", [GRANULE, 0, 0], block + 1)
    yield _line("map", [address, GRANULE, block + 1, 0])
    yield _line("set_access", [address, GRANULE, [[0, 3]]])


def _used(block: int) -> Iterator[str]:
    address = (1 << 40) + block % 5000 * 4 * GRANULE
    yield _line("fill", [address, 7, 4096, 1], 3 * block)
    yield _line("event_record", [1, 1])
    yield _line("stream_wait_event", [2, 1])
    yield _line("launch", [2, [[address, 4096]], [], [[address + 4096, {"x": "00" * 16}]]], 3 * block + 1)
    yield _line("event_record", [2, 2])
    yield _line("stream_wait_event", [1, 2])
    yield _line("read", [address, 4096, 1], 3 * block + 2)
    yield _line("stream_synchronize", [1])


def _gone(block: int) -> Iterator[str]:
    address = (1 << 40) + block % 5000 * 4 * GRANULE
    yield _line("unmap", [address, GRANULE])
    yield _line("release", [block + 1])
    yield _line("address_free", [address, GRANULE])
    yield _line("mem_info", [0])


def judged(file: str) -> None:
    """Judge ``file`` in this process, and print what that took."""
    with open(file, encoding="utf-8") as opened:
        start = clock()
        judgement = judge_file(opened)
        taken = clock() - start
    if judgement.wrong:
        sys.exit(f"the history should be right: {judgement.wrong[0]}")
    rate = judgement.events / taken
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"events": judgement.events, "rate": rate, "ordering": ordered(file), "peak_mb": peak}))


def ordered(file: str) -> float:
    """Events a second that state and order take in, without parsing, rules and findings."""
    state = State()
    order, taken, count = Order(state), 0.0, 0
    with open(file, encoding="utf-8") as opened:
        events = iter(HistoryStream(opened, resolve))
        while batch := list(islice(events, BATCH)):
            start = clock()
            for event in batch:
                state.apply(event)
                order.apply(event)
            taken += clock() - start
            count += len(batch)
    return count / taken


def _write(file: Path, size: int, live: int) -> None:
    """Line by line: the peak of a process that is started counts from that of the one that starts it."""
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(f"{line}\n" for line in history(size, live))


def measure(parsed: argparse.Namespace) -> Result:
    rows = []
    sizes = sorted({size for size in (10_000, 100_000, 1_000_000) if size <= parsed.events} | {parsed.events})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "history.jsonl")
        for size in sizes:
            for live in (10, 100, 1000):
                _write(file, size, live)
                done = subprocess.run(
                    [sys.executable, __file__, "--judge", str(file)], check=True, stdout=subprocess.PIPE, text=True
                )
                rows.append({"live": live, **json.loads(done.stdout)})
    return {"rows": rows, "least": LEAST, "most_mb": MOST_MB}


def lines(result: Result) -> list[str]:
    rows = [(f"{row['events']:,}", row["live"], row["rate"], row["ordering"], row["peak_mb"]) for row in result["rows"]]
    goal = f"(goal: at least {result['least']:,} events/s, under {result['most_mb']} MB)"
    return [*table(("events", "live blocks", "judged/s", "state and order alone/s", "peak MB"), rows), goal]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000, help="the longest history (default: 1,000,000)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        judged(sys.argv[2])
    else:
        command(__doc__, measure, lines, arguments=arguments)
