"""Saved histories come back as they were, and name nothing but plain data."""

from __future__ import annotations

import json

import pytest

from vmm_conformance.history.events import History
from vmm_conformance.history.files import FORMAT
from vmm_conformance.running.histories import HistoryError, dumps, load_history
from vmm_conformance.running.kills import first_hit
from vmm_conformance.running.session import bench_for

SOME = [
    "step-unmap-without-wait", "shadow-no-order-between-streams", "step-unlocked-execution",
    "allocator-unmaps-at-once", "allocator-no-undo", "driver-unmaps-neighbour", "driver-access-survives-unmap",
    "flags-any-base",
]  # fmt: skip


@pytest.mark.parametrize("id", SOME)
def test_a_history_comes_back_and_is_judged_alike(id, mutant):
    bad = mutant(id)
    bench = bench_for(bad.contract, bad.subject)
    judged = bench.run(first_hit(bad, 0, "dev").program)
    text = dumps(judged.history)
    back = load_history(text)
    assert dumps(back) == text
    assert list(map(repr, back.events)) == list(map(repr, judged.history.events))
    assert back.header == judged.history.header
    again = bench.plug.judge(back)
    assert (again.findings, again.witnesses) == (judged.judge.findings, judged.judge.witnesses)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -(2**70), 1.5, "text", b"\x00\xff", (1, (2, "x")), [1, [2]], {"a": {1: (2,)}}, {(0, 1): 2}, {1, 2}],
)
def test_values_come_back(value):
    back = load_history(dumps(History({"value": value}))).header["value"]
    assert back == value
    assert type(back) is type(value) or isinstance(back, frozenset)


def test_what_is_no_plain_data_comes_back_as_text():
    back = load_history(dumps(History({"value": object()}))).header["value"]
    assert back.startswith("<object object at")


def head(**changes):
    return json.dumps({"format": FORMAT, "version": 1, "header": {"d": []}} | changes)


def event(args="[]", kind="note", op=0, result="null"):
    return f'{head()}\n[{op}, 0, "harness", "{kind}", {args}, 0, {result}]'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: no history: expected a first line with the format 'vmm-conformance history'"),
        ("{", "line 1: JSONDecodeError"),
        (head(version=2), "line 1: version 2 of the format, accepted: 1"),
        (head(header=[]), "line 1: the header must be a mapping"),
        (head(header={"d": 3}), "line 1: TypeError"),
        (head() + "\n[1, 2]", "line 2: ValueError: not enough values"),
        (event(kind="explode"), "line 2: unknown kind of event 'explode'"),
        (event("[1]"), "line 2: a note event has the arguments ('what', 'details'), got 1 of them"),
        (event('["a", {"z": 1}]'), "line 2: unknown value with the keys z; accepted: t, d, s, x, r, e, o"),
        (event('["a", {"t": [], "d": []}]'), "line 2: unknown value with the keys t, d"),
        (event('["a", {"x": "0g"}]'), "line 2: ValueError: non-hexadecimal"),
        (event('["a", {"d": [[{"d": []}, 1]]}]'), "line 2: TypeError: unhashable"),
        (event('["a", 1]', op='"x"'), "line 2: op, thread and status must be whole numbers, who must be text"),
        (head() + "\n" + "[" * 200_000, "line 2: RecursionError"),
    ],
)
def test_text_that_is_no_history_says_where(text, complaint):
    with pytest.raises(HistoryError) as caught:
        load_history(text)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    "name",
    [
        "os.system", "subprocess.Popen", "builtins.eval", "", "contracts", "contracts.driver",
        "contracts.driver.Driver", "contracts.driver.NamedTuple", "running.recorder.Recorder",
        "running.explore.Bench.run", "running.subjects._call",
        "drivers.host.driver.HostDriver", "contracts.driver.os.system", "programs.files.Path", "cli.main",
        "running.histories.import_module",
    ],
)  # fmt: skip
def test_a_history_can_name_no_code(name):
    for value in ({"o": [name, ["true"]]}, {"e": [name, "x"]}):
        with pytest.raises(HistoryError, match=r"no module of plain data|no class of plain data|is no enum"):
            load_history(event(f'["a", {json.dumps(value)}]'))


def test_a_record_with_other_fields_is_refused():
    with pytest.raises(HistoryError, match=r"contracts\.driver\.Range has the fields address, size, got 1 values"):
        load_history(event('["a", {"o": ["contracts.driver.Range", [1]]}]'))
