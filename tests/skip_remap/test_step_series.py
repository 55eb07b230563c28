"""Steps that are repeated in one life of an executor: what it holds must not grow (STEP-186)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from by_hand import FIRST, REMAP, Hand, Phase
from told import Stories, Story, check_right, check_vacuous, check_wrong

from vmm_conformance.checkers.series import WARM
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.skip_remap import Close, Configuration, Damage, Disturb, Fail, Recreate, Resize, SlotPlan
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.session import bench_for
from vmm_reference.mutants import MUTANTS
from vmm_reference.subject import reference
from vmm_suites.scenarios.steps import STEP, G, plan, shadowed

FLAT = "STEP-186"
RIGHT, WRONG, VACUOUS = Stories(), Stories(), Stories()
PLAN = shadowed(64, SlotPlan(G, constant=True), 2 * G, G)


# -- by hand


def repeated(h: Hand, *phases: Phase) -> None:
    """A step with a buffer of its own, and the end of a repetition."""
    for number in range(h.configuration.rounds):
        h.step(h.buffer(G), phases=(*phases, *REMAP) if number else FIRST)
        h.note("round", number=number, free={0: 0})


@RIGHT("186", plan(G), rounds=WARM + 2)
def holds_no_more_than_before(h: Hand) -> None:
    repeated(h)


@WRONG("186", plan(G), rounds=WARM + 2)
def makes_an_event_each_time(h: Hand) -> None:
    repeated(h, lambda: h.subject("event_create", 0, result=1000 + h.number()))


@VACUOUS("186", plan(G), rounds=WARM)
def is_still_warming_up(h: Hand) -> None:
    repeated(h, lambda: h.subject("event_create", 0, result=1000 + h.number()))


@VACUOUS("186", plan(G), rounds=WARM + 2)
def never_executes(h: Hand) -> None:
    for number in range(WARM + 2):
        h.note("round", number=number, free={0: 0})


@pytest.mark.parametrize("story", RIGHT.rows)
def test_right(story: Story) -> None:
    check_right(story)


@pytest.mark.parametrize("story", WRONG.rows)
def test_wrong(story: Story) -> None:
    check_wrong(story)


@pytest.mark.parametrize("story", VACUOUS.rows)
def test_vacuous(story: Story) -> None:
    check_vacuous(story)


# -- run


def judged(*operations: object, rounds: int = WARM + 2, subject: object = reference, **changes: object) -> Judged:
    configuration = Configuration((replace(PLAN, **changes),), rounds=rounds)  # type: ignore[arg-type] # fields of a plan
    return bench_for("skip-remap", subject).run(Program("skip-remap", configuration, operations))


@pytest.mark.parametrize("vmm", [True, False])
def test_each_time_begins_with_fresh_buffers_and_the_same_constants(vmm: bool) -> None:
    ran = judged(STEP, Recreate(2), STEP, Disturb(3, Damage.NULL), STEP, Resize(0, 8), STEP, vmm=vmm)
    assert ran.judge.findings == []
    assert ran.judge.witnesses[FLAT] == 1
    rounds = [event.args[1] for event in ran.history.events if event.kind == "note" and event.args[0] == "round"]
    assert [note["number"] for note in rounds] == list(range(WARM + 2))
    assert len({note["free"][0] for note in rounds[1:]}) == 1
    notes = (event.args for event in ran.history.events if event.kind == "note")
    steps = [details["buffers"] for what, details in notes if what == "step"]
    firsts = steps[:: len(steps) // (WARM + 2)]
    assert len({buffers[0].allocation for buffers in firsts}) == WARM + 2
    assert len({buffers[1].allocation for buffers in firsts}) == 1


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.breaks[0] == FLAT], ids=lambda m: m.id)
def test_what_grows_with_every_step_is_found(mutant: object) -> None:
    subject = mutant.subject  # type: ignore[attr-defined] # a mutant
    assert FLAT in judged(STEP, STEP, subject=subject).broken()
    assert FLAT not in judged(STEP, STEP, subject=subject, rounds=WARM).broken()


@pytest.mark.parametrize("operations", [(Close(), STEP), (Fail("map"), STEP, STEP)], ids=["closed", "struck"])
def test_series_that_show_nothing(operations: tuple[object, ...]) -> None:
    ran = judged(*operations)
    assert ran.judge.findings == []
    assert not ran.judge.witnesses[FLAT]
