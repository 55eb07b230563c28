"""The host driver as a subject of the contract ``driver``: who tests with it should test it too."""

from __future__ import annotations

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.host.driver import HostDriver


class HostSubject:
    """Offers fresh host drivers."""

    name = "host"

    def driver(self, options: DriverOptions) -> Driver:
        """A host driver as ``options`` ask for."""
        return HostDriver(options)


host = HostSubject()
"""The subject behind the name ``host``."""
