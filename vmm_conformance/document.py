"""The catalogue as a page in Markdown: ``docs/invariants.md`` is what this prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from vmm_conformance.catalogue import Invariant, catalogue
from vmm_conformance.contracts import CONTRACTS
from vmm_conformance.related import all_mutants, related
from vmm_conformance.reporting.text import count

_INTRODUCTION: Final = """\
# The invariants

Catalogue {version}: {total}. This page is printed by `vmm-conformance list --markdown`; do not edit it.

A **must** decides the verdict, a **should** is reported. A must is **documented** where a source states it
and **inferred** where it was concluded; a broken inferred must fails a run only under `--vmm-hardened`.
**Counts when** says what a program has to reach before a pass counts: an invariant that was never put to
the test has not passed.
"""


def as_markdown() -> list[str]:
    """Every invariant, contract by contract, with its checkers, scenarios and mutants."""
    entries = list(catalogue())
    lines = _INTRODUCTION.format(version=catalogue().version, total=count(len(entries), "invariant")).splitlines()
    contracts = [name for name in CONTRACTS if any(entry.contract == name for entry in entries)]
    lines += ["", "| contract | invariants | musts | documented |", "|---|---|---|---|"]
    lines += [_row(name, catalogue().of(name)) for name in contracts]
    notes = {mutant.id: mutant.note for mutant in all_mutants()}
    for name in contracts:
        lines += ["", f"## {name}"]
        for _, group in groupby(catalogue().of(name), lambda entry: entry.order[0]):
            for entry in group:
                lines += ["", *_section(entry, notes)]
    return lines


def _row(contract: str, entries: Sequence[Invariant]) -> str:
    musts = Counter(entry.evidence for entry in entries if entry.level == "must")
    return f"| [{contract}](#{contract}) | {len(entries)} | {musts.total()} | {musts['documented']} |"


def _section(entry: Invariant, notes: dict[str, str]) -> list[str]:
    about = related(entry)
    lines = [f"### {entry.id}", "", f"*{entry.level}, {entry.evidence}.* {_sentence(entry.statement)}", ""]
    lines += [
        f"- Why: {_sentence(entry.why)}",
        f"- Counts when: {entry.needs}",
        f"- Source: {entry.source}",
        f"- Checked in: {_codes(about.checkers)}",
    ]
    if about.scenarios:
        lines.append(f"- Scenarios: {_codes(about.scenarios)}")
    lines += [f"- Mutant `{mutant}`: {notes[mutant]}" for mutant in about.mutants]
    return lines


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
