"""Execution scopes that are right in another way than the reference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from vmm_conformance.contracts import (
    BufferCommand,
    BufferKind,
    Execute,
    ExecutionScope,
    MemoryAllocator,
    Range,
    is_vmm,
)
from vmm_reference.command_buffer import CommandBufferRunner, Persistent
from vmm_reference.mutants.scope_registry import ScopeSubject
from vmm_reference.policies import parse_update_mode
from vmm_reference.remapping import Remapping, RemappingAllocator, RemapScope
from vmm_reference.scopes import REFUSALS, First, PlainScope


class RewritesAndRestores(RemapScope):
    """Runs with the owning table rewritten, and puts it right whatever happens."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        assert isinstance(table, list)
        before = list(table)
        try:
            super().execute(table, lambda running, persistent: self.rewritten(table, running, persistent, execute))
        finally:
            table[:] = before

    def rewritten(
        self, table: list[Range], running: Sequence[Range], persistent: Persistent, execute: Execute
    ) -> None:
        before = list(table)
        table[:] = running
        try:
            execute(table, persistent)
        finally:
            table[:] = before


class PadsWhatRuns(RemapScope):
    """Lets execution see how much is mapped, and the owning table how much stands behind temporary buffers."""

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        table = super().generate(arguments)
        for index in self.classes.temps:
            table[index] = self.allocated[index]
        return table

    def running_table(self, table: Sequence[Range]) -> tuple[Range, ...]:
        running = super().running_table(table)
        slices = {index: self.remapping.slices[index].size for index in self.selected()}
        return tuple(Range(entry.address, slices.get(n, entry.size)) for n, entry in enumerate(running))


class TidiesNothing(RemapScope):
    """Leaves alone what earlier runs could not give back, and tries aliases again in the end alone."""

    def prepare(self) -> None:
        self.remapping.aliases.clear()
        if self.remapping.to_place():
            self.remapping.reserve(self.vmm)

    def teardown(self, live: Collection[int]) -> None:
        PlainScope.teardown(self, live)


class LooksAtProfileFirst(RemappingAllocator):
    """Where nothing is remapped for good, takes any stream and allocator."""

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        held = self.remappings.get(device)
        if held is not None and held.profile.disabled:
            self.check_open()
            return self.plain_scope(device, allocator)
        return super().create_scope(device, stream, allocator)


class BindsFirst(RemappingAllocator):
    """Looks at the allocator before it looks at the stream, and reserves when the scope is made."""

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        if self.selects() and is_vmm(allocator) and not self.closed:
            held = self.remapping_on(device)
            if held.allocator is not None:
                with held.lock:
                    held.bind(allocator)
        return super().create_scope(device, stream, allocator)


class BackwardsAliases(Remapping):
    """Ends aliases from the last to the first, and unmaps before it asks for anything."""

    def hide_all(self) -> None:
        first = First()
        for piece in reversed(tuple(self.aliases)):
            with first.also():
                assert self.allocator is not None
                self.allocator.unmap(self.device, self.reservation, piece.offset, piece.size)
                self.aliases.remove(piece)
        first.reraise()


class FreesByKind(PlainScope):
    """Frees outputs that nobody has taken before temporary buffers."""

    def free_all(self) -> None:
        kinds = self.executable.buffers
        outputs_first = sorted(self.allocated, key=lambda index: kinds[index].kind is not BufferKind.OUTPUT)
        self.allocated = {index: self.allocated[index] for index in outputs_first}
        super().free_all()


class RecordsMovedOnly(CommandBufferRunner):
    """Records every command that names a buffer which may move, moved or not."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        return super().due(before, command, now, persistent) or not set(now) <= set(persistent or ())


class ReleasesWhatItCan(Remapping):
    """Waits and gives back in two steps, each tried whatever came of the other."""

    def close(self) -> None:
        with self.lock:
            with suppress(*REFUSALS):
                if self.allocator is not None:
                    self.clean(self.allocator)
                    self.allocator.synchronize_pending_operations(self.device)
            with suppress(*REFUSALS):
                if self.reservation is not None:
                    self.reservation.release()
                    self.reservation = None


def subject(*parts: type) -> ScopeSubject:
    return ScopeSubject(parts[0].__name__, parts, parse_update_mode)


CORRECT = tuple(
    map(
        subject,
        (
            RewritesAndRestores, PadsWhatRuns, TidiesNothing, LooksAtProfileFirst, BindsFirst, BackwardsAliases,
            FreesByKind, RecordsMovedOnly, ReleasesWhatItCan,
        ),
    )
)  # fmt: skip

