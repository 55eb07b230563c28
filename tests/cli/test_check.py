"""The suites as a function."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

import vmm_conformance
from vmm_conformance import Report, check
from vmm_conformance.contracts import Settings
from vmm_reference.subject import reference

GOOD = SimpleNamespace(name="good", version="1.2", flags=reference.flags)
DEAF = SimpleNamespace(
    name="deaf", flags=lambda revision: SimpleNamespace(read=lambda platform, environment, options: Settings(False, 0))
)


def test_a_good_subject():
    report = check(GOOD, budget="smoke")
    assert isinstance(report, Report)
    assert report.overall.value == "hardened"
    assert report["good"].subject.version == "1.2"


def test_a_broken_one(tmp_path):
    report = check(DEAF, budget="smoke", report=tmp_path / "report")
    assert report.exit_code == 1
    assert json.loads((tmp_path / "report" / "report.json").read_text())["overall"] == "not conformant"


def test_two_subjects_of_one_name_are_not_mixed_up():
    other = SimpleNamespace(name="good", flags=DEAF.flags)
    assert [check(subject, budget="smoke").exit_code for subject in (GOOD, other, GOOD)] == [0, 1, 0]


def test_contracts_leave_others_out():
    report = check("reference", contracts=["flags"], budget="smoke")
    assert report["reference"]["FLAG-147"].verdict.value == "pass"
    assert report.overall.value == "partial"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "huge"}, "unknown budget 'huge'; accepted: smoke, dev, ci, nightly"),
        ({"driver": "tpu"}, "unknown driver 'tpu'; accepted: host"),
        ({"contracts": ["tea"]}, "unknown contract 'tea'; accepted: driver, allocator, skip-remap, flags"),
        ({"invariant": "TEA"}, "no invariant begins with 'TEA'; areas are "),
    ],
)
def test_what_does_not_exist_says_what_does(arguments, message):
    with pytest.raises(ValueError, match=message):
        check(GOOD, **arguments)


def test_an_unknown_subject_says_what_is_installed():
    with pytest.raises(ValueError, match="unknown subject 'nobody'; installed: "):
        check("nobody")


def test_the_package_loads_nothing_until_asked():
    script = "import sys, vmm_conformance; print([n for n in sys.modules if n.startswith('vmm_conformance.')])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_the_version_and_unknown_names():
    assert vmm_conformance.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        vmm_conformance.nothing  # noqa: B018
