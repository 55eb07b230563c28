"""The vectors: names instead of addresses, files that are current and match their schema, a consumer of its own."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import vmm_suites.vectors
from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import CONTRACTS, Access, Fault, Range, Write
from vmm_conformance.history.events import DEVICE, HARNESS, SUBJECT, Event
from vmm_conformance.programs.files import from_data
from vmm_conformance.vectors.collect import choose, collect
from vmm_conformance.vectors.command import check, difference, main, subject_of
from vmm_conformance.vectors.files import SCHEMA, read, schema, schema_text, text
from vmm_conformance.vectors.neutral import Neutral

FOLDER = Path(vmm_suites.vectors.__file__).parent
FILES = dict(read(FOLDER))
SAMPLE = 10
"""Every how many-th vector is made anew. All of them take eleven seconds of one core, more than one test is given here;
``python -m vmm_suites.vectors --check`` makes all anew."""


# -- names


def told(*events: tuple) -> list:
    neutral = Neutral()
    return [neutral.event(Event(number, 0, 0, *event)) for number, event in enumerate(events)]


BASE, OTHER = 1 << 40, 1 << 41


def test_everything_real_has_a_name():
    events = told(
        (HARNESS, "stream_create", (0,), 0, 7),
        (SUBJECT, "reserve", (8192, 0, 0), 0, BASE),
        (SUBJECT, "create", (4096, 0, 1), 0, 12),
        (SUBJECT, "map", (BASE + 4096, 4096, 12, 0)),
        (SUBJECT, "set_access", (BASE + 4096, 4096, ((0, Access.READ_WRITE),))),
        (HARNESS, "launch", (7, (Range(BASE + 4096, 8),), (), (Write(BASE + 5000, b"\1\xff"),)), 0, 31),
        (DEVICE, "ran", (31, (b"\xcb" * 2,), None)),
        (SUBJECT, "retain", (BASE + 4096,), 0, 12),
        (SUBJECT, "event_create", (0,), 0, 13),
        (SUBJECT, "event_query", (13,), 0, False),
    )
    assert events == [
        ["caller", "stream_create", [0], "S1"],
        ["subject", "reserve", [8192, 0, None], "R1"],
        ["subject", "create", [4096, 0, 1], "H1"],
        ["subject", "map", ["R1+4096", 4096, "H1", 0]],
        ["subject", "set_access", ["R1+4096", 4096, [[0, "READ_WRITE"]]]],
        ["caller", "launch", ["S1", [["R1+4096", 8]], [], [{"address": "R1+5000", "data": "01ff"}]], "W1"],
        ["device", "ran", ["W1"], ["cbcb"]],
        ["subject", "retain", ["R1+4096"], "H1"],
        ["subject", "event_create", [0], "E1"],
        ["subject", "event_query", ["E1"], False],
    ]


def test_a_number_that_comes_back_gets_a_new_name():
    events = told(
        (SUBJECT, "create", (4096, 0, 0), 0, 5),
        (SUBJECT, "release", (5,)),
        (SUBJECT, "create", (4096, 0, 0), 0, 5),
        (SUBJECT, "alloc", (100, 0, 0), 0, BASE),
        (SUBJECT, "free", (BASE,)),
        (SUBJECT, "reserve", (4096, 0, 0), 0, BASE),
        (SUBJECT, "unmap", (BASE + 8, 1), 206),
    )
    assert [event[-1] for event in events] == ["H1", ["H1"], "H2", "R1", ["R1"], "R2", "UNMAP_FAILED"]
    assert events[-1] == ["subject", "unmap", ["R2+8", 1], None, "UNMAP_FAILED"]


def test_places_outside_of_every_range():
    events = told(
        (SUBJECT, "reserve", (4096, 0, OTHER), 0, BASE),
        (SUBJECT, "address_free", (BASE, 4096)),
        (SUBJECT, "map", (BASE + 4096, 4096, 0, 0), 1),
        (SUBJECT, "map", (BASE - 4096, 4096, 0, 0), 1),
        (SUBJECT, "map", (OTHER, 4096, 0, 0), 1),
        (SUBJECT, "map", (0, 4096, 0, 0), 1),
        (SUBJECT, "unmap", (BASE, 4096), 1),
    )
    places = ["elsewhere", "R1", "R1+4096", "R1-4096", "elsewhere", None, "R1"]
    assert [event[2][2 if event[1] == "reserve" else 0] for event in events] == places


def test_notes_tell_values_and_no_words():
    neutral = Neutral()
    neutral.event(Event(0, 0, 0, SUBJECT, "reserve", (4096, 0, 0), 0, BASE))
    details = {
        "stream": 3, "address": BASE, "size": BASE * 2, "table": (Range(BASE + 64, 8),), "message": "at 0x1234",
        "warnings": ("one", "two"), "outcome": {"status": "ok", "code": ""}, "executable": 1, "who": {2, 1},
        "share": 0.5, "none": None, "flag": True, "nested": {"streams": (3, 4)},
    }  # fmt: skip
    assert neutral.event(Event(1, 0, 0, HARNESS, "note", ("call", details))) == [
        "note", "call",
        {
            "stream": "S1", "address": "R1", "size": BASE * 2, "table": [["R1+64", 8]], "warnings": 2,
            "outcome": {"status": "ok"}, "executable": 1, "who": [1, 2], "share": 0.5, "none": None, "flag": True,
            "nested": {"streams": ["S1", "S2"]},
        },
    ]  # fmt: skip


def test_ranges_that_are_no_addresses():
    neutral = Neutral()
    neutral.event(Event(0, 0, 0, SUBJECT, "create", (4096, 0, 0), 0, 12))
    details = {"address": Range(12, 4096), "slice": Range(12, 8), "null": Range(0, 0)}
    told_of = {"address": ["H1", 4096], "slice": [12, 8], "null": [None, 0]}
    assert neutral.event(Event(1, 0, 0, HARNESS, "note", ("x", details))) == ["note", "x", told_of]


def test_what_says_nothing_is_left_out():
    quiet = told(
        (HARNESS, "mem_info", (0,), 0, (1, 2)),
        (HARNESS, "get_access", (BASE, 0), 0, Access.NONE),
        (DEVICE, "ran", (1, (), None)),
    )
    assert quiet == [None, None, None]
    (fault,) = told((DEVICE, "ran", (1, (), Fault(BASE, 8, "unmapped"))))
    assert fault == ["device", "ran", ["W1"], None, "unmapped at elsewhere"]


# -- which are kept


def vector_of(name: str, reaches: str, operations: int = 1, filler: int = 0) -> dict:
    return {
        "id": name,
        "reaches": list(reaches),
        "program": {"operations": [{"op": "do"}] * operations},
        "outcomes": [{"status": "ok", "events": [["note", "x", {"x": "x" * filler}]]}] * operations,
    }


def test_everything_reached_stays_reached():
    vectors = [vector_of(str(n), "AB", n) for n in range(1, 9)]
    vectors += [vector_of("rare", "C", 9), vector_of("big", "D", 1, 20_000)]
    kept = choose(vectors, 4)
    assert {"rare", "big"} <= {each["id"] for each in kept}
    assert set().union(*(each["reaches"] for each in kept)) == set("ABCD")
    assert len(kept) == 4
    assert choose(vectors, 100) != vectors
    assert {each["id"] for each in choose(vectors, 100)} == {each["id"] for each in vectors}
    assert "big" not in {each["id"] for each in choose([*vectors, vector_of("small", "D")], 100)}


def test_equal_calls_find_equal_vectors():
    subject = subject_of("flags")
    once, again = (collect("flags", subject, count=12) for _ in range(2))
    assert text("flags", subject, once) == text("flags", subject, again)
    assert len(once) == 12
    reached = [(tuple(each["reaches"]), json.dumps(each["outcomes"])) for each in once]
    assert len(set(reached)) == 12


# -- the files


def test_there_is_a_file_for_each_contract():
    assert set(FILES) == {name for name in CONTRACTS if catalogue().of(name)}


def test_together_they_are_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 5_000_000


def test_schema_is_current_and_a_schema():
    assert (FOLDER / SCHEMA).read_text("utf-8") == schema_text(), "write it anew: python -m vmm_suites.vectors"
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("contract", FILES)
def test_file_matches_the_schema(contract):
    data = FILES[contract]
    branch = next(each for each in schema()["oneOf"] if each["properties"]["contract"]["const"] == contract)
    rules = {**branch, "$defs": schema()["$defs"]}
    sample = {**data, "vectors": data["vectors"][::5]}
    jsonschema.Draft202012Validator(rules).validate(sample)


@pytest.mark.parametrize("contract", FILES)
def test_there_are_many_and_all_are_different(contract):
    vectors = FILES[contract]["vectors"]
    assert len(vectors) >= 200 or contract == "flags"  # which has no more
    assert len(vectors) >= 150
    assert len({each["id"] for each in vectors}) == len(vectors)
    for each in vectors:
        assert each["reaches"]
        assert len(each["outcomes"]) == len(each["program"]["operations"])
    kinds = [
        (
            tuple(each["reaches"]),
            frozenset(
                (operation["op"], outcome["status"], outcome.get("code", ""))
                for operation, outcome in zip(each["program"]["operations"], each["outcomes"], strict=True)
            ),
        )
        for each in vectors
    ]
    assert len(set(kinds)) == len(kinds), "two of them reach the same"


@pytest.mark.parametrize("contract", FILES)
def test_every_must_is_reached(contract):
    reached = {id.partition(":")[0] for each in FILES[contract]["vectors"] for id in each["reaches"]}
    assert {entry.id for entry in catalogue().of(contract) if entry.level == "must"} <= reached


@pytest.mark.parametrize("contract", FILES)
def test_there_are_no_addresses(contract):
    text = json.dumps([each["outcomes"] for each in FILES[contract]["vectors"]])
    assert "0x" not in text
    numbers = {int(number) for number in re.findall(r"(?<![\w.])\d{15}(?![\w.])", text)}
    assert not {number for number in numbers if number >> 44 in (5, 6, 7)}, "addresses of this process"


@pytest.mark.parametrize("contract", FILES)
def test_a_sample_made_anew_is_equal(contract):
    for each in FILES[contract]["vectors"][::SAMPLE]:
        assert not difference(contract, each), f"{each['id']}: write it anew: python -m vmm_suites.vectors"


@pytest.mark.parametrize("contract", FILES)
def test_programs_can_be_replayed(contract):
    each = FILES[contract]["vectors"][-1]
    assert from_data({"version": 1, "contract": contract, **each["program"]}).operations


# -- the command


def test_the_command_writes_and_checks(tmp_path, capsys):
    assert main(tmp_path, ["--contract", "flags", "--count", "5"]) == 0
    (data,) = [data for _, data in read(tmp_path)]
    assert capsys.readouterr().out.endswith(f"flags.json: {len(data['vectors'])} vectors, {size(tmp_path):,} bytes\n")
    assert main(tmp_path, ["--contract", "flags", "--check"]) == 0
    file = tmp_path / "flags.json"
    file.write_text(file.read_text().replace('"copy_threshold":0', '"copy_threshold":7'))
    assert check(tmp_path, ["flags"]) == 1
    assert ": outcomes\n" in capsys.readouterr().out


def size(folder: Path) -> int:
    return (folder / "flags.json").stat().st_size


# -- the consumer


CONSUMER = FOLDER / "example_consumer.py"


def test_the_consumer_runs_and_shares_no_code_with_us(tmp_path):
    tree = ast.parse(CONSUMER.read_text("utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(names) <= {"json", "re", "sys", "pathlib", "typing"}
    assert len(CONSUMER.read_text("utf-8").splitlines()) <= 60
    (tmp_path / "consumer.py").write_text(CONSUMER.read_text("utf-8"))
    (tmp_path / "flags.json").write_text((FOLDER / "flags.json").read_text("utf-8"))
    command = [sys.executable, "-I", "consumer.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    count = len(FILES["flags"]["vectors"])
    assert (done.returncode, done.stdout) == (0, f"{count} of {count} vectors hold; wrong: none\n")


def test_the_consumer_can_fail(tmp_path):
    data = {**FILES["flags"]}
    changed = json.dumps(data).replace('"copy_threshold": 2,', '"copy_threshold": 3,')
    assert changed != json.dumps(data)
    (tmp_path / "flags.json").write_text(changed)
    command = [sys.executable, "-I", str(CONSUMER), str(tmp_path / "flags.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"wrong: flags-[0-9a-f]{10}", done.stdout)
