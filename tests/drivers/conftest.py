from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from host_world import Make

from vmm_conformance.contracts import DriverCapabilities, DriverOptions
from vmm_conformance.drivers.host import HostDriver


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes drivers and closes them: ``make(devices=2, capabilities={"map_offset": True})``."""
    drivers: list[HostDriver] = []

    def make_one(*, capabilities: dict[str, bool] | None = None, **options: Any) -> HostDriver:
        declared = DriverCapabilities(**(capabilities or {}))
        drivers.append(HostDriver(DriverOptions(capabilities=declared, **options)))
        return drivers[-1]

    yield make_one
    for driver in drivers:
        driver.close()


@pytest.fixture
def driver(make: Make) -> HostDriver:
    return make()
