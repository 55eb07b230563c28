"""Plain memory: allocated and freed in one call, reachable by every device that can reach its owner."""

from __future__ import annotations

from vmm_conformance.contracts import Access, DriverError, Status
from vmm_conformance.drivers.host.access import AccessRights
from vmm_conformance.drivers.host.memory import Memory
from vmm_conformance.drivers.host.objects import Allocation, Rights
from vmm_conformance.drivers.host.system import ATTACH, PAGE, PROT_NONE, PROT_READ_WRITE, PUNCH_HOLE, WITHDRAW


class PlainMemory(AccessRights):
    """alloc and free. Each allocation has pages of its own, so native code cannot stray into another."""

    def alloc(self, size: int, *, device: int = 0, space: int = 0) -> int:
        with self._lock:
            self._check_alloc(size, device, space)
            allocation = self._place(size, device, space)
            self._show_plain(allocation)
            self._add_region(allocation)
            self._used[device] += size
            self.serial += 1
            return allocation.start

    def free(self, address: int) -> None:
        with self._lock:
            allocation = self._check_plain_free(address)
            self._withdraw_plain(allocation)
            self.serial += 1
            self._remove_region(allocation)
            self._fallocate(self._file, PUNCH_HOLE, allocation.memory.start, allocation.memory.size)
            self._plain.give(allocation.pages, allocation.memory.size)
            self._used[allocation.device] -= allocation.size

    def _check_alloc(self, size: int, device: int, space: int) -> None:
        if size <= 0:
            raise DriverError(Status.INVALID_VALUE, "alloc", f"size {size} must be positive")
        self._check_location("alloc", device)
        self._check_space("alloc", space)
        self._check_room("alloc", size, device)

    def _place(self, size: int, device: int, space: int) -> Allocation:
        """Pages for ``size`` bytes, aligned for ``space`` and no better.

        An address that happened to be page-aligned would hide that a client asked for the wrong memory
        space, so the allocation begins inside its first page where the space's alignment allows that.
        """
        alignment = self._spaces[space].alignment
        lead = alignment if alignment < PAGE else 0
        span = (lead + size + PAGE - 1) & -PAGE
        pages = self._plain.take(span, max(alignment, PAGE))
        if pages is None:
            raise DriverError(Status.OUT_OF_MEMORY, "alloc", f"no {size} bytes of address space are left")
        memory = Memory(self._backing.top, span)
        self._backing.top += span
        return Allocation(pages + lead, size, memory, self._plain_rights(device), device, pages)

    def _plain_rights(self, device: int) -> Rights:
        reach = range(self.device_count) if self.options.peers else (device,)
        return dict.fromkeys(reach, Access.READ_WRITE)

    def _show_plain(self, allocation: Allocation) -> None:
        """Put memory at the allocation's pages. Raises, and has changed nothing, if that fails."""
        pages, memory = allocation.pages, allocation.memory
        if self._mmap(pages, memory.size, PROT_READ_WRITE, ATTACH, self._file, memory.start) != pages:
            reason = self._backing.calls.reason()
            self._plain.give(pages, memory.size)
            raise DriverError(Status.OUT_OF_MEMORY, "alloc", f"the system refused {allocation.size} bytes: {reason}")

    def _withdraw_plain(self, allocation: Allocation) -> None:
        """Take the memory away. Raises, and has changed nothing, if that fails.

        Free does not wait for work in flight, no more than unmap does.
        """
        pages, span = allocation.pages, allocation.memory.size
        if self._mmap(pages, span, PROT_NONE, WITHDRAW, -1, 0) != pages:
            reason = self._backing.calls.reason()
            raise DriverError(Status.UNMAP_FAILED, "free", f"the system refused {allocation.start:#x}: {reason}")

    def _check_plain_free(self, address: int) -> Allocation:
        """Exactly the address of one live allocation."""
        allocation = self._regions.get(address)
        if isinstance(allocation, Allocation):
            return allocation
        if isinstance(self._gone.get(address), Allocation):
            detail = f"the allocation at {address:#x} is freed already"
        else:
            detail = f"no allocation begins at {address:#x}; pass what alloc returned"
        raise DriverError(Status.INVALID_VALUE, "free", detail)
