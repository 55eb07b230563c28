"""What a report says of its waivers, computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vmm_conformance.bundling.result import Piece, differs, same
from vmm_conformance.catalogue import catalogue
from vmm_conformance.reporting.endings import from_data
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.text import count, few
from vmm_conformance.running.results import ItemResult
from vmm_conformance.waivers.listed import Waivers, expects, waivers_of
from vmm_conformance.waivers.settle import Court, State, unmatched
from vmm_conformance.waivers.waiver import FAILURE, Waiver

Data = dict[str, Any]


def strays(report: Data) -> tuple[str, ...]:
    """The sentences on those that match nothing."""
    waivers = waivers_of(report)
    if waivers is None:
        return ()
    settled = [entry["settled"] for entry in report["waivers"]["entries"]]
    return tuple(unmatched(waiver) for waiver, said in zip(waivers.entries, settled, strict=True) if not said)


def breaches_of(report: Data, section: Data) -> tuple[str, ...]:
    """The sentences on those that fail the run for the subject of ``section``, as the report has them."""
    return tuple(said["sentence"] for _, said in _settled(report, section) if State(said["state"]).fails)


def _settled(report: Data, section: Data) -> Iterator[tuple[int, Data]]:
    """What the report says became of waivers for the subject of ``section``, with the number of each."""
    spec = section["subject"]["spec"]
    for number, entry in enumerate((report.get("waivers") or {}).get("entries", ())):
        yield from ((number, said) for said in entry["settled"] if said["subject"] == spec)


def consistency(report: Data) -> Iterator[Piece]:
    """Whether waivers cover whom they are said to, are in force where something is waived, and have not expired."""
    waivers = waivers_of(report)
    if waivers is None:
        waived = [e["id"] for s in report["subjects"] for e in s["invariants"] if e["verdict"] == "waived"]
        waived += [item["id"] for section in report["subjects"] for item in section["items"] if item.get("waived")]
        if waived:
            yield differs("waivers", f"none are in the report, and yet {few(waived)} waived")
        return
    wrong = [text for section in report["subjects"] for text in _wrong(report, section, waivers)]
    total = f"{count(len(waivers.entries), 'waiver')}, on {waivers.today}"
    yield differs("waivers", "; ".join(wrong)) if wrong else same("waivers", total)


def _wrong(report: Data, section: Data, waivers: Waivers) -> Iterator[str]:
    spec, said = section["subject"]["spec"], dict(_settled(report, section))
    subject, driver = _parties(report, section)
    covering = {number for number, waiver in enumerate(waivers.entries) if waiver.covers(subject, driver)}
    if covering != set(said):
        yield f"other ones cover {spec}: {few([str(number + 1) for number in sorted(covering ^ set(said))])}"
        return
    expired = {number for number in covering if not waivers.live(waivers.entries[number])}
    if expired != {number for number, each in said.items() if each["state"] == State.EXPIRED}:
        yield f"other ones have expired on {waivers.today}, of {spec}"
    used = [waivers.entries[number] for number, each in said.items() if each["state"] == State.IN_FORCE]
    holding = {(waiver.invariant, waiver.kind == FAILURE) for waiver in used}
    waived = [entry for entry in section["invariants"] if entry["verdict"] == "waived"]
    excused = [entry["id"] for entry in waived if (entry["id"], bool(entry["failures"])) not in holding]
    borne = [item["id"] for item in section["items"] if item.get("waived") and not _borne(item, used)]
    if borne:
        yield f"{few(borne)} of {spec} ended as waived, and no waiver in force says so"
    if excused:
        yield f"{few(excused)} of {spec} waived, and no waiver is in force"


def _borne(item: Data, used: Sequence[Waiver]) -> bool:
    """Whether processes ended in ``item``, and each of them as a waiver says that is in force."""
    endings = list(map(from_data, item["endings"]))
    expected = [any(expects(waiver, each, item["contract"], catalogue()) for waiver in used) for each in endings]
    return bool(expected) and all(expected) and item["state"] != "stopped"


def _parties(report: Data, section: Data) -> tuple[SubjectInfo, DriverInfo]:
    said, driver = section["subject"], report["driver"]
    subject = SubjectInfo(**{**said, "contracts": tuple(said["contracts"])})
    return subject, DriverInfo(driver["name"], driver["real"], driver["options"], driver["versions"])


def resettled(report: Data, section: Data, waivers: Waivers, results: Sequence[ItemResult]) -> Iterator[Piece]:
    """What becomes of the waivers after the programs were run again, against what the report says."""
    spec, prefix = section["subject"]["spec"], report["options"]["prefix"]
    asked = {entry.id for entry in catalogue().matching(prefix)} if prefix else None
    settled = Court(waivers, *_parties(report, section), results, catalogue(), asked=asked).settle()
    said = {number: (each["state"], each["sentence"]) for number, each in _settled(report, section)}
    found = {each.number: (each.state.value, each.sentence) for each in settled.settlements}
    wrong = [number for number in sorted(said.keys() | found.keys()) if said.get(number) != found.get(number)]
    for number in wrong:
        _, sentence = found.get(number, ("", "it does not cover the subject"))
        yield differs(f"waiver {number + 1} for {spec}", f"when run again {sentence}")
    if not wrong:
        yield same(f"waivers for {spec}", f"{count(len(found), 'waiver')} settled again")
