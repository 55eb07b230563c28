"""How many explored programs a second, and where does the time go? What does memory do in a long run?

For each contract, on the reference (for ``driver`` on the host driver), over all explorations in their
shares: each stage alone on the same programs, and all together as a run of the suites does it. Processor
time of one core. ``python benchmarks/programs.py [--json] [--contract C] [--budget NAME] [--memory]``
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from measuring import Result, clock, command, seconds, table

from vmm_conformance.contracts import CONTRACTS, Access, Driver, DriverOptions
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import generate
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.session import Item, Options, bench_for, plan, resolve_known, run_item

GOAL = 150
GOAL_LENGTH = 30
MOST_GROWTH = 1.1
MEMORY = (2_000, 20_000)
LONG_RUNS = ("skip-remap", "allocator")
"""The contracts whose memory is watched unless some are named."""
CYCLES, ROUNDS, CALLS = 60, 400, 7


def subject_of(contract: str) -> str:
    return "host" if contract == "driver" else "reference"


def explorations(contract: str, budget: str) -> list[Item]:
    spec = subject_of(contract)
    items = plan({spec: resolve_known(spec)}, Options(budget=budget))
    return [item for item in items if item.kind == "exploration" and item.contract == contract]


# -- stages


def stages(contract: str, budget: str, per_event: float) -> Result:
    """Microseconds per program of each stage; recording is estimated by the seconds that it takes per event."""
    items = explorations(contract, budget)
    drawn: list[tuple[Item, bytes]] = []
    generation = seconds(lambda: _draw(items, drawn))
    bench = bench_for(contract, resolve_known(subject_of(contract)))
    decode = plug(contract).decode
    programs: list[Program] = []
    decoding = seconds(lambda: programs.extend(decode(data, _pins(item)) for item, data in drawn))
    execution = judging = events = 0.0
    for program in programs:
        start = clock()
        history = bench.plug.run(program, bench.subject, bench.open_driver)
        middle = clock()
        bench.plug.judge(history)
        judging += clock() - middle
        execution += middle - start
        events += len(history)
    each = 1e6 / len(programs)
    return {
        "contract": contract,
        "programs": len(programs),
        "operations": sum(len(program.operations) for program in programs) / len(programs),
        "median_operations": statistics.median(len(program.operations) for program in programs),
        "events": events / len(programs),
        "generation": generation * each,
        "decoding": decoding * each,
        "execution": execution * each,
        "recording": events * each * per_event,
        "judging": judging * each,
        "together": together(items) * each,
    }


def _pins(item: Item) -> dict[str, Any]:
    return dict(getattr(item.part, "pins", {}))


def _draw(items: Sequence[Item], into: list[tuple[Item, bytes]]) -> None:
    for number, item in enumerate(items):
        generate(item.planned, number, lambda data, item=item: into.append((item, data)))  # type: ignore[misc] # bound now


def together(items: Sequence[Item]) -> float:
    """Seconds of all stages as a run of the suites does them."""
    start = clock()
    for item in items:
        result = run_item(item, Options())
        if result.failures or result.unknown:
            sys.exit(f"{item.id}: the subject does not conform, so this would measure something else")
    return clock() - start


# -- recording alone


def recorded_cycles() -> Result:
    """Full cycles per second (reserve to release) with and without a recorder, by turns.

    Each history gets as long as a program's does: a longer one is more work for the garbage collector.
    """
    options = DriverOptions()
    raw, recorded = [], []
    for _ in range(ROUNDS):
        driver = HostDriver(options)
        raw.append(CYCLES / seconds(lambda: _cycles(driver)))  # noqa: B023 - called at once
        recorder = Recorder(driver, History())
        recorded.append(CYCLES / seconds(lambda: _cycles(recorder.subject)))  # noqa: B023
        driver.listen(None)
        driver.close()
    ratio = statistics.median(r / d for r, d in zip(recorded, raw, strict=True))
    unrecorded, together = statistics.median(raw), statistics.median(recorded)
    per_event = (1 / together - 1 / unrecorded) / CALLS
    return {"unrecorded": unrecorded, "recorded": together, "ratio": ratio, "seconds_per_event": per_event}


def _cycles(driver: Driver) -> None:
    size, rights = 4096, {0: Access.READ_WRITE}
    for _ in range(CYCLES):
        address = driver.reserve(size)
        handle = driver.create(size)
        driver.map(address, size, handle)
        driver.set_access(address, size, rights)
        driver.unmap(address, size)
        driver.address_free(address, size)
        driver.release(handle)


# -- memory


def resident() -> int:
    """Resident memory of this process in KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def memory(contract: str) -> Result:
    """Resident KiB after each of `MEMORY` programs of one contract, in a process of its own."""
    code = f"import programs; programs.memory_here({contract!r})"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    kilobytes = [int(number) for number in done.stdout.split()]
    return {"contract": contract, "kib": kilobytes, "ratio": kilobytes[1] / kilobytes[0]}


