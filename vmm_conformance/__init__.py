"""Conformance suites for GPU virtual-memory allocators; see `check`.

Names are loaded when they are first used, as the pytest plugin makes every pytest run import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vmm_conformance.checking import check as check
    from vmm_conformance.reporting.model import Report as Report

    __version__: str

__all__ = ["Report", "__version__", "check"]


def __getattr__(name: str) -> Any:
    if name == "check":
        from vmm_conformance.checking import check

        return check
    if name == "Report":
        from vmm_conformance.reporting.model import Report

        return Report
    if name == "__version__":
        from importlib.metadata import version

        return version("vmm-conformance")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
