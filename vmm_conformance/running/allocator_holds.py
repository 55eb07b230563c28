"""Work that the caller of an allocator holds back: what waits for it waits for ever."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import Driver, capability
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.running.allocator_parts import OK, skipped
from vmm_conformance.running.outcome import Outcome
from vmm_conformance.running.recorder import Recorder

ALWAYS: Final = frozenset({"allocate", "deallocate"})
"""The calls that every allocator has."""
HELD_OVER: Final = ALWAYS | {"grow", "shrink", "trim", "statistics", "enable_peer"}
"""The calls that must not wait for queued work, unless memory is short or the subject declares it (ALLOCATOR-21)."""


def holding(driver: Driver) -> HoldingDriver | None:
    """``driver``, if it holds streams and refuses a wait for one at once: on a device it would really hang."""
    held: object = driver
    refuses = not driver.real and not driver.capabilities.unmap_waits
    return held if refuses and isinstance(held, HoldingDriver) else None


def never_over(subject: Any, driver: Driver) -> str:
    """Why nothing is ever held back over a call of ``subject``; empty if it may be."""
    if holding(driver) is None:
        return "no work can be held back on this driver"
    waits = tuple(capability(subject, "waits"))
    optional = {"enable_peer": "late_peers"}
    has = {call for call in HELD_OVER - ALWAYS if capability(subject, optional.get(call, call))} | ALWAYS
    return f"the subject declares waits={', '.join(waits)}, and has no other call" if has <= set(waits) else ""


class Holds:
    """The streams that are held. Notes ``held`` and ``let_go`` name them."""

    def __init__(self, recorder: Recorder, subject: Any) -> None:
        immediate = capability(subject, "deallocate") == "immediate"
        self._driver = None if immediate else holding(recorder.driver)
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
