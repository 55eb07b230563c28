"""Programs of the contract ``driver``: drawn from bytes, read back from JSON, run whatever is left of them."""

from __future__ import annotations

import random
import statistics
from typing import Any, get_args

import pytest

from vmm_conformance.drivers.host.subject import host
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.programs.driver import OPERATIONS, Configuration, decode
from vmm_conformance.programs.files import dump, load
from vmm_conformance.programs.program import Program
from vmm_conformance.running.driver import run
from vmm_conformance.running.subjects import open_driver


def programs(count: int, seed: int = 0) -> list[Program]:
    source = random.Random(seed)
    return [decode(source.randbytes(400)) for _ in range(count)]


def is_mistake(operation: Any) -> bool:
    harmless = (ops.EXACT, "latest", "tail", *get_args(ops.ShareTwist))
    return getattr(operation, "twist", ops.EXACT) not in harmless


def test_programs_are_long_and_a_third_of_them_is_mistakes() -> None:
    drawn = programs(400)
    assert statistics.median(len(program.operations) for program in drawn) >= 25
    mistakes = [is_mistake(operation) for program in drawn for operation in program.operations]
    assert 0.25 < sum(mistakes) / len(mistakes) < 0.4


def test_every_operation_and_every_mistake_is_drawn() -> None:
    drawn = {
        (type(operation), getattr(operation, "twist", ops.EXACT))
        for program in programs(600)
        for operation in program.operations
    }
    for kind in OPERATIONS:
        twists = getattr(ops, kind.__annotations__.get("twist", ""), None)
        for twist in get_args(twists) or (ops.EXACT,):
            assert (kind, twist) in drawn


def test_every_field_of_the_configuration_is_drawn() -> None:
    drawn = [program.configuration for program in programs(200)]
    for name in Configuration.__dataclass_fields__:
        assert len({getattr(configuration, name) for configuration in drawn}) > 1, name


def test_pins_fix_the_configuration() -> None:
    pinned = {"devices": 2, "access_part": True}
    for seed in range(20):
        configuration = decode(random.Random(seed).randbytes(400), pinned).configuration
        assert (configuration.devices, configuration.access_part) == (2, True)


def test_few_bytes_make_a_program_too() -> None:
    for data in (b"", b"\0", b"\xff" * 7):
        program = decode(data)
        assert isinstance(program.operations[0], ops.Reserve)
        assert run(program, host, open_driver("host")).events


def test_json_and_back() -> None:
    for program in programs(50):
        assert load(dump(program)) == program


@pytest.mark.parametrize("seed", range(8))
def test_a_program_stays_one_when_operations_are_left_out(seed: int) -> None:
    source = random.Random(seed)
    program = decode(source.randbytes(400))
    kept = tuple(operation for operation in program.operations if source.random() < 0.4)
    outcomes = [
        event.args[0]["status"]
        for event in run(program.with_operations(kept), host, open_driver("host"))
        if event.kind == "end"
    ]
    assert len(outcomes) == len(kept)
    assert set(outcomes) <= {"ok", "refused", "skipped"}


def test_few_operations_have_nothing_to_work_on() -> None:
    skipped = total = 0
    for program in programs(100):
        for event in run(program, host, open_driver("host")):
            if event.kind == "end":
                total += 1
                skipped += event.args[0]["status"] == "skipped"
    assert skipped / total < 0.25


def test_mistakes_are_refused_and_the_rest_is_not() -> None:
    """On the strict driver a mistake never succeeds, but for those that a capability makes legal."""
    legal = {
        "part",
        "offset",
        "hint-free",
        "hint-taken",
        "end",
        "seam",
        "across",
        "read-only",
        "reserved",
        "denied",
        "gap",
        "hole",
    }
    for program in programs(100):
        for event in run(program, host, open_driver("host")):
            if event.kind != "end" or event.op >= len(program.operations):
                continue
            operation = program.operations[event.op]
            if is_mistake(operation) and operation.twist not in legal:
                assert event.args[0]["status"] in ("refused", "skipped"), operation
