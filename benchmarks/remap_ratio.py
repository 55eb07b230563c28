"""What do skip-remap and shadows save over remapping everything, on real memory whose pages are touched?

An executable with small and large slots is stepped by the reference in three settings: everything is
remapped at each step; unmoved slots are left alone; and small slots have shadows besides. Execution
touches every page of every slot at the address that it is given. Steps of the three settings take turns.
Then: from which size on is copying a buffer there and back dearer than remapping it, alone and with the
page faults that the new mapping brings? Once through the host driver, once bare, without its bookkeeping.
``python benchmarks/remap_ratio.py [--json] [--steps N]``
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import statistics
from collections.abc import Callable, Sequence
from functools import partial

from measuring import Buffers, Result, clock, command, seconds, table

from vmm_conformance.contracts import (
    Access,
    Buffer,
    Command,
    Driver,
    DriverOptions,
    Executable,
    Range,
    Slot,
    StepExecutor,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.host.system import (
    ATTACH,
    PROT_NONE,
    PROT_READ_WRITE,
    RESERVE,
    WITHDRAW,
    system_calls,
)
from vmm_reference.subject import reference

PAGE = 4096
SMALL = (256, 1_024, 4_096)
LARGE = (64 << 10, 256 << 10, 1 << 20)
THRESHOLD = 4_096
SMALL_SLOTS, LARGE_SLOTS = 60, 40
SHARES = (0.0, 0.01, 0.1, 1.0)
SETTINGS = {"everything": (False, 0), "skip-remap": (True, 0), "with shadows": (True, THRESHOLD)}
SIZES = tuple(PAGE << power for power in range(11))
AGAINST = ("remap", "remap_and_faults")
PRICES = tuple(prefix + name for prefix in ("", "bare_") for name in ("copies", *AGAINST))


class Pages:
    """Touches one byte of every page, in C; views of memory are kept by address."""

    def __init__(self) -> None:
        self._views: dict[Range, tuple[memoryview, bytes]] = {}

    def touch(self, range: Range) -> None:
        view, data = self._views.get(range) or self._view(range)
        view[:] = data

    def _view(self, range: Range) -> tuple[memoryview, bytes]:
        memory = (ctypes.c_ubyte * range.size).from_address(range.address)
        view = memoryview(memory).cast("B")[::PAGE]
        self._views[range] = view, bytes(len(view))
        return self._views[range]


class Setting:
    """One setting: an executor of its own on the driver that all share."""

    def __init__(self, driver: Driver, skip: bool, threshold: int, pages: Pages) -> None:
        slots = SMALL_SLOTS + LARGE_SLOTS
        plan = Executable((Slot(),) * slots, (Command(tuple(range(slots))),), skip_remap=skip, copy_threshold=threshold)
        self.stream = driver.stream_create()
        self.executor: StepExecutor = reference.step_executor(driver, plan)
        self.pages = pages
        self.times: list[float] = []

    def execute(self, entries: Sequence[Range], persistent: tuple[int, ...] | None) -> None:
        for entry in entries:
            self.pages.touch(entry)

    def step(self, buffers: Sequence[Buffer]) -> None:
        start = clock()
        self.executor.step(buffers, device=0, stream=self.stream, execute=self.execute)
        self.times.append(clock() - start)


def workload(share: float, movable: range, steps: int) -> Result:
    """Median milliseconds of a step in each setting, and ratios, with ``share`` of ``movable`` moving."""
    driver = HostDriver(DriverOptions(capacity=4 << 30, schedule="eager"))
    make = Buffers(driver).make
    sizes = [SMALL[i % 3] for i in range(SMALL_SLOTS)] + [LARGE[i % 3] for i in range(LARGE_SLOTS)]
    choices = [(make(size), make(size)) for size in sizes]
    current = [0] * len(sizes)
    pages = Pages()
    settings = {name: Setting(driver, skip, limit, pages) for name, (skip, limit) in SETTINGS.items()}
    draw = random.Random(0)
    for _ in range(steps + 3):
        for slot in draw.sample(movable, round(share * len(movable))):
            current[slot] ^= 1
        buffers = [pair[which] for pair, which in zip(choices, current, strict=True)]
        for setting in settings.values():
            setting.step(buffers)
    for setting in settings.values():
        setting.executor.close()
    driver.close()
    spent = {name: statistics.median(setting.times[3:]) * 1e3 for name, setting in settings.items()}
    return {
        "share": share,
        "ms": spent,
        "over_skip": spent["everything"] / spent["skip-remap"],
        "over_shadows": spent["everything"] / spent["with shadows"],
    }


class Remapping:
    """One slot that two buffers of ``size`` bytes take turns at, all of them real memory that was touched."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.driver = HostDriver(DriverOptions(capacity=1 << 30, schedule="eager"))
        make = Buffers(self.driver).make
        self.buffers = make(size), make(size)
        self.slot = make(size).address
        self.stream = self.driver.stream_create()
        self.pages = Pages()
        for buffer in self.buffers:
            self.pages.touch(Range(buffer.address, size))
        self.pages.touch(Range(self.slot, size))

    def touch(self, turn: int) -> None:
        self.pages.touch(Range(self.slot, self.size))

    def copy_by_driver(self, turn: int) -> None:
        buffer = self.buffers[turn % 2].address
        self.driver.copy(self.slot, buffer, self.size, stream=self.stream)
        self.driver.copy(buffer, self.slot, self.size, stream=self.stream)

    def remap_by_driver(self, turn: int) -> None:
        self.driver.unmap(self.slot, self.size)
        self.driver.map(self.slot, self.size, self.buffers[turn % 2].handle or 0)
        self.driver.set_access(self.slot, self.size, {0: Access.READ_WRITE})


