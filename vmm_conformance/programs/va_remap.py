"""Programs for the contract ``va-remap``: runs of executables, and what their callers do between them.

Every operation means something under every configuration: executables, devices and buffers are taken modulo
what there is, so a program stays a program when operations are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vmm_conformance.contracts import BufferCommand, BufferKind, BufferSpec, Code, RemapMode

CONTRACT: Final = "va-remap"


class Result(StrEnum):
    """What the execute callback does."""

    OK = "ok"
    RAISE_BEFORE = "raise-before"
    """It raises before it has submitted anything."""
    RAISE_AFTER = "raise-after"
    """It raises after it has submitted all of its work."""


class Ending(StrEnum):
    """How far a run goes. In the end its scope is dropped in every case."""

    TEARDOWN = "teardown"
    """It executes and is torn down."""
    NO_TEARDOWN = "no-teardown"
    """It executes, and the caller forgets the teardown."""
    EARLY = "early"
    """The caller gives up before it executes: its copy protection has failed."""
    EARLY_TEARDOWN = "early-teardown"
    """The caller gives up before it executes, and tears down."""


class Probe(StrEnum):
    """Where in a run a second thread begins another one."""

    NONE = ""
    CREATED = "created"
    """When the scope has been made."""
    EXECUTING = "executing"
    """In the execute callback."""
    TORN_DOWN = "torn-down"
    """Before the scope is dropped."""


@dataclass(frozen=True, slots=True)
class ExecutablePlan:
    """One executable, see `contracts.ScopedExecutable`."""

    buffers: tuple[BufferSpec, ...] = (BufferSpec(4096),)
    commands: tuple[BufferCommand, ...] = (BufferCommand((0,), (0,)),)
    mode: RemapMode = RemapMode.SKIP_TEMP
    multi_device: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program runs under. Granularities in bytes.

    ``budget`` is what the allocator may commit on each device, in granules (0: as much as it likes), and
    ``exempt`` the spaces whose stale memory it never takes back for want of room. ``vmm``: it is a VMM
    allocator. ``consumer``: the subject's own command-buffer consumer runs the commands; else the harness
    does, with the addresses that it saw first for what is persistent.
    """

    executables: tuple[ExecutablePlan, ...] = (ExecutablePlan(),)
    devices: int = 1
    minimum: int = 4096
    recommended: int = 4096
    budget: int = 0
    exempt: tuple[int, ...] = ()
    vmm: bool = True
    consumer: bool = False
    eager: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a scope from its creation to its drop.

    ``stream`` counts the device's two streams; the allocator's is 0. ``other``: with another allocator than
    usual. ``donate``: donatable parameters are given away; else they are protected by a copy. ``keep``: the
    caller holds on to the outputs (see `Free`); else it frees them at once. ``apart``: the second thread of
    ``probe`` runs on the next device, and if there is but one, another executable.
    """

    executable: int = 0
    device: int = 0
    stream: int = 0
    other: bool = False
    donate: bool = True
    result: Result = Result.OK
    ending: Ending = Ending.TEARDOWN
    keep: bool = False
    probe: Probe = Probe.NONE
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the ``buffer``-th parameter to the ``to``-th of its buffers; one is made if there are not so many."""

    buffer: int = 0
    to: int = 1
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """Bind a parameter to the buffer of another one, of the same size and space."""

    buffer: int = 0
    other: int = 1
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Foreign:
    """Bind a parameter to memory that the allocator does not know; the same each time."""

    buffer: int = 0
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Nullify:
    """Hand in null for a parameter that may be null, until it is bound again."""

    buffer: int = 0
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """The caller allocates ``size`` bytes and holds on to them (see `Free`)."""

    size: int = 4096
    space: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """The caller frees something that it holds."""

    held: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """The caller lets a device's allocator complete all that is pending."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Coarsen:
    """The granularity of a device's allocator doubles; once more, and it is what it was."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The caller waits for a device."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """Let the ``k``-th call ``call`` that the subject makes from now on be refused with ``code``."""

    call: str = "allocate"
    k: int = 1
    code: Code = Code.RESOURCE_EXHAUSTED


@dataclass(frozen=True, slots=True)
class Close:
    """Close an executable; the next run opens it anew."""

    executable: int = 0


@dataclass(frozen=True, slots=True)
class ParseMode:
    """Ask for the update mode called ``text``; None is unset."""

    text: str | None = None


Operation = (
    Run | Bind | Share | Foreign | Nullify | Hold | Free | Drain | Coarsen | Synchronize | Fail | Close | ParseMode
)
OPERATIONS: Final[tuple[type, ...]] = (
    Run, Bind, Share, Foreign, Nullify, Hold, Free, Drain, Coarsen, Synchronize, Fail, Close, ParseMode,
)  # fmt: skip

CALLS: Final = (
    "allocate", "allocate_mapped", "map", "unmap", "create_reservation", "deallocate", "synchronize", "record",
)  # fmt: skip
"""The calls that can be made to fail: those of an allocator, and ``record`` of a command buffer."""

MODE_NAMES: Final = tuple(mode.value for mode in RemapMode)
REMOVED_MODES: Final = ("DYNAMIC_ALLOCATE", "VMM_PERSISTENT_TEMP", "NEVER_UPDATE", "CAPTURE_CMD_NEVER_UPDATE")
"""Names that were modes once, and must be refused by name (FLAG-153)."""

__all__ = [
    "CALLS",
    "CONTRACT",
    "MODE_NAMES",
    "OPERATIONS",
    "REMOVED_MODES",
    "Bind",
    "BufferCommand",
    "BufferKind",
    "BufferSpec",
    "Close",
    "Coarsen",
    "Configuration",
    "Drain",
    "Ending",
    "ExecutablePlan",
    "Fail",
    "Foreign",
    "Free",
    "Hold",
    "Nullify",
    "Operation",
    "ParseMode",
    "Probe",
    "Result",
    "Run",
    "Share",
    "Synchronize",
]
