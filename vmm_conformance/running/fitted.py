"""Programs fitted to a driver that is not what they asked for: granules and devices are what a machine has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.programs.program import Program

SIZES: Final = frozenset({"size", "copy_threshold", "budget"})
"""Fields of configurations and operations that count bytes."""
_UNLIMITED: Final = 1 << 50
"""From here on a number of bytes only says that there is no limit."""


def fitted(program: Program, driver: Driver) -> Program:
    """``program`` under the granularities of ``driver``, with no more devices than it has.

    Where its granules are larger, sizes keep their number of whole granules and the bytes beyond, so that what was
    small, fits exactly, or needs one granule more still does. On a driver that is as asked it is the same program.
    """
    asked, found = program.configuration, driver.granularity(0)
    if found == (asked.minimum, asked.recommended) and asked.devices <= driver.device_count:
        return program
    if found.recommended > asked.recommended:
        larger = _larger(asked.recommended, found.recommended)
        operations = _changed(program.operations, larger, SIZES)
        program = replace(program, configuration=_changed(asked, larger, SIZES), operations=operations)
    configuration = replace(
        program.configuration,
        devices=min(asked.devices, driver.device_count),
        minimum=found.minimum,
        recommended=found.recommended,
    )
    return replace(program, configuration=configuration)


def alone(driver: Driver, options: DriverOptions, *ids: str) -> dict[str, str]:
    """Why the invariants ``ids``, which need two devices, do not apply: programs ask for them, and there is one."""
    return dict.fromkeys(ids, "the driver has one device") if driver.device_count == 1 < options.devices else {}


def _larger(asked: int, found: int) -> Callable[[int], int]:
    def larger(size: int) -> int:
        return size if size >= _UNLIMITED else size // asked * found + size % asked

    return larger


def _changed(value: Any, change: Callable[[int], int], names: Collection[str]) -> Any:
    """``value`` with every number changed that has one of the names, however deep it lies."""
    if isinstance(value, tuple):
        return tuple(_changed(item, change, names) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return replace(
        value,
        **{
            name: change(item) if name in names and isinstance(item, int) else _changed(item, change, names)
            for name, item in found.items()
        },
    )
