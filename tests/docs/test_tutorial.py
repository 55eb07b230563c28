"""The tutorial is done as it is written: its files, its commands, and what they print."""

from __future__ import annotations

import time

import pytest
from told_pages import DOCS, carry_out, prints, session, shell, steps

PAGE = DOCS / "tutorial.md"
MINUTES = 15


def test_the_tutorial_goes_as_it_is_told(tmp_path):
    started = time.monotonic()
    ran = 0
    for step in steps(PAGE):
        if step.action != "run":
            carry_out(tmp_path, step)
            continue
        for command, expected in session(step.text):
            printed = shell(command, tmp_path)
            assert prints(expected, printed), f"$ {command}\n{printed}"
            ran += 1
    assert ran == 9
    assert time.monotonic() - started < 60 * MINUTES / 5, "what the commands take leaves no time to read"


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "b"], "a\n", False),
        (["...", "b"], "x\ny\nb\n", True),
        (["...", "b"], "b\nc\n", False),
        (["a ... c"], "a b b c\n", True),
        ([], "", True),
        ([], "a\n", False),
    ],
)
def test_what_counts_as_printed(expected, printed, same):
    assert prints(expected, printed) is same
