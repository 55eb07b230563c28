"""Rules on waits, events, streams, threads and close, on histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from by_hand import BASE, CLOSE, FIRST, REMAP, SHADOWS, STEADY, Hand
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.contracts import Range, Use
from vmm_conformance.history.events import FIELDS
from vmm_suites.scenarios.steps import G, ids, plan, reads, shadowed

RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()
FAILED = {"outcome": "raise-after", "status": "raised", "look": False}
UNRECORDED = ("acquire", "create_event", "map", "copy_in", "execute")
SECOND_EVENT, OWN = 950, 5000

# -- right ones


@RIGHT("88 89", plan(G))
def waits_before_it_unmaps(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    h.step(h.buffer(G), phases=REMAP)


@RIGHT("88 89", plan(G))
def synchronises_instead_of_recording(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    sync = lambda: h.subject("stream_synchronize", 1)  # noqa: E731 - a phase
    h.step(h.buffer(G), phases=(sync, *REMAP[1:]))


@RIGHT("88", plan(G))
def asks_until_it_is_over(h: Hand) -> None:
    h.step(h.buffer(G), look=False)

    def query() -> None:
        h.subject("event_query", 900, result=False)
        h.subject("event_query", 900, result=True)

    h.step(h.buffer(G), phases=(query, *REMAP[1:]))


@RIGHT("88 90", plan(G))
def records_though_execution_failed(h: Hand) -> None:
    h.step(h.buffer(G), phases=(*UNRECORDED, "record"), **FAILED)
    h.step(h.buffer(G), phases=REMAP)


def two_streams(h: Hand, *phases: object, look: bool = False) -> None:
    """A step on each of two streams, with an event of its own, then one that remaps."""
    a = h.buffer(G)
    h.step(a, look=look)
    second = lambda: h.subject("event_create", 0, result=SECOND_EVENT)  # noqa: E731 - a phase
    record = lambda: h.subject("event_record", SECOND_EVENT, 2)  # noqa: E731 - a phase
    h.step(a, phases=(second, "execute", record), stream=2, look=look)
    h.step(h.buffer(G), phases=(*phases, "unmap", "map", "execute"), stream=2)  # type: ignore[arg-type] # phases


def wait_for_both(h: Hand) -> None:
    h.subject("event_synchronize", 900)
    h.subject("event_synchronize", SECOND_EVENT)


@RIGHT("88 163", plan(*reads(G)), streams=2)
def waits_for_both_streams(h: Hand) -> None:
    two_streams(h, lambda: wait_for_both(h))


@RIGHT("88 163", plan(*reads(G)), streams=2)
def the_caller_has_waited_for_one(h: Hand) -> None:
    two_streams(h, lambda: h.harness("stream_synchronize", 1), lambda: h.subject("event_synchronize", SECOND_EVENT))


@RIGHT("109 118", shadowed(*reads(64)), streams=2)
def orders_steps_on_one_shadow(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, look=False)
    h.step(a, phases=(lambda: h.subject("stream_wait_event", 2, 900), *STEADY), stream=2, look=False)


@RIGHT("98", plan(G))
def the_second_thread_waits(h: Hand) -> None:
    a = h.buffer(G)
    h.begin(a)
    h.moving = [0]
    h.run(*FIRST[:3])
    h.execute()
    h.note("challenge", **h.where)
    h.thread = 1
    h.note("step", **h.where, buffers=(a,), uses=(Use.READ_WRITE,), outcome="ok")
    h.thread = 0
    h.run("record")
    h.thread = 1
    h.run("execute", "record")
    h.end(look=False)
    h.thread = 0
    h.end(look=False)


@RIGHT("116 164", shadowed(64, G))
def gives_everything_back(h: Hand) -> None:
    h.step(h.buffer(64), h.buffer(G))
    h.close()
    h.drain()


@RIGHT("116 164", shadowed(64, G))
def keeps_what_the_driver_does_not_take(h: Hand) -> None:
    h.step(h.buffer(64), h.buffer(G))
    unmap_fails = lambda: h.fails("unmap", BASE, G)  # noqa: E731 - a phase
    h.close("wait", unmap_fails, "free_shadows", "destroy_event")
    h.drain()


def references(*changes: str) -> Callable[[Hand], None]:
    """What a subject does in a step with the handle of its buffer, or one that it makes itself with `create`."""

    def tell(h: Hand) -> None:
        a = h.buffer(G)
        handle = OWN if "create" in changes else a.handle
        calls = {
            "create": lambda: h.subject("create", G, 0, 0, result=handle),
            "retain": lambda: h.subject("retain", a.address, result=handle),
            "release": lambda: h.subject("release", handle),
        }
        h.step(a, phases=(*FIRST, *(calls[change] for change in changes)))
        h.close()
        h.drain()

    return tell


RIGHT("164", plan(G))(references("retain", "release"))
RIGHT("164", plan(G))(references("create", "retain", "release", "release"))


@RIGHT("164", shadowed(64))
def what_is_refused_outside_of_close_is_not_for_close_to_answer(h: Hand) -> None:
    h.step(h.buffer(64))
    h.close()
    h.subject("free", BASE + SHADOWS, status=1)
    h.drain()


@RIGHT("164", plan(G))
def memory_freed_by_its_owner_lives_on_until_close(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.harness("stream_synchronize", 1)
    h.free(a)
    h.close()
    h.drain()


# -- wrong ones


@WRONG("88", plan(G))
def unmaps_without_waiting(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    h.step(h.buffer(G), phases=REMAP[1:])


@WRONG("88", plan(G))
def asks_and_does_not_listen(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    h.step(h.buffer(G), phases=(lambda: h.subject("event_query", 900, result=False), *REMAP[1:]))


@WRONG("88", plan(G))
def takes_rights_away_without_waiting(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    h.step(h.buffer(G), phases=(lambda: h.subject("set_access", BASE, G, ((0, 0),)), *REMAP))


@WRONG("85 88", plan(G))
def unmaps_what_the_caller_looks_at(h: Hand) -> None:
    """The work is no step's: the caller looks at its buffer."""
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=(lambda: h.subject("unmap", a.address, G), *STEADY), look=False)


