"""The commands that run something: ``run``, ``replay``, ``mutants`` and ``probe``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import DriverError, Mutant
from vmm_conformance.invocation import BadInvocation, Invocation, read_program
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import UPSTREAM
from vmm_conformance.related import all_mutants
from vmm_conformance.replaying import replayed
from vmm_conformance.reporting import kill_table, probed
from vmm_conformance.reporting.conclusion import decisive, describe, publish, scene
from vmm_conformance.reporting.endings import describe_ending
from vmm_conformance.reporting.model import SubjectReport
from vmm_conformance.reporting.programs import FOLDER, program_name
from vmm_conformance.reporting.progress import Progress
from vmm_conformance.reporting.terminal import summary
from vmm_conformance.reporting.text import count, few
from vmm_conformance.reporting.verdicts import Verdict
from vmm_conformance.running.kills import HERE, Kill, kill_matrix
from vmm_conformance.running.probe import probe as probe_driver
from vmm_conformance.running.refusals import ask_all
from vmm_conformance.running.results import ItemResult
from vmm_conformance.running.session import Item, Options, end_children
from vmm_conformance.running.subjects import open_driver
from vmm_conformance.whole_run import known_contracts, run_all
from vmm_conformance.width import terminal_width

PARTIAL: Final = 3
"""Exit status if nothing is wrong as far as it went."""


def run(invocation: Invocation, contracts: Sequence[str] | None = None) -> int:
    """Run the suites, or those of some ``contracts``, print what is broken and the summary; returns the exit status."""
    invocation.check()
    chosen = known_contracts(contracts)
    subjects = invocation.subject_objects()
    with Progress(sys.stderr) as progress:
        report = run_all(
            invocation, subjects, contracts=chosen, progress=progress,
            done=Told(progress),
        )  # fmt: skip
    directory = publish(report, invocation.report)
    for section in report.subjects:
        lines = _broken(section, invocation, subjects[section.subject.spec], directory)
        print("\n".join([*lines, ""] if lines else lines), end="\n" if lines else "")
    print("\n".join(summary(report, directory=directory, width=terminal_width())))
    return report.exit_code


class Told:
    """Says of each item, when it is over, what is new: what no other has broken, or that it was not run to its end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._known: set[tuple[str, str]] = set()

    def __call__(self, item: Item, result: ItemResult) -> None:
        """``result`` is what came of ``item``."""
        broken = {failure.invariant for failure in result.failures}
        fresh = sorted(id for id in broken if (item.subject_spec, id) not in self._known)
        self._known |= {(item.subject_spec, id) for id in fresh}
        if fresh or result.state != "done":
            told = [result.state] * (result.state != "done") + [f"breaks {few(fresh, 8)}"] * bool(fresh)
            ran = f"{count(result.executed, 'program')}, {result.seconds:.1f} s"
            self._progress.line(f"{item.id}: {', '.join(told)} ({ran})")


def _broken(section: SubjectReport, invocation: Invocation, subject: object, directory: str) -> list[str]:
    """The failures that count, of each broken invariant the one with the shortest program."""
    spec = section.subject.spec
    counted = decisive(catalogue(), prefix=invocation.invariant, hardened=invocation.hardened)
    entries = [entry for entry in section.invariants if entry.verdict is Verdict.FAIL and entry.id in counted]
    files = {entry.id: str(Path(directory, FOLDER, program_name(entry.id, spec))) for entry in entries}
    where = scene(spec, subject, driver=invocation.driver, seed=invocation.seed)
    return describe([entry.failures[0] for entry in entries], catalogue(), where, files, terminal_width())


def replay(invocation: Invocation) -> int:
    """Run the program of ``invocation.replay`` on each subject; returns 1 for a finding or an ended process."""
    invocation.check_names()
    assert invocation.replay is not None
    program = read_program(invocation.replay)
    found = False
    try:
        for spec, subject in invocation.subject_objects().items():
            found = _replay_one(program, spec, subject, invocation) or found
    finally:
        end_children()
    return int(found)


def _replay_one(program: Program, spec: str, subject: object, invocation: Invocation) -> bool:
    """Run ``program``, print what came of it; whether there is anything to complain about."""
    result = replayed(program, spec, subject, invocation)
    where, width = scene(spec, subject, driver=invocation.driver, seed=invocation.seed), terminal_width()
    file = str(invocation.replay)
    files = dict.fromkeys((failure.invariant for failure in result.failures), file)
    lines = describe(result.failures, catalogue(), where, files, width)
    for ending in result.endings:
        lines += describe_ending(ending, result.item, file, spec, invocation.driver, width)
    print("\n".join(lines or [_quiet(result)]))
    return bool(result.failures or result.endings)


