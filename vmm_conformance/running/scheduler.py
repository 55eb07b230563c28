"""Host threads that run one at a time, and change over only where a program says.

A running thread passes *points*: before it calls the driver, and before it takes a lock. It hands over
to another thread at the points that the program's *turns* name, when it blocks on a lock, and when it
ends. When a lock that another thread waits for is given back, that thread goes on at that very moment.
So a lock that is given back too early, or state that is not looked at again after a wait, shows every time.

Locks must be visible for that (`vmm_conformance.running.threads.visible_locks`).
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Sequence
from typing import Final

from vmm_conformance.programs.turns import AT_WAIT

_RealCondition = threading.Condition
_RealLock = threading.Lock

WAITS: Final = frozenset(
    {"event_synchronize", "stream_synchronize", "device_synchronize", "event_query", "stream_query"}
)
"""The driver calls in which a thread waits for the device, or asks whether it must."""

PATIENCE: Final = 30.0
"""Seconds without any point after which a thread is taken to hang on a lock that cannot be seen: see `Unseen`."""


class Abandoned(BaseException):
    """Ends a thread whose lock is never given back."""


class Unseen(BaseException):
    """A watchdog has found that no thread goes on: one hangs on a lock that the scheduler does not see.

    It is no verdict on the subject, and so no exception that a subject or a runner might take for one of its own: the
    item ends as unknown, with these words. No run that comes to its end depends on the watchdog.
    """


class Scheduler:
    """Thread 0 is the one that starts the others. ``acquired`` counts visible acquires by any thread.

    ``on_blocked(thread, holder_at)`` is called when a thread blocks on a lock; ``holder_at`` is the point at
    which thread 0 stands then, or for thread 0 itself the other thread.
    """

    def __init__(self, on_blocked: Callable[[int, str], object] = lambda thread, holder_at: None) -> None:
        self.acquired = 0
        self._on_blocked = on_blocked
        self._turn = _RealCondition(_RealLock())
        self._numbers: dict[int, int] = {}
        self._alive: set[int] = {0}
        self._running = 0
        self._waits_for: dict[int, object] = {}
        self._at: dict[int, str] = {}
        self._doomed: set[int] = set()
        self._given_up: set[int] = set()
        self._started = 0
        self._turns: list[int] = []
        self._left: int | None = None

    # -- for whoever starts threads

    def together(self, bodies: Sequence[Callable[[], None]], turns: Sequence[int] = ()) -> bool:
        """Run all ``bodies``: the first on the calling thread, each other on its own.

        ``turns`` are the stretches in the order in which they come, whoever runs: as many points are passed
        before the next thread goes on, or `AT_WAIT`. When they are used up, stretches have no end. Returns
        whether every thread ended by itself.
        """
        first, *others = bodies
        for body in others:
            self._prepare(body)
        self._turns = list(turns)
        self._left = self._turns.pop(0) if self._turns else None
        try:
            first()
        finally:
            self._left, self._turns = None, []
            ended = self.finish()
        return ended

    def start(self, body: Callable[[], None]) -> None:
        """Run ``body`` on another thread, now, until it blocks or ends."""
        self._switch(self._prepare(body))

    def finish(self) -> bool:
        """Thread 0 is done: let the others end. Returns whether each ended by itself."""
        all_ended = True
        while len(self._alive) > 1:
            number = next((n for n in sorted(self._alive) if n and n not in self._waits_for), None)
            if number is None:
                number = max(self._alive)
                self._doomed.add(number)
                all_ended = False
            self._switch(number)
        return all_ended

    @property
    def blocked(self) -> bool:
        """Whether a thread waits for a lock."""
        return bool(self._waits_for)

    @property
    def given_up(self) -> bool:
        """Whether the calling thread was abandoned and is on its way out."""
        return self._me() in self._given_up

    # -- for what the threads run

    def point(self, kind: str) -> None:
        """The running thread is about to do ``kind``: a driver call, or ``lock``."""
        if self._left is None:
            return
        if self._left == AT_WAIT:
            due = kind in WAITS
        else:
            due = self._left <= 0
            self._left -= 1
        if due:
            self._at[self._me()] = kind
            self._hand_over()
            if self._left is not None and self._left > 0:
                self._left -= 1  # the point at which it stood is the first that it passes now

    def released(self, lock: object) -> None:
        """A lock was given back; a thread that waits for it goes on now."""
        me = self._me()
        for number, wanted in self._waits_for.items():
            if wanted is lock and number != me:
                del self._waits_for[number]
                self._at[me] = "release"
                self._switch(number)
                return

    def block(self, lock: object) -> None:
        """The calling thread cannot have ``lock``: others go on until it is given back.

        Raises `Abandoned` if that never happens, and ``RuntimeError`` where every thread would wait.
        """
        me = self._me()
        other = self._runnable(me)
        if other is None:
            raise RuntimeError("deadlock: the only running thread waits for a lock that nobody will give back")
        self._on_blocked(me, self._at.get(0 if me else other, ""))
        self._waits_for[me] = lock
        self._at[me] = "lock"
        self._next_turn()
        try:
            self._switch(other)
        finally:
            self._waits_for.pop(me, None)

    # -- changing over

    def _me(self) -> int:
        return self._numbers.get(threading.get_ident(), 0)

    def _runnable(self, me: int) -> int | None:
        """The next thread behind ``me``, round about, that waits for no lock."""
        able = sorted(n for n in self._alive if n != me and n not in self._waits_for)
        return next((n for n in able if n > me), able[0] if able else None)

    def _next_turn(self) -> None:
        self._left = self._turns.pop(0) if self._turns else None

    def _hand_over(self) -> None:
        self._next_turn()
        other = self._runnable(self._me())
        if other is not None:
            self._switch(other)

    def _prepare(self, body: Callable[[], None]) -> int:
        """A new thread that waits for its first turn."""
        self._started += 1
        number = self._started
        self._alive.add(number)

        def run() -> None:
            self._numbers[threading.get_ident()] = number
            try:
                self._await_turn(number)
                body()
            except (Abandoned, Unseen):
                pass
            finally:
                self._end(number)

        # Not threading.Thread: it is built of the very locks that are replaced while a program runs.
        _thread.start_new_thread(run, ())
        return number

    def _end(self, number: int) -> None:
        """The thread's last act: somebody else goes on, thread 0 if all others wait for locks."""
        del self._numbers[threading.get_ident()]
        self._alive.discard(number)
        self._at.pop(number, None)
        other = self._runnable(number)
        if other is None:  # what thread 0 waits for is never given back
            other = 0
            self._doomed.add(0)
        self._next_turn()
        with self._turn:
            self._running = other
            self._turn.notify_all()

    def _switch(self, to: int) -> None:
        me = self._me()
        with self._turn:
            self._running = to
            self._turn.notify_all()
        self._await_turn(me)

    def _await_turn(self, me: int) -> None:
        with self._turn:
            if not self._turn.wait_for(lambda: self._running == me, PATIENCE):
                raise Unseen(
                    f"thread {self._running} has reached no point for {PATIENCE} s; a subject whose locks are not made "
                    "through the module threading must declare the capability scheduled=False"
                )
        if me in self._doomed:
            self._doomed.discard(me)
            if me:
                self._given_up.add(me)
                raise Abandoned
            raise RuntimeError("deadlock: a thread has ended without giving back a lock that is waited for")
