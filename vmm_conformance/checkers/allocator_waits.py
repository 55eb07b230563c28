"""No call waits for work that its caller holds back until the call has returned: ALLOCATOR-21."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.allocator_calls import Call, Family, Ledger
from vmm_conformance.contracts import Status
from vmm_conformance.history.events import Event

WAITS = "ALLOCATOR-21"

WAITING: Final = frozenset(
    {"stream_synchronize", "event_synchronize", "device_synchronize", "stream_query", "event_query"}
)
"""The calls that wait, and those that do so by being asked over and over."""


def in_vain(event: Event, ledger: Ledger) -> bool:
    """Whether a wait was refused since it would never end."""
    refused = event.status == Status.NOT_READY and event.result != "injected"
    return refused and event.kind in WAITING and bool(ledger.held)


class Waits(Family):
    """The driver refuses a wait that would never end; whoever met such a refusal would have hung on a device.

    Where memory or declared address space is short an allocator has to wait for what was freed (ALLOCATOR-9),
    whatever its caller holds, and whether it asks beforehand or is refused.
    """

    def _short(self, call: Call) -> bool:
        if any(failure.status == Status.OUT_OF_MEMORY for failure in call.failures):
            return True
        wanted, device = self.ledger.wanted(call), call.device
        taken = {*self.state.handles.values(), *self.state.allocations, *(m.memory for m in self.state.mappings)}
        free = self.ledger.capacity[device] - sum(memory.size for memory in taken if memory.device == device)
        left = self.ledger.room.get(device, wanted) - self.ledger.addresses(device)
        return wanted > 0 and wanted > min(free, left)

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Judge a wait that cannot end."""
        if call and in_vain(event, self.ledger) and not self._short(call):
            held = ", ".join(str(stream) for stream, device in self.ledger.held.items() if device == call.device)
            self.judge.fail(
                WAITS, event, f"{event.kind} in {call} waits for work that the caller holds back on stream {held}: "
                "neither goes on, ever", expected="the call returns without waiting for queued work, as memory is not "
                "short", actual=f"{event.kind}({', '.join(map(str, event.args))}) would never return",
            )  # fmt: skip

    def returned(self, call: Call, event: Event) -> None:
        """A call that came back while work was held is what counts."""
        if call.device in self.ledger.held.values():
            self.judge.witness(WAITS)
