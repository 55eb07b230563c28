"""Who comes before whom: waits, events, graphs, and what is taken away or touched in no order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from event_line import A, B, G, Line

from vmm_conformance.contracts import Copy, Range, Write
from vmm_conformance.history.events import Event
from vmm_conformance.history.ordering import accesses

ONE, TWO, FAR = 1, 2, 3
"""Two streams of device 0, and one of device 1."""
E1, E2 = 11, 12


@pytest.fixture
def line() -> Line:
    line = Line()
    line.reserve()
    for stream, device in ((ONE, 0), (TWO, 0), (FAR, 1)):
        line("stream_create", device, result=stream)
    line.back(A, 1)
    return line


def unmapped(line: Line) -> list[tuple[int, int]]:
    """The hazards of unmapping everything at A."""
    line("unmap", A, G)
    return line.hazards()


# -- what the host has waited for is over


def test_an_unmap_that_nothing_orders_behind_work_is_a_hazard(line: Line) -> None:
    work = line.work(ONE, reads=A)
    assert unmapped(line) == [(work.seq, line.count - 1)]


WAITS: dict[str, Callable[[Line], object]] = {
    "stream": lambda line: line("stream_synchronize", ONE),
    "device": lambda line: line("device_synchronize", 0),
    "query": lambda line: line("stream_query", ONE, result=True),
    "event": lambda line: (line("event_record", E1, ONE), line("event_synchronize", E1)),
    "event query": lambda line: (line("event_record", E1, ONE), line("event_query", E1, result=True)),
    "event behind a wait": lambda line: (
        line("event_record", E1, ONE), line("stream_wait_event", TWO, E1), line("stream_synchronize", TWO)
    ),
    "event of an event": lambda line: (
        line("event_record", E1, ONE), line("stream_wait_event", TWO, E1), line("event_record", E2, TWO),
        line("event_synchronize", E2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_waiting_orders_the_unmap(line: Line, wait: Callable[[Line], object]) -> None:
    line.work(ONE, writes=A)
    mapping = line.state.mapping_at(A)
    assert mapping is not None
    assert line.order.pending(mapping)
    wait(line)
    assert not line.order.pending(mapping)
    assert unmapped(line) == []


NO_WAITS: dict[str, Callable[[Line], object]] = {
    "another stream": lambda line: line("stream_synchronize", TWO),
    "another device": lambda line: line("device_synchronize", 1),
    "not ready": lambda line: line("stream_query", ONE, result=False),
    "event not ready": lambda line: (line("event_record", E1, ONE), line("event_query", E1, result=False)),
    "refused": lambda line: (line("event_record", E1, ONE), line("event_synchronize", E1, status=1)),
    "never recorded": lambda line: line("event_synchronize", E1),
    "recorded elsewhere": lambda line: (line("event_record", E1, TWO), line("event_synchronize", E1)),
    "recording refused": lambda line: (line("event_record", E1, ONE, status=1), line("event_synchronize", E1)),
    "another event with its number": lambda line: (
        line("event_record", E1, ONE), line("event_destroy", E1), line("event_create", 0, result=E1),
        line("event_synchronize", E1),
    ),
    "wait on the device alone": lambda line: (line("event_record", E1, ONE), line("stream_wait_event", TWO, E1)),
}


@pytest.mark.parametrize("wait", NO_WAITS.values(), ids=NO_WAITS)
def test_these_waits_order_nothing(line: Line, wait: Callable[[Line], object]) -> None:
    work = line.work(ONE, writes=A)
    wait(line)
    assert unmapped(line) == [(work.seq, line.count - 1)]


def test_an_event_covers_what_was_submitted_before_it_was_recorded(line: Line) -> None:
    line("event_record", E1, ONE)
    work = line.work(ONE, reads=A)
    line("event_synchronize", E1)
    assert unmapped(line) == [(work.seq, line.count - 1)]


def test_an_event_recorded_again_stands_for_its_last_record(line: Line) -> None:
    line.work(ONE, reads=A)
    line("event_record", E1, ONE)
    second = line.work(TWO, reads=A)
    line("event_record", E1, TWO)
    line("event_synchronize", E1)
    first_left = unmapped(line)
    assert len(first_left) == 1
    assert first_left[0][0] != second.seq


def test_a_wait_means_the_record_that_was_current_then(line: Line) -> None:
    line.work(ONE, reads=A)
    line("event_record", E1, ONE)
    line("stream_wait_event", TWO, E1)
    later = line.work(ONE, reads=A)
    line("event_record", E1, ONE)
    line("stream_synchronize", TWO)
    assert unmapped(line) == [(later.seq, line.count - 1)]


def test_work_behind_a_wait_of_the_host_is_ordered_behind_it(line: Line) -> None:
    line.work(ONE, writes=A)
    line("stream_synchronize", ONE)
    line.work(TWO, writes=A)
    assert line.races() == []


def test_one_hazard_for_each_stream_that_is_not_over(line: Line) -> None:
    works = [line.work(stream, reads=A) for stream in (ONE, TWO, FAR)]
    line("stream_synchronize", TWO)
    assert [first for first, _ in unmapped(line)] == [works[0].seq, works[2].seq]


def test_freeing_an_allocation_is_judged_like_an_unmap(line: Line) -> None:
    line("alloc", 64, 0, 0, result=0x50_0000)
    work = line.work(ONE, reads=0x50_0000)
    line("free", 0x50_0000)
    assert line.hazards() == [(work.seq, line.count - 1)]


def test_lowering_rights_is_judged_and_ends_nothing(line: Line) -> None:
    work = line.work(ONE, reads=A)
    line("set_access", A, G, ((0, 0),))
    assert line.hazards() == [(work.seq, line.count - 1)]
    assert unmapped(line) == [(work.seq, line.count - 1)]


def test_taking_rights_from_who_has_none_lowers_nothing(line: Line) -> None:
    line.work(ONE, writes=A)
    line("set_access", A, G, ((1, 0),))
    assert line.hazards() == []


def test_new_memory_at_an_old_address_has_no_past(line: Line) -> None:
    line.work(ONE, reads=A)
    line("unmap", A, G)
    line.back(A, 2)
    assert unmapped(line) == []


def test_a_refused_call_is_no_use(line: Line) -> None:
    line("launch", ONE, (Range(A, 8),), (), (), status=1)
    assert unmapped(line) == []


# -- races


def test_unordered_writes_race(line: Line) -> None:
    first = line.work(ONE, writes=A)
    second = line.work(TWO, writes=A + 4)
    assert line.races() == [(first.seq, second.seq)]


@pytest.mark.parametrize(("one", "other"), [("reads", "writes"), ("writes", "reads")])
def test_a_read_and_a_write_race(line: Line, one: str, other: str) -> None:
    line.work(ONE, **{one: A})
    line.work(TWO, **{other: A})
    assert len(line.races()) == 1


def test_reads_do_not_race_nor_do_other_bytes_nor_one_stream(line: Line) -> None:
    line.work(ONE, reads=A)
    line.work(TWO, reads=A)
    assert line.races() == []
    line.work(TWO, writes=A + 8)
    assert line.races() == []
    line.work(TWO, writes=A + 8)
    assert line.races() == []
    line.work(FAR, reads=A + 16)
    assert line.races() == []
    line.work(ONE, writes=A + 24)
    line.work(FAR, writes=A + 16)
    assert line.races() == []


def test_an_event_between_two_streams_ends_the_race(line: Line) -> None:
    line.work(ONE, writes=A)
    line("event_record", E1, ONE)
    line("stream_wait_event", TWO, E1)
    line.work(TWO, writes=A)
    assert line.races() == []
    late = line.work(ONE, writes=A)
    assert [second for _, second in line.races()] == [late.seq]


def test_two_addresses_of_one_memory_race(line: Line) -> None:
    line.back(B, 1)
    line.work(ONE, writes=A)
    line.work(TWO, reads=B)
    assert len(line.races()) == 1


def test_later_work_on_a_stream_does_not_hide_earlier_work_there(line: Line) -> None:
    first = line.work(ONE, writes=A)
    line.work(ONE, reads=A + 512)
    line.work(TWO, reads=A)
    assert line.races() == [(first.seq, line.count - 1)]


def test_the_host_races_with_what_it_has_not_waited_for(line: Line) -> None:
    work = line.work(ONE, reads=A)
    write = line("write", A, b"12345678", None, result=1)
    assert line.races() == [(work.seq, write.seq)]
    line("read", A, 8, None, result=2)
    assert line.races() == []
    line("stream_synchronize", ONE)
    line("write", A, b"12345678", None, result=3)
    assert line.races() == []


def test_a_stream_whose_number_comes_back_is_behind_nothing(line: Line) -> None:
    line.work(ONE, writes=A)
    line("event_record", E1, ONE)
    line("stream_wait_event", TWO, E1)
    line("stream_destroy", TWO)
    line("stream_create", 0, result=TWO)
    line.work(TWO, writes=A)
    assert len(line.races()) == 1


def test_a_stream_whose_number_comes_back_counts_on(line: Line) -> None:
    """The work of the one before is not over when the first of the new one's is."""
    works = [line.work(ONE, reads=A) for _ in range(2)]
    line("stream_destroy", ONE)
    line("stream_create", 0, result=ONE)
    line.work(ONE, reads=B)
    assert line.order.position(ONE) == len(works) + 1
    line("stream_create", 0, result=FAR + 1)
    assert line.order.position(FAR + 1) == 0


