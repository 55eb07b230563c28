"""Runs of pytest in a folder of their own, with subjects in a module ``own``."""

from __future__ import annotations

import hypothesis.strategies  # noqa: F401
import pytest

from vmm_conformance import checking, pytest_items, pytest_recorded  # noqa: F401
from vmm_conformance.contracts import CONTRACTS
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.suites import load_suites

# Runs in this process forget the modules that they loaded; ours must be there before, and stay.
load_suites()
for contract in CONTRACTS:
    plug(contract)

OWN = '''
from vmm_conformance.contracts import Settings
from vmm_reference.subject import reference


class Good:
    """The reference, but for its flags nothing of it."""

    name, version = "good", "1.2"

    def __init__(self, **parameters):
        self.parameters = parameters

    def flags(self, revision):
        return reference.flags(revision)


class Deaf(Good):
    """Reads nothing at all: what was asked for is never in force."""

    name = "deaf"

    def flags(self, revision):
        return self

    def read(self, platform, environment, options):
        return Settings(False, 0)


class Empty:
    name = "empty"


good, deaf = Good(), Deaf()
'''


@pytest.fixture
def own(pytester, monkeypatch):
    """The folder; every ``VMM_`` variable is unset, and nothing that pytest was told applies."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(own=OWN)
    pytester.makeini("[pytest]\n")
    return pytester


@pytest.fixture
def suite(own):
    """Runs the suites on a subject with flags alone: a few programs, in this process or a fresh one."""

    def run(*arguments, subject="own:good", fresh=False):
        subjects = ("--vmm-subject", subject) if subject else ()
        run = own.runpytest_subprocess if fresh else own.runpytest_inprocess
        return run("--pyargs", "vmm_suites", "--vmm-budget", "smoke", "-p", "no:cacheprovider", *subjects, *arguments)

    return run
