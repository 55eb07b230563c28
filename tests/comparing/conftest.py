"""Reports of a subject that breaks one invariant, and of its shards."""

from __future__ import annotations

import json
import sys
from copy import deepcopy

import pytest

from vmm_conformance import check
from vmm_conformance.reporting.html.documents import Document

OWN = """
from vmm_conformance.related import all_mutants
from vmm_reference.subject import reference

off = next(mutant for mutant in all_mutants() if mutant.id == "flags-unknown-is-off").subject
"""
SPEC = "own_shards:off"


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    """A folder with the reports ``whole``, ``1`` and ``2``: of a run, and of its two shards."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "own_shards.py").write_text(OWN)
    sys.path.append(str(folder))
    check(SPEC, budget="smoke", report=folder / "whole")
    for number in ("1", "2"):
        check(SPEC, budget="smoke", shard=f"{number}/2", report=folder / number)
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def documents(shards):
    """``documents(*names)``: the reports of that name, fresh copies to be changed."""
    read = {name: json.loads((shards / name / "report.json").read_text()) for name in ("whole", "1", "2")}
    return lambda *names: [Document(name, deepcopy(read[name])) for name in names]


@pytest.fixture
def timeless():
    """What is left of a report if durations are taken out."""

    def without(value):
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key != "seconds"}
        return [without(item) for item in value] if isinstance(value, list) else value

    return without
