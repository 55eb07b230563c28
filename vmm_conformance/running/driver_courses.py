"""Courses of the contract ``driver``: operations of many calls on memory of their own. See `running.driver`.

Each gives back whatever it took, also where a call was refused halfway, and returns the status of the first call
that was; None if there was nothing to do. Where calls go by the thousand, or come from several threads at once,
they are not recorded one by one: a note says what came of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from threading import Event, Timer
from time import thread_time
from typing import Any, Final

from vmm_conformance.contracts import Access, DriverError
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.history.events import CRASHED, HARNESS, SUBJECT
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.running.driver_actions import Actions, free_granules
from vmm_conformance.running.driver_sharing import leave, open_descriptors, share
from vmm_conformance.running.driver_threads import threads

Course = Callable[[Actions, Any], int | None]

LARGE: Final = 1 << 30
"""Bytes of a range that a turnover reserves."""
LARGE_REAL: Final = 16 << 30
"""The same on a device, which has more addresses to run out of."""
BATCHES: Final = 10
"""Into so many equal parts a turnover is divided to see whether it slows down."""
TIMED: Final = 1000
"""Turnovers from which on their times say something."""
LEAST: Final = 8
"""Handles from which on the descriptors that they cost can be told from others."""
PATIENCE: Final = 2.0
"""Seconds after which a stream is let go, whoever waits for it."""


class Owned:
    """What a course has taken by recorded calls, and the status of the first call that was refused."""

    def __init__(self, actions: Actions) -> None:
        self.actions = actions
        self.status = 0
        self._back: list[tuple[str, tuple[Any, ...]]] = []

    def call(self, kind: str, *args: Any) -> Any:
        """Make a call of the program unless one was refused before; returns what it gave."""
        if self.status == 0:
            self.status = self.actions.call(SUBJECT, kind, *args)
            if self.status == 0:
                return self.actions.result
        return None

    def reserve(self, size: int) -> int:
        """A range, 0 if there is none to be had."""
        address: int = self.call("reserve", size, 0, 0) or 0
        self._owe("address_free", address, size)
        return address

    def create(self, size: int, device: int) -> int:
        """A handle, 0 if there is none to be had."""
        handle: int = self.call("create", size, device, 0) or 0
        self._owe("release", handle)
        return handle

    def map(self, address: int, size: int, handle: int, device: int) -> None:
        """A mapping that its own device may use."""
        self.call("map", address, size, handle, 0)
        self._owe("unmap", address, size)
        self.call("set_access", address, size, ((device, Access.READ_WRITE),))

    def _owe(self, kind: str, *args: Any) -> None:
        if self.status == 0:
            self._back.append((kind, args))

    def give_back(self, *, kept: Callable[[str], bool] = lambda kind: False) -> None:
        """Take everything apart, latest first, but for the kinds of calls that are ``kept`` for later."""
        later: list[tuple[str, tuple[Any, ...]]] = []
        for kind, args in reversed(self._back):
            if kept(kind) or later:
                later.append((kind, args))
                continue
            status = self.actions.call(SUBJECT, kind, *args)
            self.status = self.status or status
        self._back = later[::-1]


# -- a range, again and again


def turnover(actions: Actions, op: ops.Turnover) -> int | None:
    """Note ``turnover``: size, times asked for, done, the call that ended it, and how often slower it became."""
    driver, size = actions.recorder.driver, LARGE_REAL if actions.real else LARGE
    seconds: list[float] = []
    done, status, failed = 0, 0, ""
    each = max(op.times // BATCHES, 1)
    # Of this thread alone: what it waits for on a busy machine is not the driver's fault.
    start = thread_time()
    try:
        while done < op.times:
            failed = "reserve"
            address = driver.reserve(size)
            failed = "address_free"
            driver.address_free(address, size)
            done += 1
            if done % each == 0:
                seconds.append(thread_time() - start)
                start = thread_time()
        failed = ""
    except DriverError as error:
        status, actions.error = error.status, error
    except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
        status, actions.error = CRASHED, error
    slower = int(min(seconds[-3:]) / min(seconds[:3])) if not failed and op.times >= TIMED else 1
    actions.recorder.note("turnover", size=size, times=op.times, done=done, failed=failed, slower=slower)
    return status


# -- many handles


def pieces(actions: Actions, op: ops.Pieces) -> int | None:
    """Note ``pieces``: handles, and at which byte the range of many differs from that of one (-1: nowhere)."""
    device, granule = op.device % actions.ranges.devices, actions.ranges.granule
    count = max(op.count, 2)
    if free_granules(actions, device) < 2 * count:
        return None
    owned, size = Owned(actions), count * granule
    many = owned.reserve(2 * size)
    one = many + size
    for n in range(count):
        owned.map(many + n * granule, granule, owned.create(granule, device), device)
    owned.map(one, size, owned.create(size, device), device)
    seen = _both(owned, many, one, size)
    owned.give_back()
    if owned.status == 0:
        first, second = seen
        differ = -1 if first == second else next(at for at in range(size) if first[at] != second[at])
        actions.recorder.note("pieces", handles=count, size=size, differ=differ)
    return owned.status


def _both(owned: Owned, many: int, one: int, size: int) -> tuple[bytes, bytes]:
    """What is read from both ranges after the same bytes went into both, by a copy from the first to the second."""
    data = Random(owned.actions.tokens.take()).randbytes(size)
    owned.call("write", many, data, None)
    owned.call("copy", one, many, size, None)
    read = []
    for address in (many, one):
        owned.call("read", address, size, None)
        read.append(owned.actions.result.data[0] if owned.status == 0 else b"")
    return read[0], read[1]


def hoard(actions: Actions, op: ops.Hoard) -> int | None:
    """Note ``descriptors``: handles, and how many more descriptors are open meanwhile, and behind it."""
    count = min(op.count, free_granules(actions, 0))
    if count < LEAST or not open_descriptors():
        return None
    granule, owned = actions.ranges.granule, Owned(actions)
    before = len(open_descriptors())
    address = owned.reserve(count * granule)
    for n in range(count):
        owned.map(address + n * granule, granule, owned.create(granule, 0), 0)
    held = len(open_descriptors())
    owned.give_back()
    if owned.status == 0:
        behind = len(open_descriptors())
        actions.recorder.note("descriptors", handles=count, more=held - before, left=behind - before)
    return owned.status


# -- beside a stream that does not move


def held(actions: Actions, op: ops.Held) -> int | None:
    """Notes ``held`` and ``let_go``: of a stream, and whether it was still held when the calls were over.

    A driver that runs work by itself is given `PATIENCE`; then the stream is let go, or nobody would find out.
    """
    driver, granule = actions.recorder.driver, actions.ranges.granule
    device = op.device % actions.ranges.devices
    if not isinstance(driver, HoldingDriver) or not free_granules(actions, device):
        return None
    stream = _held_stream(actions, driver, device)
    if not stream:
        return None
    owned, waits = Owned(actions), actions.recorder.driver.capabilities.unmap_waits
    with _beside(actions, driver, stream):
        owned.map(owned.reserve(granule), granule, owned.create(granule, device), device)
        owned.give_back(kept=lambda kind: kind == "unmap" and waits)
    owned.give_back()
    actions.call(HARNESS, "stream_synchronize", stream)
    actions.call(HARNESS, "stream_destroy", stream)
    return owned.status


@contextmanager
def _beside(actions: Actions, driver: HoldingDriver, stream: int) -> Iterator[None]:
    """Around what is done while ``stream`` is held: the notes, and the rescue of whoever waits for it."""
    late = Event()

    def rescue_it() -> None:
        late.set()
        _let_go(driver, stream)

    rescue = Timer(PATIENCE, rescue_it)
    rescue.daemon = True
    actions.recorder.note("held", stream=stream)
    if not actions.recorder.driver.capabilities.progress:
        rescue.start()
    try:
        yield
        actions.recorder.note("let_go", stream=stream, in_time=not late.is_set())
    finally:
        rescue.cancel()
        _let_go(driver, stream)


def _let_go(driver: HoldingDriver, stream: int) -> None:
    with suppress(Exception):  # whoever then waits for the stream is refused, and that is judged
        driver.let_go(stream)


def _held_stream(actions: Actions, driver: HoldingDriver, device: int) -> int:
    """A stream of ``device`` that is held, 0 if there is none to be had."""
    if actions.call(HARNESS, "stream_create", device) != 0:
        return 0
    stream: int = actions.result
    try:
        driver.hold(stream)
    except Exception:  # a driver need not hold streams for us
        actions.call(HARNESS, "stream_destroy", stream)
        return 0
    return stream


COURSES: Final[dict[type, Course]] = {
    ops.Turnover: turnover,
    ops.Pieces: pieces,
    ops.Hoard: hoard,
    ops.Threads: threads,
    ops.Held: held,
    ops.Share: share,
    ops.Leave: leave,
}
"""Kind of operation to its course."""
