"""``report.json``: the whole report as plain data, described by ``report.schema.json`` beside this module."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

from vmm_conformance.reporting.endings import as_data, write_endings
from vmm_conformance.reporting.model import InvariantReport, ItemReport, Report, SubjectReport
from vmm_conformance.reporting.programs import FOLDER, program_name, write_histories, write_programs
from vmm_conformance.reporting.symbolic import symbolic, symbolic_map, symbolic_picture
from vmm_conformance.running.results import Failure
from vmm_conformance.waivers.settle import Settlement

FORMAT_VERSION: Final = 1
FILE: Final = "report.json"


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what `to_json` gives."""
    text = resources.files(__package__).joinpath("report.schema.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def to_json(report: Report) -> dict[str, Any]:
    """The report as JSON data. Only ``seconds`` differ between two runs with the same results."""
    driver = report.driver
    return {
        "format": "vmm-conformance report",
        "version": FORMAT_VERSION,
        "catalogue": report.catalogue,
        "driver": {
            "name": driver.name,
            "real": driver.real,
            "options": dict(driver.options or {}),
            "versions": dict(driver.versions or {}),
        },
        "options": dict(report.options),
        "environment": dict(report.environment),
        "subjects": [_subject(section) for section in report.subjects],
        "complete": report.complete,
        "overall": report.overall.told(report.waived),
        "reasons": list(report.reasons),
        "waivers": _waivers(report),
        "seconds": report.seconds,
    }


def _waivers(report: Report) -> dict[str, Any] | None:
    if report.waivers is None:
        return None
    entries = [each.waiver.as_data() | {"settled": [*map(_settlement, each.settlements)]} for each in report.waivers]
    return {"today": report.today, "entries": entries}


def _settlement(settlement: Settlement) -> dict[str, str]:
    return {"subject": settlement.subject, "state": settlement.state.value, "sentence": settlement.sentence}


def write(report: Report, directory: Path) -> Path:
    """Write ``report.json``, the programs and the histories into ``directory``; returns the report's path."""
    directory.mkdir(parents=True, exist_ok=True)
    write_programs(report, directory)
    write_histories(report, directory)
    write_endings(report, directory)
    path = directory / FILE
    path.write_text(json.dumps(to_json(report), indent=2) + "\n", "utf-8")
    return path


def _subject(section: SubjectReport) -> dict[str, Any]:
    subject = section.subject
    return {
        "subject": {**asdict(subject), "contracts": list(subject.contracts)},
        "invariants": [_invariant(entry, subject.spec) for entry in section.invariants],
        "items": [_item(item, subject.spec) for item in section.items],
        "footer": {
            "expected": list(section.expected),
            "executed": list(section.executed),
            "complete": section.complete,
            "overall": section.overall.told(section.waived),
            "reasons": list(section.reasons),
        },
    }


def _item(item: ItemReport, spec: str) -> dict[str, Any]:
    data = {**asdict(replace(item, endings=())), "endings": [as_data(ending, item.id, spec) for ending in item.endings]}
    if data["points"] is None:
        del data["points"]
    if not data["waived"]:
        del data["waived"]
    return data


def _invariant(entry: InvariantReport, spec: str) -> dict[str, Any]:
    invariant = entry.invariant
    return {
        "id": invariant.id,
        "contract": invariant.contract,
        "level": invariant.level,
        "evidence": invariant.evidence,
        "statement": invariant.statement,
        "why": invariant.why,
        "source": invariant.source,
        "needs": invariant.needs,
        "verdict": entry.verdict.value,
        "reason": entry.ruling.reason,
        "witnesses": entry.witnesses,
        "items": list(entry.items),
        "program": f"{FOLDER}/{program_name(entry.id, spec)}" if entry.failures else None,
        "failures": [_failure(failure, first=not number) for number, failure in enumerate(entry.failures)],
    }


def _failure(failure: Failure, *, first: bool) -> dict[str, Any]:
    """A failure as data. Its history is a file beside the report; of several failures one has a picture."""
    bare = asdict(replace(symbolic(failure), picture=None))
    del bare["history"]
    return {**bare, "map": symbolic_map(failure), "picture": symbolic_picture(failure) if first else None}
