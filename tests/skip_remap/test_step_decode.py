"""Any bytes make a program: long, varied, and always the same."""

from __future__ import annotations

import random
from collections import Counter
from statistics import median
from typing import Any

import pytest

from vmm_conformance.contracts import UpdateMode
from vmm_conformance.programs.codec import from_json, to_json
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.skip_remap import OPERATIONS, Configuration, Damage, Fail, Outcome, Step
from vmm_conformance.programs.skip_remap_decode import FAILING, LIMIT, decode

COUNT = 300


def drawn(seed: int = 0, pins: dict[str, Any] | None = None, count: int = COUNT) -> list[Program]:
    source = random.Random(seed)
    return [decode(source.randbytes(400), pins or {}) for _ in range(count)]


PROGRAMS = drawn()
OPERATIONS_DRAWN = [operation for program in PROGRAMS for operation in program.operations]


def test_programs_are_long() -> None:
    lengths = [len(program.operations) for program in PROGRAMS]
    assert median(lengths) >= 25
    assert max(lengths) <= LIMIT


def test_every_kind_of_operation_occurs() -> None:
    counts = Counter(type(operation) for operation in OPERATIONS_DRAWN)
    assert [kind.__name__ for kind in OPERATIONS if counts[kind] < 5] == []
    assert counts[Step] > len(OPERATIONS_DRAWN) / 4


def test_every_outcome_damage_and_failing_call_occurs() -> None:
    assert {step.outcome for step in OPERATIONS_DRAWN if isinstance(step, Step)} == set(Outcome)
    assert {o.damage for o in OPERATIONS_DRAWN if hasattr(o, "damage")} == set(Damage)
    assert {o.kind for o in OPERATIONS_DRAWN if isinstance(o, Fail)} == set(FAILING)


def test_programs_differ_in_what_they_do() -> None:
    """A swarm: each program has some kinds of operations and lacks others."""
    sets = Counter(frozenset(type(o) for o in program.operations) for program in PROGRAMS)
    assert len(sets) > COUNT / 3


def test_configurations_cover_what_there_is() -> None:
    configurations = [program.configuration for program in PROGRAMS]
    plans = [plan for configuration in configurations for plan in configuration.executables]
    assert {plan.mode for plan in plans} == set(UpdateMode)
    assert {plan.platform for plan in plans} == {"ROCM", "CUDA", "rocm"}
    assert {plan.vmm for plan in plans} == {plan.skip_remap for plan in plans} == {True, False}
    for name in ("capture", "eager", "partial_map", "unmap_spans", "access_spans"):
        assert {getattr(configuration, name) for configuration in configurations} == {True, False}
    assert {len(c.executables) for c in configurations} == {c.devices for c in configurations} == {1, 2}
    assert {configuration.streams for configuration in configurations} == {1, 2, 3}


def test_sizes_lie_around_the_boundaries() -> None:
    sizes = {s.size for p in PROGRAMS for e in p.configuration.executables for s in e.slots}
    assert {0, 1, 255, 256, 257, 4095, 4096, 4097, 8192, 8193} <= sizes


def test_a_shadow_is_refused_in_the_first_step_of_many_programs_with_shadows() -> None:
    programs = drawn(pins={"copy_threshold": 1024, "platform": "ROCM", "vmm": True})
    first = [program.operations[0] for program in programs]
    assert sum(isinstance(o, Fail) and o.kind == "alloc" for o in first) > COUNT / 10


def test_the_same_bytes_make_the_same_program() -> None:
    assert drawn() == PROGRAMS


@pytest.mark.parametrize("data", [b"", b"\0" * 400, b"\xff" * 400, b"\x07"])
def test_any_bytes_will_do(data: bytes) -> None:
    program = decode(data)
    assert any(isinstance(operation, Step) for operation in program.operations)
    assert isinstance(program.configuration, Configuration)


PINS: list[dict[str, Any]] = [
    {"devices": 2, "streams": 3, "executables": 2},
    {"capture": False, "eager": True, "partial_map": False},
    {"mode": UpdateMode.CAPTURE_CMD_NEVER_UPDATE, "platform": "CUDA", "vmm": False},
    {"skip_remap": False, "copy_threshold": 64},
]


@pytest.mark.parametrize("pins", PINS, ids=lambda pins: "-".join(pins))
def test_pinned_parts_are_as_pinned(pins: dict[str, Any]) -> None:
    for program in drawn(3, pins, 40):
        configuration = program.configuration
        for name, value in pins.items():
            if name == "executables":
                assert len(configuration.executables) == value
            elif hasattr(configuration, name):
                assert getattr(configuration, name) == value
            else:
                assert {getattr(plan, name) for plan in configuration.executables} == {value}


def test_compared_programs_have_no_operation_that_one_setting_may_refuse() -> None:
    for program in drawn(4, {"compare": True}, 60):
        assert program.configuration.compare
        steps = [operation for operation in program.operations if isinstance(operation, Step)]
        assert {(step.outcome, step.probe) for step in steps} == {(Outcome.OK, False)}
        assert not any(isinstance(operation, Fail) for operation in program.operations)


def test_programs_survive_json() -> None:
    for program in PROGRAMS[:50]:
        assert from_json(type(program.configuration), to_json(program.configuration)) == program.configuration
