from __future__ import annotations

import random
from collections import Counter
from statistics import median
from typing import Final

import pytest

from vmm_conformance.programs import files
from vmm_conformance.programs.allocator import (
    OPERATIONS,
    PARTS,
    Allocate,
    Configuration,
    EnablePeer,
    Fail,
    Order,
    Pause,
    Shrink,
    Statistics,
    Trim,
    declared,
    decode,
)
from vmm_conformance.programs.program import Program


@pytest.fixture(scope="module")
def drawn() -> list[Program]:
    source = random.Random(0)
    return [decode(source.randbytes(400), {"parts": PARTS} if number % 2 else {}) for number in range(400)]


def test_programs_are_long(drawn: list[Program]) -> None:
    assert median(len(program.operations) for program in drawn) >= 25


def test_every_operation_and_switch_is_drawn(drawn: list[Program]) -> None:
    assert {type(operation) for program in drawn for operation in program.operations} == set(OPERATIONS)
    for field in ("devices", "peers", "eager", "unmap_spans", "access_spans", "partial_map", "recommended"):
        assert len({getattr(program.configuration, field) for program in drawn}) > 1, field


def test_programs_use_subsets_of_the_operations(drawn: list[Program]) -> None:
    kinds = Counter(len({type(operation) for operation in program.operations}) for program in drawn)
    assert min(kinds) <= 5
    assert max(kinds) >= 9


def test_sizes_stand_at_the_boundaries(drawn: list[Program]) -> None:
    sizes = [
        (operation.size, program.configuration.recommended)
        for program in drawn
        for operation in program.operations
        if isinstance(operation, Allocate)
    ]
    near = sum(min(size % granule, -size % granule) <= 1 for size, granule in sizes)
    assert near > len(sizes) / 3
    assert any(size == 0 for size, _ in sizes)


def test_a_stream_is_never_ordered_with_itself(drawn: list[Program]) -> None:
    orders = [op for program in drawn for op in program.operations if isinstance(op, Order)]
    assert all(order.first != order.then for order in orders)


def test_a_failure_is_followed_by_what_it_may_strike(drawn: list[Program]) -> None:
    for program in drawn:
        for one, other in zip(program.operations, program.operations[1:], strict=False):
            assert not (isinstance(one, Fail) and isinstance(other, Fail | Order))


def test_parts_that_a_subject_does_not_declare_are_not_drawn() -> None:
    class Some:
        capabilities: Final = {"shrink": True, "pause": ("discard",)}

    pins = declared({"parts": PARTS, "devices": 1}, Some())
    assert pins == {"parts": ("shrink", "discard", "holds"), "devices": 1}
    source = random.Random(3)
    programs = [decode(source.randbytes(400), pins) for _ in range(100)]
    drawn = [operation for program in programs for operation in program.operations]
    assert {type(operation) for operation in drawn} >= {Shrink, Pause}
    assert not {EnablePeer, Statistics, Trim} & {type(operation) for operation in drawn}
    assert not any(operation.backup for operation in drawn if isinstance(operation, Pause))


def test_pins_fix_the_configuration() -> None:
    data = random.Random(1).randbytes(400)
    pinned = decode(data, {"devices": 2, "peers": False, "capacity": 1 << 16})
    configuration = pinned.configuration
    assert (configuration.devices, configuration.peers, configuration.capacity) == (2, False, 1 << 16)
    assert decode(data, {}) == decode(data)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 400, bytes(range(256))])
def test_any_bytes_are_a_program(data: bytes) -> None:
    program = decode(data)
    assert program.contract == "allocator"
    assert isinstance(program.configuration, Configuration)


def test_json_both_ways(drawn: list[Program]) -> None:
    for program in drawn[:50]:
        assert files.load(files.dump(program)) == program
