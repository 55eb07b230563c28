"""Loads the invariants from the TOML files beside this module."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

VERSION: Final = "2026.11"
"""Version of the catalogue, year and month; reports carry it. It moves with a release whose sentences are others."""

LEVELS: Final = ("must", "should")
EVIDENCE: Final = ("documented", "inferred")
_ID = re.compile(r"[A-Z]+-\d+")


class CatalogueError(ValueError):
    """An entry of the catalogue is not what it must be."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """One documented sentence that a subject must (or should) keep.

    ``evidence`` says whether the source states it (``documented``) or it was concluded (``inferred``);
    ``needs`` what a program must reach before a pass counts; ``why`` what goes wrong without it.
    ``trace`` is ``no`` where it can be judged without seeing the subject's driver calls.
    """

    id: str
    level: str
    evidence: str
    contract: str
    statement: str
    why: str
    source: str
    needs: str
    trace: str = "yes"

    @property
    def order(self) -> tuple[str, int]:
        """Sort key: area, then number."""
        area, number = self.id.rsplit("-", 1)
        return area, int(number)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All invariants by id, in order."""

    version: str
    invariants: Mapping[str, Invariant]

    def __getitem__(self, id: str) -> Invariant:
        try:
            return self.invariants[id]
        except KeyError:
            raise CatalogueError(f"no invariant {id!r}; `vmm-conformance list` shows the known ones") from None

    def __iter__(self) -> Iterator[Invariant]:
        return iter(self.invariants.values())

    def __len__(self) -> int:
        return len(self.invariants)

    def of(self, contract: str) -> tuple[Invariant, ...]:
        """The invariants of one contract, in order."""
        return tuple(entry for entry in self if entry.contract == contract)

    def matching(self, prefix: str) -> tuple[Invariant, ...]:
        """The invariant with the id ``prefix``, or all whose id begins with it (``STEP``, ``STEP-8``)."""
        if prefix in self.invariants:
            return (self.invariants[prefix],)
        return tuple(entry for entry in self if entry.id.startswith(prefix))


def _entry(data: dict[str, Any], where: str) -> Invariant:
    known = {f.name for f in fields(Invariant)}
    wrong = sorted((set(data) ^ known) - {"trace"})
    if wrong:
        fields_known = f"fields must be exactly {sorted(known)} (trace may be left out)"
        raise CatalogueError(f"{where}: {fields_known}; look at {wrong}")
    for name, value in data.items():
        if not isinstance(value, str) or not value.strip():
            raise CatalogueError(f"{where}: {name} must be text, got {value!r}")
    entry = Invariant(**{name: " ".join(value.split()) for name, value in data.items()})
    words = (entry.level in LEVELS, entry.evidence in EVIDENCE, entry.trace in ("yes", "no"))
    if not _ID.fullmatch(entry.id) or not all(words):
        raise CatalogueError(
            f"{where}: id like STEP-87, level in {LEVELS}, evidence in {EVIDENCE}, trace yes or no; got {entry}"
        )
    return entry


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships. Raises `CatalogueError` if an entry is malformed or an id is there twice."""
    entries: dict[str, Invariant] = {}
    for file in sorted(resources.files(__package__).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        for number, data in enumerate(tomllib.loads(file.read_text("utf-8")).get("invariant", [])):
            entry = _entry(data, f"{file.name}, entry {number + 1}")
            if entry.id in entries:
                raise CatalogueError(f"{file.name}: {entry.id} is defined twice")
            entries[entry.id] = entry
    return Catalogue(VERSION, dict(sorted(entries.items(), key=lambda pair: pair[1].order)))
