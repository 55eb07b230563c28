"""What does an operation of the reference VMM allocator cost as its live records grow?

Records are active allocations, every second of which has an alias. The driver does nothing, so what is measured is
the allocator's own book-keeping. Microseconds of processor time per operation, the best of a few rounds.
``python benchmarks/vmm_allocator.py [--json] [--records N ...]``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, cast

from measuring import Result, command, seconds, table

from vmm_conformance.contracts import AddressReservation, DeviceConfig, Driver, Granularity, SubjectError
from vmm_reference.vmm_allocator import DeviceVmmAllocator

G = 4096
RECORDS = (100, 1_000, 10_000, 100_000)
TIMES, ROUNDS = 256, 5
MOST_GROWTH = 3.0


class Nothing:
    """A driver that gives out numbers and does nothing."""

    device_count = 1

    def __init__(self) -> None:
        self._numbers = count(1)
        self._addresses = count(1 << 30, 64 * G)

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        return Granularity(G, G)

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        return 256

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        if size > 64 * G:
            return 1 << 44
        return next(self._addresses)

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        return next(self._numbers)

    event_create = create

    def event_query(self, event: int) -> bool:
        return True

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **named: None


class Bench:
    """An allocator with ``records`` live records, and what can be done to it without changing their number."""

    def __init__(self, records: int) -> None:
        driver = cast(Driver, Nothing())
        self.allocator = DeviceVmmAllocator(driver, [DeviceConfig(0, 1)])
        self.reservation: AddressReservation = self.allocator.create_reservation(0, (records + TIMES + 2) * G)
        self.slots = count()
        self.made = [self.allocator.allocate(0, G) for _ in range(records * 2 // 3 or 1)]
        self.aliased = [(each, next(self.slots)) for each in self.made[: records - len(self.made)]]
        for each, slot in self.aliased:
            self.allocator.map(0, each, self.reservation, slot * G, G)
        self.free = next(self.slots)
        self.fresh = [self.allocator.allocate(0, 2 * G) for _ in range(TIMES)]
        self.middle = len(self.made) // 2

    def take_back(self) -> None:
        for each in self.fresh:
            self.allocator.deallocate(0, each)
            self.allocator.allocate(0, 2 * G)

    def make_and_complete(self) -> None:
        made = [self.allocator.allocate(0, 3 * G) for _ in range(TIMES)]
        for each in made:
            self.allocator.deallocate(0, each)
        self.allocator.synchronize_pending_operations(0)

    def reactivate(self) -> None:
        source, slot = self.aliased[-1] if self.aliased else (self.made[0], self.free)
        for _ in range(TIMES):
            self.allocator.unmap(0, self.reservation, slot * G, G)
            self.allocator.map(0, source, self.reservation, slot * G, G)

    def take_over(self) -> None:
        """The slice of a stale alias for another source, which has to wait for it."""
        for source in self.fresh:
            self.allocator.map(0, source, self.reservation, self.free * G, G)
            self.allocator.unmap(0, self.reservation, self.free * G, G)
        self.allocator.synchronize_pending_operations(0)

    def look_up(self) -> None:
        for number in range(TIMES):
            self.allocator.raw_allocation(0, self.made[(self.middle + number) % len(self.made)])

    def refuse(self) -> None:
        source = self.fresh[0]
        for _ in range(TIMES):
            with suppress(SubjectError):
                self.allocator.map(0, source, self.reservation, 0, 2 * G)


OPERATIONS: dict[str, tuple[Callable[[Bench], None], int]] = {
    "deallocate, and take back": (Bench.take_back, 2),
    "allocate, deallocate, complete": (Bench.make_and_complete, 3),
    "unmap, and map the same": (Bench.reactivate, 2),
    "map over a stale alias, unmap": (Bench.take_over, 2),
    "look up": (Bench.look_up, 1),
    "refuse an overlap": (Bench.refuse, 1),
}
"""What is measured, and how many calls it makes each time."""


def measure(options: argparse.Namespace) -> Result:
    found: dict[str, list[float]] = {name: [] for name in OPERATIONS}
    for records in options.records:
        bench = Bench(records)
        for name, (body, calls) in OPERATIONS.items():
            best = min(seconds(partial(body, bench)) for _ in range(ROUNDS))
            found[name].append(round(best / TIMES / calls * 1e6, 2))
    growth = max(row[-1] / row[0] for row in found.values())
    return {"records": options.records, "microseconds": found, "growth": round(growth, 2), "goal": MOST_GROWTH}


def lines(result: Result) -> list[str]:
    head = ["us per call, live records:", *(f"{records:,}" for records in result["records"])]
    rows: list[list[Any]] = [[name, *row] for name, row in result["microseconds"].items()]
    return [*table(head, rows), f"growth {result['growth']:.2f} (goal: at most {result['goal']})"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, nargs="+", default=list(RECORDS), help="numbers of live records")


if __name__ == "__main__":
    command(__doc__ or "", measure, lines, arguments=arguments)
