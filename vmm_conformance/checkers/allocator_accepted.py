"""Calls of an allocator on a driver of its own: that it accepted one does not make it legal (ALLOCATOR-2 and 8)."""

from __future__ import annotations

from vmm_conformance.checkers.allocator_calls import GIVING_BACK
from vmm_conformance.checkers.allocator_layout import USABLE
from vmm_conformance.checkers.allocator_leaks import CLOSED
from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_present import RULED, rules_of_the_present
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import DriverCapabilities, Granularity
from vmm_conformance.history.events import FIELDS, SUBJECT, Event
from vmm_conformance.history.replay import Replay, Visitor


class Accepted(Visitor):
    """Looks at each reported call while the state is as the call found it."""

    def __init__(self, replay: Replay, judge: Judge) -> None:
        header = replay.history.header
        granule, reaches = header["granularity"][0], header["reaches"]
        peers = frozenset((peer, device) for device, others in reaches.items() for peer in others)
        facts = Facts(DriverCapabilities(), len(reaches), True, peers, {(0, 0): Granularity(granule, granule)}, 0)
        self._judge = judge
        self._rules = rules_of_the_present(facts, replay.state)

    def before(self, event: Event) -> None:
        """Judge a call that was accepted."""
        if event.who != SUBJECT or event.status or event.kind not in RULED:
            return
        broken = self._rules.rule(event).refuse
        if broken:
            given = ", ".join(f"{name}={value}" for name, value in zip(FIELDS[event.kind], event.args, strict=True))
            self._judge.fail(
                CLOSED if event.kind in GIVING_BACK else USABLE, event,
                f"{event.kind}({given}) is illegal, and the subject's driver has accepted it",
                expected=f"a call that {broken[0]} allows", actual="accepted",
            )  # fmt: skip
