"""Where a run took place: what a report says so that it can be repeated."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

SEEDED = ("vmm-conformance", "hypothesis")
"""What decides which programs a seed stands for."""
PACKAGES = ("vmm-conformance", "hypothesis", "pytest", "pytest-xdist", "hip-python", "cuda-bindings")


def version(package: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def environment() -> dict[str, object]:
    """Interpreter, platform and the versions of the packages that matter, as plain data."""
    found = {package: version(package) for package in PACKAGES}
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "packages": {package: number for package, number in found.items() if number},
    }
