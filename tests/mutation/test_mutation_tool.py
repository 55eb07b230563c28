"""The tool that changes code mechanically: where a change is, who comes by there, and how it is put in place."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from mutation import checkers
from mutation.changes import changes, left_out
from mutation.explained import explained, key, outdated
from mutation.reach import statement_at, watching
from mutation.reference import MODULES
from mutation.swap import functions, swapped
from mutation.trial import Outcome

SOURCE = '''
from functools import cache

LIMIT = 3


def small(
    number,
):
    if (
        number > LIMIT
    ):
        return False
    return True


TABLE = {"small": small, "odd": lambda number: number % 2 == 1}


class Counter:
    start = [number for number in range(3)]

    @staticmethod
    def count(numbers):
        return sum(1 for number in numbers if number)


@cache
def remembered(number):
    return small(number)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "changed_in_place.py").write_text(SOURCE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("changed_in_place")
    del sys.modules["changed_in_place"]
    functions.cache_clear()


@pytest.mark.parametrize(
    ("line", "statement"),
    [(4, None), (7, None), (10, {10, 11, 12}), (11, {10, 11, 12}), (13, {13}), (14, {14}), (21, None), (25, {25})],
)
def test_a_change_is_in_the_statement_around_it(line: int, statement: set[int] | None) -> None:
    """What runs at import, headers of functions with their defaults included, is everybody's."""
    assert statement_at(SOURCE, line) == statement


def test_lines_that_are_reached_are_seen_and_no_others(module: ModuleType) -> None:
    file = str(module.__file__)
    with watching([file]) as reached:
        assert module.small(1)
        assert module.Counter.count([1, 0]) == 1
    assert {11, 14, 25} <= reached[file]
    assert 13 not in reached[file]


def test_what_was_remembered_before_hides_no_line(module: ModuleType) -> None:
    file = str(module.__file__)
    for _ in range(2):
        with watching([file]) as reached:
            assert module.remembered(1)
        assert {14, 30} <= reached[file]


@pytest.mark.parametrize(
    ("before", "after", "call", "result"),
    [
        ("number > LIMIT", "number < LIMIT", lambda m: m.TABLE["small"](1), False),
        ("% 2 == 1", "% 2 == 0", lambda m: m.TABLE["odd"](4), True),
        ("in numbers if number", "in numbers if not number", lambda m: m.Counter.count([0, 0, 1]), 2),
    ],
)
def test_functions_are_changed_wherever_they_are_kept(
    module: ModuleType, before: str, after: str, call: object, result: object
) -> None:
    assert callable(call)
    assert call(module) != result
    assert swapped("changed_in_place", SOURCE, SOURCE.replace(before, after))
    assert call(module) == result


@pytest.mark.parametrize(
    ("before", "after"),
    [("LIMIT = 3", "LIMIT = 4"), ("range(3)", "range(4)"), ("@staticmethod", ""), ("    number,\n", "    number=1,\n")],
)
def test_what_runs_at_import_is_not_changed_in_place(module: ModuleType, before: str, after: str) -> None:
    assert not swapped("changed_in_place", SOURCE, SOURCE.replace(before, after))


def test_a_statement_that_is_left_out_moves_no_line() -> None:
    source = "def f():\n    g(\n        1,\n    )\n    return 2\n"
    assert [text.splitlines()[4] for _, text in left_out(source)] == ["    return 2", "    pass"]


def test_changes_that_nothing_is_to_notice_are_not_made() -> None:
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed")
    source = '''
def f(a, *, b):
    if a.kind == "one" or a is None:
        return fail(f"{a + 1}", expected=a + 2)
    return zip(a, b, strict=True)
'''
    assert {each.text.rpartition(" -> ")[2] for each in changes(source)} == {
        "pass",
        'if a.kind != "one" or a is None:',
        'if a.kind == "one" and a is None:',
        'if not a.kind == "one" or a is None:',
    }


def test_what_is_explained_has_a_known_kind_and_is_found_by_its_text(tmp_path: Path) -> None:
    one = {"module": "layout", "operator": "leave out", "change": "return -> pass", "kind": "speed"}
    file = tmp_path / "explained.jsonl"
    file.write_text(json.dumps(one) + "\n", "utf-8")
    known = explained(file)
    here, noticed = (Outcome("layout", "leave out", line, "return -> pass", by) for line, by in ((3, ""), (9, "tests")))
    assert known[key(here)] == ("speed", "")
    assert list(outdated([here], known)) == []
    assert list(outdated([noticed], known)) == [key(noticed)]
    assert list(outdated([Outcome("flags", "leave out", 3, "return -> pass")], known)) == []
    file.write_text(json.dumps(one | {"kind": "nobody knows"}) + "\n", "utf-8")
    with pytest.raises(ValueError, match=r"explained\.jsonl:1: kind 'nobody knows' is none of text, sign"):
        explained(file)


def test_all_that_is_explained_is_of_code_that_is_there() -> None:
    """What a line becomes is found by its text, so a line that is changed takes its explanations with it."""
    modules = {each.module for each in explained()}
    assert modules <= {*MODULES, *(f"checkers/{name}" for name in checkers.modules())}
