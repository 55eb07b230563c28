"""``vmm-conformance run --emulate|--record cuda|hip -- COMMAND``: run a program watched, and say what it did wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from vmm_conformance.reporting.text import count
from vmm_conformance.running.watching import EMULATED, Place
from vmm_conformance.sanitizing.told import Told, Wrong, own_line, read_all
from vmm_conformance.sanitizing.watched import HISTORY, watched_environment

FILE: Final = "sanitizer.json"
_PARTIAL: Final = 3
_DEPTH: Final = 8


def run(
    vendor: str, command: Sequence[str], *, quirks: str = "", forward: str = "", report: Path | None = None
) -> int:
    """Run ``command`` with every Python process in it watched, and print what is wrong.

    With ``forward``, the path of the vendor's library or ``emulated``, it runs on that, and is recorded.

    Returns its own exit status if that is not 0, else 1 if anything is wrong, 3 if nothing was watched. Raises
    `EmulationUnavailable` where the library cannot be built. With ``report`` the findings are written there too, and
    what was recorded.
    """
    from vmm_conformance.drivers.emulated import forward_source
    from vmm_conformance.drivers.emulated.build import library_path

    library_path(vendor)
    if forward:
        library_path(vendor, form=forward_source)
    with tempfile.TemporaryDirectory(prefix="vmm-conformance-") as folder:
        environment = watched_environment(os.environ, vendor, Path(folder), quirks, forward)
        status = subprocess.run(_words(command), env=environment).returncode
        told = read_all(Path(folder))
        if report is not None:
            report.mkdir(parents=True, exist_ok=True)
            for each in Path(folder).glob(HISTORY.format("*")):
                shutil.copyfile(each, report / each.name)
    print("\n".join(_lines(vendor, forward, told, status)), file=sys.stderr)
    if report is not None:
        recorded = {"recorded": vendor, "library": forward, "real": forward != EMULATED}
        _write(report, recorded if forward else {"emulated": vendor, "real": False}, command, status, told)
    return _exit_status(told, status)


def _words(command: Sequence[str]) -> list[str]:
    """A Python file may be named alone."""
    return [sys.executable, *command] if command[0].endswith(".py") else list(command)


def _exit_status(told: Sequence[Told], status: int) -> int:
    if status:
        return 128 - status if status < 0 else status
    if any(process.wrong or process.broken for process in told):
        return 1
    return 0 if any(process.calls for process in told) else _PARTIAL


def _write(
    report: Path, library: dict[str, object], command: Sequence[str], status: int, told: Sequence[Told]
) -> None:
    data = {
        "format": "vmm-conformance sanitizer", "version": 1, **library,
        "command": list(command), "status": status, "processes": [process.to_json() for process in told],
    }  # fmt: skip
    (report / FILE).write_text(json.dumps(data, indent=2) + "\n", "utf-8")


# -- what is printed


def _lines(vendor: str, forward: str, told: Sequence[Told], status: int) -> Iterator[str]:
    if forward in ("", EMULATED):
        yield f"vmm-conformance: ran on the emulated {vendor} library, which is no device"
    if forward:
        where = "that" if forward == EMULATED else forward
        yield f"vmm-conformance: calls were recorded and went on to {where}; work on the device is not judged"
    if status < 0:
        yield f"the command was ended by {signal.Signals(-status).name}; what it told before that follows, if anything"
    if not told:
        yield "no Python process told anything: it ran none with vmm-conformance installed, or none came to its end"
    for process in told:
        if process.calls or process.wrong or process.broken or process.missing:
            yield from _process(process)


def _process(process: Told) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in process.versions.items())
    yield f"process {process.pid} ({' '.join(process.command)}): {count(process.calls, 'driver call')}; {versions}"
    for wrong in process.wrong:
        yield from _wrong(wrong)
    for name, times in process.missing.items():
        yield f"  not emulated: {name}, called {count(times, 'time')}, answered NOT_SUPPORTED"
    for broken in process.broken:
        yield f"  the emulation broke, which is our fault: {broken}"
    if not process.wrong:
        yield "  nothing wrong"


def _wrong(wrong: Wrong) -> Iterator[str]:
    times = f" ({count(wrong.times, 'time')})" if wrong.times > 1 else ""
    rule = f"  [{wrong.invariant}]" if wrong.invariant else ""
    yield f"  {wrong.kind}: {wrong.message}{times}{rule}"
    line = wrong.line()
    if line is not None:
        yield f"    {'allocated' if wrong.kind == 'leak' else 'called'} by {_place(line)}"
    yield from _stack(wrong.stack)
    cause = own_line(wrong.cause)
    if cause is not None:
        yield f"    because of {_place(cause)}"
        yield from _stack(wrong.cause)


def _stack(stack: Sequence[Place]) -> Iterator[str]:
    for place in stack[:_DEPTH]:
        yield f"      {_place(place)}"


def _place(place: Place) -> str:
    return f"{place.file}:{place.line} in {place.function}"
