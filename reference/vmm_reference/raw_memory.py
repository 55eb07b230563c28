"""Physical memory without an address."""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import Driver, DriverError, Range
from vmm_reference.descriptors import check_size, round_up, used_after


class RawMemoryAllocation:
    """Physical memory on one device.

    Its handle is released once, when the owner has released the allocation and no mapping shows it any
    more, whichever comes later (RAW-3).
    """

    def __init__(self, driver: Driver, device: int, size: int, space: int) -> None:
        check_size("allocate", size)
        self.driver = driver
        self.size = round_up(size, driver.granularity(device, space).recommended)  # RAW-1
        self.handle = driver.create(self.size, device=device, space=space)
        self.released = False
        self.gone = False
        self.mappings = 0

    @property
    def address(self) -> Range:
        """The handle and the size behind it: an identity, nothing to read from."""
        if self.released:
            raise used_after("address: this allocation was released")
        return Range(self.handle, self.size)

    def release(self) -> None:
        """Give the memory up. What the driver refuses is tried again when this is called again."""
        self.released = True
        self.settle()

    def shown(self, more: int) -> None:
        """``more`` mappings show this memory, or fewer, if negative."""
        self.mappings += more
        self.settle()

    def settle(self) -> None:
        """Release the handle if nobody needs it."""
        if self.released and not self.mappings and not self.gone:
            with suppress(DriverError):
                self.driver.release(self.handle)
                self.gone = True
