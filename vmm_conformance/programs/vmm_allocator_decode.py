"""Programs for the contract ``vmm-allocator`` out of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import UNLIMITED
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.vmm_allocator_draw import Operations
from vmm_conformance.programs.vmm_allocator_motifs import BIG, Motifs

LENGTHS: Final = (25, 40)
"""Fewest and most operations of a drawn program whose bytes do not run out."""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for; ``pins`` fixes fields of its configuration."""
    choices = Choices(data)
    configuration = replace(_configuration(choices), **(pins or {}))
    draw = Motifs(choices, configuration)
    shortest, longest = LENGTHS
    length = shortest + choices.below(longest - shortest + 1)
    operations: Operations = []
    while len(operations) < length and not choices.exhausted:
        drawn = draw.next()
        operations += [each for each in drawn if type(each) is not ops.Fail] if configuration.rounds > 1 else drawn
    return Program(ops.CONTRACT, configuration, tuple(operations))


def _configuration(choices: Choices) -> ops.Configuration:
    shape, switches, money = choices.byte(), choices.byte(), choices.byte()
    big = shape & 15 == 15
    granule = BIG if big else 4096 << (0, 0, 2, 0)[shape >> 4 & 3]
    granules = (UNLIMITED, 6, 10, 3, UNLIMITED, 16, 8, 4)[money & 7]
    unlimited = big or granules == UNLIMITED
    return ops.Configuration(
        devices=2 if switches & 3 == 3 else 1,
        recommended=granule,
        slots=80 if big else 8,
        capacity=1 << 34 if big else granule * (256, 256, 12, 8)[money >> 3 & 3],
        budget=UNLIMITED if unlimited else granules * granule + (0, 1, granule - 1, 0)[money >> 5 & 3],
        exempt=(1,) if switches & 12 == 12 else (),
        streams_end=switches & 16 == 16,
        eager=switches & 224 == 224,
    )
