"""Quirk profiles of handles and of memory that is shared; see `quirks`."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary

from vmm_conformance.contracts import Access, DriverError, DriverOptions, Status
from vmm_conformance.contracts.sharing import POSIX_FD
from vmm_conformance.drivers.host.known_bad_sharing import (
    GivesLegacyHandles,
    ImportsLookForeign,
    ImportsNeedTheirDescriptor,
    KnowsImports,
    LosesMemoryAtExit,
)
from vmm_conformance.drivers.host.objects import Mapping

__all__ = ["ImportsLookForeign", "ImportsTakeNoRights", "LegacyHandles", "OneDescriptor"]


class OneDescriptor(ImportsNeedTheirDescriptor):
    """Q-11."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._gone_out: set[int] = set()

    def export_handle(self, handle: int, *, kind: int = POSIX_FD, flags: int = 0) -> int:
        if handle in self._gone_out:
            raise DriverError(Status.INVALID_VALUE, "export_handle", "a quirk of this driver: bad file descriptor")
        descriptor = super().export_handle(handle, kind=kind, flags=flags)
        self._gone_out.add(handle)
        return descriptor


class LegacyHandles(GivesLegacyHandles, LosesMemoryAtExit):
    """Q-12, but for what becomes of the kernel."""


class ImportsTakeNoRights(KnowsImports):
    """Q-19."""

    def set_access(self, address: int, size: int, rights: Dictionary[int, Access]) -> None:
        region = self._region_at(address)
        if isinstance(region, Mapping) and region.handle.id in self.came_by:
            raise DriverError(Status.INVALID_VALUE, "set_access", "a quirk of this driver: the handle was imported")
        super().set_access(address, size, rights)
