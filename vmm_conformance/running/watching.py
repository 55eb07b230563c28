"""Watches whatever calls an emulated library: every call in a history, with the Python stack that made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final, NamedTuple, cast

import vmm_conformance
from vmm_conformance.contracts import Driver, DriverOptions, Granularity, WorkListener
from vmm_conformance.drivers.emulated import Library, bring_in, load, vendor_options
from vmm_conformance.history.events import Event, History
from vmm_conformance.running.driver import note_granularity
from vmm_conformance.running.recorder import Recorder

_OURS: Final = os.path.dirname(vmm_conformance.__file__) + os.sep
_DEPTH: Final = 24
EMULATED: Final = "emulated"
"""In place of a library's path: the one that is emulated."""

Stack = tuple[tuple[CodeType, int], ...]
"""Innermost first: code and line."""


class Place(NamedTuple):
    """A line of some program."""

    file: str
    line: int
    function: str


def caller_stack() -> Stack:
    """Who called into the emulated library, without what is ours. Cheap: names are looked up when they are shown."""
    frame = sys._getframe(1)
    stack: list[tuple[CodeType, int]] = []
    at: Any = frame
    while at is not None and len(stack) < _DEPTH:
        code = at.f_code
        if not code.co_filename.startswith(_OURS):
            stack.append((code, at.f_lineno))
        at = at.f_back
    return tuple(stack)


class StackRecorder(Recorder):
    """A recorder that keeps the stack of each call of the subject, by the event's number."""

    def __init__(self, driver: Driver, history: History) -> None:
        self.stacks: dict[int, Stack] = {}
        super().__init__(driver, history)
        self.now.seen = self._keep

    def event(self, who: str, kind: str, args: tuple[Any, ...], status: int = 0, result: Any = None) -> Event:
        """Append one event of the harness's or the device's."""
        event = super().event(who, kind, args, status, result)
        if kind == "note":
            self._keep(event)
        return event

    def _keep(self, event: Event) -> None:
        self.stacks[event.seq] = caller_stack()

    def hear_too(self, listener: WorkListener) -> None:
        """Let ``listener`` know of work too, behind the recorder."""

        def both(work: Any) -> None:
            self._ran(work)
            listener(work)

        self.driver.listen(both)

    def places(self, seq: int) -> list[Place]:
        """The stack of an event, innermost first; empty for one that nobody's call made."""
        return [Place(code.co_filename, line, code.co_qualname) for code, line in self.stacks.get(seq, ())]


class Recording:
    """A vendor's library, with what a program asks of its memory recorded. ``real`` is its path, or ``emulated``."""

    def __init__(self, vendor: str, real: str) -> None:
        from vmm_conformance.drivers.emulated.forwarding import Forwarding

        self.vendor = vendor
        self.library = Forwarding(vendor)  # before any other of the name
        self.history = History(
            {
                "contract": "driver", "configuration": None, "options": DriverOptions(), "driver": f"recorded-{vendor}",
                "real": real != EMULATED, "capabilities": self.library.driver.capabilities, "devices": 1, "peers": (),
            }
        )  # fmt: skip
        self.recorder = StackRecorder(cast(Driver, self.library.driver), self.history)
        path = load(vendor).path if real == EMULATED else Path(real)
        self.library.start(path, self.recorder.subject, self._facts)

    def _facts(self, granularity: list[Granularity]) -> None:
        """What a history says first: of each device the granularity."""
        self.history.header["devices"] = len(granularity)
        for device, (minimum, recommended) in enumerate(granularity):
            self.recorder.note("granularity", device=device, space=0, minimum=minimum, recommended=recommended)

    def finish(self) -> History:
        """The program is over: what it still does is forwarded, and not recorded."""
        self.library.stop()
        return self.history


class Watch:
    """An emulated library over a recorded host driver. ``make`` gives the driver (a quirky one, say)."""

    def __init__(
        self, vendor: str, options: DriverOptions | None = None, make: Callable[[DriverOptions], Driver] | None = None
    ) -> None:
        from vmm_conformance.drivers.host import HostDriver

        chosen = options or vendor_options(vendor)
        self.vendor = vendor
        self.under = (make or HostDriver)(chosen)
        count = self.under.device_count
        peers = [(a, b) for a in range(count) for b in range(count) if self.under.can_access_peer(a, b)]
        self.history = History(
            {
                "contract": "driver", "configuration": None, "options": chosen, "driver": f"emulated-{vendor}",
                "real": False, "capabilities": self.under.capabilities, "devices": count, "peers": tuple(peers),
            }
        )  # fmt: skip
        self.recorder = StackRecorder(self.under, self.history)
        for device in range(count):
            for space in sorted(chosen.spaces):
                note_granularity(self.recorder, device, space)
        self.library: Library = bring_in(vendor)
        self.library.start(self.recorder.subject, listen=self.recorder.hear_too, space=min(chosen.spaces, default=0))
        self.library.notice = self._refused

    def _refused(self, call: str, status: int, detail: str) -> None:
        """The library itself refused a call."""
        self.recorder.note("refused", call=call, status=int(status), detail=detail)

    def finish(self) -> History:
        """The program is over: run what is still queued, and take the driver away."""
        gate = self.recorder.now.gate
        gate.enter()  # as calls do, ahead of the lock of the driver: what runs is recorded, and threads may go on
        try:
            for device in range(self.under.device_count):
                self.under.device_synchronize(device)
        finally:
            gate.leave()
        self.library.stop()
        return self.history

    def close(self) -> None:
        """Give the driver's memory back."""
        self.under.close()
