"""What programs of the contract ``vmm-allocator`` look like, and that any bytes make one."""

from __future__ import annotations

import random
import statistics
from collections import Counter

from vmm_conformance.programs.files import dump, load
from vmm_conformance.programs.vmm_allocator import OPERATIONS, Configuration, Together
from vmm_conformance.programs.vmm_allocator_decode import decode

MANY = [decode(random.Random(seed).randbytes(400)) for seed in range(400)]


def test_400_bytes_make_a_long_program() -> None:
    assert statistics.median(len(program.operations) for program in MANY) >= 25
    assert max(len(program.operations) for program in MANY) < 60


def test_every_kind_of_operation_is_drawn() -> None:
    counted = Counter(type(operation) for program in MANY for operation in program.operations)
    assert set(counted) == set(OPERATIONS)
    calls = {type(c) for p in MANY for o in p.operations if isinstance(o, Together) for c in (o.first, o.second)}
    assert len(calls) == 6


def test_equal_bytes_make_equal_programs() -> None:
    data = random.Random(7).randbytes(400)
    assert decode(data) == decode(data)


def test_any_bytes_make_a_program() -> None:
    for data in (b"", b"\0" * 400, b"\xff" * 400, b"\x55"):
        assert decode(data).contract == "vmm-allocator"


def test_pins_fix_the_configuration() -> None:
    for seed in range(20):
        program = decode(random.Random(seed).randbytes(400), {"devices": 2, "budget": 24576})
        assert (program.configuration.devices, program.configuration.budget) == (2, 24576)


def test_program_is_the_same_after_writing_and_reading() -> None:
    for program in MANY[:60]:
        assert load(dump(program)) == program


def test_large_configurations_reach_the_limit_of_bytes() -> None:
    large = [program for program in MANY if program.configuration.recommended == 1 << 20]
    assert large
    assert all(program.configuration.capacity >= 1 << 30 for program in large)
    assert Configuration().recommended == 4096
