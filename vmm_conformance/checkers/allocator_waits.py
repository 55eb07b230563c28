"""No call waits for work that its caller holds back until the call has returned: ALLOCATOR-21."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.allocator_calls import Call, Family
from vmm_conformance.contracts import Status
from vmm_conformance.history.events import Event

WAITS = "ALLOCATOR-21"

WAITING: Final = frozenset({"stream_synchronize", "event_synchronize", "device_synchronize"})


class Waits(Family):
    """The driver refuses a wait that would never end; whoever met such a refusal would have hung on a device.

    Where memory is short an allocator has to wait for what was freed (ALLOCATOR-9), whatever its caller holds.
    """

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Judge a wait that cannot end."""
        if event.kind not in WAITING or event.status != Status.NOT_READY or event.result == "injected" or not call:
            return
        if not any(failure.status == Status.OUT_OF_MEMORY for failure in call.failures):
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
