"""One step of a subject's step executor, to see which slices an explicit copy threshold copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmm_conformance.contracts import (
    Access,
    Buffer,
    Command,
    Driver,
    DriverError,
    Executable,
    Slot,
    Table,
    UpdateMode,
)
from vmm_conformance.running.caller import round_up
from vmm_conformance.running.outcome import Outcome, attempt


def step_with(driver: Driver, subject: Any, slices: Sequence[int], threshold: int) -> tuple[Outcome, tuple[int, ...]]:
    """Run one step over buffers of ``slices`` bytes: how it ended, and which slots were not mapped but copied.

    ``driver`` is fresh, and of no more use afterwards.
    """
    buffers = _buffers(driver, slices)
    stream = driver.stream_create(0)
    copied: list[int] = []

    def execute(table: Table, persistent: tuple[int, ...] | None) -> None:
        copied.extend(
            slot
            for slot, (place, buffer) in enumerate(zip(table, buffers, strict=True))
            if buffer.handle is not None and _behind(driver, place.address) != buffer.handle
        )

    def step() -> None:
        executor = subject.step_executor(driver, executable(len(slices), threshold))
        try:
            executor.step(buffers, device=0, stream=stream, execute=execute)
        finally:
            executor.close()

    return attempt(step), tuple(copied)


def executable(slots: int, threshold: int) -> Executable:
    """Every slot named by one command, with a fixed address and the ``threshold`` in force."""
    command = Command(tuple(range(slots)))
    return Executable(
        (Slot(),) * slots, (command,), mode=UpdateMode.NEVER_UPDATE, platform="ROCM", copy_threshold=threshold
    )


def _behind(driver: Driver, address: int) -> int | None:
    """The handle that is mapped at ``address``."""
    try:
        handle = driver.retain(address)
    except DriverError:
        return None
    driver.release(handle)
    return handle


def _buffers(driver: Driver, slices: Sequence[int]) -> list[Buffer]:
    granularity = driver.granularity(0).recommended
    return [_buffer(driver, size, round_up(size, granularity), number) for number, size in enumerate(slices, 1)]


def _buffer(driver: Driver, size: int, committed: int, number: int) -> Buffer:
    if not size:
        return Buffer(0, 0, 0, None, number)
    address, handle = driver.reserve(committed), driver.create(committed)
    driver.map(address, committed, handle)
    driver.set_access(address, committed, {0: Access.READ_WRITE})
    return Buffer(address, size, committed, handle, number)
