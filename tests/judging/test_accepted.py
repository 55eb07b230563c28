"""Calls that a subject makes on its own driver, from histories written by hand."""

from __future__ import annotations

import pytest
from traces import A, G, Trace

from vmm_conformance.checkers.accepted import Accepted, Blamed
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.replay import Replay

BACK, TAKES = "back", "takes"


@pytest.fixture
def trace():
    return Trace()


def found(trace):
    verdicts = Judge()
    replay = Replay(trace.history())
    replay.walk(Accepted(replay, verdicts, Blamed(BACK, TAKES), G, 2))
    return [(finding.invariant, finding.seq + 2) for finding in verdicts.findings]


def test_what_was_accepted_is_judged_and_only_of_the_subject(trace):
    trace("create", G - 1, 0, 0, result=1, who="harness")
    trace("create", G - 1, 0, 0, status=1)
    trace("fill", A, 1, 8, None, status=700)
    trace("fill", A, 1, 8, None, result=1, who="harness")
    wrong = trace("create", G - 1, 0, 0, result=2)
    again = trace("release", 7)
    touched = trace("fill", A, 1, 8, None, result=2)
    assert found(trace) == [(TAKES, wrong), (BACK, again), (TAKES, touched)]


@pytest.mark.parametrize(("stream", "good"), [(1, False), (2, True), (None, False)])
def test_work_needs_the_rights_of_its_streams_device_and_the_host_the_owners(trace, stream, good):
    trace("stream_create", 0, result=1)
    trace("stream_create", 1, result=2)
    trace.block(rights=0)
    trace("set_access", A, G, [[1, 3]])
    work = trace("fill", A, 1, 8, stream, result=1)
    assert found(trace) == ([] if good else [(TAKES, work)])


def test_captured_work_needs_its_memory_when_it_is_launched(trace):
    trace("stream_create", 1, result=1)
    trace("graph_begin", 1)
    trace("fill", A, 1, 8, 1, result=1)
    trace("graph_end", 1, result=5)
    trace("graph_instantiate", 5, result=6)
    early = trace("graph_launch", 6, 1, result=2)
    trace.block(rights=0)
    trace("set_access", A, G, [[1, 3]])
    trace("graph_launch", 6, 1, result=3)
    assert found(trace) == [(TAKES, early)]
