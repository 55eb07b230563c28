"""What a report consists of: frozen values, no logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vmm_conformance.catalogue import Invariant
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.verdicts import Overall, Ruling, Verdict
from vmm_conformance.running.results import Coverage, Ending, Failure
from vmm_conformance.waivers.settle import Settlement
from vmm_conformance.waivers.waiver import Waiver


@dataclass(frozen=True, slots=True)
class InvariantReport:
    """One invariant for one subject. ``failures`` are those found, the shortest program first."""

    invariant: Invariant
    ruling: Ruling
    witnesses: int
    items: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def id(self) -> str:
        """The invariant's id."""
        return self.invariant.id

    @property
    def verdict(self) -> Verdict:
        """The ruling's verdict."""
        return self.ruling.verdict

    @property
    def must(self) -> bool:
        """Whether the overall verdict depends on it at all."""
        return self.invariant.level == "must"

    @property
    def documented(self) -> bool:
        """Whether its source states it, rather than it was concluded."""
        return self.invariant.evidence == "documented"


@dataclass(frozen=True, slots=True)
class ItemReport:
    """One planned item: ``state`` is that of its result, or ``not run``; ``seconds`` is a duration.
    ``waived`` says why it is borne that processes ended, if each did so as a waiver says.

    ``endings`` are programs that ended their process. ``witnesses`` counts by invariant how often it was put to the
    test; ``unknown``, ``untested`` and ``points`` are as in `running.results.ItemResult`.
    """

    id: str
    kind: str
    contract: str
    state: str
    planned: int
    executed: int
    seconds: float
    endings: tuple[Ending, ...] = ()
    witnesses: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    untested: Mapping[str, str] = field(default_factory=dict)
    points: Coverage | None = None
    waived: str = ""


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Everything about one subject.

    ``expected`` are the invariants that had to be judged (all of the contracts it offers), ``executed``
    those that were; ``complete`` says that nothing was left out. ``reasons`` explain ``overall``.
    """

    subject: SubjectInfo
    invariants: tuple[InvariantReport, ...]
    items: tuple[ItemReport, ...]
    expected: tuple[str, ...]
    executed: tuple[str, ...]
    complete: bool
    overall: Overall
    reasons: tuple[str, ...]

    @property
    def waived(self) -> int:
        """How many broken invariants waivers excuse."""
        return sum(entry.verdict is Verdict.WAIVED for entry in self.invariants)

    def points(self) -> dict[str, Coverage]:
        """Failure points covered and reached: by contract the sum, behind them those of each item."""
        items = {row.id: row.points for row in self.items if row.points}
        total: dict[str, Coverage] = {}
        for row in self.items:
            if row.points:
                total[row.contract] = total.get(row.contract, Coverage()) + row.points
        return {**total, **items}

    def __getitem__(self, id: str) -> InvariantReport:
        for entry in self.invariants:
            if entry.id == id:
                return entry
        raise KeyError(f"no invariant {id!r} in the report on {self.subject.spec}")


@dataclass(frozen=True, slots=True)
class WaiverReport:
    """A waiver, and what became of it for each subject that it covers; without one it matches nothing."""

    waiver: Waiver
    settlements: tuple[Settlement, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to; one section per subject, in the order asked for.

    ``waivers`` are those of the run in the order of their file, None if it had no such file; ``today`` is the day
    that their expiry was compared with.
    """

    catalogue: str
    driver: DriverInfo
    options: Mapping[str, Any]
    environment: Mapping[str, Any]
    subjects: tuple[SubjectReport, ...]
    complete: bool
    overall: Overall
    reasons: tuple[str, ...]
    seconds: float
    waivers: tuple[WaiverReport, ...] | None = None
    today: str = ""

    @property
    def waived(self) -> int:
        """How many broken invariants waivers excuse, over all subjects."""
        return sum(section.waived for section in self.subjects)

    @property
    def exit_code(self) -> int:
        """0 conformant, hardened or with waivers, 1 not conformant or not as waived, 3 partial."""
        return self.overall.exit_code

    def __getitem__(self, spec: str) -> SubjectReport:
        for section in self.subjects:
            if section.subject.spec == spec:
                return section
        raise KeyError(f"no subject {spec!r} in this report, only {[s.subject.spec for s in self.subjects]}")
