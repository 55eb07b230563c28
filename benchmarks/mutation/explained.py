"""Mutants that nothing notices, and why: each was looked at by somebody. ``explained.jsonl`` has one a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from mutation.trial import Outcome, survived

FILE: Final = Path(__file__).with_name("explained.jsonl")
KINDS: Final[Mapping[str, str]] = {
    "text": "only what a finding or an error says changes, or what is listed in it",
    "sign": "statuses, sizes, counts, addresses and serial numbers are never below 0",
    "implied": "another condition implies it wherever both can come",
    "overwritten": "the value is not read, or something else is put there first; or a default that nothing takes",
    "order": "any of several that are equal may be taken, and any order of names will do",
    "same arithmetic": "another way to count the same, where numbers are multiples of a granule or grow one by one",
    "speed": "it only saves time or memory",
    "cannot come": "nothing that can be recorded has it",
    "counts": "an invariant is put to the test more or less often, and no promise says how often",
    "open": "a history could tell it apart, and nobody has written it",
}


class Key(NamedTuple):
    """What was changed, wherever the line is by now."""

    module: str
    operator: str
    change: str


class Explanation(NamedTuple):
    """One of `KINDS`, and what there is to say besides."""

    kind: str
    why: str


def key(outcome: Outcome) -> Key:
    """What ``outcome`` is about."""
    return Key(outcome.module, outcome.operator, outcome.change)


def explained(file: Path = FILE) -> dict[Key, Explanation]:
    """All explanations in ``file``. `ValueError` names the line of one that has no known kind."""
    found: dict[Key, Explanation] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        data = json.loads(line)
        if data["kind"] not in KINDS:
            raise ValueError(f"{file}:{number}: kind {data['kind']!r} is none of {', '.join(KINDS)}")
        found[Key(data["module"], data["operator"], data["change"])] = Explanation(data["kind"], data.get("why", ""))
    return found


def outdated(outcomes: Iterable[Outcome], known: Iterable[Key]) -> Iterator[Key]:
    """Explanations of what was not made any more, or was noticed, in modules that were run whole."""
    outcomes = tuple(outcomes)
    left = {key(outcome) for outcome in outcomes if survived(outcome)}
    modules = {outcome.module for outcome in outcomes}
    return (each for each in known if each.module in modules and each not in left)
