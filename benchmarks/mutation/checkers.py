"""The checkers: a mutant judges stored histories again, and is found where it says anything else than before.

The histories of a contract are those that each known-bad variant was found by, those of the scenarios, and some of
the reference's own. What survives them meets the checkers' own tests.
"""

from __future__ import annotations

import importlib
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from mutation.reach import Lines, watching
from mutation.reference import programs_of, reference
from mutation.trial import COUNTS, FINDINGS, ROOT, Case, forget
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import History
from vmm_conformance.related import all_mutants
from vmm_conformance.running.kills import first_hit
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.session import bench_for

HISTORY: Final = ("ordering", "replay", "state")
"""Modules of the history that checkers rest on."""
CONTRACTS: Final = {
    "allocator": "allocator",
    "auto": "auto-threshold",
    "driver": "driver",
    **dict.fromkeys(("flag", "flags"), "flags"),
    "reservation": "reservation",
    "scope": "va-remap",
    "skip": "skip-remap",
    "step": "skip-remap",
    "update": "va-remap",
    "va": "va-remap",
    "vmm": "vmm-allocator",
}
"""The contract of each family of checkers, by the first word of a module's name."""
TESTS: Final = {
    "allocator": (
        "tests/allocator/test_allocator_checker.py", "tests/allocator/test_allocator_checker_edges.py",
        "tests/allocator/test_allocator_captures_checker.py", "tests/allocator/test_allocator_declared_checker.py",
        "tests/allocator/test_allocator_parts_checker.py",
    ),
    "auto-threshold": ("tests/auto/test_auto_checker.py",),
    "driver": (
        "tests/driver_suite/test_driver_suite_checker.py", "tests/driver_suite/test_driver_checker_edges.py",
        "tests/driver_suite/test_driver_bytes.py", "tests/driver_suite/test_driver_checker_blame.py",
        "tests/driver_suite/test_driver_checker_open.py",
    ),
    "flags": ("tests/flags/test_checker.py",),
    "reservation": (
        "tests/reservation/test_reservation_checker.py", "tests/reservation/test_reservation_checker_edges.py",
        "tests/reservation/test_reservation_checker_limits.py",
    ),
    "va-remap": (
        "tests/va_remap/test_va_remap_checker.py", "tests/va_remap/test_va_remap_checker_edges.py",
        "tests/va_remap/test_va_remap_checker_blame.py",
    ),
    "skip-remap": (
        "tests/skip_remap/test_step_contents.py", "tests/skip_remap/test_step_layout.py",
        "tests/skip_remap/test_step_order.py", "tests/skip_remap/test_step_outcome.py",
        "tests/skip_remap/test_step_remap.py",
    ),
    "vmm-allocator": (
        "tests/vmm_allocator/test_vmm_checker.py", "tests/vmm_allocator/test_vmm_checker_edges.py",
        "tests/vmm_allocator/test_vmm_checker_exact.py",
    ),
}  # fmt: skip
"""The checkers' own tests, by contract."""


class Shared(NamedTuple):
    """A module of several contracts' judges, or of none: whose histories it meets, and further tests."""

    contracts: tuple[str, ...]
    tests: tuple[str, ...]


SHARED: Final = {
    **dict.fromkeys(HISTORY, Shared(tuple(TESTS), ("tests/history",))),
    "accepted": Shared(
        ("allocator", "vmm-allocator"), ("tests/judging/test_accepted.py", "tests/proc/test_proc_reported.py")
    ),
    "client": Shared((), ("tests/judging/test_client.py", "tests/emulated/test_watching.py")),
    "foreign": Shared((), ("tests/judging/test_judge.py", "tests/judging/test_judge_edges.py")),
    "series": Shared(
        ("allocator", "skip-remap", "vmm-allocator"),
        ("tests/allocator/test_series.py", "tests/skip_remap/test_step_series.py"),
    ),
    **dict.fromkeys(
        ("driver_present", "touching"),
        Shared(
            (),
            (
                "tests/judging/test_judge.py", "tests/judging/test_judge_edges.py", "tests/judging/test_client.py",
                "tests/proc/test_proc_reported.py",
            ),
        ),
    ),
}  # fmt: skip
"""Modules that no contract has for itself."""
WATCHED: Final = {
    str(file): f"vmm_conformance.{room}.{file.stem}"
    for room in ("checkers", "history")
    for file in sorted((ROOT / "vmm_conformance" / room).glob("*.py"))
}
"""The modules that may be changed, by file."""
LEFT_OUT: Final = ("__init__", "judge")
"""Modules of the checkers that hold no rule."""


