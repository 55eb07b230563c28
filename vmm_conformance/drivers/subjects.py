"""Drivers as subjects of the contract ``driver``: who tests with one should test it too."""

from __future__ import annotations

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.opening import DriverFacts, facts, opener


class DriverSubject:
    """Offers fresh drivers of one name. Called with parameters it is the subject of the driver with those."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._open = opener(name)

    def __call__(self, **parameters: str) -> DriverSubject:
        return DriverSubject(",".join((self.name, *(f"{key}={value}" for key, value in parameters.items()))))

    def driver(self, options: DriverOptions) -> Driver:
        """A driver, which takes of ``options`` what it can."""
        return self._open(options)

    @property
    def facts(self) -> DriverFacts:
        """Whether it is real, what is missing for it, and the versions of what stands behind it."""
        return facts(self.name)

    @property
    def version(self) -> str:
        """The versions of what stands behind it, in words."""
        return ", ".join(f"{what} {version}" for what, version in self.facts.versions.items())


host = DriverSubject("host")
hip = DriverSubject("hip")
cuda = DriverSubject("cuda")
emulated_hip = DriverSubject("emulated-hip")
emulated_cuda = DriverSubject("emulated-cuda")
