"""How a variant of the memory layer, or of a part of it, becomes a mutant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from vmm_conformance.contracts import Driver, MemoryLayer, Mutant, Range
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import BY_RUN, MemoryReservation, ScopedMapping, Scopes, VmmMemory

C = TypeVar("C", bound=type)


class ReservationSubject:
    """A subject with a memory layer and nothing else."""

    version: Final = "known-bad"

    def __init__(self, name: str, layer: Callable[..., MemoryLayer], scopes: Scopes) -> None:
        self.name = name
        self._layer = layer
        self._scopes = scopes
        self.capabilities: Mapping[str, Any] = {
            "spaces": (0, 1, 5), "set_access_scope": scopes.set_access, "unmap_scope": scopes.unmap,
        }  # fmt: skip

    def reservation(self, driver: Driver, device: int) -> MemoryLayer:
        """A fresh wrong layer on ``device``."""
        return self._layer(driver, device, self._scopes)


def assembled(part: type) -> type[VmmMemory]:
    """The reference layer with ``part`` in place of the class that it is a variant of."""

    def variant(base: Any) -> Any:
        return part if issubclass(part, base) else base

    class Assembled(VmmMemory):
        """The layer."""

        def allocate(self, size: int, space: int = 0) -> RawMemoryAllocation:
            made: RawMemoryAllocation = variant(RawMemoryAllocation)(self.driver, self.device, size, space)
            return made

        def reserve(self, size: int, alignment: int = 0) -> MemoryReservation:
            kind = variant(MemoryReservation)
            made: MemoryReservation = kind(self.driver, self.device, size, alignment, self.scopes)
            if issubclass(part, ScopedMapping):

                def own(place: Range) -> ScopedMapping:
                    return part(made, place)

                made.own = own  # type: ignore[method-assign]
            return made

    return Assembled


class Registry:
    """Collects mutants: ``@mutant("RES-5") class HandsOutTwice(VmmMemory): ...``.

    The id is made of the area and the class's name, the note is the class's docstring.
    """

    def __init__(self) -> None:
        self._mutants: list[Mutant] = []

    def __call__(self, *breaks: str, scopes: Scopes = BY_RUN, source: str = "") -> Callable[[C], C]:
        """Register a class as a mutant that breaks the invariants ``breaks``, the first on purpose.

        ``scopes`` is what the subject declares, and what the reference's own parts do; ``source`` is the
        public finding that it repeats.
        """

        def register(variant: C) -> C:
            area = breaks[0].partition("-")[0].lower()
            name = f"{area}-{re.sub('(?<!^)(?=[A-Z])', '-', variant.__name__).lower()}"
            layer: Any = variant if issubclass(variant, VmmMemory) else assembled(variant)
            note = " ".join((variant.__doc__ or "").split())
            subject = ReservationSubject(name, layer, scopes)
            self._mutants.append(Mutant(name, "reservation", breaks, subject, note, source))
            return variant

        return register

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants registered so far."""
        return tuple(self._mutants)
