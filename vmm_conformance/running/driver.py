"""Runs a program of the contract ``driver`` on a driver, which is itself the subject.

The program's calls are recorded as the subject's, and what the harness does besides (looking at what a
call may have changed, waiting for work, tearing down) as the harness's own. After each call it looks at
free memory, and at the rights and the bytes of the mappings around, so that a checker can tell which
call changed what. Notes: ``granularity`` (device, space, minimum, recommended), ``teardown`` (complete,
live), ``unusable`` (the driver could not even be made) and ``unclosed`` (error).

Where a driver answers with anything but a result or a `DriverError`, the event's status is `CRASHED`.
The harness waits for work in flight before it takes memory away: what becomes of such work is not
defined, and on a GPU it takes the process with it. On real devices it leaves out what their documents
call undefined: stale handles, and queued work that may not touch its range. A device that met a fault answers nothing
else, so the program ends there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.contracts import (
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    status_name,
)
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.contracts.sharing import SharingDriver
from vmm_conformance.drivers.opening import EMULATED
from vmm_conformance.history.events import CRASHED, HARNESS, Event, History
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.driver_actions import Actions
from vmm_conformance.running.driver_calls import Lost
from vmm_conformance.running.driver_courses import COURSES
from vmm_conformance.running.fitted import alone
from vmm_conformance.running.opened import OpenDriver
from vmm_conformance.running.outcome import Outcome, legible
from vmm_conformance.running.recorder import Recorder

_OF_HANDLES: Final = tuple(f"DRIVER-{number}" for number in (5, 23, 65, 66, 67, 68, 69, 70))
"""Invariants about what handles tell, and from the fourth on about memory that is shared."""
_OK: Final[Outcome] = {"status": "ok", "code": "", "message": ""}
_SKIPPED: Final[Outcome] = {"status": "skipped", "code": "", "message": "nothing to work on"}


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """What a fresh driver answers to ``program``: ``subject.driver(options)``, or one from ``open_driver``."""
    options = driver_options(program.configuration)
    history = History({"contract": program.contract, "configuration": program.configuration, "options": options})
    try:
        driver: Driver = getattr(subject, "driver", open_driver)(options)
        history.header.update(_facts(driver, options))
        recorder = Recorder(driver, history)
    except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
        return _with_note(history, "unusable", error)
    lost = False
    try:
        _Run(program, recorder, lambda: getattr(subject, "driver", open_driver)(options), options).all()
    except Lost:
        lost = True
    finally:
        try:
            driver.listen(None)
            driver.close()
        except Exception as error:
            if not lost:
                _with_note(history, "unclosed", error)
    return history


def _with_note(history: History, what: str, error: Exception) -> History:
    event = Event(len(history), -1, 0, HARNESS, "note", (what, {"error": f"{type(error).__name__}: {error}"}))
    history.events.append(event)
    return history


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=configuration.capacity * configuration.minimum,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        capabilities=DriverCapabilities(
            unmap_spans_mappings=configuration.unmap_spans,
            set_access_spans_mappings=configuration.access_spans,
            set_access_part_of_mapping=configuration.access_part,
            partial_map=configuration.partial_map,
            map_offset=configuration.map_offset,
            read_only_enforced=configuration.read_only,
            unmap_waits=configuration.unmap_waits,
            copy_spans_reservations=configuration.copy_across,
            sharing=configuration.sharing,
            old_codes=configuration.old_codes,
        ),
        peers=configuration.peers,
        schedule="eager" if configuration.eager else "late",
    )


def _facts(driver: Driver, options: DriverOptions) -> dict[str, Any]:
    """What the driver says of itself, for the header."""
    count = driver.device_count
    peers = tuple((a, b) for a in range(count) for b in range(count) if a != b and driver.can_access_peer(a, b))
    return {
        "driver": driver.name,
        "real": driver.real,
        "capabilities": driver.capabilities,
        "devices": count,
        "peers": peers,
        "not_applicable": _not_applicable(driver, options),
    }


def _not_applicable(driver: Driver, options: DriverOptions) -> dict[str, str]:
    """Invariants that this driver cannot break, each with the reason."""
    reasons = {
        "DRIVER-6": "a device does not tell its page sizes; `vmm-conformance probe` shows both granularities"
        if driver.real
        else "",
        **alone(driver, options, "DRIVER-56"),
        "DRIVER-75": "" if driver.capabilities.unmap_waits else "it declares that unmap does not wait",
        "DRIVER-76": "" if isinstance(driver, HoldingDriver) else "none of its streams can be held",
    }
    if not isinstance(driver, SharingDriver):
        reasons |= dict.fromkeys(_OF_HANDLES, "it has no calls for it")
    elif not driver.capabilities.sharing:
        reasons |= dict.fromkeys(_OF_HANDLES[3:], "it declares that it shares no memory")
    if driver.name in EMULATED:
        reasons["DRIVER-81"] = "its memory is this process's own, so nothing of it could outlive the process"
    return {id: reason for id, reason in reasons.items() if reason}


class _Run:
    """One program being run."""

    def __init__(
        self, program: Program, recorder: Recorder, reopen: Callable[[], Driver], options: DriverOptions
    ) -> None:
        self._program = program
        self._reopen = reopen
        self._recorder = recorder
        self._spaces = tuple(sorted(options.spaces)) or (0,)
        self._devices: int = recorder.history.header["devices"]

    def all(self) -> None:
        """The program, then the teardown, as one more operation."""
        self._granularities()
        minimum = self._minimum()
        if minimum <= 0 or minimum & (minimum - 1):
            return  # nothing can be asked for in such granules, and the checker has seen enough
        actions = Actions(self._recorder, minimum, self._spaces, self._reopen)
        actions.begin()
        for index, operation in enumerate(self._program.operations):
            self._recorder.op = index
            self._one(actions, operation)
        self._recorder.op = len(self._program.operations)
        actions.finish()
        self._granularities()

    def _granularities(self) -> None:
        """Note the granularity of each device and space."""
        for device in range(self._devices):
            for space in self._spaces:
                note_granularity(self._recorder, device, space)

    def _minimum(self) -> int:
        """The minimum granularity of device 0 in the first space, as noted; 0 if there was no answer."""
        minimum: int = self._recorder.history.events[0].args[1].get("minimum", 0)
        return minimum

    def _one(self, actions: Actions, operation: Any) -> None:
        recorder = self._recorder
        recorder.event(HARNESS, "begin", (operation,))
        if isinstance(operation, ops.Inspect):
            space = self._spaces[operation.space % len(self._spaces)]
            note_granularity(recorder, operation.device % self._devices, space)
            outcome = _OK
        else:
            course = COURSES.get(type(operation))
            status = course(actions, operation) if course else actions.perform(operation)
            outcome = _SKIPPED if status is None else self._outcome(status, actions.error)
        recorder.event(HARNESS, "end", (outcome,))

    def _outcome(self, status: int, error: Exception | None) -> Outcome:
        if status == 0:
            return _OK
        if status == CRASHED:
            return {"status": "crashed", "code": type(error).__name__, "message": legible(str(error))}
        return {"status": "refused", "code": status_name(status), "message": legible(str(error))}


def note_granularity(recorder: Recorder, device: int, space: int) -> None:
    """Note what the driver answers for ``device`` and ``space``."""
    try:
        minimum, recommended = map(operator.index, recorder.driver.granularity(device, space))
        recorder.note("granularity", device=device, space=space, minimum=minimum, recommended=recommended)
    except DriverError as error:
        recorder.note("granularity", device=device, space=space, status=error.status)
    except Exception as error:
        recorder.note("granularity", device=device, space=space, status=CRASHED, error=repr(error))
