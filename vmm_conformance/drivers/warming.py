"""The first work that a process gives to a device."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from vmm_conformance.contracts import Copy, Driver, DriverError, Range, Write

_SIZE: Final = 4 << 10
_warm: Final[set[tuple[str, int]]] = set()
"""Devices that this process has used, by driver."""


def warm_up(driver: Driver) -> None:
    """Do some of each kind of work on every device that this process has not used yet.

    The first of a kind makes a vendor's library load what it needs into the device's memory, which programs would take
    for a leak. What is refused here is refused to programs as well, and judged there.
    """
    for device in range(driver.device_count):
        if (driver.name, device) not in _warm:
            _warm.add((driver.name, device))
            with suppress(DriverError):
                _work(driver, device)


def _work(driver: Driver, device: int) -> None:
    stream = driver.stream_create(device)
    first, second = (driver.alloc(_SIZE, device=device) for _ in range(2))
    driver.fill(first, 0, _SIZE)
    driver.graph_begin(stream)
    driver.launch(stream, copies=(Copy(second, first, _SIZE),))
    graph = driver.graph_end(stream)
    executable = driver.graph_instantiate(graph)
    driver.fill(first, 0, _SIZE, stream=stream)
    driver.launch(stream, reads=(Range(first, _SIZE),), writes=(Write(second, bytes(_SIZE)),))
    driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    driver.graph_exec_destroy(executable)
    driver.graph_destroy(graph)
    driver.stream_destroy(stream)
    driver.free(first)
    driver.free(second)
