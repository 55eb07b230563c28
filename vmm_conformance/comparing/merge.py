"""Joins the reports of the shards of one run: the results of their items are put together, and judged anew.

What a report says of its items is enough for that, so the joined report is the one that a single run would have
left, but for the durations and for machines that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any, Final

from vmm_conformance.catalogue import Catalogue, Invariant
from vmm_conformance.reporting.endings import from_data
from vmm_conformance.reporting.environment import SEEDED
from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.model import Report
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.report import NOT_RUN, gather
from vmm_conformance.reporting.text import count, few
from vmm_conformance.running.results import Coverage, Ending, Failure, ItemResult
from vmm_conformance.running.session import Options
from vmm_conformance.waivers.listed import Waivers, waivers_of

Data = dict[str, Any]
_UNFINISHED: Final = ("unavailable", "stopped")
_FINISHED: Final = ("done", "timeout", "crash")
"""States of an item, the worst last."""


class MergeError(ValueError):
    """Reports that are not of one run; one line that names two of them and what differs."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The report, its JSON data, the results that came out otherwise in two reports, and where evidence lies.

    ``evidence`` has for each file of a program or a history the number of the report beside which it lies.
    """

    report: Report
    data: Data
    contradictions: tuple[str, ...]
    evidence: dict[str, int]

    def told(self) -> str:
        """How much of what had to be done was done, in a line."""
        sections = self.report.subjects
        rows = [row for section in sections for row in section.items]
        run = sum(row.state != NOT_RUN for row in rows)
        executed = sum(len(section.executed) for section in sections)
        expected = sum(len(section.expected) for section in sections)
        whole = "complete" if self.report.complete else "not complete"
        return f"{whole}: {run} of {count(len(rows), 'item')} run, {executed} of {expected} expected invariants judged"


@dataclass(frozen=True, slots=True)
class Row:
    """An item as reports have it planned."""

    id: str
    kind: str
    contract: str
    subject_spec: str
    planned: int


def merge(documents: Sequence[Document]) -> Joined:
    """The report on what ``documents`` did together. Raises `MergeError`."""
    first = documents[0]
    if not first.data["subjects"]:
        raise MergeError(f"{first.label} has no subject: nothing was run")
    for other in documents[1:]:
        _check_same(first, other)
    results, contradictions = _joined_results(documents)
    invariants = first.data["subjects"][0]["invariants"]
    catalogue = Catalogue(first.data["catalogue"], {entry["id"]: _invariant(entry) for entry in invariants})
    report = gather(
        results.values(), _plan(first.data), Options(**{**first.data["options"], "shard": ""}),
        list(map(_subject, first.data["subjects"])), catalogue, DriverInfo(**first.data["driver"]),
        _environment(documents), waivers=_waivers(documents),
        seconds=sum(document.data["seconds"] for document in documents),
    )  # fmt: skip
    data, evidence = _with_evidence(report, documents)
    return Joined(report, data, tuple(contradictions), evidence)


# -- of one run?


def _check_same(one: Document, other: Document) -> None:
    said = dict(_identity(one.data))
    for what, value in _identity(other.data):
        if value != said.get(what):
            differing = "" if isinstance(value, dict | list) else f": {said.get(what)} and {value}"
            raise MergeError(f"{one.label} and {other.label} are of different runs: another {what}{differing}")


def _identity(data: Data) -> Iterator[tuple[str, Any]]:
    """What reports of one run have in common."""
    driver, packages = data["driver"], data["environment"]["packages"]
    yield "catalogue", data["catalogue"]
    yield "driver", f"{driver['name']}{', real' if driver['real'] else ''}"
    yield "version behind the driver", ", ".join(f"{key} {value}" for key, value in sorted(driver["versions"].items()))
    yield "set of options for the driver", driver["options"]
    known = {field.name: field.default for field in fields(Options)} | data["options"]
    yield from ((f"version of {name}", packages.get(name)) for name in SEEDED)
    yield from ((f"option {name}", value) for name, value in sorted(known.items()) if name != "shard")
    yield "subject", ", ".join(_titled(section["subject"]) for section in data["subjects"])
    yield "set of contracts", [section["subject"]["contracts"] for section in data["subjects"]]
    yield "plan", [[_planned(item) for item in section["items"]] for section in data["subjects"]]
    yield "set of invariants", [[entry["id"] for entry in section["invariants"]] for section in data["subjects"]]
    yield "set of waivers", [_unsettled(entry) for entry in (data.get("waivers") or {}).get("entries", ())]


def _titled(subject: Data) -> str:
    return f"{subject['spec']} ({subject['name']} {subject['version']})".replace(" )", ")")


def _planned(item: Data) -> tuple[Any, ...]:
    return item["id"], item["kind"], item["contract"], item["planned"]


def _unsettled(entry: Data) -> Data:
    return {name: value for name, value in entry.items() if name != "settled"}


# -- results


def _joined_results(documents: Sequence[Document]) -> tuple[dict[str, ItemResult], list[str]]:
    """Each item's result, from the report that has one; of several one that was finished, or both in one."""
    results: dict[str, tuple[ItemResult, str]] = {}
    contradictions = []
    for document in documents:
        for result in _results(document):
            if result.item not in results:
                results[result.item] = result, document.label
                continue
            before, label = results[result.item]
            if before.state in _UNFINISHED or result.state in _UNFINISHED:
                results[result.item] = min((before, label), (result, document.label), key=_finished)
                continue
            if _outcome(before) != _outcome(result):
                contradictions.append(_contradiction(before, label, result, document.label))
            results[result.item] = _both(before, result), label
    return {item: result for item, (result, _) in results.items()}, contradictions


