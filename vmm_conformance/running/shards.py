"""Parts of a plan, for machines that do not know of each other: ``2/3`` is the second of three.

Explorations are much longer than scenarios, so each kind of item is dealt out by itself, in the order of the ids.
Whoever knows the ids and kinds of the items can say which are whose: the run, and who reads its report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple, Protocol


class HasKind(Protocol):
    """An item, planned or reported."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def kind(self) -> str:
        """``exploration``, ``scenario`` or ``waiver``."""
        ...


class Shard(NamedTuple):
    """The part ``number``, counted from 1, of ``of`` parts."""

    number: int
    of: int


def parse(text: str) -> Shard:
    """Read ``K/N``. Raises ``ValueError``, one line that says what is accepted."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"shard must be K/N with K from 1 to N, as in 1/2, got {text!r}")
    return Shard(int(found[1]), int(found[2]))


def members(items: Iterable[HasKind], text: str) -> frozenset[str]:
    """The ids of those of one subject's ``items`` that belong to the shard ``text``; all of them if it is empty."""
    ordered = sorted(items, key=lambda item: (item.kind, item.id))
    if not text:
        return frozenset(item.id for item in ordered)
    shard = parse(text)
    dealt = [list(group)[shard.number - 1 :: shard.of] for _, group in groupby(ordered, lambda item: item.kind)]
    return frozenset(item.id for group in dealt for item in group)
