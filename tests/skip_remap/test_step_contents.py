"""Rules on bytes, faults and comparison, on histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from by_hand import FIRST, REMAP, STEADY, Hand, watched
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.contracts import Buffer, Copy, Range, UpdateMode, Use, Write
from vmm_conformance.history.observe import Observation, observations
from vmm_conformance.programs.skip_remap import SlotPlan
from vmm_suites.scenarios.steps import G, plan, reads, shadowed

RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()
OTHER = b"OTHEROTH"
READ, WRITE, ALWAYS = Use.READ, Use.WRITE, UpdateMode.ALWAYS_UPDATE

# -- right ones


@RIGHT("86 110 111 112 117", shadowed(64, G))
def bytes_are_as_they_should(h: Hand) -> None:
    a, b = h.buffer(64), h.buffer(G)
    h.step(a, b)
    h.step(a, b, phases=STEADY)
    h.complete()


@RIGHT("110 160", shadowed(SlotPlan(64, use=READ)))
def an_input_keeps_its_bytes(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a)
    h.contents(a)
    h.step(a, phases=STEADY)
    h.complete()


@RIGHT("160", shadowed(SlotPlan(64, use=READ)))
def copying_an_input_back_is_allowed(h: Hand) -> None:
    h.step(h.buffer(64), phases=(*FIRST[:-1], lambda: h.copy_back(0), "record"))
    h.complete()


@RIGHT("110 111 117", shadowed(64))
def one_launch_for_all_copies(h: Hand) -> None:
    a = h.buffer(64)

    def copies(*pairs: tuple[int, int]) -> None:
        moved = tuple(Copy(target, source, 64) for target, source in pairs)
        h.subject("launch", 1, (), moved, (), result=h.number())

    copy_in = lambda: copies((h.shadows[0], a.address))  # noqa: E731 - a phase
    copy_back = lambda: copies((a.address, h.shadows[0]))  # noqa: E731 - a phase
    h.step(a, phases=("acquire", "create_event", copy_in, "execute", copy_back, "record"))
    h.complete()


@RIGHT("110 111 112 117", shadowed(64))
def copies_by_halves(h: Hand) -> None:
    a = h.buffer(64)

    def copy_in() -> None:
        for at in (0, 32):
            h.copy(h.shadows[0] + at, a.address + at, 32)

    def copy_back() -> None:
        for at in (0, 32):
            h.copy(a.address + at, h.shadows[0] + at, 32)

    h.step(a, phases=("acquire", "create_event", copy_in, "execute", copy_back, "record"))
    h.complete()


@RIGHT("110 161", shadowed(64, SlotPlan(64, use=READ)))
def two_small_slots_on_one_buffer(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, a)
    h.complete()


def compared(
    h: Hand, change: Callable[[list[Observation]], object] = lambda seen: None, committed: int = G, **how: str
) -> None:
    """Two steps, and what another setting has shown of them."""
    a = h.buffer(64, committed=committed)
    h.step(a)
    h.step(a, phases=STEADY, **how)
    h.complete()
    compare(h, change)


def compare(h: Hand, change: Callable[[list[Observation]], object]) -> None:
    seen = [{**step, "bytes": dict(step["bytes"])} for step in observations(h.history)]
    change(seen)
    h.note("variant", name="skip off", seen=seen)


RIGHT("158", shadowed(64), compare=True)(compared)
RIGHT("158", shadowed(64), compare=True, partial_map=False)(compared)

# -- wrong ones


@WRONG("110", shadowed(64))
def a_stale_shadow_is_read(h: Hand) -> None:
    h.step(h.buffer(64), phases=(*FIRST[:-3], lambda: h.execute(sees={0: OTHER}), "copy_back", "record"))
    h.complete()


@WRONG("86", plan(G))
def a_stale_mapping_is_read(h: Hand) -> None:
    h.step(h.buffer(G), phases=(*FIRST[:-3], lambda: h.execute(sees={0: OTHER}), "record"))
    h.complete()


@WRONG("86", plan(G))
def a_write_is_lost(h: Hand) -> None:
    h.step(h.buffer(G), at0_0=OTHER)
    h.complete()


@WRONG("111", shadowed(64))
def a_copy_back_is_lost(h: Hand) -> None:
    h.step(h.buffer(64), at0_56=OTHER)
    h.complete()


@WRONG("112", shadowed(64))
def bytes_behind_are_overwritten(h: Hand) -> None:
    h.step(h.buffer(64), at0_64=OTHER)
    h.complete()


@WRONG("112", shadowed(64))
def a_copy_is_padded(h: Hand) -> None:
    h.step(h.buffer(64), phases=(*FIRST[:-2], lambda: h.copy_back(extra=8), "record"))


@WRONG("109", shadowed(64))
def the_second_half_is_copied_in_too_late(h: Hand) -> None:
    a = h.buffer(64)
    first, second = (lambda at=at: h.copy(h.shadows[0] + at, a.address + at, 32) for at in (0, 32))
    h.step(a, phases=("acquire", "create_event", first, "execute", second, "copy_back", "record"))


@WRONG("117", shadowed(64))
def nothing_is_copied_in(h: Hand) -> None:
    h.step(h.buffer(64), phases=("acquire", "create_event", "execute", "copy_back", "record"))


@WRONG("117", plan(G, G, copy_threshold=G))
def a_copy_to_the_slot_behind_is_none_to_this_one(h: Hand) -> None:
    a, b = h.buffer(G), h.buffer(G)

    def copy_in() -> None:
        h.copy(h.shadows[1], b.address, G)

    h.step(a, b, phases=("acquire", "create_event", copy_in, "execute", "copy_back", "record"))


@WRONG("117", shadowed(64))
def nothing_is_copied_back_when_nothing_moved(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a)
    h.step(a, phases=("copy_in", "execute", "record"))


@WRONG("160", shadowed(SlotPlan(64, use=READ)))
def an_input_changes(h: Hand) -> None:
    h.step(h.buffer(64), at0_0=OTHER)
    h.complete()


@WRONG("160", shadowed(SlotPlan(64, use=READ, read_only=True)))
def a_read_only_input_is_written(h: Hand) -> None:
    h.step(h.buffer(64), phases=(*FIRST[:-1], lambda: h.copy_back(0), "record"))
    h.faults(h.last("copy"), "read only")


@WRONG("112", shadowed(64))
def a_copy_runs_off_the_buffer(h: Hand) -> None:
    h.step(h.buffer(64))
    h.faults(h.last("copy"), "unmapped")


@WRONG("161", shadowed(64, SlotPlan(64, use=READ)))
def a_readers_copy_back_undoes_a_write(h: Hand) -> None:
    a = h.buffer(64)
    h.step(a, a, at0_0=OTHER)
    h.complete()


@WRONG("83", plan(G))
def execution_faults(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    h.faults(h.last("launch"), "unmapped")


@WRONG("83", plan(G))
def execution_faults_behind_a_fault_of_the_callers_own(h: Hand) -> None:
    a = h.buffer(G)
    h.launch(reads=[Range(a.address, 8)])
    own = h.last("launch")
    h.step(a, look=False)
    work = h.last("launch")
    h.faults(own, "remapped", cause=h.last("map"))
    h.faults(work, "unmapped")


@WRONG("83", plan(G))
def execution_faults_whatever_else_has_its_number(h: Hand) -> None:
    """Works, events and streams are numbered each for themselves."""
    h.step(h.buffer(G), look=False)
    work = h.last("launch")
    h.harness("stream_create", 0, result=work.result)
    h.faults(work, "unmapped")


@WRONG("88", plan(G))
def execution_meets_a_remapped_slot(h: Hand) -> None:
    h.step(h.buffer(G), look=False)
    work = h.last("launch")
    h.step(h.buffer(G), phases=REMAP)
    h.faults(work, "remapped", cause=h.last("unmap"))


def other_bytes(seen: list[Observation], data: bytes = OTHER) -> None:
    key = next(iter(seen[1]["bytes"]))
    seen[1]["bytes"][key] = data


def no_bytes(seen: list[Observation]) -> None:
    other_bytes(seen, bytes(8))


def it_went_well(seen: list[Observation]) -> None:
    seen[1].update(status="ok")


def other_status(seen: list[Observation]) -> None:
    seen[1].update(status="refused", bytes={})


WRONG("158", shadowed(64), compare=True)(lambda h: compared(h, other_bytes))
WRONG("158", shadowed(64), compare=True)(lambda h: compared(h, no_bytes))
WRONG("158", shadowed(64), compare=True)(lambda h: compared(h, other_status))
WRONG("158", shadowed(64), compare=True)(
    lambda h: compared(h, it_went_well, outcome="raise-after", status="raised")
)
WRONG("158", plan(64), compare=True)(lambda h: compared(h, other_bytes, committed=3 * G))


@WRONG("158", plan(2 * G), compare=True, partial_map=False)
def a_smaller_buffer_fits_under_every_setting(h: Hand) -> None:
    h.step(h.buffer(2 * G))
    h.step(h.buffer(G), phases=REMAP)
    h.complete()
    compare(h, other_bytes)


@pytest.mark.parametrize("beyond", [None, 0, 1])
def test_a_cause_that_is_not_there_excuses_nobody(beyond: int | None) -> None:
    hand = Hand(plan(G))
    hand.step(hand.buffer(G), look=False)
    hand.faults(hand.last("launch"), "unmapped")
    hand.last("ran").result = -1 if beyond is None else len(hand.history) + beyond
    assert [finding.invariant for finding in hand.judged().findings] == ["STEP-83"]


@pytest.mark.parametrize(("stream", "traced"), [(1, True), (1, False), (2, True), (2, False)])
def test_bytes_of_steps_on_several_streams_are_judged_where_calls_are_seen(stream: int, traced: bool) -> None:
    hand = Hand(plan(*reads(G)), streams=2)
    hand.history.header["traced"] = traced
    buffer = hand.buffer(G)
    hand.step(buffer, at0_0=OTHER)
    hand.step(buffer, phases=STEADY, stream=stream)
    hand.complete()
    broken = {finding.invariant for finding in hand.judged().findings}
    assert ("STEP-86" in broken) is (traced or stream == 1)


def test_without_a_trace_a_slot_is_taken_for_what_it_should_be() -> None:
    hand = Hand(shadowed(*reads(64, G)))
    hand.history.header["traced"] = False
    hand.step(hand.buffer(64), hand.buffer(G), phases=("lay_out", lambda: hand.execute(sees={0: OTHER})))
    hand.complete()
    broken = {finding.invariant for finding in hand.judged().findings}
    assert "SHADOW-110" in broken
    assert not broken & {"STEP-83", "SHADOW-103"}


def test_what_differs_between_settings_is_told_once() -> None:
    def all_different(seen: list[Observation]) -> None:
        for step in seen:
            step["bytes"] = dict.fromkeys(step["bytes"], OTHER)

    hand = Hand(shadowed(64), compare=True)
    compared(hand, all_different)
    assert [finding.invariant for finding in hand.judged().findings] == ["STEP-158"]


@WRONG("166", shadowed(64, G))
def executes_again_behind_the_copy_back(h: Hand) -> None:
    """Copies are for the first execution; what is wrong is that there is another."""
    h.step(h.buffer(64), h.buffer(G), phases=(*FIRST[:-1], "execute", "record"))


# -- ones that test nothing


@VACUOUS("86 110 111 112 160 161", shadowed(64))
def nothing_has_run(h: Hand) -> None:
    """What queued work would read is no matter until it runs; copies alone are looked at."""
    h.step(h.buffer(64), phases=(*FIRST[:3], "execute", "record"), uses=(None,))


@VACUOUS("110 111", shadowed(SlotPlan(64, use=WRITE)))
def nobody_knows_after_a_failed_execution(h: Hand) -> None:
    failed = {"outcome": "raise-after", "status": "raised"}
    h.step(h.buffer(64), phases=(*FIRST[:-2], "record"), at0_0=OTHER, at0_56=OTHER, **failed)
    h.complete()


@VACUOUS("110 160", shadowed(*reads(64)), streams=2)
def streams_that_nobody_ordered(h: Hand) -> None:
    """The caller writes on one stream what the step copies in on another: either may come first."""
    a = h.buffer(64)
    written_elsewhere(h, a)
    h.step(a)
    find_other_bytes(h)


@VACUOUS("86", plan(*reads(64), vmm=False), streams=2)
def streams_that_nobody_ordered_on_memory_without_a_handle(h: Hand) -> None:
    """The same of a buffer that is known by its address alone."""
    a = h.buffer(64, handle=False)
    written_elsewhere(h, a)
    h.step(a, phases=("execute",))
    find_other_bytes(h)


@VACUOUS("110 160", shadowed(*reads(64)), streams=2)
def two_unordered_writers_before_the_first_step(h: Hand) -> None:
    """Whose tokens are there is no better known where the buffer has met no step yet."""
    a = h.buffer(64)
    written_elsewhere(h, a)
    written_elsewhere(h, a, stream=1)
    h.harness("device_synchronize", 0)
    h.step(a)
    find_other_bytes(h)


@VACUOUS("110 160", shadowed(*reads(64)), streams=2)
def two_unordered_writers(h: Hand) -> None:
    """Behind one of the writers nobody knows whether the other has been, or is still to come."""
    a = h.buffer(64)
    h.step(a, look=False)
    h.queue.clear()
    written_elsewhere(h, a)
    wait = lambda: h.subject("stream_wait_event", 2, 900)  # noqa: E731 - a phase
    h.step(a, phases=(wait, *STEADY), stream=2)
    find_other_bytes(h)


def written_elsewhere(h: Hand, buffer: Buffer, stream: int = 2) -> None:
    h.op += 1
    writes = [Write(buffer.address + offset, h.token()[:length]) for offset, length in watched(buffer)]
    work = h.launch(stream, writes=writes)
    h.contents(buffer, work=work)


def find_other_bytes(h: Hand) -> None:
    h.queue = [(work, (OTHER,) * len(data)) for work, data in h.queue]
    h.complete()


@VACUOUS("83 88", plan(G, named=()), streams=1)
def the_callers_own_fault(h: Hand) -> None:
    a = h.buffer(G)
    h.harness("launch", 1, (Range(a.address, 8),), (), (), result=h.number())
    work = h.last("launch")
    h.free(a)
    h.faults(work, "remapped", cause=h.last("unmap"))


@VACUOUS("88", plan(*reads(G), mode=ALWAYS))
def the_caller_takes_memory_away_that_execution_uses(h: Hand) -> None:
    a = h.buffer(G)
    h.step(a, phases=(lambda: h.execute(persistent=None),), look=False)
    work = h.last("launch")
    h.free(a)
    h.faults(work, "remapped", cause=h.last("unmap"))


@VACUOUS("111", shadowed(64))
def nobody_knows_what_a_failed_step_left_before_it_has_returned(h: Hand) -> None:
    """Another thread is let in, and finds what was there before: execution failed, and nothing was copied back."""
    a = h.buffer(64)
    h.begin(a, outcome="raise-after")
    h.run(*FIRST[:-2], "record")
    h.thread = 1
    h.begin(a)
    h.run("copy_in", lambda: h.execute(sees={0: OTHER}), "copy_back", "record")
    h.end(look=False)
    h.thread = 0
    h.end("raised", look=False)
    h.complete()


@VACUOUS("158", shadowed(64))
def compared_with_nothing(h: Hand) -> None:
    compared(h, list.clear)


@VACUOUS("158", plan(G), compare=True)
def a_step_that_may_be_refused(h: Hand) -> None:
    h.refused(h.buffer(G, handle=False), message="slot 0 has no handle")
    h.note("variant", name="skip off", seen=[{"op": 0, "status": "ok", "bytes": {}}])


@VACUOUS("158", plan(64), compare=True, partial_map=False)
def a_step_that_may_be_refused_where_handles_are_mapped_whole(h: Hand) -> None:
    """What has a shadow needs no mapping: with shadows the step succeeds, and rightly so."""
    message = f"slot 0: {2 * G} bytes do not fit into {G}"
    h.refused(h.buffer(64, committed=2 * G), code="FAILED_PRECONDITION", message=message)
    h.note("variant", name="shadows", seen=[{"op": 0, "status": "ok", "bytes": {}}])


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right_histories_have_witnesses_and_no_finding(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong_histories_break_what_they_should(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_histories_that_test_nothing_have_no_witness(story: Story) -> None:
    check_vacuous(story)