@pytest.mark.parametrize("over", [False, True])
def test_of_many_uses_those_that_are_over_are_forgotten_and_no_others(line: Line, over: bool) -> None:
    for number in range(1023):
        line("write", A + number, b"1", ONE, result=number)
    if over:
        line("stream_synchronize", ONE)
    last = line("write", A + 1023, b"1", ONE, result=1023)
    second = line("write", A, bytes(1024), TWO, result=1024)
    assert [race.second.event.seq for race in line.order.races] == [second.seq] * (1 if over else 1024)
    assert line.order.races[-1].first.event.seq == last.seq


# -- graphs


def graph(line: Line) -> Event:
    """A graph that was captured on the first stream and writes at A. Returns the captured launch."""
    line("graph_begin", ONE)
    captured = line.work(ONE, writes=A)
    line("graph_end", ONE, result=70)
    line("graph_instantiate", 70, result=71)
    return captured


def test_capturing_is_no_use(line: Line) -> None:
    graph(line)
    assert unmapped(line) == []


def test_a_graph_uses_its_addresses_where_and_when_it_is_launched(line: Line) -> None:
    graph(line)
    launch = line("graph_launch", 71, TWO, result=5)
    line("stream_synchronize", ONE)
    assert unmapped(line) == [(launch.seq, line.count - 1)]


