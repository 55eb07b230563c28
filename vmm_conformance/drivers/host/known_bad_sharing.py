"""Host drivers that are wrong about what handles tell and share, or that lose memory with a process."""

from __future__ import annotations

import mmap
import os
from typing import Final

from vmm_conformance.contracts import DriverError, DriverOptions, Status
from vmm_conformance.contracts.sharing import POSIX_FD, HandleProperties
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.objects import Handle


class KnowsImports(HostDriver):
    """Remembers which handles were imported, and the descriptor that each came by."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self.came_by: dict[int, int] = {}

    def import_handle(self, descriptor: int) -> int:
        handle = super().import_handle(descriptor)
        self.came_by[handle] = descriptor
        return handle


class TakesAnyOption(HostDriver):
    """An unknown option of the granularity is taken for the minimum."""

    def granularity_option(self, option: int, *, device: int = 0) -> int:
        return super().granularity_option(option if option == 1 else 0, device=device)


class TellsDefaults(HostDriver):
    """The properties of a handle are those of any handle."""

    def properties(self, handle: int) -> HandleProperties:
        super().properties(handle)
        return HandleProperties(1, 1, 0, 0)


class GivesLegacyHandles(HostDriver):
    """A legacy IPC handle is given out for mapped memory."""

    def legacy_ipc_handle(self, address: int) -> bytes:
        return bytes(64)


class ExportsAnything(HostDriver):
    """Memory is exported as whatever type is asked for."""

    def _check_export(self, memory: Handle, kind: int, flags: int) -> None:
        if memory.file < 0:
            super()._check_export(memory, POSIX_FD, 0)


class ImportsCopies(HostDriver):
    """What is imported is a copy of the memory."""

    def import_handle(self, descriptor: int) -> int:
        size, device = self._shared_facts(descriptor)
        copy = self._new_file("import_handle", size, device)
        os.pwrite(copy, os.pread(descriptor, size, 0), 0)
        return self._adopt(copy, size, device)


class ImportsNeedTheirDescriptor(KnowsImports):
    """Imported memory can be mapped only while the descriptor is open that it came by."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        if handle in self.came_by:
            try:
                os.fstat(self.came_by[handle])
            except OSError as error:
                raise DriverError(Status.INVALID_VALUE, "map", f"the descriptor is gone: {error}") from None
        super().map(address, size, handle, offset=offset)


class ExportsOnce(HostDriver):
    """A second export gives out the descriptor of the first."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._exported: dict[int, int] = {}

    def export_handle(self, handle: int, *, kind: int = POSIX_FD, flags: int = 0) -> int:
        if handle in self._exported and kind == POSIX_FD and not flags:
            return self._exported[handle]
        self._exported[handle] = super().export_handle(handle, kind=kind, flags=flags)
        return self._exported[handle]


class ImportsLookForeign(KnowsImports):
    """An imported handle tells that it was not made to be shared."""

    def properties(self, handle: int) -> HandleProperties:
        told = super().properties(handle)
        return told._replace(device=0, handle_types=0) if handle in self.came_by else told


class LosesMemoryAtExit(HostDriver):
    """What a process has not given back when it ends is lost to the next one.

    Where it is lost is one number that a process has in common with its children; drivers of the process that
    loaded this module begin with all memory again.
    """

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        if os.getpid() == _HOME:
            _LOST[:8] = bytes(8)
        self._used[0] = int.from_bytes(_LOST[:8], "little")

    def _check_create(self, size: int, device: int, space: int) -> int:
        size = super()._check_create(size, device, space)
        self._lose(size)
        return size

    def _return_memory(self, handle: Handle) -> None:
        super()._return_memory(handle)
        self._lose(-handle.size)

    def _lose(self, size: int) -> None:
        if os.getpid() != _HOME:
            _LOST[:8] = max(int.from_bytes(_LOST[:8], "little") + size, 0).to_bytes(8, "little")


_HOME: Final = os.getpid()
_LOST: Final = mmap.mmap(-1, mmap.PAGESIZE)
