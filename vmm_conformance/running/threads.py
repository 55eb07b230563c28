"""Locks whose waits can be seen, and a second thread that challenges the first.

While a subject is built and run, `visible_locks` replaces ``threading.Lock``, ``RLock`` and
``Condition``, so that a blocked acquire is an event and not a guess by time. A `Duel` then runs a
second thread from inside the first: the second runs until it blocks or ends; when the first gives
back the lock the second waits for, the second goes on at that very moment, before the first does
anything else. A lock that is released too early is thus found every time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from vmm_conformance.running.scheduler import Abandoned, Scheduler

__all__ = ["Abandoned", "Duel", "VisibleCondition", "VisibleLock", "visible_locks"]


class Duel(Scheduler):
    """The first thread and its challenger, who change over at locks alone."""

    def __init__(self, on_blocked: Callable[[], object] = lambda: None) -> None:
        super().__init__(lambda thread, holder_at: on_blocked())

    def challenge(self, body: Callable[[], None]) -> None:
        """Run ``body`` on a second thread until it ends or blocks on a visible lock."""
        self.start(body)

    def settle(self) -> bool:
        """The first thread is done. Returns whether the challenger ended by itself."""
        return self.finish()


class VisibleLock:
    """A lock (re-entrant on demand) whose waits a `Scheduler` sees."""

    def __init__(self, duel: Scheduler, *, reentrant: bool = False) -> None:
        self._duel = duel
        self._reentrant = reentrant
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As ``threading.Lock.acquire``; a timeout is taken as never expiring."""
        me = threading.get_ident()
        self._duel.point("lock")
        while self._depth and not (self._reentrant and self._owner == me):
            if not blocking:
                return False
            self._duel.block(self)
        self._owner = me
        self._depth += 1
        self._duel.acquired += 1
        return True

    def release(self) -> None:
        """As ``threading.Lock.release``."""
        if self._duel.given_up and self._owner != threading.get_ident():
            return  # on its way out, with a lock that it was never given back
        if not self._depth:
            raise RuntimeError("release unlocked lock")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._duel.released(self)

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._depth > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class VisibleCondition(VisibleLock):
    """A condition whose waits a `Scheduler` sees; as usual it is its own (re-entrant) lock."""

    def __init__(self, duel: Scheduler, lock: Any = None) -> None:
        super().__init__(duel, reentrant=True)
        self._inner = lock
        self._tickets: list[object] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock the condition was made with, or its own."""
        return bool(self._inner.acquire(blocking)) if self._inner is not None else super().acquire(blocking)

    def release(self) -> None:
        """Release the lock the condition was made with, or its own."""
        if self._inner is not None:
            self._inner.release()
        else:
            super().release()

    def wait(self, timeout: float | None = None) -> bool:
        """As ``threading.Condition.wait``; a timeout is taken as never expiring."""
        ticket = object()
        self._tickets.append(ticket)
        self.release()
        while ticket in self._tickets:
            self._duel.block(ticket)
        self.acquire()
        return True

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """As ``threading.Condition.wait_for``."""
        while not (result := predicate()):
            self.wait()
        return result

    def notify(self, n: int = 1) -> None:
        """As ``threading.Condition.notify``."""
        woken, self._tickets = self._tickets[:n], self._tickets[n:]
        for ticket in woken:
            self._duel.released(ticket)

    def notify_all(self) -> None:
        """As ``threading.Condition.notify_all``."""
        self.notify(len(self._tickets))


@contextmanager
def visible_locks(duel: Scheduler) -> Iterator[None]:
    """Replace the lock factories of ``threading`` while the block runs."""
    saved = threading.Lock, threading.RLock, threading.Condition
    visible: dict[str, Any] = {
        "Lock": lambda: VisibleLock(duel),
        "RLock": lambda: VisibleLock(duel, reentrant=True),
        "Condition": lambda lock=None: VisibleCondition(duel, lock),
    }
    for name, factory in visible.items():
        setattr(threading, name, factory)
    try:
        yield
    finally:
        for name, factory in zip(visible, saved, strict=True):
            setattr(threading, name, factory)
