"""Who owns a mapping, and what giving it up does: MAP-21 to MAP-24."""

from __future__ import annotations

from vmm_conformance.checkers.reservation_calls import NOT_SEEN, Call, Family, Owned, Step
from vmm_conformance.contracts import Range, status_name
from vmm_conformance.history.events import Event

RELEASED, NULL, ASSIGNED, SWALLOWED = "MAP-21", "MAP-22", "MAP-23", "MAP-24"


class Owners(Family):
    """Judges drop, move and assign, and that a remap leaves its source null."""

    def returned(self, call: Call, event: Event) -> None:
        """By what the call was about."""
        if call.name == "drop":
            self._dropped(call, event)
        elif call.name == "move":
            self._moved(call, event)
        elif call.name == "assign":
            self._assigned(call, event)
        elif call.name == "remap" and call.good and call.owned:
            self._is_null("mapping", NULL, call, event)

    # -- drop

    def _dropped(self, call: Call, event: Event) -> None:
        if call.owned is None:
            self._no_calls(NULL, call, event)
            return
        self._unmapped(RELEASED, call.owned, call, event)
        self._swallowed(call, event)

    def _unmapped(self, invariant: str, owned: Owned, call: Call, event: Event) -> None:
        """All of the range is unmapped, that alone, and once."""
        self.judge.witness(invariant)
        range = owned.range
        left = self.left(self.state.mappings_in(*range)) if self.ledger.traced else []
        if left:
            self.judge.fail(
                invariant, event, f"{call} leaves {len(left)} mappings", range=range, cause=left[0].made,
                expected="all that the mapping owned is unmapped", actual=f"{left[0].address:#x} is still mapped",
            )  # fmt: skip
        for step in call.of("unmap"):
            beyond = [m for m in step.touched if not (range.address <= m.address and m.address + m.size <= range.end)]
            if step.refused or beyond:
                self._wrong_unmap(invariant, call, step, range)

    def _wrong_unmap(self, invariant: str, call: Call, step: Step, range: Range) -> None:
        self.judge.fail(
            invariant, step.event, f"{call} unmaps {step.range.address:#x}+{step.range.size}", range=step.range,
            expected=f"{range.address:#x}+{range.size} is unmapped, and once",
            actual=status_name(step.event.status) if step.event.status else "it takes away what others own",
        )  # fmt: skip

    def _swallowed(self, call: Call, event: Event) -> None:
        """Giving up raises nothing, whatever the driver says."""
        if any(step.injected for step in call.of("unmap")):
            self.judge.expect(
                SWALLOWED, event, call.good, f"{call} raises what the driver has refused", actual=call.answer,
                expected="giving up a mapping raises nothing",
            )  # fmt: skip

    # -- move

    def _moved(self, call: Call, event: Event) -> None:
        self._no_calls(NULL, call, event)
        if not call.good:
            return
        self._is_null("mapping", NULL, call, event)
        null = call.is_null("made")
        if null is not (call.owned is None):
            self.judge.fail(
                NULL, event, f"{call} returned a mapping", actual=f"null: {null}",
                expected=f"it owns {'nothing' if call.owned is None else 'what was moved'}",
            )  # fmt: skip

    # -- assign

    def _assigned(self, call: Call, event: Event) -> None:
        itself = call.about["target"] == call.about["source"]
        if itself or call.owned is None:
            self._no_calls(ASSIGNED, call, event)
        else:
            self._unmapped(ASSIGNED, call.owned, call, event)
            self._swallowed(call, event)
        if not call.good:
            return
        if not itself:
            self._is_null("source", ASSIGNED, call, event)
        wanted = call.owned if itself else call.other
        null, range = call.views.get(call.about["target"], NOT_SEEN)
        if null is not (wanted is None) or (wanted and range != wanted.range):
            self.judge.fail(
                ASSIGNED, event, f"{call} leaves its target wrong", actual=f"null: {null}, {range}",
                expected=f"it owns {f'{wanted.range.address:#x}+{wanted.size}' if wanted else 'nothing'}",
            )  # fmt: skip

    # -- both

    def _no_calls(self, invariant: str, call: Call, event: Event) -> None:
        self.judge.expect(
            invariant, event, not call.steps, f"{call} makes driver calls", expected="none",
            actual=", ".join(step.event.kind for step in call.steps),
        )  # fmt: skip

    def _is_null(self, mapping: str, invariant: str, call: Call, event: Event) -> None:
        """A mapping that ownership was taken from owns nothing."""
        self.judge.expect(
            invariant, event, call.is_null(mapping) is True, f"{call} leaves its {mapping} as an owner",
            expected="it is null", actual="it is not null",
        )  # fmt: skip
