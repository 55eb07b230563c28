"""A driver for the time of one program, and how exactly it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vmm_conformance.contracts import Driver, DriverOptions

OpenDriver = Callable[[DriverOptions], Driver]

REAL_TOLERANCE: Final = 4 << 20
"""Drivers of devices count in granules of their own, which are larger than those they tell of."""


@contextmanager
def opened(open_driver: OpenDriver, options: DriverOptions) -> Iterator[Driver]:
    """A fresh driver; nobody listens to it any more, and it is closed, however the program ends."""
    driver = open_driver(options)
    try:
        yield driver
    finally:
        driver.listen(None)
        driver.close()


def tolerance(driver: Driver) -> int:
    """Bytes by which the free memory of a device may be off: a granule at least where a device stands behind it."""
    return max(driver.granularity(0).recommended, REAL_TOLERANCE) if driver.real else 0
