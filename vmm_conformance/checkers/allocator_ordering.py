"""Memory is not taken away, nor handed on, before its last use is over: ALLOCATOR-5, and faults."""

from __future__ import annotations

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import HARNESS, SUBJECT, Event
from vmm_conformance.history.ordering import Hazard, Race, Use
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import Mapping, Memory

USABLE, OVER = "ALLOCATOR-2", "ALLOCATOR-5"


class Lifetimes(Family):
    """Judges by order, so a fault is found on every schedule; device faults are consequences or proof.

    A witness is a block that was given back with uses still pending, and whose memory then ended or went
    to another block.
    """

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._pending: set[Mapping | Memory] = set()
        self._works: dict[int, tuple[Event, Block | None]] = {}

    def called(self, call: Call) -> None:
        """Remember what is about to be given back while work on it is pending."""
        blocks = self.ledger.on(call.device) if call.name in ("close", "pause") else [call.block] if call.block else []
        if call.name in ("deallocate", "grow", "shrink", "pause", "close"):
            self._pending.update(
                what for block in blocks for what in block.behind() if self.order.pending(what)
            )

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Judge what the call has ended."""
        for gone in self.state.ended:
            if gone in self._pending:
                self._pending.discard(gone)
                self.judge.witness(OVER)
        if event.kind != "unmap" or not self.replay.history.header.get("unmap_waits"):
            for hazard in self.order.hazards:
                self._hazard(event, hazard, call)
        if event.kind in ("launch", "copy", "fill", "write", "read"):
            self._races()

    def work(self, event: Event, block: Block | None) -> None:
        """Judge the work's order with earlier work on the same bytes."""
        if not event.status:
            self._works[event.result] = (event, block)
        self._races()

    def returned(self, call: Call, event: Event) -> None:
        """Memory that goes on to another block is a witness too."""
        if call.good and call.name == "allocate" and call.block:
            handed = self._pending & call.block.behind()
            if handed:
                self._pending -= handed
                self.judge.witness(OVER)

    def ran(self, event: Event) -> None:
        """A fault belongs to the call that took memory or rights away; else they were never there."""
        work, _, fault = event.args
        submitted, block = self._works.pop(work, (event, None))
        if not fault:
            return
        own = "what was captured" if submitted.kind == "graph_launch" else f"the subject's own work {work}"
        about = f"work {work} on {block}" if block else own
        self.judge.fail(
            OVER if event.result is not None else USABLE, submitted, f"{about} met a fault: {fault.reason}",
            expected="work submitted before the block was freed runs on the block's memory",
            actual=f"{fault.reason} at {fault.address:#x}", range=Range(fault.address, fault.size),
            cause=event.result,
        )  # fmt: skip

    def _hazard(self, event: Event, hazard: Hazard, call: Call | None) -> None:
        what, use = hazard.what, hazard.use
        self.judge.fail(
            OVER, event, f"{event.kind} in {call or 'no call'} takes away memory that {_about(use)} may still use",
            expected=f"{event.kind} after the host has seen that work on stream {use.stream} done "
            "(an event behind it, or the stream, synchronized or queried)",
            actual="nothing orders the two", range=Range(what.address, what.size), cause=use.event.seq,
        )  # fmt: skip

    def _races(self) -> None:
        for race in self.order.races:
            self._race(race)

    def _race(self, race: Race) -> None:
        first, second = race.first, race.second
        self.judge.fail(
            OVER, second.event, f"{_about(first)} and {_about(second)} use the same memory in no order",
            expected=f"memory reaches stream {second.stream} only behind its last use on stream {first.stream}",
            actual="nothing orders the two", cause=first.event.seq,
        )  # fmt: skip


def _about(use: Use) -> str:
    whose = {HARNESS: "the caller's", SUBJECT: "the subject's"}.get(use.event.who, "somebody's")
    return f"{whose} {use.event.kind} {use.event.result} of operation {use.event.op}, on stream {use.stream},"
