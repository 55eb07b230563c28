"""A subject in another process: its factory and its calls become requests, its driver calls are made here."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from vmm_conformance.contracts import Driver
from vmm_conformance.running.ended import CRASH, TIMEOUT, Ended
from vmm_conformance.running.proc.allocator import ProcAllocator
from vmm_conformance.running.proc.messages import CONTRACTS, PROTOCOL, VERSION, Unfit, carry_out, refusal
from vmm_conformance.running.proc.process import SubjectProcess

STARTING: Final = 120.0
"""Seconds that a process may take to start and to say what it is."""
MOST_CALLS: Final = 100_000
"""Driver calls that a subject may ask for before it answers one request."""


class CommandError(ValueError):
    """A command that cannot be a subject; the message says why."""


class ProcSubject:
    """What ``proc:COMMAND`` stands for. The process is started at once, and anew after it ended or was ended.

    ``patience`` are the seconds that each of its lines may take. Raises `CommandError`, or `Ended` where the
    process does not even say what it is.
    """

    def __init__(self, command: str) -> None:
        self._command = _split(command)
        self.patience = 60.0
        self._process: SubjectProcess | None = None
        self._numbers = count(1)
        _known.add(self)
        try:
            self.name, self.version, self.capabilities = _described(self._ready())
        except CommandError:
            self.close()
            raise

    def allocator(self, driver: Driver, device: int) -> ProcAllocator:
        """The contract's factory."""
        ask = partial(self._ask, driver, next(self._numbers))
        ask("open", device=device, devices=driver.device_count)
        return ProcAllocator(ask)

    def _ask(self, driver: Driver, number: int, do: str, **arguments: Any) -> Any:
        return self.ask({"do": do, "allocator": number, **arguments}, driver)

    def ask(self, request: Mapping[str, Any], driver: Driver) -> Any:
        """What the subject returns, after the driver calls that it asks for.

        Raises what it refuses with, or `Ended`; then its process is not asked again.
        """
        if self._process is None or self._process.owner != os.getpid():
            self._ready()
        message = self._exchange(request, driver, self.patience)
        if "return" in message:
            return message["return"]
        try:
            refused = refusal(str(request["do"]), message)
        except Unfit as error:
            raise self._ended(CRASH, str(error)) from None
        raise refused

    def _ready(self) -> Any:
        """Start a process; what it says of itself."""
        self.close()
        self._process = SubjectProcess(self._command)
        message = self._exchange({"do": "start", "protocol": PROTOCOL, "version": VERSION}, None, STARTING)
        if "return" not in message:
            raise self._ended(CRASH, f"refused to start: {message['refuse']!r:.60} {message.get('message', '')!r:.200}")
        return message["return"]

    def _exchange(self, request: Mapping[str, Any], driver: Driver | None, patience: float) -> dict[str, Any]:
        """The answer to ``request``. A process that owes one, whatever the reason, is not gone on with."""
        process, answered = self._process, False
        assert process is not None
        try:
            process.send(request, patience)
            for _ in range(MOST_CALLS):
                message = process.receive(patience)
                if "call" not in message:
                    answered = True
                    return message
                process.send(self._called(message, driver), patience)
            raise self._ended(TIMEOUT, f"asked for {MOST_CALLS:,} driver calls without an answer to {request['do']}")
        finally:
            if not answered:
                self.close()

    def _called(self, message: Mapping[str, Any], driver: Driver | None) -> dict[str, Any]:
        try:
            if driver is None:
                raise Unfit("asked for a driver call before there was a driver: say first what you are")
            return carry_out(message, driver)
        except Unfit as error:
            raise self._ended(CRASH, str(error)) from None

    def _ended(self, kind: str, how: str) -> Ended:
        process, self._process = self._process, None
        assert process is not None
        return process.ended(kind, how)

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


_known: Final[weakref.WeakSet[ProcSubject]] = weakref.WeakSet()


def be_patient(subject: object, seconds: float) -> None:
    """Let a subject in another process take so long for a line; of others it is no business."""
    if isinstance(subject, ProcSubject):
        subject.patience = seconds


@atexit.register
def end_all() -> None:
    """End the processes of all subjects; one that is asked again starts anew."""
    for subject in list(_known):
        subject.close()


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"the command {command!r} cannot be split into words: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise CommandError(f"there is no program {words[0] if words else ''!r}; give proc:COMMAND, as in a shell")
    return words


_FLAG: Final = ("true or false", lambda value: type(value) is bool)
_DECLARED: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    **dict.fromkeys(("grow", "shrink", "trim", "late_peers", "statistics", "captures"), _FLAG),
    "pause": ("a list of backup and discard", lambda value: _listed(value, lambda way: way in ("backup", "discard"))),
    "deallocate": ("stream or immediate", lambda value: value in ("stream", "immediate")),
    "segment": ("a number of bytes", lambda value: type(value) is int and value >= 0),
    "spaces": ("a list of memory spaces", lambda value: _listed(value, lambda space: type(space) is int) and value),
}


def _listed(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(fits(item) for item in value)


def _described(said: Any) -> tuple[str, str, dict[str, Any]]:
    """Name, version and capabilities. Raises `CommandError`."""
    said = said if isinstance(said, dict) else {}
    name, version, declared = said.get("name"), said.get("version", ""), said.get("capabilities", {})
    if not (isinstance(name, str) and name and isinstance(version, str) and isinstance(declared, dict)):
        raise CommandError(f"it said of itself {said!r:.80}; a name, a version and capabilities were expected")
    if said.get("contracts") != list(CONTRACTS):
        raise CommandError(f"it has the contracts {said.get('contracts')!r:.60}, accepted: {list(CONTRACTS)}")
    for key, value in declared.items():
        says, fits = _DECLARED.get(key, ("", None))
        if fits is None:
            raise CommandError(f"it declares {key!r:.40}, accepted: {', '.join(_DECLARED)}")
        if not fits(value):
            raise CommandError(f"it declares {key} as {value!r:.60}, which must be {says}")
    return name, version, {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
