from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Literal, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from vmm_conformance.programs.codec import OneOf, ProgramError, from_json, kebab, schema, to_json


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Rights(IntEnum):
    NONE = 0
    READ_WRITE = 3


class Pair(NamedTuple):
    first: int
    second: int = 2


ONE = Pair(1)


@dataclass(frozen=True)
class Step:
    """Runs a step."""

    slot: int
    fast: bool = False
    sizes: tuple[int, ...] = ()
    pair: Pair = ONE
    colour: Colour | None = None


@dataclass(frozen=True)
class StreamWait:
    rights: Mapping[int, Rights] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    limit: int | Literal["auto"] = 0
    ratio: float = 1.0
    both: tuple[int, str] | None = None


@dataclass(frozen=True)
class Together:
    left: tuple[Step | StreamWait | Together, ...] = ()
    at: Step | StreamWait | None = None


@dataclass(frozen=True)
class Even:
    value: int

    def __post_init__(self) -> None:
        if self.value % 2:
            raise ValueError("an even value is wanted")


OPERATION = OneOf((Step, StreamWait, Together))

VALUES = [
    Step(3),
    Step(3, True, (1, 2), Pair(4, 5), Colour.BLUE),
    StreamWait({-1: Rights.NONE, 2: Rights.READ_WRITE}, {"a b": "é\ud800"}, b"\x00\xff", "auto", 0.5, (1, "x")),
    Together((Step(1), StreamWait(), Together((Step(2),))), StreamWait(limit=7)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_was_written_reads_back_equal_and_fits_the_schema(value: object) -> None:
    data = json.loads(json.dumps(to_json(value, OPERATION)))
    assert from_json(OPERATION, data) == value
    shape = schema(OPERATION)
    Draft202012Validator.check_schema(shape)
    Draft202012Validator(shape).validate(data)
    assert from_json(type(value), to_json(value)) == value


def test_defaults_are_left_out_and_filled_in() -> None:
    assert to_json(Step(0), OPERATION) == {"op": "step", "slot": 0}
    assert to_json(Pair(1)) == {"first": 1}
    assert from_json(Pair, {"first": 1}) == Pair(1, 2)


def test_a_class_alone_has_no_tag_and_a_union_has() -> None:
    assert to_json(StreamWait()) == {}
    assert to_json(Together(at=StreamWait())) == {"at": {"op": "stream-wait"}}
    assert to_json(Even(2), OneOf((Even,))) == {"op": "even", "value": 2}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Step", "step"), ("StreamWaitEvent", "stream-wait-event"), ("IPCOpen", "ipc-open")],
)
def test_kebab(name: str, expected: str) -> None:
    assert kebab(name) == expected


def test_true_is_no_one() -> None:
    with pytest.raises(ProgramError, match=r'\$\.limit: expected a number or "auto", got false'):
        to_json(StreamWait(limit=False))
    with pytest.raises(ProgramError, match=r"\$\.slot: expected a number, got true"):
        from_json(Step, {"slot": True})
    with pytest.raises(ProgramError, match=r"\$\.fast: expected true or false, got 1"):
        from_json(Step, {"slot": 1, "fast": 1})


FAULTS: list[tuple[Any, str]] = [
    ({"op": "step", "slot": "x"}, '$[0].slot: expected a number, got "x"'),
    ({"op": "step", "slot": 1.5}, "$[0].slot: expected a whole number, got 1.5"),
    ({"op": "step", "slot": 1, "sizes": [1, None]}, "$[0].sizes[1]: expected a number, got null"),
    ({"op": "step", "slot": 1, "sizes": 4}, "$[0].sizes: expected a list, got 4"),
    ({"op": "step", "slot": 1, "pair": {"second": 3}}, "$[0].pair.first: missing, expected a number"),
    ({"op": "step"}, "$[0].slot: missing, expected a number"),
    (
        {"op": "step", "slot": 1, "solt": 2},
        '$[0].solt: unknown key, accepted: "op", "slot", "fast", "sizes", "pair", "colour"',
    ),
    ({"op": "step", "slot": 1, "a b": 2}, '$[0]["a b"]: unknown key, accepted: '),
    (
        {"op": "step", "slot": 1, "colour": "green"},
        '$[0].colour: expected one of "red", "blue" or null, got "green"',
    ),
    ({"op": "stride"}, '$[0].op: unknown operation "stride", accepted: "step", "stream-wait", "together"'),
    ({"slot": 1}, '$[0].op: missing, accepted: "step", "stream-wait", "together"'),
    ([], '$[0]: expected an object with "op" one of "step", "stream-wait", "together", got []'),
    ({"op": "stream-wait", "rights": {"x": "NONE"}}, '$[0].rights.x: as a key expected a number, got "x"'),
    (
        {"op": "stream-wait", "rights": {"01": "NONE"}},
        '$[0].rights["01"]: as a key expected a number, got "01"',
    ),
    (
        {"op": "stream-wait", "rights": {"1": 3}},
        '$[0].rights["1"]: expected one of "NONE", "READ_WRITE", got 3',
    ),
    (
        {"op": "stream-wait", "data": "abc"},
        '$[0].data: expected bytes as pairs of hexadecimal digits, got "abc"',
    ),
    ({"op": "stream-wait", "limit": "off"}, '$[0].limit: expected a number or "auto", got "off"'),
    ({"op": "stream-wait", "both": [1]}, "$[0].both: expected a list of 2 values, got [1]"),
    ({"op": "stream-wait", "names": {"k": 1}}, "$[0].names.k: expected a string, got 1"),
    (
        {"op": "together", "left": [{"op": "together", "at": {"op": "step", "slot": None}}]},
        "$[0].left[0].at.slot: expected a number, got null",
    ),
]


@pytest.mark.parametrize(("data", "message"), FAULTS, ids=[message.partition(" ")[0] for _, message in FAULTS])
def test_a_fault_names_its_position_and_what_is_accepted(data: Any, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        from_json(tuple[OPERATION, ...], [data])  # type: ignore[valid-type]
    assert str(caught.value).startswith(message)
    assert list(Draft202012Validator(schema(OPERATION)).iter_errors(data))


def test_a_whole_float_is_an_integer_here_as_in_json_schema() -> None:
    step = from_json(Step, {"slot": 3.0})
    assert step == Step(3)
    assert type(step.slot) is int
    assert Draft202012Validator(schema(Step)).is_valid({"slot": 3.0})


def test_what_a_class_refuses_has_a_position_too() -> None:
    with pytest.raises(ProgramError, match=r"^\$\.here: an even value is wanted$"):
        from_json(Even, {"value": 1}, "$.here")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Step("x"), r'\$\.slot: expected a number, got "x"'),  # type: ignore[arg-type]
        (Step(1, sizes=[1]), r"\$\.sizes: expected a list, got \[1\]"),  # type: ignore[arg-type]
        (StreamWait(names={"a": 1}), r"\$\.names\.a: expected a string"),  # type: ignore[dict-item]
    ],
)
def test_a_value_of_the_wrong_type_is_not_written(value: object, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        to_json(value)


@dataclass(frozen=True)
class Unknown:
    values: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Clash:
    op: str = ""


def test_a_type_without_a_form_is_named_with_its_field() -> None:
    with pytest.raises(TypeError, match=r"Unknown\.values: no JSON form for the type frozenset\[int\]"):
        to_json(Unknown())


def test_an_operation_may_not_have_a_field_called_op() -> None:
    with pytest.raises(TypeError, match="Clash may not have a field 'op'"):
        to_json(Clash("x"), OneOf((Clash,)))
