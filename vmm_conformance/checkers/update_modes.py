"""Names of update modes: FLAG-153."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.scope_facts import Family
from vmm_conformance.contracts import Code, RemapMode
from vmm_conformance.history.events import Event

NAMED = "FLAG-153"


class Modes(Family):
    """Judges what a name is read as."""

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Three names are modes, unset is one, every other name is refused by name."""
        if what != "mode":
            return
        text, outcome = details["text"], details["outcome"]
        known = {mode.value: mode for mode in RemapMode}
        if text is None or text in known:
            wanted = known[text] if text is not None else RemapMode.ALWAYS_UPDATE
            self.judge.expect(
                NAMED, event, outcome["status"] == "ok" and details["answer"] == wanted,
                f"the update mode {text!r} is not read as {wanted.value}", expected=wanted.value,
                actual=_answer(details),
            )  # fmt: skip
            return
        refused = outcome["status"] == "refused" and outcome["code"] == Code.INVALID_ARGUMENT.value
        self.judge.expect(
            NAMED, event, refused and text in outcome["message"],
            f"the update mode {text!r} is none, and must be refused",
            expected=f"{Code.INVALID_ARGUMENT.value} that quotes it", actual=_answer(details),
        )  # fmt: skip


def _answer(details: dict[str, Any]) -> str:
    outcome = details["outcome"]
    if outcome["status"] == "ok":
        return str(details["answer"])
    return f"{outcome['status']} {outcome['code']}: {outcome['message']}"
