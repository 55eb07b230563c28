"""Programs as JSON files, version 1::

    {
      "version": 1,
      "contract": "flags",
      "configuration": {"revision": "env-bytes"},
      "operations": [
        {"op": "read", "platform": "ROCM"}
      ]
    }

``configuration`` may be missing where every part of it has a default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from vmm_conformance.programs.codec import OneOf, ProgramError, from_json, to_json
from vmm_conformance.programs.program import FORMAT_VERSION, Program
from vmm_conformance.programs.shapes import listed, mismatch, quoted


class ContractTypes(NamedTuple):
    """What programs for one contract are made of."""

    configuration: type
    operations: tuple[type, ...]


class _Registry(Mapping[str, ContractTypes]):
    """Contract name to its types. A contract's module is imported when it is first asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, contract: str) -> ContractTypes:
        module = import_module(self._modules[contract])
        return ContractTypes(module.Configuration, module.OPERATIONS)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


CONTRACT_TYPES: Final[Mapping[str, ContractTypes]] = _Registry(
    {
        "driver": "vmm_conformance.programs.driver",
        "allocator": "vmm_conformance.programs.allocator",
        "skip-remap": "vmm_conformance.programs.skip_remap",
        "flags": "vmm_conformance.programs.flags",
        "vmm-allocator": "vmm_conformance.programs.vmm_allocator",
        "reservation": "vmm_conformance.programs.reservation",
        "va-remap": "vmm_conformance.programs.va_remap",
        "auto-threshold": "vmm_conformance.programs.auto_threshold",
    }
)
"""Contract to its configuration class and its operation classes."""

KEYS: Final = ("version", "contract", "configuration", "operations")


def to_data(program: Program) -> dict[str, Any]:
    """``program`` as JSON data."""
    types = CONTRACT_TYPES[program.contract]
    operation = OneOf(types.operations)
    return {
        "version": FORMAT_VERSION,
        "contract": program.contract,
        "configuration": to_json(program.configuration, types.configuration),
        "operations": [to_json(each, operation) for each in program.operations],
    }


def from_data(data: Any) -> Program:
    """The program that JSON ``data`` stands for. Raises `ProgramError` with the position in ``data``."""
    if not isinstance(data, dict):
        raise mismatch("an object", data).under("$")
    _check_keys(data)
    if data["version"] != FORMAT_VERSION or isinstance(data["version"], bool):
        raise ProgramError(f"unknown version {quoted(data['version'])}, accepted: {FORMAT_VERSION}", "$.version")
    contract = data["contract"]
    if not isinstance(contract, str) or contract not in CONTRACT_TYPES:
        raise ProgramError(f"unknown contract {quoted(contract)}, accepted: {listed(CONTRACT_TYPES)}", "$.contract")
    types = CONTRACT_TYPES[contract]
    configuration: Any = from_json(types.configuration, data.get("configuration", {}), "$.configuration")
    operations = from_json(tuple[OneOf(types.operations), ...], data["operations"], "$.operations")  # type: ignore[misc]
    return Program(contract, configuration, operations)


def _check_keys(data: dict[str, Any]) -> None:
    for name in ("version", "contract", "operations"):  # what decides how to read comes first
        if name not in data:
            raise ProgramError(f"missing, expected the keys {listed(KEYS)}", f"$.{name}")
    for name in data:
        if name not in KEYS:
            raise ProgramError(f"unknown key {quoted(name)}, accepted: {listed(KEYS)}", "$")


def dump(program: Program) -> str:
    """``program`` as the text of a file."""
    return layout(to_data(program))


def layout(data: Mapping[str, Any]) -> str:
    """A program's JSON data as the text of a file: one operation a line, so that programs can be compared."""
    operations = ",\n".join(f"    {json.dumps(each)}" for each in data["operations"])
    head = "".join(
        f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in data.items() if name != "operations"
    )
    body = f"[\n{operations}\n  ]" if operations else "[]"
    return f'{{\n{head}  "operations": {body}\n}}\n'


def load(source: str | PathLike[str]) -> Program:
    """The program in ``source``: JSON text, or the path of a file, as a ``Path``.

    Raises `ProgramError`, which names the file, and the line and column of a fault in the JSON or the
    position (``$.operations[3].slot``) of a value that is not accepted, and says what would be.
    """
    if isinstance(source, str):
        return from_data(parse(source))
    path = Path(source)
    try:
        return from_data(parse(path.read_text(encoding="utf-8")))
    except ProgramError as error:
        raise error.under(f"{path}: " if error.where else f"{path}") from None


def parse(text: str) -> Any:
    """JSON text as data. Raises `ProgramError` with line and column, or for a key that is there twice."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ProgramError(f"no JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProgramError(f"the key {quoted(twice)} stands twice in one object with {listed(result)}")
    return result


def _constant(name: str) -> Any:
    raise ProgramError(f"{name} is no JSON number")
