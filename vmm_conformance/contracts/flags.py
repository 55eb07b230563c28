"""The contract ``flags``: how skip-remap, copy threshold and update mode are read from text.

A fresh reader stands for a fresh process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol


class Revision(StrEnum):
    """The flag grammars, which differ by revision (FLAG-147 to FLAG-155)."""

    ENV_AUTO = "env-auto"
    ENV_BYTES = "env-bytes"
    FLAGS = "flags"


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force: ``copy_threshold`` in bytes, 0 is off; warnings as they were given."""

    skip_remap: bool
    copy_threshold: int | Literal["auto"]
    warnings: tuple[str, ...] = ()


class FlagReader(Protocol):
    """Reads settings as one process would.

    ``environment`` holds the variables ``XLA_VMM_SKIP_REMAP`` and ``XLA_VMM_TMP_COPY_THRESHOLD``;
    ``options`` the debug options ``skip_remap`` and ``copy_threshold_bytes`` as text. A name that is
    missing is unset. Text that a revision refuses raises `SubjectError` (INVALID_ARGUMENT) that quotes it.
    """

    def read(
        self, platform: str, environment: Mapping[str, str], options: Mapping[str, str]
    ) -> Settings: ...


FlagReaderFactory = Callable[[Revision], FlagReader]
