"""A small allocator of the contract ``vmm-allocator``, for programs that test what stands on top of one.

It does what the contract says and no more, refuses whatever the contract does not allow, and says why in a
word (`Refused.reason`), so that a judge can tell a request that no caller may make from one that had bad
luck. Waiting is waiting for the whole stream. Records are few: look-ups by range are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from vmm_conformance.contracts import (
    HOST_SPACE,
    NULL,
    Access,
    AddressReservation,
    Code,
    DeviceConfig,
    Driver,
    Range,
    RawAllocation,
    SubjectError,
)
from vmm_conformance.running.caller import round_up


class Refused(SubjectError):
    """A refusal. ``reason`` is a word for judges."""

    def __init__(self, code: Code, reason: str, message: str) -> None:
        super().__init__(code, message)
        self.reason = reason


class StrictReservation:
    """Addresses that somebody has reserved through a `StrictAllocator`."""

    def __init__(self, driver: Driver, range_: Range) -> None:
        self.range = range_
        self._driver = driver

    def release(self) -> None:
        """Give the addresses back. Raises `DriverError` while something is mapped there."""
        self._driver.address_free(*self.range)


class Record:
    """Memory that was allocated: at an address of its own, or (``mapped``) in a slice of a reservation.

    ``place`` is where it is mapped, whole; ``range`` what its owner knows. ``owner`` is whoever asked for it.
    """

    __slots__ = ("active", "alias", "handle", "mapped", "owner", "place", "range", "space", "tag")

    def __init__(self, place: Range, size: int, handle: int, space: int, mapped: bool, tag: bool, owner: int) -> None:
        self.place = place
        self.range = Range(place.address, size)
        self.handle = handle
        self.space = space
        self.mapped = mapped
        self.tag = tag
        self.owner = owner
        self.active = True
        self.alias: Alias | None = None


class Alias:
    """A slice of a reservation that shows the memory of ``source``."""

    __slots__ = ("active", "place", "source")

    def __init__(self, place: Range, source: Record) -> None:
        self.place = place
        self.source = source
        self.active = True


class _Device:
    """What is held on one device. ``pending`` are the stale records and aliases, oldest first."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.records: dict[int, Record] = {}
        self.aliases: dict[int, Alias] = {}
        self.pending: list[Record | Alias] = []
        self.charged = 0

    def overlapping(self, place: Range) -> Iterator[Record | Alias]:
        """Whatever lies in ``place``, stale or not."""
        everything: tuple[Record | Alias, ...] = (*self.records.values(), *self.aliases.values())
        for held in everything:
            if held.place.address < place.end and place.address < held.place.end:
                yield held


