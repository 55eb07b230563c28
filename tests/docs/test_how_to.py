"""Guides tell what works: their files are written, and their commands print what they are said to."""

from __future__ import annotations

import pytest
from told_pages import DOCS, carry_out, prints, session, shell, steps

TOLD = [page for page in sorted(DOCS.rglob("*.md")) if "```console" in page.read_text("utf-8")]
PAGES = [page for page in TOLD if page.stem != "tutorial"]  # which has a test of its own


def test_there_are_some():
    assert {page.stem for page in PAGES} >= {"machines", "replay"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_goes_as_it_is_told(page, tmp_path):
    for step in steps(page):
        if step.action != "run":
            carry_out(tmp_path, step)
            continue
        for command, expected in session(step.text):
            printed = shell(command, tmp_path)
            assert prints(expected, printed), f"$ {command}\n{printed}"
