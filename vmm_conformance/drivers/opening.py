"""Drivers by name: ``host``, ``hip``, ``cuda`` and the two emulated ones, with parameters behind commas.

``quirk=Q-01`` makes the host driver, also one under an emulated library, deviate like some driver in the wild.
``devices=2`` makes the machine of an emulated one have so many devices, whatever programs ask for, of which the
variables show some as they do on a real machine (see `visible`). ``memory=4G`` is how much of a device may be taken; of
a real one it is never more than half of what is free. ``own`` stands for whatever a subject in another process has
there: its subject opens it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

from vmm_conformance.contracts import Driver, DriverError, DriverOptions
from vmm_conformance.drivers.calls import Calls, DriverUnavailable
from vmm_conformance.drivers.visible import shown

MakeDriver = Callable[[DriverOptions], Driver]

DRIVERS: Final = ("host", "hip", "cuda", "emulated-hip", "emulated-cuda")
"""The names."""
OWN: Final = "own"
"""The name of a driver that a subject has itself, in its own process."""
REAL: Final = ("hip", "cuda")
"""Those behind which there is a device."""
EMULATED: Final = ("emulated-hip", "emulated-cuda")
"""Those over an emulated library: their memory is their process's own, and one can be open in it at a time."""
_TAKES: Final = {**dict.fromkeys(REAL, "memory=SIZE, as in memory=4G"), "host": "quirk=ID", OWN: "no parameters"}
_TAKES_ELSE: Final = "quirk=ID, devices=NUMBER and memory=SIZE, as in memory=4G"
_MEMORY: Final = re.compile(r"([1-9][0-9]*)([KMGT]?)")
_SHIFTS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """A driver as it was asked for: ``text`` is name and parameters.

    ``devices``, and ``memory`` in bytes of each, are 0 where nothing was said.
    """

    text: str
    name: str
    quirks: tuple[str, ...] = ()
    devices: int = 0
    memory: int = 0

    @property
    def real(self) -> bool:
        """Whether a device stands behind it."""
        return self.name in REAL


def parse(text: str) -> DriverSpec:
    """Read ``name,key=value,...``. Raises ``ValueError``, one line that says what is accepted."""
    name, *pairs = text.split(",")
    if name not in (*DRIVERS, OWN):
        raise ValueError(f"unknown driver {name!r}; accepted: {', '.join((*DRIVERS, OWN))}")
    quirks, devices, memory = list[str](), 0, 0
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key == "quirk" and name not in (*REAL, OWN):
            quirks += value.split("+")
        elif key == "devices" and name in EMULATED and value.isdecimal() and int(value):
            devices = int(value)
        elif key == "memory" and name in (*REAL, *EMULATED) and (found := _MEMORY.fullmatch(value)):
            memory = int(found[1]) << _SHIFTS[found[2]]
        else:
            raise ValueError(f"driver {text!r}: {name} takes {_TAKES.get(name, _TAKES_ELSE)}, not {pair!r}")
    if quirks:
        from vmm_conformance.drivers.host.quirks import check

        check(quirks)
    return DriverSpec(text, name, tuple(quirks), devices, memory)


def opener(text: str) -> MakeDriver:
    """What opens drivers of that name; opening may raise `DriverUnavailable`. Raises ``ValueError`` as `parse` does."""
    spec = parse(text)
    if spec.name == OWN:
        return _of_a_subject
    if spec.name == "hip":
        from vmm_conformance.drivers.hip import HipDriver

        return partial(HipDriver, memory=spec.memory)
    if spec.name == "cuda":
        from vmm_conformance.drivers.cuda import CudaDriver

        return partial(CudaDriver, memory=spec.memory)
    host = _host(spec.quirks)
    if spec.name == "host":
        return host
    from vmm_conformance.drivers.emulated.adapted import emulated_driver

    machine = _machine(spec, host) if spec.devices else host
    return emulated_driver(spec.name.removeprefix("emulated-"), machine, spec.memory)


def _machine(spec: DriverSpec, make: MakeDriver) -> MakeDriver:
    """As ``make``, with no more devices than this process sees of the emulated machine."""

    def made(options: DriverOptions) -> Driver:
        count = device_count(spec.text)
        if not count:
            raise DriverUnavailable(f"the driver {spec.text!r} finds no device; is one visible to this process?")
        return make(replace(options, devices=min(options.devices, count)))

    return made


def device_count(text: str) -> int:
    """How many devices of a driver this process sees; they are counted, and none is opened.

    0 where there are none, and of drivers whose programs say how many they have: ``host``, and emulated ones without
    ``devices``. Raises ``ValueError`` as `parse` does.
    """
    spec = parse(text)
    if spec.name not in REAL:
        return len(shown(spec.name.removeprefix("emulated-"), spec.devices, os.environ)) if spec.devices else 0
    try:
        return calls_of(spec.name).device_count()
    except (DriverUnavailable, DriverError):
        return 0


def calls_of(name: str) -> Calls:
    """The calls of a vendor's binding, ``hip`` or ``cuda``. Raises `DriverUnavailable`."""
    if name == "hip":
        from vmm_conformance.drivers.hip import HipCalls

        return HipCalls()
    from vmm_conformance.drivers.cuda import CudaCalls

    return CudaCalls()


def _of_a_subject(options: DriverOptions) -> Driver:
    raise DriverUnavailable(f"the driver {OWN!r} is that of a subject in another process, which opens it itself")


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
    if spec.name in ("host", OWN):
        return DriverFacts(text, False)
    try:
        driver: Any = opener(text)(DriverOptions())
    except DriverUnavailable as error:
        return DriverFacts(text, spec.real, str(error))
    try:
        return DriverFacts(text, driver.real, "", dict(driver.versions))
    finally:
        driver.close()
