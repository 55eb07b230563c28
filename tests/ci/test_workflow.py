"""The template for GitHub Actions: valid by the schema of workflows, and its steps run, over the host driver."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

CI = Path(__file__).parents[2] / "ci"
WORKFLOW = CI / "github-actions.yml"
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
GH = """#!/bin/sh
# Stands for gh: the last run is number 41 if there is one, and its artefact lies in a folder.
case "$1 $2" in
  "run list") [ ! -d "$ARTEFACTS" ] || echo 41 ;;
  "run download") [ "$3 $4 $5 $6 $7" = "41 --name night --dir last-night" ] && cp -r "$ARTEFACTS" last-night ;;
esac
"""
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
    """``carry_out(job, folder, only, **env)`` runs the steps of a job, or one; returns what each printed."""
    (tmp_path / "bin").mkdir()
    for name, text in (("python3", PYTHON3), ("gh", GH)):
        (tmp_path / "bin" / name).write_text(text, "utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"

    def run(job, folder, only="", **env):
        folder.mkdir(exist_ok=True)
        given = {**os.environ, "PATH": path, **workflow["env"], **workflow["jobs"][job].get("env", {}), **env}
        assert not [value for value in given.values() if "${{" in value]
        printed = {}
        for step in workflow["jobs"][job]["steps"]:
            if "run" in step and only in ("", step["name"]):
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
    rows = workflow["jobs"]["device"]["strategy"]["matrix"]["machine"]
    tested = "\n".join(file.read_text("utf-8") for file in CI.glob("bindings/*.txt")).splitlines()
    bindings = {line for line in tested if line.startswith(("hip-python", "cuda-bindings"))}
    assert {row["binding"] for row in rows} == bindings
    assert {row["driver"] for row in rows} == {"hip", "cuda"}


def test_actions_are_pinned_or_it_is_said_why_not(workflow):
    used = {step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step}
    assert all(re.search(r"@(v\d+|[0-9a-f]{40})$", name) for name in used)
    assert "put its SHA in place of the tag" in WORKFLOW.read_text("utf-8")


WAIVER = """
[[waiver]]
invariant = "DRIVER-8"
driver = "host,quirk=Q-05"
reason = "a range is freed although it is mapped"
link = "https://example.org/issues/7"
expires = 2099-06-30
"""


@pytest.fixture
def night(workflow, carry_out, tmp_path):
    """A folder in which the steps of all shards were carried out, over the host driver with a quirk that is waived."""
    for number, shard in enumerate(workflow["jobs"]["device"]["strategy"]["matrix"]["shard"]):
        folder = tmp_path / f"machine-{number}"
        (folder / "waivers").mkdir(parents=True)
        (folder / "waivers" / "rocm-10-driver.toml").write_text(WAIVER, "utf-8")
        printed = carry_out(
            "device", folder, RUNNER="rocm-10", DRIVER="host,quirk=Q-05", BINDING="hip-python==10", SHARD=shard,
            BUDGET="smoke", SEED="7", SUBJECT="host", PACKAGES="a b",
        )  # fmt: skip
        assert "host,quirk=Q-05 (no device behind it)" in printed["Probe the driver"]
        (tmp_path / "summary" / "shards").mkdir(parents=True, exist_ok=True)
        (folder / "report").rename(tmp_path / "summary" / "shards" / f"shard-{number}")  # as the artefact comes back
    return tmp_path / "summary"


def test_a_night_over_the_host_driver(carry_out, tmp_path, night):
    installed = (tmp_path / "pip.txt").read_text("utf-8").splitlines()
    assert installed == ["-m pip install --quiet a b hip-python==10"] * 2
    summary, before = tmp_path / "summary.md", tmp_path / "artefacts"
    shutil.copytree(night / "shards" / "shard-0", before)  # stands for the night before, which went on but halfway
    asked = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_WORKFLOW": "vmm", "GITHUB_REF_NAME": "main", "GH_TOKEN": ""}
    carry_out("summary", night, **asked, ARTEFACTS=str(before))
    made = json.loads((night / "night" / "rocm-10" / "driver" / "report.json").read_text("utf-8"))
    assert (made["options"]["seed"], made["options"]["shard"], made["overall"]) == (7, "", "conformant-with-waivers(1)")
    assert (night / "night" / "rocm-10" / "subject.vmm.zip").is_file()
    assert (night / "night" / "report.html").is_file()
    told = summary.read_text("utf-8").splitlines()
    assert told[2:4] == [
        "| rocm-10 | host,quirk=Q-05 | host,quirk=Q-05 | False | **conformant-with-waivers(1)** |",
        "| rocm-10 | host | host,quirk=Q-05 | False | **hardened** |",
    ]
    assert [line for line in told if line.startswith("### ")] == ["### rocm-10/driver/", "### rocm-10/subject/"]
    assert "host (host): partial -> hardened" in told


def test_the_first_night_has_none_before_it(carry_out, tmp_path):
    asked = {"GITHUB_WORKFLOW": "vmm", "GITHUB_REF_NAME": "main", "GH_TOKEN": "", "ARTEFACTS": str(tmp_path / "none")}
    assert carry_out("summary", tmp_path, only="The night before", **asked) == {"The night before": ""}
