"""What happened: the events of one run, as plain data.

An event is one driver call (nested under the operation that caused it), one piece of device work that
ran, or one thing the harness did. `FIELDS` says what the arguments of each kind mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

SUBJECT: Final = "subject"
HARNESS: Final = "harness"
DEVICE: Final = "device"

CRASHED: Final = -1
"""Status of a driver call that neither returned nor raised a `DriverError`; the result says what it did."""

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    # driver calls: the arguments of contracts.driver.Driver, in its order
    "reserve": ("size", "alignment", "hint"),
    "address_free": ("address", "size"),
    "create": ("size", "device", "space"),
    "retain": ("address",),
    "release": ("handle",),
    "map": ("address", "size", "handle", "offset"),
    "unmap": ("address", "size"),
    "set_access": ("address", "size", "rights"),
    "get_access": ("address", "device"),
    "address_range": ("address",),
    "mem_info": ("device",),
    "alloc": ("size", "device", "space"),
    "free": ("address",),
    "stream_create": ("device",),
    "stream_destroy": ("stream",),
    "stream_synchronize": ("stream",),
    "stream_query": ("stream",),
    "stream_wait_event": ("stream", "event"),
    "device_synchronize": ("device",),
    "progress": ("stream", "count"),
    "event_create": ("device",),
    "event_destroy": ("event",),
    "event_record": ("event", "stream"),
    "event_synchronize": ("event",),
    "event_query": ("event",),
    "copy": ("target", "source", "size", "stream"),
    "fill": ("target", "value", "size", "stream"),
    "write": ("target", "data", "stream"),
    "read": ("source", "size", "stream"),
    "launch": ("stream", "reads", "copies", "writes"),
    "graph_begin": ("stream",),
    "graph_end": ("stream",),
    "graph_instantiate": ("graph",),
    "graph_launch": ("executable", "stream"),
    "graph_destroy": ("graph",),
    "graph_exec_destroy": ("executable",),
    # device work that ran: the work's id, what it read, and the fault it met
    "ran": ("work", "data", "fault"),
    # the harness's own
    "begin": ("operation",),
    "end": ("outcome",),
    "note": ("what", "details"),
}
"""Kind of event to the names of its arguments."""

CALLS: Final = frozenset(list(FIELDS)[: list(FIELDS).index("ran")])
"""The kinds that are driver calls."""

WORK: Final = frozenset({"copy", "fill", "write", "read", "launch", "graph_launch"})
"""The calls that submit work; their result is the work's id."""


class Event:
    """One event. ``status`` is the driver's answer (0 is success); ``result`` what it returned.

    ``op`` is the index of the program's operation it belongs to (-1 before the first), ``thread`` the
    number of the host thread (0 is the runner's), ``who`` one of ``subject``, ``harness``, ``device``.
    Slotted and mutable on purpose: events are made by the hundred thousand.
    """

    __slots__ = ("args", "kind", "op", "result", "seq", "status", "thread", "who")

    def __init__(
        self,
        seq: int,
        op: int,
        thread: int,
        who: str,
        kind: str,
        args: tuple[Any, ...],
        status: int = 0,
        result: Any = None,
    ) -> None:
        self.seq = seq
        self.op = op
        self.thread = thread
        self.who = who
        self.kind = kind
        self.args = args
        self.status = status
        self.result = result

    def __getitem__(self, name: str) -> Any:
        """The argument called ``name`` in `FIELDS`. Raises ``KeyError`` if the kind has none such."""
        try:
            return self.args[FIELDS[self.kind].index(name)]
        except ValueError:
            raise KeyError(f"a {self.kind} event has no argument {name!r}, only {FIELDS[self.kind]}") from None

    def __repr__(self) -> str:
        arguments = ", ".join(f"{n}={v!r}" for n, v in zip(FIELDS[self.kind], self.args, strict=False))
        where = f"{self.seq} op{self.op} t{self.thread} {self.who}"
        return f"<{where} {self.kind}({arguments}) -> {self.status} {self.result!r}>"


_follow: Callable[[History], None] | None = None


def follow(follower: Callable[[History], None] | None) -> None:
    """Call ``follower`` with every history that is begun in this process from now on, or no more with None."""
    global _follow
    _follow = follower


@dataclass(slots=True)
class History:
    """The events of one run, and what they belong to.

    ``header`` is plain data: contract, subject, driver, seed, configuration and driver options, all
    that a checker may need to know and that did not change during the run.
    """

    header: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        if _follow is not None:
            _follow(self)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)
