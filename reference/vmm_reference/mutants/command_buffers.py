"""Command-buffer consumers that record too little, too much, or go on with what is broken; and idle subjects."""

from __future__ import annotations

from contextlib import suppress

from vmm_conformance.contracts import BufferCommand, Code, SubjectError, Table
from vmm_reference.command_buffer import CommandBufferRunner, Persistent, Recorded
from vmm_reference.mutants.scope_registry import ScopeRegistry
from vmm_reference.scopes import BufferAllocator, PlainScope

mutant = ScopeRegistry()


@mutant("POLICY-144", source="openxla/xla#45130")
class FilteredAtTransition(CommandBufferRunner):
    """When promises begin records only what has moved, and keeps old addresses for what was promised."""

    def update(self, recorded: Recorded, table: Table, persistent: Persistent) -> None:
        recorded.with_persistent = persistent is not None
        super().update(recorded, table, persistent)


@mutant("POLICY-144")
class UpdatesPersistent(CommandBufferRunner):
    """Records every command anew in every run."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        return True


@mutant("POLICY-144")
class RecordsOnce(CommandBufferRunner):
    """Records every command once, and never looks at addresses again once there are promises."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        if persistent is None:
            return super().due(before, command, now, persistent)
        return before is None or command.always_update


@mutant("POLICY-144")
class LooksAtFirstBuffer(CommandBufferRunner):
    """Looks whether the first buffer of a command has moved, and at no other."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        return super().due(before, command, dict(list(now.items())[:1]), persistent)


@mutant("POLICY-144")
class OneBufferForAll(CommandBufferRunner):
    """Has one command buffer for all devices, and takes the addresses of one for those of another."""

    def execute(self, table: Table, persistent: Persistent, *, device: int, stream: int) -> None:
        super().execute(table, persistent, device=0, stream=stream)


@mutant("POLICY-144")
class AnotherForEachRun(CommandBufferRunner):
    """Records another command buffer for every run."""

    def execute(self, table: Table, persistent: Persistent, *, device: int, stream: int) -> None:
        self.recorded.clear()
        super().execute(table, persistent, device=device, stream=stream)


@mutant("POLICY-145", source="openxla/xla#43598")
class SkipsWhatAsks(CommandBufferRunner):
    """Leaves a command alone whose buffers are all persistent, though it asks to be recorded anew."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        if before is not None and persistent is not None and set(now) <= set(persistent):
            return False
        return super().due(before, command, now, persistent)


@mutant("POLICY-145")
class NeverAsked(CommandBufferRunner):
    """Does not know that a command can ask to be recorded anew."""

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        moved = any(before[i] != a for i, a in now.items() if i not in (persistent or ())) if before else True
        return before is None or moved


@mutant("POLICY-146")
class KeepsHalfRecorded(CommandBufferRunner):
    """Keeps a command buffer into which recording has failed, and goes on where it stopped."""

    def execute(self, table: Table, persistent: Persistent, *, device: int, stream: int) -> None:
        with self.lock:
            recorded = self.recorded.setdefault(device, Recorded(self.new_buffer(device)))
            self.update(recorded, table, persistent)
            recorded.buffer.submit(stream)


@mutant("POLICY-146")
class SubmitsHalfRecorded(CommandBufferRunner):
    """Submits what could be recorded, and says that all is well."""

    def execute(self, table: Table, persistent: Persistent, *, device: int, stream: int) -> None:
        with self.lock:
            recorded = self.recorded.setdefault(device, Recorded(self.new_buffer(device)))
            with suppress(SubjectError):
                self.update(recorded, table, persistent)
            recorded.buffer.submit(stream)


# -- subjects that do nothing


@mutant("POLICY-135")
class ExecutesNothing(PlainScope):
    """Never calls execute without remapping, and says that all is well."""

    def execute(self, table: Table, execute: object) -> None:
        pass


@mutant("POLICY-135")
class RefusesEverything(BufferAllocator):
    """Refuses every scope of an executable that remaps nothing."""

    def create_scope(self, device: int, stream: int, allocator: object) -> PlainScope:
        raise SubjectError(Code.INTERNAL, "create_scope: not today")


MUTANTS = mutant.mutants
