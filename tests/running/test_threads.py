"""A duel of two threads: nothing is left to chance or to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from vmm_conformance.running.threads import Abandoned, Duel, VisibleCondition, VisibleLock, visible_locks

REAL = threading.Lock, threading.RLock, threading.Condition


class Ring:
    """A duel, a lock, and what happened in which order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.duel = Duel(lambda: self.said.append("blocked"))
        self.lock = VisibleLock(self.duel)

    def second(self) -> None:
        with self.lock:
            self.said.append("second")


@pytest.fixture
def ring() -> Ring:
    return Ring()


def test_the_challenger_waits_for_the_lock_and_goes_on_when_it_is_given_back(ring: Ring) -> None:
    with ring.lock:
        ring.duel.challenge(ring.second)
        ring.said.append("first")
        assert ring.duel.blocked
    assert ring.said == ["blocked", "first", "second"]
    assert not ring.duel.blocked
    assert ring.duel.settle()


def test_a_lock_given_back_too_early_is_always_found() -> None:
    for _ in range(200):
        ring = Ring()
        with ring.lock:
            ring.duel.challenge(ring.second)
        ring.said.append("first")
        assert ring.said == ["blocked", "second", "first"]
        assert ring.duel.settle()


def test_without_a_lock_the_challenger_runs_to_its_end_at_once(ring: Ring) -> None:
    ring.duel.challenge(ring.second)
    ring.said.append("first")
    assert ring.said == ["second", "first"]
    assert ring.duel.settle()


def test_the_challenger_may_block_again(ring: Ring) -> None:
    other = VisibleLock(ring.duel)

    def twice() -> None:
        with ring.lock:
            ring.said.append("one")
        with other:
            ring.said.append("two")

    other.acquire()
    with ring.lock:
        ring.duel.challenge(twice)
    ring.said.append("first")
    other.release()
    assert ring.said == ["blocked", "one", "blocked", "first", "two"]
    assert ring.duel.settle()


def test_another_lock_given_back_wakes_nobody(ring: Ring) -> None:
    other = VisibleLock(ring.duel)
    with ring.lock:
        ring.duel.challenge(ring.second)
        with other:
            pass
        assert ring.duel.blocked
    assert ring.duel.settle()


def test_a_challenger_whose_lock_never_comes_is_abandoned_and_ends(ring: Ring) -> None:
    def cleans_up() -> None:
        try:
            ring.second()
        finally:
            ring.said.append("cleaned")

    before = threading.active_count()
    ring.lock.acquire()
    ring.duel.challenge(cleans_up)
    assert not ring.duel.settle()
    assert ring.said == ["blocked", "cleaned"]
    assert threading.active_count() == before
    assert not ring.duel.blocked


def test_abandoned_passes_handlers_of_ordinary_errors() -> None:
    assert not issubclass(Abandoned, Exception)


def test_an_abandoned_challenger_may_leave_blocks_whose_lock_it_does_not_hold(ring: Ring) -> None:
    """It let go of the lock, and never got it back: leaving must not fail, or the failure would hide the rest."""

    def lets_go() -> None:
        with other:
            other.release()
            try:
                ring.second()
            finally:
                ring.said.append("out")

    other = VisibleLock(ring.duel)
    ring.lock.acquire()
    ring.duel.challenge(lets_go)
    assert not ring.duel.settle()
    assert ring.said == ["blocked", "out"]


def test_a_second_duel_can_follow_an_abandoned_one(ring: Ring) -> None:
    ring.lock.acquire()
    ring.duel.challenge(ring.second)
    ring.duel.settle()
    ring.lock.release()
    ring.duel.challenge(ring.second)
    assert ring.said == ["blocked", "second"]
    assert ring.duel.settle()


def test_settling_without_a_challenge_is_nothing(ring: Ring) -> None:
    assert ring.duel.settle()


