"""Subjects that take their process with them: by a wild pointer, by leaving, by a kill, or by never coming back.

They are no part of ``MUTANTS``, since what runs those is in the same process. Each does it at the third read of one
reader, and is the reference until then. A run of one needs process isolation::

    vmm-conformance run --subject vmm_reference.mutants.violent:segfault --isolation process --budget smoke

"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Final

from vmm_conformance.contracts import FlagReader, Revision, Settings
from vmm_reference.subject import reference

FATAL_READ: Final = 3
"""Which read of a reader does it."""


class _Reader:
    """The reference's reader, until it is time."""

    def __init__(self, inner: FlagReader, end: Callable[[], object]) -> None:
        self._inner = inner
        self._end = end
        self._reads = 0

    def read(self, platform: str, environment: Mapping[str, str], options: Mapping[str, str]) -> Settings:
        self._reads += 1
        if self._reads == FATAL_READ:
            self._end()
        return self._inner.read(platform, environment, options)


class Violent:
    """A subject that offers the contract ``flags``; ``kind`` is how a report must say that it ended."""

    version = "0"

    def __init__(self, name: str, kind: str, how: str, end: Callable[[], object]) -> None:
        self.name = name
        self.kind = kind
        self.how = how
        self._end = end

    def flags(self, revision: Revision) -> _Reader:
        return _Reader(reference.flags(revision), self._end)


def _segfault() -> None:
    ctypes.string_at(0)


def _leave() -> None:
    os._exit(3)


def _exit() -> None:
    raise SystemExit(4)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang() -> None:
    threading.Event().wait()


segfault: Final = Violent("segfault", "crash", "was killed by SIGSEGV", _segfault)
abort: Final = Violent("abort", "crash", "was killed by SIGABRT", os.abort)
leaves: Final = Violent("leaves", "crash", "exited with status 3", _leave)
exits: Final = Violent("exits", "crash", "exited with status 4", _exit)
killed: Final = Violent("killed", "crash", "was killed by SIGKILL", _kill)
hangs: Final = Violent("hangs", "timeout", "made no progress for 1 s", _hang)

VIOLENT: Final = (segfault, abort, leaves, exits, killed, hangs)
"""All of them. ``hangs`` says so with a timeout of 1 s."""
