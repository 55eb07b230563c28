"""What failed is remembered, and tried first the next time, be that elsewhere."""

from __future__ import annotations

import sys

import pytest
from machine_world import OWN, free_port

from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.running.remembered import Remembered
from vmm_conformance.running.session import Options, know, plan, run_item


@pytest.fixture(params=["folder", "redis"])
def place(request, tmp_path):
    return str(tmp_path / "failed") if request.param == "folder" else request.getfixturevalue("redis_place")


@pytest.fixture
def explored():
    """``explored(which, seed, place)`` explores the contract flags with 50 programs: item and result."""
    own = {}
    exec(OWN, own)

    def explore(which, seed, place):
        know("remembered", own[which])
        options = Options(budget="smoke", seed=seed, database=place)
        (item,) = [i for i in plan({"remembered": own[which]}, options) if i.id == "flags/explore/anything[remembered]"]
        return item, run_item(item, options)

    return explore


def test_what_failed_is_tried_first_and_forgotten_when_it_passes(place, explored):
    item, first = explored("rare", 0, place)
    assert first.failures
    assert max(failure.programs_before for failure in first.failures) > len(first.failures)
    assert (first.executed, first.state) == (item.planned, "done")

    kept = Remembered(place, f"{item.id}@host").all()
    assert 0 < len(kept) <= len(first.failures)
    _, again = explored("rare", 0, place)
    assert {f.invariant for f in again.failures} == {f.invariant for f in first.failures}
    assert max(failure.programs_before for failure in again.failures) <= len(kept)

    _, mended = explored("good", 0, place)
    assert Remembered(place, f"{item.id}@host").all() == []
    _, plain = explored("good", 0, "")
    assert (mended.executed, mended.witnesses) == (plain.executed, plain.witnesses)


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("redis://127.0.0.1:{}/0", "no Redis server answers there (.*); start one"),
        ("redis://127.0.0.1:no/0", "no Redis server answers there (.*); start one"),
    ],
)
def test_a_server_that_is_not_there_is_told_at_once(database, message):
    pytest.importorskip("redis", reason="needs redis: pip install 'vmm-conformance[redis]'")
    with pytest.raises(BadInvocation, match=rf"database 'redis://127.0.0.1:.*': {message}"):
        Invocation(database=database.format(free_port())).check_names()


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(BadInvocation, match=r"needs the package redis.*pip install 'vmm-conformance\[redis\]'"):
        Invocation(database="redis://127.0.0.1:6379/0").check_names()
