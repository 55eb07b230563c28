"""Work on memory: what it touches, whether it may, and doing it.

Work names ranges. When it is submitted the driver remembers which mappings stand behind each; when it
runs the same ones must still be there, with rights. That is how use after unmap is found on every
schedule, even where other memory is mapped at the address by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import memmove, memset, string_at
from typing import Final, NamedTuple, TypeAlias

from vmm_conformance.contracts import Access, Copy, DriverError, Fault, Range, Status, Work, Write
from vmm_conformance.drivers.host.objects import Allocation, Mapping, Part, Region
from vmm_conformance.drivers.host.plain import PlainMemory


class Fill(NamedTuple):
    """``size`` bytes at ``target`` set to ``value``."""

    target: int
    value: int
    size: int


_ALL_RIGHTS: Final = Access.READ_WRITE
_NO_RIGHTS: Final = Access.NONE

Operation: TypeAlias = Range | Copy | Write | Fill
"""What work consists of; a range is read."""


class Use:
    """One range that an operation reads or writes, and what stood behind it at submission."""

    __slots__ = ("address", "fault", "regions", "size", "write")

    def __init__(self, address: int, size: int, write: bool) -> None:
        self.address = address
        self.size = size
        self.write = write
        self.regions: Sequence[Region] = ()
        self.fault: Fault | None = None


Job: TypeAlias = tuple[Operation, tuple[Use, ...]]
"""An operation bound to the memory it will touch: the read range first, if it has one."""


class HostWork(PlainMemory):
    """Binding, checking and performing operations. ``device`` None is the host."""

    def _bind(self, operation: Operation, device: int | None) -> Job:
        """``operation`` with the memory that stands behind its ranges now."""
        if isinstance(operation, Range):
            uses: tuple[Use, ...] = (self._use(operation.address, operation.size, False, device),)
        elif isinstance(operation, Copy):
            uses = (
                self._use(operation.source, operation.size, False, device),
                self._use(operation.target, operation.size, True, device),
            )
        elif isinstance(operation, Write):
            uses = (self._use(operation.address, len(operation.data), True, device),)
        else:
            uses = (self._use(operation.target, operation.size, True, device),)
        return operation, uses

    def _use(self, address: int, size: int, write: bool, device: int | None) -> Use:
        use = Use(address, size, write)
        if not size:
            return use
        region = self._region_at(address)
        if region is None or region.end < address + size:
            use.fault = self._find_regions(use) or self._fault_of(use, device)
            return use
        use.regions = (region,)
        right = region.most if device is None else region.rights.get(device, _NO_RIGHTS)
        if right is not _ALL_RIGHTS or region.parts is not None:  # nearly always all rights, and everywhere alike
            use.fault = self._fault_of(use, device)
        return use

    def _find_regions(self, use: Use) -> Fault | None:
        """Set ``use.regions``: one mapping or allocation, or adjacent mappings (V62)."""
        end = use.address + use.size
        region = self._region_at(use.address)
        if region is None:
            return self._nothing_at(use, use.address)
        regions = [region]
        while region.end < end:
            behind = self._regions.get(region.end)
            if behind is None or not self._may_span(region, behind):
                return self._nothing_at(use, region.end)
            region = behind
            regions.append(region)
        use.regions = regions
        return None

    def _may_span(self, left: Region, right: Region) -> bool:
        """Whether one range may reach from one region into the next: inside one reservation, or as declared (V63)."""
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            return left.reservation is right.reservation or self.capabilities.copy_spans_reservations
        return False

    def _nothing_at(self, use: Use, address: int) -> Fault:
        """The fault of a range with nothing behind ``address``, blamed on what was there last."""
        gone = [r for r in self._gone.values() if r.start <= address < r.end]
        last = max(gone, key=lambda region: region.removed, default=None)
        if last is None:
            return Fault(use.address, use.size, "unmapped")
        reason = "freed" if isinstance(last, Allocation) else "unmapped"
        return Fault(use.address, use.size, reason, last.removed)

    def _fault_of(self, use: Use, device: int | None) -> Fault | None:
        """What is wrong with the memory behind ``use`` now, if anything."""
        for region in use.regions:
            if region.removed:
                return Fault(use.address, use.size, self._reason(use, region), region.removed)
            parts: Sequence[Part] = (region,) if region.parts is None else self._touched_parts(use, region.parts)
            for part in parts:
                right = part.most if device is None else part.rights.get(device, _NO_RIGHTS)
                if right is not _ALL_RIGHTS and (reason := self._refusal(right, use.write)):
                    return Fault(use.address, use.size, reason, _revoker(part, device))
        return None

    def _refusal(self, right: Access, write: bool) -> str:
        """Why ``right`` does not allow the access, or "" if it does (V49, V50)."""
        if not right:
            return "no access"
        if write and right is Access.READ and self.capabilities.read_only_enforced:
            return "read only"
        return ""

    def _reason(self, use: Use, region: Region) -> str:
        if isinstance(region, Allocation):
            return "freed"
        return "remapped" if self._region_at(max(use.address, region.start)) else "unmapped"

    def _touched_parts(self, use: Use, parts: Sequence[Part]) -> list[Part]:
        return [part for part in parts if part.start < use.address + use.size and use.address < part.end]

    # -- performing

    def _run_now(self, operations: Sequence[Operation], call: str) -> Work:
        """The host does ``operations`` at once. Raises `DriverError`, and does none, where it must not (V49)."""
        jobs = [self._bind(operation, None) for operation in operations]
        for use in (use for _, uses in jobs for use in uses):
            if use.fault is not None:
                what = "write" if use.write else "read"
                raise DriverError(
                    Status.ILLEGAL_ADDRESS,
                    call,
                    f"cannot {what} {use.address:#x}+{use.size}: {use.fault.reason}; "
                    "map the whole range and give a device the right first",
                )
        data = [self._perform(job) for job in jobs]
        return Work(next(self._ids), True, tuple(read for read in data if read is not None))

    def _perform(self, job: Job) -> bytes | None:
        """Do it. What an operation reads is returned."""
        operation, uses = job
        for use in uses:
            self._touch(use)
        if isinstance(operation, Range):
            return string_at(operation.address, operation.size)
        if isinstance(operation, Copy):
            memmove(operation.target, operation.source, operation.size)
        elif isinstance(operation, Write):
            memmove(operation.address, operation.data, len(operation.data))
        else:
            memset(operation.target, operation.value, operation.size)
        return None

    def _touch(self, use: Use) -> None:
        """Poison whatever nobody has touched before in the pages of ``use``."""
        for region in use.regions:
            memory = region.memory
            if not memory.complete:
                first = max(use.address, region.start) - region.start + region.offset
                last = min(use.address + use.size, region.end) - region.start + region.offset
                self._backing.touch(memory, first, last, use.write)


def _revoker(part: Part, device: int | None) -> int:
    """The serial number of the call that lowered the rights, 0 if they were never higher."""
    if part.revoked is None:
        return 0
    return max(part.revoked.values(), default=0) if device is None else part.revoked.get(device, 0)