def _results(document: Document) -> Iterator[ItemResult]:
    """The results of the items that a report has run."""
    driver = document.data["driver"]["name"]
    for section in document.data["subjects"]:
        found = [failure for entry in section["invariants"] for failure in entry["failures"]]
        for item in section["items"]:
            if item["state"] == NOT_RUN:
                continue
            if "witnesses" not in item:
                raise MergeError(f"{document.label} was written by an older version: its items have no witnesses")
            failures = [_failure(failure) for failure in found if failure["item"] == item["id"]]
            endings = list(map(from_data, item["endings"]))
            yield ItemResult(
                item["id"], item["kind"], item["contract"], section["subject"]["spec"], driver, item["planned"],
                item["executed"], item["state"], item["witnesses"], failures, item["unknown"], item["untested"],
                endings, item["seconds"], Coverage(**item["points"]) if "points" in item else None,
            )  # fmt: skip


def _failure(data: Data) -> Failure:
    """A failure as it was reported; its texts have no addresses any more, and its drawings stay with the data."""
    return Failure(**{**data, "map": [], "picture": None})


def _outcome(result: ItemResult) -> tuple[Any, ...]:
    """What two runs of one item have to agree on."""
    tested = sorted(id for id, number in result.witnesses.items() if number)
    ways = sorted({f"{ending.kind} in {_operation(ending)}" for ending in result.endings})
    return result.state, sorted({each.invariant for each in result.failures}), tested, sorted(result.unknown), ways


def _operation(ending: Ending) -> str:
    """The kind of operation in which a process ended."""
    operations = ending.program["operations"]
    return str(operations[ending.op].get("op", "?")) if 0 <= ending.op < len(operations) else "no operation"


def _contradiction(one: ItemResult, label: str, other: ItemResult, at: str) -> str:
    """What two runs of one item disagree on."""
    names = ("state", "broken", "put to the test", "unknown", "seen")
    told = []
    for name, a, b in zip(names, _outcome(one), _outcome(other), strict=True):
        if a != b and name == "state":
            told.append(f"{a} in {label}, {b} in {at}")
        elif a != b:
            told += [f"{few(sorted(set(x) - set(y)))} {name} in {where} alone" for x, y, where in (
                (a, b, label), (b, a, at)) if set(x) - set(y)]  # fmt: skip
    return f"{one.item} came out otherwise in two reports: {'; '.join(told)}"


