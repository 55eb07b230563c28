"""Known-bad automatic choices of the copy threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vmm_conformance.contracts import Choice, CopyCosts, DeviceFigures, Driver, Executable, Mutant, StepExecutor
from vmm_reference.auto_threshold import BOUNDS, AutoThreshold
from vmm_reference.mutants import auto_answers as answers
from vmm_reference.mutants import auto_choices as wrong
from vmm_reference.step_executor import SkipRemapExecutor

Kind = type[AutoThreshold] | type[SkipRemapExecutor]


class AutoMutant:
    """A subject whose choice is wrong, or whose executor does not keep to it."""

    def __init__(self, name: str, kind: Kind, *, declares: bool = True) -> None:
        self.name = name
        self.capabilities: Mapping[str, Any] = {"auto_bounds": BOUNDS} if declares else {}
        self._choice = kind() if issubclass(kind, AutoThreshold) else AutoThreshold()
        self._executor: type[SkipRemapExecutor] = kind if issubclass(kind, SkipRemapExecutor) else SkipRemapExecutor

    def auto_threshold(self, device: DeviceFigures, slices: Sequence[int], costs: CopyCosts) -> Choice:
        """The wrong choice."""
        return self._choice.choose(device, slices, costs)

    def step_executor(self, driver: Driver, executable: Executable) -> StepExecutor:
        """The executor that runs with the cutoff."""
        return self._executor(driver, executable)


def _mutant(
    name: str, kind: Kind, *breaks: int, declares: bool = True, source: str = "", repeatable: bool = True
) -> Mutant:
    """The mutant ``auto-name``, made to break the invariants with these numbers."""
    identity = f"auto-{name}"
    note = " ".join((kind.__doc__ or "").split())
    broken = tuple(f"AUTO-{number}" for number in breaks)
    subject = AutoMutant(identity, kind, declares=declares)
    return Mutant(identity, "auto-threshold", broken, subject, note, source, repeatable)


MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant("always-4-kib", wrong.AlwaysFourKiB, 156, 173, 177, 157),
    _mutant("4-kib-where-known", wrong.FourKiBWhereKnown, 156, 177, 157),
    _mutant("largest-first", wrong.LargestFirst, 156, 171, 176, 177, 178),
    _mutant("as-they-come", wrong.AsTheyCome, 156, 170, 171, 172, 175, 176, 177, 178),
    _mutant("each-by-itself", wrong.EachByItself, 156),
    _mutant("no-remap-bound", wrong.NoRemapBound, 156, 178),
    _mutant("no-step-bound", wrong.NoStepBound, 156),
    _mutant("no-memory-bound", wrong.NoMemoryBound, 156, 157),
    _mutant("copies-in-only", wrong.CopiesInOnly, 156),
    _mutant("bytes-only", wrong.BytesOnly, 156),
    _mutant("whole-bandwidth", wrong.WholeBandwidth, 156, 178),
    _mutant("bare-bytes", wrong.BareBytes, 156),
    _mutant("one-of-each", wrong.OneOfEach, 156),
    _mutant("one-too-many", wrong.OneTooMany, 156, 157, 178),
    _mutant("total-memory", wrong.TotalMemory, 157, 156),
    _mutant("free-at-start", wrong.FreeAtStart, 157, 156),
    _mutant("free-in-kib", wrong.FreeInKiB, 157, 156),
    _mutant("throws-dice", answers.ThrowsDice, 170, 171, 172, 177, 178, repeatable=False),
    _mutant("slow-to-fall", answers.SlowToFall, 170, 156, 157, 171, 172, 173),
    _mutant("free-of-last", answers.FreeOfLast, 170, 156, 171, 172, 177, 178),
    _mutant("first-slices", answers.FirstSlices, 170, 156, 171, 172, 177, 178),
    _mutant("used-memory", answers.UsedMemory, 171, 156, 157, 177, 178),
    _mutant("free-in-32-bits", answers.FreeIn32Bits, 171, 156, 177),
    _mutant("less-with-room", answers.LessWithRoom, 171, 177, 178),
    _mutant("upside-down", answers.UpsideDown, 172, 156, 177),
    _mutant("bandwidth-in-32-bits", answers.BandwidthIn32Bits, 172, 177, 178),
    _mutant("slow-devices-only", answers.SlowDevicesOnly, 172, 177, 178),
    _mutant("unknown-is-fast", answers.UnknownIsFast, 173, 172),
    _mutant("unknown-is-usual", answers.UnknownIsUsual, 173, 157, 172),
    _mutant("no-free-is-all-free", answers.NoFreeIsAllFree, 173, 156, 171),
    _mutant("selects-empty", answers.SelectsEmpty, 174, 157),
    _mutant("divides-by-bandwidth", answers.DividesByBandwidth, 174),
    _mutant("refuses-when-full", answers.RefusesWhenFull, 174),
    _mutant("minus-one", answers.MinusOne, 174),
    _mutant("listed-twice", answers.ListedTwice, 174),
    _mutant("splits-ties", answers.SplitsTies, 175, 176),
    _mutant("one-of-a-size", answers.OneOfASize, 175, 156, 176, 177, 178),
    _mutant("next-cutoff", answers.NextCutoff, 176),
    _mutant("exclusive-cutoff", answers.ExclusiveCutoff, 176),
    _mutant("rounded-cutoff", answers.RoundedCutoff, 176),
    _mutant("exclusive-executor", answers.ExclusiveExecutor, 176),
    _mutant("deaf-executor", answers.DeafExecutor, 176),
    _mutant("off", wrong.Off, 177, 178),
    _mutant("all-or-nothing", wrong.AllOrNothing, 177, 178),
    _mutant("cap-at-page", wrong.CapAtPage, 177),
    _mutant("timid", wrong.Timid, 177, 178),
    _mutant("tiny-only", wrong.TinyOnly, 178, declares=False),
    _mutant("large-too", wrong.LargeToo, 178, declares=False),
)
