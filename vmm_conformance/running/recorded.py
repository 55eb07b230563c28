"""The driver as one party sees it: every call is recorded, queries of fixed facts are not.

Programs make driver calls by the hundred thousand, and recording one must cost little beside the call. So
each recorded call is a closure with all that it needs at hand, and not a method that looks it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import get_ident
from typing import Any, Final, cast

from vmm_conformance.contracts import (
    Access,
    Copy,
    Driver,
    DriverCapabilities,
    DriverError,
    Granularity,
    Live,
    Range,
    Work,
    WorkListener,
    Write,
)
from vmm_conformance.history.events import CALLS, FIELDS, SUBJECT, WORK, Event, History
from vmm_conformance.running.faults import Faults
from vmm_conformance.running.gate import Gate

Arguments = tuple[Any, ...]

WAITS: Final = frozenset({"event_synchronize", "stream_synchronize", "device_synchronize"})
"""The calls in which a device may take its time. Others are let in, but where a driver makes each call in a lock of its
own, as one with serial numbers does: what it runs meanwhile is recorded, and has its place."""
TAKING_AWAY: Final = frozenset({"unmap", "free", "set_access"})
"""The calls that a device fault can be blamed on."""


class Now:
    """What a call is recorded under: the index of the running operation, and the runner's own thread.

    ``point``, if set, is called with the kind of each of the subject's calls before it is made, and ``seen``, if set
    before the first of them, with the event of each when it is recorded. Calls are made and recorded in the ``gate``,
    so that events of threads that call at once are in the order in which the driver carried the calls out.
    """

    __slots__ = ("gate", "op", "point", "runner", "seen")

    def __init__(self) -> None:
        self.op = -1
        self.point: Callable[[str], None] | None = None
        self.seen: Callable[[Event], None] | None = None
        self.gate = Gate()
        self.runner = self.gate.runner


def _set_access(address: int, size: int, rights: Mapping[int, Access]) -> Arguments:
    return address, size, tuple(rights.items() if len(rights) == 1 else sorted(rights.items()))


def _write(destination: int, data: Any, stream: int | None) -> Arguments:
    return destination, bytes(data), stream


DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "reserve": {"alignment": 0, "hint": 0},
    "create": {"device": 0, "space": 0},
    "map": {"offset": 0},
    "alloc": {"device": 0, "space": 0},
    "mem_info": {"device": 0},
    "stream_create": {"device": 0},
    "device_synchronize": {"device": 0},
    "progress": {"count": 1},
    "event_create": {"device": 0},
    "copy": {"stream": None},
    "fill": {"stream": None},
    "write": {"stream": None},
    "read": {"stream": None},
}
"""Optional arguments by call, the last ones in ``FIELDS``: they are recorded whether they were given or not."""

_FROZEN: Final[dict[str, Callable[..., Arguments]]] = {"set_access": _set_access, "write": _write}
"""Arguments that could be changed afterwards, as they are recorded."""


def _in_lists(launch: Callable[..., Work]) -> Callable[..., Work]:
    """What can be gone through only once is used twice: by the driver, and by the record."""

    def recorded(
        stream: int, *, reads: Iterable[Range] = (), copies: Iterable[Copy] = (), writes: Iterable[Write] = ()
    ) -> Work:
        return launch(stream, reads=tuple(reads), copies=tuple(copies), writes=tuple(writes))

    return recorded


class RecordedDriver:
    """``driver`` as ``who`` sees it, recorded into ``history``. The calls of `Driver` are attributes.

    ``unrecorded`` is the driver itself. ``faults`` strike these calls; ``causes`` gets the event of each
    call that a device fault can be blamed on, by the serial number that the driver gives it.
    """

    def __init__(
        self, driver: Driver, who: str, history: History, now: Now, faults: Faults, causes: dict[int, int]
    ) -> None:
        self.unrecorded = driver
        self._who = who
        self._events = history.events
        self._now = now
        self._faults = faults
        self._causes = causes

    def __getattr__(self, kind: str) -> Any:
        """A call, made when it is first asked for: a program uses few of them."""
        if kind not in CALLS:
            raise AttributeError(f"a driver has no {kind!r}")
        call = self._recorded(kind)
        self.__dict__[kind] = call = _in_lists(call) if kind == "launch" else call
        return call

    # -- fixed facts, not recorded

    @property
    def name(self) -> str:
        return self.unrecorded.name

    @property
    def real(self) -> bool:
        return self.unrecorded.real

    @property
    def capabilities(self) -> DriverCapabilities:
        return self.unrecorded.capabilities

    @property
    def device_count(self) -> int:
        return self.unrecorded.device_count

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        return self.unrecorded.granularity(device, space)

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        return self.unrecorded.space_alignment(device, space)

    def can_access_peer(self, device: int, peer: int) -> bool:
        return self.unrecorded.can_access_peer(device, peer)

    def live(self) -> Live:
        return self.unrecorded.live()

    # -- not for who is recorded

    def listen(self, listener: WorkListener | None) -> None:
        raise TypeError("a recorded driver has its listener already: the recorder")

    def close(self) -> None:
        raise TypeError("a recorded driver is closed by whoever opened it")

    # -- recording

    def enter(self, event: Event) -> None:
        """Record a call that was made elsewhere, as one of ``who``'s under the operation that is running.

        It is of the thread that asked for it: which one made it there nobody here needs to know.
        """
        event.seq, event.op, event.who = len(self._events), self._now.op, self._who
        event.thread = int(get_ident() != self._now.runner)
        self._events.append(event)

    def _recorded(self, kind: str) -> Callable[..., Any]:
        """The call ``kind``, recorded."""
        driver: Any = self.unrecorded
        call: Callable[..., Any] = getattr(driver, kind)
        who, events, now, faults, causes = self._who, self._events, self._now, self._faults, self._causes
        pending, runner, gate = faults.pending, now.runner, now.gate
        defaults, frozen = tuple(DEFAULTS.get(kind, {}).values()), _FROZEN.get(kind)
        plain = len(FIELDS[kind]) - len(defaults)
        blamed = kind in TAKING_AWAY and hasattr(driver, "serial")
        waits = kind in WAITS and not hasattr(driver, "serial")
        call = gate.let_in(call) if waits else call
        watched, queues = who == SUBJECT, kind in WORK
        seen, append, blank = now.seen if watched else None, events.append, object.__new__

        def recorded(*args: Any, **named: Any) -> Any:
            if watched and now.point is not None:
                now.point(kind)
            thread = 0
            if get_ident() == runner:
                gate.inside = True
                held = waits or gate.shared
            else:
                thread, held = 1, True
            if held:
                gate.enter()
            try:
                if pending:
                    faults.strike(kind)
                result = call(*args, **named) if named else call(*args)
                if named or len(args) != plain:
                    given = _arguments(kind, args, named)
                else:
                    given = args + defaults if frozen is None else frozen(*args, *defaults)
                seq = len(events)
                event = blank(Event)  # its ``__init__`` would be a tenth of what recording costs
                event.seq, event.op, event.thread = seq, now.op, thread
                event.who, event.kind, event.args = who, kind, given
                event.status, event.result = 0, result.id if queues and type(result) is Work else result
                append(event)
                if seen is not None:
                    seen(event)
                if blamed:
                    causes.setdefault(driver.serial, seq)
                return result
            except DriverError as error:
                why = "injected" if error.detail == "injected" else None
                given = _arguments(kind, args, named)
                event = Event(len(events), now.op, thread, who, kind, given, error.status, why)
                append(event)
                if seen is not None:
                    seen(event)
                raise
            finally:
                if held:
                    gate.leave()
                else:
                    gate.inside = False

        return recorded


def _arguments(kind: str, args: Arguments, named: dict[str, Any]) -> Arguments:
    """All arguments of a call, in the order of ``FIELDS``, as they are recorded."""
    optional, frozen = DEFAULTS.get(kind, {}), _FROZEN.get(kind)
    given = (*args, *[named[name] if name in named else optional[name] for name in FIELDS[kind][len(args) :]])
    return given if frozen is None else frozen(*given)


def record(driver: Driver, who: str, history: History, now: Now, faults: Faults, causes: dict[int, int]) -> Driver:
    """`RecordedDriver`, as what it stands for."""
    return cast(Driver, RecordedDriver(driver, who, history, now, faults, causes))
