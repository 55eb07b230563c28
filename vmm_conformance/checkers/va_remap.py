"""Judges histories of the contract ``va-remap``; the invariants are in catalogue/scope.toml and policy.toml."""

from __future__ import annotations

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_commands import Commands
from vmm_conformance.checkers.scope_facts import Facts, Watch
from vmm_conformance.checkers.scope_memory import Allocations
from vmm_conformance.checkers.scope_outcome import Outcomes
from vmm_conformance.checkers.scope_policy import Policies
from vmm_conformance.checkers.scope_tables import Tables
from vmm_conformance.checkers.scope_threads import Threads
from vmm_conformance.checkers.update_modes import Modes
from vmm_conformance.history.events import History

FAMILIES = (Policies, Threads, Tables, Outcomes, Allocations, Commands, Modes)
"""In this order: the first says which path a run must take, and the others go by that."""


def judge(history: History) -> Judge:
    """Witnesses and findings of every invariant of ``va-remap`` in one history."""
    verdicts = Judge()
    facts = Facts(history)
    facts.own_streams = _own_streams(history)
    Watch(facts, [family(facts, verdicts) for family in FAMILIES]).walk(history)
    return verdicts


def _own_streams(history: History) -> set[int]:
    """The streams that the allocators follow: the first that the harness makes on each device."""
    own: dict[int, int] = {}
    for event in history.events:
        if event.kind == "note":
            break  # the subject comes later
        if event.kind == "stream_create":
            own.setdefault(event.args[0], event.result)
    return set(own.values())
