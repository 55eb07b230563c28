from __future__ import annotations

import random
from collections import Counter
from statistics import median

import pytest

from vmm_conformance.programs import files
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.reservation import OPERATIONS, Configuration, Fail, MapOne, MapTo, Odd, Remap, Touch
from vmm_conformance.programs.reservation_decode import AFTER_FAIL, FAILING, MAP_ODDS, REMAP_ODDS, decode


@pytest.fixture(scope="module")
def drawn() -> list[Program]:
    source = random.Random(0)
    return [decode(source.randbytes(400)) for _ in range(400)]


def test_programs_are_long(drawn: list[Program]) -> None:
    assert median(len(program.operations) for program in drawn) >= 25


def test_every_operation_and_switch_is_drawn(drawn: list[Program]) -> None:
    assert {type(operation) for program in drawn for operation in program.operations} == set(OPERATIONS)
    switches = ("peers", "unmap_spans", "access_spans", "partial_map", "map_offset")
    for field in ("devices", "recommended", "capacity", "teardown", *switches):
        assert len({getattr(program.configuration, field) for program in drawn}) > 1, field


def test_programs_use_subsets_of_the_operations(drawn: list[Program]) -> None:
    kinds = Counter(len({type(operation) for operation in program.operations}) for program in drawn)
    assert min(kinds) <= 7
    assert max(kinds) >= 12


def test_every_wrong_request_is_drawn_and_most_are_right(drawn: list[Program]) -> None:
    asked = [op for program in drawn for op in program.operations if isinstance(op, MapOne | MapTo | Remap)]
    odds = Counter((isinstance(op, Remap), op.odd) for op in asked)
    assert {odd for remap, odd in odds if not remap} == {*MAP_ODDS, Odd.NONE}
    assert {odd for remap, odd in odds if remap} == {*REMAP_ODDS, Odd.NONE}
    assert odds[False, Odd.NONE] + odds[True, Odd.NONE] > 0.7 * len(asked)


def test_every_use_of_a_null_mapping_is_drawn(drawn: list[Program]) -> None:
    assert {op.how for program in drawn for op in program.operations if hasattr(op, "how")} == set(Touch)


def test_a_failure_is_followed_by_what_it_may_strike(drawn: list[Program]) -> None:
    assert set(AFTER_FAIL) == set(FAILING)
    followed = Counter(
        type(other) in AFTER_FAIL[one.kind]
        for program in drawn
        for one, other in zip(program.operations, program.operations[1:], strict=False)
        if isinstance(one, Fail)
    )
    assert followed[True] > 0.8 * followed.total(), "where there is something to strike"


def test_pins_fix_the_configuration() -> None:
    data = random.Random(1).randbytes(400)
    pinned = decode(data, {"devices": 2, "peers": False}).configuration
    assert (pinned.devices, pinned.peers) == (2, False)
    assert decode(data, {}) == decode(data)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 400, bytes(range(256))])
def test_any_bytes_are_a_program(data: bytes) -> None:
    program = decode(data)
    assert program.contract == "reservation"
    assert isinstance(program.configuration, Configuration)


def test_json_both_ways(drawn: list[Program]) -> None:
    for program in drawn[:50]:
        assert files.load(files.dump(program)) == program
