"""Programs for the contract ``flags``: processes that read their settings from boundary texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vmm_conformance.contracts import Revision
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program

CONTRACT: Final = "flags"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Which grammar is spoken."""

    revision: Revision


@dataclass(frozen=True, slots=True)
class Read:
    """The process reads its settings. A name that is missing is unset."""

    platform: str = "ROCM"
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewProcess:
    """The next read happens in a fresh process."""


Operation = Read | NewProcess
OPERATIONS: Final[tuple[type, ...]] = (Read, NewProcess)

ENVIRONMENT: Final = ("XLA_VMM_SKIP_REMAP", "XLA_VMM_TMP_COPY_THRESHOLD")
"""The variables: skip-remap, then the copy threshold."""

OPTIONS: Final = ("skip_remap", "copy_threshold_bytes")
"""The debug options, in the same order."""

PLATFORMS: Final = ("ROCM", "CUDA", "rocm", "SYCL", "", "ROCM ", "Rocm")
"""``ROCM`` and what must not be taken for it."""

ALWAYS: Final = ("0", "1", "", "-1")
"""Texts whose meaning differs between the revisions: every program has them."""

TEXTS: Final[tuple[str, ...]] = (
    *("2", "4096", "true", "false", "off", "no", "junk", " "),
    # the falsey and truthy words in other cases, and near misses of them
    *(
        "True",
        "TRUE",
        "False",
        "FALSE",
        "OFF",
        "oFf",
        "NO",
        "No",
        "on",
        "yes",
        "f",
        "00",
        " 0",
        "fal\u017fe",
        "auto",
    ),
    # numbers that are none, or not wholly
    *("1e3", "4M", "0x10", "010", "1.5", "12abc", "12 ", " 12", "+5", "--1", "1_000", "\u0663", "\u00b2"),
    # the edges of the integers, and beyond
    *("-0", "-5", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    *("18446744073709551616", "999999999999999999999", "-9223372036854775809"),
)
"""Further boundary texts, for either setting, of which a program has a few.

What C and Python read differently is among them.
"""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for; ``pins`` fixes the ``revision``."""
    choices = Choices(data)
    drawn = choices.pick(tuple(Revision))
    revision = Revision((pins or {}).get("revision", drawn))
    palette = ALWAYS + tuple(choices.pick(TEXTS) for _ in range(5 + choices.below(8)))
    operations: list[Operation] = []
    wanted = 25 + choices.below(40)
    while len(operations) < wanted and not choices.exhausted:
        operations.append(_operation(choices, revision, palette, operations))
    return Program(CONTRACT, Configuration(revision), tuple(operations))


def _operation(choices: Choices, revision: Revision, palette: tuple[str, ...], before: list[Operation]) -> Operation:
    kind = choices.below(16)
    if kind < 6 and before and isinstance(before[-1], Read):
        return NewProcess()
    reads = [operation for operation in before if isinstance(operation, Read)]
    if kind >= 13 and reads:
        return reads[choices.below(len(reads))]
    platform = choices.pick(PLATFORMS) if choices.chance(64) else "ROCM"
    own = _texts(choices, palette)
    other = _texts(choices, palette) if choices.chance(48) else (None, None)  # must have no effect
    environment, options = (other, own) if revision is Revision.FLAGS else (own, other)
    return Read(platform, _named(ENVIRONMENT, environment), _named(OPTIONS, options))


def _texts(choices: Choices, palette: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Texts for both settings, often for one alone: a refused text hides what became of the other."""
    given = choices.below(8)
    skip = choices.pick(palette) if given in (1, 2, 5, 6, 7) else None
    threshold = choices.pick(palette) if given >= 3 else None
    return skip, threshold


def _named(names: tuple[str, str], texts: tuple[str | None, str | None]) -> dict[str, str]:
    return {name: text for name, text in zip(names, texts, strict=True) if text is not None}
