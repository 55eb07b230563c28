"""The command line: what it prints, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.cli import main
from vmm_conformance.related import all_mutants
from vmm_suites.scenarios.vmm_allocator import SCENARIOS

OWN = """
from vmm_conformance.contracts import Settings
from vmm_reference.subject import reference

class Good:
    name, version = "good", "1.2"

    def flags(self, revision):
        return reference.flags(revision)

class Deaf(Good):
    name = "deaf"

    def flags(self, revision):
        return self

    def read(self, platform, environment, options):
        return Settings(False, 0)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of its own to stand in, with the module ``own_cli``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_cli.py").write_text(OWN)
    sys.modules.pop("own_cli", None)
    return tmp_path


@pytest.fixture
def command(own, capsys):
    """Runs the command; returns the exit status, the output and the errors."""

    def run(*arguments):
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run


def test_run_good(command):
    status, out, err = command("run", "--subject", "own_cli:Good", "--budget", "smoke")
    assert status == 0
    assert out.splitlines()[0].startswith("good 1.2 over host (budget smoke, seed 0, catalogue ")
    assert out.splitlines()[-1] == "  good 1.2: conformant (hardened)"
    assert err == ""  # nothing to say: all went well, and quickly


def test_run_broken(command, own):
    status, out, err = command("run", "--subject", "own_cli:Deaf", "--budget", "smoke", "--report", "report")
    assert status == 1
    assert err.startswith("flags/explore/anything[own_cli:Deaf]: breaks FLAG-")
    assert len(err.splitlines()) <= 9  # an invariant is named where it is first broken, and not again
    assert "\nsubject        deaf 1.2 over host\n" in out
    assert out.splitlines()[-1] == "  deaf 1.2: not conformant"
    assert json.loads((own / "report" / "report.json").read_text())["overall"] == "not conformant"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_is_broken_is_as_wide_as_the_terminal(command, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    _, run, _ = command("run", "--subject", "own_cli:Deaf", "--budget", "smoke")
    _, explained, _ = command("explain", "ALLOCATOR-5")
    for text in (run, explained):
        lines = [line for line in text.splitlines() if "programs/" not in line]  # commands are not broken
        assert width - 25 < max(map(len, lines)) <= width


def test_run_partial(command):
    status, out, _ = command("run", "--subject", "own_cli:Good", "--budget", "smoke", "--invariant", "FLAG-15")
    assert status == 3
    assert out.splitlines()[-1] == "  good 1.2: partial"


def test_run_reads_the_environment(command, monkeypatch):
    monkeypatch.setenv("VMM_SUBJECT", "own_cli:Good")
    monkeypatch.setenv("VMM_BUDGET", "smoke")
    assert command("run")[0] == 0


def test_replay(command, own):
    command("run", "--subject", "own_cli:Deaf", "--budget", "smoke")
    (file, *_) = sorted((own / ".vmm" / "programs").glob("*.json"))
    status, out, _ = command("replay", str(file), "--subject", "own_cli:Deaf")
    assert status == 1
    assert out.splitlines()[0].endswith("  must, documented")
    assert f"vmm-conformance replay {file} --subject own_cli:Deaf" in out
    status, out, _ = command("replay", str(file), "--subject", "own_cli:Good")
    assert status == 0
    assert out.startswith("replay[own_cli:Good]: no findings; the program puts ")


def test_list(command):
    status, out, _ = command("list", "FLAG")
    assert status == 0
    assert out.splitlines()[0] == "FLAG-147      must, documented; contract flags"
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1] == f"{len(catalogue().matching('FLAG'))} invariants in catalogue {catalogue().version}"


def test_list_json(command):
    status, out, _ = command("list", "FLAG", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["catalogue"] == catalogue().version
    first = data["invariants"][0]
    assert first["id"] == "FLAG-147"
    assert first["checkers"] == ["flags"]
    assert first["scenarios"]
    assert first["mutants"]


def test_explain(command):
    status, out, _ = command("explain", "FLAG-147")
    assert status == 0
    assert out.startswith("FLAG-147  must, documented; contract flags\n  ")
    for key in ("why", "counts when", "source", "checkers", "scenarios", "mutants"):
        assert f"\n{key}  " in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--subject", "nobody"], "vmm-conformance run: unknown subject 'nobody'; installed: "),
        (["run", "--budget", "huge"], "vmm-conformance run: unknown budget 'huge'; accepted: smoke, dev, ci, nightly"),
        (["run", "--seed", "x"], "vmm-conformance run: seed must be a whole number from 0 up, got 'x'"),
        (["list", "NOPE"], "vmm-conformance list: no invariant begins with 'NOPE'; areas are "),
        (
            ["explain", "FLAG-1"],
            "vmm-conformance explain: no invariant 'FLAG-1'; `vmm-conformance list` shows the known",
        ),
        (["replay", "none.json"], "vmm-conformance replay: no program file 'none.json'; give the path of a JSON file"),
        (
            ["mutants", "--contract", "tea"],
            "vmm-conformance mutants: no mutants of the contract 'tea'; there are some of ",
        ),
    ],
)
def test_what_does_not_exist_is_one_line_and_2(command, arguments, message):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_a_program_for_another_contract(command, own):
    program = {"version": 1, "contract": "driver", "configuration": {}, "operations": []}
    (own / "program.json").write_text(json.dumps(program))
    status, _, err = command("replay", "program.json", "--subject", "own_cli:Good")
    assert status == 2
    assert err == (
        "vmm-conformance replay: the program is for the contract driver,"
        " which own_cli:Good does not offer; it offers flags\n"
    )


@pytest.mark.parametrize("name", ["list", "explain", "run", "replay", "mutants"])
def test_help_teaches_by_example(command, name):
    status, out, _ = command(name, "--help")
    assert status == 0
    assert f"example:\n  vmm-conformance {name}" in out


def test_help_says_what_the_exit_status_means(command):
    status, out, _ = command("--help")
    assert status == 0
    assert "exit status: 0 conformant, 1 not conformant, 2 usage, 3 partial or unknown" in out


def test_a_contract_that_is_none_is_a_usage_error(command):
    status, _, err = command("run", "--contract", "tea")
    assert (status, err.partition(";")[0]) == (2, "vmm-conformance run: unknown contract 'tea'")


def test_no_command_is_a_usage_error(command):
    status, _, err = command()
    assert status == 2
    assert "the following arguments are required: COMMAND" in err


def test_a_reader_that_has_seen_enough(own):
    script = "from vmm_conformance.cli import main; raise SystemExit(main(['list']))"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


def test_mutants_beside_upstream(command, monkeypatch):
    """One of two known-bad allocators breaks what upstream tests; the suites find both."""
    both = [mutant for mutant in all_mutants() if mutant.id in ("alloc-active-is-precondition", "alloc-all-frees")]
    monkeypatch.setattr("vmm_conformance.commands.all_mutants", lambda: both)
    status, out, _ = command("mutants", "--only", "upstream", "--budget", "dev", "--seed", "0", "1")
    told = sum(scenario.id.startswith("upstream-") for scenario in SCENARIOS)
    assert status == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["vmm-allocator", str(told), "2", "1", "2"],
        ["all", str(told), "2", "1", "2"],
    ]
