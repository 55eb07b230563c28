"""The contract ``skip-remap``: an executor that runs one step of a compiled executable after another.

The addresses that the executable's command buffers capture must stay valid from step to step, while
the caller's buffers move. Revision R2 of XLA:GPU (ROCm/xla#1001) is the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from vmm_conformance.contracts.driver import Driver, Range


class UpdateMode(StrEnum):
    """Which command-buffer slots get a fixed address (STEP-100, STEP-102)."""

    ALWAYS_UPDATE = "ALWAYS_UPDATE"
    NEVER_UPDATE = "NEVER_UPDATE"
    CAPTURE_CMD_NEVER_UPDATE = "CAPTURE_CMD_NEVER_UPDATE"


class Use(StrEnum):
    """What execution may do to a slot: a declared upper bound (STEP/SHADOW-117)."""

    READ = "r"
    WRITE = "w"
    READ_WRITE = "rw"

    @property
    def reads(self) -> bool:
        """Whether execution may read the slot."""
        return self is not Use.WRITE

    @property
    def writes(self) -> bool:
        """Whether execution may write the slot."""
        return self is not Use.READ


class Buffer(NamedTuple):
    """A caller's buffer for one slot of one step (the slot's *source*).

    ``size`` is what the step uses, ``committed`` what stands behind it, both in bytes. ``handle`` is
    the physical memory, or None where the caller's allocator has none to offer. ``allocation`` is an
    identity that is never used again, unlike an address.
    """

    address: int
    size: int
    committed: int
    handle: int | None
    allocation: int


@dataclass(frozen=True, slots=True)
class Slot:
    """What an executable says of one slot, once and for all."""

    space: int = 0
    use: Use = Use.READ_WRITE
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a command buffer: the slots it names, and whether it was traced."""

    slots: tuple[int, ...]
    traced: bool = True


@dataclass(frozen=True, slots=True)
class Executable:
    """Everything static about one compiled program.

    ``skip_remap`` and ``copy_threshold`` (bytes; 0 is off) are the settings as asked for; the executor
    applies them on the platform ``ROCM`` alone (STEP-162). ``vmm`` says whether the caller's allocator
    is a VMM allocator, so that its buffers carry handles.
    """

    slots: tuple[Slot, ...]
    commands: tuple[Command, ...]
    mode: UpdateMode = UpdateMode.NEVER_UPDATE
    platform: str = "ROCM"
    vmm: bool = True
    skip_remap: bool = True
    copy_threshold: int = 0
    name: str = "executable"


Table = Sequence[Range]
"""The execution table: for each slot the address that execution uses, and its logical size."""

Execute = Callable[[Table, tuple[int, ...] | None], None]
"""``execute(table, persistent)``: submits the step's work to its stream, without waiting.

``persistent`` lists, ascending, the slots whose address never changes again; None if the executor
promises nothing. It may raise before or after it has submitted work; the executor lets the exception
through.
"""


class StepExecutor(Protocol):
    """Runs steps of one executable, on any device and stream, from any thread.

    Within one execution every slot is read before any is written, and slots are written in
    ascending order. ``step`` raises `SubjectError` or `DriverError` when it refuses; nothing has been
    executed then. ``close`` waits for what is in flight and gives everything back.
    """

    def step(self, buffers: Sequence[Buffer], *, device: int, stream: int, execute: Execute) -> None: ...
    def close(self) -> None: ...


StepExecutorFactory = Callable[[Driver, Executable], StepExecutor]
