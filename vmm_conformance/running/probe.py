"""Looks at a driver: what it is, which capabilities it really has, and what copies and remaps cost on it.

The costs are the inputs of an automatic copy threshold (`vmm_conformance.contracts.auto`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any, Final

from vmm_conformance.contracts import (
    Access,
    CopyCosts,
    DeviceFigures,
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    Status,
)
from vmm_conformance.contracts.sharing import SharingDriver
from vmm_conformance.running.caller import round_up
from vmm_conformance.running.opened import OpenDriver

ROUNDS: Final = 50
"""Remaps that are timed; the median counts."""
SMALL_COPY: Final = 8
"""Bytes of a copy that measures what any copy takes."""
SMALL_COPIES: Final = 200
LARGE_COPY: Final = 4 << 20
"""Bytes of a copy that measures the rate; less on a device that has less free."""
LARGE_COPIES: Final = 16


@dataclass(frozen=True, slots=True)
class Tried:
    """One capability: what the driver declares, what came of trying it (None: not tried), and how."""

    name: str
    declared: bool
    measured: bool | None
    detail: str

    @property
    def kept(self) -> bool:
        """Whether the driver does as it declares."""
        return self.measured in (None, self.declared)


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of each part of a remap and of a small copy; bytes that one large copy moves per second."""

    map_ms: float
    set_access_ms: float
    unmap_ms: float
    copy_ms: float
    copy_bytes_per_second: int
    copied: int
    """Bytes of the copies that the rate was measured with."""

    @property
    def remap_ms(self) -> float:
        """A round trip of map, set_access and unmap."""
        return self.map_ms + self.set_access_ms + self.unmap_ms


@dataclass(frozen=True, slots=True)
class Device:
    """One device; ``granularity`` (minimum, recommended) and ``alignment`` by memory space; all in bytes."""

    number: int
    free: int
    total: int
    granularity: dict[int, Granularity]
    alignment: dict[int, int]
    peers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """All that was found out about a driver."""

    driver: str
    real: bool
    devices: tuple[Device, ...]
    capabilities: tuple[Tried, ...]
    costs: Costs

    @property
    def kept(self) -> bool:
        """Whether the driver has exactly the capabilities that it declares, as far as they were tried."""
        return all(tried.kept for tried in self.capabilities)

    def auto_inputs(self, device: int = 0) -> tuple[DeviceFigures, CopyCosts]:
        """What an automatic copy threshold is to be asked with: as measured, one copy has all the bandwidth."""
        found = self.devices[device]
        figures = DeviceFigures(
            self.costs.copy_bytes_per_second, found.total, found.free, found.alignment.get(0, 1)
        )
        return figures, CopyCosts(self.costs.remap_ms, self.costs.copy_ms, 1.0)

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        figures, costs = self.auto_inputs()
        auto = {"device": asdict(figures), "costs": asdict(costs)}
        return {**asdict(self), "remap_ms": self.costs.remap_ms, "auto_threshold": auto}


def probe(open_driver: OpenDriver) -> Probe:
    """Open a fresh driver, try and measure everything, close it."""
    options = DriverOptions()
    driver = open_driver(options)
    try:
        devices = tuple(_device(driver, number, options) for number in range(driver.device_count))
        tried = tuple(Trials(driver).all())
        return Probe(driver.name, driver.real, devices, tried, measure(driver))
    finally:
        driver.close()


def _device(driver: Driver, number: int, options: DriverOptions) -> Device:
    """A device's fixed facts and its memory; memory spaces are those of ``options`` that it knows."""
    info = driver.mem_info(number)
    granularity: dict[int, Granularity] = {}
    alignment: dict[int, int] = {}
    for space in options.spaces:
        with suppress(DriverError):
            alignment[space] = driver.space_alignment(number, space)
            granularity[space] = driver.granularity(number, space)
    others = (peer for peer in range(driver.device_count) if peer != number)
    peers = tuple(peer for peer in others if driver.can_access_peer(number, peer))
    return Device(number, info.free, info.total, granularity, alignment, peers)


# -- what it can do


