"""Runs with waivers without pytest: in this process, in a child, from the command line; and their bundles."""

from __future__ import annotations

import json
import sys
from datetime import date

import pytest

from vmm_conformance import check
from vmm_conformance.bundling import waiving
from vmm_conformance.bundling.archive import MANIFEST, BundleError, read, write
from vmm_conformance.bundling.pack import pack
from vmm_conformance.bundling.result import State
from vmm_conformance.bundling.verify import verify
from vmm_conformance.cli import main
from vmm_conformance.running import endings

OWN = """
from vmm_conformance.related import all_mutants

off = next(mutant for mutant in all_mutants() if mutant.id == "flags-unknown-is-off").subject
"""
WAIVER = """
[[waiver]]
invariant = "FLAG-148"
subject = "own_waived:off"
reason = "an unknown word reads as off"
link = "https://example.org/issues/7"
expires = 2027-06-30
"""
TODAY = date(2027, 6, 30)
SPEC = "own_waived:off"


def stand_in(folder, patch):
    patch.chdir(folder)
    patch.setattr(sys, "path", [*sys.path, str(folder)])
    (folder / "own_waived.py").write_text(OWN)
    (folder / "waivers.toml").write_text(WAIVER)
    sys.modules.pop("own_waived", None)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of its own to stand in, with a subject that breaks FLAG-148 alone, and a waiver for that."""
    stand_in(tmp_path, monkeypatch)
    return tmp_path


def run(**changes):
    return check(SPEC, **{"budget": "smoke", "waivers": "waivers.toml", "today": TODAY, **changes})


def program(own):
    """The program of the failure, as a run leaves it."""
    check(SPEC, budget="smoke", report=own / "red")
    name = "FLAG-148-own_waived-off.json"
    (own / name).write_text((own / "red" / "programs" / name).read_text())
    return name


def test_check_takes_waivers(own):
    assert check(SPEC, budget="smoke").exit_code == 1
    made = run()
    assert (made.overall.told(made.waived), made.exit_code) == ("conformant-with-waivers(1)", 0)
    assert run(today=date(2027, 7, 1)).exit_code == 1
    (own / "waivers.toml").write_text("[[waiver]]\nreason = 3\n")
    with pytest.raises(ValueError, match=r"waivers.toml: waiver 1: 'invariant' is missing; accepted keys: "):
        run()


def test_a_program_makes_the_failure_sure_and_is_held_to_it(own):
    (own / "waivers.toml").write_text(WAIVER + f'program = "{program(own)}"\n')
    made = run()
    assert made[SPEC].items[-1].kind == "waiver"
    assert "flags/waiver/1-FLAG-148[own_waived:off]" in made[SPEC]["FLAG-148"].items
    assert made.exit_code == 0
    harmless = json.loads((own / "FLAG-148-own_waived-off.json").read_text()) | {"operations": []}
    (own / "FLAG-148-own_waived-off.json").write_text(json.dumps(harmless))
    made = run()
    assert made.exit_code == 1
    assert "breaks nothing any more" in made.reasons[1]


def test_the_command_and_its_exit_status(own, capsys):
    arguments = ["run", "--subject", SPEC, "--budget", "smoke", "--waivers", "waivers.toml"]
    assert main([*arguments, "--today", "2027-06-30"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "      FLAG-148 waived: an unknown word reads as off" in "\n".join(out)
    assert out[-1].endswith(": conformant-with-waivers(1)")
    assert not any("replay" in line and "screen" in line for line in out)
    assert main([*arguments, "--today", "2027-07-01"]) == 1
    assert "expired on 2027-06-30" in capsys.readouterr().out
    assert main([*arguments[:-1], "none.toml"]) == 2
    assert capsys.readouterr().err.startswith("vmm-conformance run: no file of waivers 'none.toml'")


def test_a_child_process_comes_to_the_same(own):
    (own / "waivers.toml").write_text(WAIVER + f'program = "{program(own)}"\n')
    made = run(isolation="process")
    assert made.overall.told(made.waived) == "conformant-with-waivers(1)"


READ = {"op": "read", "options": {"skip_remap": "1"}}
KILLED = "vmm_reference.mutants.violent:killed"


def test_a_crash_can_be_waived_and_its_bundle_verifies(own, monkeypatch):
    monkeypatch.setattr(endings, "MOST", 1)
    monkeypatch.setattr(endings, "SHRINKING", {"crash": 1})
    monkeypatch.setattr(endings, "CONFIRMING", {"crash": 1})
    reads = {"version": 1, "contract": "flags", "configuration": {"revision": "flags"}, "operations": [READ] * 3}
    (own / "reads.json").write_text(json.dumps(reads))
    more = 'program = "reads.json"\nkind = "crash"\nmessage = "*killed by SIGKILL in operation 2, read *"\n'
    (own / "waivers.toml").write_text(WAIVER.replace(SPEC, KILLED) + more)
    asked = {"waivers": "waivers.toml", "today": TODAY, "isolation": "process"}
    made = check(KILLED, budget="smoke", report=own / "report", **asked)
    assert made.overall.told(made.waived) == "conformant-with-waivers(1)"
    assert [item.kind for item in made[KILLED].items if item.waived] == ["exploration", "waiver"]
    packed = pack(own / "report", own / "one.vmm.zip")
    pieces = list(verify(packed, trusted=[KILLED], quick=True))
    assert not [piece for piece in pieces if piece.state is State.DIFFERS]
    report = json.loads(read(packed).members["report.json"])
    for change in ({"state": "stopped"}, {"endings": []}):
        for item in report["subjects"][0]["items"]:
            item.update(change)
        (told,) = [piece for piece in waiving.consistency(report) if piece.state is State.DIFFERS]
        assert "ended as waived, and no waiver in force says so" in told.detail


def test_a_crash_that_is_waived_excuses_no_failure(bundled):
    def change(report):
        report["waivers"]["entries"][0]["kind"] = "crash"

    found = [piece.detail for piece in verify(bundled(change), quick=True) if piece.state is State.DIFFERS]
    assert f"FLAG-148 of {SPEC} waived, and no waiver is in force" in found


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of a waived run."""
    folder = tmp_path_factory.mktemp("waived")
    with pytest.MonkeyPatch.context() as patch:
        stand_in(folder, patch)
        (folder / "waivers.toml").write_text(WAIVER + f'program = "{program(folder)}"\n')
        run(report=folder / "report")
    return pack(folder / "report", folder / "one.vmm.zip")


