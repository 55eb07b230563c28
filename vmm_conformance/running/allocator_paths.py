"""The paths that an allocator says its calls have taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vmm_conformance.contracts import capability
from vmm_conformance.running.outcome import attempt

COUNTED: Final = frozenset({"allocate", "deallocate", "grow", "shrink", "trim", "pause", "resume"})
"""The calls whose paths can be declared."""


class Paths:
    """Asks an allocator, behind each call with declared paths, which were taken so far."""

    def __init__(self, subject: Any) -> None:
        declared = tuple(capability(subject, "paths"))
        self._calls = {path.partition("/")[0] for path in declared} & COUNTED

    def behind(self, call: str, allocator: Any) -> dict[str, Any]:
        """What the note of a return has of it: ``paths``, empty where the subject does not say."""
        if call not in self._calls:
            return {}
        told: list[dict[str, int]] = []
        attempt(lambda: told.append(_counts(allocator.taken())))
        return {"paths": told[0] if told else {}}


def _counts(answer: Mapping[str, int]) -> dict[str, int]:
    return {str(path): int(count) for path, count in answer.items()}
