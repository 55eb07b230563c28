"""The ground of the host driver: options, lock, serial numbers, discovery.

The driver is a chain of classes, each in its module and each on top of the one before: base, space,
mappings, access, plain, work, streams, graphs, driver. Every rule is a method of its own, so that a quirk profile
or a known-bad driver overrides exactly one.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import count
from typing import NoReturn

from vmm_conformance.contracts import (
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    Live,
    MemoryInfo,
    Range,
    Status,
)
from vmm_conformance.drivers.host import memory
from vmm_conformance.drivers.host.memory import Addresses
from vmm_conformance.drivers.host.objects import Handle, Mapping, Region, Reservation
from vmm_conformance.drivers.host.system import PAGE, PROT_NONE, PROT_READ, PROT_READ_WRITE

_GAP = 1 << 20
"""Bytes that are never used between reservations and plain memory, so that none adjoins the other."""


class _Closed(AbstractContextManager[None]):
    """Stands where the lock was once the driver is closed, so that open drivers pay no check."""

    def __enter__(self) -> NoReturn:
        raise DriverError(Status.DEINITIALIZED, "driver", "this driver is closed; make a new one")

    def __exit__(self, *_: object) -> None:
        return None


@lru_cache(maxsize=256)
def _check_numbers(devices: int, capacity: int, minimum: int, recommended: int, schedule: str) -> None:
    """Refuse numbers that no driver can have. Raises `ValueError`."""
    if devices < 1:
        raise ValueError(f"host driver: devices is {devices}, and must be at least 1")
    if capacity < 0:
        raise ValueError(f"host driver: capacity is {capacity} bytes, and must not be negative")
    for value in (minimum, recommended):
        if value < PAGE or value & (value - 1):
            raise ValueError(
                f"host driver: granularity {value} must be a power of two, and at least this system's page, {PAGE}"
            )
    if recommended < minimum:
        raise ValueError(f"host driver: recommended granularity {recommended} is below the minimum, {minimum}")
    if schedule not in ("late", "eager"):
        raise ValueError(f"host driver: schedule {schedule!r} is unknown; choose 'late' or 'eager'")


def _check_options(options: DriverOptions) -> None:
    _check_numbers(options.devices, options.capacity, *options.granularity, options.schedule)
    for space, spec in options.spaces.items():
        alignment = spec.alignment
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"host driver: alignment {alignment} of memory space {space} must be a power of two")


class Base:
    """State that every layer uses. ``serial`` numbers the memory calls that succeeded, from 1."""

    name = "host"
    real = False

    def __init__(self, options: DriverOptions) -> None:
        _check_options(options)
        self.options = options
        self.capabilities: DriverCapabilities = options.capabilities
        self.device_count = options.devices
        self.serial = 0
        self._closed = False
        lock = threading.RLock()
        self._lock: AbstractContextManager[object] = lock
        # The calls of the common cycle take the lock by hand, since ``with`` costs them 3 % of its time.
        self._enter: Callable[[], object] = lock.acquire
        self._leave = lock.release
        self._ids = count(1)
        self._minimum = options.granularity.minimum
        self._used = [0] * options.devices
        self._spaces = options.spaces
        self._capacity = options.capacity
        self._reservations: dict[int, Reservation] = {}
        self._bases: list[int] = []
        self._handles: dict[int, Handle] = {}
        self._regions: dict[int, Region] = {}
        self._starts: list[int] = []
        self._gone: dict[int, Region] = {}
        read = PROT_READ if options.capabilities.read_only_enforced else PROT_READ_WRITE
        self._protections: dict[int, int] = {0: PROT_NONE, 1: read, 3: PROT_READ_WRITE}
        self._open_backing()

    def _open_backing(self) -> None:
        """Divide the arena: reservations in the lower half, plain memory in the upper.

        Both halves begin one granule behind a large power of two, so that no address is better aligned
        than was asked for by mere luck.
        """
        self._backing = backing = memory.acquire()
        middle = backing.base + backing.size // 2
        self._space = Addresses(backing.base + self._minimum, middle - _GAP)
        self._plain = Addresses(middle + PAGE, backing.base + backing.size)
        self._mmap = backing.calls.mmap
        self._mprotect = backing.calls.mprotect
        self._fallocate = backing.calls.fallocate
        self._file = backing.file

    def _close_backing(self) -> None:
        self._lock = closed = _Closed()
        self._enter = closed.__enter__
        memory.give_back(self._backing, ((self._space.start, self._space.high), (self._plain.start, self._plain.high)))

    # -- discovery

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        with self._lock:
            self._check_location("granularity", device, Status.INVALID_VALUE)
            self._check_space("granularity", space)
            return self.options.granularity

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        with self._lock:
            self._check_location("space_alignment", device)
            self._check_space("space_alignment", space)
            return self.options.spaces[space].alignment

    def can_access_peer(self, device: int, peer: int) -> bool:
        """Whether ``device`` reaches memory of ``peer``. A device is no peer of its own."""
        with self._lock:
            self._check_location("can_access_peer", device)
            self._check_location("can_access_peer", peer)
            return device != peer and self.options.peers

    def mem_info(self, device: int = 0) -> MemoryInfo:
        # One number is read, which needs no lock.
        if self._closed:
            self._enter()
        if not 0 <= device < self.device_count:
            self._check_location("mem_info", device)
        total = self._capacity
        return MemoryInfo(total - self._used[device], total)

    def address_range(self, address: int) -> Range:
        with self._lock:
            region = self._region_at(address)
            if region is None:
                raise DriverError(
                    Status.INVALID_VALUE,
                    "address_range",
                    f"nothing is mapped or allocated at {address:#x}; pass an address inside a mapping "
                    "or an allocation",
                )
            return self._range_of(region)

    def live(self) -> Live:
        with self._lock:
            mappings = sum(isinstance(region, Mapping) for region in self._regions.values())
            allocations = len(self._regions) - mappings
            return Live(len(self._reservations), len(self._handles), mappings, allocations, sum(self._used))

    # -- rules

    def _check_location(self, call: str, device: int, status: Status = Status.INVALID_DEVICE) -> None:
        if not 0 <= device < self.device_count:
            raise DriverError(status, call, f"device {device} is none of the {self.device_count}, numbered from 0")

    def _check_space(self, call: str, space: int) -> None:
        if space not in self.options.spaces:
            known = ", ".join(map(str, sorted(self.options.spaces)))
            raise DriverError(Status.INVALID_VALUE, call, f"memory space {space} is unknown; there are {known}")

    def _check_room(self, call: str, size: int, device: int) -> None:
        free = self.options.capacity - self._used[device]
        if size > free:
            raise DriverError(
                Status.OUT_OF_MEMORY,
                call,
                f"{size} bytes asked for on device {device}, which has {free} bytes free",
            )

    def _range_of(self, region: Region) -> Range:
        """What an address-range query answers: the mapping, not the reservation."""
        return Range(region.start, region.size)

    # -- look-ups

    def _region_at(self, address: int) -> Region | None:
        """The mapping or plain allocation that ``address`` lies in."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        region = self._regions[self._starts[index]]
        return region if address < region.end else None
