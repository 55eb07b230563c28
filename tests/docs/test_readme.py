"""The README's examples do what it says: its files are written out of it, and its commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from told_pages import DOCS, GENERATED

README = Path(__file__).parents[2] / "README.md"
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL))
INI = "[pytest]\nvmm_subject = my_pool:pool\n"
LIMIT = 40


@pytest.fixture
def project(tmp_path):
    """A folder with the README's files. Returns what runs a module with arguments in it."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert INI in README.read_text("utf-8").replace("    ", "")
    (tmp_path / "pytest.ini").write_text(INI, "utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VMM_", "PYTEST_"))}

    def run(module, *arguments):
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    run.folder = tmp_path
    return run


@pytest.mark.parametrize("name", FILES)
def test_example_is_short(name):
    lines = [line for line in FILES[name].splitlines() if line.strip()]
    assert len(lines) < LIMIT


def test_both_contracts_have_an_example():
    assert list(FILES) == ["my_pool.py", "my_executor.py"]


def test_allocator_conforms_under_pytest(project):
    done = project("pytest", "--pyargs", "vmm_suites", "--vmm-budget", "dev", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "ALLOCATOR  11 pass, 12 not applicable" in done.stdout
    assert "my-pool: conformant (hardened)" in done.stdout


def test_executor_does_not_and_its_failure_replays(project):
    done = project("vmm_conformance.cli", "run", "--subject", "my_executor:remapper", "--budget", "smoke")
    assert done.returncode == 1, done.stderr
    assert "remapper: not conformant" in done.stdout
    replay = re.search(r"vmm-conformance (replay \S+/STEP-85\S+ --subject \S+)", README.read_text("utf-8"))
    again = project("vmm_conformance.cli", *replay[1].split())
    assert again.returncode == 1, again.stderr
    assert "STEP-85" in again.stdout
    assert "nothing has moved since the last step, and yet the driver is called" in " ".join(again.stdout.split())


def test_links_lead_somewhere():
    for page in (README, *DOCS.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
            assert leads_somewhere(page, target), f"{page.name}: {target}"


def leads_somewhere(page, target):
    """Whether the target is a file, a page of the site that is generated, or lies elsewhere on the web."""
    if target.startswith("https://"):
        return True
    place = (page.parent / target).resolve()
    return place.exists() or (DOCS in place.parents and place.relative_to(DOCS).as_posix() in GENERATED)


def test_the_test_in_the_page_on_adapters_passes(project):
    page = README.parent.joinpath("docs", "adapters.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", page.partition("## Tests of your own")[2], re.DOTALL)[1]
    (project.folder / "test_own.py").write_text(f"import my_pool\n{code}", "utf-8")
    done = project("pytest", "test_own.py", "-p", "no:cacheprovider")
    assert "1 passed" in done.stdout, done.stdout
