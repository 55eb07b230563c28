"""The summary at the end of a run: counts for what passes, details for what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from vmm_conformance.reporting.endings import describe_ending, ended_items, ending_name
from vmm_conformance.reporting.model import InvariantReport, Report, SubjectReport
from vmm_conformance.reporting.programs import FOLDER, program_name
from vmm_conformance.reporting.screen import replay_command
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.text import clip, few, wrap
from vmm_conformance.reporting.verdicts import Verdict
from vmm_conformance.running.results import Coverage
from vmm_conformance.waivers.settle import unmatched

REPLAYS_SHOWN: Final = 5
ENDINGS_SHOWN: Final = 3


def summary(report: Report, *, directory: str = "", width: int = 80) -> list[str]:
    """Lines for a terminal, one block per subject, which ends with its overall verdict.

    Behind them a block about waivers that match nothing, and one about devices that workers had, if there are such.
    ``directory`` is where the program files lie; without one no replay commands are shown.
    """
    lines: list[str] = []
    for section in report.subjects:
        lines += [*_block(section, report, directory, width), ""]
    strays = [unmatched(each.waiver) for each in report.waivers or () if not each.settlements]
    if strays:
        lines += ["waivers", *_listed(strays, width), f"  the run: {report.overall.words(report.waived)}", ""]
    devices: Mapping[str, str] = report.environment.get("devices", {})
    if devices:
        lines += ["devices", *_listed((f"{worker} had {device}" for worker, device in devices.items()), width), ""]
    return lines[:-1]


def _block(section: SubjectReport, report: Report, directory: str, width: int) -> Iterator[str]:
    yield _setting(section, report)
    asked = [entry for entry in section.invariants if entry.ruling.asked]
    for contract, group in _grouped(asked, lambda entry: entry.invariant.contract):
        if contract not in section.subject.contracts:
            yield f"  {contract}: not offered"
            continue
        yield f"  {contract}"
        for area, entries in _grouped(group, lambda entry: entry.invariant.order[0]):
            yield f"    {area:<11}{tally(entries)}"
            yield from _details(entries, width)
        yield from _points(section, contract, width)
    yield from _endings(section, report.driver.name, directory, width)
    yield from _replays(section, report.driver.name, directory)
    yield from verdict_lines(section, width)


def _setting(section: SubjectReport, report: Report) -> str:
    asked = [f"{name} {report.options[name]}" for name in ("budget", "seed") if name in report.options]
    about = ", ".join([*asked, f"catalogue {report.catalogue}"])
    return f"{titled(section)} over {report.driver.name} ({about})"


def titled(section: SubjectReport) -> str:
    """The subject's name and version."""
    return f"{section.subject.name} {section.subject.version}".strip()


def tally(entries: Iterable[InvariantReport]) -> str:
    """``20 pass, 1 fail``: how often each verdict came out, in the order of `Verdict`."""
    counts = Counter(entry.verdict for entry in entries)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


def verdict_lines(section: SubjectReport, width: int = 80) -> list[str]:
    """The reasons, and the overall verdict as the last line."""
    return [*_listed(section.reasons, width), f"  {titled(section)}: {section.overall.words(section.waived)}"]


def _listed(reasons: Iterable[str], width: int) -> list[str]:
    return [line for reason in reasons for line in wrap(reason, width, indent="  - ", lines=3)]


def _grouped(
    entries: Iterable[InvariantReport], key: Callable[[InvariantReport], str]
) -> list[tuple[str, list[InvariantReport]]]:
    ordered = sorted(entries, key=key)  # stable: the catalogue's order stays inside a group
    return [(name, list(group)) for name, group in groupby(ordered, key)]


def _details(entries: Iterable[InvariantReport], width: int) -> Iterator[str]:
    alike: dict[tuple[Verdict, str], list[str]] = {}
    for entry in entries:
        if entry.verdict is Verdict.FAIL:
            yield clip(f"      {_failed(entry)}: {symbolic(entry.failures[0]).message}", width, indent=6)
        elif entry.verdict is not Verdict.PASS:
            alike.setdefault((entry.verdict, entry.ruling.reason), []).append(entry.id)
    for (verdict, reason), ids in alike.items():
        yield from wrap(f"{few(ids, 10)} {verdict.value}: {reason}", width, indent=" " * 6, lines=3)


def _points(section: SubjectReport, contract: str, width: int) -> list[str]:
    """How many failure points of a contract were covered; nothing if there are none."""
    total = section.points().get(contract, Coverage())
    return wrap(total.text(), width, indent=f"    {'points':<11}") if total.reached else []


def _endings(section: SubjectReport, driver: str, directory: str, width: int) -> Iterator[str]:
    ended = [(row, ending) for row, ending in ended_items(section) if not row.waived]
    for row, ending in ended[:ENDINGS_SHOWN]:
        spec = section.subject.spec
        file = f"{directory or FOLDER}{'/' + FOLDER if directory else ''}/{ending_name(ending, row.id, spec)}"
        yield from (f"  {line}" for line in describe_ending(ending, row.id, file, spec, driver, width - 2))
    if len(ended) > ENDINGS_SHOWN:
        yield f"  ({len(ended) - ENDINGS_SHOWN} more ended their process)"


def _failed(entry: InvariantReport) -> str:
    if not entry.must:
        return f"{entry.id} fails (should)"
    return f"{entry.id} fails" if entry.documented else f"{entry.id} fails (inferred)"


def _replays(section: SubjectReport, driver: str, directory: str) -> Iterator[str]:
    failed = [entry for entry in section.invariants if entry.failures]
    if not directory or not failed:
        return
    yield "  replay"
    for entry in failed[:REPLAYS_SHOWN]:
        file = f"{directory}/{FOLDER}/{program_name(entry.id, section.subject.spec)}"
        yield f"    {replay_command(file, section.subject.spec, driver)}"
    if len(failed) > REPLAYS_SHOWN:
        yield f"    (the programs of {len(failed) - REPLAYS_SHOWN} more are in {directory}/{FOLDER})"
