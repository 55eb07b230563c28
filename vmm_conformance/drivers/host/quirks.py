"""Quirk profiles: drivers in the wild that deviate, so that portable clients can be tested against each.

``--vmm-driver host,quirk=Q-01`` (several: ``quirk=Q-01+Q-07``), also under the emulated libraries. What a profile
does is scaled to a host driver's sizes. Where a real driver crashes, a profile raises what is no `DriverError`:
programs see a call that neither succeeds nor is refused, and the process goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.host import quirky_memory as memory
from vmm_conformance.drivers.host import quirky_ranges as ranges
from vmm_conformance.drivers.host import quirky_sharing as sharing
from vmm_conformance.drivers.host.driver import HostDriver


@dataclass(frozen=True, slots=True)
class Quirk:
    """One profile. ``breaks`` are the invariants that catch it, ``cite`` where it was reported.

    ``kind`` is the driver that has it; of those that no host driver can have ``reason`` says why. A profile that
    no invariant catches has a reason too.
    """

    id: str
    where: str
    note: str
    cite: str
    breaks: tuple[str, ...] = ()
    kind: type[HostDriver] | None = None
    reason: str = ""


def _breaks(*numbers: int) -> tuple[str, ...]:
    return tuple(f"DRIVER-{number}" for number in numbers)


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("Q-01", "ROCr up to 6.x", "one unmap over several mappings takes the first alone, and the reservation "
          "cannot be freed", "ROCm/ROCR-Runtime#285", _breaks(41), ranges.UnmapsOneOfSeveral),
    Quirk("Q-02", "ROCr 6.2 and 6.3 on consumer devices", "a large reservation takes memory for its bookkeeping",
          "ROCm/ROCR-Runtime#287", _breaks(12), memory.LargeReservationsCost),
    Quirk("Q-03", "clr 7.1 and 7.2", "set_access judges by the first mapping of the reservation, and refuses others",
          "ROCm/rocm-systems#2516, #2568, #6977", _breaks(52, 51), ranges.AccessByFirstMapping),
    Quirk("Q-04", "HIP 7.2 on Windows", "set_access over several mappings is refused, each by itself is taken",
          "hipfire#635, #643", _breaks(51), ranges.AccessOneByOne),
    Quirk("Q-05", "clr 2024", "reserve checks the alignment and then ignores it", "ROCm/clr hip_vm.cpp, 2024; "
          "vllm-project/vllm#43022", _breaks(8), ranges.ReserveIgnoresAlignment),
    Quirk("Q-06", "clr up to 2025", "map succeeds where it was refused, and holds on to the memory; retain does not "
          "count; a free or unmap of nothing crashes", "ROCm/clr hip_vm.cpp, 2024", _breaks(31, 32, 33, 43, 29, 16),
          ranges.MapAlwaysSucceeds),
    Quirk("Q-07", "ROCm on Linux, 6.4 to 7.2", "memory that was mapped comes back when its addresses are freed, and "
          "not before", "ROCm/hip#3781; vllm-project/vllm#46203", _breaks(72), memory.MemoryWaitsForAddresses),
    Quirk("Q-08", "clr, over the years", "reserve refuses with OutOfMemory, create on a device that does not exist "
          "with InvalidValue", "ROCm hip-tests of 2024 and of 2026", _breaks(10), ranges.OldCodes),
    Quirk("Q-09", "ROCm before 2025-11", "the recommended granularity is the minimum one", "ROCm/rocm-systems#1176",
          _breaks(6), memory.RecommendsTheMinimum),
    Quirk("Q-10", "ROCm 7.14", "each handle costs a file descriptor: create is out of memory when those are used up",
          "ROCm/rocm-systems#10604, #6661", _breaks(22, 73), memory.FewHandles),
    Quirk("Q-11", "ROCm 7.14", "an imported descriptor must stay open; a second export fails",
          "ROCm/rocm-systems#8440", _breaks(68, 69), sharing.OneDescriptor),
    Quirk("Q-12", "ROCm 7.0", "an IPC handle of virtual memory is given out; it corrupts the kernel, and memory "
          "is lost until the next boot", "ROCm/clr#265, #266", _breaks(65, 81), sharing.LegacyHandles),
    Quirk("Q-13", "ROCm 7.2.1 on gfx1201", "the first work on a fresh mapping reads zeros, and its stores are lost",
          "ROCm/rocm-systems#11693; ROCm/clr#288", _breaks(74), memory.FirstWorkIsLost),
    Quirk("Q-14", "RDNA", "aliases are incoherent within one kernel", "HIP documentation; ROCm/hip#3728",
          reason="it breaks no rule: work on aliases is undefined until it is ordered"),
    Quirk("Q-15", "ROCm 7.2 on Windows, gfx1100", "the second mapping of a reservation shows the memory of the first",
          "hipfire#655, #737", _breaks(39), memory.SecondMappingShowsFirst),
    Quirk("Q-16", "ROCm, reported in 2026", "freeing addresses that were mapped loses track of who reserves them "
          "next", "ROCm/rocm-systems#2980", _breaks(9), ranges.ForgetsReservations),
    Quirk("Q-17", "ROCm on Windows", "reservations and memory share one budget, and addresses run out with rounds of "
          "reserving and freeing", "ROCm/rocm-systems#6191, #9823", _breaks(12, 18), memory.OneBudget),
    Quirk("Q-18", "ROCm on Windows with two devices", "unmap crashes where two devices have access",
          "ROCm/rocm-systems#8402", _breaks(40), ranges.UnmapCrashesWithPeers),
    Quirk("Q-19", "ROCm 7.15", "an imported handle gives the host no access", "ROCm/rocm-systems#11185",
          _breaks(67), sharing.ImportsTakeNoRights),
    Quirk("Q-20", "clr's memory pools", "reserved addresses count as used memory", "ROCm/rocm-systems#7128",
          _breaks(12), memory.AddressesAreMemory),
    Quirk("Q-21", "clr before 2026", "map waits for streams of the memory's owner, as if it was work; unmap waits for "
          "those, and for no peer's", "ROCm/rocm-systems#6982", _breaks(75, 76), ranges.WaitsForOwner),
    Quirk("Q-22", "ROCr", "each map costs a descriptor for good: after some hundred, map is out of memory; two threads "
          "cannot map at once", "ROCm/mori#455; ROCm/rocm-systems#4363", _breaks(77, 73, 46), memory.MapsRunOut),
    Quirk("Q-23", "ROCm", "an imported handle has the properties of another", "ROCm/rocm-systems#11606",
          _breaks(70), sharing.ImportsLookForeign),
    Quirk("Q-24", "WSL, vGPU, some builds for RDNA", "virtual memory is offered, and the first map is refused",
          "NVIDIA/cuda-python#1127, #1175", _breaks(1), ranges.OffersWhatItLacks),
    Quirk("Q-25", "XDNA", "unmap destroys the memory's contents", "ROCm/rocm-systems#10798", _breaks(45, 44),
          memory.UnmapDestroys),
    Quirk("Q-26", "CUDA", "unmap never waits for work in flight", "NVIDIA/cuda-python#2886; pytorch/pytorch#196258",
          reason="it breaks no rule, and is what the host driver does unless told otherwise"),
    Quirk("Q-27", "some CUDA drivers", "a hint that cannot be followed is an error", "NVIDIA/DALI#3128, #3145; "
          "NVIDIA/cuda-python#2345", _breaks(11), ranges.HintIsDemand),
    Quirk("Q-28", "ROCr", "address_free refuses while something is mapped whose handle is released",
          "ROCm/ROCR-Runtime#257", reason="it breaks no rule: whatever is mapped has to be unmapped first"),
    Quirk("Q-29", "gfx1201 with PyTorch 2.12", "map hangs where something was mapped before", "pytorch/pytorch#192259",
          (), ranges.MapHangs, "the verdict is a timeout, with --vmm-isolation process; without it the run hangs"),
    Quirk("Q-30", "clr 2024 to 2026", "address_free takes any address inside a reservation, and ignores the size",
          "ROCm/clr hip_vm.cpp", _breaks(13, 14), ranges.FreesByContainment),
)  # fmt: skip

_BY_ID: Final = {quirk.id: quirk for quirk in QUIRKS}


def check(ids: Sequence[str]) -> None:
    """Raise ``ValueError`` unless every one is a profile that the host driver can have."""
    for id in ids:
        quirk = _BY_ID.get(id)
        if quirk is None:
            known = ", ".join(each.id for each in QUIRKS if each.kind)
            raise ValueError(f"unknown quirk {id!r}; accepted: {known}")
        if quirk.kind is None:
            raise ValueError(f"quirk {id} cannot be had on a host driver: {quirk.reason}")


def quirky(ids: Sequence[str]) -> Callable[[DriverOptions], Driver]:
    """What opens host drivers with all of these profiles. Raises ``ValueError`` as `check` does."""
    check(ids)
    kinds = tuple(kind for id in ids if (kind := _BY_ID[id].kind))
    made: type[HostDriver] = type(f"HostDriverWith{''.join(ids)}".replace("-", ""), kinds, {})
    made.name = f"host,quirk={'+'.join(ids)}"
    return made
