"""What is put under test: a subject offers one factory per contract it implements.

A subject is any object (a module will do) with some of these attributes:

- ``name`` and ``version``: text for reports;
- ``capabilities``: a mapping, see `SUBJECT_CAPABILITIES`;
- ``allocator(driver, device)``: contract ``allocator``;
- ``step_executor(driver, executable)``: contract ``skip-remap``;
- ``flags(revision)``: contract ``flags``;
- ``driver(options)``: contract ``driver``; the subject is then itself a driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONTRACTS: Final[Mapping[str, str]] = {
    "driver": "driver",
    "allocator": "allocator",
    "skip-remap": "step_executor",
    "flags": "flags",
}
"""Contract name to the attribute that a subject offers it by."""

SUBJECT_CAPABILITIES: Final[Mapping[str, Any]] = {
    "grow": True,
    "spaces": (0,),
    "traced": True,
    "revisions": ("env-auto", "env-bytes", "flags"),
}
"""What a subject may declare, with the value that stands where it declares nothing.

``grow``: the allocator implements grow. ``spaces``: memory spaces the allocator serves. ``traced``:
its driver calls go through the driver it was given. ``revisions``: flag grammars it implements.
"""


def contracts_of(subject: object) -> tuple[str, ...]:
    """The contracts that ``subject`` offers a factory for."""
    return tuple(name for name, attribute in CONTRACTS.items() if callable(getattr(subject, attribute, None)))


def capability(subject: object, name: str) -> Any:
    """The value ``subject`` declares for a capability, or the default.

    Raises ``KeyError`` if no capability has that name.
    """
    declared: Mapping[str, Any] = getattr(subject, "capabilities", None) or {}
    return declared.get(name, SUBJECT_CAPABILITIES[name])
