"""Which status codes refusals carry, where vendors' tests or documents name one for both.

Elsewhere any error is a refusal, and its code is recorded and not judged.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import DriverCapabilities, Status

RESERVE: Final = "DRIVER-10"

_CODES: Final[dict[str, tuple[Status, ...]]] = {
    RESERVE: (Status.INVALID_VALUE,),
    "DRIVER-20": (Status.INVALID_VALUE,),
    "DRIVER-21": (Status.INVALID_VALUE, Status.INVALID_DEVICE),
    "DRIVER-22": (Status.OUT_OF_MEMORY,),
    "DRIVER-30": (Status.INVALID_VALUE,),
    "DRIVER-54": (Status.INVALID_VALUE,),
    "DRIVER-55": (Status.INVALID_VALUE,),
    "DRIVER-58": (Status.INVALID_VALUE,),
}
"""Invariant that forbids a call to the codes that the call is refused with."""


def codes_of(tags: tuple[str, ...], declared: DriverCapabilities) -> tuple[Status, ...]:
    """The codes that a call may be refused with that breaks just one rule; none where any will do."""
    if len(tags) != 1:
        return ()
    codes = _CODES.get(tags[0], ())
    return (*codes, Status.OUT_OF_MEMORY) if tags[0] == RESERVE and declared.old_codes else codes


def names(codes: tuple[Status, ...]) -> str:
    """The codes, in words."""
    return " or ".join(code.name for code in codes)
