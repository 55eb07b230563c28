"""Other processes that open a driver of their own, do one thing with it, and end. See `running.driver_sharing`.

A driver that only this process knows is opened again in a fork of it. A vendor's does not survive a fork, and is opened
by its name in a process that starts afresh; that one is this module, run as a program.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from vmm_conformance.contracts import Access, Driver, DriverOptions
from vmm_conformance.drivers.calls import DriverUnavailable
from vmm_conformance.drivers.opening import DRIVERS, opener

MakeDriver = Callable[[], Driver]

PATIENCE: Final = 60.0
"""Seconds that another process has."""
_MODULE: Final = "vmm_conformance.running.driver_children"
_UNAVAILABLE: Final = "unavailable"
_FAILED: Final = "failed: "
_TOKEN: Final = 8
_DEVICES: Final = 8
"""Devices that are asked for, so that each that this process may have is among them."""


def visit(driver: Any, descriptor: int, size: int, device: int, value: int) -> str:
    """Import the ``size`` bytes that are shared and write ``value`` into them; returns what was there."""
    address = driver.reserve(size)
    driver.map(address, size, driver.import_handle(descriptor))
    driver.set_access(address, size, {device: Access.READ_WRITE})
    seen: bytes = driver.read(address, _TOKEN).data[0]
    driver.write(address, value.to_bytes(_TOKEN, "little"))
    return seen.hex()


def leave(driver: Driver, device: int) -> str:
    """Take memory, use it, and leave it to the process's end; returns what was free before."""
    free = look(driver, device)
    granule = driver.granularity(device).minimum
    address = driver.reserve(granule)
    driver.map(address, granule, driver.create(granule, device=device))
    driver.set_access(address, granule, {device: Access.READ_WRITE})
    driver.write(address, bytes(_TOKEN))
    return free


def look(driver: Driver, device: int) -> str:
    """What is free, with what this process spares of it: each process finds that anew."""
    spared = getattr(driver, "spared", ())
    return str(driver.mem_info(device).free + sum(spared[device : device + 1]))


TASKS: Final[dict[str, Callable[..., str]]] = {task.__name__: task for task in (visit, leave, look)}


class Unreachable(Exception):
    """No other process can open this driver. The text says why."""


def elsewhere(
    name: str, make: MakeDriver, task: str, *numbers: int, depth: int = 1, descriptors: Sequence[int] = ()
) -> str:
    """What ``task`` answers in a child process with a driver of its own, or in the child of a child (``depth`` 2).

    ``name`` and ``make`` are those of this process's driver; ``descriptors`` stay open for the other. Whatever goes
    wrong there is in the answer. Raises `Unreachable`.
    """
    if name in DRIVERS and name != "host":
        answer = _started(name, task, numbers, depth, descriptors)
    else:
        answer = _forked(lambda: TASKS[task](make(), *numbers), depth)
    if answer.startswith(_UNAVAILABLE):
        raise Unreachable(answer)
    return answer


def _answer(work: Callable[[], str]) -> str:
    try:
        return work()
    except DriverUnavailable as error:
        return f"{_UNAVAILABLE}: {error}"
    except Exception as error:  # the other process has nobody else to tell
        return f"{_FAILED}{type(error).__name__}: {error}"


# -- a fork


def _forked(work: Callable[[], str], depth: int) -> str:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child uses nothing that a thread may hold
        child = os.fork()
    if not child:
        try:
            text = _answer(work if depth < 2 else lambda: _forked(work, depth - 1))
            os.write(writing, text.encode()[:4096])
        finally:  # whatever happens, also an interrupt: a second copy of the harness must not go on
            os._exit(0)
    os.close(writing)
    try:
        return _heard(reading, child)
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def _heard(reading: int, child: int) -> str:
    """What a child has to say; one that says nothing is ended."""
    ready, _, _ = select.select([reading], [], [], PATIENCE)
    if not ready:
        os.kill(child, signal.SIGKILL)
        return f"{_FAILED}nothing was heard of the other process"
    return os.read(reading, 4096).decode() or f"{_FAILED}the other process ended without a word"


# -- a fresh process


def _started(name: str, task: str, numbers: Sequence[int], depth: int, descriptors: Sequence[int]) -> str:
    shared = ",".join(map(str, descriptors))
    command = [sys.executable, "-m", _MODULE, name, task, str(depth), shared, *map(str, numbers)]
    try:
        done = subprocess.run(command, pass_fds=descriptors, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{_FAILED}nothing was heard of the other process"
    return done.stdout.strip() or f"{_FAILED}the other process ended with {done.returncode}: {done.stderr[-500:]}"


def main(arguments: Sequence[str]) -> str:
    """Do a task in a fresh driver of some name: ``NAME TASK DEPTH DESCRIPTORS NUMBER...``."""
    name, task, depth, shared, *rest = arguments
    descriptors, numbers = [int(text) for text in shared.split(",") if text], [int(text) for text in rest]
    if int(depth) > 1:
        return _started(name, task, numbers, int(depth) - 1, descriptors)
    return _answer(lambda: TASKS[task](opener(name)(DriverOptions(devices=_DEVICES)), *numbers))


if __name__ == "__main__":
    print(main(sys.argv[1:]), flush=True)
    os._exit(0)  # what was left is left
