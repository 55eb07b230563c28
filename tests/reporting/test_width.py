"""Texts are as wide as the terminal, within reason."""

from __future__ import annotations

import pytest

from vmm_conformance.width import terminal_width


@pytest.mark.parametrize(
    ("columns", "width"), [("20", 60), ("60", 60), ("80", 80), ("99", 99), ("120", 120), ("400", 120)]
)
def test_columns_within_bounds(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() == width


def test_80_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert terminal_width() == 80
