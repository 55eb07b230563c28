"""Who a report is about: the subject, and what it allocated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vmm_conformance.contracts import contracts_of


@dataclass(frozen=True, slots=True)
class SubjectInfo:
    """What was under test: as it was asked for, and as it calls itself; ``real`` is None of what is no driver."""

    spec: str
    name: str
    version: str
    contracts: tuple[str, ...]
    real: bool | None = None

    @classmethod
    def of(cls, spec: str, subject: object) -> SubjectInfo:
        """What ``subject``, found by ``spec``, says of itself."""
        name = getattr(subject, "name", None) or spec
        real: bool | None = getattr(getattr(subject, "facts", None), "real", None)
        return cls(spec, str(name), str(getattr(subject, "version", None) or ""), contracts_of(subject), real)


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """What the subject allocated from; ``real`` says whether a device stood behind it, ``versions`` what else."""

    name: str
    real: bool = False
    options: Mapping[str, Any] | None = None
    versions: Mapping[str, str] | None = None
