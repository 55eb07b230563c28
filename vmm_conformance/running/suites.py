"""What a suite is: explorations and directed scenarios of one contract, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any, Final

from vmm_conformance.programs.scenario import Scenario

GROUP: Final = "vmm_conformance.suites"


@dataclass(frozen=True, slots=True)
class Exploration:
    """Random programs under one configuration.

    ``pins`` fixes parts of the configuration, see the contract's ``decode``; ``share`` is its part of
    the contract's budget, relative to the others, where a program that is repeated counts as often.
    """

    id: str
    note: str
    pins: Mapping[str, Any] = field(default_factory=dict)
    share: int = 1


@dataclass(frozen=True, slots=True)
class Suite:
    """All that is run for one contract."""

    contract: str
    explorations: tuple[Exploration, ...]
    scenarios: tuple[Scenario, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the failure points of a contract: up to ``bound`` of them, out of the programs of one suite.

    Of ``of`` shares the one with this ``number`` takes every so-manieth program. See `running.points`.
    """

    id: str
    suite: Suite
    number: int
    of: int
    bound: int


@cache
def load_suites() -> tuple[Suite, ...]:
    """The suites of every installed package (entry points of the group ``vmm_conformance.suites``)."""
    found: list[Suite] = []
    for entry_point in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        found += entry_point.load()
    return tuple(found)
