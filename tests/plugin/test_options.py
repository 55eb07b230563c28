"""Options in their three forms, and one line for what does not exist."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--vmm-subject", "nobody"],
            "ERROR: unknown subject 'nobody'; installed: *reference*; or give module:attribute or proc:COMMAND",
        ),
        (["--vmm-subject", "own:nothing"], "ERROR: subject 'own:nothing' cannot be had: *no attribute 'nothing'"),
        (["--vmm-subject", "own:Empty"], "ERROR: subject 'own:Empty' offers no contract; give it one of *"),
        (["--vmm-subject", "own:good,size"], "ERROR: subject 'own:good,size': expected key=value behind the comma*"),
        (["--vmm-subject", "reference,size=4"], "ERROR: subject 'reference,size=4' takes no parameters*"),
        (["--vmm-subject", "host,memory=4G"], "ERROR: subject 'host,memory=4G': driver 'host,memory=4G': host takes*"),
        (["--vmm-driver", "tpu"], "ERROR: unknown driver 'tpu'; accepted: host*"),
        (["--vmm-budget", "huge"], "ERROR: unknown budget 'huge'; accepted: smoke, dev, ci, nightly"),
        (["--vmm-invariant", "NOPE"], "ERROR: no invariant begins with 'NOPE'; areas are *FLAG*"),
        (["--vmm-shard", "3/2"], "ERROR: shard must be K/N with K from 1 to N, as in 1/2, got '3/2'"),
        (["--vmm-seed", "x"], "ERROR: seed must be a whole number from 0 up, got 'x'"),
        (["--vmm-replay", "none.json"], "ERROR: no program file 'none.json'; give the path of a JSON file"),
    ],
)
def test_what_does_not_exist_is_one_line(own, arguments, message):
    one_line(own.runpytest_inprocess("--pyargs", "vmm_suites", *arguments), message)


def test_it_is_one_line_with_workers_too(own):
    result = own.runpytest_subprocess("--pyargs", "vmm_suites", "--vmm-budget", "huge", "-n1")
    one_line(result, "ERROR: unknown budget 'huge'; accepted: smoke, dev, ci, nightly")


def one_line(result, message):
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])
    assert len([line for line in result.stderr.lines if line.strip()]) == 1


def test_a_broken_program_file_names_the_position(own):
    head = '{"version": 1, "contract": "flags", "configuration": {"revision": "flags"}'
    own.makefile(".json", broken=head + ', "operations": [{"op": "sing"}]}')
    result = own.runpytest_inprocess("--pyargs", "vmm_suites", "--vmm-replay", "broken.json")
    one_line(result, "ERROR: broken.json: $.operations[[]0].op: unknown operation*sing*accepted: *")


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "workers"])
def test_in_an_ini_file_it_fails_the_suites_alone(own, workers):
    own.makeini("[pytest]\nvmm_budget = huge\n")
    own.makepyfile(test_other="def test_other(): pass")
    assert own.runpytest_subprocess("test_other.py", *workers).ret == 0
    result = own.runpytest_subprocess("--pyargs", "vmm_suites", *workers)
    result.stdout.fnmatch_lines(["*unknown budget 'huge'; accepted: smoke, dev, ci, nightly"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert result.ret in (1, 2)


def test_ini_and_environment_forms(own, monkeypatch):
    own.makeini("[pytest]\nvmm_subject =\n    own:good\n    own:deaf\nvmm_budget = smoke\nvmm_seed = 3\n")
    result = own.runpytest_inprocess("--pyargs", "vmm_suites")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["good 1.2 over host (budget smoke, seed 3, *"])
    monkeypatch.setenv("VMM_SUBJECT", "own:good")
    monkeypatch.setenv("VMM_SEED", "4")
    result = own.runpytest_inprocess("--pyargs", "vmm_suites")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("deaf 1.2*")
    result.stdout.fnmatch_lines(["good 1.2 over host (budget smoke, seed 4, *"])
    result = own.runpytest_inprocess("--pyargs", "vmm_suites", "--vmm-seed", "5")
    result.stdout.fnmatch_lines(["good 1.2 over host (budget smoke, seed 5, *"])


def test_help_lists_the_options(own):
    result = own.runpytest_inprocess("--help")
    result.stdout.fnmatch_lines(
        [
            "conformance of GPU*(vmm-conformance):",
            "*--vmm-subject=SPEC*",
            "*--vmm-hardened*",
            "*vmm_subject (linelist):*",
        ]
    )


def test_the_marker_is_registered(own):
    result = own.runpytest_inprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.vmm(contract=*"])


LIGHT = """
import sys

def test_light():
    heavy = ("hypothesis", "vmm_suites", "vmm_reference")
    assert not [name for name in sys.modules if name.startswith(heavy)]
    ours = sorted(name for name in sys.modules if name.startswith("vmm_conformance"))
    light = ("vmm_conformance", "vmm_conformance.invocation", "vmm_conformance.plugin", "vmm_conformance.pytest_keys",
             "vmm_conformance.width")  # fmt: skip
    assert ours == sorted(light)
"""


def test_installed_but_unused_it_imports_nothing_heavy(own):
    own.makepyfile(test_light=LIGHT)
    result = own.runpytest_subprocess("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= vmm-conformance =*")


def test_xdist_may_be_missing(own):
    own.makepyfile("def test_nothing(): pass")
    own.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1)
