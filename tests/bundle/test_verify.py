"""Verification computes again what a bundle says, and names each difference."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from vmm_conformance import related
from vmm_conformance.bundling import rerun
from vmm_conformance.bundling.pack import pack
from vmm_conformance.bundling.rejudge import Case, rejudge
from vmm_conformance.bundling.result import State, exit_code
from vmm_conformance.bundling.verify import verify
from vmm_conformance.catalogue import catalogue
from vmm_conformance.cli import main
from vmm_conformance.reporting.environment import version
from vmm_conformance.reporting.kill_table import as_data
from vmm_conformance.running.kills import hunt

ALL = ("own_bundle:good", "own_bundle:deaf", "own_bundle:hasty")


def differences(path, **options):
    return [piece for piece in verify(path, **{"trusted": ALL, **options}) if piece.state is State.DIFFERS]


@pytest.mark.parametrize("name", ["good", "deaf", "hasty"])
def test_an_honest_bundle_is_verified(bundle, name):
    told = []
    pieces = list(verify(bundle(name), trusted=ALL, progress=lambda *each: told.append(each[:2])))
    assert [done for done, _ in told] == sorted(done for done, _ in told)  # of all items together
    assert len({of for _, of in told}) == 1
    assert [piece for piece in pieces if piece.state is not State.SAME] == []
    assert exit_code(pieces) == 0
    told = {piece.what: piece.detail for piece in pieces}
    assert told[f"programs of own_bundle:{name} from seed 0, budget smoke"].endswith("programs run again")
    if name == "hasty":
        assert told["ALLOCATOR-5 of own_bundle:hasty, its history"] == "judged again from its history"
        assert told["ALLOCATOR-5 of own_bundle:hasty, its program"] == "broken again when it is run"


def test_a_subject_that_is_not_installed_is_not_imported(bundle, monkeypatch):
    path = bundle("hasty")
    monkeypatch.delitem(sys.modules, "own_bundle")
    pieces = list(verify(path))
    assert "own_bundle" not in sys.modules
    left = [piece.line() for piece in pieces if piece.state is State.NOT_RECOMPUTED]
    assert len(left) == 2
    assert "own_bundle:hasty is no installed name; say --subject own_bundle:hasty to import and run it" in left[0]
    assert exit_code(pieces) == 3


@pytest.mark.parametrize("spec", ["os:system", "subprocess:Popen,args=true", "reference,x=1"])
def test_a_bundle_cannot_make_anything_run(forged, spec):
    def change(members):
        members["report.json"]["subjects"][0]["subject"]["spec"] = spec

    pieces = list(verify(forged("good", change)))
    assert any(piece.state is State.NOT_RECOMPUTED and "no installed name" in piece.detail for piece in pieces)


def test_a_bundle_cannot_name_a_database(forged, tmp_path):
    def change(members):
        members["report.json"]["options"]["database"] = str(tmp_path / "left")

    list(verify(forged("deaf", change), trusted=ALL))
    assert not (tmp_path / "left").exists()


def test_another_version_is_not_run_again(forged):
    def change(members):
        members["report.json"]["subjects"][0]["subject"]["version"] = "9"

    left = [p for p in verify(forged("good", change), trusted=ALL) if p.state is State.NOT_RECOMPUTED]
    assert [piece.detail for piece in left] == ["installed is good 1.2"]


def test_programs_of_another_generator_are_not_run_again(forged):
    def change(members):
        members["report.json"]["environment"]["packages"]["hypothesis"] = "1.0"

    left = [p for p in verify(forged("good", change), trusted=ALL) if p.state is not State.SAME]
    assert [piece.state for piece in left] == [State.NOT_RECOMPUTED]
    assert left[0].detail == f"made with hypothesis 1.0; installed is {version('hypothesis')}"


def entry_of(members, id):
    return next(e for e in members["report.json"]["subjects"][0]["invariants"] if e["id"] == id)


def test_a_failure_made_a_pass_is_named(forged):
    def change(members):
        broken = entry_of(members, "FLAG-148")
        broken.update(verdict="pass", failures=[], program=None)
        for name in [name for name in members if "FLAG-148" in name]:
            del members[name]

    told = {piece.what: piece.detail for piece in differences(forged("deaf", change))}
    assert told["FLAG-148 of own_bundle:deaf"] == "says pass, is broken when run again"
    assert "reasons should be" in told["verdict of own_bundle:deaf"]


def test_a_verdict_that_does_not_add_up_is_named(forged):
    def change(members):
        report = members["report.json"]
        report["overall"] = report["subjects"][0]["footer"]["overall"] = "hardened"
        report["subjects"][0]["footer"]["reasons"] = []

    told = {piece.what: piece.detail for piece in differences(forged("deaf", change))}
    assert "overall should be not conformant" in told["verdict of own_bundle:deaf"]


def test_a_must_made_a_should_and_one_taken_out_are_named(forged):
    def change(members):
        entry_of(members, "FLAG-148")["level"] = "should"
        invariants = members["report.json"]["subjects"][0]["invariants"]
        invariants.remove(entry_of(members, "FLAG-154"))

    told = {piece.what: piece.detail for piece in differences(forged("good", change))}
    assert told["invariants of own_bundle:good"] == "FLAG-154 missing; FLAG-148 changed"


def test_more_witnesses_than_there_were_are_named(forged):
    def change(members):
        entry_of(members, "FLAG-148")["witnesses"] = 10**6

    (piece,) = differences(forged("good", change))
    assert piece.what == "FLAG-148 of own_bundle:good"
    assert piece.detail.startswith("says put to the test 1000000 times, was ")


def test_items_that_are_not_of_the_plan_are_named(forged):
    def change(members):
        members["report.json"]["subjects"][0]["items"].pop()

    assert any("the plan has other items" in piece.detail for piece in differences(forged("good", change)))


PROGRAM, HISTORY = "programs/ALLOCATOR-5-own_bundle-hasty.json", "histories/ALLOCATOR-5-own_bundle-hasty.jsonl"


def test_another_message_is_named(forged):
    def change(members):
        entry_of(members, "ALLOCATOR-5")["failures"][0]["message"] = "all is well"

    (piece,) = differences(forged("hasty", change), quick=True)
    assert piece.line() == (
        "ALLOCATOR-5 of own_bundle:hasty, its history: differs: the history says otherwise on message"
    )


def test_another_program_is_named(forged):
    def change(members):
        operations = members[PROGRAM]["operations"]
        members[PROGRAM]["operations"] = operations[:1]
        entry_of(members, "ALLOCATOR-5")["failures"][0]["program"]["operations"] = operations[:1]

    told = [piece.detail for piece in differences(forged("hasty", change), quick=True)]
    assert told == [
        "its history is one of other operations",
        "ALLOCATOR-5 is not broken when it is run (deterministic before)",
    ]


def test_a_program_file_that_is_not_the_reports_is_named(forged):
    def change(members):
        members[PROGRAM]["operations"] = []

    (piece,) = differences(forged("hasty", change), quick=True)
    assert piece.detail == f"{PROGRAM} is not the program of the report"


def test_a_program_that_is_none_is_named(forged):
    def change(members):
        for program in (members[PROGRAM], entry_of(members, "ALLOCATOR-5")["failures"][0]["program"]):
            program["operations"] = [{"op": "explode"}]

    told = [piece.detail for piece in differences(forged("hasty", change), quick=True)]
    assert len(told) == 2
    assert all("explode" in detail for detail in told)


def test_a_history_without_the_fault_is_named(forged):
    def change(members):
        lines = members[HISTORY].splitlines()
        members[HISTORY] = "\n".join(line for line in lines if '"unmap"' not in line and '"ran"' not in line)

    told = [piece.detail for piece in differences(forged("hasty", change), quick=True)]
    assert told == ["ALLOCATOR-5 is not broken in its history"]


def test_a_history_that_is_none_is_named(forged):
    def change(members):
        members[HISTORY] = "{}"

    (piece,) = differences(forged("hasty", change), quick=True)
    assert piece.detail.startswith("line 1: no history")


def test_evidence_that_is_missing_is_named(forged):
    (piece,) = differences(forged("hasty", lambda members: members.pop(HISTORY)), quick=True)
    assert piece.detail == f"{HISTORY} is missing"


def monster(size):
    """A history in which a mapping has as many pages as ``size`` allows."""
    head = {"format": "vmm-conformance history", "version": 1, "header": {"d": [["contract", "driver"]]}}
    read_write = {"t": [{"t": [0, {"e": ["contracts.driver.Access", "READ_WRITE"]}]}]}
    events = [
        [0, 0, "subject", "note", ["granularity", {"d": [
            ["device", 0], ["space", 0], ["minimum", 1], ["recommended", 1]]}], 0, None],
        [0, 0, "subject", "reserve", [size, 0, 0], 0, 4096],
        [0, 0, "subject", "create", [size, 0, 0], 0, 7],
        [0, 0, "subject", "map", [4096, size, 7, 0], 0, None],
        [0, 0, "subject", "set_access", [4096, size, read_write], 0, None],
    ]  # fmt: skip
    return "\n".join(map(json.dumps, [head, *events]))


def case(text, what="x"):
    program = {"version": 1, "contract": "driver", "configuration": {}, "operations": []}
    failure = {"invariant": "DRIVER-1", "program": program, "consequences": []}
    return Case(what, failure, text)


def test_a_history_that_eats_memory_is_stopped_and_the_next_is_judged(monkeypatch):
    text = monster(10**12).replace(
        '["contract", "driver"]', '["contract", "driver"], ["configuration", CONFIGURATION]'
    ).replace("CONFIGURATION", configuration())
    one, other = rejudge([case(text), case("{}", "y")], memory=2 << 30)
    assert "takes more than 2048 MiB" in one.detail
    assert other.what == "y"


def configuration():
    from vmm_conformance.history.events import History
    from vmm_conformance.programs.files import from_data
    from vmm_conformance.running.histories import dumps

    program = from_data({"version": 1, "contract": "driver", "configuration": {}, "operations": []})
    header = json.loads(dumps(History({"configuration": program.configuration})))["header"]
    return json.dumps(header["d"][0][1])


def test_a_history_that_takes_for_ever_is_stopped():
    one, other = rejudge([case("{}"), case("{}", "y")], seconds=0)
    assert one.detail == "took more than 0 s"
    assert other.what == "y"


def kills(mutant, tmp_path, change=lambda data: None):
    data = as_data([hunt(mutant("flags-any-base"), 0, "smoke")], "smoke")
    change(data)
    source = tmp_path / "kills.json"
    source.write_text(json.dumps(data))
    return pack(source, tmp_path / "kills.vmm.zip")


def test_a_kill_matrix_is_hunted_again(mutant, tmp_path):
    pieces = list(verify(kills(mutant, tmp_path)))
    told = [piece.line() for piece in pieces[1:]]
    assert told == ["totals: same: 1 of 1 killed", "flags-any-base, seed 0: same: killed again"]


def test_an_edited_kill_matrix_is_named(mutant, tmp_path):
    def change(data):
        data["kills"][0]["operations"] = 99
        data["of"] = 2

    told = [piece.line() for piece in differences(kills(mutant, tmp_path, change))]
    assert told == ["totals: differs: says 1 of 2, has 1 of 1", "flags-any-base, seed 0: differs: other operations"]


def test_a_kill_matrix_of_another_catalogue_is_not_hunted_again(mutant, tmp_path):
    def change(data):
        data["catalogue"] = "2025.1"
        data["kills"][0]["operations"] = 99

    (left,) = [piece for piece in verify(kills(mutant, tmp_path, change)) if piece.state is not State.SAME]
    assert left.line() == (
        f"kills: not recomputed: made under catalogue 2025.1; installed is {catalogue().version}"
    )


@pytest.fixture
def dice(mutant, tmp_path, monkeypatch):
    """Tells what comes of a variant whose next hunt ends with ``changes``, declared repeatable or not."""

    def told(repeatable, **changes):
        path = kills(mutant, tmp_path)
        other = replace(hunt(mutant("flags-any-base"), 0, "smoke"), **changes)
        monkeypatch.setattr(rerun, "hunt", lambda variant, seed, budget: other)
        thrower = replace(mutant("flags-any-base"), repeatable=repeatable)
        monkeypatch.setattr(related, "all_mutants", lambda: (thrower,))
        return [piece.line() for piece in verify(path)][-1]

    return told


def test_a_variant_that_throws_dice_is_only_asked_whether_it_is_killed(dice):
    told = "flags-any-base, seed 0: same: killed again; this variant does otherwise each time"
    assert dice(False, programs=77) == told
    assert dice(False) == told


def test_a_variant_that_throws_dice_and_survives_is_named(dice):
    assert dice(False, killed=False, programs=77) == "flags-any-base, seed 0: differs: other killed"


def test_a_variant_that_should_be_repeatable_and_comes_out_otherwise_is_named(dice):
    assert dice(True, programs=77) == "flags-any-base, seed 0: differs: other programs"


def test_an_unknown_variant_is_not_recomputed(mutant, tmp_path):
    def change(data):
        data["kills"][0]["mutant"] = "nobody"

    assert exit_code(list(verify(kills(mutant, tmp_path, change)))) == 3


def test_the_command_prints_each_piece_and_what_they_amount_to(bundle, capsys):
    path = bundle("hasty")
    assert main(["verify", str(path), "--quick", "--subject", "own_bundle:hasty"]) == 3
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "members: same: 4, as the manifest lists them"
    assert out[-1] == f"{path}: not fully verified: 6 same, 1 not recomputed"
    assert main(["verify", str(path), "--subject", "own_bundle:hasty"]) == 0


def test_installed_names_are_followed_by_themselves(bundle, monkeypatch):
    monkeypatch.setattr(rerun, "installed_subjects", lambda: ("own_bundle:good",))
    assert exit_code(list(verify(bundle("good")))) == 0
