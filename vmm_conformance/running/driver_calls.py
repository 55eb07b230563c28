"""Makes recorded driver calls for programs of the contract ``driver``. See `running.driver`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.contracts import FATAL, Driver, DriverError, Work
from vmm_conformance.history.events import CRASHED, DEVICE, HARNESS, SUBJECT
from vmm_conformance.history.state import State
from vmm_conformance.running.caller import TokenSource
from vmm_conformance.running.driver_ranges import Ranges
from vmm_conformance.running.recorder import Recorder

_KEYWORDS: Final[dict[str, Callable[..., Any]]] = {
    "reserve": lambda d, size, alignment, hint: d.reserve(size, alignment=alignment, hint=hint),
    "create": lambda d, size, device, space: d.create(size, device=device, space=space),
    "map": lambda d, address, size, handle, offset: d.map(address, size, handle, offset=offset),
    "set_access": lambda d, address, size, rights: d.set_access(address, size, dict(rights)),
    "alloc": lambda d, size, device, space: d.alloc(size, device=device, space=space),
    "copy": lambda d, target, source, size, stream: d.copy(target, source, size, stream=stream),
    "write": lambda d, target, data, stream: d.write(target, data, stream=stream),
    "read": lambda d, source, size, stream: d.read(source, size, stream=stream),
}
"""Calls that take some arguments by name, with all of them in the order of ``FIELDS``."""


def _is_work(result: Any) -> bool:
    return type(result) is Work


def _is_number(result: Any) -> bool:
    return isinstance(result, int)


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and len(result) == 2 and all(isinstance(number, int) for number in result)


_RESULTS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("reserve", "create", "retain", "alloc", "get_access"), _is_number),
    **dict.fromkeys(("stream_create", "graph_end", "graph_instantiate"), _is_number),
    **dict.fromkeys(("mem_info", "address_range"), _is_pair),
    **dict.fromkeys(("copy", "write", "read", "graph_launch"), _is_work),
}
"""What a call returns, where it returns anything."""


class Lost(BaseException):
    """A device met a fault, and answers nothing else in this process: what it says from now on is not to be judged."""


class Calls:
    """Makes recorded calls, and follows what the driver holds by believing its answers."""

    def __init__(self, recorder: Recorder, granule: int) -> None:
        self.recorder = recorder
        self.state = State()
        header = recorder.history.header
        peers = header["devices"] < 2 or bool(header["peers"])
        self.ranges = Ranges(self.state, granule, header["devices"], peers=peers)
        self.tokens = TokenSource()
        self.pending: dict[int, int] = {}
        self.real: bool = header["real"]
        self.error: Exception | None = None
        self.result: Any = None
        self._seen = 0

    def call(self, who: str, kind: str, *args: Any) -> int:
        """Make one call and return its status; ``result`` and ``error`` say more. Raises `Lost`."""
        recorder = self.recorder
        view: Driver = recorder.subject if who is SUBJECT else recorder.harness
        self.result = self.error = None
        status = 0
        try:
            by_name = _KEYWORDS.get(kind)
            self.result = by_name(view, *args) if by_name else getattr(view, kind)(*args)
            self._check_result(kind)
        except DriverError as error:
            status, self.error = error.status, error
        except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
            status, self.error = CRASHED, error
            self.result = None
            recorder.event(who, kind, args, CRASHED, repr(error))
        self._follow(args)
        if self.real and status in FATAL:
            raise Lost
        return status

    def _check_result(self, kind: str) -> None:
        """What is no answer at all counts as a crash; the event that the recorder made says so too."""
        valid = _RESULTS.get(kind)
        if valid is not None and not valid(self.result):
            self.recorder.history.events.pop()
            raise TypeError(f"{kind} returned {self.result!r}, which is no answer")

    def _follow(self, args: tuple[Any, ...]) -> None:
        """Take the new events into account. Work that ran at once gets its event here."""
        result = self.result
        if type(result) is Work:
            self._note_work(result, args[-1])
        events = self.recorder.history.events
        for event in events[self._seen :]:
            self.state.apply(event)
            if event.kind == "ran":
                self.pending.pop(event.args[0], None)
        self._seen = len(events)

    def _note_work(self, work: Work, stream: int | None) -> None:
        if stream is None:
            self.recorder.event(DEVICE, "ran", (work.id, work.data, work.fault))
        elif not work.done:
            self.pending[work.id] = stream

    def settle(self) -> None:
        """Wait for all work in flight."""
        for stream in set(self.pending.values()):
            self.call(HARNESS, "stream_synchronize", stream)
