"""Reads saved histories: knows the classes of plain data that they may name."""

from __future__ import annotations

import pkgutil
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Final

from vmm_conformance.history.events import History
from vmm_conformance.history.files import HistoryError, dumps, loads

__all__ = ["HistoryError", "dumps", "load_history", "resolve"]

_ROOMS: Final = ("contracts", "programs", "running")


def load_history(text: str) -> History:
    """The history that ``text`` holds. Raises `HistoryError`."""
    return loads(text, resolve)


@cache
def _modules() -> frozenset[str]:
    """The modules whose classes a history may name, below this package."""
    found = set()
    for room in _ROOMS:
        package = import_module(f"vmm_conformance.{room}")
        found |= {f"{room}.{module.name}" for module in pkgutil.iter_modules(package.__path__)}
    return frozenset(found)


def resolve(name: str) -> type:
    """The class of plain data called ``name`` (``contracts.driver.Range``), and nothing else."""
    module, _, attribute = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if module not in _modules():
        raise HistoryError(f"no module of plain data {module!r}, in the class {name!r}")
    found = getattr(import_module(f"vmm_conformance.{module}"), attribute, None)
    if not isinstance(found, type) or found.__module__ != f"vmm_conformance.{module}" or not _plain(found):
        raise HistoryError(f"no class of plain data {name!r}")
    return found


def _plain(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, Enum) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
