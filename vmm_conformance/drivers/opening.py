"""Drivers by name: ``host``, ``hip``, ``cuda`` and the two emulated ones, with parameters behind commas.

``quirk=Q-01`` makes the host driver, also one under an emulated library, deviate like some driver in the wild.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.calls import DriverUnavailable

MakeDriver = Callable[[DriverOptions], Driver]

DRIVERS: Final = ("host", "hip", "cuda", "emulated-hip", "emulated-cuda")
"""The names."""
REAL: Final = ("hip", "cuda")
"""Those behind which there is a device."""


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """A driver as it was asked for: ``text`` is name and parameters."""

    text: str
    name: str
    quirks: tuple[str, ...] = ()

    @property
    def real(self) -> bool:
        """Whether a device stands behind it."""
        return self.name in REAL


def parse(text: str) -> DriverSpec:
    """Read ``name,key=value,...``. Raises ``ValueError``, one line that says what is accepted."""
    name, *pairs = text.split(",")
    if name not in DRIVERS:
        raise ValueError(f"unknown driver {name!r}; accepted: {', '.join(DRIVERS)}")
    quirks = []
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key != "quirk" or name in REAL:
            takes = "no parameters" if name in REAL else "quirk=ID"
            raise ValueError(f"driver {text!r}: {name} takes {takes}, not {pair!r}")
        quirks += value.split("+")
    if quirks:
        from vmm_conformance.drivers.host.quirks import check

        check(quirks)
    return DriverSpec(text, name, tuple(quirks))


def opener(text: str) -> MakeDriver:
    """What opens drivers of that name; opening may raise `DriverUnavailable`. Raises ``ValueError`` as `parse` does."""
    spec = parse(text)
    if spec.name == "hip":
        from vmm_conformance.drivers.hip import HipDriver

        return HipDriver
    if spec.name == "cuda":
        from vmm_conformance.drivers.cuda import CudaDriver

        return CudaDriver
    host = _host(spec.quirks)
    if spec.name == "host":
        return host
    from vmm_conformance.drivers.emulated.adapted import emulated_driver

    return emulated_driver(spec.name.removeprefix("emulated-"), host)


def _host(quirks: tuple[str, ...]) -> MakeDriver:
    if quirks:
        from vmm_conformance.drivers.host.quirks import quirky

        return quirky(quirks)
    from vmm_conformance.drivers.host import HostDriver

    return HostDriver


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """``missing`` says why the driver cannot be used here, and is empty if it can."""

    name: str
    real: bool
    missing: str = ""
    versions: dict[str, str] = field(default_factory=dict)


@cache
def facts(text: str) -> DriverFacts:
    """What can be told of a driver: found by opening one."""
    spec = parse(text)
    if spec.name == "host":
        return DriverFacts(text, False)
    try:
        driver: Any = opener(text)(DriverOptions())
    except DriverUnavailable as error:
        return DriverFacts(text, spec.real, str(error))
    try:
        return DriverFacts(text, driver.real, "", dict(driver.versions))
    finally:
        driver.close()
