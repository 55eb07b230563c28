"""Known-bad subjects: what a suite must be able to catch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A subject that is wrong on purpose.

    ``breaks`` names the invariant it was made to break, first, and others it breaks by its nature. It
    counts as killed when the first is among the findings of the failing history. ``note`` says in one
    sentence what is wrong with it; ``source`` names the public finding it repeats, if there is one. One that is not
    ``repeatable`` does otherwise each time it is run, as one that throws dice.
    """

    id: str
    contract: str
    breaks: tuple[str, ...]
    subject: object
    note: str
    source: str = ""
    repeatable: bool = True
