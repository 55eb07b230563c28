"""A world for tests of the reference VMM allocator: the host driver, counted and failing when told to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from vmm_conformance.contracts import (
    UNLIMITED,
    Code,
    DeviceConfig,
    DriverError,
    DriverOptions,
    Range,
    Status,
    SubjectError,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_reference.vmm_allocator import DeviceVmmAllocator

G = 4096
MIB = 1 << 20


class Counting:
    """A driver that counts its calls, and fails those that it is told to, once each."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver = driver
        self.calls: list[str] = []
        self.failing: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.driver, name)
        if not callable(found) or name in ("granularity", "space_alignment", "can_access_peer"):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            if name in self.failing:
                self.failing.remove(name)
                raise DriverError(Status.UNKNOWN, name, "on purpose")
            return found(*arguments, **named)

        return call

    def since(self, count: int) -> list[str]:
        return self.calls[count:]


@dataclass
class World:
    """A driver, an allocator over its devices, and a reservation of 16 granules on the first."""

    driver: Counting
    allocator: DeviceVmmAllocator
    streams: Sequence[int]
    reservations: list[Any] = field(default_factory=list)

    def reservation(self, granules: int = 16) -> Any:
        made = self.allocator.create_reservation(0, granules * G)
        self.reservations.append(made)
        return made

    def work(self, range: Range, device: int = 0) -> None:
        self.driver.driver.write(range.address, b"working!", stream=self.streams[device])

    @property
    def calls(self) -> list[str]:
        return self.driver.calls


def make(devices: int = 2, budget: int = UNLIMITED, exempt: tuple[int, ...] = (), **rest: Any) -> Iterator[World]:
    revision = {name: rest.pop(name) for name in ("markers", "second_alias", "limits") if name in rest}
    driver = Counting(HostDriver(DriverOptions(devices=devices, capacity=1 << 30, **rest)))
    streams = [driver.driver.stream_create(device) for device in range(devices)]
    configs = [DeviceConfig(device, stream, budget, exempt) for device, stream in enumerate(streams)]
    world = World(driver, DeviceVmmAllocator(driver, configs, **revision), streams)  # type: ignore[arg-type] # stands in
    yield world
    driver.failing.clear()
    world.allocator.close()
    for reservation in world.reservations:
        reservation.release()
    live = driver.driver.live()
    assert (live.reservations, live.handles, live.mappings) == (0, 0, 0)
    driver.driver.close()


def refusal(action: Any) -> tuple[Code, str]:
    with pytest.raises(SubjectError) as caught:
        action()
    return caught.value.code, caught.value.message


def at(world: World, reservation: Any, offset: int, granules: int = 1, **rest: Any) -> Range:
    return world.allocator.allocate_mapped(
        0, granules * G, reservation=reservation, offset=offset * G, map_size=granules * G, **rest
    )
