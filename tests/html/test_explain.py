"""An invariant is explained with a program that puts it to the test."""

from __future__ import annotations

import pytest

from vmm_conformance.listing import explain


@pytest.mark.parametrize("id", ["STEP-88", "FLAG-147", "ALLOCATOR-5", "DRIVER-40"])
def test_an_example_program(id):
    lines = explain(id)
    at = next(index for index, line in enumerate(lines) if line.startswith("example      scenario "))
    assert any(line.strip().startswith("0 ") for line in lines[at:])
    assert max(map(len, lines)) <= 80


def test_it_says_how_it_is_judged():
    text = " ".join(" ".join(explain("STEP-88")).split())
    assert "step_order: Rules on order: waits, events, streams and threads" in text
