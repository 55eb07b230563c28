"""Host drivers that are wrong on purpose: one for each rule that a driver suite must be able to catch.

Each differs from the strict driver in one rule, by overriding that rule's method. None of them brings
the process down: what they get wrong is a status or a table, never the memory of others.
"""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from dataclasses import dataclass
from typing import Final

from vmm_conformance.contracts import Access, Driver, DriverError, DriverOptions, Mutant
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.memory import Memory
from vmm_conformance.drivers.host.objects import Handle, Mapping, Part, Region, Reservation, Rights
from vmm_conformance.drivers.host.system import ATTACH, PROT_READ_WRITE

ALL_RIGHTS: Final = frozenset(int(access) for access in Access)


@dataclass(frozen=True, slots=True)
class HostSubject:
    """A subject of the contract ``driver``: a variant of the host driver."""

    name: str
    kind: type[HostDriver]
    version: str = ""

    def driver(self, options: DriverOptions) -> Driver:
        """A fresh driver."""
        return self.kind(options)


# -- address_free


class FreesByContainment(HostDriver):
    """An address inside a reservation frees it."""

    def _check_free(self, address: int, size: int) -> Reservation:
        inside = self._reservation_at(address)
        if inside is not None and inside.start != address:
            return super()._check_free(inside.start, inside.size)
        return super()._check_free(address, size)


class FreesAnySize(HostDriver):
    """address_free ignores the size it is given."""

    def _check_free(self, address: int, size: int) -> Reservation:
        reservation = self._reservations.get(address)
        return super()._check_free(address, size if reservation is None else reservation.size)


class FreesMapped(HostDriver):
    """address_free unmaps what is still mapped."""

    def _on_still_mapped(self, reservation: Reservation) -> None:
        for mapping in self._inside(reservation.start, reservation.end):
            self.unmap(mapping.start, mapping.size)

    def _inside(self, start: int, end: int) -> list[Region]:
        return [region for region in self._regions.values() if start <= region.start and region.end <= end]


class FreesTwice(HostDriver):
    """A second address_free of one reservation succeeds."""

    def address_free(self, address: int, size: int) -> None:
        if self._reservation_at(address) is not None:
            super().address_free(address, size)


class FreesNeighbours(HostDriver):
    """One address_free takes several adjacent reservations."""

    def address_free(self, address: int, size: int) -> None:
        found: list[Reservation] = []
        at = address
        while at < address + size and (reservation := self._reservations.get(at)) is not None:
            found.append(reservation)
            at = reservation.end
        if len(found) < 2 or at != address + size:
            super().address_free(address, size)
        else:
            for reservation in found:
                super().address_free(reservation.start, reservation.size)


# -- create


