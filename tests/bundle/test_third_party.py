"""A subject of a package of its own, installed by pip: run, bundled, and verified by somebody who has it or has not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from told_pages import DOCS, carry_out, steps

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-pool"
version = "{version}"
dependencies = []

[project.entry-points."vmm_conformance.subjects"]
acme-pool = "acme_pool.pool:pool"

[tool.hatch.build.targets.wheel]
packages = ["acme_pool"]
"""


def install(folder: Path, version: str, *, fixed: bool) -> Path:
    """The package with the tutorial's allocator, before or after it is fixed, in a folder of its own."""
    package = folder / f"source-{version}" / "acme_pool"
    package.mkdir(parents=True)
    for step in steps(DOCS / "tutorial.md"):
        if step.name == "pool.py" and (fixed or step.action == "file"):
            carry_out(package, step)
    file = package / "pool.py"
    told = 'name="pool", version="1"'
    assert told in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace(told, f'name="acme-pool", version="{version}"'), "utf-8")
    (package / "__init__.py").touch()
    (package.parent / "pyproject.toml").write_text(PROJECT.format(version=version), "utf-8")
    target = folder / f"site-{version}"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", str(target), str(package.parent)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target


def command(folder: Path, packages: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, run in ``folder`` where ``packages`` are installed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VMM_", "PYTEST_"))}
    if packages is not None:
        environment["PYTHONPATH"] = str(packages)
    call = [sys.executable, "-m", "vmm_conformance.cli", *arguments]
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Two releases of the package: the installed folder and the bundle of each, by version."""
    made = {}
    for version, fixed in (("1.0", False), ("1.1", True)):
        folder = tmp_path_factory.mktemp("acme")
        packages = install(folder, version, fixed=fixed)
        done = command(folder, packages, "run", "--subject", "acme-pool", "--budget", "smoke", "--report", "acme")
        assert done.returncode == (0 if fixed else 1), done.stdout + done.stderr
        packed = command(folder, packages, "bundle", "acme")
        assert packed.returncode == 0, packed.stderr
        made[version] = packages, Path(packed.stdout.strip())
    return made


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_whoever_has_the_package_verifies_all_of_it(released, tmp_path, version):
    packages, bundle = released[version]
    done = command(tmp_path, packages, "verify", str(bundle))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith(f"{bundle}: verified: ")
    assert any(line.startswith("programs of acme-pool from seed 0, budget smoke: same: ") for line in lines)
    if version == "1.0":
        assert "ALLOCATOR-5 of acme-pool, its history: same: judged again from its history" in lines
        assert "ALLOCATOR-5 of acme-pool, its program: same: broken again when it is run" in lines


def test_whoever_has_not_still_judges_the_histories(released, tmp_path):
    _, bundle = released["1.0"]
    done = command(tmp_path, None, "verify", str(bundle))
    assert done.returncode == 3
    assert "ALLOCATOR-5 of acme-pool, its history: same: judged again from its history" in done.stdout
    assert "acme-pool is no installed name" in done.stdout


def test_whoever_has_another_release_runs_nothing_again(released, tmp_path):
    newer, older_bundle = released["1.1"][0], released["1.0"][1]
    done = command(tmp_path, newer, "verify", str(older_bundle))
    assert done.returncode == 3
    assert "not recomputed: installed is acme-pool 1.1" in done.stdout


def test_one_page_shows_both_releases(released, tmp_path):
    pytest.importorskip("jinja2")
    reports = [str(bundle.with_name("acme")) for _, bundle in released.values()]
    done = command(tmp_path, None, "report", *reports, "-o", "acme.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "acme.html").read_text("utf-8")
    assert "acme-pool" in page
    assert "1.0" in page
    assert "1.1" in page
    assert "takes away memory that the" in " ".join(page.split())
    report = json.loads((Path(reports[0]) / "report.json").read_text("utf-8"))
    assert report["subjects"][0]["subject"]["version"] == "1.0"
