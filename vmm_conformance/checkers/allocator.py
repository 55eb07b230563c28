"""Judges histories of the contract ``allocator``; the invariants are in catalogue/allocator.toml."""

from __future__ import annotations

from vmm_conformance.checkers.accepted import Accepted, Blamed
from vmm_conformance.checkers.allocator_calls import Ledger, Watch
from vmm_conformance.checkers.allocator_captures import Captures
from vmm_conformance.checkers.allocator_contents import Contents
from vmm_conformance.checkers.allocator_declared import Addresses, Paths
from vmm_conformance.checkers.allocator_failures import Refusals
from vmm_conformance.checkers.allocator_layout import USABLE, Layout
from vmm_conformance.checkers.allocator_leaks import CLOSED, Leaks
from vmm_conformance.checkers.allocator_ordering import Lifetimes
from vmm_conformance.checkers.allocator_parts import Counts, Pauses, Peers, Trims
from vmm_conformance.checkers.allocator_waits import Waits
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.series import Series, is_series
from vmm_conformance.history.events import History
from vmm_conformance.history.replay import Replay

FLAT = "ALLOCATOR-18"


def judge(history: History) -> Judge:
    """Witnesses and findings of every ALLOCATOR invariant in one history."""
    verdicts = Judge()
    replay = Replay(history)
    ledger = Ledger(history.header)
    families = (
        Layout, Lifetimes, Contents, Refusals, Leaks, Trims, Pauses, Peers, Counts, Captures, Waits, Addresses, Paths,
    )  # fmt: skip
    repeated = [Series(replay, verdicts, FLAT)] if is_series(history.header) else []
    reported = [_accepted(replay, verdicts)] if history.header.get("reported") else []
    watch = Watch(replay, ledger, [family(replay, ledger, verdicts) for family in families])
    replay.walk(watch, *reported, *repeated)
    return verdicts


def _accepted(replay: Replay, verdicts: Judge) -> Accepted:
    """Judges calls on the subject's own driver."""
    header = replay.history.header
    return Accepted(replay, verdicts, Blamed(CLOSED, USABLE), header["granularity"][0], len(header["reaches"]))
