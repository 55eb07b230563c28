"""Directed scenarios of the contract ``vmm-allocator``: what chance would rarely put together."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Status
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.vmm_allocator import (
    Allocate,
    AllocateMapped,
    Churn,
    Configuration,
    Deallocate,
    Drain,
    Fail,
    Look,
    Map,
    Place,
    Source,
    Synchronize,
    Tag,
    Target,
    Unmap,
    Untag,
    Use,
)
from vmm_suites.scenarios import vmm_allocator_together as together
from vmm_suites.scenarios import vmm_allocator_upstream as upstream
from vmm_suites.scenarios.vmm_allocator_parts import PLAIN, SHORT, G, scenario

MIB: Final = 1 << 20
EXEMPT: Final = Configuration(budget=8 * G, exempt=(1,))
LARGE: Final = Configuration(recommended=MIB, capacity=1 << 30, slots=80)
NO_STREAMS: Final = Configuration(devices=2, streams_end=True)

UNKNOWN: Final = Status.UNKNOWN.value


DEFERRAL: Final = (
    scenario(
        "defers-until-seen", PLAIN,
        (Allocate(G), Map(0), Use(0, True), Unmap(0), Use(0), Deallocate(0), Allocate(2 * G), Drain(), Synchronize()),
        (44, 45, 53, 73), "an alias and its source end while work on both is queued",
    ),
    scenario(
        "seen-by-the-host-only", Configuration(eager=True),
        (Allocate(G), Use(0), Map(0), Unmap(0), Deallocate(0), Allocate(G, space=1), Map(-1), Use(-1, True)),
        (44, 57), "queued work runs at once, yet the allocator cannot know that it has",
    ),
    scenario(
        "second-batch", PLAIN,
        (
            *(Allocate(G), Deallocate(0), Synchronize(), Allocate(G), Allocate(2 * G), Use(0), Use(1), Deallocate(0)),
            *(Deallocate(0), Synchronize(), Allocate(3 * G), Map(0, granules=1), Unmap(0), Allocate(G), Map(1)),
            Use(1, True),
        ), (44, 45, 53, 57), "a later batch has a marker of its own",
    ),
    scenario(
        "kinds-of-stale", Configuration(devices=2),
        (
            *(Allocate(G), Deallocate(0), Allocate(G, 0, 1), Allocate(2 * G), Allocate(G), Deallocate(0)),
            Deallocate(0),
            *(AllocateMapped(0, 0, 1), Deallocate(-1), Allocate(G), Allocate(G, 1), Allocate(G - 1, 0, 1), Look()),
        ), (50, 51, 52), "stale memory of another space, size, kind and device is nobody's to take back",
    ),
    scenario(
        "nested-tags", PLAIN,
        (
            *(Tag(), Allocate(G), Deallocate(0), Tag(multi_device=False), Allocate(G), Deallocate(0), Untag()),
            *(Allocate(G), Untag(), Allocate(G), Tag(), Tag(), Untag(), Allocate(G), Deallocate(-1), Untag()),
            Allocate(G),
        ), (51, 79), "contexts in one another; what holds is what holds around",
    ),
    scenario(
        "batch-of-64", PLAIN,
        (Churn(64, G), Synchronize(), Churn(65, G), Churn(63, 2 * G), Synchronize(), Synchronize()),
        (53, 74), "as many frees as a batch takes, and one more",
    ),
    scenario(
        "unmaps-weigh-nothing", LARGE,
        (
            *(Allocate(33 * MIB), Map(0, 0, 0), Unmap(0), Allocate(33 * MIB), Map(1, 0, 40), Unmap(0)),
            *(Allocate(33 * MIB), Map(2, 1, 0), Unmap(0), Synchronize(), Deallocate(0), Deallocate(0), Synchronize()),
        ), (74,), "aliases of 33 MiB end in one batch, their sources in two",
    ),
    scenario(
        "called-off", PLAIN,
        (
            *(Allocate(G), Map(0), Synchronize(), Unmap(0), Map(0), Synchronize(), Unmap(0), Deallocate(0)),
            Allocate(G),
            *(Map(0), Synchronize(), Use(0, True), Churn(63, 2 * G), Deallocate(0), Synchronize()),
        ), (50, 55, 74), "what was called off is neither counted nor marked",
    ),
    scenario(
        "marker-refused", PLAIN,
        (
            *(Allocate(G), Deallocate(0), Fail("event_record"), Synchronize(), Look(), Allocate(2 * G), Map(0)),
            Unmap(0),
            *(Fail("event_record", 1, UNKNOWN), Synchronize(), Allocate(G), Fail("event_record"), Map(1), Use(1, True)),
        ), (53, 75), "a marker is refused at synchronize, and while a map is about to wait",
    ),
    scenario(
        "marker-refused-at-limit", PLAIN,
        (Churn(64, G), Allocate(G), Fail("event_record"), Deallocate(0), Synchronize(), Look()),
        (53, 75), "the marker of a full batch is refused: the free that needed it fails, and is made again",
    ),
)  # fmt: skip

ROLES: Final = (
    scenario(
        "roles-of-addresses", PLAIN,
        (
            *(Allocate(2 * G), AllocateMapped(0, 4, 2), Map(0), Look(), Deallocate(0, Source.ALIAS)),
            *(Unmap(0, Target.ALLOCATION), Map(1, 1, source=Source.ALIAS), Deallocate(0, Source.INTERIOR)),
            *(Deallocate(0, Source.SIZE), Deallocate(0, Source.FOREIGN), Map(1, 1, source=Source.INTERIOR)),
            *(Map(1, 1, source=Source.SIZE), Map(1, 1, source=Source.NULL), Map(1, 1, source=Source.FOREIGN)),
            *(Use(0, True), Use(1), Unmap(0), Deallocate(0), Map(0, 1, source=Source.GONE), Deallocate(0, Source.GONE)),
        ), (46, 47, 49, 63), "every address in a role that is not its own",
    ),
    scenario(
        "no-such-slice", PLAIN,
        (
            *(Allocate(G), Map(0, 0, 0), Unmap(0), AllocateMapped(place=Place.NONE)),
            AllocateMapped(place=Place.BEYOND),
            *(AllocateMapped(place=Place.OVERFLOW), Map(0, place=Place.NONE), Map(0, place=Place.BEYOND)),
            *(Map(0, place=Place.OVERFLOW), Unmap(0, place=Place.NONE), Unmap(0, place=Place.BEYOND)),
            *(Unmap(0, place=Place.OVERFLOW), AllocateMapped(0, 7, 1), AllocateMapped(0, 0, 8), Map(0, 0, 7), Use(-1)),
            *(AllocateMapped(0, 6, 4), AllocateMapped(granules=2, place=Place.BEYOND)),
        ), (65,
        ), "null reservations, slices that end behind theirs, and sums beyond 64 bits; the last granule is there",
    ),
    scenario(
        "how-much-of-a-source", PLAIN,
        (Allocate(G + 1), Map(0, 0, 0, 3), Map(0, 0, 0, 2), Use(0, True), Unmap(0), Map(0, 0, 2, 1), Use(0, True)),
        (64, 59), "more than is committed, all that is, and a part",
    ),
    scenario(
        "two-sizes", PLAIN,
        (
            *(AllocateMapped(extra=G), AllocateMapped(extra=-1), AllocateMapped(device=9, extra=1)),
            *(AllocateMapped(space=2, extra=1), AllocateMapped(place=Place.NONE, extra=1), AllocateMapped()),
            AllocateMapped(extra=G),
        ), (68,), "two sizes, alone and with all that can be wrong besides",
    ),
    scenario(
        "host-memory", PLAIN,
        (Allocate(G, space=2), AllocateMapped(space=2), Allocate(G), Allocate(1, space=2), Use(0)), (78,),
        "the host's memory space, plainly and at a slice",
    ),
    scenario(
        "nothing-asked-for", PLAIN,
        (
            *(Allocate(G), Allocate(0), Allocate(0, 9), AllocateMapped(granules=0)),
            AllocateMapped(granules=0, device=9),
            *(Map(0, granules=0), Map(0), Unmap(0, granules=0), Use(0, True), Deallocate(0, Source.NULL)),
        ), (41, 43), "no bytes, of a device and of none",
    ),
    scenario(
        "unmapped-once", PLAIN,
        (
            *(Allocate(2 * G), Map(0), Unmap(0, Target.FREE), Unmap(0, Target.SIZE), Unmap(0, Target.INTERIOR)),
            *(Use(0, True), Unmap(0), Unmap(0, Target.AGAIN), Synchronize(), Unmap(0, Target.AGAIN), Map(0)),
            *(Use(0, True), Allocate(G), Map(1, 1), Unmap(1, Target.SIZE), Use(1, True)),
        ), (66,), "unmaps that must be refused, before and after the one that must not",
    ),
    scenario(
        "second-alias", PLAIN,
        (
            *(Allocate(G), Allocate(G), Map(0), Map(0, 0, 2), Map(0, 1), Map(1), Use(0, True), Use(1), Unmap(0)),
            Map(0, 0, 2),
        ),
        (59, 60, 61), "an address gets a second alias only when it has lost the first",
    ),
    scenario(
        "stale-mapped-block-in-the-way", PLAIN,
        (
            *(AllocateMapped(0, 0, 2), Allocate(2 * G), Deallocate(0), Map(0), Use(0, True), AllocateMapped(0, 2, 1)),
            *(Deallocate(-1), AllocateMapped(0, 2, 1, space=1), Use(-1), AllocateMapped(0, 2, 1), Look()),
        ), (51, 57, 60), "a stale allocation at a slice is waited for by an alias, and by memory of another space",
    ),
)  # fmt: skip

MEMORY: Final = (
    scenario(
        "budget-in-granules", Configuration(budget=3 * G - 1),
        (
            *(Allocate(1), Allocate(1), Allocate(1), Deallocate(0), Allocate(G, space=1), Allocate(2 * G)),
            Deallocate(0),
            *(Synchronize(), Allocate(G), Look()),
        ), (69, 70, 72),
        "a budget that is no whole number of granules",
    ),
    scenario(
        "more-than-there-can-be", SHORT,
        (
            *(Allocate((1 << 64) - G), Allocate((1 << 64) - 1), Allocate(9 * G), Allocate(8 * G), Allocate(1)),
            *(Deallocate(0), Allocate((1 << 64) - 1), Allocate(G, retry=False)),
        ), (69, 72), "sizes at the end of what numbers of 64 bits hold, between sizes that fit",
    ),
    scenario(
        "reclaims-oldest-first", SHORT,
        (
            *(Allocate(2 * G), Allocate(2 * G), Allocate(G), Allocate(3 * G), Deallocate(0), Deallocate(0)),
            Deallocate(0),
            *(Allocate(2 * G, space=1), Look(), Allocate(G), Use(0), Use(-1)),
        ), (70, 71), "of three stale allocations the two oldest have 1.1 times what is wanted",
    ),
    scenario(
        "reclaims-its-own-alias", SHORT,
        (
            *(Allocate(4 * G), Allocate(4 * G), Map(0), Map(1, 1), Unmap(0), Unmap(0), Deallocate(0), Allocate(3 * G)),
            *(Look(), Map(0, 1), Use(0, True)),
        ), (55, 70, 71, 73), "a stale alias goes with its source, another one does not",
    ),
    scenario(
        "exempt-space", EXEMPT,
        (
            *(Allocate(4 * G, space=1), Allocate(2 * G), Allocate(2 * G), Deallocate(0), Deallocate(0), Deallocate(0)),
            *(Allocate(3 * G, retry=False), Look(), Allocate(4 * G, space=1), Use(-1), Allocate(G), Allocate(G)),
        ), (50, 71), "memory of an exempt space is not there to be reclaimed, but to be taken back",
    ),
    scenario(
        "device-is-short", Configuration(capacity=8 * G),
        (
            *(Allocate(8 * G), Use(0), Deallocate(0), Allocate(4 * G, retry=False), AllocateMapped(0, 0, 4)),
            *(Allocate(G), Look()),
        ),
        (70, 71), "the device has no more memory, and there is no budget",
    ),
    scenario(
        "passed-already", SHORT,
        (
            *(Allocate(4 * G), Allocate(4 * G), Deallocate(0), Churn(64, 0), Drain(), Deallocate(0)),
            *(Allocate(3 * G), Look()),
        ),
        (70,), "the stream has passed what was freed before memory is short",
    ),
)  # fmt: skip


def _half(kind: str) -> Scenario:
    """A call of several that something new needs fails; nothing is left of it, and it succeeds when made again."""
    failing = Fail(kind, 1, UNKNOWN)
    operations = (
        *(Allocate(G), failing, Allocate(3 * G), Map(0), Unmap(0), failing, AllocateMapped(0, 4, 2), Use(-1), Look()),
    )
    note = f"{kind} fails while memory is allocated, plainly and at a slice"
    made = () if kind == "create" else (184,)
    return scenario(f"{kind.replace('_', '-')}-fails", PLAIN, operations, (182, 183, *made), note)


def _alias_half(kind: str) -> Scenario:
    failing = Fail(kind, 1, UNKNOWN)
    operations = (
        *(Allocate(G), Allocate(G), failing, Map(0), Use(0, True), Unmap(0), failing, Map(1), Use(1, True), Look()),
    )
    return scenario(f"alias-{kind.replace('_', '-')}-fails", PLAIN, operations, (182, 183), f"{kind} fails in a map")


FAILURES: Final = (
    *(_half(kind) for kind in ("create", "reserve", "map", "set_access")),
    *(_alias_half(kind) for kind in ("map", "set_access")),
    scenario(
        "wait-fails", PLAIN,
        (
            *(Allocate(G), Allocate(G), Map(0), Unmap(0), Fail("event_synchronize", 1, UNKNOWN), Map(1), Use(1, True)),
            *(Deallocate(0), Fail("event_synchronize", 1, UNKNOWN), Synchronize(), Look()),
        ), (53, 57), "a wait fails, and is made again",
    ),
    scenario(
        "failure-costs-nothing", SHORT,
        (
            *(Allocate(8 * G), Allocate(G), Deallocate(0), Synchronize(), Fail("map"), Allocate(4 * G)),
            Fail("reserve"),
            *(Allocate(3 * G), Allocate(G), Use(-1), Look()),
        ),
        (72, 184), "memory that could not be mapped is not counted",
    ),
    scenario(
        "undo-fails", PLAIN,
        (
            *(Allocate(G), Fail("unmap", 1, UNKNOWN), Fail("set_access"), Allocate(2 * G), Use(0), Use(1)),
            *(Synchronize(), Look()),
        ),
        (182, 183), "rights are refused, and so is taking the mapping back",
    ),
    scenario(
        "completion-fails", SHORT,
        (
            *(Allocate(4 * G), Map(0), Unmap(0), Deallocate(0), Fail("unmap", 2, UNKNOWN), Synchronize()),
            Synchronize(),
            *(Allocate(8 * G), Use(0), Deallocate(0), Fail("release", 1, UNKNOWN), Allocate(7 * G), Use(0)),
        ), (53, 70), "a mapping, then memory, is not taken back at first",
    ),
)  # fmt: skip

ENDS: Final = (
    scenario(
        "closes-without-streams", NO_STREAMS,
        (
            *(Allocate(G), Allocate(G, 1), Allocate(2 * G, 1), Map(0), Map(1), Unmap(0), Deallocate(0), Use(0), Use(1)),
            Use(0, True),
        ), (76,), "both streams are gone when the allocator is closed, with work queued and all kinds of things there",
    ),
    scenario(
        "closes-unused", Configuration(devices=2, streams_end=True), (Allocate(G, 1), Use(0)), (76,),
        "one device has work and the other has nothing",
    ),
    scenario(
        "close-cannot-wait-once", PLAIN, (Allocate(G), Use(0), Fail("device_synchronize", 1, UNKNOWN)), (76,),
        "the first close cannot wait for the device",
    ),
    scenario(
        "close-fails-once", PLAIN,
        (Allocate(G), AllocateMapped(0, 0, 2), Map(0, 0, 4), Deallocate(1), Fail("unmap", 1, UNKNOWN)), (76,),
        "a mapping is not taken back at the first close",
    ),
    scenario(
        "repeated", Configuration(rounds=8),
        (
            *(Allocate(G), AllocateMapped(0, 0, 2), Map(0, 0, 4), Use(0, True), Unmap(0), Deallocate(0), Synchronize()),
            *(Allocate(2 * G), Deallocate(1), Allocate(G), Use(0)),
        ), (76, 185), "the same eight times over: what is held for later does not grow",
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *together.SCENARIOS, *DEFERRAL, *ROLES, *MEMORY, *FAILURES, *ENDS, *upstream.SCENARIOS,
)  # fmt: skip
