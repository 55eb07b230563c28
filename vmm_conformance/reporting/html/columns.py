"""Columns of the matrix: one for each subject, driver and version; of several runs of it the latest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vmm_conformance.reporting.html.documents import Document
from vmm_conformance.reporting.text import count
from vmm_conformance.reporting.verdicts import OVERALL_SIGNS, Overall, Verdict

SIGNS: Final = {
    "pass": "✓",
    "fail": "✗",
    "waived": "⚑",
    "not exercised": "○",
    "not applicable": "·",
    "unknown": "?",
    "crash": "‼",
    "timeout": "◷",
}
"""A sign for each verdict, so that colour is never the only one."""
KINDS: Final = (("must", "documented"), ("must", "inferred"), ("should", "documented"), ("should", "inferred"))
_OPEN: Final = ("not exercised", "unknown", "crash", "timeout")


@dataclass(frozen=True, slots=True)
class Column:
    """One section of one report, and what its cells and its banner say."""

    index: int
    document: Document
    section: dict[str, Any]
    entries: dict[str, dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        """The subject's name and version."""
        subject = self.section["subject"]
        return f"{subject['name']} {subject['version']}".strip()

    @property
    def driver(self) -> str:
        """The driver's name."""
        return str(self.document.data["driver"]["name"])

    @property
    def real(self) -> bool:
        """Whether a device stood behind the driver."""
        return bool(self.document.data["driver"]["real"])

    @property
    def overall(self) -> str:
        """The overall verdict."""
        return str(self.section["footer"]["overall"])

    @property
    def word(self) -> str:
        """The same without the number of waivers."""
        return plain(self.overall)

    @property
    def place(self) -> str:
        """What it ran over, in words."""
        return f"{self.driver} ({'a device' if self.real else 'emulated, no device'})"

    @property
    def counts(self) -> Counter[str]:
        """How often each verdict came out."""
        return Counter(entry["verdict"] for entry in self.entries.values())

    def scope(self) -> str:
        """Which contracts the subject offers, and how much of them does not apply."""
        offered = list(self.section["subject"]["contracts"])
        own = [entry for entry in self.entries.values() if entry["contract"] in offered]
        out = sum(entry["verdict"] == Verdict.NOT_APPLICABLE for entry in own)
        ruled = f"{out} of {count(len(own), 'invariant')} not applicable" if out else ""
        named = f"contract{'s' * (len(offered) != 1)} {', '.join(offered) or 'none'}"
        return f"{named}; {ruled}" if ruled else named

    def unreached(self) -> list[dict[str, Any]]:
        """The invariants that were not shown either way."""
        return [entry for entry in self.entries.values() if entry["verdict"] in _OPEN]

    def quote(self) -> str:
        """The column in one sentence, for somebody to quote."""
        footer, data = self.section["footer"], self.document.data
        expected, executed = len(footer["expected"]), len(footer["executed"])
        counts = self.counts
        told = [f"{counts[word]} {word}" for word in ("pass", "fail", "waived") if counts[word] or word == "fail"]
        asked = ", ".join(f"{name} {data['options'][name]}" for name in ("budget", "seed") if name in data["options"])
        return (
            f"{self.name} over {self.driver} (real: {str(self.real).lower()}): {self.overall}; "
            f"{executed} of {count(expected, 'expected invariant')} judged, {', '.join(told)} "
            f"(catalogue {data['catalogue']}{', ' + asked if asked else ''})"
        )

    def levels(self) -> list[dict[str, Any]]:
        """For each level and kind of evidence: how many pass, fail, are waived or stay open."""
        rows = []
        for level, evidence in KINDS:
            own = [e for e in self.entries.values() if (e["level"], e["evidence"]) == (level, evidence)]
            found = Counter(entry["verdict"] for entry in own if entry["verdict"] != Verdict.NOT_APPLICABLE)
            if found:
                rows.append({
                    "kind": f"{evidence} {level}", "of": found.total(), "pass": found["pass"], "fail": found["fail"],
                    "waived": found["waived"], "open": sum(found[word] for word in _OPEN),
                })  # fmt: skip
        return rows


def plain(overall: str) -> str:
    """An overall verdict without the number of waivers: it has a sign and a style."""
    return Overall.of(overall).value


def columns_of(documents: Iterable[Document]) -> list[Column]:
    """The columns, the latest report of each subject, driver and version, in the order they first came."""
    latest: dict[tuple[Any, ...], tuple[Document, dict[str, Any]]] = {}
    for document in documents:
        for section in document.data["subjects"]:
            latest[_identity(document, section)] = (document, section)
    return [
        Column(index, document, section, {entry["id"]: entry for entry in section["invariants"]})
        for index, (document, section) in enumerate(latest.values())
    ]


def _identity(document: Document, section: dict[str, Any]) -> tuple[Any, ...]:
    driver, subject = document.data["driver"], section["subject"]
    return subject["spec"], subject["name"], subject["version"], driver["name"], driver["real"]


MEANINGS: Final = {
    "hardened": "Every must holds, also those that were concluded from documents and not stated in one.",
    "conformant": "Every must that a document states holds; one that was concluded from documents does not.",
    "conformant-with-waivers": "Nothing is broken but what is known and waived for a while; the waivers are below.",
    "not as waived": "Nothing is broken but what is waived, but a waiver does not say what came out; see below.",
    "partial": "Nothing that counts was found broken, but not everything that had to be shown was.",
    "not conformant": "A must is broken; below is the shortest program that breaks it.",
}
"""What each verdict says, for somebody who has never met one."""


def headline(columns: Sequence[Column]) -> dict[str, Any]:
    """The worst verdict of all, and of how many subjects."""
    order = list(OVERALL_SIGNS)
    words = [column.word for column in columns]
    worst = max(words, key=order.index, default="partial")
    waived = sum(column.counts["waived"] for column in columns)
    expected = sum(len(column.section["footer"]["expected"]) for column in columns)
    executed = sum(len(column.section["footer"]["executed"]) for column in columns)
    tally = Counter(words)
    return {
        "overall": Overall(worst).told(waived),
        "word": worst,
        "sign": OVERALL_SIGNS[worst],
        "meaning": MEANINGS.get(worst, ""),
        "expected": expected,
        "executed": executed,
        "missing": expected - executed,
        "waived": waived,
        "noun": "subjects" if len({column.name for column in columns}) == len(columns) else "columns of the matrix",
        "emulated": sum(not column.real for column in columns),
        "tally": ", ".join(f"{tally[word]} {word}" for word in order if tally[word]),
    }