@WRONG("88", plan(G))
def records_rightly_and_does_not_wait(h: Hand) -> None:
    """A record before execution takes nothing from the one behind it."""
    h.step(h.buffer(G), phases=(*FIRST[:3], "record", "execute", "record"), look=False)
    h.step(h.buffer(G), phases=REMAP[1:])


def records_elsewhere(stream: int) -> Callable[[Hand], None]:
    """A record before execution on another stream says nothing of what is recorded on this one: nothing is."""

    def tell(h: Hand) -> None:
        elsewhere = lambda: h.subject("event_record", 900, 3 - stream)  # noqa: E731 - a phase
        h.step(h.buffer(G), phases=(*FIRST[:3], elsewhere, "execute"), stream=stream, look=False)
        h.step(h.buffer(G), phases=REMAP, stream=stream)

    return tell


WRONG("88", plan(G), streams=2)(records_elsewhere(1))
WRONG("88", plan(G), streams=2)(records_elsewhere(2))


@WRONG("89", plan(G))
def records_before_execution(h: Hand) -> None:
    h.step(h.buffer(G), phases=("acquire", "create_event", "map", "record", "execute"), look=False)
    h.step(h.buffer(G), phases=REMAP)


@WRONG("90", plan(G))
def forgets_to_record_an_execution_that_failed(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, look=False)
    h.step(a, phases=("execute",), **FAILED)
    h.step(h.buffer(G), phases=REMAP)


@WRONG("90 166", plan(G))
def hides_that_execution_failed_and_does_not_record_it(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, look=False)
    h.step(a, phases=("execute",), outcome="raise-after", look=False)
    h.step(h.buffer(G), phases=REMAP)


@WRONG("88 91", plan(G, skip_remap=False))
def maps_everything_without_waiting(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, look=False)
    h.step(a, phases=REMAP[1:])


@WRONG("163", plan(*reads(G)), streams=2)
def waits_for_the_last_stream_alone(h: Hand) -> None:
    two_streams(h, lambda: h.subject("event_synchronize", SECOND_EVENT))


@WRONG("118", shadowed(*reads(64)), streams=2)
def orders_nothing_between_streams(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, look=False)
    h.step(a, phases=STEADY, stream=2, look=False)


@WRONG("109", shadowed(64))
def copies_in_on_another_stream(h: Hand) -> None:
    a = h.buffer(64)
    h.harness("stream_create", 0, result=7)
    h.step(a, phases=("acquire", "create_event", lambda: h.copy_in(stream=7), *STEADY[1:]), look=False)


@WRONG("109", shadowed(64))
def copies_back_on_the_host(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, phases=(*FIRST[:-2], lambda: h.copy_back(stream=None), "record"), look=False)


