"""What belongs to an invariant: the scenarios that exercise it, the checkers that judge it, its mutants."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Final

from vmm_conformance.catalogue import Invariant, catalogue
from vmm_conformance.contracts import Mutant

MUTANTS_GROUP: Final = "vmm_conformance.mutants"
_ID = re.compile(r"[A-Z]+-\d+")


@dataclass(frozen=True, slots=True)
class Related:
    """Names of what belongs to one invariant; checkers are modules of `vmm_conformance.checkers`."""

    scenarios: tuple[str, ...]
    checkers: tuple[str, ...]
    mutants: tuple[str, ...]


def related(invariant: Invariant) -> Related:
    """What belongs to ``invariant``, among everything that is installed."""
    return Related(
        tuple(_scenarios().get(invariant.id, ())),
        tuple(_checkers().get(invariant.id, ())),
        tuple(mutant.id for mutant in all_mutants() if invariant.id in mutant.breaks),
    )


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """The mutants of every installed package, by contract and id."""
    found: list[Mutant] = []
    for entry_point in metadata.entry_points(group=MUTANTS_GROUP):
        found += entry_point.load()
    return tuple(sorted(found, key=lambda mutant: (mutant.contract, mutant.id)))


def known_bad(id: str) -> object:
    """The subject of the mutant ``id``: ``vmm_conformance.related:known_bad,id=...`` is a spec of it."""
    for mutant in all_mutants():
        if mutant.id == id:
            return mutant.subject
    raise TypeError(f"no known-bad variant {id!r} is installed")


@cache
def _scenarios() -> dict[str, list[str]]:
    from vmm_conformance.running.suites import load_suites

    exercised: dict[str, list[str]] = defaultdict(list)
    for suite in load_suites():
        for scenario in suite.scenarios:
            for id in scenario.exercises:
                exercised[id].append(scenario.id)
    return exercised


@cache
def _checkers() -> dict[str, list[str]]:
    """Read from the sources: a checker judges an invariant by naming its id."""
    judged: dict[str, list[str]] = defaultdict(list)
    known = catalogue().invariants
    for file in sorted(resources.files("vmm_conformance.checkers").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            for id in sorted(_ids_in(file.read_text("utf-8"))):
                if id in known:
                    judged[id].append(file.name.removesuffix(".py"))
    return judged


def _ids_in(source: str) -> set[str]:
    return {text for text in _texts(ast.parse(source)) if _ID.fullmatch(text)}


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
