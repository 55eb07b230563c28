"""Runs commands out of a command buffer, and records anew only what may have changed.

Numbers in comments are ids of the catalogue's POLICY area.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from vmm_conformance.contracts import BufferCommand, CommandBuffer, ScopedExecutable, Table

Persistent = tuple[int, ...] | None


class Recorded:
    """A command buffer, the addresses each command was recorded with, and under which kind of policy."""

    def __init__(self, buffer: CommandBuffer) -> None:
        self.buffer = buffer
        self.addresses: dict[int, dict[int, int]] = {}
        self.with_persistent = False


class CommandBufferRunner:
    """One command buffer per device.

    As long as the policy promises nothing (``persistent`` is absent), every buffer may have moved. Once it
    does, what it promises is never looked at again.
    """

    def __init__(self, executable: ScopedExecutable, new_buffer: Callable[[int], CommandBuffer]) -> None:
        self.executable = executable
        self.new_buffer = new_buffer
        self.lock = threading.Lock()
        self.recorded: dict[int, Recorded] = {}
        """By device."""

    def execute(self, table: Table, persistent: Persistent, *, device: int, stream: int) -> None:
        """Record what must be, then submit. Raises what recording raises, with nothing submitted (146)."""
        with self.lock:
            recorded = self.recorded.pop(device, None) or Recorded(self.new_buffer(device))
            # Until all is recorded nobody else gets to see it: a half-recorded buffer is worth nothing (146).
            self.update(recorded, table, persistent)
            self.recorded[device] = recorded
            recorded.buffer.submit(stream)

    def update(self, recorded: Recorded, table: Table, persistent: Persistent) -> None:
        """Record every command that needs it; all of them where the policy has begun to promise (144)."""
        everything = recorded.with_persistent is not (persistent is not None)
        for number, command in enumerate(self.executable.commands):
            addresses = self.addresses(command, table)
            if everything or self.due(recorded.addresses.get(number), command, addresses, persistent):
                recorded.buffer.record(number, table)
                recorded.addresses[number] = addresses
        recorded.with_persistent = persistent is not None

    def due(
        self, before: dict[int, int] | None, command: BufferCommand, now: dict[int, int], persistent: Persistent
    ) -> bool:
        """Whether a command must be recorded: it never was, it asks for it (145), or a buffer may have moved (144)."""
        if before is None or command.always_update:
            return True
        fixed = persistent or ()
        return any(before[index] != address for index, address in now.items() if index not in fixed)

    def addresses(self, command: BufferCommand, table: Table) -> dict[int, int]:
        """Where the buffers are that a command names."""
        return {index: table[index].address for index in (*command.reads, *command.writes)}
