"""Programs for the contract ``skip-remap``: steps, and what callers do to their buffers between them.

Every operation means something under every configuration: numbers of executables, devices, streams and
slots are taken modulo what there is, so a program stays a program when operations are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vmm_conformance.contracts import UpdateMode, Use


class Outcome(StrEnum):
    """What the execute callback does."""

    OK = "ok"
    RAISE_BEFORE = "raise-before"
    """It raises before it has submitted anything."""
    RAISE_AFTER = "raise-after"
    """It raises after it has submitted all of its work."""


class Damage(StrEnum):
    """What becomes of a source buffer behind the executor's back."""

    NO_HANDLE = "no-handle"
    """Its owner has released the memory: the buffer has no handle any more."""
    NULL = "null"
    """Its address is null."""
    UNMAPPED = "unmapped"
    """Its own mapping is gone; the memory lives on under the same handle."""


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """One slot: its declaration, its first size in bytes, and granules committed beyond need."""

    size: int = 4096
    space: int = 0
    use: Use = Use.READ_WRITE
    constant: bool = False
    read_only: bool = False
    extra: int = 0


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """The slots one command names."""

    slots: tuple[int, ...]
    traced: bool = True


@dataclass(frozen=True, slots=True)
class ExecutablePlan:
    """One executable, see `contracts.Executable`."""

    slots: tuple[SlotPlan, ...]
    commands: tuple[CommandPlan, ...]
    mode: UpdateMode = UpdateMode.NEVER_UPDATE
    platform: str = "ROCM"
    vmm: bool = True
    skip_remap: bool = True
    copy_threshold: int = 0


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program runs under. Granularities in bytes; ``streams`` is per device.

    ``capture``: execution replays captured addresses. ``compare``: the program is run again with
    skip-remap off, on, and on with shadows (STEP-158). ``unmap_spans``, ``access_spans`` and
    ``partial_map`` are the driver's capabilities. ``rounds``: the program is run so many times in one life of the
    executors, and each time but for constants with buffers of its own.
    """

    executables: tuple[ExecutablePlan, ...]
    devices: int = 1
    streams: int = 1
    minimum: int = 4096
    recommended: int = 4096
    capture: bool = True
    eager: bool = False
    compare: bool = False
    unmap_spans: bool = True
    access_spans: bool = True
    partial_map: bool = True
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """Run one step. ``uses`` narrows the declared uses, slot by slot; None leaves them.

    ``probe``: from inside execute, a second thread starts a step on the same executable and device.
    """

    executable: int = 0
    device: int = 0
    stream: int = 0
    uses: tuple[Use, ...] | None = None
    outcome: Outcome = Outcome.OK
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Bind a slot to a new buffer of the same size."""

    slot: int
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Swap:
    """Exchange the buffers of two slots."""

    slot: int
    other: int
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind ``slot`` to the buffer of ``other``, so that two slots share it."""

    slot: int
    other: int
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Recreate:
    """Free a slot's buffer and bind the slot to a new one at the same address (ABA)."""

    slot: int
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Resize:
    """Bind a slot to a new buffer of ``size`` bytes."""

    slot: int
    size: int
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Disturb:
    """Somebody else does ``damage`` to a slot's buffer."""

    slot: int
    damage: Damage
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Refill:
    """The caller writes fresh bytes into a slot's buffer, in order on a stream."""

    slot: int
    stream: int = 0
    executable: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """Let the ``k``-th driver call of ``kind`` that the subject makes from now on fail with ``status``."""

    kind: str
    k: int = 1
    status: int = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """Let a stream run some of its queued work."""

    stream: int = 0
    count: int = 1
    device: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """The caller orders stream ``then`` behind all that stream ``first`` has been given."""

    first: int
    then: int
    device: int = 0


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The caller waits for a stream."""

    stream: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Close:
    """Close an executor; steps on it are refused from then on."""

    executable: int = 0


Operation = (
    Step | Move | Swap | Bind | Recreate | Resize | Disturb | Refill | Fail | Progress | Order | Synchronize | Close
)

OPERATIONS: tuple[type, ...] = (
    Step, Move, Swap, Bind, Recreate, Resize, Disturb, Refill, Fail, Progress, Order, Synchronize, Close,
)  # fmt: skip
