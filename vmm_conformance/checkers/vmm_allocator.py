"""Judges histories of the contract ``vmm-allocator``; the invariants are in catalogue/alloc.toml."""

from __future__ import annotations

from vmm_conformance.checkers.accepted import Accepted, Blamed
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.series import Series, is_series
from vmm_conformance.checkers.vmm_answers import Answers
from vmm_conformance.checkers.vmm_calls import Watch
from vmm_conformance.checkers.vmm_contents import Contents
from vmm_conformance.checkers.vmm_endings import Endings
from vmm_conformance.checkers.vmm_ledger import Ledger
from vmm_conformance.checkers.vmm_markers import Markers
from vmm_conformance.checkers.vmm_memory import Behind, Ends
from vmm_conformance.history.events import History
from vmm_conformance.history.replay import Replay

CLOSED, USABLE, FLAT = "ALLOC-76", "ALLOC-183", "ALLOC-185"
FAMILIES = (Answers, Endings, Behind, Markers, Contents, Ends)


def judge(history: History) -> Judge:
    """Witnesses and findings of every ALLOC invariant in one history."""
    verdicts = Judge()
    replay = Replay(history)
    ledger = Ledger(history.header)
    repeated = [Series(replay, verdicts, FLAT)] if is_series(history.header) else []
    options = history.header["options"]
    reported = [Accepted(replay, verdicts, Blamed(CLOSED, USABLE), options.granularity.minimum, options.devices)]
    watch = Watch(replay, ledger, verdicts, [family(replay, ledger, verdicts) for family in FAMILIES])
    replay.walk(watch, *(reported if history.header.get("reported") else ()), *repeated)
    return verdicts
