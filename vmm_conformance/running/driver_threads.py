"""Several threads in a driver at once. See `running.driver_courses`.

Threads run into each other as they please, so their calls have no order to record. Each writes down what went
wrong, if anything did; one thread alone goes the same way before, so that what goes wrong is the company's fault.
"""

from __future__ import annotations

import sys
from threading import Barrier, Thread
from typing import Final, NamedTuple

from vmm_conformance.contracts import Access, Driver
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.running.driver_actions import Actions

PATIENCE: Final = 30.0
"""Seconds after which a thread has not returned."""
_SWITCH: Final = 1e-5
"""Seconds after which the interpreter lets another thread go on."""


class Place(NamedTuple):
    """Where a thread's mapping goes: its device, its granule, and the reserved address, 0 if it reserves its own."""

    device: int
    granule: int
    address: int


def life(driver: Driver, place: Place, token: bytes) -> str:
    """Once through the life of a mapping; returns what went wrong, or nothing. Nothing is undone on failure."""
    device, granule, shared = place
    try:
        address = shared or driver.reserve(granule)
        handle = driver.create(granule, device=device)
        driver.map(address, granule, handle)
        driver.set_access(address, granule, {device: Access.READ_WRITE})
        driver.write(address, token)
        seen = driver.read(address, len(token)).data[0]
        driver.unmap(address, granule)
        driver.release(handle)
        if not shared:
            driver.address_free(address, granule)
    except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
        return f"{type(error).__name__}: {error}"
    return "" if seen == token else f"read {seen.hex()} where {token.hex()} was written"


def threads(actions: Actions, op: ops.Threads) -> int | None:
    """Note ``threads``: how many, shared, and what went wrong, by thread. None if one alone does not get through."""
    driver, granule = actions.recorder.driver, actions.ranges.granule
    count = max(op.count, 2)
    places = [Place(n % actions.ranges.devices, granule, 0) for n in range(count)]
    if min(actions.ranges.free.values()) < count * granule or life(driver, places[0], actions.tokens.take()):
        return None
    tokens = [actions.tokens.take() for _ in places]
    try:
        before = _free(actions)
        room = driver.reserve(count * granule) if op.shared else 0
        placed = [place._replace(address=room and room + n * granule) for n, place in enumerate(places)]
        wrong = _together(driver, placed, max(op.rounds, 1), tokens)
        if room and not wrong:
            driver.address_free(room, count * granule)
        if not wrong and not actions.real and _free(actions) != before:
            wrong = [f"free memory was {before}, and is {_free(actions)}"]
    except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
        wrong = [f"around them: {type(error).__name__}: {error}"]
    actions.recorder.note("threads", threads=count, shared=op.shared, wrong=tuple(wrong))
    actions.probes.memory()
    return 0


def _free(actions: Actions) -> list[int]:
    """Free bytes, by device."""
    return [actions.recorder.driver.mem_info(device).free for device in range(actions.ranges.devices)]


def _together(driver: Driver, places: list[Place], rounds: int, tokens: list[bytes]) -> list[str]:
    """What went wrong in each thread that did not get through."""
    wrong = ["it did not return"] * len(places)
    start = Barrier(len(places))

    def one(n: int) -> None:
        start.wait(PATIENCE)
        found = (life(driver, places[n], tokens[n]) for _ in range(rounds))
        wrong[n] = next((text for text in found if text), "")

    started = [Thread(target=one, args=(n,), daemon=True) for n in range(len(places))]
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        for thread in started:
            thread.start()
        for thread in started:
            thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(before)
    return [f"thread {n}: {text}" for n, text in enumerate(wrong) if text]