@WRONG("109", shadowed(64))
def copies_back_behind_execution_and_not_before_what_comes_then(h: Hand) -> None:
    a = h.buffer(64)
    h.harness("stream_create", 0, result=7)
    wait = lambda: h.subject("stream_wait_event", 7, 900)  # noqa: E731 - a phase
    h.step(a, phases=(*FIRST[:-2], "record", wait, lambda: h.copy_back(stream=7)))


@WRONG("109 117", shadowed(64))
def copies_in_behind_execution(h: Hand) -> None:
    h.step(h.buffer(64), phases=("acquire", "create_event", "execute", "copy_in", "copy_back", "record"))


@WRONG("109 117", shadowed(64))
def copies_back_before_execution(h: Hand) -> None:
    h.step(h.buffer(64), phases=("acquire", "create_event", "copy_in", "copy_back", "execute", "record"))


@WRONG("98", plan(G))
def the_second_thread_gets_in(h: Hand) -> None:
    a = h.buffer(G)
    h.begin(a)
    h.moving = [0]
    h.run(*FIRST[:3])
    h.execute()
    h.note("challenge", **h.where)
    h.thread = 1
    h.note("step", **h.where, buffers=(a,), uses=(Use.READ_WRITE,), outcome="ok")
    h.run("execute", "record")
    h.end(look=False)
    h.thread = 0
    h.run("record")
    h.end(look=False)


@WRONG("116 164", shadowed(64))
def keeps_a_shadow(h: Hand) -> None:
    h.step(h.buffer(64))
    h.close("wait", "destroy_event")
    h.drain()


@WRONG("116", shadowed(64))
def frees_before_it_waits(h: Hand) -> None:
    h.step(h.buffer(64), look=False)
    h.close("free_shadows", "wait", "destroy_event")
    h.drain()


@WRONG("116", shadowed(64))
def frees_twice(h: Hand) -> None:
    h.step(h.buffer(64))
    h.close(*CLOSE, lambda: h.subject("free", BASE + SHADOWS, status=1))
    h.drain()


@WRONG("116", shadowed(*reads(64)), streams=2)
def closes_with_the_last_stream_running(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, look=False)
    h.step(a, phases=(lambda: h.subject("stream_wait_event", 2, 900), *STEADY[:-1]), stream=2, look=False)
    h.close()
    h.drain()


@WRONG("163", plan(*reads(G)), streams=2)
def closes_with_another_stream_running(h: Hand) -> None:
    """One event for both streams: recorded on the second, it forgets the first."""
    a = h.buffer(G)
    h.step(a)
    h.step(a, phases=("execute", "record"), stream=2)
    h.close()
    h.drain()