class Trials:
    """Tries each declared capability on ranges of its own, which it gives back."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.granule = driver.granularity(0).recommended

    def all(self) -> Iterator[Tried]:
        """Every capability, in the order in which they are declared."""
        for field in fields(DriverCapabilities):
            declared = bool(getattr(self.driver.capabilities, field.name))
            try:
                measured, detail = getattr(self, field.name)()
            except DriverError as error:
                measured, detail = False, str(error)
            yield Tried(field.name, declared, measured, detail)

    def unmap_spans_mappings(self) -> tuple[bool, str]:
        """One unmap for two adjacent mappings."""
        with self.mapped(2) as address:
            self.driver.unmap(address, 2 * self.granule)
        return True, "one unmap took two adjacent mappings away"

    def set_access_spans_mappings(self) -> tuple[bool, str]:
        """One set_access for two adjacent mappings."""
        with self.mapped(2) as address:
            self.grant(address, 2 * self.granule)
            both = self.rights(address) == self.rights(address + self.granule) == Access.READ_WRITE
        return both, "one set_access on two adjacent mappings gave rights " + ("on both" if both else "elsewhere")

    def set_access_part_of_mapping(self) -> tuple[bool, str]:
        """A set_access for the first half of a mapping."""
        with self.mapped(1, granules=2) as address:
            self.grant(address, self.granule)
            half = (self.rights(address), self.rights(address + self.granule)) == (Access.READ_WRITE, Access.NONE)
        return half, "set_access on the first half of a mapping gave rights " + ("there alone" if half else "elsewhere")

    def partial_map(self) -> tuple[bool, str]:
        """A mapping of the first half of a handle."""
        with self.reserved(1) as address, self.handle(2) as handle:
            self.driver.map(address, self.granule, handle)
            self.driver.unmap(address, self.granule)
        return True, "a mapping of the first half of a handle was taken"

    def map_offset(self) -> tuple[bool, str]:
        """A mapping of the second half of a handle."""
        with self.reserved(1) as address, self.handle(2) as handle:
            self.driver.map(address, self.granule, handle, offset=self.granule)
            self.driver.unmap(address, self.granule)
        return True, "a mapping of the second half of a handle was taken"

    def read_only_enforced(self) -> tuple[bool | None, str]:
        """A write through a mapping that may be read only."""
        if self.driver.real:
            return None, "not tried: a device that faults takes the process with it"
        with self.mapped(1) as address:
            self.driver.set_access(address, self.granule, {0: Access.READ})
            try:
                work = self.driver.write(address, bytes(SMALL_COPY))
            except DriverError as error:
                return True, f"a write through a read-only mapping was refused: {error}"
        return work.fault is not None, "a write through a read-only mapping went through"

    def unmap_waits(self) -> tuple[bool | None, str]:
        """An unmap under queued work."""
        if self.driver.real and not self.driver.capabilities.unmap_waits:
            return None, "not tried: a device that faults takes the process with it"
        stream = self.driver.stream_create(0)
        with self.mapped(1) as address:
            self.grant(address, self.granule)
            work = self.driver.fill(address, 1, self.granule, stream=stream)
            if work.done:
                return None, "not tried: work was over before it could be waited for"
            self.driver.unmap(address, self.granule)
            waited = work.done
            with suppress(DriverError):
                self.driver.stream_synchronize(stream)
        self.driver.stream_destroy(stream)
        return waited, "unmap returned " + ("behind" if waited else "before") + " the work that used the range"

    def sharing(self) -> tuple[bool | None, str]:
        """A descriptor goes out, and comes back as a handle."""
        driver = self.driver
        if not isinstance(driver, SharingDriver):
            return False, "the driver has no calls for it"
        try:
            handle = driver.create_shareable(driver.granularity_option(0))
        except DriverError as error:
            return False, f"create_shareable: {error}"
        try:
            descriptor = driver.export_handle(handle)
            self.driver.release(driver.import_handle(descriptor))
            os.close(descriptor)
        except DriverError as error:
            return False, str(error)
        finally:
            self.driver.release(handle)
        return True, "a handle exported as a descriptor was imported again"

    def copy_spans_reservations(self) -> tuple[bool | None, str]:
        """A fill from one reservation into the next."""
        with self.reserved(1) as first:
            try:
                second = self.driver.reserve(self.granule, hint=first + self.granule)
            except DriverError as error:
                return None, f"not tried: the address behind a reservation is not to be had: {error}"
            try:
                return self._fill_over(first, second)
            finally:
                self.driver.address_free(second, self.granule)

    def _fill_over(self, first: int, second: int) -> tuple[bool | None, str]:
        """Fill the last byte of ``first`` and the first one of ``second`` in one call, if they are neighbours."""
        if second != first + self.granule:
            return None, "not tried: the address behind a reservation is not to be had"
        with self.handle(1) as handle:
            places = (first, second)
            for place in places:
                self.driver.map(place, self.granule, handle)
                self.grant(place, self.granule)
            try:
                self.driver.fill(second - 1, 1, 2)
            finally:
                for place in places:
                    self.driver.unmap(place, self.granule)
        return True, "one fill reached from a reservation into the next"

    def old_codes(self) -> tuple[bool, str]:
        """A reserve of no bytes."""
        try:
            self.driver.reserve(0)
        except DriverError as error:
            return error.status == Status.OUT_OF_MEMORY, f"a reserve of no bytes is refused with {error}"
        return False, "a reserve of no bytes was taken"

    def progress(self) -> tuple[bool, str]:
        """Work that waits to be asked for."""
        stream = self.driver.stream_create(0)
        with self.mapped(1) as address:
            self.grant(address, self.granule)
            works = [self.driver.fill(address, value, 1, stream=stream) for value in (1, 2)]
            before = [work.done for work in works]
            self.driver.progress(stream, 1)
            after = [work.done for work in works]
            self.driver.stream_synchronize(stream)
        self.driver.stream_destroy(stream)
        by_one = (before, after) == ([False, False], [True, False])
        return by_one, "of two queued fills progress ran " + ("one" if by_one else f"{sum(after) - sum(before)}")

    # -- ranges to try it on

    def grant(self, address: int, size: int) -> None:
        """Read and write for device 0."""
        self.driver.set_access(address, size, {0: Access.READ_WRITE})

    def rights(self, address: int) -> Access:
        """The rights of device 0."""
        return self.driver.get_access(address, 0)

    @contextmanager
    def reserved(self, granules: int) -> Iterator[int]:
        """A reserved range."""
        size = granules * self.granule
        address = self.driver.reserve(size)
        try:
            yield address
        finally:
            with suppress(DriverError):
                self.driver.address_free(address, size)

    @contextmanager
    def handle(self, granules: int) -> Iterator[int]:
        """Physical memory."""
        handle = self.driver.create(granules * self.granule)
        try:
            yield handle
        finally:
            self.driver.release(handle)

    @contextmanager
    def mapped(self, mappings: int, *, granules: int = 1) -> Iterator[int]:
        """Adjacent mappings of ``granules`` each, without rights. Whatever is still mapped at the end is unmapped."""
        size = granules * self.granule
        with self.reserved(mappings * granules) as address, self.handle(granules) as handle:
            places = [address + number * size for number in range(mappings)]
            for place in places:
                self.driver.map(place, size, handle)
            try:
                yield address
            finally:
                for place in places:
                    with suppress(DriverError):
                        self.driver.unmap(place, size)


# -- what it costs


def measure(driver: Driver, device: int = 0) -> Costs:
    """Time remaps and copies on one device."""
    map_ms, set_access_ms, unmap_ms = _remap_ms(driver, device)
    copy_ms, rate, copied = _copy_costs(driver, device)
    return Costs(map_ms, set_access_ms, unmap_ms, copy_ms, rate, copied)


def _remap_ms(driver: Driver, device: int) -> tuple[float, float, float]:
    """Medians of map, set_access (for the device and its peers) and unmap of one recommended granule."""
    size = driver.granularity(device).recommended
    peers = [peer for peer in range(driver.device_count) if peer != device and driver.can_access_peer(device, peer)]
    rights = dict.fromkeys((device, *peers), Access.READ_WRITE)
    address, handle = driver.reserve(size), driver.create(size, device=device)
    rounds = []
    for _ in range(ROUNDS):
        times = [perf_counter()]
        driver.map(address, size, handle)
        times.append(perf_counter())
        driver.set_access(address, size, rights)
        times.append(perf_counter())
        driver.unmap(address, size)
        times.append(perf_counter())
        rounds.append([1000 * (after - before) for before, after in pairwise(times)])
    driver.release(handle)
    driver.address_free(address, size)
    first, second, third = (median(part) for part in zip(*rounds, strict=True))
    return first, second, third


def _copy_costs(driver: Driver, device: int) -> tuple[float, int, int]:
    """Milliseconds of one small queued copy, bytes per second of large ones, and how many bytes those had."""
    size = min(LARGE_COPY, max(SMALL_COPY, round_up(driver.mem_info(device).free // 8, SMALL_COPY)))
    source, target = driver.alloc(size, device=device), driver.alloc(size, device=device)
    stream = driver.stream_create(device)

    def seconds(each: int, copies: int) -> float:
        """Of ``copies`` copies in a row. The first ones are not timed: memory is touched, and code warm."""
        for count in (2, copies):
            start = perf_counter()
            for _ in range(count):
                driver.copy(target, source, each, stream=stream)
            driver.stream_synchronize(stream)
        return perf_counter() - start

    large, small = seconds(size, LARGE_COPIES), seconds(SMALL_COPY, SMALL_COPIES)
    driver.stream_destroy(stream)
    driver.free(source)
    driver.free(target)
    return 1000 * small / SMALL_COPIES, round(LARGE_COPIES * size / large), size
