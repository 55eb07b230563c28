"""Devices under xdist: the controller lends each worker one of its own, and has it back when the worker goes.

Programs watch how much memory is free, so two workers on one device would be taken for each other's faults. Any item
may run on any worker, since each has a device; so every scheduler of xdist's will do that works.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from vmm_conformance.drivers.opening import parse
from vmm_conformance.drivers.visible import LAYERS, narrowed, own

INDEX: Final = "vmm_device"
"""Key of a worker's input: the index of its device among those that the controller sees."""


@dataclass(slots=True)
class Leases:
    """``count`` devices, numbered from 0, each held by one worker at most; ``idle`` are the others, next one last."""

    count: int
    held: dict[str, int] = field(default_factory=dict)
    idle: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.idle = list(range(self.count))[::-1]

    def take(self, worker: str) -> int:
        """The device that came back last, so that a replacement has that of whom it replaces; else the lowest.

        Raises ``LookupError`` if there is none.
        """
        if not self.idle:
            raise LookupError(f"no device is left for worker {worker}: all {self.count} are held, by {self.held}")
        index = self.held[worker] = self.idle.pop()
        return index

    def give_back(self, worker: str) -> None:
        """``worker`` is gone; it may have held none."""
        if worker in self.held:
            self.idle.append(self.held.pop(worker))


class Lending:
    """The controller's side, as a plugin. ``had`` tells what each worker had, also of those that are gone."""

    def __init__(self, driver: str, count: int) -> None:
        self.driver = driver
        self.leases = Leases(count)
        self.had: dict[str, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Refuse more workers than there are devices, before any of them starts."""
        workers = sum(self._lends_to(spec) for spec in specs)
        if workers > self.leases.count:
            raise pytest.UsageError(
                f"{workers} workers would share {self.leases.count} device(s) of the driver {self.driver!r}, and what"
                " one takes looks to another like memory that went astray; ask for as many as there are, -n auto, or"
                f" say yourself who gets what, as in --tx popen//env:{LAYERS[_vendor(self.driver)][-1][0]}=0"
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker is about to start, maybe in place of one that crashed."""
        if self._lends_to(node.gateway.spec):
            index = node.workerinput[INDEX] = self.leases.take(node.gateway.id)
            self.had[node.gateway.id] = narrowed_text(self.driver, index)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker is gone, whichever way; its replacement is made after this."""
        self.leases.give_back(node.gateway.id)

    def _lends_to(self, spec: Any) -> bool:
        """Processes of this machine; those elsewhere, and those whose caller has said what they see, have their own."""
        named = {name for layer in LAYERS[_vendor(self.driver)] for name in layer}
        return bool(spec.popen) and not spec.via and not named & set(spec.env)


def narrowed_text(driver: str, index: int) -> str:
    """The ``index``-th device of the driver that this process sees, by the variables that choose it."""
    environment = dict(os.environ)
    return own(_vendor(driver), environment | narrowed(_vendor(driver), index, environment))


def use(driver: str, index: int, environment: MutableMapping[str, str] = os.environ) -> None:
    """The worker's side: see no other device than that one, in this process and in its children.

    Before the first call of a binding, since drivers read the variables once.
    """
    environment.update(narrowed(_vendor(driver), index, environment))


def _vendor(driver: str) -> str:
    return parse(driver).name.removeprefix("emulated-")
