"""Failing programs become small: no operation too many, nothing larger than it must be, and never for ever."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import Event, History
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.shrink import MOST_RUNS, shrink
from vmm_conformance.programs.skip_remap import Fail, Move, Operation, Outcome, Resize, Step
from vmm_conformance.programs.skip_remap_decode import decode
from vmm_conformance.running.explore import Bench, failure_of
from vmm_conformance.running.plugs import Plug
from vmm_suites.scenarios.steps import G, plan, scenario


def program(*operations: Operation) -> Program:
    return scenario("any", plan(G, 2 * G), operations, "", "").program


def kinds(program: Program) -> list[str]:
    return [type(operation).__name__ for operation in program.operations]


def resized_then_stepped(program: Program) -> bool:
    """Fails if some slot is resized to more than 1000 bytes, and a step comes behind."""
    sizes = [i for i, o in enumerate(program.operations) if isinstance(o, Resize) and o.size > 1000]
    steps = [i for i, o in enumerate(program.operations) if isinstance(o, Step)]
    return bool(sizes and steps and sizes[0] < steps[-1])


def test_what_does_not_matter_goes() -> None:
    small = shrink(program(Step(), Move(1), Resize(1, 3 * G), Fail("map"), Step(), Move(0)), resized_then_stepped)
    assert small.operations == (Resize(0, 1536), Step())


def test_sizes_are_lowered_and_fields_go_back_to_their_defaults() -> None:
    before = Step(executable=1, device=1, stream=2, outcome=Outcome.RAISE_AFTER, probe=True)
    small = shrink(program(Resize(5, 64 * G, device=1), before), resized_then_stepped)
    assert small.operations == (Resize(0, 1024), Step())


def test_what_must_stay_stays() -> None:
    def fails(candidate: Program) -> bool:
        return any(isinstance(o, Step) and o.outcome is Outcome.RAISE_AFTER for o in candidate.operations)

    small = shrink(program(Step(stream=1), Step(outcome=Outcome.RAISE_AFTER, stream=1)), fails)
    assert small.operations == (Step(outcome=Outcome.RAISE_AFTER),)


def test_the_configuration_becomes_plainer_too() -> None:
    whole = decode(random.Random(5).randbytes(400), {"eager": True, "devices": 2})

    def fails(candidate: Program) -> bool:
        return bool(candidate.configuration.devices == 2)

    small = shrink(whole, fails)
    assert small.operations == ()
    configuration = small.configuration
    assert (configuration.devices, configuration.eager, configuration.streams) == (2, False, 1)
    assert {slot.size for executable in configuration.executables for slot in executable.slots} == {0}


@pytest.mark.parametrize("seed", range(30))
def test_no_single_operation_can_be_left_out(seed: int) -> None:
    """Whatever makes it fail: here, three operations that are drawn at random, in their order."""
    source = random.Random(seed)
    whole = decode(source.randbytes(400))
    needed = sorted(source.sample(range(len(whole.operations)), 3))
    wanted = [type(whole.operations[index]) for index in needed]

    def fails(candidate: Program) -> bool:
        left = iter(candidate.operations)
        return all(any(isinstance(operation, kind) for operation in left) for kind in wanted)

    small = shrink(whole, fails)
    assert [type(operation) for operation in small.operations] == wanted
    assert fails(small)


def test_it_shrinks_the_same_every_time() -> None:
    whole = program(*[Move(n) for n in range(6)], Resize(1, 3 * G), *[Step(stream=n) for n in range(6)])
    assert shrink(whole, resized_then_stepped) == shrink(whole, resized_then_stepped)


@pytest.mark.parametrize("limit", [0, 1, 7, MOST_RUNS])
def test_it_runs_no_more_often_than_allowed_and_still_fails(limit: int) -> None:
    runs = count()

    def fails(candidate: Program) -> bool:
        next(runs)
        return resized_then_stepped(candidate)

    whole = program(*[Move(n) for n in range(40)], Resize(1, 3 * G), *[Step() for _ in range(40)])
    small = shrink(whole, fails, runs=limit)
    assert next(runs) <= limit
    assert resized_then_stepped(small)
    assert (small == whole) is (limit == 0)


# -- how often it fails


def bench(fails: Any) -> Bench:
    """A bench on which a program breaks X-1 whenever ``fails`` says so."""

    def judge(history: History) -> Judge:
        found = Judge()
        if fails(history.header["program"]):
            found.fail("X-1", Event(0, 0, 0, "subject", "map", (0, 0, 0, 0)), "broken")
        return found

    def run(program: Program, subject: object, open_driver: object) -> History:
        return History({"program": program})

    return Bench(Plug(decode, run, judge), None, lambda options: pytest.fail("no driver is needed"))


def test_a_program_that_fails_every_time_is_deterministic() -> None:
    failure = failure_of(bench(resized_then_stepped), "X-1", program(Move(0), Resize(0, G), Step()), 7)
    assert (failure.repeats, failure.message, failure.programs_before) == ("deterministic", "broken", 7)
    assert [operation["op"] for operation in failure.program["operations"]] == ["resize", "step"]


def test_a_program_that_fails_now_and_then_is_called_flaky() -> None:
    runs = count()
    failure = failure_of(bench(lambda program: next(runs) % 2 == 0), "X-1", program(Step()), small=False)
    assert failure.repeats == "flaky 3/5"


def test_a_small_program_that_never_fails_again_gives_way_to_the_whole_one() -> None:
    """The small one failed by chance; what is shown is a program that does fail."""
    runs = count()

    def fails(candidate: Program) -> bool:
        return len(candidate.operations) == 3 or next(runs) == 0

    failure = failure_of(bench(fails), "X-1", program(Step(), Step(), Step()))
    assert (failure.repeats, len(failure.program["operations"])) == ("deterministic", 3)


def test_a_program_that_is_never_seen_to_fail_again_says_so() -> None:
    failure = failure_of(bench(lambda program: False), "X-1", program(Step()), small=False)
    assert (failure.repeats, failure.message) == ("flaky 0/5", "not seen again when the program was re-run")
