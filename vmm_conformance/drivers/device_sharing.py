"""What a device driver tells of its handles, and memory that it shares as file descriptors."""

from __future__ import annotations

from vmm_conformance.contracts.sharing import POSIX_FD, HandleProperties
from vmm_conformance.drivers.calls import WORD
from vmm_conformance.drivers.device_memory import DeviceMemory


class DeviceSharing(DeviceMemory):
    """The calls of `SharingDriver`, by a vendor's. A handle that came in may have a number that is in use already."""

    def granularity_option(self, option: int, *, device: int = 0) -> int:
        self._use("granularity_option", device)
        return self._calls.granularity_option(device, option)

    def properties(self, handle: int) -> HandleProperties:
        return HandleProperties(*self._calls.properties(handle & WORD))

    def create_shareable(self, size: int, *, device: int = 0) -> int:
        self._use("create_shareable", device)
        handle = self._calls.create_shareable(self._beyond(size & WORD, device), device)
        with self._lock:
            self._holdings.created(handle, device)
        return handle

    def export_handle(self, handle: int, *, kind: int = POSIX_FD, flags: int = 0) -> int:
        return self._calls.export_handle(handle & WORD, kind, flags)

    def import_handle(self, descriptor: int) -> int:
        handle = self._calls.import_handle(descriptor)
        device = self._calls.properties(handle)[2]
        with self._lock:
            if handle in self._holdings.references:
                self._holdings.retained(handle)
            else:
                self._holdings.created(handle, device)
        return handle

    def legacy_ipc_handle(self, address: int) -> bytes:
        return self._calls.legacy_ipc_handle(address & WORD)
