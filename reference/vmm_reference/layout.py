"""Which slots of an executable get a fixed address, and where. Pure functions; sizes are in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vmm_conformance.contracts import Buffer, Code, Executable, SubjectError, UpdateMode


def round_up(size: int, granularity: int) -> int:
    """``size`` rounded up to a multiple of ``granularity``."""
    return -(-size // granularity) * granularity


@dataclass(frozen=True, slots=True)
class Selection:
    """The slots that command buffers name, ascending.

    ``remapped`` may get a fixed address. ``constants`` have one by nature and are never remapped
    (STEP-101). ``unknown`` are indices for which the executable has no slot (SHADOW-108).
    """

    remapped: tuple[int, ...]
    constants: tuple[int, ...]
    unknown: tuple[int, ...]


def select(executable: Executable) -> Selection:
    """What ``executable`` asks for: every command counts under NEVER_UPDATE, traced ones alone under
    CAPTURE_CMD_NEVER_UPDATE, none under ALWAYS_UPDATE (STEP-100, STEP-102)."""
    commands = (c for c in executable.commands if _counts(executable.mode, c.traced))
    named = sorted({index for command in commands for index in command.slots})
    slots = executable.slots
    known = [index for index in named if 0 <= index < len(slots)]
    return Selection(
        remapped=tuple(index for index in known if not slots[index].constant),
        constants=tuple(index for index in known if slots[index].constant),
        unknown=tuple(index for index in named if not 0 <= index < len(slots)),
    )


def _counts(mode: UpdateMode, traced: bool) -> bool:
    return mode is UpdateMode.NEVER_UPDATE or (mode is UpdateMode.CAPTURE_CMD_NEVER_UPDATE and traced)


class MappedSlot(NamedTuple):
    """A slot whose buffer is mapped at ``offset`` into the reservation, in ``capacity`` bytes."""

    slot: int
    offset: int
    capacity: int


class SmallSlot(NamedTuple):
    """A slot whose buffer is copied into and out of a shadow of ``capacity`` bytes."""

    slot: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where every selected slot lies, for the life of the executor on one device.

    The reservation has ``reserved`` bytes and starts at a multiple of ``granularity``.
    ``capacities`` gives the largest size that each remapped slot may ever have: its rounded size if it
    is mapped, its size if it is small, 0 if it was empty.
    ``persistent`` are the slots whose address never changes again, ascending; ``constants`` the
    addresses at which the constants among them must stay.
    """

    mapped: tuple[MappedSlot, ...]
    small: tuple[SmallSlot, ...]
    capacities: dict[int, int]
    granularity: int
    reserved: int
    persistent: tuple[int, ...]
    constants: dict[int, int]


def plan(selection: Selection, buffers: Sequence[Buffer], granularity: int, threshold: int) -> Layout:
    """The layout for the sizes of ``buffers``.

    A slot is small if its size is from 1 to ``threshold`` (SHADOW-103); a threshold of 0 makes none
    small (SHADOW-119). The others lie one behind the other, ascending by index, each rounded up to
    ``granularity`` (STEP-82). Small slots and empty ones take no room there (SHADOW-104, STEP-101).
    """
    mapped: list[MappedSlot] = []
    small: list[SmallSlot] = []
    capacities = dict.fromkeys(selection.remapped, 0)
    reserved = 0
    for index in selection.remapped:
        size = buffers[index].size
        if 0 < size <= threshold:
            small.append(SmallSlot(index, size))
            capacities[index] = size
        elif size > 0:
            capacities[index] = round_up(size, granularity)
            mapped.append(MappedSlot(index, reserved, capacities[index]))
            reserved += capacities[index]
    fixed = [index for index, capacity in capacities.items() if capacity]
    return Layout(
        mapped=tuple(mapped),
        small=tuple(small),
        capacities=capacities,
        granularity=granularity,
        reserved=reserved,
        persistent=tuple(sorted([*fixed, *selection.constants])),
        constants={index: buffers[index].address for index in selection.constants},
    )


def check_sources(selection: Selection, buffers: Sequence[Buffer]) -> None:
    """Every named slot that is in use has memory, and a handle if it is to be mapped (STEP-95).

    Raises INTERNAL that names the slot.
    """
    for index in selection.remapped:
        buffer = buffers[index]
        if buffer.size and not (buffer.address and buffer.handle):
            raise no_source(index, buffer.size, "address" if not buffer.address else "physical memory handle")
    for index in selection.constants:
        if buffers[index].size and not buffers[index].address:
            raise no_source(index, buffers[index].size, "address")


def no_source(index: int, size: int, missing: str) -> SubjectError:
    """The error for a buffer that lacks what is ``missing``."""
    return SubjectError(
        Code.INTERNAL,
        f"slot {index}: a command buffer names it, but its buffer of {size} bytes has no {missing}; "
        "pass a buffer that a VMM allocator made",
    )


def check_capacities(layout: Layout, buffers: Sequence[Buffer]) -> None:
    """No slot has outgrown its place; a smaller one keeps it (STEP-97, SHADOW-113, SHADOW-114).

    Raises INTERNAL that names the slot and both sizes.
    """
    for index, capacity in layout.capacities.items():
        size = buffers[index].size
        if size > capacity:
            raise SubjectError(
                Code.INTERNAL,
                f"slot {index}: its buffer has grown to {size} bytes, but its place was fixed at {capacity} "
                "bytes when it was first executed, and the address is baked in; "
                "run the larger shape with an executor of its own",
            )


def check_constants(layout: Layout, buffers: Sequence[Buffer]) -> None:
    """Constants stay where they were at the first execution: they are persistent as they are (STEP-84).

    Raises FAILED_PRECONDITION that names the slot and both addresses.
    """
    for index, address in layout.constants.items():
        current = buffers[index].address
        if current != address:
            raise SubjectError(
                Code.FAILED_PRECONDITION,
                f"slot {index}: a constant moved from {address:#x} to {current:#x} after its address was "
                "baked in; keep constants in place, or declare the slot as no constant",
            )


def check_committed(layout: Layout, buffers: Sequence[Buffer], partial_map: bool) -> None:
    """What stands behind a buffer can be mapped into its slot (STEP-159).

    Raises FAILED_PRECONDITION that names the slot and both sizes.
    """
    for index, _, capacity in layout.mapped:
        _, size, committed, _, _ = buffers[index]
        if not size:
            continue
        behind = f"slot {index}: {committed} bytes stand behind its buffer"
        if committed < size:
            raise SubjectError(Code.FAILED_PRECONDITION, f"{behind} of {size} bytes; pass the buffer's real extent")
        if committed > capacity and not partial_map:
            raise SubjectError(
                Code.FAILED_PRECONDITION,
                f"{behind}, but its place has {capacity} bytes and the driver cannot map a part of a handle; "
                "commit buffers at the recommended granularity",
            )
