"""What an executable's declaration implies, worked out from the specification alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OPTIMISED_PLATFORM = "ROCM"


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The static consequences of one executable plan.

    ``named``: slots that commands name and the mode selects, constants included, out-of-range ones too;
    ``remapped``: those that get a fixed address; ``threshold``: the copy threshold in force, in bytes;
    ``skips``: whether unchanged slots may be left alone; ``optimised``: whether the remapping path is
    taken at all; ``untraced``: slots that untraced commands alone name.
    """

    slots: int
    named: tuple[int, ...]
    remapped: tuple[int, ...]
    constants: tuple[int, ...]
    out_of_range: tuple[int, ...]
    threshold: int
    skips: bool
    optimised: bool
    platform: str
    mode: str
    vmm: bool
    granularity: int
    traced_only: bool
    untraced: tuple[int, ...]

    def is_small(self, size: int) -> bool:
        """SHADOW-103."""
        return 0 < size <= self.threshold

    def rounded(self, size: int) -> int:
        """``size`` rounded up to the granularity, in bytes."""
        return -(-size // self.granularity) * self.granularity


def plan_facts(planned: Any, granularity: int) -> PlanFacts:
    """Read an executable plan as the executor must (STEP-100, STEP-102)."""
    count = len(planned.slots)
    traced_only = planned.mode == "CAPTURE_CMD_NEVER_UPDATE"
    always = planned.mode == "ALWAYS_UPDATE"
    chosen = [c for c in planned.commands if not always and (c.traced or not traced_only)]
    named = tuple(sorted({slot for command in chosen for slot in command.slots}))
    traced = {slot for command in planned.commands if command.traced for slot in command.slots}
    everything = {slot for command in planned.commands for slot in command.slots}
    inside = [slot for slot in named if 0 <= slot < count]
    remapped = tuple(slot for slot in inside if not planned.slots[slot].constant)
    outside = tuple(slot for slot in named if not 0 <= slot < count)
    optimised = planned.vmm and not always and bool(remapped or outside)
    rocm = planned.platform == OPTIMISED_PLATFORM
    return PlanFacts(
        slots=count,
        named=named,
        remapped=remapped if optimised else (),
        constants=tuple(slot for slot in inside if planned.slots[slot].constant),
        out_of_range=outside if optimised else (),
        threshold=max(0, planned.copy_threshold) if rocm else 0,
        skips=rocm and planned.skip_remap,
        optimised=optimised,
        platform=planned.platform,
        mode=str(planned.mode),
        vmm=planned.vmm,
        granularity=granularity,
        traced_only=traced_only,
        untraced=tuple(sorted(s for s in everything - traced if 0 <= s < count)),
    )
