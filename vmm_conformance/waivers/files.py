"""Reads a file of waivers: TOML, checked against ``waivers.schema.json`` beside this module."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from vmm_conformance.catalogue import CatalogueError, catalogue
from vmm_conformance.programs.codec import ProgramError
from vmm_conformance.programs.files import load as load_program
from vmm_conformance.programs.files import to_data
from vmm_conformance.reporting.schema_check import Mismatch, check
from vmm_conformance.waivers.waiver import Waiver

_PLACE: Final = re.compile(r"\$\.waiver\[(\d+)\](?:\.(\w+))?")


class WaiverError(ValueError):
    """A file of waivers that cannot be used; one line that names file, entry and key, and what is accepted."""


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file of waivers, dates as text."""
    text = resources.files(__package__).joinpath("waivers.schema.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def load(path: Path) -> tuple[Waiver, ...]:
    """The waivers in the TOML file ``path``, with their programs. Raises `WaiverError`."""
    try:
        data = _plain(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise WaiverError(f"no file of waivers {str(path)!r}: {error.strerror or error}; give a TOML file") from None
    except ValueError as error:
        raise WaiverError(f"{path}: no TOML: {error}") from None
    try:
        check(data, schema())
    except Mismatch as mismatch:
        raise WaiverError(f"{path}: {_told(mismatch, data)}") from None
    return tuple(_waiver(entry, f"{path}: {_entry(data, n)}", path.parent) for n, entry in enumerate(data["waiver"]))


def _plain(value: Any) -> Any:
    """TOML data as JSON data: dates and times become text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else value.isoformat()


def _entry(data: Any, number: int) -> str:
    entry = data["waiver"][number]
    named = entry.get("invariant") if isinstance(entry, dict) else None
    return f"waiver {number + 1}" + (f" ({named})" if isinstance(named, str) else "")


def _told(mismatch: Mismatch, data: Any) -> str:
    """What does not fit the schema, in the words of the file."""
    found = _PLACE.match(mismatch.where)
    if found is None:
        return f"{mismatch.what}; accepted: tables [[waiver]] and nothing else"
    where, key = _entry(data, int(found[1])), found[2]
    if key is not None:
        return _refused(where, key, data["waiver"][int(found[1])][key])
    if mismatch.what in ("'subject' is missing", "'driver' is missing"):
        return f"{where}, subject: is missing, and driver too; accepted: one of them, or both"
    return f"{where}: {mismatch.what}; accepted keys: {', '.join(_properties())}"


def _properties() -> dict[str, Any]:
    found: dict[str, Any] = schema()["$defs"]["waiver"]["properties"]
    return found


def _refused(where: str, key: str, value: Any, accepted: str = "") -> str:
    accepted = accepted or _properties()[key]["description"].partition(". ")[0].partition("; ")[0]
    return f"{where}, {key}: got {json.dumps(value)[:80]}; accepted: {accepted}"


def _waiver(entry: dict[str, Any], where: str, folder: Path) -> Waiver:
    """One entry that fits the schema. Raises `WaiverError` for a value that means nothing."""
    try:
        invariant = catalogue()[entry["invariant"]]
    except CatalogueError:
        known = "an invariant of the catalogue, see vmm-conformance list"
        raise WaiverError(_refused(where, "invariant", entry["invariant"], known)) from None
    spans = entry.get("driver_versions", {})
    _check_spans("subject_versions", [entry.get("subject_versions", "")], where)
    _check_spans("driver_versions", spans.values(), where)
    file = entry.pop("program", "")
    try:
        made = Waiver(**{**entry, "expires": date.fromisoformat(entry["expires"])}, file=file)
    except ValueError:
        raise WaiverError(_refused(where, "expires", entry["expires"], "a day of the calendar")) from None
    return _with_program(made, invariant.contract, where, folder) if file else made


def _check_spans(key: str, spans: Iterable[str], where: str) -> None:
    for span in spans:
        try:
            SpecifierSet(span)
        except InvalidSpecifier:
            raise WaiverError(_refused(where, key, span, "a range of versions, as in >=1.2, <2")) from None


def _with_program(waiver: Waiver, contract: str, where: str, folder: Path) -> Waiver:
    try:
        program = load_program(folder / waiver.file)
    except OSError as error:
        wanted = f"the path of a program below {str(folder)!r} ({error.strerror})"
        raise WaiverError(_refused(where, "program", waiver.file, wanted)) from None
    except ProgramError as error:
        raise WaiverError(f"{where}, program: {error}") from None
    if program.contract != contract:
        wanted = f"a program for the contract {contract}, as the invariant is; this one is for {program.contract}"
        raise WaiverError(_refused(where, "program", waiver.file, wanted))
    return replace(waiver, program=to_data(program))
