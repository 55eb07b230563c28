"""Upstream's own tests of its VMM allocator (openxla/xla), as far as a host can run them, in our own words.

Names are those of the tests, in kebab case behind ``upstream-``; each note begins with the test's own.
"""

from __future__ import annotations

import re
from typing import Final

from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.vmm_allocator import (
    Allocate,
    AllocateMapped,
    Churn,
    Configuration,
    Deallocate,
    Drain,
    Look,
    Map,
    Operation,
    Place,
    Source,
    Synchronize,
    Tag,
    Target,
    Unmap,
    Untag,
    Use,
)

G: Final = 4096
MIB: Final = 1 << 20
PLAIN: Final = Configuration()
PAIR: Final = Configuration(devices=2)
LARGE: Final = Configuration(recommended=MIB, capacity=1 << 30)

Operations = tuple[Operation, ...]

HOST: Final = "device_address_vmm_allocator_test"
CUDA: Final = "cuda_device_address_vmm_allocator_test"
ROCM: Final = "rocm_device_address_vmm_allocator_test"


def _test(
    file: str,
    name: str,
    numbers: tuple[int, ...],
    note: str,
    operations: Operations,
    configuration: Configuration = PLAIN,
) -> Scenario:
    identity = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
    program = Program("vmm-allocator", configuration, operations)
    exercises = tuple(f"ALLOC-{number}" for number in numbers)
    return Scenario(f"upstream-{identity}", program, exercises, f"{file}, {name}: {note}")


def _alias(block: int, offset: int = 0, granules: int = -1, reservation: int = 0) -> Map:
    return Map(block, reservation, offset, granules)


def _shapes(make: type[Map] | type[AllocateMapped]) -> Operations:
    """Around four granules from granule 4: all six ways to overlap in part, and both ways to touch."""
    places = ((3, 2), (7, 2), (4, 2), (6, 2), (5, 2), (3, 6))
    if make is Map:
        wrong: Operations = tuple(Map(-1, 0, offset, size) for offset, size in places)
        near: Operations = (Map(-1, 0, 8, 2), Unmap(-1), Map(-2, 0, 2, 2), Unmap(-1))
    else:
        wrong = tuple(AllocateMapped(0, offset, size) for offset, size in places)
        near = (AllocateMapped(0, 8, 2), AllocateMapped(0, 2, 2), Deallocate(-1), Deallocate(-1))
    return (*wrong, *near)


WIDE: Final = Configuration(slots=16, capacity=1 << 21)
SOURCES: Final[Operations] = (Allocate(6 * G), Allocate(6 * G))
"""What is shown near the four granules."""

