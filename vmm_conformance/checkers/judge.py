"""What checkers say: witnesses and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from vmm_conformance.contracts import Range


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant at one event.

    ``seq`` and ``op`` are the event and the operation where it was seen; ``cause`` the event that made
    it wrong, where that is another one; ``range`` the address range it is about.
    """

    invariant: str
    seq: int
    op: int
    message: str
    expected: str = ""
    actual: str = ""
    range: Range | None = None
    cause: int | None = None


@dataclass(slots=True)
class Judge:
    """Collects what the checkers of one history say.

    A witness is one occasion on which an invariant was really put to the test: it could have failed
    there. An invariant without witnesses has not passed.
    """

    witnesses: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def witness(self, invariant: str, count: int = 1) -> None:
        """``invariant`` was put to the test ``count`` times, whatever came out."""
        self.witnesses[invariant] += count

    def good(self, invariant: str, good: bool) -> bool:
        """Count a witness and return ``good``: where it is false, the caller fails the invariant in words.

        For rules that hold a thousand times in one history; elsewhere `expect` reads better.
        """
        self.witnesses[invariant] += 1
        return good

    def fail(
        self,
        invariant: str,
        event: Any,
        message: str,
        *,
        expected: str | bytes = "",
        actual: str | bytes = "",
        range: Range | None = None,
        cause: int | None = None,
    ) -> None:
        """``invariant`` is broken at ``event``; ``expected`` and ``actual`` are words, or contents of memory."""
        told = (message, _told(expected), _told(actual))
        self.findings.append(Finding(invariant, event.seq, event.op, *told, range, cause))

    def forget(self, invariants: Collection[str]) -> None:
        """Take back all that was said of ``invariants``: they could not be seen."""
        for id in invariants:
            self.witnesses.pop(id, None)
        self.findings[:] = [finding for finding in self.findings if finding.invariant not in invariants]

    def expect(self, invariant: str, event: Any, good: bool, message: str, **details: Any) -> bool:
        """Count a witness, and a finding unless ``good``. Returns ``good``."""
        self.witness(invariant)
        if not good:
            self.fail(invariant, event, message, **details)
        return good


def _told(what: str | bytes) -> str:
    return what if isinstance(what, str) else f"bytes {what.hex(' ') or '(none)'}"


Checker = Callable[[Any, Judge], None]
"""A pure function over the index of one history."""
