"""Calls on a driver that a subject has itself, and reports: that it accepted one does not make it legal."""

from __future__ import annotations

from typing import NamedTuple

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_present import RULED, rules_of_the_present
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.touching import untouchable
from vmm_conformance.contracts import DriverCapabilities, Granularity
from vmm_conformance.history.events import FIELDS, SUBJECT, WORK, Event
from vmm_conformance.history.replay import Replay, Visitor

GIVING_BACK = frozenset({"address_free", "release", "unmap", "free"})


class Blamed(NamedTuple):
    """The invariants of a contract that an illegal call breaks: one that gives something back, or any other."""

    giving_back: str
    taking: str


class Accepted(Visitor):
    """Looks at each reported call while the state is as the call found it."""

    def __init__(self, replay: Replay, judge: Judge, blamed: Blamed, granule: int, devices: int) -> None:
        granularity = {(0, 0): Granularity(granule, granule)}
        facts = Facts(DriverCapabilities(), devices, True, frozenset(), granularity, 0)
        self._judge = judge
        self._blamed = blamed
        self._replay = replay
        self._rules = rules_of_the_present(facts, replay.state)

    def before(self, event: Event) -> None:
        """Judge a call that was accepted."""
        if event.who != SUBJECT or event.status:
            return
        if event.kind in WORK:
            self._touches(event)
        elif event.kind in RULED:
            self._ruled(event)

    def _touches(self, event: Event) -> None:
        """The subject's own work needs memory and rights as its caller's does."""
        order, stream = self._replay.order, event["stream"]
        launched = event.kind == "graph_launch"
        if not launched and order.capturing(stream):
            return
        device = None if stream is None else order.device(stream)
        for work in order.captured(event.args[0]) if launched else (event,):
            for _, text, mapping in untouchable(self._replay.state, work, device):
                self._judge.fail(
                    self._blamed.taking, event, f"the subject's own {work.kind} {text}",
                    expected="memory and rights behind every byte that work touches", actual="accepted",
                    cause=mapping.made if mapping else None,
                )  # fmt: skip

    def _ruled(self, event: Event) -> None:
        broken = self._rules.rule(event).refuse
        if broken:
            given = ", ".join(f"{name}={value}" for name, value in zip(FIELDS[event.kind], event.args, strict=True))
            self._judge.fail(
                self._blamed.giving_back if event.kind in GIVING_BACK else self._blamed.taking, event,
                f"{event.kind}({given}) is illegal, and the subject's driver has accepted it",
                expected=f"a call that {broken[0]} allows", actual="accepted",
            )  # fmt: skip
