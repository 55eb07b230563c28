"""Scenarios of the contract ``skip-remap``: what random programs rarely reach, one thing at a time."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Status, UpdateMode
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.skip_remap import (
    Bind,
    Close,
    CommandPlan,
    Configuration,
    Damage,
    Disturb,
    Fail,
    Move,
    Order,
    Progress,
    Recreate,
    Refill,
    Resize,
    SlotPlan,
    Step,
    Swap,
    Synchronize,
)
from vmm_suites.scenarios.skip_remap_shadows import SHADOWS, USES
from vmm_suites.scenarios.steps import AFTER, BEFORE, STEP, G, T, plan, reads, scenario, shadowed

# -- what has moved, and what has not (S14)

IDENTITY: Final = (
    scenario(
        "steady", plan(G, 2 * G), (STEP, STEP, STEP), "81 82 83 84 85 86 91 119 166",
        "three steps with the same buffers: the first maps, the others call nothing",
    ),
    scenario(
        "some-move", plan(G, 2 * G, G), (STEP, Move(1), STEP, Move(0), Move(2), STEP, STEP), "84 85 86 88 89",
        "one slot moves, then the two on its sides, then none",
    ),
    scenario(
        "swapped", plan(G, G, G), (STEP, Swap(0, 2), STEP, Swap(0, 1), STEP, STEP), "84 85 86 88",
        "slots exchange buffers that all are mapped already, at another slot",
    ),
    scenario(
        "new-memory-at-old-address", plan(G, 2 * G), (STEP, Recreate(0), STEP, Refill(1), Recreate(1), STEP),
        "86 87 88",
        "a buffer is freed and its address comes back with other memory behind it",
    ),
    scenario(
        "new-memory-uncaptured", plan(G, G), (STEP, Recreate(0), STEP, Recreate(0), STEP, STEP), "85 86 87",
        "the same twice in a row, with an execution that takes all addresses from the table", capture=False,
    ),
    scenario(
        "source-unmapped", plan(G, G), (STEP, Disturb(0, Damage.UNMAPPED), STEP, STEP), "83 85 86",
        "a buffer's owner unmaps it; the same memory under the same handle is no reason for a call",
    ),
    scenario(
        "source-unmapped-then-new", plan(G, G), (STEP, Disturb(0, Damage.UNMAPPED), Recreate(0), STEP), "86 87 88",
        "a buffer's owner unmaps it and maps other memory at its address: another handle is a remap",
    ),
    scenario(
        "handle-lost", plan(G, G), (STEP, Disturb(1, Damage.NO_HANDLE), STEP, Move(1), STEP), "86 95 97 166",
        "a buffer loses its handle: the step is refused, and the next one, with a new buffer, is not",
    ),
    scenario(
        "null", plan(G, G), (Disturb(1, Damage.NULL), STEP, Move(1), STEP, Disturb(0, Damage.NULL), STEP), "95 166",
        "a buffer has no address, at the very first step and at a later one",
    ),
    scenario(
        "null-and-small", shadowed(64, G), (STEP, Disturb(0, Damage.NULL), STEP, Move(0), STEP), "95 106 110",
        "the buffer of a small slot has no address",
    ),
    scenario(
        "slot-drops-out", plan(G, G, G, G),
        (STEP, Resize(1, 0), Bind(2, 3), STEP, Resize(1, G), Move(2), STEP, Resize(0, 0), Swap(1, 3), STEP),
        "86 94 101",
        "a slot falls out of use, so that those behind it shift, while two others share one buffer, or exchange theirs",
    ),
    scenario(
        "one-buffer-in-two-slots", plan(G, G, G), (STEP, Bind(0, 2), STEP, Move(2), STEP, STEP), "84 85 86 88",
        "two mapped slots show one memory for a step, then part again",
    ),
)  # fmt: skip

# -- sizes and classes are settled once (S16)

SIZES: Final = (
    scenario(
        "boundary-sizes", plan(1, G - 1, G, G + 1, 0, 2 * G), (STEP, Move(5), STEP), "82 83 84 86 101 159",
        "sizes around a granule, and none at all, lie one behind the other",
    ),
    scenario(
        "coarse-granularity", plan(1, 2 * G, 2 * G + 1), (STEP, Move(1), STEP, STEP), "82 84 85 86",
        "the recommended granularity is twice the smallest one", recommended=2 * G,
    ),
    scenario(
        "grown-too-far", plan(G, G), (STEP, Resize(0, G + 1), STEP, Resize(0, G), STEP, Resize(1, 5 * G), STEP),
        "84 97 166",
        "a buffer outgrows its slot, goes back to its size, and the last slot outgrows the range",
    ),
    scenario(
        "grown-within", plan(1, G), (STEP, Resize(0, G), STEP, Resize(0, G - 1), STEP), "84 86 97 166",
        "a buffer grows to the end of its granule, which its slot has anyway",
    ),
    scenario(
        "grown-from-nothing", plan(0, G), (STEP, Resize(0, 1), STEP, Resize(0, 0), STEP), "97 101 166",
        "a slot that was empty at the first execution has no place, and cannot get one",
    ),
    scenario(
        "shrunk", plan(3 * G, G), (STEP, Resize(0, G + 1), STEP, Resize(0, 0), STEP, Resize(0, 3 * G), STEP),
        "84 86 94 101",
        "a buffer shrinks, goes, and comes back at its old size and place",
    ),
    scenario(
        "shrunk-across-threshold", shadowed(G, 2 * G), (STEP, Resize(0, T), STEP, Resize(0, 1), STEP), "84 86 103",
        "a mapped slot shrinks to what would be small: it stays mapped where it is",
    ),
    scenario(
        "grown-across-threshold", shadowed(T, G), (STEP, Resize(0, T + 1), STEP, Resize(0, T), STEP), "84 103 106 113",
        "a small slot grows to what would be mapped: it is refused like any other growth",
    ),
    scenario(
        "settled-by-failed-execution", plan(1, G), (BEFORE, Resize(0, 2 * G), STEP, Resize(0, 1), STEP), "84 97 166",
        "the first execution fails, but it has seen the addresses: sizes are settled all the same",
    ),
    scenario(
        "not-settled-by-failed-map", plan(G, G), (Fail("map", 2), STEP, Resize(0, 3 * G), STEP, Move(0), STEP),
        "92 96 166",
        "the first step fails before execution: the next one may bring any sizes",
    ),
    scenario(
        "undo-fails-too", plan(G, 2 * G),
        (Fail("set_access"), Fail("unmap", status=Status.UNKNOWN), STEP, STEP, STEP, STEP, Close()), "92",
        "what could not be unmapped after a failure is unmapped before its place is used again",
    ),
    scenario(
        "wider-than-its-slot", plan(SlotPlan(G, extra=1), G), (STEP, Move(0), STEP), "86 97 159 166",
        "more memory stands behind a buffer than its slot holds: what fits is mapped",
    ),
    scenario(
        "wider-than-can-be-mapped", plan(G, SlotPlan(G, extra=2)), (STEP, Resize(1, 3 * G), STEP), "159",
        "the same on a driver that maps whole handles only: refused, with both sizes", partial_map=False,
    ),
)  # fmt: skip

# -- calls that fail, executions that fail


def _first_fails(kind: str, k: int, exercises: str) -> Scenario:
    note = f"call {k} of {kind} fails in the first step; nothing stays behind, and the second step has all it needs"
    name = f"first-{kind.replace('_', '-')}-{k}-fails"
    return scenario(name, shadowed(64, G, 2 * G), (Fail(kind, k), STEP, STEP, STEP), exercises, note)


def _remap_fails(kind: str, k: int) -> Scenario:
    """a failed remap in one step; the next does not trust what is remembered of it."""
    moves = (Move(0), Move(2))
    note = f"call {k} of {kind} fails while two of three slots are remapped; the next step maps what it cannot rely on"
    operations = (STEP, *moves, Fail(kind, k), STEP, STEP, *moves, STEP, STEP)
    name = f"remap-{kind.replace('_', '-')}-{k}-fails"
    return scenario(
        name, plan(G, G, G), operations, "86 92 93 166", note, unmap_spans=False, access_spans=False
    )


FAILURES: Final = (
    _first_fails("reserve", 1, "96 164 166"),
    *(_first_fails(kind, k, "92 96 164 166") for kind, k in (("map", 1), ("map", 2), ("set_access", 1))),
    _first_fails("event_create", 1, "96 164 166"),
    *(_remap_fails(kind, k) for kind, k in (("map", 1), ("map", 2), ("set_access", 1), ("set_access", 2))),
    *(_remap_fails("unmap", k) for k in (1, 2)),
    scenario(
        "execution-fails", plan(G, G), (STEP, AFTER, Move(0), STEP, AFTER, Recreate(1), STEP), "86 88 90 166",
        "execution fails when its work has been submitted; what it uses is unmapped in the next step",
    ),
    scenario(
        "execution-fails-with-shadows", shadowed(64, G), (AFTER, STEP, AFTER, Move(1), STEP, BEFORE, STEP),
        "90 106 110 116 166",
        "the same with a small slot, at the first step too, then before anything is submitted",
    ),
    scenario(
        "event-not-recorded", plan(G, G), (STEP, Fail("event_record"), STEP, Move(0), STEP, STEP), "86 88 166",
        "the step's end cannot be recorded; the next step unmaps what it has used",
    ),
    scenario(
        "wait-fails", plan(G, G), (STEP, Move(0), Fail("event_synchronize"), STEP, STEP), "86 88 166",
        "the wait before an unmap fails: nothing is unmapped until one succeeds",
    ),
    scenario(
        "no-wait-at-close", plan(G, 2 * G),
        (STEP, STEP, Fail("event_synchronize"), Fail("device_synchronize"), Close(), Close()), "83 86 88",
        "the executor closes with a step in flight, and can wait for neither that nor the device: nothing is unmapped",
    ),
    scenario(
        "compared-with-failure", shadowed(64, G), (STEP, Fail("copy"), STEP, Move(1), STEP), "158",
        "a copy is refused in the second step; a setting without shadows copies nothing", compare=True,
    ),
)  # fmt: skip

# -- streams, threads, places

FIRST, SECOND, THIRD = (Step(stream=stream) for stream in range(3))
ELSEWHERE: Final = Step(device=1)
OTHER: Final = Step(executable=1)
PAIR: Final = Configuration((plan(G, 2 * G), shadowed(64, G)), devices=2)

PLACES: Final = (
    scenario(
        "two-streams", plan(*reads(G, G)), (FIRST, SECOND, Move(0), SECOND, Move(1), FIRST), "86 88 163",
        "steps on two streams, then one that unmaps what both have used", streams=2,
    ),
    scenario(
        "two-streams-one-over", plan(*reads(G, G)), (FIRST, SECOND, THIRD, Synchronize(1), Move(1), FIRST), "86 88 163",
        "the same on three streams, of which the caller has waited for the one in the middle", streams=3, capture=False,
    ),
    scenario(
        "one-shadow-on-two-streams", shadowed(*reads(64, 64, G)), (FIRST, SECOND, FIRST, Progress(1, 3), SECOND),
        "109 110 118",
        "steps on two streams use one shadow; nobody but the executor can order them", streams=2,
    ),
    scenario(
        "ordered-streams", shadowed(64, G), (FIRST, Order(0, 1), SECOND, Order(1, 0), Refill(0), FIRST), "110 111 118",
        "the same with slots that are written, on streams that the caller orders", streams=2,
    ),
    scenario(
        "closed-in-flight", shadowed(*reads(64, G)), (FIRST, SECOND, THIRD, Close()), "116 118 164",
        "close meets queued steps on three streams", streams=3,
    ),
    scenario(
        "steps-that-ran-at-once", shadowed(64, G), (FIRST, Move(1), FIRST, Order(0, 1), SECOND, Close()),
        "88 89 116 118",
        "queued work runs at once, yet the executor cannot know that it has", streams=2, eager=True,
    ),
    scenario(
        "two-threads", shadowed(64, G), (Step(probe=True), STEP, Move(1), Step(probe=True), STEP), "98 106 164",
        "a second thread starts a step from inside execution, at the first step and at a later one",
    ),
    scenario(
        "two-executables", PAIR, (STEP, OTHER, STEP, Move(0), STEP, OTHER, Move(1, 1), OTHER, Close(), OTHER),
        "84 85 86 99 106",
        "two executables take turns on one device; one is closed while the other goes on",
    ),
    scenario(
        "two-devices", PAIR, (STEP, ELSEWHERE, Move(0), STEP, ELSEWHERE, Move(0, 0, 1), ELSEWHERE, Step(1, 1)),
        "81 84 85 86 99",
        "one executable takes turns on two devices, the other joins it on the second",
    ),
)  # fmt: skip

# -- gates, and the settings compared

BOTH: Final = (CommandPlan((0,), traced=False), CommandPlan((1, 2)))
GATES: Final = (
    *(
        scenario(
            name, shadowed(64, G, 2 * G, **settings),
            (STEP, Move(1), STEP, STEP), exercises, note,
        )
        for name, settings, exercises, note in (
            ("always-update", {"mode": UpdateMode.ALWAYS_UPDATE}, "83 100 166", "the mode selects no slot"),
            ("nothing-selected", {"named": (CommandPlan(()),)}, "83 100 166", "no command names a slot"),
            ("no-vmm-allocator", {"vmm": False}, "83 100 162 166", "the caller's buffers have no handles"),
            ("other-platform", {"platform": "CUDA"}, "86 91 119 162 166", "another platform maps all anew every step"),
            ("platform-in-lower-case", {"platform": "rocm"}, "86 91 119 162", "the platform's name is told exactly"),
            ("skip-off", {"skip_remap": False}, "86 91 106 111", "skip-remap is off, and shadows are on"),
            ("capture-mode", {"mode": UpdateMode.CAPTURE_CMD_NEVER_UPDATE, "named": BOTH}, "83 84 102",
             "slots that untraced commands alone name are left alone"),
            ("never-mode", {"named": BOTH}, "84 102 106", "every command's slots are selected, traced or not"),
        )
    ),
    scenario(
        "unselected-slot-moves", plan(G, G, named=(CommandPlan((0,)),)), (STEP, Move(1), STEP, Move(1), Move(0), STEP),
        "83 84 86",
        "a slot that no command names moves: its address is the caller's, and nobody has promised it",
    ),
    scenario(
        "constants", shadowed(SlotPlan(G, constant=True), SlotPlan(64, constant=True), 64, G),
        (STEP, Move(3), STEP, STEP),
        "83 84 86 101 104",
        "constants are persistent at the caller's addresses, whatever their size",
    ),
    scenario(
        "compared", plan(64, G, 2 * G),
        (STEP, Resize(2, 1), STEP, Recreate(1), STEP, Resize(2, 2 * G), Bind(0, 1), STEP), "158",
        "shrinking, new memory at an old address and a shared buffer show the same under every setting", compare=True,
    ),
    scenario(
        "compared-with-shadows", shadowed(*USES),
        (STEP, Refill(0), Resize(2, 8), STEP, Swap(1, 2), STEP, Resize(3, 0), STEP), "158",
        "the same for small slots", compare=True, capture=False,
    ),
)  # fmt: skip

SERIES: Final = (
    scenario(
        "repeated", shadowed(64, 8, G, 2 * G), (STEP, STEP, Move(2), STEP, Recreate(3), Refill(0), STEP), "86 164 186",
        "the same eight times over with fresh buffers: what is held does not grow", rounds=8,
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (*IDENTITY, *SIZES, *SHADOWS, *FAILURES, *PLACES, *GATES, *SERIES)
