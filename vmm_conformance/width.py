"""How wide a terminal is, as far as texts are wrapped to it."""

from __future__ import annotations

import shutil
from typing import Final

NARROWEST: Final = 60
"""Below so many columns maps and programs have no room; lines are left to the terminal to wrap."""
WIDEST: Final = 120
"""Beyond so many columns sentences are hard to read."""


def terminal_width() -> int:
    """Columns to write to: those of the terminal (or ``COLUMNS``) within bounds, 80 where there is none."""
    return max(NARROWEST, min(shutil.get_terminal_size(fallback=(80, 24)).columns, WIDEST))
