"""What a call leaves when a driver call in it has failed: RES-18 to 20, REMAP-36, 37 and 39."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.reservation_calls import MAPPING, Call, Family, Step
from vmm_conformance.contracts import Code, Range, status_name
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping

MAP_FAILED, ACCESS_FAILED, FIRST_FAILED = "RES-18", "RES-19", "RES-20"
WITHDRAWN, ONCE, FIRST_ERROR = "REMAP-36", "REMAP-37", "REMAP-39"

CODES: Final = frozenset(code.value for code in Code)
"""Codes of a subject's own: which of several errors one of these stands for cannot be told."""


class Failures(Family):
    """Judges mapping and remapping calls that have failed for what the driver answered."""

    def returned(self, call: Call, event: Event) -> None:
        """A call that has failed, and not for what was asked of it."""
        if call.good or call.wrong:
            return
        if call.name in MAPPING:
            self._mapping(call, event)
        elif call.name == "remap" and call.owned:
            self._remapping(call, event)

    # -- map_to, map_one

    def _mapping(self, call: Call, event: Event) -> None:
        cause = call.cause
        if cause is None:
            self._withdrawn(MAP_FAILED, call, event)
        elif cause.event.kind == "set_access":
            self.judge.witness(ACCESS_FAILED)
            self._undone(ACCESS_FAILED, call, event, cause)
        elif cause.event.kind == "map" and not any(step.made for step in call.steps):
            self._nothing_to_undo(call, event, cause)
        elif cause.event.kind == "map":
            self.judge.witness(MAP_FAILED)
            self._undone(MAP_FAILED, call, event, cause)

    def _undone(self, invariant: str, call: Call, event: Event, cause: Step) -> None:
        """All that the call has mapped is unmapped again, that alone, and once; the error is the first one."""
        self._withdrawn(invariant, call, event)
        made = {step.made for step in call.steps if step.made}
        for step in call.of("unmap", call.behind(cause)):
            others = [mapping for mapping in step.touched if mapping not in made and mapping not in call.excused]
            if others:
                self._fail_unmap(invariant, call, step, "what it has mapped", f"{_range(others[0])} is another's")
            elif step.refused:
                self._fail_unmap(invariant, call, step, "what is mapped, once", status_name(step.event.status))
        if not _reports(call, cause):
            self._fail_error(invariant, call, event, cause)

    def _withdrawn(self, invariant: str, call: Call, event: Event) -> None:
        left = self.left(step.made for step in call.steps)
        if left:
            self.judge.fail(
                invariant, event, f"{call} failed and leaves {len(left)} mappings", cause=left[0].made,
                expected="a mapping call that fails leaves nothing mapped", actual=f"{_range(left[0])} is mapped",
                range=Range(left[0].address, left[0].size),
            )  # fmt: skip

    def _nothing_to_undo(self, call: Call, event: Event, cause: Step) -> None:
        """Nothing was mapped, so nothing is unmapped."""
        unmaps = list(call.of("unmap", call.behind(cause)))
        self.judge.witness(FIRST_FAILED)
        if unmaps:
            self._fail_unmap(FIRST_FAILED, call, unmaps[0], "nothing", "this call has mapped nothing yet")
        if not _reports(call, cause):
            self._fail_error(MAP_FAILED, call, event, cause)

    # -- remap

    def _remapping(self, call: Call, event: Event) -> None:
        assert call.owned is not None
        assert call.reserved is not None
        cause, null = call.cause, call.is_null("mapping")
        if cause is None and not call.steps and null is False:
            return  # it was refused before it began: the mapping is still the owner
        if cause is not None:
            self.judge.witness(WITHDRAWN)
            self._cleaned(call, cause)
        self._nothing_left(call, event, null)
        if cause and not _reports(call, cause):
            several = any(step.event.status for step in call.behind(cause))
            self._fail_error(FIRST_ERROR if several else WITHDRAWN, call, event, cause)
        call.reserved.failed.append(Range(call.owned.offset, call.owned.size))

    def _nothing_left(self, call: Call, event: Event, null: bool | None) -> None:
        """The whole range is unmapped, and nobody owns it."""
        assert call.owned is not None
        range = call.owned.range
        left = self.left(self.state.mappings_in(*range)) if self.ledger.traced else []
        if left:
            self.judge.fail(
                WITHDRAWN, event, f"{call} failed and leaves {len(left)} mappings", range=range, cause=left[0].made,
                expected="a remap that fails leaves nothing mapped", actual=f"{_range(left[0])} is mapped",
            )  # fmt: skip
        if not null:
            self.judge.fail(
                WITHDRAWN, event, f"{call} failed, and its mapping is not null", range=range,
                expected="it owns nothing any more", actual="it is not null",
            )  # fmt: skip

    def _cleaned(self, call: Call, cause: Step) -> None:
        """Behind the failure every mapping is unmapped once, and what is not mapped not at all."""
        unmaps = list(call.of("unmap", call.behind(cause)))
        if unmaps:
            self.judge.witness(ONCE)
        for step in unmaps:
            if step.refused or not step.touched:
                self._fail_unmap(ONCE, call, step, "what is still mapped, once", "not all of it is mapped")
        if any(step.event.status for step in unmaps):
            self.judge.witness(FIRST_ERROR)

    # -- findings

    def _fail_unmap(self, invariant: str, call: Call, step: Step, expected: str, actual: str) -> None:
        self.judge.fail(
            invariant, step.event, f"{call}, undoing, unmaps {step.range.address:#x}+{step.range.size}",
            expected=f"it unmaps {expected}", actual=actual, range=step.range,
        )  # fmt: skip

    def _fail_error(self, invariant: str, call: Call, event: Event, cause: Step) -> None:
        self.judge.fail(
            invariant, event, f"{call} does not report the error that made it fail", actual=call.answer,
            expected=f"{status_name(cause.event.status)} of {cause.event.kind}", cause=cause.event.seq,
        )  # fmt: skip


def _reports(call: Call, cause: Step) -> bool:
    """Whether the call reports its first error, as far as that can be told."""
    return call.status == "refused" and (call.code in CODES or call.code == status_name(cause.event.status))


def _range(mapping: Mapping) -> str:
    return f"{mapping.address:#x}+{mapping.size}"
