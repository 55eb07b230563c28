"""Bundles of small real runs: a subject that keeps its flags, one that does not, and a known-bad allocator."""

from __future__ import annotations

import json
import sys
import zipfile

import pytest

from vmm_conformance import check
from vmm_conformance.bundling.archive import MANIFEST, read, write
from vmm_conformance.bundling.pack import pack
from vmm_conformance.related import all_mutants

OWN = """
from vmm_conformance.contracts import Settings
from vmm_conformance.related import all_mutants
from vmm_reference.subject import reference

class Good:
    name, version = "good", "1.2"

    def flags(self, revision):
        return reference.flags(revision)

class Deaf(Good):
    name = "deaf"

    def flags(self, revision):
        return self

    def read(self, platform, environment, options):
        return Settings(False, 0)

good, deaf = Good(), Deaf()
hasty = next(mutant for mutant in all_mutants() if mutant.id == "allocator-unmaps-at-once").subject
"""


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folders of three reports, by the subject's attribute in the module ``own_bundle``."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "own_bundle.py").write_text(OWN)
    sys.path.append(str(folder))
    for name in ("good", "deaf", "hasty"):
        check(f"own_bundle:{name}", budget="smoke", report=folder / name)
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def bundle(runs, tmp_path):
    """``bundle(name)`` packs a report's folder; returns the path."""
    return lambda name: pack(runs / name, tmp_path / f"{name}.vmm.zip")


@pytest.fixture
def forged(bundle):
    """A bundle that somebody changed with care: ``change(members)`` changes what it holds, the manifest agrees.

    ``members`` maps names to data for JSON, to text for the rest; a name that is taken out is gone.
    """

    def make(name, change):
        path = bundle(name)
        old = read(path)
        members = {
            key: json.loads(data) if key.endswith(".json") else data.decode()
            for key, data in old.members.items()
            if key != MANIFEST
        }
        change(members)
        raw = {key: (data if isinstance(data, str) else json.dumps(data)).encode() for key, data in members.items()}
        return write(path, raw, {"catalogue": old.manifest["catalogue"], "environment": {}})

    return make


@pytest.fixture
def repacked(bundle):
    """A bundle rewritten as a zip file member by member: ``repacked(name, members)``, members as ``ZipInfo``, data."""

    def make(name, change):
        path = bundle(name)
        with zipfile.ZipFile(path) as file:
            members = [(info, file.read(info)) for info in file.infolist()]
        changed = change(members)
        with zipfile.ZipFile(path, "w") as file:
            for info, data in changed:
                file.writestr(info, data, zipfile.ZIP_DEFLATED)
        return path

    return make


@pytest.fixture
def mutant():
    return lambda id: next(mutant for mutant in all_mutants() if mutant.id == id)
