from __future__ import annotations

import random
from collections import Counter
from statistics import median

import pytest

from vmm_conformance.contracts import BufferKind, RemapMode
from vmm_conformance.programs import files
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.va_remap import (
    CALLS,
    OPERATIONS,
    Configuration,
    Ending,
    Fail,
    Nullify,
    Probe,
    Result,
    Run,
)
from vmm_conformance.programs.va_remap_decode import decode


@pytest.fixture(scope="module")
def drawn() -> list[Program]:
    source = random.Random(0)
    return [decode(source.randbytes(400)) for _ in range(400)]


def runs(programs: list[Program]) -> list[Run]:
    return [operation for program in programs for operation in program.operations if isinstance(operation, Run)]


def test_programs_are_long_and_mostly_runs(drawn: list[Program]) -> None:
    assert median(len(program.operations) for program in drawn) >= 25
    assert median(len(runs([program])) / len(program.operations) for program in drawn) > 0.5


def test_every_operation_and_switch_is_drawn(drawn: list[Program]) -> None:
    assert {type(operation) for program in drawn for operation in program.operations} == set(OPERATIONS)
    for field in ("devices", "recommended", "budget", "exempt", "vmm", "consumer", "eager"):
        assert len({getattr(program.configuration, field) for program in drawn}) > 1, field
    assert {plan.mode for program in drawn for plan in program.configuration.executables} == set(RemapMode)


def test_every_kind_of_run_is_drawn(drawn: list[Program]) -> None:
    made = runs(drawn)
    assert {run.result for run in made} == set(Result)
    assert {run.ending for run in made} == set(Ending)
    assert {run.probe for run in made} == set(Probe)
    for field in ("stream", "other", "donate", "keep", "apart"):
        assert len({getattr(run, field) for run in made}) == 2, field
    assert sum(run.result is Result.OK and run.ending is Ending.TEARDOWN for run in made) > len(made) / 2


def test_every_call_is_made_to_fail(drawn: list[Program]) -> None:
    failing = {op.call for program in drawn for op in program.operations if isinstance(op, Fail)}
    assert failing == set(CALLS)


def test_a_failure_is_followed_by_a_run_or_a_repair(drawn: list[Program]) -> None:
    for program in drawn:
        for one, other in zip(program.operations, program.operations[1:], strict=False):
            assert not (isinstance(one, Fail) and isinstance(other, Fail | Nullify))


def test_programs_use_subsets_of_the_operations(drawn: list[Program]) -> None:
    kinds = Counter(len({type(operation) for operation in program.operations}) for program in drawn)
    assert min(kinds) <= 3
    assert max(kinds) >= 7


def test_what_is_written_may_be_written(drawn: list[Program]) -> None:
    for program in drawn:
        for plan in program.configuration.executables:
            for command in plan.commands:
                assert not set(command.reads) & set(command.writes)
                for index in command.writes:
                    buffer = plan.buffers[index]
                    assert buffer.donatable or buffer.kind in (BufferKind.OUTPUT, BufferKind.TEMP)


def test_pins_fix_the_configuration() -> None:
    data = random.Random(1).randbytes(400)
    pins = {"mode": "SKIP_TEMP", "executables": 2, "devices": 2, "vmm": False, "short": True}
    configuration = decode(data, pins).configuration
    assert [plan.mode for plan in configuration.executables] == [RemapMode.SKIP_TEMP] * 2
    assert (configuration.devices, configuration.vmm) == (2, False)
    assert configuration.budget
    assert any(run.probe for run in runs([decode(data, {"probe": True})]))
    assert decode(data, {}) == decode(data)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 400, bytes(range(256))])
def test_any_bytes_are_a_program(data: bytes) -> None:
    program = decode(data)
    assert program.contract == "va-remap"
    assert isinstance(program.configuration, Configuration)


def test_json_both_ways(drawn: list[Program]) -> None:
    for program in drawn[:50]:
        assert files.load(files.dump(program)) == program
