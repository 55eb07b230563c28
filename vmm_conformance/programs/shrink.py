"""Makes a failing program small: fewer operations, then plainer ones.

Delta debugging over the list of operations until no single one can be left out (1-minimal), then each
field of each operation is put back to its default or lowered, as long as the program still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Final

from vmm_conformance.programs.program import Program

MOST_RUNS: Final = 600
"""Runs that one shrinking may take. A count and not a time, so that the same program shrinks the same."""

Fails = Callable[[Program], bool]


class _Budget:
    """Asks ``fails``, until the runs are used up: then nothing fails any more."""

    def __init__(self, fails: Fails, runs: int) -> None:
        self._fails = fails
        self._left = runs

    def __call__(self, program: Program) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        return self._fails(program)


def shrink(program: Program, fails: Fails, *, runs: int = MOST_RUNS) -> Program:
    """The smallest program found that still ``fails``; ``program`` must fail.

    1-minimal in its operations unless ``runs`` were not enough.
    """
    still = _Budget(fails, runs)
    program = _fewer(program, still)
    program = _plainer(program, still)
    return _fewer(program, still)


def _fewer(program: Program, fails: Fails) -> Program:
    """Leave out ever smaller stretches of operations."""
    size = max(1, len(program.operations) // 2)
    while True:
        at, removed = 0, False
        while at < len(program.operations):
            operations = program.operations[:at] + program.operations[at + size :]
            candidate = program.with_operations(operations)
            if fails(candidate):
                program, removed = candidate, True
            else:
                at += size
        if size > 1:
            size //= 2
        elif not removed:
            return program


def _plainer(program: Program, fails: Fails) -> Program:
    """Put fields of the operations, then of the configuration, to plainer values."""
    for index in range(len(program.operations)):
        for change in _changes(program.operations[index]):
            current = program.operations[index]
            operation = change(current)
            if operation == current:
                continue
            operations = program.operations[:index] + (operation,) + program.operations[index + 1 :]
            candidate = program.with_operations(operations)
            if fails(candidate):
                program = candidate
    for change in _changes(program.configuration):
        configuration = change(program.configuration)
        if configuration != program.configuration:
            candidate = replace(program, configuration=configuration)
            if fails(candidate):
                program = candidate
    return program


def _changes(value: Any) -> Iterator[Callable[[Any], Any]]:
    """Ways to make a dataclass plainer, field by field."""
    if not is_dataclass(value):
        return
    for field in fields(value):
        if field.default is not MISSING:
            yield lambda current, name=field.name, plain=field.default: replace(current, **{name: plain})
        elif type(getattr(value, field.name)) is int:
            yield lambda current, name=field.name: _lower(current, name, 0)
            yield lambda current, name=field.name: _lower(current, name, 1)
            yield lambda current, name=field.name: _lower(current, name, getattr(current, name) // 2)


def _lower(current: Any, name: str, to: int) -> Any:
    return replace(current, **{name: to}) if to < getattr(current, name) else current
