"""Inside a watched process: emulate from its first line, judge when it ends.

What the process still holds once its main module's names are gone it has leaked: the interpreter would drop them
next, and whatever lives longer lives in somebody's cache.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from threading import Lock
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from vmm_conformance.checkers.client import Complaint, complaints
from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.emulated.streams import OFFSET
from vmm_conformance.history.events import FIELDS, SUBJECT, Event
from vmm_conformance.history.files import event_line
from vmm_conformance.running.histories import dumps
from vmm_conformance.running.watching import Place, Recording, Watch
from vmm_conformance.sanitizing.told import Told, Wrong
from vmm_conformance.sanitizing.watched import FOLDER, FORWARD, HISTORY, QUIRKS, REPORT, VENDOR

_OUTPUT: Final = 1
_OUR_FAULT: Final = 70
_STAY: Final = (ModuleType, FunctionType, BuiltinFunctionType)
_BINDINGS: Final = {"cuda": ("cuda-bindings", "cuda-core"), "hip": ("hip-python",)}


def begin() -> None:
    """Bring the library in that the environment says, and judge at exit, or say each call when it is made."""
    vendor, forward = os.environ[VENDOR], os.environ.get(FORWARD, "")
    watch = Recording(vendor, forward) if forward else Watch(vendor, make=_make(os.environ.get(QUIRKS, "")))
    if isinstance(watch, Watch) and os.environ.pop(REPORT, ""):
        os.environ.pop(VENDOR)  # what this process starts does not report
        report_calls(watch)
        return
    process = os.getpid()

    def finish() -> None:
        if os.getpid() == process:  # a fork has no driver, and nothing to tell
            _finish(watch, Path(os.environ[FOLDER]))

    atexit.register(finish)


def report_calls(watch: Watch) -> None:
    """Say each driver call on standard output when it has been made, as a line of a history; keep none.

    Where the emulation breaks, which is no fault of the program's, the process ends and says so.
    """
    events, saying = watch.history.events, Lock()

    def say(event: Event) -> None:
        line = memoryview(event_line(_as_seen(event)).encode() + b"\n")
        with saying:
            while line:
                line = line[os.write(_OUTPUT, line) :]
        events.clear()
        for error in watch.library.failures:
            text = "".join(traceback.format_exception_only(error)).strip()
            print(f"vmm-conformance: the emulation broke, which is our fault: {text}", file=sys.stderr, flush=True)
            os._exit(_OUR_FAULT)

    watch.recorder.now.seen = say


def _as_seen(event: Event) -> Event:
    """``event`` with streams by the handles that the program has for them."""

    def handle(name: str, value: Any) -> Any:
        return value + OFFSET if name == "stream" and value is not None else value

    args = tuple(map(handle, FIELDS[event.kind], event.args))
    result = handle("stream", event.result) if event.kind == "stream_create" else event.result
    return Event(event.seq, event.op, event.thread, event.who, event.kind, args, event.status, result)


def _make(quirks: str) -> Callable[[DriverOptions], Driver] | None:
    if not quirks:
        return None
    from vmm_conformance.drivers.host.quirks import quirky

    return quirky(tuple(quirks.split("+")))


def _finish(watch: Watch | Recording, folder: Path) -> None:
    _drop_names()
    try:
        history = watch.finish()
        wrong = _grouped(watch, complaints(history))
        broken = tuple("".join(traceback.format_exception_only(error)).strip() for error in watch.library.failures)
    except Exception:  # whatever breaks here must be told, and not look like a program without faults
        wrong, broken = (), (traceback.format_exc(),)
    calls = sum(event.who == SUBJECT for event in watch.history)
    missing = dict(sorted(watch.library.missing.items()))
    told = Told(os.getpid(), tuple(sys.orig_argv), watch.vendor, calls, wrong, missing, broken, _versions(watch.vendor))
    told.write(folder)
    if isinstance(watch, Recording):
        (folder / HISTORY.format(told.pid)).write_text(dumps(watch.history), "utf-8")


def _drop_names() -> None:
    """Let go of what the main module's names hold, and of the last error, as the interpreter does when it ends.

    The latest name goes first, and functions, classes and modules stay: destructors use them.
    """
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)
    main = sys.modules.get("__main__")
    names = vars(main) if main is not None else {}
    for name in reversed(list(names)):
        if not name.startswith("__") and not isinstance(names[name], (*_STAY, type)):
            names[name] = None
    gc.collect()


def _grouped(watch: Watch | Recording, found: list[Complaint]) -> tuple[Wrong, ...]:
    """Complaints of one kind with the same stacks are one, with the words of the first."""
    groups: dict[tuple[str, str, tuple[Place, ...], tuple[Place, ...]], list[Complaint]] = {}
    for complaint in found:
        stack = tuple(watch.recorder.places(complaint.finding.seq))
        cause = tuple(watch.recorder.places(complaint.cause)) if complaint.cause is not None else ()
        groups.setdefault((complaint.kind, complaint.finding.invariant, stack, cause), []).append(complaint)
    return tuple(
        Wrong(kind, invariant, same[0].finding.message, stack, cause, len(same))
        for (kind, invariant, stack, cause), same in groups.items()
    )


def _versions(vendor: str) -> dict[str, str]:
    found = {}
    for package in _BINDINGS[vendor]:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
