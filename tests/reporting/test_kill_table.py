"""The kill matrix."""

from __future__ import annotations

from dataclasses import replace

from vmm_conformance.reporting.kill_table import as_data, as_lines, full
from vmm_conformance.running.kills import Kill

KILLED = Kill(
    "step-compare-address",
    "skip-remap",
    "STEP-85",
    0,
    True,
    True,
    "STEP-85",
    ("STEP-85",),
    "explore/skip-on",
    3,
    2,
    0.0123,
)
DIRECTED = Kill(
    "flags-deaf",
    "flags",
    "FLAG-147",
    0,
    True,
    False,
    "FLAG-148",
    ("FLAG-148", "FLAG-147"),
    "scenario/tables",
    1,
    1,
    1.5,
)
SURVIVOR = Kill("step-quiet", "skip-remap", "STEP-97", 1, False, False, seconds=2)


def test_table(snapshot):
    snapshot("kill_table", "\n".join(as_lines([SURVIVOR, KILLED, DIRECTED])))


def test_it_is_full_when_all_are_killed_and_enough_by_exploration():
    explored = replace(DIRECTED, explored=True)
    assert full([KILLED] + [explored] * 4 + [DIRECTED])
    assert not full([KILLED] * 9 + [SURVIVOR])


def test_one_contract_does_not_make_up_for_another():
    explored = replace(DIRECTED, explored=True)
    assert not full([KILLED] * 99 + [explored] * 3 + [DIRECTED])


def test_one_that_was_interrupted_is_partial_and_never_full():
    assert as_lines([KILLED], planned=3)[-1] == "partial: 2 of 3 hunts were not made"
    data = as_data([KILLED], planned=3, notes={KILLED.mutant: "Gets it wrong.", "another": "Is not here."})
    assert data["notes"] == {KILLED.mutant: "Gets it wrong."}
    assert list(data["statements"]) == sorted({KILLED.breaks, *KILLED.found})
    assert (data["of"], data["planned"], data["full"]) == (1, 3, False)
    assert as_data([KILLED])["full"]


def test_data():
    data = as_data([KILLED, SURVIVOR])
    assert (data["killed"], data["explored"], data["of"], data["full"]) == (1, 1, 2, False)
    assert data["kills"][0]["by"] == "explore/skip-on"
