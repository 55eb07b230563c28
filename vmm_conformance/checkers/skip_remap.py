"""Judges a history of the contract ``skip-remap``."""

from __future__ import annotations

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.series import Series, is_series
from vmm_conformance.checkers.step_contents import Contents, check_contents
from vmm_conformance.checkers.step_facts import Facts, Step
from vmm_conformance.checkers.step_layout import check_layout
from vmm_conformance.checkers.step_order import check_close, check_order, check_threads
from vmm_conformance.checkers.step_outcome import check_outcomes
from vmm_conformance.checkers.step_plan import plan_facts
from vmm_conformance.checkers.step_remap import check_remap
from vmm_conformance.history.events import Event, History
from vmm_conformance.history.observe import Observation, observations
from vmm_conformance.history.replay import Replay


def judge(history: History) -> Judge:
    """Every rule of ``skip-remap`` on one history. Pure."""
    result = Judge()
    configuration = history.header["configuration"]
    replay = Replay(history)
    plans = [plan_facts(planned, configuration.recommended) for planned in configuration.executables]
    spaces = [[slot.space for slot in planned.slots] for planned in configuration.executables]
    facts = Facts(replay, plans, spaces)
    contents = Contents(replay, facts)
    repeated = [Series(replay, result, "STEP-186")] if is_series(history.header) else []
    replay.walk(facts, contents, *repeated)
    check_layout(facts, result)
    check_remap(facts, result)
    check_outcomes(facts, result, partial_map=configuration.partial_map)
    check_order(facts, result)
    check_threads(facts, result)
    check_contents(facts, contents, result)
    check_close(facts, result)
    _compare_runs(history, facts, result)
    return result


def _compare_runs(history: History, facts: Facts, result: Judge) -> None:
    """The same program shows the same under every setting (STEP-158).

    Comparison ends at the first step that some setting may refuse: one with a buffer that has grown, that
    has no memory, or more of it than can be mapped into its slot (STEP-95, 97 and 159, SHADOW-113). It ends too
    at the first step that an injected failure struck: the other settings were run without failures.
    """
    seen = observations(history)
    partial_map = history.header["configuration"].partial_map
    comparable = [not step.injected and not _may_be_refused(step, partial_map) for step in facts.steps]
    for note in facts.notes:
        if note.args[0] != "variant":
            continue
        name, other = note.args[1]["name"], note.args[1]["seen"]
        for mine, theirs, good in zip(seen, other, comparable, strict=False):
            if not good or not _same(note, name, mine, theirs, result) or mine["status"] != "ok":
                break


def _may_be_refused(step: Step, partial_map: bool) -> bool:
    plan, track = step.track.plan, step.track
    return any(
        (buffer.size and (not buffer.address or buffer.handle is None))
        or (track.sizes and buffer.size > track.sizes[slot])
        or (not partial_map and buffer.committed > plan.rounded(track.sizes[slot] if track.sizes else buffer.size))
        for slot, buffer in enumerate(step.buffers)
        if slot in plan.remapped
    )


def _same(note: Event, name: str, mine: Observation, theirs: Observation, result: Judge) -> bool:
    different = [key for key, value in mine["bytes"].items() if theirs["bytes"].get(key, value) != value]
    alike = mine["status"] == theirs["status"]
    return result.expect(
        "STEP-158", note, alike and not different, f"with {name} the step at operation {mine['op']} shows otherwise",
        expected=f"{mine['status']}, and the same bytes",
        actual=f"{theirs['status']}, {len(different)} tokens differ",
    )  # fmt: skip