def test_a_graph_that_is_destroyed_lives_on_in_what_was_made_of_it(line: Line) -> None:
    graph(line)
    line("graph_destroy", 70)
    launch = line("graph_launch", 71, TWO, result=5)
    assert unmapped(line) == [(launch.seq, line.count - 1)]


def test_a_graph_touches_what_is_mapped_at_its_addresses_now(line: Line) -> None:
    graph(line)
    line("unmap", A, G)
    line.back(A, 2)
    line.work(TWO, reads=A)
    launch = line("graph_launch", 71, ONE, result=5)
    (race,) = line.order.races
    assert (race.second.event.seq, race.second.memory.handle) == (launch.seq, 2)


def test_the_stream_works_on_behind_a_capture(line: Line) -> None:
    graph(line)
    work = line.work(ONE, reads=A)
    assert unmapped(line) == [(work.seq, line.count - 1)]


# -- what a submission touches


SUBMISSIONS = [
    ("copy", (B, A, 16, ONE), [(A, 16, False), (B, 16, True)]),
    ("fill", (B, 7, 16, ONE), [(B, 16, True)]),
    ("write", (B, b"123", ONE), [(B, 3, True)]),
    ("read", (B, 16, ONE), [(B, 16, False)]),
    (
        "launch", (ONE, (Range(A, 1),), (Copy(B, A, 2),), (Write(B, b"123"),)),
        [(A, 1, False), (A, 2, False), (B, 2, True), (B, 3, True)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "args", "touched"), SUBMISSIONS, ids=[row[0] for row in SUBMISSIONS])
def test_what_a_submission_touches(kind: str, args: tuple[object, ...], touched: list[tuple[int, int, bool]]) -> None:
    assert list(accesses(Event(0, 0, 0, "subject", kind, args))) == touched


@pytest.mark.parametrize(("kind", "args"), [row[:2] for row in SUBMISSIONS], ids=[row[0] for row in SUBMISSIONS])
def test_each_submission_is_work_of_its_own_stream(line: Line, kind: str, args: tuple[object, ...]) -> None:
    line.back(B, 2)
    line(kind, *args, result=5)
    assert [line.order.position(stream) for stream in (ONE, TWO, FAR)] == [1, 0, 0]


def test_a_stream_says_where_it_is_and_whether_it_is_captured(line: Line) -> None:
    assert [line.order.device(stream) for stream in (0, ONE, FAR)] == [0, 0, 1]
    line("graph_begin", TWO)
    assert [line.order.capturing(stream) for stream in (ONE, TWO)] == [False, True]
    line("graph_end", TWO, result=70)
    assert not line.order.capturing(TWO)