class CreateRoundsUp(HostDriver):
    """create rounds a size up to the granularity."""

    def _check_create(self, size: int, device: int, space: int) -> int:
        return super()._check_create(-(-size // self._minimum) * self._minimum, device, space)


# -- map


class MapsNowhere(HostDriver):
    """map outside every reservation succeeds and does nothing."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        if self._reservation_at(address) is not None:
            super().map(address, size, handle, offset=offset)


class MapClips(HostDriver):
    """map cuts a range off at the end of its reservation."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        reservation = self._reservation_at(address)
        if reservation is not None and size > reservation.end - address:
            size = reservation.end - address
        super().map(address, size, handle, offset=offset)


class MapOverwrites(HostDriver):
    """map onto a mapping replaces it."""

    def _check_not_mapped(self, address: int, size: int) -> None:
        for region in list(self._regions.values()):
            if region.start < address + size and address < region.end:
                self.unmap(region.start, region.size)


class MapRounds(HostDriver):
    """map rounds address and size to the granularity."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        down = address - address % self._minimum
        super().map(down, -(-size // self._minimum) * self._minimum, handle, offset=offset)


class MapIgnoresOffset(HostDriver):
    """map ignores the offset."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        super().map(address, size, handle)


class MapsBeyondHandle(HostDriver):
    """map takes more bytes than the handle has."""

    def _on_larger_than_handle(self, size: int, handle: Handle, offset: int) -> None:
        """Goes on, into whatever lies behind the handle's memory."""


# -- unmap


class UnmapsNeighbour(HostDriver):
    """unmap takes the mapping behind the range as well."""

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        mappings = super()._check_unmap_range(address, size)
        behind = self._regions.get(mappings[-1].end)
        return [*mappings, behind] if isinstance(behind, Mapping) else mappings


class UnmapsFirstOnly(HostDriver):
    """unmap of several takes the first."""

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        return super()._check_unmap_range(address, size)[:1]


class UnmapsByContainment(HostDriver):
    """unmap of a part takes the whole mapping."""

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        region = self._region_at(address)
        if isinstance(region, Mapping) and size > 0 and address + size <= region.end:
            return [region]
        return super()._check_unmap_range(address, size)


class UnmapsOverHoles(HostDriver):
    """unmap passes over addresses with nothing mapped."""

    def unmap(self, address: int, size: int) -> None:
        end = address + size
        touched = [m for m in self._regions.values() if m.start < end and address < m.end]
        if size <= 0 or any(m.start < address or m.end > end for m in touched):
            super().unmap(address, size)
        else:
            for mapping in touched:
                super().unmap(mapping.start, mapping.size)


# -- access


class MapGrantsAccess(HostDriver):
    """A fresh mapping is readable and writable."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        super().map(address, size, handle, offset=offset)
        self.set_access(address, size, {self._handles[handle].device: Access.READ_WRITE})


class NeedsNoAccess(HostDriver):
    """Memory can be used before anybody has a right to it.

    It shows the memory from map on, so that the use it forgets to refuse does not crash.
    """

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        super().map(address, size, handle, offset=offset)
        self._mmap(address, size, PROT_READ_WRITE, ATTACH, self._file, self._handles[handle].start + offset)

    def _show(self, region: Region, part: Part, before: Access, after: Access) -> bool:
        return True

    def _refusal(self, right: Access, write: bool) -> str:
        return super()._refusal(right, write) if right else ""


class SetAccessHalfWay(HostDriver):
    """A refused set_access has changed what it could."""

    def set_access(self, address: int, size: int, rights: Dictionary[int, Access]) -> None:
        try:
            super().set_access(address, size, rights)
        except DriverError:
            for mapping in list(self._regions.values()):
                if isinstance(mapping, Mapping) and address <= mapping.start and mapping.end <= address + size:
                    super().set_access(mapping.start, mapping.size, rights)
            raise


class TakesAnyRight(HostDriver):
    """set_access takes a right that does not exist for all rights."""

    def _check_rights(self, rights: Dictionary[int, Access]) -> Rights:
        known = {d: right if right in ALL_RIGHTS else Access.READ_WRITE for d, right in rights.items()}
        return super()._check_rights(known)


class ResetsOtherDevices(HostDriver):
    """set_access takes the rights of devices not named."""

    def _rights_after_set(self, part: Part, wanted: Rights) -> Rights:
        return wanted


class AccessSurvivesUnmap(HostDriver):
    """A new mapping has the rights of the last one."""

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._remembered: dict[int, Rights] = {}

    def _remove_mapping(self, mapping: Mapping) -> None:
        self._remembered[mapping.start] = mapping.rights
        super()._remove_mapping(mapping)

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        super().map(address, size, handle, offset=offset)
        rights = self._remembered.get(address)
        if rights:
            self.set_access(address, size, rights)


# -- contents


class AliasesAreCopies(HostDriver):
    """A second mapping of a handle shows memory of its own."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        super().map(address, size, handle, offset=offset)
        memory = self._handles[handle]
        if memory.mappings > 1:
            self._regions[address].memory = Memory(self._backing.top, memory.size)
            self._backing.top += memory.size


class FreesUnderAlias(HostDriver):
    """The first unmap of a released handle frees its memory."""

    def _remove_mapping(self, mapping: Mapping) -> None:
        super()._remove_mapping(mapping)
        if mapping.handle.mappings and not mapping.handle.references:
            self._return_memory(mapping.handle)

    def _return_memory(self, handle: Handle) -> None:
        if handle.id in self._handles:
            super()._return_memory(handle)


def _mutant(number: int, kind: type[HostDriver], source: str = "") -> Mutant:
    """The mutant of ``kind``: named after its class, explained by the first line of its docstring."""
    name = "driver" + "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__)
    note = (kind.__doc__ or "").partition("\n")[0]
    return Mutant(name, "driver", (f"DRIVER-{number}",), HostSubject(name, kind), note, source)


_CLR = "ROCm/clr hip_vm.cpp, 2024"

MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant(13, FreesByContainment, _CLR),
    _mutant(14, FreesAnySize, _CLR),
    _mutant(15, FreesMapped),
    _mutant(16, FreesTwice),
    _mutant(17, FreesNeighbours, "NVIDIA/cuda-python#2890"),
    _mutant(20, CreateRoundsUp),
    _mutant(31, MapsNowhere, _CLR),
    _mutant(32, MapClips),
    _mutant(33, MapOverwrites, "pytorch/pytorch#188673"),
    _mutant(34, MapRounds),
    _mutant(35, MapIgnoresOffset, "ROCR-Runtime runtime.cpp, 2024"),
    _mutant(36, MapsBeyondHandle),
    _mutant(40, UnmapsNeighbour),
    _mutant(41, UnmapsFirstOnly, "ROCm/ROCR-Runtime#285"),
    _mutant(42, UnmapsByContainment, _CLR),
    _mutant(43, UnmapsOverHoles),
    _mutant(48, MapGrantsAccess),
    _mutant(49, NeedsNoAccess),
    _mutant(54, SetAccessHalfWay),
    _mutant(55, TakesAnyRight),
    _mutant(56, ResetsOtherDevices),
    _mutant(57, AccessSurvivesUnmap),
    _mutant(60, AliasesAreCopies),
    _mutant(61, FreesUnderAlias),
)
"""One known-bad driver for each invariant that is worth one."""
