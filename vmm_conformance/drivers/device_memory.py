"""The memory side of a device driver: discovery, virtual memory, plain memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from vmm_conformance.contracts import (
    Access,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    Live,
    MemoryInfo,
    Range,
    Status,
)
from vmm_conformance.drivers.calls import EMULATED, WORD, Calls, DriverUnavailable
from vmm_conformance.drivers.holdings import Holdings

_LARGEST: Final = 2 << 20
"""A multiple of every vendor's granularity."""
_ACCESSES: Final = {int(access): access for access in Access}


class DeviceMemory:
    """A driver over a vendor's calls. Memory spaces are a convention of clients: devices know none.

    A space that needs a larger alignment than the device gives gets a larger allocation. ``real`` is False where the
    vendor's library turns out to be an emulated one.

    ``memory`` is how many bytes of each device may be taken, 0 for no such limit; of a real one it is half of what is
    free at most. What is above it counts as taken by somebody else: `mem_info` tells of the rest, and who asks for more
    than that asks the device for more than it has, so that the refusal is its own.
    """

    def __init__(self, calls: Calls, options: DriverOptions, memory: int = 0) -> None:
        self.options = options
        self._calls = calls
        self.name = calls.name
        self.capabilities: DriverCapabilities = calls.declared()
        self.device_count = self._usable_devices()
        self.real = not calls.device_name(0).startswith(EMULATED)
        self._lock = threading.RLock()
        self._holdings = Holdings()
        self._reach_peers()
        self.spared = [self._spare(device, memory) for device in range(self.device_count)]
        self._room = [0] * self.device_count

    def _spare(self, device: int, memory: int) -> int:
        """Bytes of a device that are left to others, in whole granules of any device."""
        if not memory and not self.real:
            return 0
        self._calls.use(device)
        free, _ = self._calls.mem_info()
        most = free // 2 if self.real else free
        return -(-(free - min(memory or most, most)) // _LARGEST) * _LARGEST

    def _beyond(self, size: int, device: int) -> int:
        """``size``, and what is spared as well where more is asked for than is free beside that, and a word holds both.

        The device is asked only when what was free last may not do: asking makes it the current one, and whether a call
        minds which one that is belongs to what is tested.
        """
        spared = self.spared[device] if 0 <= device < self.device_count else 0
        if not spared:
            return size
        if size > self._room[device] and size > self.mem_info(device).free:
            return size + spared if size + spared <= WORD else size
        self._room[device] -= size
        return size

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the binding and of the library under it, and the name of the first device."""
        return {**self._calls.versions(), "device": self._calls.device_name(0)}

    def _usable_devices(self) -> int:
        found = self._calls.device_count()
        if not found:
            raise DriverUnavailable(f"the driver {self.name!r} finds no device; is one visible to this process?")
        count = min(found, self.options.devices)
        for device in range(count):
            if not self._calls.has_virtual_memory(device):
                name = self._calls.device_name(device)
                raise DriverUnavailable(f"device {device} ({name}) of {self.name!r} has no virtual memory management")
        return count

    def _reach_peers(self) -> None:
        """Plain memory is to be reachable by every device that can reach its owner."""
        for device in range(self.device_count):
            for peer in range(self.device_count):
                if device != peer and self._calls.can_access_peer(device, peer):
                    self._calls.use(device)
                    self._calls.enable_peer(peer)

    def _use(self, call: str, device: int, status: int = Status.INVALID_DEVICE) -> None:
        if not 0 <= device < self.device_count:
            raise DriverError(status, call, f"device {device} is none of the {self.device_count}, numbered from 0")
        self._calls.use(device)

    def _check_space(self, call: str, space: int) -> None:
        if space not in self.options.spaces:
            known = ", ".join(map(str, sorted(self.options.spaces)))
            raise DriverError(Status.INVALID_VALUE, call, f"memory space {space} is unknown; there are {known}")

    # -- discovery

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        self._check_space("granularity", space)
        self._use("granularity", device, Status.INVALID_VALUE)
        minimum = self._calls.granularity(device, recommended=False)
        return Granularity(minimum, self._calls.granularity(device, recommended=True))

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        self._use("space_alignment", device)
        self._check_space("space_alignment", space)
        return self.options.spaces[space].alignment

    def can_access_peer(self, device: int, peer: int) -> bool:
        self._use("can_access_peer", peer)
        self._use("can_access_peer", device)
        return device != peer and self._calls.can_access_peer(device, peer)

    def mem_info(self, device: int = 0) -> MemoryInfo:
        self._use("mem_info", device)
        free, total = self._calls.mem_info()
        self._room[device] = max(free - self.spared[device], 0)
        return MemoryInfo(self._room[device], total)

    def address_range(self, address: int) -> Range:
        start, size = self._calls.address_range(address)
        for given, (base, wanted, _) in self._holdings.allocations.items():
            if base == start and given != base:
                return Range(given, wanted)
        return Range(start, size)

    # -- virtual memory

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        address = self._calls.reserve(size & WORD, alignment & WORD, hint & WORD)
        with self._lock:
            self._holdings.reservations[address] = size
        return address

    def address_free(self, address: int, size: int) -> None:
        self._calls.address_free(address & WORD, size & WORD)
        with self._lock:
            self._holdings.reservations.pop(address, None)

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        self._check_space("create", space)
        if device >= self.device_count:
            self._use("create", device)
        handle = self._calls.create(self._beyond(size & WORD, device), device)
        with self._lock:
            self._holdings.created(handle, device)
        return handle

    def retain(self, address: int) -> int:
        handle = self._calls.retain(address & WORD)
        with self._lock:
            self._holdings.retained(handle)
        return handle

    def release(self, handle: int) -> None:
        self._calls.release(handle & WORD)
        with self._lock:
            self._holdings.released(handle)

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        self._calls.map(address & WORD, size & WORD, handle & WORD, offset & WORD)
        with self._lock:
            self._holdings.mapped(address, size, handle)

    def unmap(self, address: int, size: int) -> None:
        self._calls.unmap(address & WORD, size & WORD)
        with self._lock:
            self._holdings.unmapped(address, size)

    def set_access(self, address: int, size: int, rights: Mapping[int, Access]) -> None:
        if any(device >= self.device_count for device in rights):
            raise DriverError(Status.INVALID_VALUE, "set_access", f"there are only {self.device_count} devices")
        pairs = [(device, int(right)) for device, right in rights.items()]
        self._calls.set_access(address & WORD, size & WORD, pairs)

    def get_access(self, address: int, device: int) -> Access:
        self._use("get_access", device, Status.INVALID_VALUE)
        rights = self._calls.get_access(address & WORD, device)
        access = _ACCESSES.get(rights)
        if access is None:
            raise DriverError(Status.UNKNOWN, "get_access", f"the driver answered {rights}, which are no rights")
        return access

    # -- plain memory

    def alloc(self, size: int, *, device: int = 0, space: int = 0) -> int:
        if size <= 0:
            raise DriverError(Status.INVALID_VALUE, "alloc", f"size {size} must be positive")
        self._check_space("alloc", space)
        self._use("alloc", device)
        alignment = self.options.spaces[space].alignment
        address = base = self._calls.alloc(self._beyond(size, device))
        if base % alignment:
            self._calls.free(base)
            base = self._calls.alloc(self._beyond(size + alignment, device))
            address = -(-base // alignment) * alignment
        with self._lock:
            self._holdings.allocations[address] = (base, size, device)
        return address

    def free(self, address: int) -> None:
        found = self._holdings.allocations.get(address)
        if found is None:
            raise DriverError(Status.INVALID_VALUE, "free", f"no allocation begins at {address:#x}")
        self._calls.use(found[2])
        self._calls.free(found[0])
        with self._lock:
            self._holdings.allocations.pop(address, None)

    # -- the test's side

    def live(self) -> Live:
        """A device does not tell what it holds; free memory shows what has come back."""
        raise DriverError(Status.NOT_SUPPORTED, "live", f"the driver {self.name!r} does not tell what it holds")

    def _give_back(self) -> None:
        """Everything that clients have left. What the driver refuses to take stays."""
        held = self._holdings
        for mapping in held.mappings():
            self._try(self.unmap, mapping.address, mapping.size)
        for handle, count in list(held.references.items()):
            for _ in range(count):
                self._try(self.release, handle)
        for address in list(held.allocations):
            self._try(self.free, address)
        for address, size in list(held.reservations.items()):
            self._try(self.address_free, address, size)

    def _try(self, call: object, *arguments: int) -> None:
        try:
            call(*arguments)  # type: ignore[operator]
        except DriverError as error:
            self.refusals.append(error)

    spared: list[int]
    """Bytes of each device that are left to others: as many as this process found when it began."""
    refusals: list[DriverError]
    """What the driver refused while it was closed."""
