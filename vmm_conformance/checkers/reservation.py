"""Judges histories of the contract ``reservation``; the invariants are the areas RAW, RES, MAP and REMAP."""

from __future__ import annotations

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.reservation_calls import Ledger
from vmm_conformance.checkers.reservation_contents import Contents
from vmm_conformance.checkers.reservation_failures import Failures
from vmm_conformance.checkers.reservation_mapping import Mappings
from vmm_conformance.checkers.reservation_memory import Possessions
from vmm_conformance.checkers.reservation_owners import Owners
from vmm_conformance.checkers.reservation_refusals import Answers
from vmm_conformance.checkers.reservation_watch import Watch
from vmm_conformance.history.events import History
from vmm_conformance.history.replay import Replay


def judge(history: History) -> Judge:
    """Witnesses and findings of every invariant of the contract in one history."""
    verdicts = Judge()
    replay = Replay(history)
    ledger = Ledger(history.header)
    families = (Answers, Possessions, Mappings, Owners, Failures, Contents)
    replay.walk(Watch(replay, ledger, [family(replay, ledger, verdicts) for family in families]))
    return verdicts
