"""What the clients of a device driver hold, as its own calls tell: to give it back, and to know whose memory it is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class Mapping:
    """``size`` bytes at ``address``, of memory of ``device``."""

    __slots__ = ("address", "device", "handle", "size")

    def __init__(self, address: int, size: int, handle: int, device: int) -> None:
        self.address = address
        self.size = size
        self.handle = handle
        self.device = device


class Holdings:
    """Follows the calls that succeeded. ``references`` counts by handle; plain memory knows where it really begins."""

    def __init__(self) -> None:
        self.reservations: dict[int, int] = {}
        self.references: dict[int, int] = {}
        self._devices: dict[int, int] = {}
        self._mappings: dict[int, Mapping] = {}
        self._starts: list[int] = []
        self.allocations: dict[int, tuple[int, int, int]] = {}
        """Address to base, size and device."""

    def created(self, handle: int, device: int) -> None:
        """A handle with one reference."""
        self.references[handle] = 1
        self._devices[handle] = device

    def retained(self, handle: int) -> None:
        """One reference more."""
        self.references[handle] = self.references.get(handle, 0) + 1

    def released(self, handle: int) -> None:
        """One reference less."""
        left = self.references.get(handle, 0) - 1
        if left > 0:
            self.references[handle] = left
        else:
            self.references.pop(handle, None)

    def mapped(self, address: int, size: int, handle: int) -> None:
        """A mapping."""
        if address not in self._mappings:
            insort(self._starts, address)
        self._mappings[address] = Mapping(address, size, handle, self._devices.get(handle, 0))

    def unmapped(self, address: int, size: int) -> None:
        """No mapping is left in the range."""
        first, last = bisect_left(self._starts, address), bisect_left(self._starts, address + size)
        for start in self._starts[first:last]:
            del self._mappings[start]
        del self._starts[first:last]

    def mappings(self) -> Iterator[Mapping]:
        """All mappings, by address."""
        return iter([self._mappings[start] for start in self._starts])

    def device_at(self, address: int) -> int:
        """The device whose memory is at an address; 0 where nothing is known to be."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            mapping = self._mappings[self._starts[index]]
            if address < mapping.address + mapping.size:
                return mapping.device
        for start, (_, size, device) in self.allocations.items():
            if start <= address < start + size:
                return device
        return 0
