"""Waivers under pytest: what is expected to fail is no failure, and what is not as expected is one."""

from __future__ import annotations

import json

import pytest

WAIVER = """
[[waiver]]
invariant = "{id}"
subject = "deaf"
reason = "reads nothing yet"
link = "https://example.org/issues/7"
expires = 2027-06-30
"""


BROKEN = ("FLAG-148", "FLAG-149", "FLAG-150", "FLAG-151", "FLAG-155", "FLAG-165")
READ = {"op": "read", "options": {"skip_remap": "1"}}
PROGRAM = {"version": 1, "contract": "flags", "configuration": {"revision": "flags"}, "operations": [READ]}


@pytest.fixture
def waived(own, suite):
    """Runs the suites on ``own:deaf`` with a waiver for all that it breaks; ``more`` is added to the first."""

    def run(*arguments, more="", others="", fresh=False):
        text = "".join(WAIVER.format(id=id) + (more if id == BROKEN[0] else "") for id in BROKEN)
        (own.path / "waivers.toml").write_text(text + others)
        day = () if "--vmm-today" in arguments else ("--vmm-today", "2027-06-30")
        return suite("--vmm-waivers", "waivers.toml", *day, *arguments, subject="own:deaf", fresh=fresh)

    run.folder = own.path
    return run


def test_expected_failures_are_no_failures(waived):
    result = waived()
    assert result.ret == 0
    assert result.parseoutcomes().keys() == {"passed", "xfailed"}
    result.stdout.fnmatch_lines(["*deaf 1.2: conformant-with-waivers(6)"])


def test_an_expired_one_is_a_failure(waived):
    result = waived("--vmm-today", "2027-07-01")
    assert result.ret == 1
    assert "xfailed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(["*waiver for FLAG-* expired on 2027-06-30; mend what*", "*deaf 1.2: not conformant"])


def test_one_that_matches_nothing_fails_a_run_without_failures(waived):
    result = waived(others=WAIVER.format(id="STEP-87").replace("deaf", "nobody"))
    assert result.ret == 1
    assert "failed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(["*waiver for STEP-87 matches nothing: nobody over any driver is not in*"])


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])
def test_a_program_is_an_item_of_its_own_that_comes_first(waived, workers):
    (waived.folder / "one.json").write_text(json.dumps(PROGRAM))
    result = waived("-v", *workers, "--vmm-report", "report", more='program = "one.json"\n', fresh=bool(workers))
    assert result.ret == 0
    report = json.loads((waived.folder / "report" / "report.json").read_text())
    assert report["overall"] == "conformant-with-waivers(6)"
    assert "flags/waiver/1-FLAG-148[own:deaf]" in {item["id"] for item in report["subjects"][0]["items"]}
    if not workers:
        (first, *_) = [line for line in result.stdout.lines if "::test_conformance[" in line]
        assert "flags/waiver/1-FLAG-148" in first


def test_a_program_that_breaks_nothing_any_more_fails_its_item_and_the_run(waived):
    (waived.folder / "harmless.json").write_text(json.dumps(PROGRAM | {"operations": []}))
    result = waived(more='program = "harmless.json"\n')
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*waiver for FLAG-148 passes: its program harmless.json breaks nothing*"])


def test_a_replay_says_what_is_broken_all_the_same(waived):
    (waived.folder / "one.json").write_text(json.dumps(PROGRAM))
    result = waived("--vmm-replay", "one.json")
    result.assert_outcomes(failed=1)


def test_a_file_that_cannot_be_read_is_one_line(own):
    (own.path / "waivers.toml").write_text('[[waiver]]\ninvariant = "FLAG-148"\n')
    result = own.runpytest_inprocess("--pyargs", "vmm_suites", "--vmm-waivers", "waivers.toml")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: waivers.toml: waiver 1 (FLAG-148): 'reason' is missing; accepted keys: *"])
