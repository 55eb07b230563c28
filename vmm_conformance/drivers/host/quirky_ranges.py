"""Quirk profiles of reservations, mappings and rights; see `quirks`."""

from __future__ import annotations

import time
from typing import NoReturn

from vmm_conformance.contracts import DriverError, Status
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.objects import Handle, Mapping, Reservation


class Crash(RuntimeError):
    """Stands for what would have brought the process down."""


def _refusal(call: str, status: Status, detail: str) -> DriverError:
    return DriverError(status, call, f"a quirk of this driver: {detail}")


class UnmapsOneOfSeveral(HostDriver):
    """Q-01."""

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        return super()._check_unmap_range(address, size)[:1]

    def _on_still_mapped(self, reservation: Reservation) -> None:
        raise _refusal("address_free", Status.UNKNOWN, "something is mapped in it still")


class AccessByFirstMapping(HostDriver):
    """Q-03. It depends on the layout, as there: a tail as large as the first mapping passes."""

    def _check_access_range(self, address: int, size: int) -> list[Mapping]:
        mappings = super()._check_access_range(address, size)
        inside = mappings[0].reservation
        first = min(m.start for m in self._regions.values() if isinstance(m, Mapping) and m.reservation is inside)
        if address != first and size != self._regions[first].size:
            raise _refusal("set_access", Status.INVALID_VALUE, "it looks at the first mapping of the reservation")
        return mappings


class AccessOneByOne(HostDriver):
    """Q-04."""

    def _check_access_range(self, address: int, size: int) -> list[Mapping]:
        mappings = super()._check_access_range(address, size)
        if len(mappings) > 1:
            raise _refusal("set_access", Status.INVALID_VALUE, "it takes one mapping at a time")
        return mappings


class ReserveIgnoresAlignment(HostDriver):
    """Q-05."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        return super()._choose_address(size, self._minimum, hint)


class MapAlwaysSucceeds(HostDriver):
    """Q-06."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        try:
            super().map(address, size, handle, offset=offset)
        except DriverError:
            if handle in self._handles:
                self._handles[handle].mappings += 1

    def _add_reference(self, handle: Handle) -> None:
        """Forgets to."""

    def unmap(self, address: int, size: int) -> None:
        if not isinstance(self._region_at(address), Mapping):
            self._crash("unmap", address)
        super().unmap(address, size)

    def address_free(self, address: int, size: int) -> None:
        if self._reservation_at(address) is None:
            self._crash("address_free", address)
        super().address_free(address, size)

    def _crash(self, call: str, address: int) -> NoReturn:
        raise Crash(f"{call}: nothing is known of {address:#x}, and it is used all the same")


class OldCodes(HostDriver):
    """Q-08."""

    def _check_reserve(self, size: int, alignment: int) -> None:
        try:
            super()._check_reserve(size, alignment)
        except DriverError as error:
            raise DriverError(Status.OUT_OF_MEMORY, error.call, error.detail) from None

    def _check_location(self, call: str, device: int, status: Status = Status.INVALID_DEVICE) -> None:
        super()._check_location(call, device, Status.INVALID_VALUE if call == "create" else status)


class ForgetsReservations(HostDriver):
    """Q-16."""

    def address_free(self, address: int, size: int) -> None:
        super().address_free(address, size)
        if any(address <= start < address + size for start in self._gone):
            self._space.give(address, size)  # once more than it was taken

    def _reservation_at(self, address: int) -> Reservation | None:
        found = [r for r in self._reservations.values() if r.start <= address < r.end]
        return found[-1] if found else None

    def _check_map_target(self, address: int, size: int) -> Reservation:
        reservation = super()._check_map_target(address, size)
        self._check_not_mapped(address, size)  # by another reservation, whose pages would go with this one's
        return reservation


class UnmapCrashesWithPeers(HostDriver):
    """Q-18."""

    def _check_unmap_range(self, address: int, size: int) -> list[Mapping]:
        mappings = super()._check_unmap_range(address, size)
        if any(sum(map(bool, mapping.rights.values())) > 1 for mapping in mappings):
            raise Crash("unmap: asking for the rights of the second device failed")
        return mappings


class WaitsForOwner(HostDriver):
    """Q-21. unmap waits only where it is declared to. Where a wait would be for ever, the call is refused."""

    def _before_unmap(self, mappings: list[Mapping]) -> None:
        self._wait_for({mapping.handle.device for mapping in mappings})

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        if handle in self._handles:
            self._wait_for({self._handles[handle].device})
        super().map(address, size, handle, offset=offset)

    def _wait_for(self, owners: set[int]) -> None:
        for queue in (*self._streams.values(), *self._destroyed):
            if queue.device in owners:
                self._drain(queue)


class MapHangs(HostDriver):
    """Q-29."""

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        while address in self._gone:
            time.sleep(1)
        super().map(address, size, handle, offset=offset)


class OffersWhatItLacks(HostDriver):
    """Q-24."""

    def _check_map_target(self, address: int, size: int) -> Reservation:
        super()._check_map_target(address, size)
        raise _refusal("map", Status.INVALID_DEVICE, "this device has no virtual memory after all")


class HintIsDemand(HostDriver):
    """Q-27."""

    def _choose_address(self, size: int, alignment: int, hint: int) -> int:
        address = super()._choose_address(size, alignment, hint)
        if hint and address != hint:
            self._space.give(address, size)
            raise _refusal("reserve", Status.OUT_OF_MEMORY, f"the hint {hint:#x} is taken")
        return address


class FreesByContainment(HostDriver):
    """Q-30."""

    def _check_free(self, address: int, size: int) -> Reservation:
        inside = self._reservation_at(address)
        return super()._check_free(inside.start, inside.size) if inside else super()._check_free(address, size)
