"""What becomes of waivers: in force, or one sentence that says why they fail the run."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import jsonschema
import pytest
from handmade import ITEMS, THING, TODAY, Item, failure, report, result, waiver
from junitparser import JUnitXml

from vmm_conformance.reporting import badge, json_report, junit
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.terminal import summary
from vmm_conformance.reporting.verdicts import Overall, Verdict, worst
from vmm_conformance.running.results import Ending
from vmm_conformance.waivers.listed import Waivers
from vmm_conformance.waivers.waiver import Waiver, like, within

DONE = result(ITEMS[1].id)
SUBJECT = SubjectInfo("my:pool", "pool", "1.4", ("allocator",))
PROGRAM = {"version": 1, "contract": "allocator", "configuration": {}, "operations": []}
OWN = Item("allocator/waiver/1-ALLOCATOR-1[thing]", kind="waiver", planned=1)


def broken(*names, item=ITEMS[0].id, **changes):
    return result(item, failures=[failure(name, **changes) for name in names])


def states(made):
    return [each.state.value for one in made.waivers for each in one.settlements]


def test_a_waiver_in_force():
    made = report(broken("ALLOCATOR-1"), DONE, waivers=[waiver()])
    assert states(made) == ["in force"]
    assert (made.overall, made.exit_code, made.complete) == (Overall.WAIVED, 0, True)
    assert summary(made)[-2:] == ["  - 1 failure waived: ALLOCATOR-1", "  thing 1.2: conformant-with-waivers(1)"]


def test_every_waived_failure_counts_whatever_its_level():
    names = ("ALLOCATOR-1", "ALLOCATOR-2", "ALLOCATOR-3")
    made = report(broken(*names), DONE, waivers=[waiver(name) for name in names])
    assert summary(made)[-1] == "  thing 1.2: conformant-with-waivers(3)"


def test_a_failure_that_nobody_waived_still_fails():
    made = report(broken("ALLOCATOR-1", "ALLOCATOR-2"), DONE, waivers=[waiver("ALLOCATOR-2")])
    assert (made.overall, made.exit_code) == (Overall.NOT_CONFORMANT, 1)
    assert made.reasons == ("1 documented must fails: ALLOCATOR-1", "1 failure waived: ALLOCATOR-2")


def test_a_partial_run_stays_partial():
    made = report(broken("ALLOCATOR-1"), waivers=[waiver()])
    assert (made.overall, made.exit_code) == (Overall.PARTIAL, 3)


FAILING = [
    ([DONE], {}, "passes", "passes: its invariant was put to the test and never found broken; take the waiver out"),
    (
        [broken("ALLOCATOR-1")], {"message": "leaks *"}, "fails differently",
        "fails differently: a program says 'block 2 lies inside block 1, which is still live', expected was 'leaks *'",
    ),
    (
        [result(witnesses={}, state="crash")], {}, "fails differently",
        "fails differently: crash in allocator/explore/a[thing]",
    ),
    (
        [result(witnesses={})], {}, "not run",
        "was not run: its invariant is not exercised: no program reached it: a program for ALLOCATOR-1",
    ),
    (
        [result(unknown={"ALLOCATOR-1": "KeyError: 3"})], {}, "not run",
        "was not run: its invariant is unknown: KeyError: 3",
    ),
    (
        [broken("ALLOCATOR-1")], {"expires": date(2026, 11, 30)}, "expired",
        "expired on 2026-11-30; mend what it is about, or renew it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("results", "changes", "state", "sentence"), FAILING, ids=lambda value: value)
def test_what_did_not_come_out_as_it_says_fails_the_run(results, changes, state, sentence, tmp_path):
    made = report(*results, items=ITEMS[:1] if results != [DONE] else ITEMS[1:], waivers=[waiver(**changes)])
    assert states(made) == [state]
    assert made.exit_code == 1
    assert f"the waiver for ALLOCATOR-1 {sentence}" in made.reasons
    assert made["thing"]["ALLOCATOR-1"].verdict is not Verdict.WAIVED
    (suite,) = JUnitXml.fromfile(str(junit.write(made, tmp_path)))
    case = next(case for case in suite if case.name == "waiver for ALLOCATOR-1")
    assert (case.result[0].type, case.result[0].message) == ("waiver", f"the waiver for ALLOCATOR-1 {sentence}")


def test_when_nothing_else_is_wrong_the_word_is_about_the_waiver():
    made = report(DONE, items=ITEMS[1:], waivers=[waiver()])
    assert made.overall is Overall.MISWAIVED
    assert summary(made)[-1] == "  thing 1.2: not as waived"
    assert badge.endpoint(json_report.to_json(made)) | {} == {
        "schemaVersion": 1, "label": "vmm conformance", "message": "not as waived 3/3", "color": "red", "isError": True,
    }  # fmt: skip


def test_one_that_matches_nothing_fails_the_run_and_has_a_suite_of_its_own(tmp_path):
    made = report(waivers=[waiver(subject="other", subject_versions="<2", driver="hip", device="*MI300X*")])
    sentence = "the waiver for ALLOCATOR-1 matches nothing: other <2 over hip, device *MI300X* is not in this run"
    assert (made.overall, made.reasons) == (Overall.MISWAIVED, (sentence,))
    assert [section.overall for section in made.subjects] == [Overall.HARDENED]
    assert summary(made, width=120)[-3:] == ["waivers", f"  - {sentence}", "  the run: not as waived"]
    *_, last = JUnitXml.fromfile(str(junit.write(made, tmp_path)))
    (case,) = last
    assert (last.name, case.result[0].message) == ("waivers", sentence)


def test_it_need_cover_only_one_of_several_subjects():
    items = (*ITEMS, Item("allocator/explore/a[other]", "other"))
    other = SimpleNamespace(name="other", allocator=THING.allocator)
    bad = broken("ALLOCATOR-1", item=items[2].id)
    made = report(result(), DONE, bad, items=items, subjects={"thing": THING, "other": other}, waivers=[
        waiver(subject="other")
    ])  # fmt: skip
    assert [section.overall for section in made.subjects] == [Overall.HARDENED, Overall.WAIVED]
    assert json_report.to_json(made)["overall"] == "conformant-with-waivers(1)"


def test_what_was_not_asked_for_is_left_open():
    made = report(prefix="ALLOCATOR-2", waivers=[waiver()])
    assert states(made) == ["open"]
    assert made.overall is Overall.PARTIAL


def test_two_waivers_of_one_invariant_each_have_their_own_failure():
    both = [waiver(message="block 2 *"), waiver(message="leaks *", reason="the other")]
    items = [broken("ALLOCATOR-1"), broken("ALLOCATOR-1", item=ITEMS[1].id, message="leaks 3 pages")]
    made = report(*items, waivers=both)
    assert states(made) == ["in force", "in force"]
    assert made["thing"]["ALLOCATOR-1"].ruling.reason.count("https://example.org/7") == 2
    made = report(items[0], DONE, waivers=both)
    assert states(made) == ["in force", "passes"]
    assert made.reasons[1] == (
        "the waiver for ALLOCATOR-1 passes: no failure says 'leaks *' any more; take the waiver out"
    )


def test_another_failure_of_the_same_invariant_is_not_excused():
    strange = broken("ALLOCATOR-1", item=ITEMS[1].id, message="leaks 3 pages")
    made = report(broken("ALLOCATOR-1"), strange, waivers=[waiver(message="block * lies inside *")])
    assert states(made) == ["fails differently"]
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.FAIL


PROGRAMS = [
    (broken("ALLOCATOR-1", item=OWN.id), "in force", "is in force: known"),
    (result(OWN.id), "passes", "passes: its program early.json breaks nothing any more; take the waiver out"),
    (
        broken("ALLOCATOR-2", item=OWN.id), "fails differently",
        "fails differently: its program early.json breaks ALLOCATOR-2 instead (1 invariant)",
    ),
    (
        broken("ALLOCATOR-1", item=OWN.id, message="leaks"), "fails differently",
        "fails differently: its program early.json says 'leaks', expected was 'block *'",
    ),
    (
        result(OWN.id, state="crash", executed=0, endings=[Ending("crash", "was killed by SIGSEGV", 0, PROGRAM)]),
        "fails differently",
        "fails differently: with its program early.json the process was killed by SIGSEGV at the end of the program,"
        " when the subject was closed or checked",
    ),
    (None, "not run", "was not run: its program early.json was left out or could not be run"),
    (result(OWN.id, unknown={"*": "KeyError: 3"}, executed=0), "not run", "was not judged: KeyError: 3"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "state", "sentence"), PROGRAMS, ids=lambda value: value)
def test_what_a_program_shows_decides_even_where_others_fail(own, state, sentence):
    """Exploration finds the invariant broken in any case; it is excused only if the program fails as it should."""
    results = [broken("ALLOCATOR-1"), DONE, *([own] if own else [])]
    one = waiver(file="early.json", program=PROGRAM, message="block *")
    made = report(*results, items=(OWN, *ITEMS), waivers=[one])
    assert states(made) == [state]
    assert made.waivers[0].settlements[0].sentence.startswith(f"the waiver for ALLOCATOR-1 {sentence}")
    assert (made["thing"]["ALLOCATOR-1"].verdict is Verdict.WAIVED) == (state == "in force")
    assert made.exit_code == (state != "in force")


ALLOCATE = {**PROGRAM, "operations": [{"op": "allocate", "size": 1}]}
SEGFAULT = "the process was killed by SIGSEGV in operation 0, allocate (size=1)"


def ended(item=ITEMS[0].id, how="was killed by SIGSEGV", kind="crash", **changes):
    return result(item, state=kind, executed=4, endings=[Ending(kind, how, 0, ALLOCATE)], **changes)


def test_a_crash_that_is_waived(tmp_path):
    """The invariant counts as waived even where others put it to the test; no other one is borne with it."""
    made = report(ended(), DONE, waivers=[waiver(kind="crash", message="*SIGSEGV in operation *, allocate *")])
    assert states(made) == ["in force"]
    assert (made.overall.told(made.waived), made.exit_code) == ("conformant-with-waivers(1)", 0)
    assert made.reasons == (
        "1 failure waived: ALLOCATOR-1", "1 item ended as waived: allocator/explore/a[thing] (after 4 programs)",
    )  # fmt: skip
    assert "SIGSEGV" not in "\n".join(summary(made))
    (suite,) = JUnitXml.fromfile(str(junit.write(made, tmp_path)))
    (case,) = (case for case in suite if case.name == ITEMS[0].id)
    assert case.result[0].message.startswith("waived: known")
    data = json_report.to_json(made)
    jsonschema.Draft202012Validator(json_report.schema()).validate(data)
    assert [item.get("waived", "") for item in data["subjects"][0]["items"]] == [waiver().excuse(), ""]


def test_an_interrupted_item_is_not_made_whole_by_a_crash_that_is_waived():
    stopped = replace(ended(), state="stopped")
    made = report(stopped, DONE, waivers=[waiver(kind="crash")])
    assert (made.overall, made.exit_code, made.complete) == (Overall.PARTIAL, 3, False)
    assert made.reasons[-1] == "1 of 2 items interrupted: allocator/explore/a[thing]"
    about = SubjectInfo("thing", "thing", "", ("allocator",))
    left, used = Waivers((waiver(kind="crash"),), TODAY).excused(stopped, about, DriverInfo("host"))
    assert (left.state, left.endings, len(used)) == ("stopped", [], 1)


def test_what_only_a_crash_kept_from_being_shown_needs_a_waiver_of_its_own():
    both = [waiver(id, kind="crash") for id in ("ALLOCATOR-1", "ALLOCATOR-2")]
    results = ended(witnesses={}), result(ITEMS[1].id, witnesses={"ALLOCATOR-3": 1})
    made = report(*results, waivers=both[:1])
    assert (made.overall, made.exit_code) == (Overall.PARTIAL, 3)
    assert made.reasons[-1] == "1 must lost to a crash: ALLOCATOR-2"
    assert report(*results, waivers=both).exit_code == 0
    ruled_out = result(ITEMS[1].id, witnesses={"ALLOCATOR-3": 1}, untested={"ALLOCATOR-2": "not applicable: no growth"})
    assert report(results[0], ruled_out, waivers=both[:1]).exit_code == 0


TIMEOUT = ended(kind="timeout", how="made no progress for 60 s", witnesses={})
ENDINGS = [
    ([result(), DONE], {}, "passes", "passes: no program ends its process with a crash; take the waiver out"),
    (
        [ended(how="exited with status 3"), DONE], {"message": "*SIGSEGV*"}, "fails differently",
        "fails differently: a program says 'the process exited with status 3 in operation 0, allocate (size=1)',"
        " expected was '*SIGSEGV*'",
    ),
    (
        [ended(), ended(ITEMS[1].id, how="exited with status 3")], {"message": "*SIGSEGV*"}, "fails differently",
        "fails differently: a program says 'the process exited with status 3 in operation 0, allocate (size=1)',"
        " expected was '*SIGSEGV*'",
    ),
    (
        [TIMEOUT, result(ITEMS[1].id, witnesses={})], {}, "fails differently",
        "fails differently: timeout in allocator/explore/a[thing]",
    ),
    (
        [broken("ALLOCATOR-1"), DONE], {}, "fails differently",
        "fails differently: its invariant is broken, and no program ends its process",
    ),
    (
        [result(witnesses={}), result(ITEMS[1].id, witnesses={})], {}, "not run",
        "was not run: its invariant is not exercised: no program reached it: a program for ALLOCATOR-1",
    ),
    (
        [ended(), DONE], {"expires": date(2026, 11, 30)}, "expired",
        "expired on 2026-11-30; mend what it is about, or renew it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("results", "changes", "state", "sentence"), ENDINGS, ids=lambda value: value)
def test_a_waived_crash_that_did_not_come_out_as_it_says_fails_the_run(results, changes, state, sentence):
    made = report(*results, waivers=[waiver(kind="crash", **changes)])
    assert states(made) == [state]
    assert made.exit_code == 1
    assert f"the waiver for ALLOCATOR-1 {sentence}" in made.reasons
    assert made["thing"]["ALLOCATOR-1"].verdict is not Verdict.WAIVED
    assert not [item for item in made["thing"].items if item.waived]


@pytest.mark.parametrize(
    ("own", "state", "sentence"),
    [
        (ended(OWN.id, witnesses={}), "in force", "is in force: known"),
        (result(OWN.id), "passes", "passes: its program early.json breaks nothing any more; take the waiver out"),
        (
            ended(OWN.id, how="was killed by SIGABRT", witnesses={}), "fails differently",
            "fails differently: with its program early.json the process was killed by SIGABRT in operation 0, allocate",
        ),
        (broken("ALLOCATOR-2", item=OWN.id), "fails differently", "fails differently: its program early.json breaks A"),
        (None, "not run", "was not run: its program early.json was left out or could not be run"),
    ],
    ids=lambda value: value,
)  # fmt: skip
def test_a_program_that_crashes_decides_even_where_others_crash(own, state, sentence):
    results = [ended(), DONE, *([own] if own else [])]
    one = waiver(file="early.json", program=PROGRAM, kind="crash", message="*SIGSEGV*")
    made = report(*results, items=(OWN, *ITEMS), waivers=[one])
    assert states(made) == [state]
    assert made.waivers[0].settlements[0].sentence.startswith(f"the waiver for ALLOCATOR-1 {sentence}")
    assert made.exit_code == (state != "in force")


@pytest.mark.parametrize("changes", [changes for _, changes, *_ in FAILING])
def test_reports_with_waivers_fit_their_schema(changes):
    document = json_report.to_json(report(broken("ALLOCATOR-1"), waivers=[waiver(**changes), waiver(subject="nobody")]))
    jsonschema.Draft202012Validator(json_report.schema()).validate(document)


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({"subject": "pool"}, True),
        ({"subject": "my:*"}, True),
        ({"subject": "poo"}, False),
        ({"subject": "pool", "subject_versions": ">=1.2, <2"}, True),
        ({"subject": "pool", "subject_versions": "<1.4"}, False),
        ({"driver": "hip"}, True),
        ({"driver": "hi"}, False),
        ({"driver": "hip", "driver_versions": {"HIP runtime": ">=7.0, <7.3"}}, True),
        ({"driver": "hip", "driver_versions": {"HIP runtime": "<7.1"}}, False),
        ({"driver": "hip", "driver_versions": {"CUDA driver": "<7.1"}}, False),
        ({"driver": "hip", "device": "*MI300X*"}, True),
        ({"driver": "hip", "device": "MI300X"}, False),
    ],
)
def test_whom_it_covers(changes, covered):
    driver = DriverInfo("hip", True, {}, {"HIP runtime": "7.2.0", "device": "AMD Instinct MI300X OAM"})
    made = Waiver("STEP-87", "known", "https://example.org/7", date(2027, 1, 1), **changes)
    assert made.covers(SUBJECT, driver) is covered
    assert Waiver.from_data(made.as_data()) == made


def test_a_pattern_has_nothing_special_but_the_star():
    assert like("[A+0x0, 8192 bytes) of (a)", "[A+*) of (a)")
    assert like("two\nlines", "two*")
    assert not like("A", "[A]")


def test_what_is_no_version_lies_in_no_range():
    assert within("", "")
    assert within("7.2.0rc1", ">=7.0")
    assert not within("main-dirty", ">=0")


def test_the_order_of_words():
    assert worst([Overall.PARTIAL, Overall.WAIVED]) is Overall.PARTIAL
    assert worst([Overall.CONFORMANT, Overall.WAIVED]) is Overall.WAIVED
    assert worst([Overall.PARTIAL, Overall.MISWAIVED]) is Overall.MISWAIVED
    assert [Overall.of(word.told(2)) for word in Overall] == list(Overall)


def test_a_badge_with_waivers_is_never_green():
    made = badge.endpoint(json_report.to_json(report(broken("ALLOCATOR-1"), DONE, waivers=[waiver()])))
    assert (made["message"], made["color"], made["isError"]) == ("conformant-with-waivers(1) 2/3", "yellow", False)
