"""More host drivers that are wrong on purpose: one for each invariant that has none in `known_bad`.

None of them brings the process down either: pages and tables agree, or both are wrong in the same way.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Mutant
from vmm_conformance.drivers.host import known_bad_courses as courses
from vmm_conformance.drivers.host import known_bad_handles as handles
from vmm_conformance.drivers.host import known_bad_mappings as mappings
from vmm_conformance.drivers.host import known_bad_sharing as sharing
from vmm_conformance.drivers.host.driver import HostDriver
from vmm_conformance.drivers.host.known_bad import HostSubject


def _mutant(number: int, kind: type[HostDriver], source: str = "") -> Mutant:
    """The mutant of ``kind``: named after its class, explained by the first line of its docstring."""
    name = "driver" + "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__)
    note = (kind.__doc__ or "").partition("\n")[0]
    return Mutant(name, "driver", (f"DRIVER-{number}",), HostSubject(name, kind), note, source)


MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant(1, handles.LiesAboutSupport, "NVIDIA/cuda-python#1127"),
    _mutant(2, handles.OddGranularity),
    _mutant(3, handles.SwappedGranularities, "ROCm/rocm-systems#1176"),
    _mutant(4, handles.MovingGranularity),
    _mutant(5, sharing.TakesAnyOption),
    _mutant(6, courses.RecommendsLess, "ROCm/rocm-systems#1176"),
    _mutant(7, handles.MisalignedBase),
    _mutant(8, handles.IgnoresAlignment, "ROCm/clr hip_vm.cpp, 2024"),
    _mutant(9, handles.ReservesTwice, "ROCm/rocm-systems#2980"),
    _mutant(10, handles.ReserveRounds),
    _mutant(11, handles.HintIsDemand, "NVIDIA/DALI#3128"),
    _mutant(12, handles.ChargesAddresses, "ROCm/rocm-systems#7128"),
    _mutant(18, courses.UsesAddressesOnce, "ROCm/rocm-systems#6191"),
    _mutant(19, handles.LeaksMemory, "ROCm/hip#3781"),
    _mutant(21, handles.TakesAnyDevice),
    _mutant(22, handles.StaysExhausted),
    _mutant(23, sharing.TellsDefaults),
    _mutant(24, handles.ReleaseTakesMapped),
    _mutant(25, handles.UnmapKeepsMemory),
    _mutant(26, handles.CountsTwice),
    _mutant(27, handles.StaleReleaseHitsAnother, "vllm-project/vllm#46054"),
    _mutant(28, handles.RetainWantsTheStart),
    _mutant(29, handles.RetainDoesNotCount, "ROCm/clr hip_vm.cpp, 2024"),
    _mutant(30, handles.RetainTakesPlainMemory, "ROCm/rocm-systems#5807"),
    _mutant(37, mappings.RefusesPartialMap, "NVIDIA/cuda-python#2908"),
    _mutant(38, mappings.FailedMapHolds, "ROCm/clr hip_vm.cpp, 2024"),
    _mutant(39, mappings.SharesPages),
    _mutant(44, mappings.ShowsOldMemory, "ROCm/rocm-systems#2980"),
    _mutant(45, mappings.UnmapEmptiesMemory, "ROCm/rocm-systems#10798"),
    _mutant(46, mappings.TiresOfMapping),
    _mutant(47, courses.LongReadsSlip, "ROCm/rocm-systems#9360"),
    _mutant(50, mappings.WritesReadOnly),
    _mutant(51, mappings.SetAccessFirstOnly, "ROCm/rocm-systems#2451"),
    _mutant(52, mappings.SetAccessRefusesTail, "ROCm/rocm-systems#6977"),
    _mutant(53, mappings.SetAccessWidens),
    _mutant(58, mappings.EndBelongsToMapping),
    _mutant(59, mappings.AccessByHandle),
    _mutant(62, mappings.SeamsSplitCopies),
    _mutant(63, courses.RefusesToBridge, "intel/llvm#22671"),
    _mutant(64, mappings.RangeIsReservation, "openucx/ucx#11461"),
    _mutant(65, sharing.GivesLegacyHandles, "ROCm/clr#265"),
    _mutant(66, sharing.ExportsAnything),
    _mutant(67, sharing.ImportsCopies),
    _mutant(68, sharing.ImportsNeedTheirDescriptor, "ROCm/rocm-systems#8440"),
    _mutant(69, sharing.ExportsOnce, "ROCm/rocm-systems#8440"),
    _mutant(70, sharing.ImportsLookForeign, "ROCm/rocm-systems#11606"),
    _mutant(71, mappings.StreamsLeak),
    _mutant(72, mappings.HoldsMemoryForAddresses, "vllm-project/vllm#46203"),
    _mutant(73, courses.HandlesCostDescriptors, "ROCm/rocm-systems#10604"),
    _mutant(74, mappings.SeesMappingsLate, "ROCm/rocm-systems#11693"),
    _mutant(75, mappings.UnmapDoesNotWait, "NVIDIA/cuda-python#2886"),
    _mutant(76, courses.MapWaitsForStreams, "ROCm/rocm-systems#6982"),
    _mutant(77, courses.MapsOneAtATime, "ROCm/mori#455"),
    _mutant(78, mappings.RefusedUnmapTakesRights),
    _mutant(79, mappings.StickyErrors),
    _mutant(80, mappings.CaptureForbidsMapping),
    _mutant(81, sharing.LosesMemoryAtExit, "ROCm/clr#265"),
)
"""One known-bad driver for each further invariant."""
