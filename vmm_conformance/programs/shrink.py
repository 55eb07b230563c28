"""Makes a failing program small: fewer operations, then plainer ones.

Delta debugging over the list of operations until no single one can be left out (1-minimal), then each
field of each operation is put back to its default or lowered, as long as the program still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import partial
from typing import Any, Final

from vmm_conformance.programs.program import Program

MOST_RUNS: Final = 600
"""Runs that one shrinking may take. A count and not a time, so that the same program shrinks the same."""

SIZES: Final = frozenset({"size", "granules"})
"""Fields that are lowered, whatever their default."""

Fails = Callable[[Program], bool]

Place = tuple[Any, ...]
"""The way to a value: names of fields, numbers in tuples, keys of mappings."""


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
    """Put the operations' fields, then the configuration's, to plainer values, as long as it fails."""
    for index in range(len(program.operations)):
        for place in _places(program.operations[index]):
            program = _lowered(program, fails, partial(_other_operations, index, place))
    for place in _places(program.configuration):
        program = _lowered(program, fails, partial(_other_configurations, place))
    return program


def _lowered(program: Program, fails: Fails, candidates: Callable[[Program], Iterator[Program]]) -> Program:
    """Take the first candidate that still fails, until none does."""
    while True:
        plainer = next((candidate for candidate in candidates(program) if fails(candidate)), None)
        if plainer is None:
            return program
        program = plainer


def _other_operations(index: int, place: Place, program: Program) -> Iterator[Program]:
    operations = program.operations
    for operation in _candidates(operations[index], place):
        yield program.with_operations((*operations[:index], operation, *operations[index + 1 :]))


def _other_configurations(place: Place, program: Program) -> Iterator[Program]:
    for configuration in _candidates(program.configuration, place):
        yield replace(program, configuration=configuration)


def _places(value: Any) -> list[Place]:
    """Every value inside a dataclass, outer ones first."""
    found: list[Place] = []
    if is_dataclass(value):
        for each in fields(value):
            found.append((each.name,))
            found += [(each.name, *rest) for rest in _places(getattr(value, each.name))]
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            found += [(number, *rest) for rest in _places(item)]
    elif isinstance(value, Mapping):
        found += [(key,) for key in value]
    return found


def _candidates(value: Any, place: Place) -> Iterator[Any]:
    """``value`` with something plainer at ``place``, the plainest first."""
    try:
        for plain in _plain(value, place):
            yield _put(value, place, plain)
    except LookupError:  # an earlier change took the place away
        return


def _plain(value: Any, place: Place) -> list[Any]:
    holder = value
    for step in place[:-1]:
        holder = getattr(holder, step) if isinstance(step, str) and is_dataclass(holder) else holder[step]
    name = place[-1]
    if isinstance(holder, Mapping):
        return [None] if name in holder else []
    current, default = getattr(holder, name), _default(holder, name)
    if default is not MISSING and name not in SIZES:
        return [default] if default != current else []
    lower = [0, 1, current // 2] if type(current) is int else []
    return [plain for plain in lower if plain < current]


def _default(holder: Any, name: str) -> Any:
    spec = next(each for each in fields(holder) if each.name == name)
    return spec.default if spec.default_factory is MISSING else spec.default_factory()


def _put(value: Any, place: Place, plain: Any) -> Any:
    """A copy of ``value`` with ``plain`` at ``place``; an entry of a mapping is left out instead."""
    step, rest = place[0], place[1:]
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if key != step}
    if isinstance(value, tuple):
        return (*value[:step], _put(value[step], rest, plain), *value[step + 1 :])
    inner = plain if not rest else _put(getattr(value, step), rest, plain)
    return replace(value, **{step: inner})

