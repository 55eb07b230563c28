"""Memory layers that are wrong about allocations or reservations."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from vmm_conformance.contracts import Driver, DriverError, Range
from vmm_reference.mutants.reservation_parts import Registry
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import MemoryReservation, VmmMemory

mutant = Registry()

# -- RAW: allocations


@mutant("RAW-1")
class Unrounded(RawMemoryAllocation):
    """Reports the size that was asked for, not the size that the memory has."""

    def __init__(self, driver: Driver, device: int, size: int, space: int) -> None:
        super().__init__(driver, device, size, space)
        self.asked = size

    @property
    def address(self) -> Range:
        return super().address._replace(size=self.asked)


@mutant("RAW-1")
class RoundsToMinimum(RawMemoryAllocation):
    """Rounds to the least granularity instead of the recommended one."""

    def __init__(self, driver: Driver, device: int, size: int, space: int) -> None:
        minimum = driver.granularity(device, space).minimum
        coarse: Any = SimpleNamespace(
            granularity=lambda device, space: SimpleNamespace(recommended=minimum), create=driver.create
        )
        super().__init__(coarse, device, size, space)
        self.driver = driver


@mutant("RAW-2")
class RoundsDown(RawMemoryAllocation):
    """Cuts the size down to whole granules, so a small request asks the driver for nothing."""

    def __init__(self, driver: Driver, device: int, size: int, space: int) -> None:
        granularity = driver.granularity(device, space).recommended
        if size < granularity:
            driver.create(0, device=device, space=space)
        super().__init__(driver, device, size // granularity * granularity, space)


@mutant("RAW-2")
class NullIdentity(RawMemoryAllocation):
    """Has the identity 0, as if the handle were an address that is not known yet."""

    @property
    def address(self) -> Range:
        return super().address._replace(address=0)


@mutant("RAW-2")
class SpaceDropped(VmmMemory):
    """Creates all memory in memory space 0."""

    def allocate(self, size: int, space: int = 0) -> RawMemoryAllocation:
        return super().allocate(size)


@mutant("RAW-2")
class FirstDevice(VmmMemory):
    """Creates memory on device 0, the current one, whatever its own device is."""

    def allocate(self, size: int, space: int = 0) -> RawMemoryAllocation:
        return RawMemoryAllocation(self.driver, 0, size, space)


@mutant("RAW-3")
class ReleasesTwice(RawMemoryAllocation):
    """Releases its handle whenever it is told to, also when it is gone."""

    def settle(self) -> None:
        if self.released and not self.mappings:
            self.gone = False
        super().settle()


@mutant("RAW-3")
class NeverReleases(RawMemoryAllocation):
    """Forgets the handle if a mapping shows the memory when its owner releases it."""

    def release(self) -> None:
        self.gone = self.gone or self.mappings > 0
        super().release()


@mutant("RAW-3")
class ReleasesAtOnce(RawMemoryAllocation):
    """Releases the handle while mappings show the memory."""

    def settle(self) -> None:
        shown, self.mappings = self.mappings, 0
        super().settle()
        self.mappings = shown


@mutant("RAW-3")
class ReleaseRaises(RawMemoryAllocation):
    """Raises what the driver answers to a release."""

    def settle(self) -> None:
        if self.released and not self.mappings and not self.gone:
            self.driver.release(self.handle)
            self.gone = True


# -- RES-4, RES-5, RES-9: reservations


@mutant("RES-4")
class UnroundedAddresses(MemoryReservation):
    """Reserves exactly the size that was asked for."""

    def __init__(self, driver: Driver, device: int, size: int, alignment: int, scopes: Any) -> None:
        super().__init__(driver, device, size, alignment, scopes)
        if size != self.size:
            driver.address_free(self.base, self.size)
            self.size = size
            self.base = driver.reserve(size, alignment=alignment)


@mutant("RES-4")
class ReportsAsked(MemoryReservation):
    """Reports the size that was asked for, not the size that is reserved."""

    def __init__(self, driver: Driver, device: int, size: int, alignment: int, scopes: Any) -> None:
        super().__init__(driver, device, size, alignment, scopes)
        self.asked = size

    @property
    def address(self) -> Range:
        return super().address._replace(size=self.asked)


@mutant("RES-4")
class AlignmentDropped(VmmMemory):
    """Aligns to the granularity, whatever alignment is asked for."""

    def reserve(self, size: int, alignment: int = 0) -> MemoryReservation:
        return super().reserve(size)


@mutant("RES-5")
class HandsOutTwice(VmmMemory):
    """Finds a reservation of the same size in its cache, and does not see that it is in use."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cache: dict[int, MemoryReservation] = {}

    def reserve(self, size: int, alignment: int = 0) -> MemoryReservation:
        made = super().reserve(size, alignment)
        known = self.cache.setdefault(made.size, made)
        if known is not made and not known.closed:
            made.free()
            made.base, made.freed = known.base, True
        else:
            self.cache[made.size] = made
        return made


@mutant("RES-9")
class FreesFirst(MemoryReservation):
    """Frees the addresses, and unmaps what is still mapped afterwards."""

    def close(self) -> None:
        self.closed = True
        for _ in range(2):
            if not self.freed:
                with suppress(DriverError):
                    self.free()
                    self.freed = True
            self.withdraw(Range(0, self.size))


@mutant("RES-9")
class CloseRaises(MemoryReservation):
    """Raises what the driver answers to the freeing of the addresses."""

    def close(self) -> None:
        super().close()
        if not self.freed:
            self.free()


@mutant("RES-9")
class KeepsAddresses(MemoryReservation):
    """Does not free the addresses if something was mapped when it was closed."""

    def close(self) -> None:
        self.freed = self.freed or bool(self.mapped)
        super().close()


@mutant("RES-9")
class ClosesTwice(MemoryReservation):
    """Frees its addresses each time it is closed."""

    def close(self) -> None:
        self.freed = False
        super().close()


@mutant("RES-9")
class MapsWhenClosed(MemoryReservation):
    """Does not remember that it was closed."""

    def check_open(self, call: str) -> None:
        pass


MUTANTS = mutant.mutants
