"""Allocators as a subject of the contract ``va-remap`` sees them: every call is noted, and can be made to fail.

The note is ``memory``: ``scope`` (for which it was called; 0 is none), ``name``, ``ordinal``, the call's
arguments (``address``, ``place``, ``size``, ``space``), ``status``, ``code`` and ``reason`` of a refusal,
``result``, and ``calls``: how many mappings were changed for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from vmm_conformance.contracts import (
    AddressReservation,
    Code,
    Driver,
    DriverError,
    Range,
    RawAllocation,
    SubjectError,
    status_name,
)
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.strict_allocator import Refused, StrictAllocator

T = TypeVar("T")


class CallFaults:
    """Pending failures of calls on an allocator or command buffer, by the call's name. Each strikes once."""

    def __init__(self) -> None:
        self._pending: list[tuple[str, int, Code]] = []

    def inject(self, name: str, k: int, code: Code) -> None:
        """The ``k``-th call ``name`` from now on (1 is the next) is refused with ``code``."""
        self._pending.append((name, k, code))

    def clear(self) -> None:
        """Forget what has not struck."""
        self._pending.clear()

    def strike(self, name: str) -> None:
        """Count one call ``name``. Raises `Refused` if a failure strikes it."""
        if not self._pending:
            return
        due = [code for other, k, code in self._pending if other == name and k <= 1]
        self._pending = [(other, k - (other == name), c) for other, k, c in self._pending if other != name or k > 1]
        if due:
            raise Refused(due[0], "injected", f"{name}: injected")


class Witness:
    """Writes the notes. ``scope`` says for which scope the calling thread works."""

    def __init__(self, recorder: Recorder, faults: CallFaults, scope: Callable[[], int]) -> None:
        self.recorder = recorder
        self.faults = faults
        self.scope = scope

    def call(self, name: str, action: Callable[[], T], count: Callable[[], int] = lambda: 0, **details: Any) -> T:
        """Make one call, and note it with ``details``."""
        scope, before = self.scope(), count()
        note = {"scope": scope, "name": name, **details, "status": "ok", "code": "", "reason": "", "result": None}
        try:
            self.faults.strike(name)
            result = action()
        except SubjectError as error:
            reason = error.reason if isinstance(error, Refused) else ""
            note |= {"status": "refused", "code": error.code.value, "reason": reason}
            raise
        except DriverError as error:
            note |= {"status": "refused", "code": status_name(error.status), "reason": "driver"}
            raise
        else:
            note["result"] = result if type(result) is Range else None
            return result
        finally:
            note["calls"] = count() - before
            self.recorder.note("memory", **note)


class WatchedReservation:
    """A reservation that a subject asked for."""

    def __init__(self, inner: AddressReservation, witness: Witness, ordinal: int) -> None:
        self.inner = inner
        self.range = inner.range
        self._witness = witness
        self._ordinal = ordinal

    def release(self) -> None:
        """See `AddressReservation`."""
        self._witness.call("release", self.inner.release, ordinal=self._ordinal, place=self.range)


class WatchedAllocator:
    """A `StrictAllocator` behind a witness; see `VmmAllocator`. ``label`` tells several of them apart."""

    def __init__(self, inner: StrictAllocator, witness: Witness, label: int) -> None:
        self.inner = inner
        self.label = label
        self._witness = witness

    def _call(self, name: str, action: Callable[[], T], **details: Any) -> T:
        return self._witness.call(name, action, lambda: self.inner.calls, label=self.label, **details)

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        """See `VmmAllocator`."""
        return self._call(
            "allocate", lambda: self.inner.allocate(ordinal, size, retry=retry, space=space),
            ordinal=ordinal, size=size, space=space,
        )  # fmt: skip

    def allocate_mapped(
        self,
        ordinal: int,
        alloc_size: int,
        *,
        reservation: AddressReservation | None,
        offset: int,
        map_size: int,
        retry: bool = True,
        space: int = 0,
    ) -> Range:
        """See `VmmAllocator`."""
        return self._call(
            "allocate_mapped",
            lambda: self.inner.allocate_mapped(
                ordinal, alloc_size, reservation=reservation, offset=offset, map_size=map_size, retry=retry,
                space=space,
            ),
            ordinal=ordinal, size=alloc_size, space=space, place=_slice(reservation, offset, map_size),
        )  # fmt: skip

    def deallocate(self, ordinal: int, address: Range) -> None:
        """See `VmmAllocator`."""
        self._call("deallocate", lambda: self.inner.deallocate(ordinal, address), ordinal=ordinal, address=address)

    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None:
        """See `VmmAllocator`."""
        self._call(
            "map", lambda: self.inner.map(ordinal, address, reservation, offset, size),
            ordinal=ordinal, address=address, place=_slice(reservation, offset, size),
        )  # fmt: skip

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        """See `VmmAllocator`."""
        self._call(
            "unmap", lambda: self.inner.unmap(ordinal, reservation, offset, size),
            ordinal=ordinal, place=_slice(reservation, offset, size),
        )  # fmt: skip

    def synchronize_pending_operations(self, ordinal: int) -> None:
        """See `VmmAllocator`."""
        self._call("synchronize", lambda: self.inner.synchronize_pending_operations(ordinal), ordinal=ordinal)

    def create_reservation(self, ordinal: int, size: int) -> AddressReservation:
        """See `VmmAllocator`."""

        def create() -> Range:
            made.append(self.inner.create_reservation(ordinal, size))
            return made[0].range

        made: list[AddressReservation] = []
        self._call("create_reservation", create, ordinal=ordinal, size=size)
        return WatchedReservation(made[0], self._witness, ordinal)

    # -- look-ups, of which no note is taken

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        """See `VmmAllocator`."""
        return self.inner.raw_allocation(ordinal, address)

    def reservation_of(self, ordinal: int, address: Range) -> Range | None:
        """See `VmmAllocator`."""
        return self.inner.reservation_of(ordinal, address)

    def granularity(self, ordinal: int) -> int:
        """See `VmmAllocator`."""
        return self.inner.granularity(ordinal)

    def stream(self, ordinal: int) -> int:
        """See `VmmAllocator`."""
        return self.inner.stream(ordinal)

    def device_tag(self, multi_device: bool) -> AbstractContextManager[None]:
        """See `VmmAllocator`."""
        return self.inner.device_tag(multi_device)

    def close(self) -> None:
        """The allocator is the caller's: a subject must not close it."""
        raise TypeError("an allocator that is handed to create_scope is closed by whoever made it")


class WatchedPlain:
    """Plain memory behind a witness: no VMM allocator. Freeing waits for the device."""

    def __init__(self, driver: Driver, witness: Witness, label: int) -> None:
        self.label = label
        self._driver = driver
        self._witness = witness

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        """See `MemoryAllocator`."""

        def allocate() -> Range:
            return Range(self._driver.alloc(size, device=ordinal, space=space) if size else 0, size)

        return self._witness.call(
            "allocate", allocate, label=self.label, ordinal=ordinal, size=size, space=space
        )

    def deallocate(self, ordinal: int, address: Range) -> None:
        """See `MemoryAllocator`."""

        def free() -> None:
            if address.address:
                self._driver.device_synchronize(ordinal)
                self._driver.free(address.address)

        self._witness.call("deallocate", free, label=self.label, ordinal=ordinal, address=address)


def _slice(reservation: AddressReservation | None, offset: int, size: int) -> Range:
    return Range((reservation.range.address if reservation else 0) + offset, size)
