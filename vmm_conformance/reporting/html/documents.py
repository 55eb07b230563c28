"""What a page is made of: reports and kill matrices as they were written, read back and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from vmm_conformance.reporting import json_report
from vmm_conformance.reporting.schema_check import Mismatch, check
from vmm_conformance.waivers.listed import waivers_of

LARGEST: Final = 512 << 20
"""Bytes of the largest file that is read."""
Data = dict[str, Any]


class DocumentError(ValueError):
    """A file that is neither a report nor a kill matrix; the message names it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Document:
    """One file. ``label`` tells it from its like: what a night or a version is called on the page."""

    label: str
    data: Data
    kills: bool = False


def read(path: Path) -> Document:
    """The document in ``path``, a file or a folder with a ``report.json``. Raises `DocumentError`."""
    file = path / json_report.FILE if path.is_dir() else path
    try:
        if file.stat().st_size > LARGEST:
            raise DocumentError(f"{path}: larger than {LARGEST >> 20} MiB, so no report of ours")
        data = json.loads(file.read_text("utf-8"))
        return document(data, _label(file))
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}; give a report.json or a folder with one") from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path}: {error}") from None


def document(data: Any, label: str) -> Document:
    """``data``, checked. Raises `Mismatch`, a ``ValueError``, with the position of what does not fit."""
    if isinstance(data, dict) and "kills" in data:
        check(data, kills_schema())
        return Document(label, data, kills=True)
    if not isinstance(data, dict) or data.get("format") != "vmm-conformance report":
        raise Mismatch("$", "neither a report (report.json) nor a kill matrix (vmm-conformance mutants --json)")
    check(data, json_report.schema())
    try:
        waivers_of(data)
    except ValueError as error:
        raise Mismatch("$.waivers", str(error)) from None
    return Document(label, data)


def kills_schema() -> Data:
    """The JSON Schema (draft 2020-12) of a kill matrix."""
    text = resources.files("vmm_conformance.reporting").joinpath("kills.schema.json").read_text("utf-8")
    data: Data = json.loads(text)
    return data


def distinct(documents: Iterable[Document]) -> list[Document]:
    """The documents with labels that occur once: the second ``report`` becomes ``report (2)``."""
    seen: dict[str, int] = {}
    named: list[Document] = []
    for each in documents:
        seen[each.label] = count = seen.get(each.label, 0) + 1
        label = each.label if count == 1 else f"{each.label} ({count})"
        named.append(Document(label, each.data, each.kills))
    return named


def _label(file: Path) -> str:
    """A report.json goes by its folder's name."""
    if file.name == json_report.FILE:
        return file.absolute().parent.name or "report"
    return file.stem


def reports_of(documents: Sequence[Document]) -> list[Document]:
    """Those that are reports, in the order given."""
    return [each for each in documents if not each.kills]
