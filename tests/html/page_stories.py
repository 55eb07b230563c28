"""Histories written by hand, and reports made of them."""

from __future__ import annotations

from typing import Any

from vmm_conformance.catalogue import Invariant
from vmm_conformance.checkers.judge import Finding
from vmm_conformance.contracts import Access, Fault, Range
from vmm_conformance.history.events import DEVICE, HARNESS, SUBJECT, Event, History
from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.model import InvariantReport, ItemReport, Report, SubjectReport
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.verdicts import Overall, Ruling, Verdict
from vmm_conformance.running.evidence import address_map, outcomes
from vmm_conformance.running.pictures.picture import picture
from vmm_conformance.running.results import Failure

PAGE = 4096
VERDICTS = ("pass", "not exercised", "pass", "unknown")
BASE = 0x7E00_0000_0000


class Story:
    """Writes a history, event by event."""

    def __init__(self) -> None:
        self.history = History({"contract": "allocator"})
        self.op = -1
        self.number = 100

    def event(self, kind: str, *args: Any, who: str = SUBJECT, status: int = 0, result: Any = None) -> Event:
        made = Event(len(self.history), self.op, 0, who, kind, args, status, result)
        self.history.events.append(made)
        return made

    def begin(self, operation: Any = None) -> None:
        self.op += 1
        self.event("begin", operation, who=HARNESS)

    def end(self, status: str = "ok") -> None:
        self.event("end", {"status": status, "code": "", "message": ""}, who=HARNESS)

    def reserved(self, address: int, size: int) -> None:
        self.event("reserve", size, 0, 0, result=address)

    def mapped(self, address: int, size: int, handle: int) -> None:
        self.event("create", size, 0, 0, result=handle)
        self.event("map", address, size, handle, 0)
        self.event("set_access", address, size, ((0, Access.READ_WRITE),))

    def work(self, stream: int, address: int, size: int = 8, *, who: str = HARNESS) -> Event:
        self.number += 1
        return self.event("launch", stream, (Range(address, size),), (), (), who=who, result=self.number)

    def ran(self, work: Event, fault: Fault | None = None) -> None:
        self.event("ran", work.result, (), fault, who=DEVICE)


def unordered() -> tuple[History, Finding]:
    """Memory is unmapped while work that nobody waited for uses it."""
    story = Story()
    story.event("stream_create", 0, who=HARNESS, result=1)
    story.begin({"op": "allocate"})
    story.reserved(BASE, 2 * PAGE)
    story.mapped(BASE, PAGE, 7)
    work = story.work(1, BASE)
    story.end()
    story.begin({"op": "deallocate"})
    unmap = story.event("unmap", BASE, PAGE)
    story.event("release", 7)
    story.end()
    story.op += 1
    story.ran(work, Fault(BASE, 8, "unmapped", 3))
    story.event("device_synchronize", 0, who=HARNESS)
    finding = Finding(
        "ALLOCATOR-5", unmap.seq, 1, f"unmap takes away memory at {BASE:#x}", "a wait", "no order",
        Range(BASE, PAGE), work.seq,
    )  # fmt: skip
    return story.history, finding


def long_story(operations: int = 60, reservations: int = 8, streams: int = 4) -> tuple[History, Finding]:
    """Much of everything: the ranges grow and shrink, streams wait for each other, the last unmap is too early."""
    story = Story()
    for stream in range(1, streams + 1):
        story.event("stream_create", 0, who=HARNESS, result=stream)
        story.event("event_create", 0, who=HARNESS, result=50 + stream)
    places = [BASE + n * (n + 3) * PAGE * 8 for n in range(reservations)]
    story.begin({"op": "open"})
    for n, place in enumerate(places):
        story.reserved(place, (n + 2) * PAGE)
    story.end()
    work = story.work(1, places[0])
    for op in range(1, operations):
        place, stream = places[op % reservations], op % streams + 1
        story.begin({"op": "use", "block": op, "stream": stream})
        if op > reservations:
            story.event("stream_synchronize", (op - reservations) % streams + 1)
            story.event("unmap", place, PAGE)
        story.mapped(place, PAGE, 1000 + op)
        work = story.work(stream, place)
        story.event("event_record", 50 + stream, stream)
        story.event("stream_wait_event", stream % streams + 1, 50 + stream)
        story.end()
    story.op += 1
    last = places[(operations - 1) % reservations]
    unmap = story.event("unmap", last, PAGE)
    story.event("device_synchronize", 0, who=HARNESS)
    finding = Finding("ALLOCATOR-5", unmap.seq, operations, "too early", "a wait", "", Range(last, PAGE), work.seq)
    return story.history, finding


