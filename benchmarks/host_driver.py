"""How fast is the host driver, beside the system calls that move real pages?

One cycle is reserve, create, map, set access, unmap, free, release. Bare is what the same takes of the
system: mmap of the memory file, mprotect, mmap of nothing, punch. Both run in turns in one process;
medians are printed. ``python benchmarks/host_driver.py [--json] [--rounds N] [--cycles N]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable

from vmm_conformance.contracts import Access, DriverOptions
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.host.system import (
    ATTACH,
    PROT_NONE,
    PROT_READ_WRITE,
    PUNCH_HOLE,
    RESERVE,
    WITHDRAW,
    system_calls,
)

SIZE = 4096
GOAL = 0.6


def bare_cycles(count: int) -> None:
    calls = system_calls()
    mmap, mprotect, fallocate = calls.mmap, calls.mprotect, calls.fallocate
    file = os.memfd_create("benchmark")
    os.ftruncate(file, SIZE)
    address = mmap(0, SIZE, PROT_NONE, RESERVE, -1, 0)
    for _ in range(count):
        mmap(address, SIZE, PROT_NONE, ATTACH, file, 0)
        mprotect(address, SIZE, PROT_READ_WRITE)
        mmap(address, SIZE, PROT_NONE, WITHDRAW, -1, 0)
        fallocate(file, PUNCH_HOLE, 0, SIZE)
    calls.munmap(address, SIZE)
    os.close(file)


def driver_cycles(count: int) -> None:
    driver = HostDriver(DriverOptions())
    rights = {0: Access.READ_WRITE}
    for _ in range(count):
        address = driver.reserve(SIZE)
        handle = driver.create(SIZE)
        driver.map(address, SIZE, handle)
        driver.set_access(address, SIZE, rights)
        driver.unmap(address, SIZE)
        driver.address_free(address, SIZE)
        driver.release(handle)
    driver.close()


def fresh_drivers(count: int) -> None:
    options = DriverOptions()
    for _ in range(count):
        HostDriver(options).close()


def rate(body: Callable[[int], None], count: int) -> float:
    """Cycles per second."""
    start = time.perf_counter()
    body(count)
    return count / (time.perf_counter() - start)


def measure(rounds: int, cycles: int) -> dict[str, float]:
    bare, driver, fresh = [], [], []
    for body in (bare_cycles, driver_cycles, fresh_drivers):
        body(cycles // 10)  # caches, and the arena that the drivers share
    for _ in range(rounds):
        bare.append(rate(bare_cycles, cycles))
        driver.append(rate(driver_cycles, cycles))
        fresh.append(rate(fresh_drivers, cycles // 4))
    return {
        "bare_cycles_per_second": round(statistics.median(bare)),
        "driver_cycles_per_second": round(statistics.median(driver)),
        "ratio": round(statistics.median(d / b for d, b in zip(driver, bare, strict=True)), 3),
        "goal": GOAL,
        "new_and_closed_drivers_per_second": round(statistics.median(fresh)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=61, help="turns of each kind; medians are over them")
    parser.add_argument("--cycles", type=int, default=1000, help="cycles in one turn")
    options = parser.parse_args()
    result = measure(options.rounds, options.cycles)
    if options.json:
        print(json.dumps(result))
        return
    print(f"bare system calls  {result['bare_cycles_per_second']:>10,.0f} cycles/s")
    print(f"host driver        {result['driver_cycles_per_second']:>10,.0f} cycles/s")
    print(f"ratio              {result['ratio']:>10.2f}  (goal: at least {GOAL})")
    print(f"drivers            {result['new_and_closed_drivers_per_second']:>10,.0f} made and closed a second")


if __name__ == "__main__":
    main()
