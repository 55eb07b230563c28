"""Byte strings for programs: deterministic, and in batches, since Hypothesis remembers all that one run made."""

from __future__ import annotations

import pytest

from vmm_conformance.running import explore


def drawn(count: int, seed: int) -> list[bytes]:
    out: list[bytes] = []
    explore.generate(count, seed, out.append)
    return out


def test_equal_seeds_give_equal_strings_and_others_do_not() -> None:
    assert drawn(60, 1) == drawn(60, 1)
    assert drawn(60, 1)[1:] != drawn(60, 2)[1:]


def test_a_long_run_is_made_in_batches_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "BATCH", 30)
    strings = drawn(75, 3)
    assert len(strings) == 75
    assert strings[:30] == drawn(30, 3)
    assert len(set(strings)) >= 70  # each batch begins with the plainest string
