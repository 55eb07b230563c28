"""Tells one report from a later one: what changed for each subject, and whether anything got worse."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.verdicts import Overall, Verdict

Data = dict[str, Any]
_ENDED: Final = (Verdict.CRASH, Verdict.TIMEOUT)
_OPEN: Final = (Verdict.NOT_EXERCISED, Verdict.UNKNOWN)
_BROKEN: Final = (Verdict.FAIL, Verdict.WAIVED, *_ENDED)


class Kind(StrEnum):
    """How something changed, in the order in which it is told; the first ones are worse than before."""

    FAILING = "newly failing"
    ENDED = "newly crashed or hung"
    OPEN = "newly not shown"
    WAIVED = "newly waived"
    INAPPLICABLE = "no longer applicable"
    GONE = "gone"
    FIXED = "fixed"
    PASSING = "newly passing"
    CHANGED = "otherwise changed"
    APPEARED = "appeared"

    @property
    def worse(self) -> bool:
        """Whether a run got worse by it."""
        return self in (Kind.FAILING, Kind.ENDED, Kind.OPEN, Kind.WAIVED, Kind.INAPPLICABLE, Kind.GONE)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of an invariant, or of an item whose process ended.

    ``before`` and ``after`` are verdicts, empty where it was not there; ``detail`` is a message or a reason.
    """

    id: str
    kind: Kind
    before: str
    after: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A version or an option that changed; empty where it was not there."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program that failed in the later report and not in the earlier one, and its file beside the later one."""

    id: str
    file: str
    operations: int


@dataclass(frozen=True, slots=True)
class SubjectDiff:
    """What changed for one subject; ``before`` and ``after`` are overall verdicts, empty where it was not there."""

    spec: str
    name: str
    before: str
    after: str
    incomplete: bool
    changes: tuple[Change, ...]
    programs: tuple[Program, ...]

    @property
    def sunk(self) -> bool:
        """Whether the overall verdict is a worse one, or the run is no longer complete, or the subject is gone."""
        if not self.before or not self.after:
            return not self.after or Overall.of(self.after).exit_code == 1
        order = list(Overall)
        return self.incomplete or order.index(Overall.of(self.after)) > order.index(Overall.of(self.before))

    @property
    def worse(self) -> bool:
        """Whether anything about it is worse."""
        return self.sunk or any(change.kind.worse for change in self.changes)


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed from the report ``before`` to the report ``after``, both by their labels."""

    before: str
    after: str
    settings: tuple[Setting, ...]
    subjects: tuple[SubjectDiff, ...]

    @property
    def worse(self) -> bool:
        """Whether anything is worse."""
        return any(subject.worse for subject in self.subjects)

    def as_data(self) -> Data:
        """All of it as JSON data, see ``diff.schema.json`` beside this module."""
        return {
            "format": "vmm-conformance diff",
            "version": 1,
            "before": self.before,
            "after": self.after,
            "worse": self.worse,
            "settings": [asdict(setting) for setting in self.settings],
            "subjects": [_subject_data(subject) for subject in self.subjects],
        }


def _subject_data(subject: SubjectDiff) -> Data:
    changes = [{**asdict(change), "kind": change.kind.value, "worse": change.kind.worse} for change in subject.changes]
    programs = [asdict(program) for program in subject.programs]
    return {**asdict(subject), "worse": subject.worse, "changes": changes, "programs": programs}


def diff(before: Document, after: Document) -> Diff:
    """What changed. Subjects are told apart by their specs."""
    old, new = _sections(before.data), _sections(after.data)
    return Diff(
        before.label, after.label, tuple(_changed_settings(before.data, after.data)),
        tuple(_subject(spec, old.get(spec), new.get(spec)) for spec in dict.fromkeys([*new, *old])),
    )  # fmt: skip


def _sections(data: Data) -> dict[str, Data]:
    return {section["subject"]["spec"]: section for section in data["subjects"]}


# -- versions and options


def _changed_settings(before: Data, after: Data) -> Iterator[Setting]:
    old, new = dict(_settings(before)), dict(_settings(after))
    for what in dict.fromkeys([*old, *new]):
        if old.get(what, "") != new.get(what, ""):
            yield Setting(what, old.get(what, ""), new.get(what, ""))


def _settings(data: Data) -> Iterator[tuple[str, str]]:
    """What a report says of where it was made, by name; subjects first, then what is under them."""
    for section in data["subjects"]:
        said = section["subject"]
        yield f"subject {said['spec']}", f"{said['name']} {said['version']}".strip()
    driver, environment = data["driver"], data["environment"]
    yield "driver", driver["name"]
    yield "real", str(driver["real"]).lower()
    yield from ((f"{what} of the driver", version) for what, version in driver["versions"].items())
    yield from _flat(driver["options"], "option of the driver, ")
    yield "catalogue", data["catalogue"]
    yield from ((f"package {name}", version) for name, version in environment["packages"].items())
    yield from ((name, environment[name]) for name in ("python", "platform"))
    yield from _flat(data["options"], "option ")


def _flat(options: Data, prefix: str) -> Iterator[tuple[str, str]]:
    """Options by name, nested ones as ``outer.inner``."""
    for name, value in options.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value)


# -- subjects


def _subject(spec: str, before: Data | None, after: Data | None) -> SubjectDiff:
    said = (after or before or {})["subject"]
    changes = [*_verdicts(before, after), *_endings(before, after)] if before and after else []
    order = list(Kind)
    return SubjectDiff(
        spec, f"{said['name']} {said['version']}".strip(),
        before["footer"]["overall"] if before else "", after["footer"]["overall"] if after else "",
        bool(before and after and before["footer"]["complete"] and not after["footer"]["complete"]),
        tuple(sorted(changes, key=lambda change: order.index(change.kind))),
        tuple(_new_programs(before, after)) if after else (),
    )  # fmt: skip


def _verdicts(before: Data, after: Data) -> Iterator[Change]:
    old = {entry["id"]: entry for entry in before["invariants"]}
    new = {entry["id"]: entry for entry in after["invariants"]}
    for id in dict.fromkeys([*new, *old]):
        was = Verdict(old[id]["verdict"]) if id in old else None
        now = Verdict(new[id]["verdict"]) if id in new else None
        if was is not now:
            yield Change(id, kind_of(was, now), was or "", now or "", _detail(new.get(id)))


def kind_of(before: Verdict | None, after: Verdict | None) -> Kind:
    """How an invariant changed, of two different verdicts, None where it was not there."""
    if after is None:
        return Kind.GONE
    if after is Verdict.FAIL:
        return Kind.FAILING
    if after in _ENDED:
        return Kind.CHANGED if before in _ENDED else Kind.ENDED
    if before is None:
        return Kind.APPEARED
    if after is Verdict.WAIVED:
        return Kind.CHANGED if before in _BROKEN else Kind.WAIVED
    if after is Verdict.NOT_APPLICABLE:
        return Kind.INAPPLICABLE
    if after in _OPEN:
        return Kind.CHANGED if before in _OPEN else Kind.OPEN
    return Kind.FIXED if before in _BROKEN else Kind.PASSING


def _detail(entry: Data | None) -> str:
    """What there is to say of an invariant's verdict."""
    if entry is None:
        return ""
    if entry["verdict"] == Verdict.FAIL and entry["failures"]:
        return str(entry["failures"][0]["message"])
    return str(entry["reason"])


