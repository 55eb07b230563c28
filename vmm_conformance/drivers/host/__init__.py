"""The host driver: the driver contract over real memory of this machine, without a GPU."""

from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.system import HostUnsupported

__all__ = ["HostDriver", "HostUnsupported"]
