"""The reference's modules: the suites judge a mutant, then the reference's own tests, then more programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from mutation.reach import watching
from mutation.trial import ROOT, Case, forget
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import generate
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.suites import load_suites

TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "allocator": (
        "tests/allocator/test_vmm_allocator.py", "tests/allocator/test_allocator_parts_reference.py",
        "tests/allocator/test_expandable_reference.py", "tests/allocator/test_allocator_runner.py",
    ),
    "flags": ("tests/flags/test_flags.py",),
    "skip-remap": ("tests/reference/test_step_executor.py",),
    "auto-threshold": ("tests/auto/test_auto_threshold.py",),
    "reservation": ("tests/reservation/test_memory_layer.py",),
    "vmm-allocator": (
        "tests/vmm_allocator/test_device_vmm_allocator.py", "tests/vmm_allocator/test_vmm_reference_parts.py",
    ),
    "va-remap": ("tests/va_remap/test_va_remap_reference.py", "tests/va_remap/test_scopes_over_vmm_allocator.py"),
}  # fmt: skip
"""The reference's own tests, by contract."""

Settings = Mapping[str, str]
SMALL, SIZED, PAUSING, EXPANDABLE = ({"allocator": name} for name in ("small", "sized", "pausing", "expandable"))
MODULES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("allocator", "allocator_parts", "expandable"), "allocator"),
    "flags": "flags",
    **dict.fromkeys(("in_flight", "layout", "mapping", "shadows", "step_executor", "va_ranges"), "skip-remap"),
    "auto_threshold": "auto-threshold",
    **dict.fromkeys(("descriptors", "raw_memory", "reservation"), "reservation"),
    **dict.fromkeys(("timeline", "vmm_allocator", "vmm_device", "vmm_ranges", "vmm_records"), "vmm-allocator"),
    **dict.fromkeys(("command_buffer", "policies", "remapping", "scopes"), "va-remap"),
}
"""Modules of the reference, and the contract that tests each."""
SETTINGS: Final[Mapping[str, tuple[Settings, ...]]] = {
    "allocator": (SMALL,),
    "allocator_parts": (PAUSING, SIZED),
    "expandable": (EXPANDABLE,),
    "reservation": ({}, {"set_access_scope": "full", "unmap_scope": "slice"}),
    "vmm-allocator": ({}, {"markers": "per-operation", "second_alias": "FAILED_PRECONDITION"}),
}
"""Settings of the reference that a module, or all modules of a contract, are tried with; elsewhere none."""


@dataclass(frozen=True, slots=True)
class ReferenceModule:
    """One module of the reference; ``count`` random programs in the first round, ``count_more`` for who survives it."""

    module: str
    count: int
    count_more: int

    @property
    def path(self) -> Path:
        """The module's file."""
        return ROOT / "reference" / "vmm_reference" / f"{self.module}.py"

    @property
    def name(self) -> str:
        """The module's full name."""
        return f"vmm_reference.{self.module}"

    @staticmethod
    def forget() -> None:
        """Load all of the reference anew."""
        forget("vmm_reference")

    @property
    def tests(self) -> Sequence[str]:
        """The reference's own tests."""
        return TESTS[MODULES[self.module]]

    def cases(self) -> Sequence[Case]:
        """Scenarios and programs, short ones first, under each of the settings."""
        contract, settings = MODULES[self.module], settings_of(self.module)
        programs = sorted(programs_of(contract, settings[0], self.count, 0), key=lambda each: len(each.operations))
        found = []
        for run in (partial(broken, contract, each, program) for program in programs for each in settings):
            with watching([str(self.path)]) as reached:
                run()
            found.append(Case(run, frozenset(reached[str(self.path)])))
        return found

    def more(self) -> Iterator[Callable[[], str]]:
        """More programs."""
        contract, settings = MODULES[self.module], settings_of(self.module)
        if self.count_more:
            for program in programs_of(contract, settings[0], self.count_more, 1_000, scenarios=False):
                yield from (partial(broken, contract, each, program) for each in settings)


def settings_of(module: str) -> Sequence[Settings]:
    """The settings of the reference that programs are run with."""
    return SETTINGS.get(module) or SETTINGS.get(MODULES[module], ({},))


def broken(contract: str, settings: Settings, program: Program) -> str:
    """The first invariant that ``program`` finds broken under ``settings``."""
    return next(iter(bench_for(contract, reference(settings)).run(program).broken()), "")


def reference(settings: Settings) -> Any:
    """The reference under ``settings``, as it is loaded now."""
    return importlib.import_module("vmm_reference.subject").Reference(**settings)


@cache
def _programs(contract: str, settings: tuple[tuple[str, str], ...], count: int, seed: int) -> tuple[Program, ...]:
    suite = next(suite for suite in load_suites() if suite.contract == contract)
    total = sum(exploration.share for exploration in suite.explorations)
    bench = bench_for(contract, reference(dict(settings)))
    programs: list[Program] = []
    for number, exploration in enumerate(suite.explorations):
        drawn: list[bytes] = []
        generate(max(1, count * exploration.share // total), seed + number, drawn.append)
        programs += [bench.decode(data, exploration.pins) for data in drawn]
    return tuple(programs)


def programs_of(
    contract: str, settings: Settings, count: int, seed: int, *, scenarios: bool = True
) -> tuple[Program, ...]:
    """The scenarios of a contract, then ``count`` random programs over its explorations in their shares."""
    suite = next(suite for suite in load_suites() if suite.contract == contract)
    directed = tuple(scenario.program for scenario in suite.scenarios) if scenarios else ()
    return directed + _programs(contract, tuple(settings.items()), count, seed)
