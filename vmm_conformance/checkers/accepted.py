"""Calls on a driver that a subject has itself, and reports: that it accepted one does not make it legal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_present import RULED, rules_of_the_present
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import DriverCapabilities, Granularity
from vmm_conformance.history.events import FIELDS, SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor

GIVING_BACK = frozenset({"address_free", "release", "unmap", "free"})


class Blamed(NamedTuple):
    """The invariants of a contract that an illegal call breaks: one that gives something back, or any other."""

    giving_back: str
    taking: str


class Accepted(Visitor):
    """Looks at each reported call while the state is as the call found it.

    ``peers``: devices that can reach the memory of another, in pairs.
    """

    def __init__(
        self, replay: Replay, judge: Judge, blamed: Blamed, granule: int, devices: int,
        peers: Iterable[tuple[int, int]],
    ) -> None:  # fmt: skip
        granularity = {(0, 0): Granularity(granule, granule)}
        facts = Facts(DriverCapabilities(), devices, True, frozenset(peers), granularity, 0)
        self._judge = judge
        self._blamed = blamed
        self._rules = rules_of_the_present(facts, replay.state)

    def before(self, event: Event) -> None:
        """Judge a call that was accepted."""
        if event.who != SUBJECT or event.status or event.kind not in RULED:
            return
        broken = self._rules.rule(event).refuse
        if broken:
            given = ", ".join(f"{name}={value}" for name, value in zip(FIELDS[event.kind], event.args, strict=True))
            self._judge.fail(
                self._blamed.giving_back if event.kind in GIVING_BACK else self._blamed.taking, event,
                f"{event.kind}({given}) is illegal, and the subject's driver has accepted it",
                expected=f"a call that {broken[0]} allows", actual="accepted",
            )  # fmt: skip
