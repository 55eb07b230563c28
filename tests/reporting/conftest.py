"""Snapshots: text compared exactly with a file; ``UPDATE_SNAPSHOTS=1`` writes the files anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            path.write_text(text + "\n", "utf-8")
        assert path.exists(), f"no snapshot {path.name}: run once with UPDATE_SNAPSHOTS=1 and read what it wrote"
        assert text + "\n" == path.read_text("utf-8"), f"differs from {path.name}; UPDATE_SNAPSHOTS=1 takes it over"

    return compare
