"""Lets calls that others make on an emulated library be seen: they take the way over a recorded view of the driver.

An allocator that calls the vendor's library by itself (cuda.core, a ctypes client, native code) knows nothing of the
driver that it is tested over. With a detour its calls go to the recorded view first, which records them and lets
failures strike, and which makes them on the emulated driver; that makes them on the library again, and this time they
are the driver's own and go through:

    allocator --> library --> recorded view --> emulated driver --> binding --> library --> host driver
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.contracts import Driver

MEMORY: Final = frozenset({"reserve", "address_free", "create", "retain", "release", "map", "unmap", "set_access"})
PLAIN: Final = frozenset({"alloc", "free", "device_synchronize"})
BY_STREAM: Final = frozenset({"stream_destroy", "stream_synchronize", "stream_query"})
BY_EVENT: Final = frozenset({"event_destroy", "event_synchronize", "event_query"})
BY_BOTH: Final = frozenset({"stream_wait_event", "event_record"})
MAKING: Final = frozenset({"stream_create", "event_create"})
SEEN: Final = MEMORY | PLAIN | BY_STREAM | BY_EVENT | BY_BOTH | MAKING
"""The calls that take the detour. Copies, fills and graphs are carried out, and not seen."""


class OwnCalls:
    """A binding's calls; while one of them is being made, what reaches the library is the driver's own."""

    def __init__(self, calls: Any, own: OwnDepth) -> None:
        self._calls = calls
        self._own = own

    def __getattr__(self, name: str) -> Any:
        """A call, made when it is first asked for; what is no call is handed on."""
        found = getattr(self._calls, name)
        if callable(found):
            found = self._marked(found)
            self.__dict__[name] = found
        return found

    def _marked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        own = self._own

        def marked(*arguments: Any, **named: Any) -> Any:
            own.depth += 1
            try:
                return call(*arguments, **named)
            finally:
                own.depth -= 1

        return marked


class OwnDepth(threading.local):
    """How deep a thread is in calls that are the driver's own, and whether what they create may be shared."""

    depth = 0
    shareable = False


class Detour:
    """Stands in for the driver behind a library. ``view`` records; ``knows`` tells whether it knows a stream.

    Streams and events have other numbers outside of the library: ``offset`` more. The default streams, which nobody
    has made, are known to the library alone, and waits for them are not seen.
    """

    def __init__(self, under: Driver, view: Driver, own: OwnDepth, knows: Callable[[int], bool], offset: int) -> None:
        self._under: Any = under
        self._view: Any = view
        self._own = own
        self._knows = knows
        self._offset = offset

    def __getattr__(self, name: str) -> Any:
        """A call of the driver, as a closure that is made once."""
        inner = getattr(self._under, name)
        if name == "create_shareable":
            return self._create_shareable
        if name == "create":
            inner = self._create
        if name not in SEEN:
            return inner
        own, outer = self._own, self._outer(name, inner)

        def either(*arguments: Any, **named: Any) -> Any:
            return (inner if own.depth else outer)(*arguments, **named)

        self.__dict__[name] = either
        return either

    def _create_shareable(self, size: int, *, device: int = 0) -> int:
        """To the view it is a ``create`` like any other; on its way back it is told apart."""
        own, view = self._own, self._view
        if own.depth:
            return int(self._under.create_shareable(size, device=device))
        own.shareable = True
        try:
            return int(view.create(size, device=device))
        finally:
            own.shareable = False

    def _create(self, size: int, **named: int) -> int:
        if self._own.shareable:
            return int(self._under.create_shareable(size, device=named.get("device", 0)))
        return int(self._under.create(size, **named))

    def _outer(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """The call on the view, with the numbers that it knows things by."""
        call: Callable[..., Any] = getattr(self._view, name)
        shift, knows = self._offset, self._knows
        if name in MAKING:
            return lambda *arguments, **named: call(*arguments, **named) - shift
        if name in BY_EVENT:
            return lambda event: call(event + shift)
        if name in BY_STREAM:
            return lambda stream: call(stream + shift) if knows(stream + shift) else inner(stream)
        if name == "event_record":
            return lambda event, stream: (
                call(event + shift, stream + shift) if knows(stream + shift) else inner(event, stream)
            )
        if name == "stream_wait_event":
            return lambda stream, event: (
                call(stream + shift, event + shift) if knows(stream + shift) else inner(stream, event)
            )
        return call
