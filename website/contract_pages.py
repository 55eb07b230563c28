"""The reference page of the contracts: protocols, values and codes with their own words."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from vmm_conformance.contracts import CONTRACTS, SUBJECT_CAPABILITIES

MODULES: Final = {
    "subject": "Subjects",
    "driver": "Contract driver",
    "holding": "Contract driver: streams that are held",
    "sharing": "Contract driver: handles that tell, and are shared",
    "allocator": "Contract allocator",
    "step": "Contract skip-remap",
    "flags": "Contract flags",
    "reservation": "Contract reservation",
    "vmm_allocator": "Contract vmm-allocator",
    "va_remap": "Contract va-remap",
    "auto": "Contract auto-threshold",
    "status": "Codes and errors",
    "mutant": "Known-bad variants",
}
"""Modules of ``vmm_conformance.contracts``, in the order of the page, with their headings."""


def contracts() -> str:
    """The page, as Markdown."""
    lines = [
        "# Contracts",
        "",
        "What a subject or a driver offers, as it is written in `vmm_conformance.contracts`. Import from there alone."
        " [Plug in an implementation](../adapters.md) shows each at work.",
        "",
        "| contract | factory |",
        "|---|---|",
        *(f"| `{contract}` | `{factory}` |" for contract, factory in CONTRACTS.items()),
        "",
    ]
    for name, title in MODULES.items():
        lines += _module(import_module(f"vmm_conformance.contracts.{name}"), title)
    return "\n".join(lines)


def _module(module: ModuleType, title: str) -> Iterator[str]:
    yield from (f"## {title}", "", _text(module), "")
    if title == "Subjects":
        yield from ("| capability | where nothing is declared |", "|---|---|")
        yield from (f"| `{name}` | `{value!r}` |" for name, value in SUBJECT_CAPABILITIES.items())
        yield ""
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield from _class(name, value)


def _class(name: str, kind: type) -> Iterator[str]:
    yield from (f"### {name}", "", _text(kind), "")
    if issubclass(kind, Enum):
        yield from ("| member | value |", "|---|---|")
        yield from (f"| `{member.name}` | `{member.value!r}` |" for member in kind)
        yield ""
        return
    fields = _fields(kind)
    if fields:
        yield from ("```python", *fields, "```", "")
    for method, function in vars(kind).items():
        documented = inspect.isfunction(function) and not method.startswith("_") and function.__doc__
        if documented:
            yield from (f"- `{method}`: {' '.join(_text(function).split())}",)
    yield ""


def _fields(kind: type) -> list[str]:
    """Fields with their defaults, then methods with their signatures."""
    defaults: dict[str, Any] = getattr(kind, "_field_defaults", {})
    found = {name: field.default for name, field in getattr(kind, "__dataclass_fields__", {}).items()}
    lines = []
    for name, annotation in inspect.get_annotations(kind).items():
        default = found.get(name, defaults.get(name, inspect.Parameter.empty))
        shown = "" if default is inspect.Parameter.empty or "MISSING" in repr(default) else f" = {default!r}"
        lines.append(f"{name}: {getattr(annotation, '__forward_arg__', annotation)}{shown}")
    for name, member in vars(kind).items():
        if name.startswith("_") and name not in ("__enter__", "__exit__"):
            continue
        if inspect.isfunction(member):
            lines.append(f"def {name}{_signature(member)}")
        elif isinstance(member, property) and member.fget:
            lines.append(f"{name}: {member.fget.__annotations__.get('return', 'object')}  # read only")
    return lines


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _text(documented: object) -> str:
    """A docstring as Markdown."""
    if isinstance(documented, type) and documented.__doc__ and documented.__doc__.startswith(documented.__name__ + "("):
        return ""  # made by the dataclass or the named tuple itself
    return (inspect.getdoc(documented) or "").replace("::\n", ":\n").replace("``", "`")
