"""The scheduler: one thread at a time, and a change of threads only where the turns say."""

from __future__ import annotations

import threading

import pytest

from vmm_conformance.programs.turns import AT_WAIT
from vmm_conformance.running import scheduler as scheduling
from vmm_conformance.running.scheduler import Scheduler
from vmm_conformance.running.threads import Duel, VisibleLock, visible_locks


def traced(turns: tuple[int, ...], kinds: tuple[str, ...] = ("map", "map", "event_synchronize", "map")) -> str:
    """Two threads that pass the same points; a letter for each that is passed, capitals for the second."""
    scheduler = Scheduler()
    trace: list[str] = []

    def body(letters: str) -> None:
        for letter, kind in zip(letters, kinds, strict=True):
            scheduler.point(kind)
            trace.append(letter)

    assert scheduler.together([lambda: body("abcd"), lambda: body("ABCD")], turns)
    return "".join(trace)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((), "abcdABCD"),
        ((0,), "ABCDabcd"),
        ((1,), "aABCDbcd"),
        ((3,), "abcABCDd"),
        ((9,), "abcdABCD"),
        ((1, 1, 1), "aAbBCDcd"),
        ((AT_WAIT,), "abABCDcd"),
        ((AT_WAIT, AT_WAIT), "abABcdCD"),
    ],
)
def test_turns_say_who_goes_on(turns: tuple[int, ...], expected: str) -> None:
    assert traced(turns) == expected


def test_equal_turns_give_equal_traces() -> None:
    assert {traced((1, 0, 2, 1)) for _ in range(20)} == {traced((1, 0, 2, 1))}


def test_blocked_thread_lets_the_other_go_on_and_gets_the_lock_at_once() -> None:
    blocked: list[tuple[int, str]] = []
    scheduler = Scheduler(lambda thread, at: blocked.append((thread, at)))
    lock, trace = VisibleLock(scheduler), []

    def first() -> None:
        with lock:
            trace.append("first has it")
            scheduler.point("create")
            trace.append("first goes on")
        trace.append("first is done")

    def second() -> None:
        with lock:
            trace.append("second has it")

    assert scheduler.together([first, second], (1,))
    assert trace == ["first has it", "first goes on", "second has it", "first is done"]
    assert blocked == [(1, "create")]
    assert scheduler.acquired == 2


def test_three_threads_take_turns() -> None:
    scheduler, trace = Scheduler(), []

    def body(letter: str) -> None:
        for _ in range(2):
            scheduler.point("map")
            trace.append(letter)

    assert scheduler.together([lambda: body("a"), lambda: body("b"), lambda: body("c")], (1, 1, 1, 1, 1))
    assert "".join(trace) == "abcabc"


def test_thread_whose_lock_is_never_given_back_is_abandoned() -> None:
    scheduler = Scheduler()
    lock, trace = VisibleLock(scheduler), []

    def first() -> None:
        lock.acquire()
        scheduler.point("map")

    def second() -> None:
        with lock:
            trace.append("never")

    assert not scheduler.together([first, second], (1,))
    assert trace == []
    assert not scheduler.blocked


def test_threads_that_wait_for_each_other_are_told() -> None:
    scheduler = Scheduler()
    one, two = VisibleLock(scheduler), VisibleLock(scheduler)
    errors: list[str] = []

    def body(first: VisibleLock, then: VisibleLock) -> None:
        try:
            with first:
                scheduler.point("map")
                with then:
                    pass
        except RuntimeError as error:
            errors.append(str(error))

    assert scheduler.together([lambda: body(one, two), lambda: body(two, one)], (1, 2))
    assert len(errors) == 1
    assert "deadlock" in errors[0]


def test_first_thread_that_waits_for_a_thread_that_has_ended_is_told() -> None:
    scheduler = Scheduler()
    lock = VisibleLock(scheduler)

    def first() -> None:
        scheduler.point("map")
        lock.acquire()

    with pytest.raises(RuntimeError, match="deadlock"):
        scheduler.together([first, lock.acquire], (0,))


def test_a_lock_that_cannot_be_seen_is_no_verdict_on_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "PATIENCE", 0.01)
    scheduler = Scheduler()
    unseen = threading.Lock()

    def first() -> None:
        with unseen:
            try:
                scheduler.point("map")
            except Exception:  # as a subject, or a runner, takes whatever goes wrong in it
                pytest.fail("it is no error of the subject's")

    with pytest.raises(scheduling.Unseen, match=r"thread 1 has reached no point .* scheduled=False"):
        scheduler.together([first, unseen.acquire], (0,))


def test_locks_made_meanwhile_are_visible() -> None:
    scheduler = Scheduler()
    with visible_locks(scheduler):
        made = threading.Lock(), threading.RLock()
    assert all(isinstance(lock, VisibleLock) for lock in made)
    with made[1], made[1]:
        assert scheduler.acquired == 2
    assert not isinstance(threading.Lock(), VisibleLock)


def test_points_of_a_duel_change_nothing() -> None:
    duel, trace = Duel(), []

    def second() -> None:
        duel.point("map")
        trace.append("second")

    duel.point("map")
    duel.challenge(second)
    trace.append("first")
    assert duel.settle()
    assert trace == ["second", "first"]
