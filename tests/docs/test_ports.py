"""The page on adapters: what it plugs in for each contract is what the suites find conformant."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from told_pages import DOCS, carry_out, steps

FILES = [step for step in steps(DOCS / "adapters.md") if step.action == "file"]
SUBJECTS = {
    "my_threshold:threshold": "my-threshold: conformant (hardened)",
    "port_memory:memory": "ported-memory: conformant (hardened)",
    "port_allocator:allocator": "ported-allocator: conformant (hardened)",
    "port_scopes:scopes": "ported-scopes: conformant (hardened)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the page, and the library that they are about."""
    made = tmp_path_factory.mktemp("ports")
    for step in FILES:
        carry_out(made, step)
    shutil.copy(Path(__file__).with_name("native_stand_in.py"), made / "native.py")
    return made


@pytest.mark.parametrize("spec", SUBJECTS)
def test_it_conforms(folder, spec):
    command = [sys.executable, "-m", "vmm_conformance.cli", "run", "--subject", spec, "--budget", "dev"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].strip() == SUBJECTS[spec], done.stdout + done.stderr
    assert done.returncode == 0


def test_every_subject_of_the_page_is_run():
    page = (DOCS / "adapters.md").read_text("utf-8")
    told = set(re.findall(r"^    vmm-conformance run --subject (\S+)$", page, re.MULTILINE))
    assert told == set(SUBJECTS)
