"""How long does a step of the reference take, by the number of slots, and of slots that moved?

Nothing is executed: what is measured is what the executor does around it. All slots are mapped ones.
``python benchmarks/step.py [--json]``
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence

from measuring import Buffers, Counted, Result, clock, command, table

from vmm_conformance.contracts import Buffer, Command, Driver, DriverOptions, Executable, Slot
from vmm_conformance.drivers.host import HostDriver
from vmm_reference.subject import reference

SLOTS = (10, 100, 1_000, 10_000)
MOVED_OF = 1_000
MOVED = (1, 10, 100, 1_000)
MOST_US_PER_SLOT = 2.0
SIZE = 4096


def executable(slots: int) -> Executable:
    return Executable((Slot(),) * slots, (Command(tuple(range(slots))),))


def step_time(driver: Driver, plan: Executable, rounds: Iterator[Sequence[Buffer]], count: int) -> float:
    """Median seconds of a step; the first two, which map everything, are left out."""
    stream = driver.stream_create()
    executor = reference.step_executor(driver, plan)
    times = []
    for _ in range(count + 2):
        buffers = next(rounds)
        start = clock()
        executor.step(buffers, device=0, stream=stream, execute=lambda table, persistent: None)
        times.append(clock() - start)
    executor.close()
    return statistics.median(times[2:])


def forever(*sets: Sequence[Buffer]) -> Iterator[Sequence[Buffer]]:
    while True:
        yield from sets


def unmoved(slots: int) -> Result:
    driver = HostDriver(DriverOptions(capacity=1 << 30))
    make = Buffers(driver).make
    buffers = [make(SIZE) for _ in range(slots)]
    count = max(15, 20_000 // slots)
    spent = step_time(driver, executable(slots), forever(buffers), count)
    calls = calls_of_a_step(driver, slots, buffers)
    driver.close()
    return {"slots": slots, "us": spent * 1e6, "us_per_slot": spent * 1e6 / slots, "calls": calls}


def calls_of_a_step(driver: Driver, slots: int, buffers: Sequence[Buffer]) -> dict[str, int]:
    """The driver calls of one step with nothing moved, by kind."""
    counted = Counted(driver)
    stream = driver.stream_create()
    executor = reference.step_executor(counted, executable(slots))
    for _ in range(3):
        counted.calls.clear()
        executor.step(buffers, device=0, stream=stream, execute=lambda table, persistent: None)
    calls = dict(counted.calls)
    executor.close()
    return calls


def moved(count: int, still: float) -> Result:
    """Two sets of buffers by turns that differ in ``count`` of the slots."""
    driver = HostDriver(DriverOptions(capacity=1 << 30))
    make = Buffers(driver).make
    first = [make(SIZE) for _ in range(MOVED_OF)]
    second = [make(SIZE) if slot < count else buffer for slot, buffer in enumerate(first)]
    spent = step_time(driver, executable(MOVED_OF), forever(first, second), max(8, 1_000 // count))
    driver.close()
    return {"moved": count, "us": spent * 1e6, "us_per_moved_slot": (spent - still) * 1e6 / count}


def measure(parsed: argparse.Namespace) -> Result:
    still = [unmoved(slots) for slots in SLOTS]
    base = next(row["us"] for row in still if row["slots"] == MOVED_OF) / 1e6
    return {
        "unmoved": still,
        "moved_of": MOVED_OF,
        "moved": [moved(count, base) for count in MOVED],
        "most_us_per_slot": MOST_US_PER_SLOT,
    }


def lines(result: Result) -> list[str]:
    still = [
        (row["slots"], row["us"], row["us_per_slot"], ", ".join(f"{k} {n}" for k, n in row["calls"].items()))
        for row in result["unmoved"]
    ]
    moving = [(row["moved"], row["us"], row["us_per_moved_slot"]) for row in result["moved"]]
    return [
        *table(("slots, none moved", "us per step", "us per slot", "driver calls"), still),
        f"(goal: at most {result['most_us_per_slot']:.0f} us per slot at 10,000, and no driver call but the event's)",
        "",
        *table((f"moved, of {result['moved_of']:,}", "us per step", "us beyond, per moved slot"), moving),
    ]


if __name__ == "__main__":
    command(__doc__, measure, lines)
