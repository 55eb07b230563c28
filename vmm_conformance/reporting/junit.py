"""``conformance.xml``: a JUnit file with one test case per invariant, one suite per subject.

===============  ===========================================  =======================================
verdict          element                                      text
===============  ===========================================  =======================================
pass             none                                         witnesses, in ``system-out``
fail             ``failure``, type ``must`` or ``should``,    the finding; the program's file and
                 with ``-inferred`` where it was concluded    the other details in its body
crash            ``error``, type ``crash``                    the items that crashed
timeout          ``error``, type ``timeout``                  the items that ran out of time
unknown          ``error``, type ``unknown``                  what broke the checker
not exercised    ``skipped``                                  ``not exercised: `` and why
not applicable   ``skipped``                                  ``not applicable: `` and why
waived           ``skipped``                                  ``waived: `` and the waiver's reason
===============  ===========================================  =======================================

A waiver that does not say what came out has a case of its own too: ``classname`` is ``subject.area.waiver``,
the name ``waiver for`` and the invariant's id, and the ``failure`` has the type ``waiver`` and the sentence. Those
that match nothing are in a suite ``waivers``.

An item whose process ended, under process isolation, has a case of its own: ``classname`` is
``subject.contract.item``, the name is the item's id, and the ``error`` has the type ``crash`` or ``timeout``,
how and where it ended, the file of its program, the stack, and the command that repeats it. If waivers bear it, it is
``skipped`` with their reason.

The property ``points.ITEM`` of a suite says of an item of failure points how many were covered, of how many that were
reached; ``points.CONTRACT`` is their sum.

A case's ``classname`` is ``subject.contract.area``, its name the invariant's id, its ``status`` the
verdict. A broken should is a ``failure`` too, though it never changes the overall verdict, which is a
property of the suite like everything else about the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from junit_xml import TestCase, TestSuite, to_xml_report_string

from vmm_conformance.reporting.ended import told
from vmm_conformance.reporting.endings import describe_ending, ended_items, ending_name
from vmm_conformance.reporting.model import InvariantReport, ItemReport, Report, SubjectReport, WaiverReport
from vmm_conformance.reporting.programs import FOLDER, program_name
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.terminal import titled
from vmm_conformance.reporting.verdicts import Verdict
from vmm_conformance.running.results import Ending
from vmm_conformance.waivers.settle import unmatched
from vmm_conformance.waivers.waiver import Waiver

FILE: Final = "conformance.xml"
_SKIPPED = (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE, Verdict.WAIVED)


def to_xml(report: Report) -> str:
    """The JUnit document."""
    suites = [_suite(section, report) for section in report.subjects]
    strays = [_stray(each) for each in report.waivers or () if not each.settlements]
    text: str = to_xml_report_string([*suites, *([TestSuite("waivers", strays)] if strays else [])])
    return text


def write(report: Report, directory: Path) -> Path:
    """Write ``conformance.xml`` into ``directory``; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE
    path.write_text(to_xml(report), "utf-8")
    return path


def _suite(section: SubjectReport, report: Report) -> Any:
    properties = {
        "subject": section.subject.spec,
        "version": section.subject.version,
        "driver": report.driver.name,
        "catalogue": report.catalogue,
        "complete": str(section.complete).lower(),
        "overall": section.overall.told(section.waived),
        **{f"option.{name}": value for name, value in report.options.items()},
        **{f"points.{name}": points.text() for name, points in section.points().items()},
    }
    cases = [_case(entry, section) for entry in section.invariants]
    cases += [_ended(row, ending, section, report.driver.name) for row, ending in ended_items(section)]
    cases += _misjudged(report, section.subject.spec)
    return TestSuite(titled(section), cases, properties=properties)


def _case(entry: InvariantReport, section: SubjectReport) -> Any:
    area, _ = entry.invariant.order
    spec, verdict = section.subject.spec, entry.verdict
    name = f"{spec.replace('.', '-')}.{entry.invariant.contract}.{area}"
    case = TestCase(entry.id, classname=name, status=verdict.value, stdout=_about(entry))
    if verdict is Verdict.FAIL:
        kind = entry.invariant.level + ("" if entry.documented else "-inferred")
        case.add_failure_info(symbolic(entry.failures[0]).message, _body(entry, spec), kind)
    elif verdict in _SKIPPED:
        case.add_skipped_info(f"{verdict.value}: {entry.ruling.reason}")
    elif verdict is not Verdict.PASS:
        case.add_error_info(entry.ruling.reason, entry.invariant.statement, verdict.value)
    return case


def _ended(row: ItemReport, ending: Ending, section: SubjectReport, driver: str) -> Any:
    spec = section.subject.spec
    file = f"{FOLDER}/{ending_name(ending, row.id, spec)}"
    case = TestCase(row.id, classname=f"{spec.replace('.', '-')}.{row.contract}.item", status=ending.kind)
    lines = describe_ending(ending, row.id, file, spec, driver, width=200)
    if row.waived:
        case.add_skipped_info(f"waived: {row.waived}", "\n".join(lines))
    else:
        case.add_error_info(told(ending), "\n".join(lines), ending.kind)
    return case


def _misjudged(report: Report, spec: str) -> list[Any]:
    """A case for each waiver that does not say what came out of a subject."""
    return [
        _waiver(each.waiver, spec.replace(".", "-"), settlement.state.value, settlement.sentence)
        for each in report.waivers or ()
        for settlement in each.settlements
        if settlement.subject == spec and settlement.state.fails
    ]


def _stray(each: WaiverReport) -> Any:
    return _waiver(each.waiver, "waivers", "matches nothing", unmatched(each.waiver))


def _waiver(waiver: Waiver, where: str, status: str, sentence: str) -> Any:
    area = waiver.invariant.rpartition("-")[0]
    case = TestCase(f"waiver for {waiver.invariant}", classname=f"{where}.{area}.waiver", status=status)
    case.add_failure_info(sentence, f"{waiver.scope()}: {waiver.excuse()}", "waiver")
    return case


def _about(entry: InvariantReport) -> str:
    items = ", ".join(entry.items) or "none"
    return f"{entry.invariant.statement}\nwitnesses: {entry.witnesses}; items: {items}"


def _body(entry: InvariantReport, spec: str) -> str:
    failure = symbolic(entry.failures[0])
    lines = [
        entry.invariant.statement,
        f"expected: {failure.expected}",
        f"found: {failure.actual}",
        f"at operation {failure.op} of {len(failure.program['operations'])}, {failure.repeats}",
        f"program: {FOLDER}/{program_name(entry.id, spec)}",
        f"also broken: {', '.join(failure.consequences) or 'nothing'}",
    ]
    return "\n".join(lines)
