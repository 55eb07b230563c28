"""Verdicts per invariant, and the word for the whole."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from handmade import ITEMS, OWN, THING, Item, failure, report, result

from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.verdicts import Overall, Verdict, worst

DONE = result(ITEMS[1].id)


def broken(*names: str, **changes: object):
    return result(failures=[failure(name, **changes) for name in names])


def test_all_musts_pass_is_hardened_and_complete():
    made = report()
    assert made.overall is Overall.HARDENED
    assert made.exit_code == 0
    assert made.complete
    assert made["thing"].expected == made["thing"].executed == OWN
    assert made["thing"]["ALLOCATOR-1"].witnesses == 10
    assert made["thing"]["ALLOCATOR-1"].items == tuple(item.id for item in ITEMS)


def test_a_contract_that_is_not_offered_is_not_applicable():
    entry = report()["thing"]["FLAG-147"]
    assert entry.verdict is Verdict.NOT_APPLICABLE
    assert entry.ruling.reason == "does not offer the contract flags"


def test_no_witness_is_no_pass():
    made = report(result(witnesses={"ALLOCATOR-1": 0, "ALLOCATOR-2": 1}), result(ITEMS[1].id, {}))
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.NOT_EXERCISED
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == "no program reached it: a program for ALLOCATOR-1"
    assert made.overall is Overall.PARTIAL
    assert made.exit_code == 3
    assert made.reasons == ("1 must not exercised: ALLOCATOR-1",)
    assert made["thing"].executed == ("ALLOCATOR-2",)


def test_the_reason_that_an_item_gives_is_kept():
    made = report(result(witnesses={}, untested={"ALLOCATOR-1": "no trace"}), result(ITEMS[1].id, {}))
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == "no trace"


def test_a_feature_that_the_subject_declares_missing_is_not_applicable():
    lacking = {"ALLOCATOR-1": "not applicable: does not grow"}
    rest = {"ALLOCATOR-2": 1}
    made = report(result(witnesses=rest, untested=lacking), result(ITEMS[1].id, rest, untested=lacking))
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.NOT_APPLICABLE
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == "does not grow"
    assert made.overall is Overall.HARDENED


def test_one_failure_outweighs_passes_elsewhere():
    made = report(broken("ALLOCATOR-1"), DONE)
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.FAIL
    assert made.overall is Overall.NOT_CONFORMANT
    assert made.exit_code == 1
    assert made.reasons == ("1 documented must fails: ALLOCATOR-1",)


def test_an_inferred_must_fails_the_run_only_when_hardened():
    plain = report(broken("ALLOCATOR-2"), DONE)
    assert (plain.overall, plain.exit_code) == (Overall.CONFORMANT, 0)
    assert plain.reasons == ("1 inferred must fails: ALLOCATOR-2",)
    assert report(broken("ALLOCATOR-2"), DONE, hardened=True).overall is Overall.NOT_CONFORMANT


def test_a_should_never_changes_the_overall_verdict():
    made = report(broken("ALLOCATOR-3"), DONE, hardened=True)
    assert made["thing"]["ALLOCATOR-3"].verdict is Verdict.FAIL
    assert made.overall is Overall.HARDENED


def test_a_broken_checker_makes_it_unknown_even_with_witnesses():
    made = report(result(unknown={"ALLOCATOR-1": "KeyError: 3"}), DONE)
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.UNKNOWN
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == "KeyError: 3"
    assert made.overall is Overall.PARTIAL
    assert made.reasons == ("1 must unknown: ALLOCATOR-1",)


@pytest.mark.parametrize("state", ["crash", "timeout"])
def test_an_item_that_did_not_finish(state):
    made = report(result(witnesses={"ALLOCATOR-2": 3}, state=state), result(ITEMS[1].id, {"ALLOCATOR-2": 3}))
    assert made["thing"]["ALLOCATOR-1"].verdict.value == state
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == ITEMS[0].id
    assert made["thing"]["ALLOCATOR-2"].verdict is Verdict.PASS
    assert made.overall is Overall.PARTIAL
    assert not made.complete


def test_a_run_that_was_stopped_is_partial():
    made = report(result(state="stopped", executed=3), DONE)
    assert made.overall is Overall.PARTIAL
    assert made.reasons == ("1 of 2 items interrupted: allocator/explore/a[thing]",)


def test_an_item_that_was_planned_and_not_run_makes_it_partial():
    made = report(DONE)
    assert made.overall is Overall.PARTIAL
    assert made.reasons == ("1 of 2 items not run: allocator/explore/a[thing]",)
    assert [row.state for row in made["thing"].items] == ["not run", "done"]


def test_a_failure_found_before_the_stop_is_still_a_failure():
    made = report(broken("ALLOCATOR-1"))
    assert made.overall is Overall.NOT_CONFORMANT
    assert not made.complete


def test_a_filtered_run_is_partial_and_says_what_it_left_out():
    made = report(prefix="ALLOCATOR-1")
    assert made.overall is Overall.PARTIAL
    assert made.reasons == ("only invariants ALLOCATOR-1 were asked for",)
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.PASS
    assert made["thing"]["ALLOCATOR-2"].ruling.reason == "only ALLOCATOR-1 was asked for"


def test_a_waived_failure_is_neither_a_failure_nor_conformance():
    made = report(broken("ALLOCATOR-1", "ALLOCATOR-2"), DONE, waivers={"ALLOCATOR-1": "mended soon"}, hardened=False)
    assert made["thing"]["ALLOCATOR-1"].verdict is Verdict.WAIVED
    assert made["thing"]["ALLOCATOR-1"].ruling.reason == "mended soon (https://example.org/7, until 2026-12-01)"
    assert (made.overall, made.exit_code) == (Overall.WAIVED, 0)
    assert made.reasons == ("1 inferred must fails: ALLOCATOR-2", "1 failure waived: ALLOCATOR-1")
    document = to_json(made)
    assert document["overall"] == document["subjects"][0]["footer"]["overall"] == "conformant-with-waivers(1)"
    assert [entry["settled"][0]["state"] for entry in document["waivers"]["entries"]] == ["in force"]


def test_a_subject_that_offers_nothing_has_shown_nothing():
    made = report(items=(), subjects={"nothing": SimpleNamespace()})
    assert made.overall is Overall.PARTIAL
    assert made.reasons == ("nothing was put to the test",)
    assert made["nothing"].subject.name == "nothing"


def test_each_subject_has_its_section_and_the_worst_word_counts():
    items = (*ITEMS, Item("allocator/explore/a[other]", "other"))
    bad = result("allocator/explore/a[other]", failures=[failure()])
    made = report(result(), DONE, bad, items=items, subjects={"thing": THING, "other": THING})
    assert [section.overall for section in made.subjects] == [Overall.HARDENED, Overall.NOT_CONFORMANT]
    assert made.overall is Overall.NOT_CONFORMANT
    assert made.reasons == ("other: 1 documented must fails: ALLOCATOR-1",)


def test_the_shortest_program_comes_first():
    made = report(broken("ALLOCATOR-1", operations=7), result(ITEMS[1].id, failures=[failure(operations=2)]))
    lengths = [len(found.program["operations"]) for found in made["thing"]["ALLOCATOR-1"].failures]
    assert lengths == [2, 7]


def test_the_order_of_the_results_does_not_matter():
    a = result(failures=[failure("ALLOCATOR-1"), failure("ALLOCATOR-2")], unknown={"ALLOCATOR-3": "x"})
    b = result(ITEMS[1].id, failures=[failure("ALLOCATOR-1", repeats="flaky 3/10")])
    c = result(ITEMS[1].id, executed=4)
    documents = [to_json(report(*order)) for order in itertools.permutations([a, b, c])]
    assert all(document == documents[0] for document in documents)


def test_the_worst_of_no_words_is_partial():
    assert worst([]) is Overall.PARTIAL


def test_an_unknown_section_or_invariant_says_what_there_is():
    made = report()
    with pytest.raises(KeyError, match=r"no subject 'x' in this report, only \['thing'\]"):
        made["x"]
    with pytest.raises(KeyError, match="no invariant 'X-1' in the report on thing"):
        made["thing"]["X-1"]
