"""Histories by hand, collected by what they are to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from by_hand import Hand

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.programs.skip_remap import ExecutablePlan
from vmm_suites.scenarios.steps import ids


class Story(NamedTuple):
    """How a history goes, and the ids it is about."""

    tell: Callable[[Hand], object]
    plans: tuple[ExecutablePlan, ...]
    configuration: dict[str, Any]
    ids: tuple[str, ...]

    def judged(self) -> Judge:
        hand = Hand(*self.plans, **self.configuration)
        self.tell(hand)
        return hand.judged()


class Stories:
    """A decorator that collects stories: their ids by number, what they run under, and their name."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def __call__(
        self, numbers: str, *plans: ExecutablePlan, **configuration: Any
    ) -> Callable[[Callable[[Hand], object]], Callable[[Hand], object]]:
        def collect(tell: Callable[[Hand], object]) -> Callable[[Hand], object]:
            self.rows.append(pytest.param(Story(tell, plans, configuration, ids(numbers)), id=tell.__name__))
            return tell

        return collect


def check_right(story: Story) -> None:
    """No finding, and each id put to the test."""
    judge = story.judged()
    assert judge.findings == []
    assert [id for id in story.ids if not judge.witnesses[id]] == []


def check_wrong(story: Story) -> None:
    """Exactly these ids are broken."""
    judge = story.judged()
    assert {finding.invariant for finding in judge.findings} == set(story.ids)


def check_vacuous(story: Story) -> None:
    """No finding, and none of the ids put to the test."""
    judge = story.judged()
    assert judge.findings == []
    assert [id for id in story.ids if judge.witnesses[id]] == []
