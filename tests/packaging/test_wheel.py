"""The wheel, built and installed beside nothing of this repository, runs its suites from an unrelated folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel. What builds it is taken from this environment, so that no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of a fresh environment with the wheel in it; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return python


def run(python, folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VMM_", "PYTEST_", "PYTHON"))}
    return subprocess.run([python, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_contents(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"vmm_conformance", "vmm_reference", "vmm_suites"}
    schemas = ("programs/program", "reporting/report", "reporting/kills", "waivers/waivers", "comparing/diff")
    wanted = ("py.typed", "catalogue/step.toml", *(f"{schema}.schema.json" for schema in schemas))
    assert {f"vmm_conformance/{name}" for name in wanted} <= set(names)
    assert {f"{package}/py.typed" for package in ("vmm_reference", "vmm_suites")} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    assert [name for name in names if name.endswith("LICENSE")]


def test_suites_run_from_an_unrelated_folder(installed, tmp_path):
    where = run(installed, tmp_path, "-c", "import vmm_conformance, vmm_suites; print(vmm_suites.__file__)")
    assert where.stdout.startswith(str(installed.parents[1])), where
    asked = ("--vmm-subject", "reference", "--vmm-budget", "smoke")
    done = run(installed, tmp_path, "-m", "pytest", "--pyargs", "vmm_suites", *asked, "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "reference 0.1.0: conformant" in done.stdout


def test_command_is_installed(installed, tmp_path):
    done = run(installed.with_name("vmm-conformance"), tmp_path, "explain", "STEP-85")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("STEP-85  must")
