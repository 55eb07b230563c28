"""The template for GitHub Actions: valid by the schema of workflows, and its steps run, over the host driver."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

CI = Path(__file__).parents[2] / "ci"
WORKFLOW = CI / "github-actions.yml"
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
PYTHON3 = f"""#!/bin/sh
# Stands for python3 -m venv DIR: the environment is the one of these tests, and pip only writes down its words.
mkdir -p "$3/bin"
printf '#!/bin/sh\\ncase "$*" in *"-m pip "*) echo "$*" >> ../pip.txt ;; *) exec {sys.executable} "$@" ;; esac\\n' \
  > "$3/bin/python"
printf '#!/bin/sh\\nexec {sys.executable} -P -m vmm_conformance.cli "$@"\\n' > "$3/bin/vmm-conformance"
chmod +x "$3"/bin/*
"""


@pytest.fixture(scope="module")
def workflow():
    return YAML(typ="safe").load(WORKFLOW)


@pytest.fixture
def carry_out(workflow, tmp_path):
    """``carry_out(job, folder, **env)`` runs the steps of a job as a runner does; returns what each printed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(PYTHON3, "utf-8")
    (tmp_path / "bin" / "python3").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"

    def run(job, folder, **env):
        folder.mkdir(exist_ok=True)
        given = {**os.environ, "PATH": path, **workflow["env"], **workflow["jobs"][job].get("env", {}), **env}
        assert not [value for value in given.values() if "${{" in value]
        printed = {}
        for step in workflow["jobs"][job]["steps"]:
            if "run" in step:
                command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
                done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True)
                assert done.returncode == 0, (step["name"], done.stdout, done.stderr)
                printed[step["name"]] = done.stdout
        return printed

    return run


def test_it_is_a_workflow():
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_shell_is_given_nothing_but_variables(workflow):
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert not EXPRESSION.search(step.get("run", "")), step["name"]


def test_the_bindings_are_those_that_are_tested(workflow):
    rows = workflow["jobs"]["device"]["strategy"]["matrix"]["include"]
    tested = "\n".join(file.read_text("utf-8") for file in CI.glob("bindings/*.txt")).splitlines()
    bindings = {line for line in tested if line.startswith(("hip-python", "cuda-bindings"))}
    assert {row["binding"] for row in rows} == bindings
    assert {row["driver"] for row in rows} == {"hip", "cuda"}


def test_a_night_over_the_host_driver(carry_out, tmp_path):
    night, summary = tmp_path / "night", tmp_path / "summary.md"
    night.mkdir()
    printed = carry_out(
        "device", tmp_path / "rocm-10",
        DRIVER="host", BINDING="hip-python==10", BUDGET="smoke", SEED="7", SUBJECT="host", PACKAGES="a b",
    )  # fmt: skip
    assert (tmp_path / "pip.txt").read_text("utf-8") == "-m pip install --quiet a b hip-python==10\n"
    assert "host (no device behind it)" in printed["Probe the driver"]
    (tmp_path / "rocm-10" / "report").rename(night / "rocm-10")  # as the artefact comes back
    assert (night / "rocm-10" / "subject.vmm.zip").is_file()
    assert json.loads((night / "rocm-10" / "subject" / "report.json").read_text("utf-8"))["options"]["seed"] == 7

    carry_out("summary", tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert (tmp_path / "night.html").is_file()
    assert summary.read_text("utf-8").splitlines()[2:] == [
        "| rocm-10 | host | host | False | **hardened** |",
        "| rocm-10 | host | host | False | **hardened** |",
    ]
