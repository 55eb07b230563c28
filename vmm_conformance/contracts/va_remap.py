"""The contract ``va-remap``: scopes in which a compiled executable runs, and which give its buffers fixed addresses.

Revision R3 of XLA:GPU (openxla/xla#45567, #45595, #45596, #45597) is the model. One run is one scope::

    scope = buffers.create_scope(device, stream, allocator)
    table = scope.generate(arguments)        # the owning table: who frees what
    ...                                      # the caller may replace entries (copy protection)
    scope.execute(table, execute)            # execute(table, persistent): addresses to run with
    scope.teardown(live)                     # frees all but what the caller keeps
    scope.drop()                             # the end, in every case

Sizes are in bytes; buffers are named by their index in the executable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeGuard

from vmm_conformance.contracts.driver import Driver, Range
from vmm_conformance.contracts.step import Execute, Table
from vmm_conformance.contracts.vmm_allocator import VmmAllocator

COLLECTIVE_SPACE: Final = 1
"""The memory space whose buffers are allocated before all others (SCOPE-132)."""

PROFILED_RUNS: Final = 3
"""Successful runs that SKIP_PROFILED observes before it decides (POLICY-137)."""


class RemapMode(StrEnum):
    """Which buffers get an address that never changes; the one unset is ALWAYS_UPDATE (FLAG-153)."""

    ALWAYS_UPDATE = "ALWAYS_UPDATE"
    """Constants alone: they have one by nature."""
    SKIP_TEMP = "SKIP_TEMP"
    """Temporary buffers that a command names."""
    SKIP_PROFILED = "SKIP_PROFILED"
    """These, and parameters and outputs whose address did not change while it was watched."""


class BufferKind(StrEnum):
    """Whose a buffer is."""

    PARAMETER = "parameter"
    """The caller's, handed in for each run."""
    CONSTANT = "constant"
    """The caller's, the same in every run."""
    OUTPUT = "output"
    """Allocated by the scope, taken over by the caller."""
    TEMP = "temp"
    """Allocated by the scope, and freed with it."""


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """What an executable says of one buffer.

    ``donatable``: a parameter that is an output as well. Where its owner keeps it, the caller puts a copy
    into the table (copy protection). ``nullable``: a parameter that may be null.
    """

    size: int
    kind: BufferKind = BufferKind.TEMP
    space: int = 0
    donatable: bool = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class BufferCommand:
    """One command of the command buffer: what it reads and writes, by index.

    ``always_update``: it holds more than addresses, and is recorded anew for every run (POLICY-145).
    """

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    always_update: bool = False


@dataclass(frozen=True, slots=True)
class ScopedExecutable:
    """Everything static about one compiled program.

    ``multi_device``: it belongs to a program over several devices, see `VmmAllocator.device_tag`.
    """

    buffers: tuple[BufferSpec, ...]
    commands: tuple[BufferCommand, ...]
    mode: RemapMode = RemapMode.ALWAYS_UPDATE
    multi_device: bool = False
    name: str = "executable"


class MemoryAllocator(Protocol):
    """What every allocator that a scope is given can do; a `VmmAllocator` can do more."""

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range: ...
    def deallocate(self, ordinal: int, address: Range) -> None: ...


def is_vmm(allocator: MemoryAllocator) -> TypeGuard[VmmAllocator]:
    """Whether ``allocator`` can put memory at addresses that somebody else has reserved."""
    return hasattr(allocator, "allocate_mapped")


class ExecutionScope(Protocol):
    """One run. Refusals raise `SubjectError` or `DriverError`; where ``generate`` is refused only ``drop`` follows.

    ``va_remap_enabled``: the scope gives buffers fixed addresses, or may come to (POLICY-141).

    ``generate`` takes one entry per buffer, null but for parameters and constants, and returns the owning
    table: the arguments as they are, and outputs and temporary buffers freshly allocated. The table is the
    caller's: it may replace entries by buffers of its own.

    ``execute`` calls back once, with the addresses to run with and the buffers whose address there never
    changes, ascending (see `Execute`). What the callback raises goes through unchanged. ``table`` is the same
    afterwards.

    ``teardown`` frees all that ``generate`` allocated, but for the addresses in ``live``: those the caller
    owns or takes over, and has from then on even where freeing something else is refused. ``drop`` ends the
    scope: without a teardown before, it frees all that was allocated. It raises nothing.
    """

    @property
    def va_remap_enabled(self) -> bool: ...
    def generate(self, arguments: Sequence[Range]) -> list[Range]: ...
    def execute(self, table: Sequence[Range], execute: Execute) -> None: ...
    def teardown(self, live: Collection[int]) -> None: ...
    def drop(self) -> None: ...


class ExecutableBufferAllocator(Protocol):
    """Makes the scopes of one executable, on any device, from any thread.

    ``create_scope`` returns when the scope before it on the same device has been dropped (SCOPE-122).
    ``close`` is called when no scope is open. It waits for what is pending in the allocators that scopes
    were given, and gives back every reservation (SCOPE-134).
    """

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope: ...
    def close(self) -> None: ...


ExecutableBufferAllocatorFactory = Callable[[Driver, ScopedExecutable], ExecutableBufferAllocator]
"""``(driver, executable)`` to a fresh one: what a subject offers as ``buffer_allocator``."""


class CommandBuffer(Protocol):
    """Commands recorded once with the addresses that they use, and submitted again and again.

    ``record`` records one command with the addresses of ``table``, or updates it. It may fail, and the
    buffer is worth nothing then. ``submit`` wants every command of the executable to be recorded.
    """

    def record(self, command: int, table: Table) -> None: ...
    def submit(self, stream: int) -> None: ...


class CommandBufferConsumer(Protocol):
    """Runs the commands of one executable out of a command buffer: what ``execute`` comes to.

    It records what it must, and nothing else, then submits. From any thread, on any device.
    """

    def execute(self, table: Table, persistent: tuple[int, ...] | None, *, device: int, stream: int) -> None: ...


CommandBufferConsumerFactory = Callable[[ScopedExecutable, Callable[[int], CommandBuffer]], CommandBufferConsumer]
"""``(executable, new_buffer)`` to a fresh one: what a subject may offer as ``command_consumer``.

``new_buffer(device)`` makes a command buffer in which nothing is recorded.
"""

ModeParser = Callable[[str | None], RemapMode]
"""What a subject may offer as ``parse_update_mode``: the mode of that name, None is unset.

Raises `SubjectError` (INVALID_ARGUMENT) that quotes a name that is none (FLAG-153).
"""
