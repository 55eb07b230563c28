"""Where things are in a picture: time runs down, the same way in both drawings."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

ROW: Final = 17
"""Height of a row, in pixels."""
HEAD: Final = 40
GUTTER: Final = 38
"""Width of the column with the numbers of operations."""
REPEAT: Final = 45
"""Rows behind which the heads of columns are written again."""


class Layout:
    """The vertical positions of a picture's rows and operations; ``operations`` is the program's length."""

    def __init__(self, picture: dict[str, Any], operations: int) -> None:
        self.picture = picture
        self.operations = operations
        self.rows: list[dict[str, Any]] = picture["rows"]
        self.repeats = list(range(REPEAT, len(self.rows) - REPEAT // 4, REPEAT))
        self.height = self.top(len(self.rows) - 1) + ROW + 6

    def top(self, row: int) -> int:
        """The upper edge of a row."""
        return HEAD + (row + sum(repeat <= row for repeat in self.repeats)) * ROW

    def middle(self, row: int | None) -> int:
        """The middle of a row; of no row, the end of the picture."""
        return self.height - 6 if row is None else self.top(row) + ROW // 2

    def bands(self) -> list[dict[str, Any]]:
        """One band for each operation, with its rows."""
        made: list[dict[str, Any]] = []
        numbered = list(enumerate(self.rows))
        for op, group in groupby(numbered, key=lambda pair: int(pair[1]["op"])):
            indexes = [index for index, _ in group]
            top = self.top(indexes[0])
            made.append({
                "op": op, "y": top, "height": self.top(indexes[-1]) + ROW - top, "odd": len(made) % 2 == 1,
                "label": "start" if op < 0 else "end" if op >= self.operations else str(op),
            })  # fmt: skip
        return made

    def heads(self) -> list[int]:
        """Where the heads of columns are written: at the top, and again in a long picture."""
        return [HEAD - 8, *(self.top(row) - 5 for row in self.repeats)]

    def flags(self) -> list[dict[str, Any]]:
        """The rows where the invariant broke, and where the cause lies."""
        return [
            {"y": self.top(index), "kind": "bad" if row.get("bad") else "cause"}
            for index, row in enumerate(self.rows)
            if row.get("bad") or row.get("cause")
        ]

    def told(self) -> list[dict[str, Any]]:
        """The rows as text."""
        return [
            {
                "op": row["op"],
                "who": row["who"],
                "text": "; ".join(row.get("calls", [])) + (f"; and {row['more']} more" if row.get("more") else ""),
                "flag": "broken here" if row.get("bad") else "cause" if row.get("cause") else "",
            }
            for row in self.rows
            if row.get("calls")
        ]
