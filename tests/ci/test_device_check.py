"""``ci/device_check.sh`` over drivers that are here, without wheels: the project is taken as it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmm_conformance.drivers.opening import facts

SCRIPT = Path(__file__).parents[2] / "ci" / "device_check.sh"


@pytest.fixture
def check(tmp_path):
    """Runs the script in an empty folder."""

    def run(*arguments, **environment):
        command = ["bash", SCRIPT, "--python", sys.executable, "--report", "out", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | environment)

    return run


@pytest.mark.parametrize("driver", ["host", "emulated-cuda,devices=1"])
def test_it_leaves_all_that_was_found_and_says_whether_a_device_was_there(check, driver, tmp_path):
    if facts(driver).missing:
        pytest.skip(facts(driver).missing)
    done = check("--driver", driver, "--budget", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr

    summary = (tmp_path / "out" / "summary.txt").read_text("utf-8").splitlines()
    assert summary == done.stdout.splitlines()[-3:-1]
    for line, verdict in zip(summary, ("driver: hardened", "reference: partial"), strict=True):
        assert line.startswith(f"{verdict} over {driver} (no device: the driver is the host's or emulated; ")
    assert "capabilities, as declared and as tried" in (tmp_path / "out" / "probe.txt").read_text("utf-8")
    for suite, contracts in (("driver", {"driver"}), ("reference", {"skip-remap", "flags"})):
        report = json.loads((tmp_path / "out" / suite / "report.json").read_text("utf-8"))
        assert (report["driver"]["name"], report["driver"]["real"]) == (driver, False)
        (subject,) = report["subjects"]
        judged = {entry["id"]: entry["contract"] for entry in subject["invariants"] if entry["verdict"] == "pass"}
        assert set(judged.values()) == contracts
    assert (tmp_path / "out" / "index.html").is_file()


STAND_IN = """#!/bin/sh
case "$*" in
  *cli\\ probe*) exit {0} ;;
  *subject\\ host*) exit {1} ;;
  *subject\\ reference*) exit {2} ;;
esac
"""


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [((0, 0, 3), 0), ((1, 0, 3), 1), ((0, 1, 3), 1), ((0, 0, 1), 1), ((0, 139, 0), 1), ((3, 0, 0), 3)],
)
def test_its_status_is_that_of_the_worst_step(check, tmp_path, statuses, expected):
    stand_in = tmp_path / "python"
    stand_in.write_text(STAND_IN.format(*statuses), "utf-8")
    stand_in.chmod(0o755)
    done = check("--driver", "host", "--python", str(stand_in))
    assert done.returncode == expected, done.stdout + done.stderr
    assert f"== probe: exit status {statuses[0]} after " in done.stdout


def test_what_could_not_be_judged_is_told_and_is_its_status(check, tmp_path):
    stand_in = tmp_path / "python"
    cases = f'*probe*) ;; *cli*) exit 3 ;; *) exec {sys.executable} "$@" ;;'
    stand_in.write_text(f'#!/bin/sh\ncase "$*" in {cases} esac\n', "utf-8")
    stand_in.chmod(0o755)
    entries = [{"id": "DRIVER-1", "verdict": "unknown"}, {"id": "DRIVER-2", "verdict": "not exercised"}]
    told = {"driver": {"name": "host", "real": False, "versions": {}}, "overall": "partial"}
    report = tmp_path / "out" / "driver" / "report.json"
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps({**told, "subjects": [{"invariants": entries}]}), "utf-8")
    done = check("--driver", "host", "--python", str(stand_in))
    assert done.returncode == 1, done.stdout + done.stderr
    summary = (tmp_path / "out" / "summary.txt").read_text("utf-8").splitlines()
    assert summary[0] == "driver: could not be judged: DRIVER-1"


def test_a_suite_that_left_no_report_was_not_judged(check, tmp_path):
    stand_in = tmp_path / "python"
    stand_in.write_text(f'#!/bin/sh\ncase "$*" in *cli*) ;; *) exec {sys.executable} "$@" ;; esac\n', "utf-8")
    stand_in.chmod(0o755)
    done = check("--driver", "host", "--python", str(stand_in))
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tmp_path / "out" / "summary.txt").read_text("utf-8") == "driver: no report\nreference: no report\n"


@pytest.mark.parametrize("arguments", [("--driver",), ("--speed", "9")])
def test_what_it_does_not_take_is_answered_with_its_usage(check, arguments):
    done = check(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ci/device_check.sh [--driver cuda]" in done.stderr


def test_without_a_device_it_ends_at_once(check):
    done = check("--driver", "cuda", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3
    assert "the driver 'cuda'" in done.stdout
