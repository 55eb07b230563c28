"""Work that the caller of an allocator holds back: what waits for it waits for ever."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import capability
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.running.allocator_parts import OK, skipped
from vmm_conformance.running.outcome import Outcome
from vmm_conformance.running.recorder import Recorder

HELD_OVER: Final = frozenset({"allocate", "deallocate", "grow", "shrink", "trim", "statistics", "enable_peer"})
"""The calls that must not wait for queued work, unless memory is short or the subject declares it (ALLOCATOR-21)."""


class Holds:
    """The streams that are held. Notes ``held`` and ``let_go`` name them.

    Streams are held only by drivers that refuse a wait for one at once: on a device it would really hang.
    """

    def __init__(self, recorder: Recorder, subject: Any) -> None:
        driver: object = recorder.driver
        refuses = not recorder.driver.real and not recorder.driver.capabilities.unmap_waits
        immediate = capability(subject, "deallocate") == "immediate"
        self._driver = driver if isinstance(driver, HoldingDriver) and refuses and not immediate else None
        self._recorder = recorder
        self._over = HELD_OVER - set(capability(subject, "waits"))
        self._held: list[int] = []

    def hold(self, stream: int, device: int) -> Outcome:
        """Hold ``stream`` of ``device``. Raises ``DriverError`` where it is captured."""
        if self._driver is None:
            return skipped("no work can be held back here")
        if stream not in self._held:
            self._driver.hold(stream)
            self._held.append(stream)
            self._recorder.note("held", stream=stream, device=device)
        return OK

    def let_go(self) -> None:
        """Let all go on."""
        while self._held and self._driver:
            stream = self._held.pop()
            self._driver.let_go(stream)
            self._recorder.note("let_go", stream=stream)

    def before(self, call: str) -> None:
        """Let all go on if that call may wait."""
        if call not in self._over:
            self.let_go()