class StrictAllocator:
    """See `VmmAllocator`. ``owner`` says on whose behalf it is called; ``calls`` counts its changes of mappings.

    ``entitled`` are the owners that may hold memory now. ``factor`` multiplies the granularity, so that a
    program can change it.
    """

    def __init__(self, driver: Driver, devices: Sequence[DeviceConfig], owner: Callable[[], int] = lambda: 0) -> None:
        self.driver = driver
        self.owner = owner
        self.entitled = {0}
        self.calls = 0
        self.factor = 1
        self.devices = {config.ordinal: _Device(config) for config in devices}
        self._tag = False

    # -- allocator addresses

    def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
        """See `VmmAllocator`."""
        if not size:
            return NULL
        device = self._device(ordinal)
        committed = round_up(size, self.granularity(ordinal))
        for stale in device.pending:
            if isinstance(stale, Record) and self._fits(stale, committed, space) and not stale.mapped:
                return self._revive(device, stale, size)
        self._make_room(device, committed)
        return self._create(device, Range(self.driver.reserve(committed), committed), size, space, False)

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
        self._check_slice(alloc_size, map_size, space)
        if not alloc_size:
            return NULL
        device = self._device(ordinal)
        place = self._place(ordinal, reservation, offset, map_size)
        there = self._at(device, place)
        if isinstance(there, Record) and self._fits(there, map_size, space):
            return self._revive(device, there, map_size)
        if there is not None:
            self._complete(device, there)
        self._make_room(device, map_size)
        return self._create(device, place, map_size, space, True)

    def deallocate(self, ordinal: int, address: Range) -> None:
        """See `VmmAllocator`."""
        if not address.address:
            return
        device = self._device(ordinal)
        record = self._active(device, address)
        if record.alias is not None and record.alias.active:
            raise Refused(Code.FAILED_PRECONDITION, "aliased", f"{address} has an alias at {record.alias.place}")
        record.active = False
        device.pending.append(record)

    def adopt(self, ordinal: int, address: Range) -> None:
        """An allocation belongs to nobody in particular from now on."""
        record = self._device(ordinal).records.get(address.address)
        if record is not None:
            record.owner = 0

    # -- aliases

    def map(
        self, ordinal: int, address: Range, reservation: AddressReservation | None, offset: int, size: int
    ) -> None:
        """See `VmmAllocator`."""
        if not size:
            return
        device = self._device(ordinal)
        if not address.address:
            raise Refused(Code.INVALID_ARGUMENT, "null", "the source of an alias is null")
        place = self._place(ordinal, reservation, offset, size)
        source = self._active(device, address)
        if size > source.place.size:
            raise Refused(Code.INVALID_ARGUMENT, "too-large", f"{source.place.size} bytes stand behind {address}")
        there = self._at(device, place)
        old = source.alias
        if old is not None and old.active:
            raise Refused(Code.ALREADY_EXISTS, "source-aliased", f"{address} has an alias at {old.place}")
        if isinstance(there, Alias) and there.source is source:
            device.pending.remove(there)
            there.active = True
            return
        for stale in (there, old):
            if stale is not None:
                self._complete(device, stale)
        self._show(device, place, source.handle)
        source.alias = device.aliases[place.address] = Alias(place, source)

    def unmap(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> None:
        """See `VmmAllocator`."""
        if not size:
            return
        device = self._device(ordinal)
        place = self._place(ordinal, reservation, offset, size)
        alias = device.aliases.get(place.address)
        if alias is None:
            raise Refused(Code.NOT_FOUND, "no-alias", f"no alias begins at {place.address:#x}")
        if alias.place != place:
            raise Refused(Code.INVALID_ARGUMENT, "size", f"the alias there is {alias.place}")
        if not alias.active:
            raise Refused(Code.FAILED_PRECONDITION, "pending", f"the alias at {place} is on its way out already")
        alias.active = False
        device.pending.append(alias)

    # -- the rest of the contract

    def synchronize_pending_operations(self, ordinal: int) -> None:
        """See `VmmAllocator`."""
        device = self._device(ordinal)
        if device.pending:
            self.driver.stream_synchronize(device.config.stream)
        for stale in tuple(device.pending):
            self._complete(device, stale, wait=False)

    def raw_allocation(self, ordinal: int, address: Range) -> RawAllocation | None:
        """See `VmmAllocator`."""
        device = self.devices.get(ordinal)
        if device is None:
            return None
        record = device.records.get(address.address)
        if record is not None and record.range == address:
            return RawAllocation(record.handle, record.place.size)
        alias = device.aliases.get(address.address)
        if alias is not None and alias.active and alias.place == address:
            return RawAllocation(alias.source.handle, alias.source.place.size)
        return None

    def reservation_of(self, ordinal: int, address: Range) -> Range | None:
        """See `VmmAllocator`."""
        device = self.devices.get(ordinal)
        record = device.records.get(address.address) if device else None
        return record.place if record and record.active and not record.mapped else None

    def granularity(self, ordinal: int) -> int:
        """See `VmmAllocator`."""
        return self.driver.granularity(ordinal).recommended * self.factor if ordinal in self.devices else 0

    def create_reservation(self, ordinal: int, size: int) -> AddressReservation:
        """See `VmmAllocator`."""
        self._device(ordinal)
        whole = round_up(size, self.granularity(ordinal))
        return StrictReservation(self.driver, Range(self.driver.reserve(whole), whole))

    def stream(self, ordinal: int) -> int:
        """See `VmmAllocator`."""
        return self._device(ordinal).config.stream

    @contextmanager
    def device_tag(self, multi_device: bool) -> Iterator[None]:
        """See `VmmAllocator`."""
        before, self._tag = self._tag, multi_device
        try:
            yield
        finally:
            self._tag = before

    def close(self) -> None:
        """See `VmmAllocator`."""
        for ordinal, device in self.devices.items():
            self.driver.device_synchronize(ordinal)
            held: tuple[Record | Alias, ...] = (*device.aliases.values(), *device.records.values())
            device.pending += [one for one in held if one.active]
            for stale in tuple(device.pending):
                self._complete(device, stale, wait=False)

    # -- rules

    def _device(self, ordinal: int) -> _Device:
        device = self.devices.get(ordinal)
        if device is None:
            raise Refused(Code.NOT_FOUND, "ordinal", f"device {ordinal} is none of this allocator's")
        return device

    def _active(self, device: _Device, address: Range) -> Record:
        record = device.records.get(address.address)
        if record is None or not record.active or record.range != address:
            raise Refused(Code.NOT_FOUND, "unknown", f"{address} is no address that this allocator has given out")
        return record

    def _check_slice(self, alloc_size: int, map_size: int, space: int) -> None:
        if alloc_size != map_size:
            raise Refused(Code.INVALID_ARGUMENT, "sizes", f"allocates {alloc_size} bytes and maps {map_size}")
        if space == HOST_SPACE:
            raise Refused(Code.INVALID_ARGUMENT, "host", "host memory is never mapped into a reservation")

    def _place(self, ordinal: int, reservation: AddressReservation | None, offset: int, size: int) -> Range:
        """The slice, or INVALID_ARGUMENT where it is none."""
        granule = self.driver.granularity(ordinal).recommended
        if reservation is None or offset < 0 or offset + size > reservation.range.size:
            raise Refused(Code.INVALID_ARGUMENT, "outside", f"{size} bytes at {offset} are not in the reservation")
        if offset % granule or size % granule:
            raise Refused(Code.INVALID_ARGUMENT, "unaligned", f"{size} bytes at {offset}: granules have {granule}")
        return Range(reservation.range.address + offset, size)

    def _at(self, device: _Device, place: Range) -> Record | Alias | None:
        """The stale thing at exactly ``place``; refuses where an active one is, or another range overlaps."""
        for held in device.overlapping(place):
            if held.place != place:
                raise Refused(Code.FAILED_PRECONDITION, "overlap", f"{place} overlaps {held.place}")
            if held.active:
                raise Refused(Code.ALREADY_EXISTS, "active", f"{place} is in use")
            return held
        return None

    def _fits(self, stale: Record, committed: int, space: int) -> bool:
        return (stale.place.size, stale.space, stale.tag) == (committed, space, self._tag)

    def _revive(self, device: _Device, stale: Record, size: int) -> Range:
        device.pending.remove(stale)
        stale.active, stale.owner = True, self.owner()
        stale.range = Range(stale.place.address, size)
        return stale.range

    # -- memory

    def _create(self, device: _Device, place: Range, size: int, space: int, mapped: bool) -> Range:
        handle = self.driver.create(place.size, device=device.config.ordinal, space=space)
        self._show(device, place, handle)
        device.charged += place.size
        record = Record(place, size, handle, space, mapped, self._tag, self.owner())
        device.records[place.address] = record
        return record.range

    def _show(self, device: _Device, place: Range, handle: int) -> None:
        self.driver.map(place.address, place.size, handle)
        self.driver.set_access(place.address, place.size, {device.config.ordinal: Access.READ_WRITE})
        self.calls += 2

    def _make_room(self, device: _Device, size: int) -> None:
        """Complete the oldest stale memory until ``size`` bytes fit into the budget."""
        budget, exempt = device.config.budget, device.config.exempt
        stale = [r for r in device.pending if isinstance(r, Record) and r.space not in exempt]
        if device.charged - sum(record.place.size for record in stale) + size > budget:
            raise Refused(Code.RESOURCE_EXHAUSTED, self._why_short(device, size), f"{size} bytes exceed {budget}")
        while device.charged + size > budget:
            self._complete(device, stale.pop(0))

    def _why_short(self, device: _Device, size: int) -> str:
        """``budget``, or ``leak`` where it would fit but for what is left active by those who are not entitled."""
        exempt = device.config.exempt
        needed = (r for r in device.records.values() if (r.owner in self.entitled if r.active else r.space in exempt))
        kept = sum(record.place.size for record in needed)
        return "budget" if kept + size > device.config.budget else "leak"

    def _complete(self, device: _Device, stale: Record | Alias, *, wait: bool = True) -> None:
        """Take away what is stale, behind all work of the stream."""
        if stale not in device.pending:
            return
        if wait:
            self.driver.stream_synchronize(device.config.stream)
        device.pending.remove(stale)
        if isinstance(stale, Record) and stale.alias is not None:
            self._complete(device, stale.alias, wait=False)
        self.driver.unmap(*stale.place)
        self.calls += 1
        if isinstance(stale, Alias):
            stale.source.alias = None
            del device.aliases[stale.place.address]
            return
        del device.records[stale.place.address]
        device.charged -= stale.place.size
        self.driver.release(stale.handle)
        if not stale.mapped:
            self.driver.address_free(*stale.place)