def memory_here(contract: str) -> None:
    """Print resident KiB after the first round of programs and after the last.

    Not in between: Hypothesis remembers the examples of the batch that it is in.
    """
    from vmm_conformance.running import session

    few, many = MEMORY
    setattr(session, "BUDGETS", {**session.BUDGETS, "memory": few})  # noqa: B010 - a constant elsewhere
    for seed in range(many // few):
        for item in explorations(contract, "memory"):
            run_item(item, Options(seed=seed))
        gc.collect()
        if seed in (0, many // few - 1):
            print(resident())


# -- the command


def measure(parsed: argparse.Namespace) -> Result:
    contracts = parsed.contract or [name for name in CONTRACTS if explorations(name, "smoke")]
    _draw(explorations(contracts[0], "smoke"), [])  # Hypothesis is loaded once
    cycles = recorded_cycles()
    rows = [stages(contract, parsed.budget, cycles["seconds_per_event"]) for contract in contracts]
    result: Result = {"stages": rows, "recorded_cycles": cycles, "goal": GOAL, "goal_length": GOAL_LENGTH}
    if parsed.memory:
        result["memory"] = [memory(contract) for contract in parsed.contract or LONG_RUNS]
    return result


STAGES = ("generation", "decoding", "execution", "recording", "judging", "together")


def mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of a run that makes as many programs of each contract, as the suites do."""
    numbers = (name for name, value in rows[0].items() if not isinstance(value, str))
    return {"contract": "all alike", **{name: statistics.fmean(row[name] for row in rows) for name in numbers}}


def lines(result: Result) -> list[str]:
    rows = [
        (
            row["contract"],
            row["operations"],
            row["events"],
            *(row[stage] for stage in STAGES),
            1e6 / row["together"],
            1e6 / row["together"] * row["operations"] / result["goal_length"],
        )
        for row in [*result["stages"], mean(result["stages"])]
    ]
    cycles = result["recorded_cycles"]
    text = [
        "microseconds per program, mean; recording, the events at the price of one below, is a part of execution",
        *table(("contract", "operations", "events", *STAGES, "programs/s", "of 30 operations"), rows),
        f"(goal: {result['goal']} programs of 30 operations a second)",
        "",
        f"driver cycles a second: {cycles['unrecorded']:,.0f} unrecorded, {cycles['recorded']:,.0f} recorded,"
        f" ratio {cycles['ratio']:.2f} (goal: at least 0.75)",
    ]
    if "memory" in result:
        head = ("resident MiB", *(f"after {number:,} programs" for number in MEMORY), "ratio")
        memories = [(row["contract"], *(kib / 1024 for kib in row["kib"]), row["ratio"]) for row in result["memory"]]
        text += ["", *table(head, memories), f"(goal: a ratio of at most {MOST_GROWTH})"]
    return text


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", action="append", metavar="C", help="only this one (repeatable)")
    parser.add_argument("--budget", default="dev", help="programs of each contract (default: dev)")
    parser.add_argument("--memory", action="store_true", help=f"also watch memory over {MEMORY[1]:,} programs")


if __name__ == "__main__":
    measured: Callable[[argparse.Namespace], Result] = measure
    command(__doc__, measured, lines, arguments=arguments)
