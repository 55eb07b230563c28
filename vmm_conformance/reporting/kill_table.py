"""The kill matrix as text and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final

from vmm_conformance.catalogue import catalogue
from vmm_conformance.reporting.text import count
from vmm_conformance.running.kills import Kill
from vmm_conformance.running.suites import load_suites

FORMAT: Final = "vmm-conformance kills"
EXPLORED_AT_LEAST: Final = 0.8
"""The share of kills that exploration alone must reach, without a directed scenario."""
_HEAD: Final = ("mutant", "seed", "breaks", "first named", "programs", "operations", "ms", "explored", "by")
_NUMBERS: Final = frozenset({"seed", "programs", "operations", "ms"})


def as_data(
    kills: Sequence[Kill],
    budget: str = "ci",
    planned: int | None = None,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The matrix as JSON data, described by ``kills.schema.json`` beside this module.

    ``planned`` is how many hunts there were to be; a matrix with fewer is not full. ``notes`` say what each mutant
    does wrong.
    """
    planned = len(kills) if planned is None else planned
    hunted = dict.fromkeys(kill.mutant for kill in kills)
    named = {id for kill in kills for id in (kill.breaks, *kill.found)}
    return {
        "format": FORMAT,
        "version": 1,
        "catalogue": catalogue().version,
        "budget": budget,
        "notes": {mutant: notes[mutant] for mutant in hunted if mutant in notes},
        "statements": {each.id: each.statement for each in catalogue() if each.id in named},
        "kills": [asdict(kill) for kill in kills],
        "killed": sum(kill.killed for kill in kills),
        "explored": sum(kill.explored for kill in kills),
        "of": len(kills),
        "planned": planned,
        "full": len(kills) == planned and full(kills),
    }


def as_lines(kills: Sequence[Kill], planned: int | None = None) -> list[str]:
    """The matrix for a terminal: a line per mutant and seed, survivors last, and what it amounts to."""
    rows = [_HEAD, *map(_row, sorted(kills, key=lambda kill: (not kill.killed, kill.contract, kill.mutant, kill.seed)))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(_cell(name, text, width) for name, text, width in zip(_HEAD, row, widths, strict=True))
        for row in rows
    ]
    left_out = (planned or 0) - len(kills)
    partial = [f"partial: {left_out:,} of {planned:,} hunts were not made"] if left_out > 0 else []
    return [line.rstrip() for line in lines] + _totals(kills) + partial


def beside(only: str, alone: Sequence[Kill], kills: Sequence[Kill]) -> list[str]:
    """By contract, how many mutants the scenarios whose ids begin with ``only`` kill alone, beside the full suites.

    A mutant that was hunted with several seeds counts as killed where it was killed with each of them.
    """
    rows = [["contract", "such scenarios", "mutants", "killed by them alone", "by the full suites"]]
    rows += [[name, *_both(only, name, alone, kills)] for name in sorted({kill.contract for kill in kills})]
    rows.append(["all", *(f"{sum(int(row[column]) for row in rows[1:])}" for column in range(1, len(rows[0])))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned = [[text.rjust(width) for text, width in zip(row, widths, strict=True)] for row in rows]
    return ["  ".join([row[0].ljust(widths[0]), *cells[1:]]) for row, cells in zip(rows, aligned, strict=True)]


def _both(only: str, contract: str, alone: Sequence[Kill], kills: Sequence[Kill]) -> list[str]:
    """Of one contract: the scenarios, the mutants, and how many of those each of the two hunts has killed."""
    suite = next(suite for suite in load_suites() if suite.contract == contract)
    known = {kill.mutant for kill in kills if kill.contract == contract}
    left = [{kill.mutant for kill in hunted if not kill.killed} for hunted in (alone, kills)]
    scenarios = sum(scenario.id.startswith(only) for scenario in suite.scenarios)
    return [str(number) for number in (scenarios, len(known), *(len(known - missed) for missed in left))]


def full(kills: Sequence[Kill]) -> bool:
    """Whether every mutant was killed, and of each contract enough by exploration alone."""
    return all(kill.killed for kill in kills) and all(share >= EXPLORED_AT_LEAST for share in _shares(kills).values())


def _row(kill: Kill) -> tuple[str, ...]:
    if not kill.killed:
        return (kill.mutant, str(kill.seed), kill.breaks, "SURVIVED", "", "", f"{kill.seconds * 1000:.0f}", "", "")
    return (
        kill.mutant,
        str(kill.seed),
        kill.breaks,
        kill.first,
        str(kill.programs),
        str(kill.operations),
        f"{kill.seconds * 1000:.0f}",
        "yes" if kill.explored else "no",
        kill.by,
    )


def _cell(name: str, text: str, width: int) -> str:
    return text.rjust(width) if name in _NUMBERS else text.ljust(width)


def _shares(kills: Sequence[Kill]) -> dict[str, float]:
    """By contract, the share that exploration alone has killed."""
    contracts = sorted({kill.contract for kill in kills})
    explored = {name: [kill.explored for kill in kills if kill.contract == name] for name in contracts}
    return {name: sum(each) / len(each) for name, each in explored.items()}


def _totals(kills: Sequence[Kill]) -> list[str]:
    killed = sum(kill.killed for kill in kills)
    about = ", ".join((count(len({k.mutant for k in kills}), "mutant"), count(len({k.seed for k in kills}), "seed")))
    shares = ", ".join(f"{name} {share:.0%}" for name, share in _shares(kills).items())
    return [
        f"{killed} of {len(kills)} killed ({about})",
        f"by exploration alone, where {EXPLORED_AT_LEAST:.0%} is asked for: {shares}",
    ]