def _quiet(result: ItemResult) -> str:
    tested = count(sum(1 for witnesses in result.witnesses.values() if witnesses), "invariant")
    return f"{result.item}: no findings; the program puts {tested} to the test"


def mutants(
    contract: str | None,
    seeds: Sequence[int],
    budget: str,
    *,
    jobs: int = 1,
    as_json: bool = False,
    options: Options = HERE,
) -> int:
    """Run the known-bad subjects and print the kill matrix; returns 1 unless it is full.

    ``options`` may ask for child processes.
    """
    chosen = _mutants_of(contract, budget)
    try:
        kills = _hunted(chosen, seeds, budget, jobs, options=options)
    finally:
        end_children()
    planned = len(chosen) * len(seeds)
    data = kill_table.as_data(kills, budget, planned, {mutant.id: mutant.note for mutant in chosen})
    print(json.dumps(data, indent=2) if as_json else "\n".join(kill_table.as_lines(kills, planned)))
    if as_json and len(kills) < planned:
        print(f"partial: interrupted after {len(kills)} of {planned} hunts", file=sys.stderr)
    left_out = len(kills) < planned and all(kill.killed for kill in kills)
    return PARTIAL if left_out else 0 if data["full"] else 1


ONLY: Final = {"upstream": UPSTREAM}
"""Kinds of scenarios that can be tried alone, and how their ids begin."""


def mutants_beside(contract: str | None, seeds: Sequence[int], budget: str, only: str, *, jobs: int = 1) -> int:
    """Print how many known-bad subjects the scenarios of one kind in `ONLY` catch alone, beside the full suites."""
    chosen = _mutants_of(contract, budget)
    alone = _hunted(chosen, seeds[:1], budget, jobs, ONLY[only])  # scenarios are the same with every seed
    kills = _hunted(chosen, seeds, budget, jobs) if len(alone) == len(chosen) else []
    if len(kills) < len(chosen) * len(seeds):
        print("partial: interrupted before both hunts were made")
        return PARTIAL
    print("\n".join(kill_table.beside(ONLY[only], alone, kills)))
    return 0


def _mutants_of(contract: str | None, budget: str) -> list[Mutant]:
    """The mutants of one contract, or all. Raises `BadInvocation` if there are none, or no such budget."""
    Invocation(budget=budget).check_names()
    chosen = [mutant for mutant in all_mutants() if contract in (None, mutant.contract)]
    if not chosen:
        known = sorted({mutant.contract for mutant in all_mutants()})
        raise BadInvocation(f"no mutants of the contract {contract!r}; there are some of {', '.join(known)}")
    return chosen


def _hunted(
    chosen: Sequence[Mutant], seeds: Sequence[int], budget: str, jobs: int, only: str = "", options: Options = HERE
) -> list[Kill]:
    """The kill matrix, with a line that says how far it is."""
    with Progress(sys.stderr, noun="variant", found="survivor") as progress:
        told = _counted(progress, chosen, seeds)
        return kill_matrix(
            chosen, seeds=seeds, budget=budget, jobs=jobs, only=only, options=options, progress=told
        )  # fmt: skip


def probe(invocation: Invocation, *, refusals: bool = False, as_json: bool = False) -> int:
    """Probe the driver and print what was found; returns 1 if a capability is not as declared, or a call is refused."""
    invocation.check_names()
    try:
        found = probe_driver(open_driver(invocation.driver))
    except DriverError as error:
        text = f"the driver {invocation.driver!r} refuses what a probe needs: {error}; is there memory enough?"
        print(f"vmm-conformance probe: {text}", file=sys.stderr)
        return 1
    asked = ask_all(invocation.driver) if refusals else ()
    if as_json:
        print(json.dumps({**found.as_data(), "refusals": [asdict(refusal) for refusal in asked]}, indent=2))
    else:
        print("\n".join(probed.as_lines(found, asked)))
    return 0 if found.kept else 1


def _counted(progress: Progress, mutants: Sequence[Mutant], seeds: Sequence[int]) -> Callable[[Kill], None]:
    """What is to happen after each variant was hunted."""
    seen: list[Kill] = []

    def after(kill: Kill) -> None:
        seen.append(kill)
        progress.begin(kill.mutant)
        progress.programs(len(seen), len(mutants) * len(seeds), sum(not each.killed for each in seen))

    return after
