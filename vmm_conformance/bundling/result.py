"""What a verification found, piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How one piece of a bundle came out."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_RECOMPUTED = "not recomputed"


class Piece(NamedTuple):
    """One thing that the bundle says, and what became of it when it was computed again."""

    what: str
    state: State
    detail: str = ""

    def line(self) -> str:
        """For a terminal."""
        return f"{self.what}: {self.state.value}" + (f": {self.detail}" if self.detail else "")


def same(what: str, detail: str = "") -> Piece:
    """It came out the same."""
    return Piece(what, State.SAME, detail)


def differs(what: str, detail: str) -> Piece:
    """It came out otherwise."""
    return Piece(what, State.DIFFERS, detail)


def left_out(what: str, detail: str) -> Piece:
    """It was not computed again."""
    return Piece(what, State.NOT_RECOMPUTED, detail)


def exit_code(pieces: Iterable[Piece]) -> int:
    """0 if all came out the same, 1 if something differs, 3 if something was not recomputed."""
    counts = Counter(piece.state for piece in pieces)
    return 1 if counts[State.DIFFERS] else 3 if counts[State.NOT_RECOMPUTED] or not counts else 0


def conclusion(pieces: Iterable[Piece]) -> str:
    """All of it in a line."""
    counts = Counter(piece.state for piece in pieces)
    parts = [f"{counts[state]} {state.value}" for state in State if counts[state]]
    verdict = {0: "verified", 1: "not what it says", 3: "not fully verified"}[exit_code(pieces)]
    return f"{verdict}: {', '.join(parts) or 'nothing to verify'}"
