"""What each operation of a program asks a VMM allocator for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vmm_conformance.contracts import AddressReservation, Range, VmmAllocator
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.running.vmm_caller import Caller, Request, Slice


class Requests:
    """Works out requests: whatever a request will need is known before it is made."""

    def __init__(self, caller: Caller, spaces: Sequence[int]) -> None:
        self.caller = caller
        self.spaces = spaces
        self.allocator: VmmAllocator | None = None
        self._makers: dict[type, Callable[[Any], Request | None]] = {
            ops.Allocate: self.allocate, ops.AllocateMapped: self._allocate_mapped, ops.Deallocate: self._deallocate,
            ops.Map: self._map, ops.Unmap: self._unmap, ops.Synchronize: self.synchronize,
        }  # fmt: skip

    def of(self, operation: Any) -> Request | None:
        """The request that an operation means; None where there is nothing that it could be about."""
        return self._makers[type(operation)](operation)

    def reservations(self, operation: Any) -> Iterator[tuple[int, int]]:
        """The reservations, by device and number, that an operation names."""
        place = getattr(operation, "place", ops.Place.NONE)
        if place is ops.Place.NONE:
            return
        device = getattr(operation, "device", 0)
        if isinstance(operation, ops.Map):
            block = self.caller.block(operation.block)
            device = block.device if block else 0
        number = getattr(operation, "reservation", 0) % self.caller.configuration.reservations
        yield device if device < len(self.caller.streams) else 0, number

    @property
    def subject(self) -> VmmAllocator:
        """The allocator."""
        assert self.allocator is not None
        return self.allocator

    def _tag(self) -> dict[str, bool]:
        tags = self.caller.tags
        return {"tag": bool(tags and tags[-1]), "restored": self.caller.restored}

    # -- allocations

    def allocate(self, operation: ops.Allocate, *, used: bool = True) -> Request:
        """An allocation at addresses of the allocator's choice."""
        size, device, retry = operation.size, operation.device, operation.retry
        space = self.spaces[operation.space % len(self.spaces)]
        return Request(
            "allocate",
            {"ordinal": device, "size": size, "space": space, "retry": retry, **self._tag()},
            lambda: as_range("allocate", self.subject.allocate(device, size, retry=retry, space=space)),
            lambda range: self.caller.gained(device, range, None, used=used),
        )

    def _allocate_mapped(self, operation: ops.AllocateMapped) -> Request | None:
        size, device, retry = operation.granules * self.caller.granule, operation.device, operation.retry
        map_size = max(0, size + operation.extra)
        slice = self.caller.slice(device, operation.reservation, operation.offset, map_size, operation.place)
        if slice is None:
            return None
        space = self.spaces[operation.space % len(self.spaces)]
        return Request(
            "allocate_mapped",
            {
                "ordinal": device, "size": size, "map_size": map_size, "space": space, "retry": retry, **self._tag(),
                **_where(slice),
            },
            lambda: as_range(
                "allocate_mapped",
                self.subject.allocate_mapped(
                    device, size, reservation=slice.reservation, offset=slice.offset, map_size=map_size, retry=retry,
                    space=space,
                ),
            ),
            lambda range: self.caller.gained(device, range, slice),
        )  # fmt: skip

    def _deallocate(self, operation: ops.Deallocate) -> Request | None:
        if operation.source is ops.Source.NULL:
            return self.give_up(operation.block % (len(self.caller.streams) + 1), Range(0, 0))
        block = self.caller.block(operation.block)
        named = self.caller.source(block, operation.source)
        if named is None:
            return None
        own = block is not None and operation.source is ops.Source.OWN
        return self.give_up(*named)._replace(before=lambda: self.caller.use(block) if block and own else None)

    def give_up(self, device: int, address: Range) -> Request:
        """A deallocation."""
        return Request(
            "deallocate",
            {"ordinal": device, "address": address},
            lambda: self.subject.deallocate(device, address),
            lambda answer: self.caller.lost(device, address),
        )

    # -- aliases

    def _map(self, operation: ops.Map) -> Request | None:
        block = self.caller.block(operation.block)
        named = self.caller.source(block, operation.source)
        if block is None or named is None:
            return None
        device, address = named
        committed = self.caller.committed(block)
        size = committed if operation.granules == ops.WHOLE else max(0, operation.granules) * self.caller.granule
        if 0 < size < committed and not self.caller.recorder.driver.capabilities.partial_map:
            size = committed  # the driver maps no part of a handle, whoever asks
        slice = self.caller.slice(block.device, operation.reservation, operation.offset, size, operation.place)
        if slice is None:
            return None
        return Request(
            "map",
            {"ordinal": device, "address": address, **_where(slice)},
            lambda: self.subject.map(device, address, slice.reservation, slice.offset, slice.size),
            lambda answer: self.caller.showed(device, address, slice),
        )

    def _unmap(self, operation: ops.Unmap) -> Request | None:
        if operation.place is not ops.Place.INSIDE:
            size = self.caller.granule
            elsewhere = self.caller.slice(0, 0, 0, size, operation.place)
            return self.hide(0, elsewhere) if elsewhere else None
        alias = self.caller.alias(operation.alias)
        named = self.caller.target(alias, operation.target)
        if named is None:
            return None
        device, slice = named
        if operation.granules == 0:
            return self.hide(device, slice._replace(size=0))
        own = alias if operation.target is ops.Target.ALIAS else None
        return self.hide(device, slice)._replace(
            before=lambda: self.caller.use(own.block, alias=own) if own is not None else None
        )

    def hide(self, device: int, slice: Slice) -> Request:
        """An unmapping of a slice."""
        return Request(
            "unmap",
            {"ordinal": device, **_where(slice)},
            lambda: self.subject.unmap(device, slice.reservation, slice.offset, slice.size),
            lambda answer: self.caller.hid(device, slice),
        )

    # -- the rest

    def synchronize(self, operation: ops.Synchronize) -> Request:
        """The host waits for what is pending."""
        device = operation.device
        return Request(
            "synchronize", {"ordinal": device}, lambda: self.subject.synchronize_pending_operations(device)
        )

    def reserve(self, device: int, size: int) -> tuple[AddressReservation, Range]:
        """A reservation, and its range as the subject tells it."""
        made = self.subject.create_reservation(device, size)
        return made, as_range("create_reservation", made.range)

    def asks(self, name: str, device: int) -> Callable[[], object]:
        """A question by name: ``stream`` or ``granularity``."""
        return lambda: getattr(self.subject, name)(device)


def as_range(call: str, answer: object) -> Range:
    """``answer`` as a range. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Range) and all(type(number) is int for number in answer):
        return answer
    raise TypeError(f"{call} returned {answer!r} where a Range (address, size) was expected")


def _where(slice: Slice) -> dict[str, Any]:
    """A slice as it is recorded."""
    whole = slice.reservation.range if slice.reservation is not None else None
    return {"reservation": whole, "offset": slice.offset, "slice": slice.range}
