"""Does a report add up? What its verdicts amount to is computed again, and compared with what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from vmm_conformance.bundling import waiving
from vmm_conformance.bundling.result import Piece, differs, left_out, same
from vmm_conformance.catalogue import Catalogue, Invariant, catalogue
from vmm_conformance.reporting.model import InvariantReport, ItemReport
from vmm_conformance.reporting.parties import SubjectInfo
from vmm_conformance.reporting.report import conclude, overall_of
from vmm_conformance.reporting.text import few
from vmm_conformance.reporting.verdicts import Overall, Ruling, Verdict
from vmm_conformance.running.session import BUDGETS, Options
from vmm_conformance.running.shards import members

Data = dict[str, Any]


def consistency(report: Data) -> Iterator[Piece]:
    """The report against itself, and against the catalogue if that is the installed one."""
    try:
        options = options_of(report)
    except (TypeError, ValueError) as error:
        yield differs("options", str(error))
        return
    words, waived = [], 0
    for section in report["subjects"]:
        words.append(Overall.of(section["footer"]["overall"]))
        waived += sum(entry["verdict"] == Verdict.WAIVED for entry in section["invariants"])
        yield _footer(section, options, waiving.breaches_of(report, section))
        yield _catalogue(section, report["catalogue"], catalogue())
    yield from waiving.consistency(report)
    complete = bool(words) and all(section["footer"]["complete"] for section in report["subjects"])
    said = (report["overall"], report["complete"])
    found = (overall_of(words, waiving.strays(report)).told(waived), complete)
    yield same("overall verdict") if said == found else differs("overall verdict", f"says {said}, adds up to {found}")


def options_of(report: Data) -> Options:
    """The options of the run, but for a database, which is its owner's alone.

    Raises ``ValueError`` or ``TypeError`` for ones that no run can have had.
    """
    options = Options(**{**report["options"], "database": ""})
    if options.budget not in BUDGETS:
        raise ValueError(f"unknown budget {options.budget!r}, accepted: {', '.join(BUDGETS)}")
    if type(options.seed) is not int or not isinstance(options.prefix, str):
        raise ValueError("seed must be a whole number, prefix must be text")
    members((), options.shard)
    return options


def _footer(section: Data, options: Options, breaches: Sequence[str]) -> Piece:
    """The verdict of a subject, computed again from its invariants and items."""
    spec, footer = section["subject"]["spec"], section["footer"]
    subject = SubjectInfo(**{**section["subject"], "contracts": tuple(section["subject"]["contracts"])})
    entries = tuple(_entry(entry, options) for entry in section["invariants"])
    rows = tuple(ItemReport(**{**item, "endings": ()}) for item in section["items"])
    made = conclude(subject, entries, rows, options, breaches)
    again: Data = {
        "expected": list(made.expected), "executed": list(made.executed), "complete": made.complete,
        "overall": made.overall.told(made.waived), "reasons": list(made.reasons),
    }  # fmt: skip
    wrong = [name for name, value in again.items() if footer[name] != value]
    if not wrong:
        return same(f"verdict of {spec}", f"{again['overall']}, as its invariants and items say")
    return differs(f"verdict of {spec}", "; ".join(f"{name} should be {_clip(again[name])}" for name in wrong))


def _clip(value: Any) -> str:
    text = few(value, 3) if isinstance(value, list) else str(value)
    return text[:200]


def _entry(entry: Data, options: Options) -> InvariantReport:
    asked = not options.prefix or entry["id"].startswith(options.prefix)
    names = ("id", "level", "evidence", "contract", "statement", "why", "source", "needs")
    return InvariantReport(
        invariant=Invariant(**{name: entry[name] for name in names}),
        ruling=Ruling(Verdict(entry["verdict"]), entry["reason"], asked),
        witnesses=entry["witnesses"],
        items=tuple(entry["items"]),
        failures=tuple(entry["failures"]),
    )


def _catalogue(section: Data, version: str, installed: Catalogue) -> Piece:
    """Every invariant of the catalogue is there, with its own level, evidence and statement."""
    what = f"invariants of {section['subject']['spec']}"
    if version != installed.version:
        return left_out(what, f"of catalogue {version}; installed is {installed.version}")
    said = {entry["id"]: entry for entry in section["invariants"]}
    missing = [entry.id for entry in installed if entry.id not in said]
    strange = [id for id in said if id not in installed.invariants]
    changed = [entry.id for entry in installed if entry.id in said and not _agrees(said[entry.id], entry)]
    wrong = [
        f"{few(ids)} {verb}"
        for ids, verb in ((missing, "missing"), (strange, "not in the catalogue"), (changed, "changed"))
        if ids
    ]
    if len(said) != len(section["invariants"]):
        wrong.append("one is there twice")
    return differs(what, "; ".join(wrong)) if wrong else same(what, f"those of catalogue {version}")


def _agrees(said: Data, entry: Invariant) -> bool:
    own = asdict(entry)
    return all(said[name] == own[name] for name in said if name in own)
