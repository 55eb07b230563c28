"""Lets one thread at a time make a driver call and record it, and costs a thread that is alone next to nothing.

A lock around each call would be a seventh of what recording costs. So the runner's own thread only says that it is
``inside`` a call, and looks whether the driver is ``shared``: it is so from the first call of any other thread on.
That one waits until the runner's is outside, and from then on all of them take the lock. Each side says first what it
is about, and looks then, so that one of them sees the other.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock, get_ident
from time import sleep
from typing import Any


class Gate:
    """The thread that makes it is the runner's, which alone sets ``inside``, around a call without the lock."""

    __slots__ = ("_lock", "inside", "runner", "shared")

    def __init__(self) -> None:
        self._lock = RLock()  # what a call leads to is recorded within it
        self.inside = False
        self.shared = False
        self.runner = get_ident()

    def enter(self) -> None:
        """Take the lock."""
        if get_ident() == self.runner:
            self.inside = False
            self._lock.acquire()
            return
        self._lock.acquire()
        self.shared = True
        while self.inside:
            sleep(0)

    def leave(self) -> None:
        """Give it back."""
        self._lock.release()

    def let_in(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        """``wait``, called with the lock, which others may have meanwhile: a device may take its time."""

        def waited(*args: Any, **named: Any) -> Any:
            self._lock.release()
            try:
                return wait(*args, **named)
            finally:
                try:
                    self._lock.acquire()
                except KeyboardInterrupt:  # whoever called gives it back
                    self._lock.acquire()
                    raise

        return waited