@pytest.fixture
def bundled(bundle, own):
    """The same with what is changed in it."""
    path = own / "one.vmm.zip"

    def change(how):
        old = read(bundle)
        members = {key: data for key, data in old.members.items() if key != MANIFEST}
        report = json.loads(members["report.json"])
        how(report)
        members["report.json"] = json.dumps(report).encode()
        write(path, members, {"catalogue": old.manifest["catalogue"], "environment": {}})
        return path

    return change


def test_a_bundle_with_waivers_verifies(bundled):
    told = {piece.what: piece for piece in verify(bundled(lambda report: None), trusted=[SPEC])}
    assert {piece.state for piece in told.values()} == {State.SAME}
    assert told["waivers"].detail == "1 waiver, on 2027-06-30"
    assert told[f"waivers for {SPEC}"].detail == "1 waiver settled again"


def lengthened(report):
    report["waivers"]["today"] = "2027-07-01"


def widened(report):
    report["waivers"]["entries"][0]["subject"] = "other"


def renamed(report):
    report["waivers"]["entries"][0]["invariant"] = "FLAG-149"


def taken_out(report):
    report["waivers"] = None


def said_otherwise(report):
    report["waivers"]["entries"][0]["settled"][0]["sentence"] = "all is well"


@pytest.mark.parametrize(
    ("change", "what", "told"),
    [
        (lengthened, "waivers", "other ones have expired on 2027-07-01"),
        (widened, "waivers", "other ones cover own_waived:off: 1"),
        (renamed, "waivers", "FLAG-148 of own_waived:off waived, and no waiver is in force"),
        (taken_out, "waivers", "none are in the report, and yet FLAG-148 waived"),
        (said_otherwise, f"waiver 1 for {SPEC}", "when run again the waiver for FLAG-148 is in force"),
    ],
)
def test_a_bundle_whose_waivers_were_changed_is_named(bundled, change, what, told):
    found = verify(bundled(change), trusted=[SPEC], quick=change is not said_otherwise)
    pieces = [piece for piece in found if piece.state is State.DIFFERS]
    assert any(piece.what == what and told in piece.detail for piece in pieces), pieces


def test_a_day_that_there_is_not_is_no_report(bundled):
    def change(report):
        report["waivers"]["entries"][0]["expires"] = "2027-02-31"

    with pytest.raises(BundleError, match=r"report.json: \$.waivers: "):
        list(verify(bundled(change)))
