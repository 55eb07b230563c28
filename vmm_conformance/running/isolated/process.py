"""The parent's side: has a child born, asks it, watches it, and tells how it ended."""

from __future__ import annotations

import atexit
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Pipe
from pathlib import PurePath
from typing import Any, Final

from vmm_conformance.running.dying import ended_how
from vmm_conformance.running.ended import CRASH, TIMEOUT, Broke, Ended
from vmm_conformance.running.isolated.child import TELL_STACK, Answer, Request
from vmm_conformance.running.isolated.nursery import Nursery
from vmm_conformance.running.isolated.trail import trail_in
from vmm_conformance.running.journal import SIZE, Journal

FRAMES: Final = 6
"""Python frames that are kept of a child that ended."""
MAKING: Final = 120.0
"""Seconds that a child may take at least to start and to make its subject: imports are slow."""
_LOOKING: Final = 0.25
_ENDING: Final = 5.0
_STACK_ROOM: Final = 1 << 16
_FRAME: Final = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


class Child:
    """One child process, in a session of its own so that what it starts ends with it."""

    def __init__(self, nursery: Nursery) -> None:
        """Raises `Broke` where none is born."""
        self._notes, self._stack, self._trail = _shared("journal", SIZE), _shared("stack", 0), _shared("trail", 0)
        self._journal = Journal(self._notes)
        self._connection, theirs = Pipe()
        self._nursery = nursery
        self._code: int | None = None
        try:
            self.pid = nursery.bear((theirs.fileno(), self._notes, self._stack, self._trail))
        except (EOFError, OSError) as error:
            self._let_go()
            how = f"no child process was born ({type(error).__name__}); the one that starts them may have told why"
            raise Broke(how) from None
        finally:
            theirs.close()

    def ask(self, request: Request, patience: float) -> Answer:
        """The answer to ``request``. Raises `Ended` if there is none, or no journal entry for ``patience`` seconds."""
        try:
            self._connection.send(request)
            self._wait(patience)
            answer: Any = self._connection.recv()
        except (EOFError, OSError):
            raise self._with_trail(self._ended(), request) from None
        except Ended as ended:
            raise self._with_trail(ended, request) from None
        except Exception as error:  # what it sent is no message: its memory is no longer sound
            raise Ended(CRASH, f"sent what is no answer ({type(error).__name__})", self._journal.read()[1]) from None
        if not isinstance(answer, Answer):
            raise Ended(CRASH, "sent what is no answer", self._journal.read()[1])
        return answer

    def _with_trail(self, ended: Ended, request: Request) -> Ended:
        ended.trail = trail_in(self._trail) if request.whole else ""
        return ended

    def _wait(self, patience: float) -> None:
        """Return when there is something to read; the watchdog."""
        entries, since = self._journal.read()[0], time.monotonic()
        while not self._connection.poll(min(_LOOKING, patience)):
            if self._waited(0) is not None and not self._connection.poll():  # what it started holds the other end
                raise EOFError
            now, count = time.monotonic(), self._journal.read()[0]
            if count != entries:
                entries, since = count, now
            elif now - since >= patience:
                raise self._hangs(patience)

    def _hangs(self, patience: float) -> Ended:
        os.kill(self.pid, TELL_STACK)
        deadline = time.monotonic() + 1
        while not _told(self._stack) and time.monotonic() < deadline:
            time.sleep(0.01)
        return Ended(TIMEOUT, f"made no progress for {patience:g} s", self._journal.read()[1], _frames(self._stack))

    def _ended(self) -> Ended:
        try:
            code = self._waited(_ENDING)
        except (EOFError, OSError):
            how = "ended with the process that had started it, as if that had been killed"
        else:
            how = "closed its connection to the harness" if code is None else ended_how(code)
        return Ended(CRASH, how, self._journal.read()[1], _frames(self._stack))

    def _waited(self, seconds: float | None) -> int | None:
        """Its return code, once it ended; None if it does not within so many seconds."""
        if self._code is None:
            self._code = self._nursery.code(seconds)
        return self._code

    def close(self) -> None:
        """End it, and whatever it started, at once."""
        for end in (os.killpg, os.kill):  # one that was only just born has no group yet
            with suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)
        with suppress(EOFError, OSError):  # the nursery is gone, and its child with it
            self._waited(None)
        self._let_go()

    def _let_go(self) -> None:
        self._connection.close()
        self._journal.close()
        os.close(self._notes)
        os.close(self._stack)
        os.close(self._trail)


class Keeper:
    """The child of this process: started when it is needed, and after it ended once more."""

    def __init__(self) -> None:
        self._nursery: Nursery | None = None
        self._child: Child | None = None
        self.started = 0

    @property
    def pid(self) -> int | None:
        """The id of the child, if there is one."""
        return None if self._child is None else self._child.pid

    def ask(self, request: Request, patience: float) -> Answer:
        """As `Child.ask`. A child that gave no answer, or says that it is spent, is not asked again."""
        if self._child is None:
            self._child = self._fresh()
        settled = False
        try:
            answer = self._child.ask(request, patience)
            settled = not answer.spent
        finally:  # an interrupt too: the answer to this request must not be taken for that to another
            if not settled:
                self._discard()
        return answer

    def _fresh(self) -> Child:
        if self._nursery is not None and not self._nursery.alive:
            self._end_nursery()
        if self._nursery is None:
            self._nursery = Nursery()
        with self._talk():
            child = Child(self._nursery)
        self.started += 1
        return child

    def _discard(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with self._talk():
                child.close()

    @contextmanager
    def _talk(self) -> Iterator[None]:
        """With the nursery, which is of no more use if the talk was cut short, as by an interrupt."""
        try:
            yield
        except BaseException:
            self._end_nursery()
            raise

    def _end_nursery(self) -> None:
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.close()

    def close(self) -> None:
        """End the child, and the process that it came from."""
        self._discard()
        self._end_nursery()


KEEPER: Final = Keeper()
"""Of this process; its child ends with it."""
atexit.register(KEEPER.close)


def _shared(name: str, size: int) -> int:
    """A file in memory, for both."""
    file = os.memfd_create(f"vmm-{name}", 0)
    os.ftruncate(file, size)
    return file


def _told(file: int) -> str:
    return os.pread(file, _STACK_ROOM, 0).decode("utf-8", "replace")


def _frames(file: int) -> tuple[str, ...]:
    """The innermost frames of what the fault handler wrote, without folders, which differ between machines."""
    found = _FRAME.findall(_told(file))[:FRAMES]
    return tuple(f"{PurePath(path).name}:{line} in {function}" for path, line, function in found)
