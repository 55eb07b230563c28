"""Histories of the contract ``va-remap``: what the reference makes of a program, and that with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.contracts import BufferCommand, BufferKind, BufferSpec, RemapMode
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.va_remap import Configuration, ExecutablePlan, Operation
from vmm_conformance.running.va_remap import run
from vmm_reference.subject import reference

G = 4096
TEMP = BufferSpec(G)
PARAMETER = BufferSpec(1000, BufferKind.PARAMETER)
NULLABLE = BufferSpec(1000, BufferKind.PARAMETER, nullable=True)
DONATABLE = BufferSpec(1000, BufferKind.PARAMETER, donatable=True)
OUTPUT = BufferSpec(1000, BufferKind.OUTPUT)
CONSTANT = BufferSpec(100, BufferKind.CONSTANT)
PROFILED, TEMPS, ALWAYS = RemapMode.SKIP_PROFILED, RemapMode.SKIP_TEMP, RemapMode.ALWAYS_UPDATE


def plan(mode: RemapMode, *buffers: BufferSpec, commands: tuple[BufferCommand, ...] = ()) -> ExecutablePlan:
    """An executable whose one command reads what it may not write, and writes the rest."""
    reads = tuple(n for n, b in enumerate(buffers) if b.kind in (BufferKind.PARAMETER, BufferKind.CONSTANT))
    writes = tuple(n for n in range(len(buffers)) if n not in reads)
    return ExecutablePlan(buffers, commands or (BufferCommand(reads, writes),), mode)


def ran(
    planned: ExecutablePlan,
    *operations: Operation,
    others: tuple[ExecutablePlan, ...] = (),
    subject: object = reference,
    **configuration: Any,
) -> History:
    program = Program("va-remap", Configuration((planned, *others), **configuration), operations)
    return run(program, subject, HostDriver)


def notes(history: History, what: str, **wanted: Any) -> list[Event]:
    """The notes ``what`` with these details, in order."""
    return [
        event
        for event in history.events
        if event.kind == "note"
        and event.args[0] == what
        and all(event.args[1].get(name) == value for name, value in wanted.items())
    ]


def details(history: History, what: str, **wanted: Any) -> list[dict[str, Any]]:
    return [event.args[1] for event in notes(history, what, **wanted)]


def without(history: History, *events: Event) -> None:
    """Take events out."""
    history.events[:] = [event for event in history.events if event not in events]


def insert(history: History, before: Event, what: str, **details: Any) -> None:
    """Put a note in."""
    at = history.events.index(before)
    event = Event(before.seq, before.op, before.thread, HARNESS, "note", (what, details))
    history.events.insert(at, event)


def asks(history: History, before: Event, scope: int, name: str, **more: Any) -> None:
    """A run asks for something just before an event, and gets it."""
    got = {"status": "ok", "code": "", "reason": "", "result": None, "calls": 0, "space": 0}
    insert(history, before, "memory", **{**got, "scope": scope, "name": name, **more})


def replaced(table: tuple[Any, ...], index: int, **changes: Any) -> tuple[Any, ...]:
    """A table with one entry changed."""
    return tuple(entry._replace(**changes) if n == index % len(table) else entry for n, entry in enumerate(table))


def found(history: History) -> list[str]:
    """The invariants that are broken."""
    return sorted({finding.invariant for finding in judge(history).findings})


Edit = Callable[[History], None]
