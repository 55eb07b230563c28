"""Access rights: which device may read and write which mapping."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from typing import Final, NoReturn, TypeAlias

from vmm_conformance.contracts import Access, DriverError, Status
from vmm_conformance.drivers.host.mappings import Mappings
from vmm_conformance.drivers.host.objects import Mapping, Part, Region, Rights

Change: TypeAlias = tuple[Mapping, Part, Rights, Access]
"""What a set_access is to change: a part of a mapping, its rights by then, and the largest of them."""

_ACCESS: Final[dict[int, Access]] = {int(access): access for access in Access}


class AccessRights(Mappings):
    """V48 to V59. The host process takes part as a device that has every right any device has."""

    def set_access(self, address: int, size: int, rights: Dictionary[int, Access]) -> None:
        self._enter()
        try:
            wanted = self._check_rights(rights)
            mappings = self._check_access_range(address, size)
            if not self.options.peers:
                self._check_peers(mappings, wanted)
            if len(mappings) == 1 and mappings[0].size == size and mappings[0].parts is None:
                self._set_whole(mappings[0], wanted)
            else:
                self._set_parts(self._changes(mappings, address, address + size, wanted))
        finally:
            self._leave()

    def get_access(self, address: int, device: int) -> Access:
        with self._lock:
            self._check_location("get_access", device, Status.INVALID_VALUE)
            mapping = self._region_at(address)
            if not isinstance(mapping, Mapping):
                raise DriverError(
                    Status.INVALID_VALUE,
                    "get_access",
                    f"nothing is mapped at {address:#x}; pass an address inside a mapping",
                )
            return self._rights_at(mapping, address).get(device, Access.NONE)

    def _check_rights(self, rights: Dictionary[int, Access]) -> Rights:
        """At least one device, each of them known, and rights that exist (V55)."""
        if not rights:
            raise DriverError(Status.INVALID_VALUE, "set_access", "no device is named; name at least one")
        wanted: Rights = {}
        for device, right in rights.items():
            if not 0 <= device < self.device_count:
                self._check_location("set_access", device, Status.INVALID_VALUE)
            access = _ACCESS.get(right)
            if access is None:
                raise DriverError(
                    Status.INVALID_VALUE,
                    "set_access",
                    f"{right!r} is no access right; use 0 (none), 1 (read) or 3 (read and write)",
                )
            wanted[device] = access
        return wanted

    def _check_access_range(self, address: int, size: int) -> list[Mapping]:
        """Whole adjacent mappings, or what the capabilities add to that (V51 to V54)."""
        mapping = self._regions.get(address)
        if mapping is not None and mapping.size == size and isinstance(mapping, Mapping):
            return [mapping]
        if self.capabilities.set_access_part_of_mapping:
            mappings = self._mappings_over(address, size)
        else:
            mappings = self._whole_mappings("set_access", address, size)
        if len(mappings) > 1 and not self.capabilities.set_access_spans_mappings:
            raise DriverError(
                Status.INVALID_VALUE,
                "set_access",
                f"{address:#x}+{size} covers {len(mappings)} mappings; this driver takes one at a time",
            )
        return mappings

    def _mappings_over(self, address: int, size: int) -> list[Mapping]:
        """The adjacent mappings of one reservation that the range lies in, parts of them allowed."""
        first = self._region_at(address)
        if size > 0 and isinstance(first, Mapping) and not (address | size) % self._minimum:
            start, end = first.start, address + size
            last = self._region_at(end - 1)
            if isinstance(last, Mapping) and last.reservation is first.reservation:
                return self._whole_mappings("set_access", start, last.end - start)
        raise DriverError(
            Status.INVALID_VALUE,
            "set_access",
            f"{address:#x}+{size} must be mapped throughout, in one reservation, "
            f"and start and end at multiples of {self._minimum}",
        )

    def _check_peers(self, mappings: list[Mapping], wanted: Rights) -> None:
        """Devices that cannot reach each other's memory are granted nothing on it."""
        for mapping in mappings:
            for device, right in wanted.items():
                if right and device != mapping.handle.device:
                    raise DriverError(
                        Status.NOT_SUPPORTED,
                        "set_access",
                        f"device {device} cannot reach memory of device {mapping.handle.device}; "
                        "ask can_access_peer first",
                    )

    def _rights_after_set(self, part: Part, wanted: Rights) -> Rights:
        """The rights of each device after the call: those not named keep theirs (V56)."""
        return {**part.rights, **wanted}

    def _set_whole(self, mapping: Mapping, wanted: Rights) -> None:
        """The common case: one whole mapping."""
        new = self._rights_after_set(mapping, wanted)
        most = max(new.values())
        if not self._show(mapping, mapping, mapping.most, most):
            self._refused(mapping, self._backing.calls.reason())
        self.serial += 1
        self._store(mapping, new, most)

    def _changes(self, mappings: list[Mapping], start: int, end: int, wanted: Rights) -> list[Change]:
        changes: list[Change] = []
        for mapping in mappings:
            for part in self._parts_within(mapping, start, end):
                new = self._rights_after_set(part, wanted)
                changes.append((mapping, part, new, max(new.values())))
        return changes

    def _set_parts(self, changes: list[Change]) -> None:
        """Let the host process do what any device may, part by part; all of it or none."""
        for index, (mapping, part, _, most) in enumerate(changes):
            if not self._show(mapping, part, part.most, most):
                reason = self._backing.calls.reason()
                for other, done, _, now in changes[:index]:
                    self._show(other, done, now, done.most)
                self._refused(part, reason)
        self.serial += 1
        for _, part, new, most in changes:
            self._store(part, new, most)

    def _refused(self, part: Part, reason: str) -> NoReturn:
        raise DriverError(
            Status.OUT_OF_MEMORY,
            "set_access",
            f"the system refused {part.start:#x}+{part.end - part.start}: {reason}",
        )

    def _store(self, part: Part, new: Rights, most: Access) -> None:
        if part.most:
            self._note_revoked(part, new)
        part.rights = new
        part.most = most

    def _note_revoked(self, part: Part, new: Rights) -> None:
        """Remember for whom this call lowers rights."""
        lowered = [device for device, right in part.rights.items() if new.get(device, Access.NONE) < right]
        part.revoked = {**(part.revoked or {}), **dict.fromkeys(lowered, self.serial)}

    # -- rights that differ within one mapping

    def _parts_within(self, region: Region, start: int, end: int) -> Sequence[Part]:
        """The parts of ``region`` between ``start`` and ``end``, split there where need be."""
        if region.parts is None and start <= region.start and end >= region.end:
            return (region,)
        parts = region.parts or [Part(region.start, region.end, region.rights, region.most, region.revoked)]
        for edge in (start, end):
            parts = _split(parts, edge)
        region.parts = parts
        return [part for part in parts if start <= part.start and part.end <= end]

    def _rights_at(self, region: Region, address: int) -> Rights:
        if region.parts is None:
            return region.rights
        return region.parts[bisect_right(region.parts, address, key=lambda part: part.start) - 1].rights


def _split(parts: list[Part], edge: int) -> list[Part]:
    """``parts`` with a border at ``edge``."""
    result: list[Part] = []
    for part in parts:
        if part.start < edge < part.end:
            for start, end in ((part.start, edge), (edge, part.end)):
                result.append(Part(start, end, part.rights, part.most, part.revoked))
        else:
            result.append(part)
    return result
