"""Repeated programs: what is held at the end of each repetition must not grow (ALLOCATOR-18)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stories import FIRST, A, G, Story, broken

from vmm_conformance.checkers.series import WARM
from vmm_conformance.contracts import capability
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs import allocator as ops
from vmm_conformance.programs.files import from_data, to_data
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator import run
from vmm_conformance.running.session import Options, bench_for, plan
from vmm_reference.mutants.allocator import MUTANTS
from vmm_reference.subject import reference

FLAT = "ALLOCATOR-18"
Turn = Callable[[Story, int], None]
WHOLE = 8 * G


def told(
    turn: Turn, rounds: int = WARM + 2, *, free: Callable[[int], int] = lambda number: WHOLE, **header: object
) -> Story:
    """A history of ``rounds`` repetitions of ``turn``, which is given the number of each."""
    story = Story(rounds=rounds, **header)
    story.call("open")
    story.gave()
    for number in range(rounds):
        turn(story, number)
        story.op = 1
        story.event("harness", "note", ("round", {"number": number, "free": {0: free(number)}}))
    return story


def block(s: Story, number: int) -> None:
    """A block comes and goes."""
    s.allocate(number, A)
    s.deallocate(number)
    s.unback(A, handle=number)


def event_kept(s: Story, number: int) -> None:
    block(s, number)
    s.subject("event_create", 0, result=100 + number)


def event_kept_at_first(s: Story, number: int) -> None:
    block(s, number)
    if number < WARM:
        s.subject("event_create", 0, result=100 + number)


def event_replaced(s: Story, number: int) -> None:
    event_kept(s, number)
    if number:
        s.subject("event_destroy", 99 + number)


def reference_kept(s: Story, number: int) -> None:
    s.allocate(1, A) if not number else None
    s.subject("retain", A, result=1)


def reference_balanced(s: Story, number: int) -> None:
    reference_kept(s, number)
    s.subject("release", 1)


def addresses_kept(s: Story, number: int) -> None:
    block(s, number)
    s.subject("reserve", G, 0, 0, result=0x900000 + number * G)


def larger_each_time(s: Story, number: int) -> None:
    """One block of memory is kept, and it is a larger one each time."""
    block(s, number)
    s.subject("create", G * (1 + number), 0, 0, result=50 + number)
    if number:
        s.subject("release", 49 + number)


def larger_at_first(s: Story, number: int) -> None:
    """One block of memory is kept, a larger one each time until the subject is warm."""
    if number < WARM:
        larger_each_time(s, number)
    else:
        block(s, number)


def fewer_at_last(s: Story, number: int) -> None:
    """Two events are kept, later one."""
    block(s, number)
    if not number:
        s.subject("event_create", 0, result=100)
        s.subject("event_create", 0, result=101)
    if number == WARM:
        s.subject("event_destroy", 101)


def less_at_last(s: Story, number: int) -> None:
    """A block of memory is kept, later a smaller one."""
    block(s, number)
    if not number:
        s.subject("create", 2 * G, 0, 0, result=50)
    if number == WARM:
        s.subject("release", 50)
        s.subject("create", G, 0, 0, result=51)


def by_turns(s: Story, number: int) -> None:
    """An event is kept after the first time, a stream after the second, and both at last."""
    block(s, number)
    if number in (0, WARM):
        s.subject("event_create", 0, result=100)
    if number == 1:
        s.subject("event_destroy", 100)
        s.subject("stream_create", 0, result=50)


def the_callers_own(s: Story, number: int) -> None:
    """The caller keeps ever more for itself."""
    block(s, number)
    s.harness("event_create", 0, result=100 + number)
    s.harness("alloc", G, 0, 0, result=0x900000 + number * G)


def struck(s: Story, number: int) -> None:
    event_kept(s, number)
    s.subject("event_destroy", 100 + number, status=999, result="injected")


def nothing(s: Story, number: int) -> None:
    s.call("trim")
    s.gave()


def in_vain(s: Story, number: int) -> None:
    s.call("allocate", block=1 + number, size=2 * WHOLE, stream=FIRST, space=0)
    s.refused()


@pytest.mark.parametrize(
    "turn",
    [
        block, event_kept_at_first, event_replaced, reference_balanced, larger_at_first, fewer_at_last, less_at_last,
        by_turns, the_callers_own,
    ],
)  # fmt: skip
def test_what_stays_as_it_is_passes(turn: Turn) -> None:
    story = told(turn)
    assert story.judged().findings == []
    assert story.judged().witnesses[FLAT] == 1


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (event_kept, "5 events where there were 3 (event_create at event 54 in operation 3, event_create"),
        (reference_kept, "5 references where there were 3 (retain at event 16 in operation 1, retain at event 18"),
        (addresses_kept, "5 reservations where there were 3 (reserve at event 54 in operation 3, reserve"),
        (larger_each_time, "20480 bytes of memory where there were 12288"),
    ],
)
def test_what_grows_is_named_with_the_call_that_made_it(turn: Turn, text: str) -> None:
    story = told(turn)
    assert broken(story) == [FLAT]
    (finding,) = story.judged().findings
    assert text in finding.message


@pytest.mark.parametrize(
    ("turn", "rounds"),
    [(block, WARM), (block, WARM - 1), (nothing, WARM + 2), (in_vain, WARM + 2), (struck, WARM + 2)],
    ids=["short", "shorter", "empty", "in vain", "struck"],
)
def test_what_shows_nothing_is_no_witness(turn: Turn, rounds: int) -> None:
    judged = told(turn, rounds).judged()
    assert judged.findings == []
    assert not judged.witnesses[FLAT]


@pytest.mark.parametrize(("tolerance", "found"), [(0, [FLAT]), (G, [FLAT]), (2 * G, []), (3 * G, [])])
def test_free_memory_may_be_off_by_the_tolerance(tolerance: int, found: list[str]) -> None:
    story = told(block, free=lambda number: WHOLE - number * G, tolerance=tolerance)
    assert broken(story) == found


@pytest.mark.parametrize(("at_last", "found"), [(-1, [FLAT]), (0, []), (1, [])])
def test_where_no_tolerance_is_told_not_a_byte_may_be_lost(at_last: int, found: list[str]) -> None:
    assert broken(told(block, free=lambda number: WHOLE // 2 + at_last * (number > WARM))) == found


def test_free_memory_is_all_that_can_be_seen_without_a_trace() -> None:
    def untraced(s: Story, number: int) -> None:
        s.call("allocate", block=number, size=100, stream=FIRST, space=0)
        s.gave_block(number, 100, A, G)
        s.deallocate(number)

    story = told(untraced, free=lambda number: WHOLE - number * G, traced=False)
    (finding,) = [finding for finding in story.judged().findings if finding.invariant == FLAT]
    assert f"{WHOLE - 4 * G} bytes free on device 0 where there were {WHOLE - 2 * G}" in finding.message


# -- the runner


REPEATED = Program(
    "allocator", ops.Configuration(rounds=5), (ops.Allocate(100), ops.Grow(0, 3 * G), ops.Use(0), ops.Allocate(G, 1))
)


def test_a_series_frees_all_between_its_rounds_and_closes_once() -> None:
    history = run(REPEATED, reference, HostDriver)
    notes = [event.args[1].get("name", event.args[0]) for event in history if event.kind == "note"]
    calls = [name for name in notes if name in ("open", "allocate", "deallocate", "round", "close")]
    assert calls == ["open", *["allocate", "allocate", "deallocate", "deallocate", "round"] * 5, "close", "close"]
    assert [event.args[0] for event in history if event.kind == "begin"] == [*REPEATED.operations] * 5
    judged = bench_for("allocator", reference).run(REPEATED).judge
    assert judged.findings == []
    assert judged.witnesses[FLAT] == 1


def test_a_program_of_a_series_counts_as_often_as_it_is_repeated() -> None:
    items = plan({"reference": reference}, Options("ci"))
    planned = {item.id: item.planned for item in items if item.kind == "exploration"}
    assert planned["allocator/explore/series[reference]"] == planned["allocator/explore/short[reference]"] // 5


def test_a_series_is_a_program_like_any_other() -> None:
    assert from_data(to_data(REPEATED)) == REPEATED
    assert to_data(REPEATED)["configuration"] == {"rounds": 5}


def test_no_failures_are_drawn_for_a_series() -> None:
    programs = [ops.decode(bytes([number]) * 400, {"rounds": 5}) for number in range(256)]
    assert not any(isinstance(operation, ops.Fail) for program in programs for operation in program.operations)


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if FLAT in m.breaks], ids=lambda mutant: mutant.id)
def test_close_hides_what_a_series_shows(mutant) -> None:  # type: ignore[no-untyped-def] # a mutant
    assert capability(mutant.subject, "grow") or "segment" in mutant.id
    bench = bench_for("allocator", mutant.subject)
    operations = (*REPEATED.operations, ops.Deallocate(0), ops.Synchronize(), ops.Synchronize(1), ops.Allocate(64))
    once, often = (Program("allocator", ops.Configuration(rounds=rounds), operations) for rounds in (1, 5))
    assert bench.run(once).judge.findings == []
    assert list(bench.run(often).broken()) == [FLAT]
