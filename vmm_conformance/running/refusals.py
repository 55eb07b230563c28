"""What a driver answers where documents name no code: each question in a process of its own, which it may end.

``python -m vmm_conformance.running.refusals DRIVER QUESTION`` asks one; `ask_all` asks them all that way.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vmm_conformance.contracts import Access, Driver, DriverError, DriverOptions, status_name
from vmm_conformance.drivers.opening import opener

PATIENCE: Final = 30.0
"""Seconds that a driver may take to open and to answer one question."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A question and what came of it: a status by name, ``taken``, or how the process ended; and more words on it."""

    question: str
    answer: str
    detail: str


class Place:
    """A driver that was opened for one question. Nothing is given back: the process ends with it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.granule = driver.granularity(0).recommended

    def mapped(self, granules: int) -> tuple[int, int]:
        """A reservation that is one mapping, without rights: its address and handle."""
        size = granules * self.granule
        address, handle = self.driver.reserve(size), self.driver.create(size)
        self.driver.map(address, size, handle)
        return address, handle


def _free_while_mapped(at: Place) -> str:
    address, _ = at.mapped(1)
    at.driver.address_free(address, at.granule)
    return "an address range was freed with a mapping in it"


def _free_half(at: Place) -> str:
    at.driver.address_free(at.driver.reserve(2 * at.granule), at.granule)
    return "a reservation was freed with half its size"


def _free_inside(at: Place) -> str:
    at.driver.address_free(at.driver.reserve(2 * at.granule) + at.granule, at.granule)
    return "the second half of a reservation was freed"


def _map_twice(at: Place) -> str:
    address, handle = at.mapped(1)
    at.driver.map(address, at.granule, handle)
    return "a mapping was laid over another"


def _map_across(at: Place) -> str:
    address = at.driver.reserve(at.granule)
    if at.driver.reserve(at.granule, hint=address + at.granule) != address + at.granule:
        return "not asked: the address behind a reservation is not to be had"
    at.driver.map(address, 2 * at.granule, at.driver.create(2 * at.granule))
    return "one mapping was laid over two reservations"


def _map_too_much(at: Place) -> str:
    at.driver.map(at.driver.reserve(2 * at.granule), 2 * at.granule, at.driver.create(at.granule))
    return "more was mapped than the handle has"


def _grant_half(at: Place) -> str:
    address, _ = at.mapped(2)
    at.driver.set_access(address, at.granule, {0: Access.READ_WRITE})
    return "rights were given on half a mapping"


def _unmap_over_hole(at: Place) -> str:
    address, handle = at.driver.reserve(3 * at.granule), at.driver.create(at.granule)
    ends = (address, address + 2 * at.granule)
    for end in ends:
        at.driver.map(end, at.granule, handle)
    try:
        at.driver.unmap(address, 3 * at.granule)
    except DriverError as error:
        left = sum(_is_mapped(at.driver, end) for end in ends)
        raise DriverError(error.status, "unmap", f"of the two mappings around the hole {left} are left") from None
    return "two mappings with a hole between them were unmapped at once"


def _is_mapped(driver: Driver, address: int) -> bool:
    try:
        driver.release(driver.retain(address))
    except DriverError:
        return False
    return True


def _write_read_only(at: Place) -> str:
    address, _ = at.mapped(1)
    at.driver.set_access(address, at.granule, {0: Access.READ})
    fault = at.driver.write(address, b"written.").fault
    return "memory that may only be read was written" if fault is None else f"the write met a fault: {fault.reason}"


def _release_twice(at: Place) -> str:
    handle = at.driver.create(at.granule)
    at.driver.release(handle)
    at.driver.release(handle)
    return "a handle was released twice"


QUESTIONS: Final[dict[str, Callable[[Place], str]]] = {
    "free while mapped": _free_while_mapped,
    "free with half the size": _free_half,
    "free from the middle": _free_inside,
    "map onto a mapping": _map_twice,
    "map across reservations": _map_across,
    "map more than the handle": _map_too_much,
    "rights on half a mapping": _grant_half,
    "unmap over a hole": _unmap_over_hole,
    "write what is read only": _write_read_only,
    "release twice": _release_twice,
}
"""Each does something that is refused, or else says what was done."""


def ask(driver: str, question: str) -> Refusal:
    """Ask one question in this process. Raises what opening the driver raises."""
    opened = opener(driver)(DriverOptions())
    try:
        return Refusal(question, "taken", QUESTIONS[question](Place(opened)))
    except DriverError as error:
        return Refusal(question, status_name(error.status), f"{error.call}: {error.detail}")


def ask_all(driver: str) -> tuple[Refusal, ...]:
    """Ask every question, each in a fresh process."""
    return tuple(_asked(driver, question) for question in QUESTIONS)


def _asked(driver: str, question: str) -> Refusal:
    command = [sys.executable, "-P", "-m", __name__, driver, question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return Refusal(question, "no answer", f"within {PATIENCE:.0f} s")
    return told(question, done.returncode, done.stdout, done.stderr)


def told(question: str, status: int, output: str, errors: str) -> Refusal:
    """What a process that was asked said, or how it ended."""
    answer, _, detail = output.strip().partition("\n")
    if answer and not status:
        return Refusal(question, answer, detail)
    how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Refusal(question, how, (errors.strip().splitlines() or ["no word"])[-1])


def main(driver: str, question: str) -> None:
    """Answer in two lines."""
    asked = ask(driver, question)
    print(f"{asked.answer}\n{asked.detail}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
