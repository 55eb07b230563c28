"""The command that writes the vectors, or says which are not what they would be written as now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from vmm_conformance.contracts import CONTRACTS, contracts_of
from vmm_conformance.programs.codec import ProgramError
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.subjects import installed_subjects, resolve_subject
from vmm_conformance.vectors.collect import COUNT, collect
from vmm_conformance.vectors.files import SCHEMA, program_of, read, schema_text, text
from vmm_conformance.vectors.vector import Vector, WrongSubject, run, vector

DRIVER = "host"
"""The subject for the contract ``driver``; all others are the reference's."""


def main(folder: Path, arguments: Sequence[str] | None = None) -> int:
    """Write the files in ``folder``, or with ``--check`` compare them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m vmm_suites.vectors", description=__doc__)
    parser.add_argument("--contract", choices=tuple(CONTRACTS), nargs="+", help="only these contracts")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"vectors of each (default: {COUNT})")
    parser.add_argument("--check", action="store_true", help="write nothing; list vectors that are not current")
    parsed = parser.parse_args(arguments)
    wanted = parsed.contract or [name for name in CONTRACTS if contracts_of(subject_of(name)).count(name)]
    return check(folder, wanted) if parsed.check else write(folder, wanted, parsed.count)


def subject_of(contract: str) -> object:
    """The subject whose outcomes are the right ones."""
    name = DRIVER if contract == "driver" else "reference"
    assert name in installed_subjects(), f"the subject {name} is not installed"
    return resolve_subject(name)


def write(folder: Path, contracts: Sequence[str], count: int) -> int:
    """Find the vectors of ``contracts`` and write them."""
    (folder / SCHEMA).write_text(schema_text(), "utf-8")
    for contract in contracts:
        subject = subject_of(contract)
        vectors = collect(contract, subject, count=count, progress=_progress)
        path = folder / f"{contract}.json"
        path.write_text(text(contract, subject, vectors), "utf-8")
        print(f"{path}: {len(vectors)} vectors, {path.stat().st_size:,} bytes")
    return 0


def check(folder: Path, contracts: Sequence[str]) -> int:
    """List the vectors of ``contracts`` whose outcomes are others by now."""
    stale = [
        f"{contract}: {each['id']}: {why}"
        for contract, data in read(folder)
        if contract in contracts
        for each in data["vectors"]
        if (why := difference(contract, each))
    ]
    print("\n".join([*stale, f"{len(stale)} vectors are not current"]))
    return int(bool(stale))


def difference(contract: str, each: Vector) -> str:
    """What is not current about a vector; empty if nothing is."""
    try:
        now = vector(run(bench_for(contract, subject_of(contract)), program_of(contract, each)))
    except (ProgramError, WrongSubject) as error:
        return str(error)
    return ", ".join(name for name in now if now[name] != each.get(name))


def _progress(programs: int, vectors: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{vectors} vectors out of {programs} programs", end="", file=sys.stderr, flush=True)
