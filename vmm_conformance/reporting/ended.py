"""How and where a process ended, in words."""

from __future__ import annotations

from vmm_conformance.reporting.text import pairs
from vmm_conformance.running.results import Ending


def where(ending: Ending) -> str:
    """Where in its program the process ended."""
    operations = ending.program["operations"]
    if ending.op < 0:
        return "before the first operation"
    if ending.op >= len(operations):
        return "at the end of the program, when the subject was closed or checked"
    operation = operations[ending.op]
    given = pairs(operation, skip=("op",))
    return f"in operation {ending.op}, {operation.get('op', '?')}" + (f" ({given})" if given else "")


def told(ending: Ending) -> str:
    """How and where the process ended, in a sentence."""
    return f"the process {ending.how} {where(ending)}"