HOST_TESTS: Final = (
    _test(
        HOST, "DestructorSynchronizesExecutorWithoutPendingOperations", (76,),
        "nothing is deferred, but work is queued when the allocator is closed", (Allocate(G), Use(0)),
    ),
    _test(
        HOST, "DestructorSynchronizesAllExecutorsBeforeReleasingDeviceResources", (76,),
        "both devices have work and deferred frees when the allocator is closed",
        (Allocate(G), Allocate(G, 1), Allocate(2 * G, 1), Deallocate(0), Deallocate(0)), PAIR,
    ),
    _test(
        HOST, "RetryFlagDoesNotDisablePendingReclaim", (70, 71),
        "a request without retries needs what was freed",
        (Allocate(4 * G), Deallocate(0), Allocate(2 * G, retry=False), Use(-1)), Configuration(budget=4 * G),
    ),
    _test(
        HOST, "RetryDisabledStillReusesCompatiblePendingAllocation", (50,),
        "a request without retries takes back what was freed",
        (Allocate(4 * G, retry=False), Deallocate(0), Allocate(4 * G, retry=False), Use(-1)),
        Configuration(budget=4 * G),
    ),
    _test(
        HOST, "RetryFlagDoesNotDisableMappedPendingReclaim", (70, 71),
        "a request at a slice, without retries, needs what was freed at another one",
        (AllocateMapped(0, 0, 4), Deallocate(0), AllocateMapped(0, 4, 2, retry=False), Use(-1)),
        Configuration(budget=4 * G),
    ),
    _test(
        HOST, "PhysicalAllocationSizeControlsBudgetAccounting", (69, 72),
        "three single bytes do not fit into a budget of two granules and a half",
        (
            *(Allocate(1), Allocate(1), Allocate(1), Deallocate(0), Allocate(G), Allocate(1)),
            *(Deallocate(0), Synchronize(), Allocate(G)),
        ), Configuration(budget=5 * G // 2),
    ),
    _test(
        HOST, "BatchedUnmapAndDeallocateReclaimSelectedAllocation", (70, 71, 73),
        "of several deferred operations in one batch, reclaim takes the oldest allocation, and its alias with it",
        (
            *(Allocate(4 * G), Allocate(2 * G), Allocate(G), _alias(0), _alias(2, 6), Unmap(0), Deallocate(0)),
            *(Unmap(0), Allocate(3 * G), Look(), _alias(1, 6), Use(1, True)),
        ), Configuration(budget=8 * G),
    ),
    _test(
        HOST, "OverlapLookupPreservesRangeBoundariesForActiveAndStaleAddresses", (62,),
        "six shapes of overlap with active and stale aliases and allocations; touching is none",
        (
            *(Allocate(4 * G), *SOURCES, _alias(0, 4), *_shapes(Map), *_shapes(AllocateMapped)),
            *(Synchronize(), Unmap(0), *_shapes(Map), *_shapes(AllocateMapped), Synchronize()),
            *(Deallocate(0), AllocateMapped(0, 4, 4), *SOURCES, *_shapes(Map), *_shapes(AllocateMapped)),
            *(Synchronize(), Deallocate(2), *_shapes(Map), *_shapes(AllocateMapped)),
        ), WIDE,
    ),
    _test(
        HOST, "ManyReservationAliasesReuseAndRemoveOrderedRecords", (53, 54, 55),
        "many aliases in one reservation are unmapped, taken back, and completed",
        (
            *(Allocate(G) for _ in range(96)), *(_alias(block, block) for block in range(96)),
            *(Unmap(0) for _ in range(96)), *(_alias(block, block) for block in range(96)),
            *(Unmap(-1) for _ in range(96)), Synchronize(), Look(), _alias(95, 0), Use(95, True),
        ), Configuration(slots=96, capacity=1 << 20),
    ),
    _test(
        HOST, "StaleAliasReuseValidatesSourceAndFullReservationRange", (55, 56, 57, 62, 63),
        "a stale alias is taken back by its source and its whole slice alone",
        (
            *(Allocate(2 * G), Allocate(2 * G), Map(0, 0, 0, 1), Unmap(0), Map(0, 0, 0, 2), Map(0, 0, 0, 1)),
            *(Map(0, 0, 2, 1, source=Source.ALIAS), Unmap(0), Map(1, 0, 0, 2), Map(1, 0, 0, 1), Use(1, True)),
            Synchronize(),
            *(Unmap(0), Deallocate(1), Map(0, 0, 4, source=Source.GONE)),
        ),
    ),
    _test(
        HOST, "MixedPendingOperationsCanBeCancelledAndRequeuedInAnyOrder", (50, 55, 67, 74),
        "frees and unmaps of one batch are called off and made again, and only what is left is marked",
        (
            *(Allocate(G), Allocate(2 * G), AllocateMapped(0, 4, 1), _alias(0), Synchronize()),
            *(Unmap(0), Deallocate(1), Deallocate(1), _alias(0), AllocateMapped(0, 4, 1), Allocate(2 * G)),
            Synchronize(),
            *(Deallocate(-1), Unmap(0), Deallocate(1), Allocate(2 * G), Deallocate(-1), _alias(0), Synchronize()),
            Look(),
        ),
    ),
)  # fmt: skip

ALLOCATION_TESTS: Final = (
    _test(CUDA, "AllocateAndDeallocate", (42, 44, 183), "one allocation", (Allocate(1000), Use(0), Deallocate(0))),
    _test(
        CUDA, "AllocateZeroSize", (41,), "no bytes, plainly and at a slice",
        (Allocate(0), AllocateMapped(granules=0)),
    ),
    _test(
        CUDA, "AllocateMultiple", (42, 182, 183), "three allocations have nothing in common",
        (Allocate(G), Allocate(G), Allocate(G), Use(0), Use(1), Use(2), Use(0), Deallocate(1), Use(0), Use(1)),
    ),
    _test(
        CUDA, "MemoryReadWrite", (182, 183), "what is written is read",
        (Allocate(3 * G), Use(0), Use(0), Drain(), Use(0), Drain()),
    ),
    _test(CUDA, "GetStream", (43, 181), "the stream of a device is the one that it was made with", (Look(),)),
    _test(
        CUDA, "ExplicitDeallocate", (46,), "an allocation is deallocated once",
        (Allocate(G), Deallocate(0), Deallocate(0, Source.GONE), Synchronize(), Deallocate(0, Source.GONE)),
    ),
    _test(
        CUDA, "SynchronizePendingOperationsDrainsQueue", (53,), "what is stale is found until it is synchronized",
        (Allocate(G), Deallocate(0), Look(), Synchronize(), Look()),
    ),
    _test(
        CUDA, "DeallocateNull", (43,), "a null address, of a device and of none",
        (Deallocate(0, Source.NULL), Deallocate(1, Source.NULL)),
    ),
    _test(
        CUDA, "PendingDeallocationReusesSameVirtualAddress", (50, 52, 74),
        "an allocation of equal rounded size takes the stale one back, and nothing is marked",
        (Allocate(G - 1), Synchronize(), Deallocate(0), Allocate(G), Synchronize(), Look()),
    ),
    _test(
        CUDA, "DeferredDeallocationSafeWhileGpuWritesData", (44, 182),
        "memory is freed while queued work writes it, and other memory is wanted",
        (Allocate(4 * G), Use(0), Deallocate(0), Allocate(G), Use(0), Drain(), Synchronize()),
    ),
    _test(
        CUDA, "MultipleDeferredDeallocationsDrainAfterSynchronization", (53, 74),
        "65 frees: a marker at the last one, another at synchronize", (Churn(65, G), Synchronize(), Look()),
    ),
    _test(
        CUDA, "DeferredDeallocationBatchFlushesAtByteLimit", (74,), "two frees of 33 MiB do not fit into one batch",
        (Churn(2, 33 * MIB), Synchronize()), LARGE,
    ),
    _test(
        CUDA, "OversizedDeferredDeallocationUsesStandaloneMarker", (74,), "a free of 65 MiB has a batch of its own",
        (Churn(1, 65 * MIB), Synchronize(), Churn(1, MIB), Churn(1, 65 * MIB), Synchronize()), LARGE,
    ),
    _test(
        CUDA, "DestructorWithPendingDeallocationsDoesNotCrash", (76,), "frees and unmaps are deferred at the end",
        (Allocate(G), Allocate(2 * G), _alias(0), Unmap(0), Deallocate(0), AllocateMapped(0, 4), Deallocate(-1)),
    ),
    _test(
        CUDA, "UnknownDeviceOrdinalReturnsError", (43,), "every call names a device that there is not",
        (
            *(Allocate(G, 5), AllocateMapped(0, 0, 1, 5), Synchronize(5), Allocate(G), Look()),
            *(Deallocate(0, Source.DEVICE), Map(0, source=Source.DEVICE), _alias(0), Unmap(0, Target.DEVICE)),
        ),
    ),
    _test(
        CUDA, "AllocateOnBothDevices", (183,), "an allocation on each of two devices",
        (Allocate(G), Allocate(G, 1), Use(0), Use(1), Deallocate(0), Use(0)), PAIR,
    ),
    _test(
        CUDA, "AllocationOnOneDeviceDoesNotAffectOther", (77,), "an address of one device is unknown on the other",
        (
            *(Allocate(G), Deallocate(0, Source.DEVICE), Map(0, source=Source.DEVICE), Look(), Deallocate(0)),
            Allocate(G, 1),
        ),
        PAIR,
    ),
    _test(
        CUDA, "MultiDeviceTagIsolatesReuse", (51, 79), "what was freed inside of a context is taken back only inside",
        (
            *(Allocate(2 * G), Deallocate(0), Tag(), Allocate(2 * G), Deallocate(0), Allocate(G), Deallocate(0)),
            *(Untag(), Allocate(G), Deallocate(0), Tag(), Allocate(G), Untag(), Allocate(G), Look()),
        ),
    ),
    _test(
        ROCM, "MultipleSeqnosAllCompleteAfterStreamSync", (45, 53, 74), "three batches are over with the stream",
        (
            *(Allocate(G), Deallocate(0), Synchronize(), Churn(65, 1), Allocate(2 * G), Deallocate(0), Drain()),
            *(Synchronize(), Look()),
        ),
    ),
    _test(
        ROCM, "DistinctAllocationsHaveDistinctIds", (53, 183), "memory is told apart by what looking it up tells",
        (Allocate(G), Allocate(G), Look(), Deallocate(0), Look()),
    ),
    _test(
        ROCM, "ReusingPendingDeallocationPreservesId", (50, 53), "what is taken back has the memory that it had",
        (Allocate(G), Look(), Deallocate(0), Allocate(100), Look()),
    ),
)  # fmt: skip

ALIAS_TESTS: Final = (
    _test(
        CUDA, "MapAndUnMapReservationAlias", (48, 49, 54, 61, 66, 183),
        "an alias shows its source, holds it, is known by its own role, and ends once",
        (
            *(Allocate(G), _alias(0), Use(0, True), Use(0), Deallocate(0), Deallocate(0, Source.ALIAS), _alias(0, 4)),
            *(Unmap(0, Target.SIZE), Unmap(0, Target.INTERIOR), Unmap(0), Unmap(0, Target.AGAIN), Look()),
            Deallocate(0),
        ),
    ),
    _test(
        CUDA, "MapRejectsPartialOverlapWithActiveReservationMapping", (62,), "a slice is half somebody else's",
        (Allocate(2 * G), Allocate(2 * G), _alias(0, 2), _alias(1, 1), _alias(1, 3), Use(0, True), _alias(1, 4)),
    ),
    _test(
        CUDA, "MapRejectsPartialOverlapWithStaleReservationMapping", (62,), "a slice is half of what is on its way out",
        (
            *(Allocate(2 * G), Allocate(2 * G), _alias(0, 2), Unmap(0), _alias(1, 1), _alias(1, 3), _alias(1, 4)),
            Use(1, True),
        ),
    ),
    _test(
        CUDA, "MapReactivatesPendingUnMapForSameRawAndRange", (54, 55), "an alias is taken back, and stays",
        (
            *(Allocate(G), _alias(0), Use(0, True), Unmap(0), Look(), _alias(0), Look(), Synchronize(), Use(0, True)),
            Drain(),
        ),
    ),
    _test(
        CUDA, "MapWaitsForPendingUnMapBeforeMappingSameSourceToDifferentReservation", (59,),
        "a source leaves one reservation for another",
        (Allocate(G), _alias(0), Unmap(0), _alias(0, 0, -1, 1), Use(0, True)),
    ),
    _test(
        CUDA, "MapWaitsForPendingDestinationAndSourceAliases", (57, 59),
        "the source's alias and the slice's are both on their way out",
        (Allocate(G), Allocate(G), _alias(0), _alias(1, 1), Unmap(0), Unmap(0), _alias(0, 1), Use(0, True), Look()),
    ),
    _test(
        CUDA, "MapRejectsActiveDestinationWithoutDrainingStaleSourceAlias", (60, 55),
        "the slice is in use; the source's own stale alias is still to be had",
        (Allocate(G), Allocate(G), _alias(0), _alias(1, 1), Unmap(0), _alias(0, 1), Look(), _alias(0), Use(1, True)),
    ),
    _test(
        CUDA, "MapRemapsPendingUnMapForDifferentRawAllocation", (57,), "a slice shows one source, then another",
        (Allocate(G), Allocate(G), Use(0), Use(1), _alias(0), Unmap(0), _alias(1), Use(1, True), Use(1), Use(0)),
    ),
    _test(
        CUDA, "MapConflictPreservesUnrelatedPendingUnMap", (57, 58, 55),
        "of two stale aliases one is in the way; the other is still to be had",
        (
            *(Allocate(G), Allocate(G), Allocate(G), _alias(0), _alias(1, 1), Unmap(0), Unmap(0), _alias(2)),
            *(_alias(1, 1), Use(1, True), Use(2, True)),
        ),
    ),
    _test(
        CUDA, "AllocateIntoReservationReturnsReservationAddress", (67, 183), "an allocation at a slice",
        (
            *(AllocateMapped(0, 2, 2), Use(0), Look(), Unmap(0, Target.ALLOCATION)),
            *(AllocateMapped(place=Place.BEYOND), Use(0)),
        ),
    ),
    _test(
        CUDA, "AllocateIntoReservationReusesPendingReservationAddress", (67,), "the same slice again",
        (AllocateMapped(0, 2, 2), Deallocate(0), AllocateMapped(0, 2, 2), Use(0), Synchronize(), Use(0), Drain()),
    ),
    _test(
        CUDA, "AllocateIntoReservationReusesPendingAllocatorAndReservationAddresses", (50, 55),
        "an allocation and its alias end, and both are taken back",
        (
            *(Allocate(2 * G), _alias(0), Unmap(0), Deallocate(0), Allocate(2 * G), _alias(0), Use(0, True)),
            *(Synchronize(), Look()),
        ),
    ),
    _test(
        CUDA, "BackToBackMappedAllocationsReuseMappingsAcrossSteps", (67,), "four steps at one slice",
        (*((AllocateMapped(0, 1, 2), Use(0), Deallocate(0)) * 4), Synchronize(), Look()),
    ),
    _test(
        CUDA, "AllocateIntoReservationRejectsSizeChangeAtSameAddress", (62,), "another size where one is stale",
        (
            *(AllocateMapped(0, 1, 2), Deallocate(0), AllocateMapped(0, 1, 3), AllocateMapped(0, 1, 1)),
            AllocateMapped(0, 1, 2),
        ),
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (*HOST_TESTS, *ALLOCATION_TESTS, *ALIAS_TESTS)
