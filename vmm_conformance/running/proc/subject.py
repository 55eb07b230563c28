"""A subject in another process: its factories and its calls become requests.

Driver calls that it asks for are made here; those that it has made itself it reports, and they are recorded.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, cast

from vmm_conformance.contracts import CONTRACTS, Driver, DriverError, DriverOptions, ExecuteFailed, SubjectError
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.history.events import CRASHED, Event
from vmm_conformance.running.ended import CRASH, TIMEOUT, Ended
from vmm_conformance.running.proc.described import ASKED, REPORTED, CommandError, described
from vmm_conformance.running.proc.elsewhere import Elsewhere
from vmm_conformance.running.proc.messages import (
    PROTOCOL,
    VERSION,
    Unfit,
    arguments_of,
    carry_out,
    refusal,
)
from vmm_conformance.running.proc.process import SubjectProcess
from vmm_conformance.running.proc.remote import REMOTES, Remote
from vmm_conformance.running.proc.spoken import CALLBACKS, DRIVERLESS
from vmm_conformance.running.recorded import RecordedDriver

__all__ = ["CommandError", "ProcSubject", "be_patient", "end_all"]

STARTING: Final = 120.0
"""Seconds that a process may take to start and to say what it is."""
MOST_CALLS: Final = 100_000
"""Driver calls that a subject may ask for or report before it answers one request."""
EXECUTE: Final = "EXECUTE_FAILED"
"""What a subject refuses a step with whose execution has failed."""


class Asked(NamedTuple):
    """Whom a request is made for: the driver that calls go to, if there is one, and further calls by name."""

    driver: Driver | None = None
    callbacks: Mapping[str, Callable[..., object]] = {}


class ProcSubject:
    """What ``proc:COMMAND`` stands for. The process is started at once, and anew after it ended or was ended.

    ``patience`` are the seconds that each of its lines may take. It offers the factories of the contracts that it says
    it has. With ``emulate`` (cuda or hip) it is a Python program on that emulated library, and its calls there are
    reported for it. Raises `CommandError`, or `Ended` where the process does not even say what it is.
    """

    def __init__(self, command: str, emulate: str = "") -> None:
        self._command = _split(command)
        self._environment = _watched(emulate) if emulate else None
        self.patience = 60.0
        self._process: SubjectProcess | None = None
        self._numbers = count(1)
        self._failed: Exception | None = None
        self._finalizer = weakref.finalize(self, tuple)
        _known.add(self)
        try:
            self._is = described(self._ready())
            if emulate and self._is.calls != REPORTED:
                raise CommandError(f"on an emulated library its driver calls are reported, it says {self._is.calls}")
        except CommandError:
            self.close()
            raise
        self.name, self.version, self.capabilities = self._is.name, self._is.version, self._is.capabilities

    def __getattr__(self, name: str) -> Any:
        """The factory of a contract that it says it has."""
        found = self.__dict__.get("_is")
        for contract in found.contracts if found else ():
            if CONTRACTS[contract] == name:
                return partial(self._open, contract, *([None] if contract in DRIVERLESS else []))
        raise AttributeError(f"a subject in another process has no {name!r}")

    def missing(self, driver: str) -> str:
        """Why it cannot be run over a driver of that name."""
        if self._is.calls == ASKED:
            return f"{self.name} asks for its driver calls: use another driver than {OWN}" if driver == OWN else ""
        return "" if driver == OWN else f"{self.name} makes its driver calls by itself: use the driver {OWN}"

    def own_driver(self, options: DriverOptions) -> Driver:
        """The caller's side of the driver that it has in its process, whatever ``options`` ask for."""
        if self._is.device is None:
            raise CommandError(self.missing(OWN))
        return cast(Driver, Elsewhere(self._is.device, self._for_caller))

    def _for_caller(self, do: str, **arguments: int) -> int:
        """What is done there for the caller. Its calls are the caller's, and the caller has recorded them."""
        try:
            answer = self.ask({"do": do, **arguments}, Asked())
        except (SubjectError, DriverError) as error:
            raise self._ended(CRASH, f"refused {do} for the caller: {error}") from None
        if do == "stream_create" and type(answer) is not int:
            raise self._ended(CRASH, f"returned {answer!r:.60} for stream_create, where a number was expected")
        return cast(int, answer)

    def _open(self, contract: str, driver: Driver | None, given: Any) -> Remote:
        """The factory of a contract: ``given`` is what it takes beside the driver."""
        key, number = CONTRACTS[contract], next(self._numbers)

        def ask(do: str, callbacks: Mapping[str, Callable[..., object]], **arguments: Any) -> Any:
            return self.ask({"do": do, key: number, **arguments}, Asked(driver, callbacks))

        remote = REMOTES[contract](ask, contract)
        remote.open(driver.device_count if driver else 0, given)
        return remote

    def ask(self, request: Mapping[str, Any], asked: Asked) -> Any:
        """What the subject returns, after the driver calls that it asks for or reports.

        Raises what it refuses with, or `Ended`; then its process is not asked again.
        """
        if self._process is None or self._process.owner != os.getpid():
            self._ready()
        self._failed = None
        message = self._exchange(request, asked, self.patience)
        if "return" in message:
            return message["return"]
        if message["refuse"] == EXECUTE and self._failed is not None:
            raise self._failed
        try:
            refused = refusal(str(request["do"]), message)
        except Unfit as error:
            raise self._ended(CRASH, str(error)) from None
        raise refused

    def _ready(self) -> Any:
        """Start a process; what it says of itself."""
        self.close()
        self._process = SubjectProcess(self._command, self._environment)
        self._finalizer.detach()
        self._finalizer = weakref.finalize(self, self._process.close)
        message = self._exchange({"do": "start", "protocol": PROTOCOL, "version": VERSION}, Asked(), STARTING)
        if "return" not in message:
            raise self._ended(CRASH, f"refused to start: {message['refuse']!r:.60} {message.get('message', '')!r:.200}")
        return message["return"]

    def _exchange(self, request: Mapping[str, Any], asked: Asked, patience: float) -> dict[str, Any]:
        """The answer to ``request``. A process that owes one, whatever the reason, is not gone on with."""
        process, answered = self._process, False
        assert process is not None
        try:
            process.send(request, patience)
            for _ in range(MOST_CALLS):
                message = process.receive(patience)
                if isinstance(message, Event):
                    self._reported(message, asked)
                elif "call" not in message:
                    answered = True
                    return message
                else:
                    process.send(self._called(message, asked), patience)
            raise self._ended(TIMEOUT, f"made {MOST_CALLS:,} driver calls without an answer to {request['do']}")
        finally:
            if not answered:
                self.close()

    def _reported(self, event: Event, asked: Asked) -> None:
        """Record a call that the subject has made. Those behind no program are nobody's business."""
        if asked.driver is None:
            return
        if self._is.calls != REPORTED:
            said = f"though it says that its driver calls are {self._is.calls}"
            raise self._ended(CRASH, f"reported that it called {event.kind}, {said}")
        cast(RecordedDriver, asked.driver).enter(event)

    def _called(self, message: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
        call = message["call"]
        try:
            if isinstance(call, str) and call in asked.callbacks:
                return self._back(asked.callbacks[call], arguments_of(message, CALLBACKS[call]))
            if asked.driver is None:
                raise Unfit("asked for a driver call before there was a driver: say first what you are")
            if self._is.calls != ASKED:
                raise Unfit(f"asked for a driver call, though it says that its driver calls are {self._is.calls}")
            return carry_out(message, asked.driver)
        except Unfit as error:
            raise self._ended(CRASH, str(error)) from None

    def _back(self, callback: Callable[..., object], given: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call of the caller's. It may fail; the subject has to pass that on, and it is raised as it was."""
        try:
            callback(**given)
        except (ExecuteFailed, DriverError) as error:
            self._failed = error
            return {"error": EXECUTE, "status": CRASHED, "message": str(error)}
        return {"return": None}

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


def _watched(vendor: str) -> dict[str, str]:
    """The environment of a process whose calls on an emulated library are reported. Raises `CommandError`."""
    from vmm_conformance.drivers.emulated import EmulationUnavailable
    from vmm_conformance.drivers.emulated.build import library_path
    from vmm_conformance.sanitizing.watched import reporting_environment

    if vendor not in ("cuda", "hip"):
        raise CommandError(f"emulate={vendor} is unknown; accepted: cuda, hip")
    try:
        library_path(vendor)
    except EmulationUnavailable as error:
        raise CommandError(str(error)) from None
    return reporting_environment(os.environ, vendor)
