"""What one item of a suite came to: plain data that travels between processes."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Final

NOT_APPLICABLE: Final = "not applicable: "
"""How a reason in ``untested`` begins if the subject's own declaration rules the invariant out."""
ALL: Final = "*"
"""Stands for every invariant of the contract, in ``unknown`` and in ``untested``."""
UNAVAILABLE: Final = "unavailable"
"""The state of an item whose driver cannot be used here."""


@dataclass(slots=True)
class Failure:
    """One broken invariant with the minimal program that breaks it.

    ``program`` is the program's JSON form; ``outcomes`` what each operation returned, beside what was
    expected of the one at ``op``; ``map`` the address ranges at that moment; ``picture`` the ranges and
    the streams over the whole run (see `running.pictures`); ``consequences`` other invariants found broken
    in the same history; ``repeats`` how many of how many re-runs showed it again (``deterministic`` or
    ``flaky 3/10``); ``history`` the text of that history (see `history.files`); ``item`` the item that found it,
    empty until a report is made.
    """

    invariant: str
    message: str
    expected: str
    actual: str
    op: int
    program: dict[str, Any]
    outcomes: list[str]
    map: list[dict[str, Any]] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)
    repeats: str = "deterministic"
    programs_before: int = 0
    picture: dict[str, Any] | None = None
    history: str = ""
    item: str = ""


@dataclass(slots=True)
class Ending:
    """A program that ended its process, under process isolation.

    ``kind`` is ``crash`` or ``timeout``, ``how`` says it in words. ``op`` is the operation that did not return (-1
    before the first, the program's length while the subject was closed). ``program`` is the program's JSON form,
    made small; ``stack`` the innermost Python frames; ``repeats`` how many re-runs of it ended the same way;
    ``times`` how many programs of the item ended so: in the same kind of operation; ``history`` the text of what was
    recorded up to there; ``number`` counts the crashes and the timeouts of an item, each from 1.
    """

    kind: str
    how: str
    op: int
    program: dict[str, Any]
    stack: list[str] = field(default_factory=list)
    repeats: str = "deterministic"
    programs_before: int = 0
    times: int = 1
    history: str = ""
    number: int = 1


@dataclass(slots=True)
class Coverage:
    """How many failure points were reached, and how many of them covered.

    Those of one failure, and those of a second one inside the undo that the first provokes: these are known only
    where the first was covered.
    """

    reached: int = 0
    covered: int = 0
    undo_reached: int = 0
    undo_covered: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def text(self) -> str:
        """In words."""
        return (
            f"{self.covered:,} of {self.reached:,} failure points covered; of those of a second failure inside the undo"
            f" {self.undo_covered:,} of {self.undo_reached:,}"
        )


@dataclass(slots=True)
class ItemResult:
    """One exploration or scenario, or a share of failure points, run on one subject over one driver.

    ``executed`` counts programs, and so does ``planned``, but for kind ``points``, where it counts failure points: each
    takes a program, and so do those that they are derived from. ``state`` is ``done``, ``stopped`` (interrupted),
    ``crash``, ``timeout`` or ``unavailable`` (no such driver here). ``unknown`` maps an invariant to what
    broke its checker; ``untested`` maps an invariant to why this item could not exercise it. ``endings`` has
    the first program of each way in which a process ended. ``points`` is there for failure points alone.
    """

    item: str
    kind: str
    contract: str
    subject: str
    driver: str
    planned: int
    executed: int = 0
    state: str = "done"
    witnesses: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    untested: dict[str, str] = field(default_factory=dict)
    endings: list[Ending] = field(default_factory=list)
    seconds: float = 0.0
    points: Coverage | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a worker to hand to its controller."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ItemResult:
        """The inverse of `to_json`."""
        failures = [Failure(**failure) for failure in data["failures"]]
        endings = [Ending(**ending) for ending in data["endings"]]
        points = Coverage(**data["points"]) if data["points"] else None
        return cls(**{**data, "failures": failures, "endings": endings, "points": points})
