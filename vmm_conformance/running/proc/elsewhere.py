"""The caller's side of a driver that is in a subject's own process.

The caller has streams there, which the subject makes for it. What the caller submits to them is recorded and not
done: nobody here can touch that memory. So order and lifetimes are judged, contents are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from vmm_conformance.checkers import allocator_contents, vmm_contents
from vmm_conformance.contracts import (
    DriverCapabilities,
    DriverError,
    Granularity,
    Live,
    MemoryInfo,
    Status,
    Work,
    WorkListener,
)
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.running.proc.described import Device

UNREAD: Final[Mapping[str, tuple[str, ...]]] = {
    "allocator": (allocator_contents.KEPT, *allocator_contents.CARRIED.values()),
    "vmm-allocator": (vmm_contents.KEPT,),
}
"""The invariants of each contract that are about what memory holds."""


class Elsewhere:
    """What a runner asks of a driver, see `contracts.Driver`. ``ask(do, **arguments)`` asks the subject."""

    name = OWN
    real = False
    capabilities = DriverCapabilities()

    def __init__(self, device: Device, ask: Callable[..., int]) -> None:
        self._device = device
        self._ask = ask
        self._numbers = count(1)
        self.device_count = device.count

    # -- facts, as the subject has told them

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        """Of both kinds the same."""
        return Granularity(self._device.granularity, self._device.granularity)

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        """Raises `DriverError` for every memory space but 0."""
        if space:
            raise DriverError(Status.INVALID_VALUE, "space_alignment", f"there is no memory space {space} elsewhere")
        return self._device.alignment

    def can_access_peer(self, device: int, peer: int) -> bool:
        """Whether devices reach each other."""
        return self._device.peers and device != peer

    def mem_info(self, device: int = 0) -> MemoryInfo:
        """What a device has; what of it is free is not known here."""
        return MemoryInfo(self._device.capacity, self._device.capacity)

    def live(self) -> Live:
        """Nothing is held here."""
        return Live(0, 0, 0, 0, 0)

    # -- the caller's streams are the subject's

    def stream_create(self, device: int = 0) -> int:
        """A stream of the subject's, by the number that it reports calls with."""
        return self._ask("stream_create", device=device)

    def stream_destroy(self, stream: int) -> None:
        """The caller needs it no more."""
        self._ask("stream_destroy", stream=stream)

    # -- what the caller does with them is recorded, and that is all

    def _number(self, *given: Any, **named: Any) -> int:
        return next(self._numbers)

    def _work(self, *given: Any, **named: Any) -> Work:
        return Work(next(self._numbers))

    def _nothing(self, *given: Any, **named: Any) -> None:
        pass

    event_create = graph_end = graph_instantiate = _number
    copy = fill = write = read = launch = graph_launch = _work
    stream_synchronize = device_synchronize = stream_wait_event = event_destroy = event_record = _nothing
    event_synchronize = graph_begin = graph_destroy = graph_exec_destroy = _nothing

    def progress(self, stream: int, count: int = 1) -> int:
        """Nothing is queued."""
        return 0

    def listen(self, listener: WorkListener | None) -> None:
        """Nothing runs that could be told of."""

    def close(self) -> None:
        """There is nothing to close."""
