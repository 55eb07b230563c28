"""Makes a bundle of a report's folder, or of a kill matrix."""

from __future__ import annotations

from pathlib import Path

from vmm_conformance.bundling.archive import KILLS, REPORT, BundleError, write
from vmm_conformance.reporting.environment import environment
from vmm_conformance.reporting.html.documents import Document, DocumentError
from vmm_conformance.reporting.html.documents import read as read_document
from vmm_conformance.reporting.programs import HISTORIES


def pack(source: Path, target: Path) -> Path:
    """Write the bundle of ``source`` to ``target``: a report's folder, its report.json, or a kill matrix as JSON.

    A report's bundle has the programs of its failures and the histories they were found in. Raises
    `BundleError` if one of them is not beside the report.
    """
    try:
        document = read_document(source)
    except DocumentError as error:
        raise BundleError(str(error)) from None
    file = source / REPORT if source.is_dir() else source
    members = {KILLS if document.kills else REPORT: file.read_bytes()}
    if not document.kills:
        members |= {name: _beside(file, name) for name in evidence_of(document)}
    about = {"catalogue": document.data["catalogue"], "environment": environment()}
    return write(target, members, about)


def evidence_of(document: Document) -> list[str]:
    """The names of the programs and histories that a report rests on."""
    names = []
    for section in document.data["subjects"]:
        for entry in section["invariants"]:
            if entry["failures"]:
                program = str(entry["program"])
                names += [program, history_of(program)]
        endings = [ending for item in section["items"] for ending in item.get("endings", ())]
        names += [str(ending["file"]) for ending in endings]
        names += [str(ending["trail"]) for ending in endings if ending.get("trail")]
    return names


def history_of(program: str) -> str:
    """The history that belongs to a program's file."""
    return f"{HISTORIES}/{program.rpartition('/')[2].removesuffix('.json')}.jsonl"


def _beside(file: Path, name: str) -> bytes:
    path = file.parent / name
    if not path.resolve().is_relative_to(file.parent.resolve()):
        raise BundleError(f"{file}: names {name!r}, which is not in its folder")
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}; a bundle needs the whole folder of the report") from None


def default_target(source: Path) -> Path:
    """Where a bundle goes if nobody says: beside its source, with the ending ``.vmm.zip``."""
    plain = source.absolute()
    if plain.is_file() and plain.name == REPORT:
        plain = plain.parent
    return plain.with_name(f"{plain.stem if plain.is_file() else plain.name}.vmm.zip")