def failure(made: tuple[History, Finding] | None = None, id: str = "ALLOCATOR-5", **changes: Any) -> Failure:
    """A failure with its pictures."""
    history, finding = made or unordered()
    begun = [event.args[0] for event in history.events if event.kind == "begin"]
    program = {"version": 1, "contract": "allocator", "configuration": {"streams": 2}, "operations": begun}
    values: dict[str, Any] = {
        "invariant": id, "message": finding.message, "expected": finding.expected, "actual": finding.actual,
        "op": finding.op, "program": program, "outcomes": outcomes(history), "map": address_map(history, finding),
        "picture": picture(history, finding), "programs_before": 3,
    }  # fmt: skip
    return Failure(**(values | changes))


def entry(id: str, verdict: str = "pass", *failures: Failure, contract: str = "allocator", **changes: Any) -> Any:
    """One invariant of a report."""
    words = {
        "level": "must", "evidence": "documented", "statement": f"What {id} says must hold.", "why": "or else",
        "source": "a document", "needs": f"a program for {id}", "reason": "",
    }  # fmt: skip
    words |= changes
    reason = words.pop("reason")
    invariant = Invariant(id=id, contract=contract, **words)
    witnesses = 5 if verdict in ("pass", "fail", "waived") else 0
    return InvariantReport(invariant, Ruling(Verdict(verdict), reason), witnesses, ("an/item[thing]",), failures)


def report(*entries: Any, spec: str = "thing", overall: str = "", **changes: Any) -> dict[str, Any]:
    """The JSON data of a report on one subject."""
    values = {"name": spec, "version": "1.2", "driver": "host", "real": False} | changes
    expected = tuple(e.id for e in entries if e.verdict is not Verdict.NOT_APPLICABLE)
    executed = tuple(e.id for e in entries if e.verdict in (Verdict.PASS, Verdict.FAIL, Verdict.WAIVED))
    failed = any(e.verdict is Verdict.FAIL for e in entries)
    word = Overall(overall or ("not conformant" if failed else "hardened" if executed == expected else "partial"))
    complete = executed == expected
    section = SubjectReport(
        SubjectInfo(spec, values["name"], values["version"], ("allocator",)), tuple(entries),
        (ItemReport("an/item[thing]", "exploration", "allocator", "done", 10, 10, 0.5),),
        expected, executed, complete, word, (),
    )  # fmt: skip
    return to_json(Report(
        "2026.1", DriverInfo(values["driver"], values["real"], {}), {"budget": "ci", "seed": 7},
        {"python": "CPython 3.12", "platform": "Linux", "packages": {"vmm-conformance": "0.1"}},
        (section,), complete, word, (), 1.5,
    ))  # fmt: skip


def kill(mutant: str = "bad-one", breaks: str = "STEP-88", killed: bool = True, **changes: Any) -> dict[str, Any]:
    """One line of a kill matrix."""
    made = {
        "mutant": mutant, "contract": "skip-remap", "breaks": breaks, "seed": 0, "killed": killed,
        "explored": killed, "first": breaks if killed else "", "found": [breaks, "STEP-86"] if killed else [],
        "by": "explore/anything", "programs": 3, "operations": 2, "seconds": 0.1,
    }  # fmt: skip
    return made | changes


def kills(*rows: dict[str, Any]) -> dict[str, Any]:
    """The JSON data of a kill matrix."""
    killed = sum(row["killed"] for row in rows)
    return {
        "format": "vmm-conformance kills", "version": 1, "catalogue": "2026.1", "budget": "ci", "kills": list(rows),
        "killed": killed, "explored": killed, "of": len(rows), "full": killed == len(rows),
        "notes": {"bad-one": "Forgets to wait."}, "statements": {"STEP-86": "Every slot shows its buffer."},
    }  # fmt: skip


def large(invariants: int = 400, columns: int = 12, failures: int = 50) -> list[dict[str, Any]]:
    """Reports as large as the page has to stand."""
    broken, made = failure(), []
    long = {"statement": "What must hold, said at some length. " * 7, "why": "What happens otherwise. " * 8}
    for column in range(columns):
        entries = [
            entry(f"AREA-{n}", "fail", broken, **long) if column == 0 and n < failures
            else entry(f"AREA-{n}", VERDICTS[(n + column) % len(VERDICTS)], reason="a reason", **long)
            for n in range(invariants)
        ]  # fmt: skip
        made.append(report(*entries, spec=f"subject-{column}"))
    return made