def test_no_time_passes(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout never expires: only the other thread ends a wait."""
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    with ring.lock:
        ring.duel.challenge(lambda: ring.said.append(str(ring.lock.acquire(timeout=1e-9))))
        ring.said.append("first")
    assert ring.said == ["blocked", "first", "True"]
    assert ring.duel.settle()


# -- locks


def test_the_first_thread_never_waits_for_itself(ring: Ring) -> None:
    ring.lock.acquire()
    with pytest.raises(RuntimeError, match="deadlock"):
        ring.lock.acquire()


def test_a_lock_is_like_a_lock(ring: Ring) -> None:
    assert not ring.lock.locked()
    assert ring.lock.acquire()
    assert ring.lock.locked()
    assert not ring.lock.acquire(blocking=False)
    ring.lock.release()
    with pytest.raises(RuntimeError, match="unlocked"):
        ring.lock.release()
    assert ring.duel.acquired == 1


def test_a_reentrant_lock_opens_with_its_last_release(ring: Ring) -> None:
    ring.lock = VisibleLock(ring.duel, reentrant=True)
    with ring.lock:
        with ring.lock:
            ring.duel.challenge(ring.second)
        ring.said.append("first")
    assert ring.said == ["blocked", "first", "second"]
    assert ring.duel.settle()


# -- conditions


def waits_for(condition: VisibleCondition, said: list[str]) -> Callable[[], None]:
    def body() -> None:
        with condition:
            condition.wait(timeout=1e-9)
            said.append("woken")

    return body


@pytest.mark.parametrize("own_lock", [True, False])
def test_a_condition_wakes_who_waits_when_the_lock_is_free(ring: Ring, own_lock: bool) -> None:
    condition = VisibleCondition(ring.duel, None if own_lock else ring.lock)
    ring.duel.challenge(waits_for(condition, ring.said))
    with condition:
        condition.notify()
        ring.said.append("first")
    assert ring.said == ["blocked", "blocked", "first", "woken"]
    assert ring.duel.settle()


def test_a_notification_before_the_wait_is_lost(ring: Ring) -> None:
    condition = VisibleCondition(ring.duel)
    with condition:
        condition.notify_all()
    ring.duel.challenge(waits_for(condition, ring.said))
    assert not ring.duel.settle()
    assert ring.said == ["blocked"]


def test_wait_for_waits_until_it_is_so(ring: Ring) -> None:
    condition = VisibleCondition(ring.duel)
    ready: list[int] = []

    def body() -> None:
        with condition:
            condition.wait_for(lambda: len(ready) == 2)
            ring.said.append("woken")

    ring.duel.challenge(body)
    for number in (1, 2):
        with condition:
            ready.append(number)
            condition.notify_all()
        ring.said.append(str(number))
    assert [word for word in ring.said if word != "blocked"] == ["1", "woken", "2"]
    assert ring.duel.settle()


def test_the_first_thread_never_waits_for_a_condition(ring: Ring) -> None:
    condition = VisibleCondition(ring.duel)
    condition.acquire()
    with pytest.raises(RuntimeError, match="deadlock"):
        condition.wait()


# -- in place of the real ones


def test_the_factories_are_replaced_while_the_block_runs(ring: Ring) -> None:
    with visible_locks(ring.duel):
        made: list[object] = [threading.Lock(), threading.RLock(), threading.Condition()]
        assert [type(one) for one in made] == [VisibleLock, VisibleLock, VisibleCondition]
        with made[1], made[1]:  # type: ignore[attr-defined] # a visible lock, which is re-entrant
            pass
    assert (threading.Lock, threading.RLock, threading.Condition) == REAL


def test_the_factories_come_back_when_the_block_fails(ring: Ring) -> None:
    def fail() -> None:
        with visible_locks(ring.duel):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (threading.Lock, threading.RLock, threading.Condition) == REAL


def test_an_executor_made_in_the_block_blocks_visibly(ring: Ring) -> None:
    with visible_locks(ring.duel):
        ring.lock = threading.Lock()  # type: ignore[assignment] # a visible one
        with ring.lock:
            ring.duel.challenge(ring.second)
            ring.said.append("first")
        assert ring.said == ["blocked", "first", "second"]
        assert ring.duel.settle()
