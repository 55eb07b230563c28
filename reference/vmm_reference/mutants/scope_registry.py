"""How a variant of a part of the execution scopes becomes a mutant."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from vmm_conformance.contracts import (
    CommandBuffer,
    CommandBufferConsumer,
    Driver,
    ExecutableBufferAllocator,
    MemoryAllocator,
    Mutant,
    RemapMode,
    ScopedExecutable,
    VmmAllocator,
)
from vmm_reference.command_buffer import CommandBufferRunner
from vmm_reference.policies import Profile, parse_update_mode
from vmm_reference.remapping import Remapping, RemappingAllocator, RemapScope
from vmm_reference.scopes import BufferAllocator, PlainScope

C = TypeVar("C", bound=type)

BASES: Final = (RemapScope, PlainScope, Remapping, Profile, RemappingAllocator, BufferAllocator, CommandBufferRunner)
"""The parts, each before what it is derived from."""


class ScopeSubject:
    """A subject with execution scopes, each part of which may be a variant."""

    version: Final = "known-bad"

    def __init__(self, name: str, parts: tuple[type, ...], parse: Callable[[str | None], RemapMode]) -> None:
        self.name = name
        self.parse_update_mode = parse
        kinds: dict[type, Any] = {base: base for base in BASES}
        for part in parts:
            kinds[next(base for base in BASES if issubclass(part, base))] = part
        self._kinds = kinds

    def buffer_allocator(self, driver: Driver, executable: ScopedExecutable) -> ExecutableBufferAllocator:
        """Makes the scopes of ``executable``."""
        kinds = self._kinds
        remaps = executable.mode is not RemapMode.ALWAYS_UPDATE
        made: Any = kinds[RemappingAllocator if remaps else BufferAllocator](driver, executable)

        def plain_scope(device: int, allocator: MemoryAllocator) -> PlainScope:
            scope: PlainScope = kinds[PlainScope](executable, made.classes, device, allocator)
            return scope

        def remapping(device: int) -> Remapping:
            held: Remapping = kinds[Remapping](executable, made.classes, device)
            held.profile = kinds[Profile](executable, made.classes)
            return held

        def remap_scope(held: Remapping, allocator: VmmAllocator) -> RemapScope:
            scope: RemapScope = kinds[RemapScope](held, allocator)
            return scope

        made.plain_scope, made.remapping, made.remap_scope = plain_scope, remapping, remap_scope
        return made  # type: ignore[no-any-return]

    def command_consumer(
        self, executable: ScopedExecutable, new_buffer: Callable[[int], CommandBuffer]
    ) -> CommandBufferConsumer:
        """Runs the commands of ``executable``."""
        runner: CommandBufferConsumer = self._kinds[CommandBufferRunner](executable, new_buffer)
        return runner


class ScopeRegistry:
    """Collects mutants: ``@registry("SCOPE-125") class AliasesEarly(RemapScope): ...``.

    The id is made of the area and the class's name, the note is the class's docstring.
    """

    def __init__(self) -> None:
        self._mutants: list[Mutant] = []

    def __call__(self, *breaks: str, source: str = "", parts: tuple[type, ...] = ()) -> Callable[[C], C]:
        """Register a class as a mutant that breaks the invariants ``breaks``, the first on purpose.

        ``parts`` are further variants that it needs.
        """

        def register(variant: C) -> C:
            name = self._name(breaks[0], variant.__name__)
            self._add(name, variant, breaks, ScopeSubject(name, (variant, *parts), parse_update_mode), source)
            return variant

        return register

    def parser(self, *breaks: str) -> Callable[[Callable[[str | None], RemapMode]], Callable[[str | None], RemapMode]]:
        """Register a function in place of `parse_update_mode`."""

        def register(parse: Callable[[str | None], RemapMode]) -> Callable[[str | None], RemapMode]:
            name = f"{breaks[0].partition('-')[0].lower()}-{parse.__name__.replace('_', '-')}"
            self._add(name, parse, breaks, ScopeSubject(name, (), parse), "")
            return parse

        return register

    def _name(self, invariant: str, name: str) -> str:
        return f"{invariant.partition('-')[0].lower()}-{re.sub('(?<!^)(?=[A-Z])', '-', name).lower()}"

    def _add(self, name: str, what: object, breaks: tuple[str, ...], subject: object, source: str) -> None:
        note = " ".join((what.__doc__ or "").split())
        self._mutants.append(Mutant(name, "va-remap", breaks, subject, note, source))

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants registered so far."""
        return tuple(self._mutants)
