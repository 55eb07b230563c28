"""Scenarios of the contract ``reservation``: every failure point, every wrong request, every shape of a remap.

Those whose id begins with ``upstream-`` retell XLA's own tests; the others what random programs rarely
reach, or what must never be left to chance. Sizes are in granules of `G` bytes.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Status
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.reservation import (
    Allocate,
    Assign,
    Check,
    CloseReservation,
    Configuration,
    Drop,
    Fail,
    Free,
    MapOne,
    MapTo,
    Move,
    Odd,
    Operation,
    Probe,
    Remap,
    Reserve,
    Teardown,
    Touch,
    TouchNull,
    Use,
)
from vmm_conformance.programs.scenario import Scenario

G: Final = 4096
UNKNOWN: Final = Status.UNKNOWN.value
PLAIN: Final = Configuration()
STRICT: Final = Configuration(unmap_spans=False, access_spans=False, partial_map=False)
PAIR: Final = Configuration(devices=2)
APART: Final = Configuration(devices=2, peers=False)
COARSE: Final = Configuration(recommended=4 * G, capacity=64 * G)
PARTS: Final = Configuration(map_offset=True)
ROOM: Final = Reserve(12 * G)
GRANULES: Final = (Allocate(G),) * 8
THREE: Final = (ROOM, *GRANULES, MapTo(0, (0, 1, 2)))
"""Eight granules of memory, of which the first three are mapped side by side."""
FIVE: Final = (ROOM, *GRANULES, MapTo(0, (0, 1, 2, 3, 4)))


def _scenario(
    name: str,
    operations: tuple[Operation, ...],
    exercises: str,
    note: str,
    configuration: Configuration = PLAIN,
) -> Scenario:
    ids = tuple(_id(word) for word in exercises.split())
    return Scenario(name, Program("reservation", configuration, operations), ids, note)


def _id(number: str) -> str:
    """The id of an invariant by its number: they are counted through all four areas."""
    bounds = ((3, "RAW"), (20, "RES"), (25, "MAP"), (40, "REMAP"))
    return f"{next(area for last, area in bounds if int(number) <= last)}-{number}"


UPSTREAM: Final = (
    _scenario("upstream-create-allocation", (Allocate(G), Free(0)), "1 2 3",
              "CreateAllocation (raw memory allocation): memory is allocated and given back"),
    _scenario("upstream-address-reflects-handle", (Allocate(G), Allocate(G)), "2",
              "AddressReflectsHandle (raw memory allocation): an allocation's address is the driver's handle"),
    _scenario("upstream-size-is-at-least-requested", (Allocate(1),), "1 2",
              "SizeIsAtLeastRequested (raw memory allocation): one byte is asked for", COARSE),
    _scenario("upstream-create-reservation", (Reserve(1), Reserve(G), Reserve(3 * G + 1)), "4 10",
              "CreateReservation (memory reservation): addresses are reserved, and nothing can be reached there"),
    _scenario("upstream-map-to-wrong-type", (ROOM, Allocate(G), MapOne(0, 0, odd=Odd.FOREIGN)), "6",
              "MapToWrongType (memory reservation): an allocation of another kind is refused"),
    _scenario("upstream-map-to-single-allocation", (ROOM, Allocate(G), MapOne(0, 0), Use(0), Check(0)), "7 10 17 25",
              "MapToSingleAllocation (memory reservation): one allocation is mapped and used"),
    _scenario("upstream-scoped-mapping-unmaps-on-destruction",
              (ROOM, Allocate(G), MapOne(0, 0), Drop(0, scoped=True), MapOne(0, 0), Check(0)), "10 16 21",
              "ScopedMappingUnmapsOnDestruction (memory reservation): the same place is mapped again afterwards"),
    _scenario("upstream-map-to-multiple-allocations",
              (ROOM, Allocate(G), Allocate(2 * G), MapTo(0, (0, 1)), Use(0), Check(0)), "7 17 25",
              "MapToMultipleAllocations (memory reservation): two allocations side by side"),
    _scenario("upstream-two-reservations-different-addresses", (Reserve(2 * G), Reserve(2 * G)), "4 5",
              "TwoReservationsDifferentAddresses (memory reservation): two of one size are live at once"),
    _scenario("upstream-set-access-grants-local-device-access", (ROOM, Allocate(G), MapOne(0, 0), Probe(0)), "7 10",
              "SetAccessGrantsLocalDeviceAccess (CUDA's memory reservation): the driver is asked for the rights"),
    _scenario("upstream-set-access-grants-peers",
              (ROOM, Allocate(G), MapOne(0, 0), Probe(0), Use(0, 1), Check(0)), "7 10",
              "the multi-GPU test of CUDA's memory reservation: a peer writes what the device reads", PAIR),
    _scenario("upstream-remap-preserves-unchanged-slices",
              (ROOM, *GRANULES, MapTo(0, (0, 1)), Use(0), Remap(0, 0), Check(0)), "30",
              "RemapPreservesUnchangedSlices (ROCm's memory reservation): two patterns survive a remap of no slice"),
    _scenario("upstream-remap-repoints-required-slice",
              (ROOM, *GRANULES, MapTo(0, (0, 1)), Use(0), Remap(0, 2, (0,)), Check(0)), "31 32",
              "RemapRepointsRequiredSlice (ROCm's memory reservation): slice 1 shows the memory of slice 0"),
    _scenario("upstream-counting-skip", (*THREE, Remap(0, 0), Remap(0, 2, (5,)), Remap(0, 0)), "30 31 33",
              "the counting reservation of openxla/xla#41757: calls are made for required slices alone"),
    _scenario("upstream-counting-coalesce", (*FIVE, Remap(0, 0b11011, (5,))), "34 35",
              "the counting reservation of openxla/xla#41757: slices that touch share their calls"),
    _scenario("upstream-counting-failure-cleanup", (*FIVE, Fail("map", 2), Remap(0, 0b01110, (5, 6)), Check(0)),
              "36 37 38", "the counting reservation of openxla/xla#41757: a map fails in the middle of a remap"),
)  # fmt: skip


def _map_fails(kind: str, k: int, configuration: Configuration, name: str) -> Scenario:
    """A driver call fails while three slices are mapped beside others."""
    first = 20 if (kind, k) == ("map", 1) else 19 if kind == "set_access" else 18
    operations = (*THREE, Fail(kind, k, UNKNOWN), MapTo(0, (3, 4, 5), 0), Check(0), Check(1), Drop(1))
    note = f"{kind} fails at its call {k} while a batch is mapped beside another mapping, then goes well"
    return _scenario(f"map-to-{kind.replace('_', '-')}-{k}{name}", operations, f"16 {first}", note, configuration)


def _remap_fails(kind: str, k: int, configuration: Configuration, name: str) -> Scenario:
    """A driver call fails while two runs of slices are remapped."""
    operations = (*FIVE, MapOne(0, 7), Fail(kind, k, UNKNOWN), Remap(0, 0b11011, (5, 6)), Check(0), Check(1))
    note = f"{kind} fails at its call {k} while two runs are remapped; the range is mapped anew, others are untouched"
    return _scenario(f"remap-{kind.replace('_', '-')}-{k}{name}", operations, "36 37 38", note, configuration)


def _undo_fails(cause: str, k: int, undo: int) -> Scenario:
    """The unmap that cleans up fails too, with another error."""
    operations = (*FIVE, Fail(cause, k), Fail("unmap", undo, UNKNOWN), Remap(0, 0b01010, (5, 6)), Check(0))
    note = f"{cause} fails in a remap, and an unmap that cleans up behind it: the first error is the one to report"
    return _scenario(f"remap-{cause.replace('_', '-')}-{k}-then-unmap", operations, "36 37 39", note)


FAILURES: Final = (
    *(_map_fails("map", k, PLAIN, "") for k in (1, 2, 3)),
    _map_fails("set_access", 1, PLAIN, ""),
    *(_map_fails("set_access", k, STRICT, "-strict") for k in (1, 3)),
    _map_fails("map", 3, STRICT, "-strict"),
    *(_remap_fails("map", k, PLAIN, "") for k in (1, 2, 4)),
    *(_remap_fails("set_access", k, PLAIN, "") for k in (1, 2)),
    *(_remap_fails("unmap", k, PLAIN, "") for k in (1, 2)),
    *(_remap_fails(kind, 3, STRICT, "-strict") for kind in ("map", "set_access", "unmap")),
    *(_undo_fails("map", k, 3) for k in (1, 2)),
    _undo_fails("set_access", 1, 4),
    _scenario("map-to-undo-fails",
              (ROOM, *GRANULES, Fail("unmap", 1, UNKNOWN), Fail("map", 3), MapTo(0, (0, 1, 2)), MapTo(0, (3, 4), 3)),
              "18", "a map fails, and the unmap of what was mapped before it: the first error is the one to report"),
    _scenario("drop-unmap-fails", (*THREE, MapOne(0, 3), Fail("unmap"), Drop(0), Check(0), CloseReservation(0)),
              "9 21 24", "an unmap fails while a mapping is released; another lives on, and close unmaps both"),
    _scenario("exit-unmap-fails", (*THREE, Fail("unmap"), Drop(0, scoped=True), CloseReservation(0)), "21 24",
              "an unmap fails at the end of a with block"),
    _scenario("assign-unmap-fails", (*THREE, MapOne(0, 3), Fail("unmap"), Assign(0, 1), Check(0)), "23 24",
              "an unmap fails while a mapping takes over another one's range"),
    _scenario("close-unmap-fails", (*THREE, MapOne(0, 3), Fail("unmap"), CloseReservation(0), Reserve(G)), "9",
              "an unmap fails while a reservation is closed, which is closed once more"),
    _scenario("close-address-free-fails", (*THREE, Fail("address_free"), CloseReservation(0), Reserve(12 * G)), "9",
              "the addresses cannot be freed at first"),
    _scenario("free-release-fails", (Allocate(G), Allocate(G), Fail("release"), Free(0), Free(0)), "3",
              "a handle cannot be released at first"),
    _scenario("create-and-reserve-fail",
              (Fail("create"), Allocate(G), Fail("reserve"), ROOM, MapOne(0, 0), Allocate(G), MapOne(0, 1), Check(0)),
              "2 4 16", "memory cannot be had at first, nor addresses"),
)  # fmt: skip


def _map_odd(odd: Odd, exercises: str, note: str) -> Scenario:
    operations = (*THREE, Free(7), MapTo(0, (3, 4, 5), 1, odd=odd, at=1), MapOne(0, 3, odd=odd), Check(0))
    return _scenario(f"map-to-{odd}", operations, exercises, note)


def _remap_odd(odd: Odd, exercises: str, note: str) -> Scenario:
    before = (ROOM, *GRANULES, Allocate(2 * G), MapTo(0, (0, 8, 1)), Free(7))
    wrong = (Remap(0, 0b001, (3,), odd=odd, at=1), Check(0), Remap(0, 0, odd=odd, at=1), Check(0))
    operations = (*before, *wrong, Remap(0, 0b100, (4,)), Check(0))
    return _scenario(f"remap-{odd}", operations, exercises, note)


REQUESTS: Final = (
    _map_odd(Odd.EMPTY, "14", "no slices are mapped"),
    _map_odd(Odd.GAP, "15", "a granule is missing between two slices"),
    _map_odd(Odd.BACK, "15", "a slice begins within the one before it"),
    _map_odd(Odd.FOREIGN, "6", "a slice in the middle names somebody else's object"),
    _map_odd(Odd.GONE, "6", "a slice names an allocation that was released"),
    _map_odd(Odd.UNALIGNED, "12", "a slice has its logical size"),
    _map_odd(Odd.NO_BYTES, "10", "a slice has no bytes"),
    _map_odd(Odd.TOO_LARGE, "10", "a slice is larger than its allocation"),
    _map_odd(Odd.OFFSET, "10", "a slice begins inside its allocation, where the driver maps none so"),
    _map_odd(Odd.OUTSIDE, "10", "the slices leave the reservation"),
    _map_odd(Odd.OCCUPIED, "10", "the slices begin where something is mapped"),
    _scenario("map-to-closed", (*THREE, ROOM, CloseReservation(0), MapTo(0, (3, 4), odd=Odd.CLOSED), MapTo(0, (3, 4))),
              "9 10", "a reservation is used after it was closed, while another may have its addresses"),
    _remap_odd(Odd.EMPTY, "27", "no slices are described"),
    _remap_odd(Odd.GAP, "28", "a granule is missing between two slices"),
    _remap_odd(Odd.BACK, "28", "a slice begins within the one before it"),
    _remap_odd(Odd.SHORT, "28", "the last slice is missing"),
    _remap_odd(Odd.LONG, "28", "there is a slice too many"),
    _remap_odd(Odd.SHIFTED, "28", "all slices lie a granule too far"),
    _remap_odd(Odd.NULL, "29", "a slice that is to stay names no allocation"),
    _remap_odd(Odd.FOREIGN, "6 32", "a required slice names somebody else's object"),
    _remap_odd(Odd.GONE, "6 32", "a required slice names an allocation that was released"),
    _remap_odd(Odd.CUT, "13 32", "half of what one call has mapped is to be remapped"),
    _remap_odd(Odd.UNALIGNED, "12 32", "a border between two slices lies within a granule"),
    _remap_odd(Odd.TOO_LARGE, "32", "a required slice is larger than its allocation"),
    _remap_odd(Odd.OFFSET, "32", "a required slice leaves its allocation"),
    _remap_odd(Odd.NO_BYTES, "32", "the last slice has no bytes"),
    *(_scenario(f"null-{how}", (*THREE, Move(0), TouchNull(how), Drop(0), TouchNull(how)), exercises,
                f"{how} on a mapping that was moved from, and on one that was released")
      for how, exercises in ((Touch.ADDRESS, "22"), (Touch.DROP, "22"), (Touch.MOVE, "22"), (Touch.REMAP, "26"))),
)  # fmt: skip


def _remap_shape(name: str, required: int, exercises: str, note: str) -> tuple[Scenario, ...]:
    operations = (*FIVE, Remap(0, required, (5, 6, 7)), Check(0), Remap(0, required, (0, 1)), Check(0))
    return (
        _scenario(f"remap-{name}", operations, exercises, note),
        _scenario(f"remap-{name}-strict", operations, exercises, f"{note}; the driver takes one at a time", STRICT),
        _scenario(f"remap-{name}-pair", operations, exercises, f"{note}; a peer can reach them", PAIR),
    )


REMAPS: Final = (
    *_remap_shape("first-and-last", 0b10001, "31 32 33 34", "the first and the last of five slices change"),
    *_remap_shape("alternating", 0b10101, "31 32 33 34", "every other slice changes"),
    *_remap_shape("runs-at-edges", 0b11011, "31 32 34 35", "two runs change, one at each edge"),
    *_remap_shape("run-inside", 0b01110, "31 32 34 35", "a run changes that touches no edge"),
    *_remap_shape("all", 0b11111, "32 34 35", "all slices change"),
    _scenario("remap-lies", (*THREE, Remap(0, 2, (5,), lie=True), Check(0), Remap(0, 0, (4,), lie=True), Check(0)),
              "31 32 40", "slices that stay are described with other memory than they show"),
    _scenario("remap-merges",
              (ROOM, *GRANULES, Allocate(2 * G), MapTo(0, (0, 1, 2)), Remap(0, 6, (0,), merge=True), Check(0),
               Remap(0, 2, (0,)), Check(0)), "13 32 33",
              "two slices become one that is twice as large", STRICT),
    _scenario("remap-splits",
              (ROOM, *GRANULES, Allocate(2 * G), MapTo(0, (8, 0)), Remap(0, 1, (0, 3), split=True), Check(0),
               Remap(0, 4, (4,)), Remap(0, 2, (5,)), Check(0)), "13 31 32",
              "a slice becomes two that are half as large", STRICT),
    _scenario("remap-same-memory-twice", (*THREE, Remap(0, 0b101, (5,)), Use(0), Check(0)), "31 32",
              "two slices of one mapping show the same memory"),
    _scenario("remap-of-released-memory", (*THREE, Free(0), Free(0), Check(0), Remap(0, 2, (3,)), Check(0)), "3 31 32",
              "memory is released while it is shown, then leaves its slice"),
    _scenario("remap-in-parts",
              (Reserve(16 * G), Allocate(4 * G), Allocate(2 * G), Allocate(2 * G), MapTo(0, (0, 1), part=True), Use(0),
               Remap(0, 3, (0, 1)), Check(0), MapOne(0, 0, 5, part=True), Check(1)), "11 17 32",
              "slices show halves of allocations, on a driver that maps from within", PARTS),
    _scenario("remap-often", (*THREE, *((Remap(0, 5, (3, 4)), Remap(0, 2, (5,)), Remap(0, 0)) * 15), Check(0)),
              "30 31 32", "the same remaps fifteen times over"),
)  # fmt: skip

LIFETIMES: Final = (
    _scenario("reservations-first", (*THREE, MapOne(0, 3), Move(0)), "3 9 22",
              "a reservation is closed with mappings in it, which are null from then on",
              Configuration(teardown=Teardown.RESERVATIONS)),
    _scenario("memory-first", (*THREE, MapOne(0, 0, 3), Check(0), Check(1)), "3 21",
              "memory is released that two mappings show", Configuration(teardown=Teardown.MEMORY)),
    _scenario("memory-back-and-forth", (*THREE, Free(0), Drop(0), Free(0), Free(0), MapTo(0, (0, 1)), Check(0)), "3 16",
              "memory is released before and after its mapping"),
    _scenario("assigned-around",
              (*THREE, MapOne(0, 3), MapOne(0, 4), Assign(0, 1), Assign(0, 0), Assign(1, 2), Check(0), Check(1)),
              "23", "mappings are assigned to one another, to themselves and from null"),
    _scenario("moved-around", (*THREE, MapOne(0, 3), Move(0), Move(1), Move(0), Drop(1), Check(0)), "21 22 25",
              "mappings are moved and one of them is released"),
    _scenario("filled-from-behind", (ROOM, *GRANULES, MapTo(0, (0, 1), 9), MapOne(0, 2, 3), MapTo(0, (3, 4), 1)),
              "11 16 25", "a reservation is filled from behind"),
    _scenario("apart", (*THREE, Remap(0, 2, (4,)), ROOM, Reserve(4 * G, device=1), Allocate(G, 1), Use(0)), "8",
              "two devices that do not reach each other's memory", APART),
    _scenario("two-devices",
              (*THREE, Allocate(G, 1), Allocate(G, 1), Reserve(4 * G, device=1), MapTo(1, (0, 1)), Use(1, 1), Use(0, 1),
               Remap(1, 1, (1,)), Check(1, 1), Check(0)), "2 7 32", "a layer on each of two devices", PAIR),
    _scenario("spaces", (Allocate(G, space=1), Allocate(G), ROOM, MapTo(0, (0, 1)), Remap(0, 2, (0,)), Check(0)),
              "2 32", "memory of two spaces side by side"),
    _scenario("aligned", (Reserve(G, 1 << 20), Reserve(3 * G, 16 * G), Reserve(G, 256), Allocate(G), MapOne(1, 0)),
              "4 5", "reservations with alignments above and below the granularity"),
    _scenario("coarse",
              (Reserve(9 * G), *(Allocate(n) for n in (1, G, 4 * G - 1, 4 * G + 1)), MapTo(0, (0, 1)), Use(0),
               Remap(0, 2, (3,)), Check(0)), "1 2 4 12 32", "sizes around a recommended granularity of four granules",
              COARSE),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (*UPSTREAM, *FAILURES, *REQUESTS, *REMAPS, *LIFETIMES)
