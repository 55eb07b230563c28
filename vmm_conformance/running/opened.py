"""A driver for the time of one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vmm_conformance.contracts import Driver, DriverOptions

OpenDriver = Callable[[DriverOptions], Driver]


@contextmanager
def opened(open_driver: OpenDriver, options: DriverOptions) -> Iterator[Driver]:
    """A fresh driver; nobody listens to it any more, and it is closed, however the program ends."""
    driver = open_driver(options)
    try:
        yield driver
    finally:
        driver.listen(None)
        driver.close()
