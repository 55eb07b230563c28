"""What a run of steps showed to its caller: statuses and bytes, free of addresses."""

from __future__ import annotations

from typing import Any

from vmm_conformance.history.events import History

Observation = dict[str, Any]


def observations(history: History) -> list[Observation]:
    """For each step in order: its operation, how it ended, and the bytes of the real buffers after it.

    Bytes are keyed by ``(allocation, offset)``; a read that did not run or met a fault is None.
    """
    ran = {e.args[0]: e.args for e in history.events if e.kind == "ran"}
    steps: list[Observation] = []
    for event in history.events:
        if event.kind != "note":
            continue
        what, details = event.args
        if what == "stepped":
            steps.append({"op": event.op, "status": details["outcome"]["status"], "bytes": {}})
        elif what == "observe" and steps:
            _, data, fault = ran.get(details["work"], (0, (), None))
            values = data if fault is None and data else (None,) * len(details["marks"])
            for (allocation, offset, _), value in zip(details["marks"], values, strict=False):
                steps[-1]["bytes"][allocation, offset] = value
    return steps
