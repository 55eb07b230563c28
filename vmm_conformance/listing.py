"""The catalogue as text and as data, with what belongs to each invariant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final

from vmm_conformance.catalogue import CatalogueError, Invariant, catalogue
from vmm_conformance.invocation import BadInvocation
from vmm_conformance.programs.files import to_data
from vmm_conformance.related import Related, all_mutants, related
from vmm_conformance.reporting.text import clip, count, few, pairs, wrap
from vmm_conformance.running.suites import load_suites

EXAMPLE_LINES: Final = 12
"""Operations shown of an example."""


def as_data(prefix: str = "") -> dict[str, Any]:
    """The invariants whose ids begin with ``prefix``, as JSON data, and the catalogue's version."""
    entries = [{**asdict(entry), **_lists(related(entry))} for entry in _matching(prefix)]
    return {"catalogue": catalogue().version, "invariants": entries}


def as_lines(prefix: str = "", width: int = 80) -> list[str]:
    """The same for a terminal: a few lines for each."""
    lines = []
    for entry in _matching(prefix):
        about = related(entry)
        lines.append(f"{entry.id:<14}{entry.level}, {entry.evidence}; contract {entry.contract}")
        lines += wrap(entry.statement, width, indent=" " * 14, lines=2)
        tested = f"checkers: {few(about.checkers) or 'none'}; scenarios: {len(about.scenarios)}"
        lines.append(clip(tested, width, indent=14))
        lines.append(clip(f"mutants: {few(about.mutants) or 'none'}", width, indent=14))
    return [*lines, count(len(_matching(prefix)), "invariant") + f" in catalogue {catalogue().version}"]


def explain(id: str, width: int = 80) -> list[str]:
    """One invariant in full. Raises `BadInvocation` if there is none such."""
    try:
        entry = catalogue()[id]
    except CatalogueError as error:
        raise BadInvocation(str(error)) from None
    about = related(entry)
    notes = {mutant.id: mutant.note for mutant in all_mutants()}
    lines = [f"{entry.id}  {entry.level}, {entry.evidence}; contract {entry.contract}"]
    lines += wrap(entry.statement, width, indent="  ")
    for key, text in (("why", entry.why), ("counts when", entry.needs), ("source", entry.source)):
        lines += wrap(text, width, indent=f"{key:<13}")
    lines += _named("checkers", about.checkers, _judging, width)
    lines += wrap(", ".join(about.scenarios) or "none", width, indent=f"{'scenarios':<13}")
    lines += _named("mutants", about.mutants, notes.__getitem__, width)
    return lines + _example(entry, width)


def _named(key: str, names: Sequence[str], about: Callable[[str], str], width: int) -> list[str]:
    """Each name with what is to be said of it, on lines of its own."""
    texts = [f"{name}: {about(name)}" for name in names] or ["none"]
    return [line for n, text in enumerate(texts) for line in wrap(text, width, indent=f"{'' if n else key:<13}")]


def _judging(checker: str) -> str:
    """What a checker's module says that it judges."""
    text = inspect.getdoc(import_module(f"vmm_conformance.checkers.{checker}")) or ""
    return text.partition("\n")[0]


def _example(entry: Invariant, width: int) -> list[str]:
    """The shortest directed program that puts the invariant to the test, an operation a line."""
    scenarios = [scenario for suite in load_suites() for scenario in suite.scenarios if entry.id in scenario.exercises]
    if not scenarios:
        return []
    chosen = min(scenarios, key=lambda scenario: len(scenario.program.operations))
    data = to_data(chosen.program)
    lines = wrap(f"scenario {chosen.id}", width, indent=f"{'example':<13}")
    if data["configuration"]:
        lines += wrap(pairs(data["configuration"]), width, indent=" " * 13, lines=3)
    operations = data["operations"]
    for number, operation in enumerate(operations[:EXAMPLE_LINES]):
        lines.append(clip(f"{number:>3}  {operation['op']} {pairs(operation, skip=('op',))}", width, indent=13))
    if len(operations) > EXAMPLE_LINES:
        lines.append(f"{'':<13}({len(operations) - EXAMPLE_LINES} more operations)")
    return lines


def _matching(prefix: str) -> tuple[Invariant, ...]:
    found = catalogue().matching(prefix)
    if not found:
        areas = sorted({entry.order[0] for entry in catalogue()})
        raise BadInvocation(f"no invariant begins with {prefix!r}; areas are {', '.join(areas)}")
    return found


def _lists(about: Related) -> dict[str, list[str]]:
    return {name: list(names) for name, names in asdict(about).items()}
