"""The host driver as a subject of the contract ``driver``."""

from vmm_conformance.drivers.subjects import host

__all__ = ["host"]