@WRONG("164", plan(G))
def keeps_the_range(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close("wait", "unmap", "destroy_event")
    h.drain()


@WRONG("164", plan(G))
def keeps_a_stream_with_the_number_of_its_event(h: Hand) -> None:
    h.step(h.buffer(G), phases=(lambda: h.subject("stream_create", 0, result=900), *FIRST))
    h.close()
    h.drain()


@WRONG("164", plan(G))
def keeps_a_mapping_though_only_the_range_could_not_be_given_back(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close("wait", lambda: h.fails("address_free", BASE, G), "destroy_event")
    h.drain()


WRONG("164", plan(G))(references("retain"))
WRONG("164", plan(G))(references("create"))
WRONG("164", plan(G))(references("create", "retain", "release"))
WRONG("164", plan(G))(references("retain", "retain", "release"))


@WRONG("164", plan(G))
def fails_to_close(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close(status="crashed")
    h.drain()


@WRONG("164", plan(G))
def gives_a_range_back_that_is_not_there(h: Hand) -> None:
    h.step(h.buffer(G))
    h.close(*CLOSE, lambda: h.subject("address_free", BASE, G, status=1))
    h.drain()


# -- ones that test nothing


@VACUOUS("88 89 90 98 118 163", shadowed(64, G))
def nothing_is_unmapped(h: Hand) -> None:
    a, b = h.buffer(64), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=STEADY)


@VACUOUS("88 89 163", plan(G), streams=2)
def nothing_was_submitted(h: Hand) -> None:
    before = lambda: h.execute(submits=False)  # noqa: E731 - a phase
    phases = ("acquire", "create_event", "map", before, "record")
    h.step(h.buffer(G), phases=phases, outcome="raise-before", status="raised", look=False)
    h.step(h.buffer(G), phases=REMAP, look=False)


@VACUOUS("89 90", plan(G))
def the_callback_failed_by_the_programs_will_before_it_submitted(h: Hand) -> None:
    h.step(h.buffer(G), phases=(*UNRECORDED, "record"), outcome="raise-before", status="raised", look=False)
    h.step(h.buffer(G), phases=REMAP, look=False)


@VACUOUS("163", plan(G), streams=2)
def one_stream(h: Hand) -> None:
    h.step(h.buffer(G))
    h.step(h.buffer(G), phases=REMAP)


@VACUOUS("109 116 118", plan(*reads(G)), streams=2)
def no_shadow(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a)
    h.harness("stream_synchronize", 1)
    h.step(a, phases=("execute", "record"), stream=2)
    h.close()
    h.drain()


@VACUOUS("116 164", shadowed(64))
def never_closed(h: Hand) -> None:
    h.step(h.buffer(64))


@VACUOUS("109 116 118", shadowed(64))
def closed_unused(h: Hand) -> None:
    h.close("destroy_event")
    h.drain()


@VACUOUS("88 91", plan(G))
def the_caller_unmaps(h: Hand) -> None:
    """What the caller does to its own buffer is no fault of the executor, whoever still uses it."""
    a = h.buffer(G)
    h.harness("launch", 1, (Range(a.address, 8),), (), (), result=h.number())
    h.free(a)


ALL = ("unmap", "free_range", "free_shadows", "destroy_event", "release", "destroy_stream")


@pytest.mark.parametrize(
    ("failing", "kept", "broken"),
    [
        ("event_synchronize", ALL, ()),
        ("event_query", ALL, ()),
        ("stream_query", ALL, ()),
        ("unmap", ("unmap", "free_range", "release"), ()),
        ("unmap", ("free_shadows",), (116, 164)),
        ("unmap", ("destroy_event",), (164,)),
        ("address_free", ("free_range",), ()),
        ("address_free", ("release",), (164,)),
        ("release", ("release",), ()),
        ("release", ("destroy_event",), (164,)),
        ("free", ("free_shadows",), ()),
        ("free", ("free_range",), (164,)),
        ("event_destroy", ("destroy_event",), ()),
        ("event_destroy", ("destroy_stream",), (164,)),
        ("stream_destroy", ("destroy_stream",), ()),
        ("stream_destroy", ("destroy_event",), (164,)),
        ("map", ("destroy_event",), (164,)),
        ("map", (), (164,)),
    ],
)
def test_a_failure_excuses_what_is_kept_for_its_sake_and_that_close_tells_of_it(
    failing: str, kept: tuple[str, ...], broken: tuple[int, ...]
) -> None:
    hand = Hand(shadowed(64, G))
    stream = lambda: hand.subject("stream_create", 0, result=OWN)  # noqa: E731 - a phase
    handle = lambda: hand.subject("create", G, 0, 0, result=OWN)  # noqa: E731 - a phase
    hand.step(hand.buffer(64), hand.buffer(G), phases=(*FIRST, stream, handle))
    hand.harness("device_synchronize", 0)
    giving = {
        **{name: name for name in ALL},
        "release": lambda: hand.subject("release", OWN),
        "destroy_stream": lambda: hand.subject("stream_destroy", OWN),
    }
    fails = lambda: hand.fails(failing, *(0 for _ in FIELDS[failing]))  # noqa: E731 - a phase
    hand.close(fails, *(phase for name, phase in giving.items() if name not in kept), status="refused")
    hand.drain()
    numbers = {finding.invariant for finding in hand.judged().findings}
    assert numbers == set(ids(" ".join(map(str, broken))))


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right_histories_have_witnesses_and_no_finding(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong_histories_break_what_they_should(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_histories_that_test_nothing_have_no_witness(story: Story) -> None:
    check_vacuous(story)


def test_an_unordered_unmap_is_blamed_on_the_call_and_names_the_work() -> None:
    hand = Hand(plan(G))
    unmaps_without_waiting(hand)
    (finding,) = hand.judged().findings
    work = next(event for event in hand.history if event.kind == "launch")
    unmap = next(event for event in hand.history if event.kind == "unmap")
    assert (finding.seq, finding.op, finding.cause) == (unmap.seq, 1, work.seq)
    assert finding.message == "unmap is not ordered after work that uses the memory (operation 0, stream 1)"
    assert finding.expected == "a wait for stream 1 between that work and this call"
    assert finding.range == Range(BASE, G)
