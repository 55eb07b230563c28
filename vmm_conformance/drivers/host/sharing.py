"""Facts about handles, and memory shared between processes as file descriptors.

Shareable memory has a file of its own, so the system keeps it alive while anybody anywhere has a
descriptor, a handle or a mapping of it (V68). The file's name says which device it belongs to (V70).
"""

from __future__ import annotations

import os
import re
from typing import Final

from vmm_conformance.contracts import DriverError, DriverOptions, Status
from vmm_conformance.contracts.sharing import POSIX_FD, HandleProperties
from vmm_conformance.drivers.host.graphs import Graphs
from vmm_conformance.drivers.host.memory import POISON
from vmm_conformance.drivers.host.objects import Allocation, Handle

_PINNED: Final = 1
_DEVICE: Final = 1
_NAME: Final = re.compile(r"/memfd:vmm-conformance-shared-(\d+)\b")
_CHUNK: Final = bytes([POISON]) * (1 << 16)


class Sharing(Graphs):
    """V05, V23, V65 to V70. ``_charged`` counts the handles on each shared file: its memory is paid for once.

    Free memory counts what this driver's handles and mappings hold. An open descriptor keeps the bytes, but
    nobody can tell when the last one is closed, so it costs nothing.
    """

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._charged: dict[int, int] = {}

    # -- facts

    def granularity_option(self, option: int, *, device: int = 0) -> int:
        if option not in (0, 1):
            raise DriverError(
                Status.INVALID_VALUE,
                "granularity_option",
                f"option {option} is unknown; use 0, minimum, or 1, recommended",
            )
        return self.granularity(device)[option]

    def properties(self, handle: int) -> HandleProperties:
        with self._lock:
            memory = self._handle("properties", handle)
            return HandleProperties(_PINNED, _DEVICE, memory.device, POSIX_FD if memory.file >= 0 else 0)

    def legacy_ipc_handle(self, address: int) -> bytes:
        """Plain memory's handle says where it is; there is nobody who could open it."""
        with self._lock:
            region = self._region_at(address)
            if not isinstance(region, Allocation):
                raise DriverError(
                    Status.INVALID_VALUE,
                    "legacy_ipc_handle",
                    f"{address:#x} is no plain memory; export the handle of mapped memory instead",
                )
            return region.start.to_bytes(64, "little")

    # -- sharing

    def create_shareable(self, size: int, *, device: int = 0) -> int:
        with self._lock:
            self._check_sharing("create_shareable")
            size = self._check_create(size, device, 0)
            file = self._new_file("create_shareable", size, device)
            return self._adopt(file, size, device)

    def export_handle(self, handle: int, *, kind: int = POSIX_FD, flags: int = 0) -> int:
        with self._lock:
            self._check_sharing("export_handle")
            memory = self._handle("export_handle", handle)
            self._check_export(memory, kind, flags)
            return self._descriptor("export_handle", memory.file)

    def import_handle(self, descriptor: int) -> int:
        with self._lock:
            self._check_sharing("import_handle")
            size, device = self._shared_facts(descriptor)
            if os.fstat(descriptor).st_ino not in self._charged:
                self._check_room("import_handle", size, device)
            return self._adopt(self._descriptor("import_handle", descriptor), size, device)

    def _check_sharing(self, call: str) -> None:
        if not self.capabilities.sharing:
            raise DriverError(Status.NOT_SUPPORTED, call, "this driver declares that it shares no memory")

    def _check_export(self, memory: Handle, kind: int, flags: int) -> None:
        """Only the type that was asked for at creation, and no flags (V66)."""
        have = POSIX_FD if memory.file >= 0 else 0
        if kind != POSIX_FD or kind != have or flags:
            raise DriverError(
                Status.INVALID_VALUE,
                "export_handle",
                f"handle {memory.id} was created for type {have}, and is asked for type {kind} with flags {flags}; "
                "create it for that type, and pass flags 0",
            )

    def _shared_facts(self, descriptor: int) -> tuple[int, int]:
        """Size and device of the memory behind ``descriptor``."""
        try:
            found = _NAME.match(os.readlink(f"/proc/self/fd/{descriptor}"))
            size = os.fstat(descriptor).st_size
        except OSError as error:
            raise DriverError(
                Status.INVALID_VALUE, "import_handle", f"descriptor {descriptor} is not open: {error}"
            ) from None
        if found is None or not int(found[1]) < self.device_count:
            raise DriverError(
                Status.INVALID_VALUE,
                "import_handle",
                f"descriptor {descriptor} is no memory of this driver's {self.device_count} device(s)",
            )
        return size, int(found[1])

    def _new_file(self, call: str, size: int, device: int) -> int:
        """A file of ``size`` poisoned bytes."""
        try:
            file = os.memfd_create(f"vmm-conformance-shared-{device}")
        except OSError as error:
            raise DriverError(Status.OUT_OF_MEMORY, call, f"no descriptor for shareable memory: {error}") from None
        try:
            for start in range(0, size, len(_CHUNK)):
                os.pwrite(file, _CHUNK[: size - start], start)
        except OSError as error:
            os.close(file)
            raise DriverError(
                Status.OUT_OF_MEMORY, call, f"the system has no {size} bytes of memory left to share: {error}"
            ) from None
        return file

    def _descriptor(self, call: str, file: int) -> int:
        """One more descriptor of ``file``, which lives apart from it (V69)."""
        try:
            return os.dup(file)
        except OSError as error:
            raise DriverError(Status.OUT_OF_MEMORY, call, f"no descriptor for shareable memory: {error}") from None

    def _adopt(self, file: int, size: int, device: int) -> int:
        """A handle that owns ``file``."""
        identity = next(self._ids)
        handle = Handle(0, size, identity, device)
        handle.file = file
        handle.complete = True
        self._handles[identity] = handle
        inode = os.fstat(file).st_ino
        if inode not in self._charged:
            self._used[device] += size
        self._charged[inode] = self._charged.get(inode, 0) + 1
        self.serial += 1
        return identity

    def _return_memory(self, handle: Handle) -> None:
        if handle.file < 0:
            super()._return_memory(handle)
            return
        inode = os.fstat(handle.file).st_ino
        os.close(handle.file)
        del self._handles[handle.id]
        self._charged[inode] -= 1
        if not self._charged[inode]:
            del self._charged[inode]
            self._used[handle.device] -= handle.size

    def _close_backing(self) -> None:
        for handle in self._handles.values():
            if handle.file >= 0:
                os.close(handle.file)
        super()._close_backing()
