"""The table of contracts: how programs of each are drawn, run and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import History
from vmm_conformance.programs.program import Program
from vmm_conformance.running.opened import OpenDriver


class Plug(NamedTuple):
    """One contract: ``decode(data, pins)``, ``run(program, subject, open_driver)``, ``judge(history)``.

    ``declared(pins, subject)``: the pins without what the subject does not declare.
    """

    decode: Callable[..., Program]
    run: Callable[[Program, Any, OpenDriver], History]
    judge: Callable[[History], Judge]
    declared: Callable[[Mapping[str, Any], object], Mapping[str, Any]] = lambda pins, subject: pins


_MODULES: Final = {
    "driver": ("programs.driver", "running.driver", "checkers.driver"),
    "allocator": ("programs.allocator", "running.allocator", "checkers.allocator"),
    "skip-remap": ("programs.skip_remap_decode", "running.skip_remap", "checkers.skip_remap"),
    "vmm-allocator": ("programs.vmm_allocator_decode", "running.vmm_allocator", "checkers.vmm_allocator"),
    "va-remap": ("programs.va_remap_decode", "running.va_remap", "checkers.va_remap"),
    "reservation": ("programs.reservation_decode", "running.reservation", "checkers.reservation"),
    "flags": ("programs.flags", "running.flags", "checkers.flags"),
    "auto-threshold": ("programs.auto_threshold", "running.auto_threshold", "checkers.auto_threshold"),
}


@cache
def plug(contract: str) -> Plug:
    """The plug of ``contract``. Raises ``KeyError`` if there is no such contract."""
    decode, run, judge = (import_module(f"vmm_conformance.{name}") for name in _MODULES[contract])
    plugged = Plug(decode.decode, run.run, judge.judge)
    return plugged._replace(declared=decode.declared) if hasattr(decode, "declared") else plugged
