"""The process of a subject: lines to it and from it, with a watch kept over it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from vmm_conformance.history.events import Event
from vmm_conformance.running import dying, journal
from vmm_conformance.running.ended import CRASH, TIMEOUT, Ended
from vmm_conformance.running.proc.messages import LONGEST, Unfit, parse, shortened

_CHUNK: Final = 1 << 16
_TOLD_LINES, _TOLD_BYTES = 6, 4096
_ENDING: Final = 2.0
_LOOKING: Final = 0.25


class SubjectProcess:
    """One process, in a session of its own so that what it starts ends with it.

    Whatever it does but answer ends it, and raises `Ended` with the last lines of its standard error.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.owner = os.getpid()
        boot = [sys.executable, "-I", "-S", dying.__file__, str(self.owner), *command]
        self._process = subprocess.Popen(
            boot, bufsize=0, start_new_session=True, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._to, self._from, self._errors = (_unblocked(stream) for stream in streams)
        self._held, self._told = bytearray(), bytearray()
        self._mute = self._closed = self._asked = False

    @property
    def pid(self) -> int:
        """The process' id."""
        return self._process.pid

    def send(self, message: Mapping[str, Any], patience: float) -> None:
        """One line to it. It has to be silent: it speaks when it is asked.

        Before the first line nobody knows whether it has: how fast it starts decides.
        """
        self._listen()
        if self._held and self._asked:
            raise self.ended(CRASH, f"spoke before it was asked: {shortened(bytes(self._held))}")
        self._asked = True
        left = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        until = time.monotonic() + patience
        while left:
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                self._wait(until, patience, select.POLLOUT)
            except BrokenPipeError:
                self._listen()
                raise self._gone() from None

    def receive(self, patience: float) -> dict[str, Any] | Event:
        """The message, or the call that it reports, that it sends next, in at most ``patience`` seconds."""
        until = time.monotonic() + patience
        seen = 0
        while (end := self._held.find(b"\n", seen)) < 0:
            seen = len(self._held)
            if seen > LONGEST:
                raise self.ended(CRASH, f"sent a line of more than {LONGEST:,} bytes: {shortened(self._beginning())}")
            self._wait(until, patience, select.POLLIN)
            self._listen()
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        try:
            return parse(line)
        except Unfit as error:
            raise self.ended(CRASH, str(error)) from None

    def _wait(self, until: float, patience: float, events: int) -> None:
        """Return when it can be read from or written to, or has told something on its standard error."""
        poll = select.poll()
        poll.register(self._to if events == select.POLLOUT else self._from, events)
        if not self._mute:
            poll.register(self._errors, select.POLLIN)
        left = until - time.monotonic()
        ready = poll.poll(1000 * min(max(left, 0), _LOOKING))
        self._hear()
        if not ready and self._process.poll() is not None:  # and what it started keeps its output open
            raise self._gone()
        if left <= 0:
            what = "read" if events == select.POLLOUT else "sent"
            raise self.ended(TIMEOUT, f"{what} no line for {patience:g} s{self._inside()}")

    def _hear(self) -> None:
        """Take in what it told on its standard error."""
        while not self._mute and (told := _read(self._errors)) is not None:
            self._mute = not told
            self._told += told
            del self._told[:-_TOLD_BYTES]

    def _listen(self) -> None:
        """Take in what it has sent, without waiting."""
        if len(self._held) <= LONGEST and (sent := _read(self._from)) is not None:
            self._held += sent
            if not sent:
                raise self._gone()

    def _gone(self) -> Ended:
        """It has closed its output, as a process does that ends."""
        try:
            how = dying.ended_how(self._process.wait(_ENDING))
        except subprocess.TimeoutExpired:
            how = "closed its standard output"
        return self.ended(CRASH, how + self._inside())

    def _inside(self) -> str:
        return f", in the middle of the line {shortened(self._beginning())}" if self._held else ""

    def ended(self, kind: str, how: str) -> Ended:
        """End it; the error to raise."""
        self._hear()
        self.close()
        lines = self._told.decode("utf-8", "replace").splitlines()
        return Ended(kind, how, journal.now(), tuple(lines[-_TOLD_LINES:]))

    def _beginning(self) -> bytes:
        return bytes(self._held[:100])

    def close(self) -> None:
        """End it, and whatever it started, at once; a process that was forked from its owner leaves it alone."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() == self.owner:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._process.stderr):
            if file is not None:
                file.close()


def _unblocked(stream: IO[bytes] | None) -> int:
    """The number of a pipe, whose reads and writes do not wait from now on."""
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream.fileno()


def _read(file: int) -> bytes | None:
    """What is there; None if nothing is, empty if nothing will ever be."""
    try:
        return os.read(file, _CHUNK)
    except BlockingIOError:
        return None
