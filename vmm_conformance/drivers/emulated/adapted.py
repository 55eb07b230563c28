"""The drivers ``emulated-hip`` and ``emulated-cuda``: a vendor's binding over its emulated library, over a host driver.

They run the same adapters and the same bindings as on a GPU. Nothing here is a device, and ``real`` says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from vmm_conformance.contracts import Driver, DriverError, DriverOptions, Live, Status
from vmm_conformance.contracts.holding import HoldingDriver
from vmm_conformance.drivers.calls import EMULATED, Calls, DriverUnavailable
from vmm_conformance.drivers.device import DeviceDriver
from vmm_conformance.drivers.emulated.build import EmulationUnavailable
from vmm_conformance.drivers.emulated.detour import Detour, OwnCalls, OwnDepth
from vmm_conformance.drivers.emulated.library import bring_in
from vmm_conformance.drivers.emulated.streams import OFFSET
from vmm_conformance.drivers.queues import Point, Queue, Ticket

MakeDriver = Callable[[DriverOptions], Driver]

_owners: Final[dict[str, weakref.ref[EmulatedDriver]]] = {}


class EmulatedDriver(DeviceDriver):
    """One at a time for each vendor, since a process has one library of a name; raises `DriverUnavailable` else.

    What a GPU does not tell the host driver behind it does: which work met a fault, which call took memory away
    (``serial``), and what is held. The capabilities are those asked for, but for ``progress``, which no vendor's
    interface has.
    """

    def __init__(self, vendor: str, options: DriverOptions, make: MakeDriver, memory: int = 0) -> None:
        self._vendor = vendor
        self._take_over()
        self.under = make(options)
        self.library.start(self.under, space=min(options.spaces, default=0))
        self.library.tell_works = True
        try:
            super().__init__(self._binding(), options, memory)
        except BaseException:
            self._let_go()
            raise
        self.name = f"emulated-{vendor}"
        self.capabilities = replace(self.under.capabilities, progress=False)

    def _take_over(self) -> None:
        owner = _owners.get(self._vendor, lambda: None)()
        if owner is not None:
            raise DriverUnavailable(
                f"another driver 'emulated-{self._vendor}' is open in this process; close it first, there can be one"
            )
        try:
            self.library = bring_in(self._vendor)
        except EmulationUnavailable as error:
            raise DriverUnavailable(str(error)) from None
        _owners[self._vendor] = weakref.ref(self)

    def _binding(self) -> Calls:
        """The vendor's calls, made sure to end up here."""
        calls = _calls(self._vendor)
        if not calls.device_name(0).startswith(EMULATED):
            raise DriverUnavailable(
                f"the binding of {self._vendor!r} uses another library already; bring the emulated one in before its "
                "first call, in a fresh process"
            )
        return calls

    def watch_foreign_calls(self, view: Driver) -> None:
        """From now on what others ask of the library is asked of ``view``, which stands for this driver."""
        own = OwnDepth()
        self._calls = OwnCalls(self._calls, own)
        self.library.detour(Detour(self.under, view, own, self._queues.__contains__, OFFSET))

    def _let_go(self) -> None:
        self.library.stop()
        self.under.close()
        _owners.pop(self._vendor, None)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the binding and of the library under it, which is ours."""
        return {**super().versions, "library": f"emulated {self.library.path.name}"}

    @property
    def serial(self) -> int:
        """The host driver's number of its last memory call."""
        return getattr(self.under, "serial", 0)

    def live(self) -> Live:
        return self.under.live()

    def hold(self, stream: int) -> None:
        """By the driver behind it: the library runs host functions in the thread that calls, and one would stop it."""
        self._queue("hold", stream)
        self._holding("hold").hold(self.library.stream_behind(stream))

    def let_go(self, stream: int) -> None:
        if stream in self._queues:
            self._holding("let_go").let_go(self.library.stream_behind(stream))

    def _holding(self, call: str) -> HoldingDriver:
        if not isinstance(self.under, HoldingDriver):
            raise DriverError(Status.NOT_SUPPORTED, call, f"the driver behind {self.name!r} holds no streams")
        return self.under

    def _look(self, queue: Queue) -> None:
        """Asking the library would run what is queued."""
        if all(part.done for item in queue.items if isinstance(item, Ticket) for part in item.parts):
            self._finished(queue)

    # -- faults

    def _submitted(self, ticket: Ticket) -> None:
        ticket.parts = self.library.take_works()

    def _judge(self, ticket: Ticket) -> None:
        ticket.work.fault = next((part.fault for part in ticket.parts if part.fault is not None), None)

    def _fault(self, error: DriverError, queues: Sequence[Queue], until: Point | None) -> None:
        """It is known which work met the fault, and the others have run."""
        for queue in queues:
            self._finished(queue, until)

    def close(self) -> None:
        if not self._closed:
            try:
                super().close()
            finally:
                self._let_go()


def watch_foreign_calls(vendor: str, view: Driver) -> None:
    """Let what others ask of the emulated library of ``vendor`` be recorded and struck as calls on ``view`` are.

    ``view`` is the driver that a subject was given. Raises `DriverUnavailable` if that is no ``emulated-VENDOR``.
    """
    driver = _owners.get(vendor, lambda: None)()
    if driver is None or view.name != driver.name:
        raise DriverUnavailable(
            f"calls on the library of {vendor!r} cannot be seen over the driver {view.name!r}; use emulated-{vendor}"
        )
    driver.watch_foreign_calls(view)


def _calls(vendor: str) -> Calls:
    if vendor == "hip":
        from vmm_conformance.drivers.hip import HipCalls

        return HipCalls()
    from vmm_conformance.drivers.cuda import CudaCalls

    return CudaCalls()


def emulated_driver(
    vendor: str, make: MakeDriver | None = None, memory: int = 0
) -> Callable[[DriverOptions], EmulatedDriver]:
    """What opens drivers of a vendor over its emulated library; ``make`` gives the drivers under it.

    ``memory`` is how many bytes of each device may be taken, 0 for all.
    """
    from vmm_conformance.drivers.host import HostDriver

    def open_one(options: DriverOptions) -> EmulatedDriver:
        return EmulatedDriver(vendor, options, make or HostDriver, memory)

    return open_one
