"""What handles tell and share, and what a process leaves behind, by the facts that the harness noted."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import Event

RULES: Final = {
    "option": "DRIVER-5",
    "properties": "DRIVER-23",
    "legacy": "DRIVER-65",
    "export": "DRIVER-66",
    "import": "DRIVER-67",
    "outlives": "DRIVER-68",
    "apart": "DRIVER-69",
    "imported": "DRIVER-70",
}
"""What a fact is about, to the invariant that it shows."""
LEFT: Final = "DRIVER-81"

_ANY_ERROR: Final = "any error"
_SUCCESS: Final = "success"


def shared(judge: Judge, event: Event, details: dict[str, Any]) -> bool:
    """Judge the facts of one scene. Whether all were right."""
    good = [_holds(wanted, got) for _, _, wanted, got in details["facts"]]
    for (about, what, wanted, got), right in zip(details["facts"], good, strict=True):
        judge.expect(RULES[about], event, right, what, expected=wanted, actual=got)
    return all(good)


def _holds(wanted: str, got: str) -> bool:
    return not got.startswith(_SUCCESS) if wanted == _ANY_ERROR else got == wanted


def left(judge: Judge, event: Event, details: dict[str, Any], tolerance: int) -> None:
    """Judge what a process has left that ended without giving anything back."""
    before, behind = details["before"], details["behind"]
    known = before.isdigit() and behind.isdigit()
    judge.expect(
        LEFT, event, known and abs(int(before) - int(behind)) <= tolerance,
        f"free memory of device {details['device']}, for the process behind one that left memory mapped",
        expected=f"{before} bytes, as before", actual=f"{behind} bytes",
    )  # fmt: skip
