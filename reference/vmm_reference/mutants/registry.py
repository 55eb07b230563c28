"""How a variant of the step executor, or of a part of it, becomes a mutant."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from vmm_conformance.contracts import Driver, Executable, Mutant, StepExecutor
from vmm_reference.in_flight import InFlight
from vmm_reference.mapping import SlotMappings
from vmm_reference.shadows import Shadows
from vmm_reference.step_executor import SkipRemapExecutor
from vmm_reference.va_ranges import VaRanges

C = TypeVar("C", bound=type)


class StepSubject:
    """A subject with a step executor and nothing else."""

    version: Final = "known-bad"

    def __init__(self, name: str, executor: Callable[[Driver, Executable], StepExecutor]) -> None:
        self.name = name
        self._executor = executor

    def step_executor(self, driver: Driver, executable: Executable) -> StepExecutor:
        """A fresh executor of ``executable``."""
        return self._executor(driver, executable)


def assembled(*parts: type) -> type[SkipRemapExecutor]:
    """The reference executor with each of ``parts`` in place of the class it is a variant of."""

    def variant(base: Any) -> Any:
        return next((part for part in parts if issubclass(part, base)), base)

    def new_ranges(executor: SkipRemapExecutor, device: int) -> VaRanges:
        held: VaRanges = variant(VaRanges)(
            executor.driver, device, executor.executable, executor.selection, executor.settings
        )
        held.mappings = variant(SlotMappings)(executor.driver, device)
        held.shadows = variant(Shadows)(executor.driver, device, executor.executable.slots)
        held.in_flight = variant(InFlight)(executor.driver, device)
        return held

    return type("Assembled", (variant(SkipRemapExecutor),), {"new_ranges": new_ranges})


class Registry:
    """Collects mutants: ``@registry("STEP-87") class CompareAddress(VaRanges): ...``.

    The id is made of the area and the class's name, the note is the class's docstring.
    """

    def __init__(self) -> None:
        self._mutants: list[Mutant] = []

    def __call__(
        self, *breaks: str, source: str = "", parts: tuple[type, ...] = (), repeatable: bool = True
    ) -> Callable[[C], C]:
        """Register a class as a mutant that breaks the invariants ``breaks``, the first on purpose.

        ``source`` is the public finding that it repeats; ``parts`` are further variants it needs; one that
        throws dice is not ``repeatable``.
        """

        def register(variant: C) -> C:
            area = breaks[0].partition("-")[0].lower()
            name = f"{area}-{re.sub('(?<!^)(?=[A-Z])', '-', variant.__name__).lower()}"
            whole = not issubclass(variant, (VaRanges, SlotMappings, Shadows, InFlight))
            executor: Any = variant if whole and not parts else assembled(variant, *parts)
            note = " ".join((variant.__doc__ or "").split())
            subject = StepSubject(name, executor)
            self._mutants.append(Mutant(name, "skip-remap", breaks, subject, note, source, repeatable))
            return variant

        return register

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants registered so far."""
        return tuple(self._mutants)
