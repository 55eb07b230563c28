"""Changes the reference mechanically, one place at a time: do the suites notice?

Mutations are those of cosmic-ray's operators, and every statement left out. Each is loaded in a process
of its own and meets the scenarios of its contract, then random programs, until an invariant is found
broken. What survives meets the reference's own tests and more programs. docs/mutation.md has the result.
``python benchmarks/mutate.py [--module NAME] [--jobs N] [--programs N] [--out FILE]``
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import generate
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.suites import load_suites

ROOT: Final = Path(__file__).parents[1]
HOME: Final = ROOT / "reference" / "vmm_reference"
STEPS: Final = ("in_flight", "layout", "mapping", "shadows", "step_executor", "va_ranges")
CONTRACTS: Final = {"allocator": "allocator", "flags": "flags", **dict.fromkeys(STEPS, "skip-remap")}
"""Modules of the reference, and the contract that tests each."""

TESTS: Final = {
    "allocator": "tests/allocator/test_vmm_allocator.py",
    "flags": "tests/flags/test_flags.py",
    "skip-remap": "tests/reference/test_step_executor.py",
}
"""The reference's own tests, by contract."""

SECONDS: Final = 120
"""A mutant that takes longer than this counts as killed: it does not end."""
MORE: Final = 5
"""How many times as many programs a survivor of the first round meets."""


@dataclass(slots=True)
class Outcome:
    """One mutant: where, what was changed, and what found it (empty: nothing)."""

    module: str
    operator: str
    line: int
    change: str
    killed_by: str = ""


# -- mutations


def mutations(module: str) -> Iterator[tuple[Outcome, str]]:
    """Every mutant of ``module`` with its source; no two are the same, and none is the original."""
    source = (HOME / f"{module}.py").read_text("utf-8")
    seen = {meaning(source)}
    for operator, changed in (*left_out(source), *by_cosmic_ray(source)):
        try:
            means = meaning(changed)
        except SyntaxError:
            continue
        if means not in seen:
            seen.add(means)
            line, change = difference(source, changed)
            yield Outcome(module, operator, line, change), changed


def meaning(source: str) -> str:
    """``source`` without annotations and docstrings, which mean nothing when it runs."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", None), list) else ():
            if is_docstring(statement):
                statement.value = ast.Constant(None)
    return ast.dump(tree)


def left_out(source: str) -> Iterator[tuple[str, str]]:
    """Each statement that does something replaced by ``pass``."""
    kinds = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, kinds) and not is_docstring(node):
                lines = source.splitlines(keepends=True)
                first, last = node.lineno - 1, node.end_lineno or node.lineno
                lines[first:last] = [" " * node.col_offset + "pass\n"]
                yield "leave out", "".join(lines)


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a bare constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def by_cosmic_ray(source: str) -> Iterator[tuple[str, str]]:
    """What cosmic-ray's operators make of it, but for ``is`` in place of a comparison."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    for name in sorted(operator_names()):
        if name.endswith(("_Is", "_IsNot", "VariableInserter", "VariableReplacer")):
            continue
        operator = get_operator(name)()
        for occurrence in range(10_000):
            changed = mutate_code(source, operator, occurrence)
            if changed is None:
                break
            yield name.removeprefix("core/"), changed


def difference(before: str, after: str) -> tuple[int, str]:
    """The first line that differs, and what became of it."""
    old, new = before.splitlines(), after.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone, come = (" ".join(" ".join(part).split()) for part in (old[a:b], new[c:d]))
            return a + 1, f"{gone} -> {come}"
    return 0, ""


# -- the trial of one mutant


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module out of a text in place of its file."""

    def __init__(self, module: str, source: str) -> None:
        self.name, self.source = f"vmm_reference.{module}", source

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The module that is in the text."""
        return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        exec(compile(self.source, f"{self.name} (mutated)", "exec"), module.__dict__)


