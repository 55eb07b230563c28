"""Gathers the results of items into one report: verdicts per invariant, and one word for the whole.

The report is the same whatever order the results come in, except for the durations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from vmm_conformance.catalogue import Catalogue, Invariant
from vmm_conformance.reporting.environment import environment
from vmm_conformance.reporting.model import InvariantReport, ItemReport, Report, SubjectReport, WaiverReport
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.text import count, few
from vmm_conformance.reporting.verdicts import Overall, Ruling, Verdict, rule, worst
from vmm_conformance.running.results import UNAVAILABLE, Failure, ItemResult
from vmm_conformance.running.shards import HasKind, members
from vmm_conformance.waivers.listed import Waivers
from vmm_conformance.waivers.settle import Court, Settled, unmatched

if TYPE_CHECKING:
    from vmm_conformance.running.session import Options

__all__ = [
    "DriverInfo",
    "InvariantReport",
    "ItemReport",
    "Report",
    "SubjectInfo",
    "SubjectReport",
    "build",
    "failure_order",
    "gather",
]

NOT_RUN: Final = "not run"
_SETTLED: Final = (Verdict.PASS, Verdict.FAIL, Verdict.WAIVED)
_OPEN: Final = {
    Verdict.NOT_EXERCISED: "not exercised",
    Verdict.UNKNOWN: "unknown",
    Verdict.CRASH: "lost to a crash",
    Verdict.TIMEOUT: "lost to a timeout",
}


class Planned(HasKind, Protocol):
    """An item of the plan, as far as a report goes; see `running.session.Item`."""

    @property
    def contract(self) -> str:
        """Its contract."""
        ...

    @property
    def subject_spec(self) -> str:
        """The spec of its subject."""
        ...

    @property
    def planned(self) -> int:
        """How many programs it is of."""
        ...


def build(
    results: Iterable[ItemResult],
    items: Sequence[Planned],
    options: Options,
    subjects: Mapping[str, object],
    catalogue: Catalogue,
    *,
    driver: DriverInfo | None = None,
    waivers: Waivers | None = None,
    seconds: float | None = None,
    devices: Mapping[str, str] | None = None,
) -> Report:
    """The report on ``results``, measured against what was planned.

    ``items`` are all items of the whole plan, run or not; ``subjects`` maps each spec to its object;
    ``waivers`` are the failures that are expected. ``seconds`` is the time the run took, by default the sum
    over the items. ``devices`` are those that processes were lent, by process.
    """
    infos = [SubjectInfo.of(spec, subject) for spec, subject in subjects.items()]
    about = driver or DriverInfo(options.driver)
    around = environment() | ({"devices": dict(devices)} if devices else {})
    return gather(results, items, options, infos, catalogue, about, around, waivers=waivers, seconds=seconds)


def gather(
    results: Iterable[ItemResult],
    items: Sequence[Planned],
    options: Options,
    subjects: Iterable[SubjectInfo],
    catalogue: Catalogue,
    about: DriverInfo,
    environment: Mapping[str, Any],
    *,
    waivers: Waivers | None = None,
    seconds: float | None = None,
) -> Report:
    """The same of subjects that are known by what they said of themselves, over a driver and in an environment."""
    by_item = {result.item: result for result in sorted(results, key=_settled_order)}
    sections, settled = [], []
    for subject in subjects:
        made = _Section(subject, items, by_item, options, catalogue)
        settled.append(made.settle(waivers, about))
        sections.append(made.report(settled[-1]))
    told = waiver_reports(waivers, settled)
    strays = strays_of(told or ())
    spent = sum(result.seconds for result in by_item.values()) if seconds is None else seconds
    return Report(
        catalogue=catalogue.version,
        driver=about,
        options=asdict(replace(options, database="")),  # nobody else's matter, and may hold a password
        environment=environment,
        subjects=tuple(sections),
        complete=bool(sections) and all(section.complete for section in sections),
        overall=overall_of([section.overall for section in sections], strays),
        reasons=(*_all_reasons(sections), *strays),
        seconds=round(spent, 3),
        waivers=told,
        today=str(waivers.today) if waivers else "",
    )


def overall_of(words: Iterable[Overall], strays: Sequence[str]) -> Overall:
    """The word for a run, from those for its subjects and the sentences on waivers that match nothing."""
    return worst([*words, *([Overall.MISWAIVED] if strays else [])])


def waiver_reports(waivers: Waivers | None, settled: Iterable[Settled]) -> tuple[WaiverReport, ...] | None:
    """Each waiver with what became of it, None where there were none to begin with."""
    if waivers is None:
        return None
    all_of_them = [each for one in settled for each in one.settlements]
    return tuple(
        WaiverReport(waiver, tuple(each for each in all_of_them if each.number == number))
        for number, waiver in enumerate(waivers.entries)
    )


def strays_of(reports: Iterable[WaiverReport]) -> tuple[str, ...]:
    """The sentences on waivers that match nothing."""
    return tuple(unmatched(each.waiver) for each in reports if not each.settlements)


def _settled_order(result: ItemResult) -> tuple[str, int]:
    return result.item, result.executed  # of two results for one item, the one that went further stays


def _all_reasons(sections: Sequence[SubjectReport]) -> tuple[str, ...]:
    if len(sections) == 1:
        return sections[0].reasons
    return tuple(f"{s.subject.spec}: {reason}" for s in sections for reason in s.reasons)


class _Section:
    """What belongs to one subject: its items, and their results."""

    def __init__(
        self,
        subject: SubjectInfo,
        items: Sequence[Planned],
        by_item: Mapping[str, ItemResult],
        options: Options,
        catalogue: Catalogue,
    ) -> None:
        self._subject = subject
        self._options = options
        self._catalogue = catalogue
        self._by_item = by_item
        self._own = sorted((item for item in items if item.subject_spec == subject.spec), key=lambda item: item.id)
        self._results = [by_item[item.id] for item in self._own if item.id in by_item]
        prefix = options.prefix
        self._asked = {entry.id for entry in catalogue.matching(prefix)} if prefix else None

    def settle(self, waivers: Waivers | None, driver: DriverInfo) -> Settled:
        """What becomes of the waivers that cover the subject."""
        if waivers is None:
            return Settled()
        return Court(
            waivers, self._subject, driver, self._results, self._catalogue,
            asked=self._asked, part=bool(self._options.shard),
        ).settle()  # fmt: skip

    def report(self, settled: Settled) -> SubjectReport:
        """The verdicts, and what they amount to."""
        entries = tuple(
            _entry(entry, self._subject, self._results, self._asked, self._options, settled)
            for entry in self._catalogue
        )
        rows = tuple(_row(item, self._by_item.get(item.id), settled.items.get(item.id, "")) for item in self._own)
        return conclude(self._subject, entries, rows, self._options, settled.breaches)


def conclude(
    subject: SubjectInfo,
    entries: tuple[InvariantReport, ...],
    rows: tuple[ItemReport, ...],
    options: Options,
    breaches: Sequence[str] = (),
) -> SubjectReport:
    """What the verdicts on a subject's invariants, and what was run of its items, amount to.

    ``breaches`` are the sentences on waivers that do not say what came out.
    """
    expected = tuple(entry for entry in entries if entry.verdict is not Verdict.NOT_APPLICABLE)
    executed = tuple(entry.id for entry in expected if entry.verdict in _SETTLED)
    gaps = _gaps(expected, rows, options)
    overall, reasons = _overall(expected, gaps, (*breaches, *_borne(rows)), bool(breaches), options)
    return SubjectReport(
        subject, entries, rows, tuple(entry.id for entry in expected), executed, not gaps, overall, reasons
    )


def _entry(
    invariant: Invariant,
    subject: SubjectInfo,
    results: Sequence[ItemResult],
    asked: set[str] | None,
    options: Options,
    settled: Settled,
) -> InvariantReport:
    if invariant.contract not in subject.contracts:
        ruling = Ruling(Verdict.NOT_APPLICABLE, f"does not offer the contract {invariant.contract}")
        return InvariantReport(invariant, ruling, 0, (), ())
    if asked is not None and invariant.id not in asked:
        ruling = Ruling(Verdict.NOT_EXERCISED, f"only {options.prefix} was asked for", asked=False)
        return InvariantReport(invariant, ruling, 0, (), ())
    about = [result for result in results if result.contract == invariant.contract]
    failures = [(f, r.item) for r in about for f in r.failures if f.invariant == invariant.id]
    failures.sort(key=lambda pair: (*failure_order(pair[0]), pair[1]))
    named = sorted({r.item for r in about if r.witnesses.get(invariant.id)} | {item for _, item in failures})
    return InvariantReport(
        invariant=invariant,
        ruling=rule(invariant, about, settled.excuses.get(invariant.id), settled.endings.get(invariant.id)),
        witnesses=sum(result.witnesses.get(invariant.id, 0) for result in about),
        items=tuple(named),
        failures=tuple(replace(failure, item=item) for failure, item in failures),
    )


def failure_order(failure: Failure) -> tuple[int, int, str, int, str]:
    """Sort key: short programs first, of them what broke first, and always the same order."""
    area, _, number = failure.invariant.partition("-")
    text = json.dumps(failure.program, sort_keys=True)
    return len(failure.program["operations"]), failure.op, area, int(number), text


def _row(item: Planned, result: ItemResult | None, waived: str) -> ItemReport:
    if result is None:
        return ItemReport(item.id, item.kind, item.contract, NOT_RUN, item.planned, 0, 0.0)
    return ItemReport(
        item.id,
        item.kind,
        item.contract,
        result.state,
        result.planned,
        result.executed,
        round(result.seconds, 3),
        tuple(result.endings),
        {id: number for id, number in sorted(result.witnesses.items()) if number},
        dict(sorted(result.unknown.items())),
        dict(sorted(result.untested.items())),
        result.points,
        waived,
    )


def _gaps(expected: Sequence[InvariantReport], rows: Sequence[ItemReport], options: Options) -> list[str]:
    """Why the run does not show all that it had to; empty if it does."""
    gaps = []
    own = members(rows, options.shard)
    if options.prefix:
        gaps.append(f"only invariants {options.prefix} were asked for")
    if options.shard:
        gaps.append(f"only shard {options.shard} was asked for: {len(own)} of {count(len(rows), 'item')}")
    for state, text in (
        ("stopped", "interrupted"),
        (NOT_RUN, "not run"),
        ("crash", "crashed"),
        ("timeout", "timed out"),
        (UNAVAILABLE, "could not be run here"),
    ):
        left_out = [row for row in rows if row.state == state and not row.waived]
        names = [row.id for row in left_out if row.id in own or state != NOT_RUN]
        if names:
            gaps.append(f"{len(names)} of {count(len(rows), 'item')} {text}: {few(names)}")
        if names and state == UNAVAILABLE:
            gaps += sorted({entry.ruling.reason for entry in expected if entry.verdict is Verdict.NOT_EXERCISED})
    for verdict, text in _OPEN.items():
        left = [entry.id for entry in expected if entry.must and entry.verdict is verdict]
        if left and not ((options.prefix or options.shard) and verdict is Verdict.NOT_EXERCISED):
            gaps.append(f"{count(len(left), 'must')} {text}: {few(left)}")
    if not any(entry.verdict in _SETTLED for entry in expected):
        gaps.append("nothing was put to the test")
    return gaps


def _borne(rows: Sequence[ItemReport]) -> list[str]:
    """The sentence on items in which processes ended as waivers say, and how far these items came."""
    named = [f"{row.id} (after {count(row.executed, 'program')})" for row in rows if row.waived]
    return [f"{count(len(named), 'item')} ended as waived: {few(named)}"] if named else []


def _overall(
    expected: Sequence[InvariantReport], gaps: Sequence[str], told: Sequence[str], breached: bool, options: Options
) -> tuple[Overall, tuple[str, ...]]:
    failed = [entry for entry in expected if entry.must and entry.verdict is Verdict.FAIL]
    documented = [entry.id for entry in failed if entry.documented]
    inferred = [entry.id for entry in failed if not entry.documented]
    waived = [entry.id for entry in expected if entry.verdict is Verdict.WAIVED]
    reasons = []
    for ids, kind in ((documented, "documented must"), (inferred, "inferred must")):
        if ids:
            verb = "fails" if len(ids) == 1 else "fail"
            reasons.append(f"{count(len(ids), kind)} {verb}: {few(ids)}")
    if waived:
        reasons.append(f"{count(len(waived), 'failure')} waived: {few(waived)}")
    if documented or (inferred and options.hardened):
        word = Overall.NOT_CONFORMANT
    elif breached:
        word = Overall.MISWAIVED
    elif gaps:
        word = Overall.PARTIAL
    elif waived:
        word = Overall.WAIVED
    else:
        word = Overall.CONFORMANT if inferred else Overall.HARDENED
    return word, (*reasons, *told, *gaps)