def _endings(before: Data, after: Data) -> Iterator[Change]:
    """Items in which a process ended, and none did so before: in that way, in that kind of operation."""
    old = {item["id"]: item for item in before["items"]}
    for item in after["items"]:
        known = {_way(ending) for ending in old.get(item["id"], {}).get("endings", ())}
        state = old.get(item["id"], {}).get("state", "")
        for ending in () if item.get("waived") else item.get("endings", ()):
            if _way(ending) not in known:
                yield Change(item["id"], Kind.ENDED, state, ending["kind"], f"the process {ending['how']}")


def _way(ending: Data) -> tuple[str, str]:
    operations, op = ending["program"]["operations"], ending["op"]
    return ending["kind"], str(operations[op].get("op", "?")) if 0 <= op < len(operations) else ""


def _new_programs(before: Data | None, after: Data) -> Iterator[Program]:
    """The shortest failing programs of the later report that failed for nothing of the kind before."""
    known = {(id, text) for id, text, _ in _programs(before)} if before else set()
    for id, text, program in _programs(after, shortest=True):
        if (id, text) not in known:
            yield program


def _programs(section: Data, *, shortest: bool = False) -> Iterator[tuple[str, str, Program]]:
    for entry in section["invariants"]:
        for failure in entry["failures"][: 1 if shortest else None]:
            yield _program(entry["id"], entry["program"], failure["program"])
    for item in section["items"]:
        for ending in item.get("endings", ()):
            yield _program(item["id"], ending["file"], ending["program"])


def _program(id: str, file: str, program: Data) -> tuple[str, str, Program]:
    return id, json.dumps(program, sort_keys=True), Program(id, file, len(program["operations"]))


def counted(subjects: Sequence[SubjectDiff], *, worse: bool) -> str:
    """``1 newly failing, 2 gone``: how often each kind of change is there, of those that are ``worse`` or are not."""
    found = Counter(change.kind for subject in subjects for change in subject.changes)
    return ", ".join(f"{found[kind]} {kind.value}" for kind in Kind if kind.worse is worse and found[kind])