def in_a_process(module: str, source: str, trial: Callable[[], str]) -> str:
    """What ``trial()`` returns in a fork that has the mutated module: the killer's name or nothing."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        signal.alarm(SECONDS)
        try:
            sys.meta_path.insert(0, Mutated(module, source))
            word = trial()
        except BaseException as error:
            word = f"{type(error).__name__} at import or construction"
        os.write(send, word.encode() or b"-")
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        word = pipe.read().decode()
    os.waitpid(child, 0)
    return "no end" if not word else word.removeprefix("-")


def suites(contract: str, programs: Sequence[Program]) -> str:
    """The first invariant that one of ``programs`` finds broken."""
    reference = importlib.import_module("vmm_reference.subject").reference
    bench = bench_for(contract, reference)
    return next((id for program in programs for id in bench.run(program).broken()), "")


def own_tests(contract: str) -> str:
    """Whether the reference's own tests fail."""
    import pytest

    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
        unwanted = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--assert=plain")
        status = pytest.main(["-q", "-x", *unwanted, str(ROOT / TESTS[contract])])
    return "" if status == 0 else "tests"


def programs_of(contract: str, count: int, seed: int, *, scenarios: bool = True) -> list[Program]:
    """The scenarios of a contract, then ``count`` random programs over its explorations in their shares."""
    suite = next(suite for suite in load_suites() if suite.contract == contract)
    total = sum(exploration.share for exploration in suite.explorations)
    programs: list[Program] = [scenario.program for scenario in suite.scenarios] if scenarios else []
    for number, exploration in enumerate(suite.explorations):
        drawn: list[bytes] = []
        generate(max(1, count * exploration.share // total), seed + number, drawn.append)
        programs += [plug(contract).decode(data, exploration.pins) for data in drawn]
    return programs


# -- all of them


class Trials:
    """What a mutant of one contract has to live through."""

    def __init__(self, contract: str, count: int) -> None:
        self.contract = contract
        self.first = programs_of(contract, count, 0)
        self.more = programs_of(contract, count * MORE, 1_000, scenarios=False)

    def __call__(self, mutant: tuple[Outcome, str]) -> Outcome:
        """Try one mutant; prints a mark."""
        outcome, source = mutant
        for trial in (
            partial(suites, self.contract, self.first),
            partial(own_tests, self.contract),
            partial(suites, self.contract, self.more),
        ):
            if not outcome.killed_by:
                outcome.killed_by = in_a_process(outcome.module, source, trial)
        print("." if outcome.killed_by else "S", end="", file=sys.stderr, flush=True)
        return outcome


def run(modules: Sequence[str], jobs: int, count: int) -> list[Outcome]:
    """Try every mutant of ``modules``."""
    outcomes: list[Outcome] = []
    for module in modules:
        trials = Trials(CONTRACTS[module], count)
        unchanged = (Outcome(module, "", 0, ""), (HOME / f"{module}.py").read_text("utf-8"))
        killer = trials(unchanged).killed_by
        if killer:
            sys.exit(f"the reference itself is found broken by {killer}; nothing can be learnt from its mutants")
        with ThreadPoolExecutor(jobs) as pool:
            outcomes += pool.map(trials, mutations(module))
        print(f" {module}", file=sys.stderr)
    return outcomes


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line per module, and one per survivor."""
    for module in dict.fromkeys(outcome.module for outcome in outcomes):
        own = [outcome.killed_by for outcome in outcomes if outcome.module == module]
        tests, left = own.count("tests"), own.count("")
        killed = f"{len(own) - tests - left} killed by the suites, {tests} by tests"
        yield f"{module}: {len(own)} mutants, {killed}, {left} left"
    for outcome in outcomes:
        if not outcome.killed_by:
            yield f"{outcome.module}.py:{outcome.line}: {outcome.operator}: {outcome.change}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", action="append", choices=CONTRACTS, help="only this one (repeatable)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--programs", type=int, default=200, help="random programs of the first round (default: 200)")
    parser.add_argument("--out", type=Path, help="write all outcomes there, as JSON")
    parsed = parser.parse_args()
    start = time.monotonic()
    outcomes = run(parsed.module or list(CONTRACTS), parsed.jobs, parsed.programs)
    print("\n".join(lines(outcomes)))
    print(f"{time.monotonic() - start:.0f} s")
    if parsed.out:
        parsed.out.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1), "utf-8")


if __name__ == "__main__":
    main()
