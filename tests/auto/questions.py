"""Histories of questions and answers, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vmm_conformance.checkers.auto_threshold import judge
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import AutoBounds, Choice, CopyCosts, DeviceFigures
from vmm_conformance.history.events import HARNESS, Event, History

DEVICE = DeviceFigures(bandwidth=4_000_000_000_000, capacity=1 << 30, free=1 << 29, alignment=256)
COSTS = CopyCosts(remap_ms=1.0, copy_ms=0.005, copy_share=0.01)
BOUNDS = AutoBounds(slice_share=0.02, step_ms=1.0, free_share=0.125)
"""One slice: 0.02 ms, which is 200,000 bytes; a step: 1 ms, which is close to 100 slices; shadows: 64 MiB."""


class Asked(NamedTuple):
    """A question, and what came of it: a choice, or an outcome without one."""

    slices: tuple[int, ...]
    answer: Choice | dict[str, Any]
    device: DeviceFigures = DEVICE
    costs: CopyCosts = COSTS


class Then(NamedTuple):
    """Another note, about the last question."""

    what: str
    details: dict[str, Any]


def asked(slices: Sequence[int], cutoff: int, selected: Sequence[int], **figures: int) -> Asked:
    return Asked(tuple(slices), Choice(cutoff, tuple(selected)), replace(DEVICE, **figures))


def history_of(*steps: Asked | Then, bounds: AutoBounds | None = BOUNDS, ties: str = "whole") -> History:
    history = History({"contract": "auto-threshold", "bounds": bounds, "ties": ties})
    question = -1

    def note(what: str, details: dict[str, Any]) -> int:
        history.events.append(Event(len(history), 0, 0, HARNESS, "note", (what, details)))
        return len(history) - 1

    for step in steps:
        if isinstance(step, Then):
            note(step.what, {"question": question, **step.details})
            continue
        question = note("asked", {"device": step.device, "slices": step.slices, "costs": step.costs})
        if isinstance(step.answer, Choice):
            note("chose", step.answer._asdict())
        else:
            note("failed", step.answer)
    return history


def judged(*steps: Asked | Then, bounds: AutoBounds | None = BOUNDS, ties: str = "whole") -> Judge:
    return judge(history_of(*steps, bounds=bounds, ties=ties))


def broken(verdicts: Judge) -> set[str]:
    return {finding.invariant for finding in verdicts.findings}
