"""Emulated libraries: ``libcuda.so.1`` and ``libamdhip64.so`` whose functions are answered by a host driver.

They let the vendors' own Python bindings, and whatever stands on them, run where there is no GPU. `load` has to be
called before the first call of a binding.
"""

from vmm_conformance.drivers.emulated.build import EmulationUnavailable
from vmm_conformance.drivers.emulated.library import Library, bring_in, load, vendor_options

__all__ = ["EmulationUnavailable", "Library", "bring_in", "load", "vendor_options"]