def _finished(pair: tuple[ItemResult, str]) -> tuple[bool, int]:
    """Sort key: results that were finished first, of others the one that went further."""
    return pair[0].state in _UNFINISHED, -pair[0].executed


def _both(one: ItemResult, other: ItemResult) -> ItemResult:
    """One result of two of the same item: the one that went further, with what only the other one found."""
    further, less = (other, one) if other.executed > one.executed else (one, other)
    known = {failure.invariant for failure in further.failures}
    further.failures += [failure for failure in less.failures if failure.invariant not in known]
    further.unknown = {**less.unknown, **further.unknown}
    files = {(ending.kind, ending.number) for ending in further.endings}
    further.endings += [ending for ending in less.endings if (ending.kind, ending.number) not in files]
    further.state = max(one.state, other.state, key=_FINISHED.index)
    return further


# -- the rest of the report


def _plan(data: Data) -> list[Row]:
    return [
        Row(item["id"], item["kind"], item["contract"], section["subject"]["spec"], item["planned"])
        for section in data["subjects"]
        for item in section["items"]
    ]


def _invariant(entry: Data) -> Invariant:
    return Invariant(**{field.name: entry[field.name] for field in fields(Invariant) if field.name in entry})


def _subject(section: Data) -> SubjectInfo:
    return SubjectInfo(**{**section["subject"], "contracts": tuple(section["subject"]["contracts"])})


def _environment(documents: Sequence[Document]) -> Data:
    """Of several machines, what each of them was."""
    seen = [document.data["environment"] for document in documents]
    devices = {
        f"{document.label} {worker}": device
        for document in documents
        for worker, device in document.data["environment"].get("devices", {}).items()
    }
    return {
        "python": ", ".join(dict.fromkeys(each["python"] for each in seen)),
        "platform": ", ".join(dict.fromkeys(each["platform"] for each in seen)),
        "packages": seen[0]["packages"],
        **({"devices": devices} if devices else {}),
    }


def _waivers(documents: Sequence[Document]) -> Waivers | None:
    """The waivers on the last day of all: if one expired while shards ran, it has expired."""
    waivers = waivers_of(documents[0].data)
    if waivers is None:
        return None
    days = [date.fromisoformat(told["today"]) for document in documents if (told := document.data.get("waivers"))]
    return Waivers(waivers.entries, max(days))


def _with_evidence(report: Report, documents: Sequence[Document]) -> tuple[Data, dict[str, int]]:
    """The report as data with the drawings of its failures, and the report that each program's files lie beside."""
    known, endings = _by_content(documents)
    evidence: dict[str, int] = {}
    data = to_json(report)
    for section, told in zip(report.subjects, data["subjects"], strict=True):
        for row, item in zip(section.items, told["items"], strict=True):
            ended = [endings[_content(ending, row.id)] for ending in row.endings]
            item["endings"] = [each for each, _ in ended]
            evidence |= {each["file"]: number for each, number in ended}
        for made, entry in zip(section.invariants, told["invariants"], strict=True):
            found = [known[_content(failure, failure.item)] for failure in made.failures]
            entry["failures"] = [each if not n else {**each, "picture": None} for n, (each, _) in enumerate(found)]
            if found:
                evidence[entry["program"]] = found[0][1]
    return data, evidence


_Found = dict[tuple[str, str], tuple[Data, int]]


def _by_content(documents: Sequence[Document]) -> tuple[_Found, _Found]:
    """All failures and all endings as they were reported, by all that a result has of them, and whose they are."""
    failures: _Found = {}
    endings: _Found = {}
    for number, document in enumerate(documents):
        for section in document.data["subjects"]:
            for failure in (failure for entry in section["invariants"] for failure in entry["failures"]):
                failures.setdefault(_content(_failure(failure), failure["item"]), (failure, number))
            for item in section["items"]:
                for ending in item["endings"]:
                    endings.setdefault(_content(from_data(ending), item["id"]), (ending, number))
    return failures, endings


def _content(found: Failure | Ending, item: str) -> tuple[str, str]:
    """What tells one failure or ending of an item from another: that of a result that was not taken is another one."""
    return item, json.dumps(asdict(found), sort_keys=True)
