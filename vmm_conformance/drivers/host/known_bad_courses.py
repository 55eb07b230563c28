"""Host drivers that are wrong in the long run, in company, or in what they tell of themselves; see `known_bad_more`."""

from __future__ import annotations

import os
import time

from vmm_conformance.contracts import DriverOptions, Granularity, Range
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.known_bad_handles import refusal
from vmm_conformance.drivers.host.objects import Handle, Region
from vmm_conformance.drivers.host.work import Job

_A_MOMENT = 0.0002
"""Seconds in which another thread comes by."""


class RecommendsLess(HostDriver):
    """The recommended granularity is the minimum, whatever pages there are."""

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        minimum, _ = super().granularity(device, space)
        return Granularity(minimum, minimum)


class UsesAddressesOnce(HostDriver):
    """Addresses that were freed are never reserved again, so that they run out."""

    def address_free(self, address: int, size: int) -> None:
        super().address_free(address, size)
        self._space.take_at(address, size)


class LongReadsSlip(HostDriver):
    """A read over three mappings or more takes its last byte from elsewhere."""

    def _perform(self, job: Job) -> bytes | None:
        operation, uses = job
        data = super()._perform(job)
        if data and isinstance(operation, Range) and len(uses[0].regions) > 2:
            return data[:-1] + bytes([data[-1] ^ 0xFF])
        return data


class RefusesToBridge(HostDriver):
    """A copy from one reservation into the next is declared, and refused."""

    def _may_span(self, left: Region, right: Region) -> bool:
        return super()._may_span(left, right) and getattr(left, "reservation", 0) is getattr(right, "reservation", 1)


class HandlesCostDescriptors(HostDriver):
    """Each handle keeps a descriptor open."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._descriptors: dict[int, int] = {}

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        handle = super().create(size, device=device, space=space)
        self._descriptors[handle] = os.dup(self._file)
        return handle

    def _return_memory(self, handle: Handle) -> None:
        os.close(self._descriptors.pop(handle.id))
        super()._return_memory(handle)

    def _close_backing(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        super()._close_backing()


class MapWaitsForStreams(HostDriver):
    """map waits for all streams, as if it was work of the default stream."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        self._run_everything()
        super().map(address, size, handle, offset=offset)


class MapsOneAtATime(HostDriver):
    """map fails while another thread is in map."""

    _mapping = False

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        if self._mapping:
            raise refusal("map")
        self._mapping = True
        try:
            time.sleep(_A_MOMENT)
            super().map(address, size, handle, offset=offset)
        finally:
            self._mapping = False
