"""The worked example of docs/how-to/extend.md, carried out on a copy: it is short, and it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from told_pages import DOCS, carry_out, steps

ROOT = Path(__file__).parents[2]
STEPS = steps(DOCS / "how-to" / "extend.md")
LIMIT = 40


@pytest.fixture
def copy(tmp_path):
    """A copy of the packages with the example carried out. Returns what runs Python code on it."""
    for name in ("vmm_conformance", "reference", "suites"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for step in STEPS:
        carry_out(tmp_path, step)
    path = os.pathsep.join(str(tmp_path / name) for name in ("", "reference", "suites"))
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


def test_it_is_short():
    written = [
        line
        for action, _, text in STEPS
        for line in text.splitlines()
        if line.strip() and (action != "change" or line.startswith("+"))
    ]
    assert 0 < len(written) < LIMIT


def test_it_kills_its_mutant_and_spares_the_reference(copy):
    hunt = (
        "from vmm_conformance.related import all_mutants\n"
        "from vmm_conformance.running.kills import hunt\n"
        "print(hunt(next(m for m in all_mutants() if m.id == 'allocator-commits-the-request'), 0))"
    )
    done = copy("-c", hunt)
    assert "breaks='ALLOCATOR-90', seed=0, killed=True, explored=True" in done.stdout, done.stderr
    run = ("run", "--invariant", "ALLOCATOR-90", "--budget", "smoke")
    done = copy("-m", "vmm_conformance.cli", *run)
    assert "ALLOCATOR  1 pass" in done.stdout, done.stdout + done.stderr
    done = copy("-m", "vmm_conformance.cli", "explain", "ALLOCATOR-90")
    assert "allocator_granules" in done.stdout
    assert "allocator-commits-the-request" in done.stdout
