"""What some drivers offer besides `Driver`: a stream that gets no further until it is let go."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class HoldingDriver(Protocol):
    """Streams that can be held. What waits for a held stream waits in vain, also by asking on; nothing else may."""

    def hold(self, stream: int) -> None:
        """Whatever is queued on ``stream`` from now on runs after `let_go`, and not before."""

    def let_go(self, stream: int) -> None:
        """End the hold. May be called from any thread."""
