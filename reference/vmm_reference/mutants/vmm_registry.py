"""How a variant of the VMM allocator, or of a part of it, becomes a mutant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from vmm_conformance.contracts import DeviceConfig, Driver, Mutant, VmmAllocator
from vmm_reference.timeline import Timeline
from vmm_reference.vmm_allocator import DeviceVmmAllocator
from vmm_reference.vmm_device import Device

C = TypeVar("C", bound=type)


class VmmSubject:
    """A subject with a VMM allocator and nothing else. ``revision``: what the reference's constructor takes."""

    version: Final = "known-bad"

    def __init__(self, name: str, kind: type, revision: Mapping[str, str]) -> None:
        self.name = name
        self.capabilities: Mapping[str, Any] = {"spaces": (0, 1), **revision}
        self._kind = kind
        self._revision = revision

    def vmm_allocator(self, driver: Driver, devices: Sequence[DeviceConfig]) -> VmmAllocator:
        """A fresh allocator."""
        made: VmmAllocator = self._kind(driver, devices, **self._revision)
        return made


def assembled(variant: type) -> type:
    """The reference allocator with ``variant`` in place of the class it is a variant of."""
    if issubclass(variant, Device):

        def new_device(self: DeviceVmmAllocator, config: DeviceConfig) -> Device:
            made: Device = variant(self.driver, config, self.new_timeline(config))
            return made

        return type("Assembled", (DeviceVmmAllocator,), {"new_device": new_device})
    if issubclass(variant, Timeline):

        def new_timeline(self: DeviceVmmAllocator, config: DeviceConfig) -> Timeline:
            made: Timeline = variant(
                self.driver, config.ordinal, config.stream, batched=self.batched, limits=self.limits
            )
            return made

        return type("Assembled", (DeviceVmmAllocator,), {"new_timeline": new_timeline})
    return variant


class Registry:
    """Collects mutants: ``@registry(44) class FreesAtOnce(DeviceVmmAllocator): ...``.

    The id is made of the class's name, the note is the class's docstring.
    """

    def __init__(self) -> None:
        self._mutants: list[Mutant] = []

    def __call__(self, *breaks: int, source: str = "", **revision: str) -> Callable[[C], C]:
        """Register a class as a mutant that breaks the ALLOC invariants ``breaks``, the first on purpose."""

        def register(variant: C) -> C:
            name = f"alloc-{re.sub('(?<!^)(?=[A-Z])', '-', variant.__name__).lower()}"
            note = " ".join((variant.__doc__ or "").split())
            ids = tuple(f"ALLOC-{number}" for number in breaks)
            subject = VmmSubject(name, assembled(variant), revision)
            self._mutants.append(Mutant(name, "vmm-allocator", ids, subject, note, source))
            return variant

        return register

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants registered so far."""
        return tuple(self._mutants)