class BareRemapping:
    """The same without a driver: what the system and the memory take."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.calls = system_calls()
        self.file = os.memfd_create("benchmark")
        os.ftruncate(self.file, 3 * size)
        self.buffers = tuple(self._mapped(at * size) for at in range(2))
        self.slot = self._mapped(2 * size)
        self.pages = Pages()
        for address in (*self.buffers, self.slot):
            self.pages.touch(Range(address, size))

    def _mapped(self, offset: int) -> int:
        address = self.calls.mmap(0, self.size, PROT_NONE, RESERVE, -1, 0)
        return self.calls.mmap(address, self.size, PROT_READ_WRITE, ATTACH, self.file, offset)

    def touch(self, turn: int) -> None:
        self.pages.touch(Range(self.slot, self.size))

    def copy(self, turn: int) -> None:
        buffer = self.buffers[turn % 2]
        ctypes.memmove(self.slot, buffer, self.size)
        ctypes.memmove(buffer, self.slot, self.size)

    def remap(self, turn: int) -> None:
        self.calls.mmap(self.slot, self.size, PROT_NONE, WITHDRAW, -1, 0)
        self.calls.mmap(self.slot, self.size, PROT_NONE, ATTACH, self.file, turn % 2 * self.size)
        self.calls.mprotect(self.slot, self.size, PROT_READ_WRITE)

    def close(self) -> None:
        for address in (*self.buffers, self.slot):
            self.calls.munmap(address, self.size)
        os.close(self.file)


def prices(size: int, repeats: int) -> Result:
    """Median microseconds, for a buffer of ``size`` bytes, of both copies and of a remap."""
    through, bare = Remapping(size), BareRemapping(size)
    result = {
        "size": size,
        **_three(through.copy_by_driver, through.remap_by_driver, through.touch, repeats, ""),
        **_three(bare.copy, bare.remap, bare.touch, repeats, "bare_"),
    }
    through.driver.close()
    bare.close()
    return result


Turn = Callable[[int], None]


def _three(copy: Turn, remap: Turn, touch: Turn, repeats: int, prefix: str) -> Result:
    def median(*bodies: Turn) -> float:
        times = [seconds(partial(_all, bodies, turn)) for turn in range(repeats + 2)]
        return statistics.median(times) * 1e6

    copied = median(copy)
    touched = median(touch)
    return {
        f"{prefix}copies": copied,
        f"{prefix}remap": median(remap),
        f"{prefix}remap_and_faults": median(remap, touch) - touched,
    }


def _all(bodies: Sequence[Turn], turn: int) -> None:
    for body in bodies:
        body(turn)


def dearer(rows: Sequence[Result], prefix: str, against: str) -> str:
    """At which sizes copying there and back is dearer than ``against``."""
    beyond = [row[f"{prefix}copies"] - row[f"{prefix}{against}"] for row in rows]
    yes = [index for index, excess in enumerate(beyond) if excess > 0]
    if not yes:
        return f"at no size up to {_kib(rows[-1]['size'])}"
    first, last = yes[0], yes[-1]
    if not first and last + 1 == len(rows):
        return "at every size"
    start = f"from about {_kib(_between(rows, beyond, first - 1))} on" if first else ""
    end = f"up to about {_kib(_between(rows, beyond, last))}" if last + 1 < len(rows) else ""
    return f"{start} {end}".strip()


def _between(rows: Sequence[Result], beyond: Sequence[float], index: int) -> float:
    """Where the excess is 0, between two measured sizes."""
    here, there = rows[index]["size"], rows[index + 1]["size"]
    return here + (there - here) * -beyond[index] / (beyond[index + 1] - beyond[index])  # type: ignore[no-any-return]


def _kib(size: float) -> str:
    return f"{size / 1024:,.0f} KiB"


def measure(parsed: argparse.Namespace) -> Result:
    everything = range(SMALL_SLOTS + LARGE_SLOTS)
    rows = [prices(size, parsed.steps * 2) for size in SIZES]
    return {
        "random": [workload(share, everything, parsed.steps) for share in SHARES],
        "small": [workload(share, range(SMALL_SLOTS), parsed.steps) for share in SHARES],
        "prices": rows,
        "copies_dearer": {prefix + name: dearer(rows, prefix, name) for prefix in ("", "bare_") for name in AGAINST},
    }


def lines(result: Result) -> list[str]:
    text = []
    head = ("moving", *(f"{name}, ms" for name in SETTINGS), "over skip-remap", "over both")
    for name, title in (("random", "any slots move"), ("small", "only small slots move")):
        rows = [
            (f"{row['share']:.0%}", *row["ms"].values(), row["over_skip"], row["over_shadows"]) for row in result[name]
        ]
        text += [f"{title}: {SMALL_SLOTS} small, {LARGE_SLOTS} large, pages touched", *table(head, rows), ""]
    rows = [(row["size"] // 1024, *(row[name] for name in PRICES)) for row in result["prices"]]
    text += [
        "microseconds for one buffer: copied there and back, remapped, remapped and its pages touched",
        *table(("KiB", *(name.replace("_", " ") for name in PRICES)), rows),
        "copying is dearer than",
    ]
    return [*text, *(f"  {name.replace('_', ' ')} {where}" for name, where in result["copies_dearer"].items())]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=60, help="steps of each setting; medians are over them")


if __name__ == "__main__":
    command(__doc__, measure, lines, arguments=arguments)
