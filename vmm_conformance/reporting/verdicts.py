"""The words a report uses, and the rules that choose them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vmm_conformance.catalogue import Invariant
from vmm_conformance.running.results import ALL, NOT_APPLICABLE, ItemResult

__all__ = ["ALL", "OVERALL_SIGNS", "Overall", "Ruling", "Verdict", "rule", "worst"]


class Verdict(StrEnum):
    """What came out for one invariant."""

    PASS = "pass"
    """Put to the test at least once, and never found broken."""
    FAIL = "fail"
    """Found broken."""
    WAIVED = "waived"
    """Found broken, or programs ended their process, and excused by a waiver."""
    NOT_EXERCISED = "not exercised"
    """Never put to the test: no witness, so no pass."""
    NOT_APPLICABLE = "not applicable"
    """The subject does not offer the contract or the feature, or nothing of the kind can happen on the driver."""
    UNKNOWN = "unknown"
    """A checker broke, so some histories went unjudged."""
    CRASH = "crash"
    """Never put to the test, and an item that might have done so crashed."""
    TIMEOUT = "timeout"
    """Never put to the test, and an item that might have done so ran out of time."""


class Overall(StrEnum):
    """What came out for a subject, or for a whole run; best first."""

    HARDENED = "hardened"
    """Every must passes, the inferred ones too."""
    CONFORMANT = "conformant"
    """Every documented must passes."""
    WAIVED = "conformant-with-waivers"
    """So it would be, but for failures that waivers expect; reports say how many, see `told`."""
    PARTIAL = "partial"
    """Nothing failed, but something that had to be shown was not."""
    MISWAIVED = "not as waived"
    """No must is broken that no waiver expects, but a waiver does not say what came out."""
    NOT_CONFORMANT = "not conformant"
    """A must is broken."""

    @classmethod
    def of(cls, told: str) -> Overall:
        """The inverse of `told`. Raises ``ValueError`` for no such word."""
        return cls(told.partition("(")[0])

    def told(self, waived: int) -> str:
        """The word in reports: ``conformant-with-waivers(2)`` says how many failures are ``waived``."""
        return f"{self.value}({waived})" if self is Overall.WAIVED else self.value

    def words(self, waived: int) -> str:
        """For people: who looks for ``conformant`` must find it where even more than that holds."""
        return "conformant (hardened)" if self is Overall.HARDENED else self.told(waived)

    @property
    def exit_code(self) -> int:
        """The exit status of the command line: 0 conformant, 1 not, 3 partial."""
        return {Overall.NOT_CONFORMANT: 1, Overall.MISWAIVED: 1, Overall.PARTIAL: 3}.get(self, 0)


OVERALL_SIGNS: Final = {
    "hardened": "✓✓",
    "conformant": "✓",
    "conformant-with-waivers": "⚑",
    "partial": "◐",
    "not as waived": "⚐",
    "not conformant": "✗",
}
"""A sign for each, best first, so that colour is never the only one."""


def worst(words: Iterable[Overall]) -> Overall:
    """The worst of several; `Overall.PARTIAL` of none, as nothing was shown."""
    order = list(Overall)
    return max(words, key=order.index, default=Overall.PARTIAL)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict, and the reason where it is neither pass nor fail. ``asked``: whether it was asked for."""

    verdict: Verdict
    reason: str = ""
    asked: bool = True


def rule(
    invariant: Invariant, results: Sequence[ItemResult], waiver: str | None = None, ended: str | None = None
) -> Ruling:
    """The verdict on ``invariant`` after ``results``, those of one subject and the invariant's contract.

    A failure outweighs everything, then a broken checker, then witnesses: a pass needs at least one. ``waiver`` says
    why it is borne that it fails, ``ended`` that programs ended their process where it might have been put to the test.
    """
    borne = "; ".join(filter(None, (waiver, ended)))
    if any(failure.invariant == invariant.id for result in results for failure in result.failures):
        return Ruling(Verdict.FAIL) if waiver is None else Ruling(Verdict.WAIVED, borne)
    broken = sorted({r.unknown[id] for r in results for id in (invariant.id, ALL) if id in r.unknown})
    if broken:
        return Ruling(Verdict.UNKNOWN, "; ".join(broken))
    if ended is not None:
        return Ruling(Verdict.WAIVED, borne)
    if any(result.witnesses.get(invariant.id, 0) for result in results):
        return Ruling(Verdict.PASS)
    return _without_witness(invariant, results)


def _without_witness(invariant: Invariant, results: Sequence[ItemResult]) -> Ruling:
    if not results:
        return Ruling(Verdict.NOT_EXERCISED, f"nothing was run for the contract {invariant.contract}")
    told = {result.untested.get(invariant.id) or result.untested.get(ALL, "") for result in results}
    reasons = sorted(filter(None, told))
    missing = [r.removeprefix(NOT_APPLICABLE) for r in reasons if r.startswith(NOT_APPLICABLE)]
    if missing:
        return Ruling(Verdict.NOT_APPLICABLE, "; ".join(missing))
    for verdict in (Verdict.CRASH, Verdict.TIMEOUT):
        names = sorted(result.item for result in results if result.state == verdict.value)
        if names:
            return Ruling(verdict, ", ".join(names))
    return Ruling(Verdict.NOT_EXERCISED, "; ".join(reasons) or f"no program reached it: {invariant.needs}")
