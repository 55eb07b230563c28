"""The last revision of ROCm/xla#1001 as its source reads, hazards included."""

from __future__ import annotations

from collections.abc import Sequence

from vmm_conformance.contracts import Buffer
from vmm_reference.layout import Layout
from vmm_reference.mutants.order import NoRecordAfterError, OneEventForAllStreams
from vmm_reference.mutants.registry import Registry
from vmm_reference.mutants.step import (
    ClassFromCurrentSize,
    CompareAddress,
    MapsWholeHandle,
    OffsetsFromCurrentSizes,
    StickyReservation,
)
from vmm_reference.shadows import Shadows

mutant = Registry()


class _OneEvent(OneEventForAllStreams):
    def order_behind_last_step(self, stream: int) -> None:
        """Hazard g: nobody asks which stream used the shadows last."""


class _CopiesEverything(Shadows):
    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        """Hazards h and i: every shadow, whatever its use and whoever shares its buffer."""
        return list(self.addresses)


class _PlansEveryStep(OffsetsFromCurrentSizes, ClassFromCurrentSize):
    def stale(self, fresh: Layout) -> bool:
        """Hazards d and f: this step's sizes decide on classes and offsets; shadows alone may not grow."""
        classes_differ = ClassFromCurrentSize.stale(self, fresh)
        return classes_differ or OffsetsFromCurrentSizes.stale(self, fresh)


@mutant(
    "STEP-87",
    "STEP-90",
    "STEP-96",
    "STEP-97",
    "STEP-84",
    "STEP-159",
    "STEP-163",
    "SHADOW-118",
    "SHADOW-160",
    "SHADOW-161",
    source="ROCm/xla#1001, last revision: hazards a to i",
    parts=(_OneEvent, _CopiesEverything),
)
class Upstream(CompareAddress, NoRecordAfterError, StickyReservation, MapsWholeHandle, _PlansEveryStep):
    """Does all that the reference does but for nine things, each of them safe most of the time."""


MUTANTS = mutant.mutants
