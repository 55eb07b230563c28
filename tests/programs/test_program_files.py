from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vmm_conformance.contracts import CONTRACTS, Revision
from vmm_conformance.programs.codec import ProgramError
from vmm_conformance.programs.files import CONTRACT_TYPES, dump, load
from vmm_conformance.programs.flags import Configuration, NewProcess, Read
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.schema import PATH, text
from vmm_conformance.running.plugs import plug

PROGRAM = Program(
    "flags",
    Configuration(Revision.ENV_BYTES),
    (Read(environment={"XLA_VMM_SKIP_REMAP": "fal\u017fe"}), NewProcess(), Read("CUDA")),
)

TEXT = """\
{
  "version": 1,
  "contract": "flags",
  "configuration": {"revision": "env-bytes"},
  "operations": [
    {"op": "read", "environment": {"XLA_VMM_SKIP_REMAP": "fal\\u017fe"}},
    {"op": "new-process"},
    {"op": "read", "platform": "CUDA"}
  ]
}
"""


def data(**changes: Any) -> dict[str, Any]:
    program: dict[str, Any] = json.loads(TEXT)
    return program | changes


def test_the_text_has_one_operation_a_line() -> None:
    assert dump(PROGRAM) == TEXT
    assert load(TEXT) == PROGRAM


def test_an_empty_program() -> None:
    empty = PROGRAM.with_operations(())
    assert load(dump(empty)) == empty


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(TEXT, encoding="utf-8")
    assert load(path) == PROGRAM
    path.write_text(TEXT.replace('"CUDA"', "7"), encoding="utf-8")
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: $.operations[2].platform: expected a string, got 7"
    path.write_text('{"version": 1, "version": 1}', encoding="utf-8")
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert str(caught.value) == f'{path}: the key "version" stands twice in one object with "version"'


FAULTS: list[tuple[str, str]] = [
    (TEXT.replace('"flags",', '"flags"'), "line 4, column 3: no JSON: Expecting ',' delimiter"),
    ("{", "line 1, column 2: no JSON: Expecting property name enclosed in double quotes"),
    ("[]", "$: expected an object, got []"),
    (json.dumps(data(version=2)), "$.version: unknown version 2, accepted: 1"),
    (json.dumps(data(version=True)), "$.version: unknown version true, accepted: 1"),
    (
        json.dumps(data(contract="flag")),
        f'$.contract: unknown contract "flag", accepted: {", ".join(json.dumps(name) for name in CONTRACT_TYPES)}',
    ),
    (
        json.dumps(data(seed=1)),
        '$: unknown key "seed", accepted: "version", "contract", "configuration", "operations"',
    ),
    (
        json.dumps({"version": 1, "contract": "flags"}),
        '$.operations: missing, expected the keys "version", "contract", "configuration", "operations"',
    ),
    (
        json.dumps(data(configuration={})),
        '$.configuration.revision: missing, expected one of "env-auto", "env-bytes", "flags"',
    ),
    (json.dumps(data(operations={})), "$.operations: expected a list, got {}"),
    (
        json.dumps(data(operations=[{"op": "reed"}])),
        '$.operations[0].op: unknown operation "reed", accepted: "read", "new-process"',
    ),
    (
        json.dumps(data(operations=[{"op": "new-process", "x": 1}])),
        '$.operations[0].x: unknown key, accepted: "op"',
    ),
    ('{"version": NaN}', "NaN is no JSON number"),
]


@pytest.mark.parametrize(("source", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_a_fault_says_where_and_what_is_accepted(source: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(source)
    assert str(caught.value) == message


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_schema_that_ships_is_current() -> None:
    assert PATH.read_text(encoding="utf-8") == text(), "run `python -m vmm_conformance.programs.schema`"


def test_every_contract_has_programs() -> None:
    assert set(CONTRACT_TYPES) == set(CONTRACTS)


@pytest.mark.parametrize("contract", CONTRACT_TYPES)
def test_drawn_programs_read_back_equal_and_fit_the_schema(contract: str, validator: Draft202012Validator) -> None:
    decode = plug(contract).decode
    source = random.Random(1)
    for _ in range(6):
        program = decode(source.randbytes(400))
        assert program.contract == contract
        written = dump(program)
        assert load(written) == program
        validator.validate(json.loads(written))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"contract": "flag"},
        {"seed": 1},
        {"configuration": {}},
        {"operations": [{"op": "reed"}]},
        {"operations": [{"op": "read", "platform": 7}]},
        {"operations": [{"op": "read", "environment": {"X": 7}}]},
    ],
    ids=str,
)
def test_the_schema_refuses_what_load_refuses(changes: dict[str, Any], validator: Draft202012Validator) -> None:
    assert validator.is_valid(data())
    assert not validator.is_valid(data(**changes))