def modules() -> list[str]:
    """The checkers that can be changed, and what they rest on of the history."""
    names = sorted(file.stem for file in (ROOT / "vmm_conformance" / "checkers").glob("*.py"))
    return [name for name in names if name not in LEFT_OUT] + list(HISTORY)


class Stored(NamedTuple):
    """One history, what was said of it, the invariant it is there for (empty: no finding), and the lines reached."""

    history: History
    said: tuple[Counter[object], Counter[str]]
    shows: str
    lines: Lines


@dataclass(frozen=True, slots=True)
class CheckerModule:
    """One checker; ``count`` random histories of the reference; all are kept in the folder ``store``, if given."""

    module: str
    count: int
    store: Path | None

    @property
    def room(self) -> str:
        """The package that the module is in."""
        return "history" if self.module in HISTORY else "checkers"

    @property
    def path(self) -> Path:
        """The module's file."""
        return ROOT / "vmm_conformance" / self.room / f"{self.module}.py"

    @property
    def name(self) -> str:
        """The module's full name."""
        return f"vmm_conformance.{self.room}.{self.module}"

    @property
    def contracts(self) -> Sequence[str]:
        """The contracts that the module judges."""
        if self.module in SHARED:
            return SHARED[self.module].contracts
        return (CONTRACTS[self.module.split("_")[0]],)

    @staticmethod
    def forget() -> None:
        """Load all checkers anew."""
        forget("vmm_conformance.checkers", *(f"vmm_conformance.history.{name}" for name in HISTORY))
        plug.cache_clear()

    @property
    def tests(self) -> Sequence[str]:
        """The checkers' own tests."""
        own = SHARED[self.module].tests if self.module in SHARED else ()
        return (*own, *chain(*(TESTS[contract] for contract in self.contracts)))

    def cases(self) -> Sequence[Case]:
        """The stored histories, short ones first."""
        kept = [(each, one) for each in self.contracts for one in stored(each, self.count, self.store)]
        kept.sort(key=lambda pair: len(pair[1].history.events))
        return [Case(partial(judged_again, *pair), pair[1].lines.get(self.name, frozenset())) for pair in kept]

    def more(self) -> Iterator[Callable[[], str]]:
        """Nothing."""
        return iter(())


def judged_again(contract: str, stored: Stored) -> str:
    """``raises``, ``missed``, ``false``, ``unseen``, or what differs beside the verdict; or nothing."""
    judge = importlib.import_module(f"vmm_conformance.checkers.{contract.replace('-', '_')}").judge
    try:
        verdicts = judge(stored.history)
    except Exception:
        return "raises"
    said = words(verdicts)
    if said == stored.said:
        return ""
    broken = {finding.invariant for finding in verdicts.findings}
    if stored.shows and stored.shows not in broken:
        return f"missed {stored.shows}"
    if not stored.shows and broken:
        return f"false {min(broken)}"
    other = said[1].keys() ^ stored.said[1].keys()
    if other:
        return f"unseen {min(other)}"
    return COUNTS if said[0] == stored.said[0] else FINDINGS


def words(verdicts: Judge) -> tuple[Counter[object], Counter[str]]:
    """What verdicts come to, but for the texts of messages."""
    found = ((each.invariant, each.seq, each.op, each.cause, each.range) for each in verdicts.findings)
    return Counter(found), +verdicts.witnesses


@cache
def stored(contract: str, count: int, store: Path | None) -> tuple[Stored, ...]:
    """The histories of ``contract``, made once, or read from a file that belongs to this state of the code."""
    if store is None:
        return tuple(made(contract, count))
    file = store / f"{contract}-{count}.pickle"
    if not file.exists():
        store.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(tuple(made(contract, count))))
    found: tuple[Stored, ...] = pickle.loads(file.read_bytes())
    return found


def made(contract: str, count: int) -> Iterator[Stored]:
    """Histories of known-bad variants first, each the one that it was found by."""
    for mutant in (each for each in all_mutants() if each.contract == contract):
        hit = first_hit(mutant, 0, "dev")
        if hit is not None:
            yield _stored(contract, bench_for(contract, mutant.subject).run(hit.program).history, mutant.breaks[0])

    subject = (
        importlib.import_module("vmm_conformance.drivers.subjects").host if contract == "driver" else reference({})
    )
    for program in programs_of(contract, {}, count, 2_000):
        yield _stored(contract, bench_for(contract, subject).run(program).history, "")


def _stored(contract: str, history: History, shows: str) -> Stored:
    with watching(WATCHED) as reached:
        verdicts = plug(contract).judge(history)
    lines = {WATCHED[file]: frozenset(numbers) for file, numbers in reached.items() if numbers}
    shown = shows if any(f.invariant == shows for f in verdicts.findings) else ""
    return Stored(history, words(verdicts), shown, lines)
