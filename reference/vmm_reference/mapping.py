"""Physical memory mapped into the slots of one reservation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from vmm_conformance.contracts import Access, Driver, DriverError, Range

UNRELIABLE: Final = 0
"""Stands for a handle where something is mapped that must not be used. No buffer has it: it is null."""


class MappedRange(NamedTuple):
    """``handle`` is mapped at ``range``."""

    range: Range
    handle: int


class SlotMappings:
    """What is mapped at each slot of one reservation.

    ``mapped`` says what the driver's own record says: an entry appears when its memory is mapped with
    rights, and goes when it is unmapped (STEP-93).
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.mapped: dict[int, MappedRange] = {}

    def map(self, wanted: Mapping[int, MappedRange]) -> None:
        """Map ``wanted`` (slot to what goes there) and grant rights; all of it or nothing.

        Raises the driver's first error after undoing what this call did, and that alone.
        """
        done: list[int] = []
        try:
            for slot, (place, handle) in wanted.items():
                self.map_one(place, handle)
                done.append(slot)
            self.grant(entry.range for entry in wanted.values())
        except BaseException:
            self.undo(wanted, done)
            raise
        self.mapped.update(wanted)

    def map_one(self, place: Range, handle: int) -> None:
        """Map the start of ``handle``; mapping from an offset works on few drivers."""
        self.driver.map(place.address, place.size, handle)

    def grant(self, places: Iterable[Range]) -> None:
        """Read and write for every device in reach. A new mapping starts without any rights."""
        rights = self.rights()
        for run, _ in runs(sorted(places), join=self.driver.capabilities.set_access_spans_mappings):
            self.driver.set_access(run.address, run.size, rights)

    def rights(self) -> dict[int, Access]:
        """The owning device first, then the peers that can reach it; naming another is an error."""
        peers = (peer for peer in range(self.driver.device_count) if peer != self.device)
        reach = [self.device, *(peer for peer in peers if self.driver.can_access_peer(self.device, peer))]
        return dict.fromkeys(reach, Access.READ_WRITE)

    def undo(self, wanted: Mapping[int, MappedRange], done: Iterable[int]) -> None:
        """Unmap the slots ``done``, one by one. What refuses is remembered as not to be relied on."""
        for slot in done:
            place = wanted[slot].range
            try:
                self.driver.unmap(place.address, place.size)
            except DriverError:
                self.mapped[slot] = MappedRange(place, UNRELIABLE)

    def unmap(self, slots: Iterable[int]) -> None:
        """Unmap ``slots``, adjacent ones in one call where the driver can. Nothing may be using them.

        Raises the driver's error; slots unmapped until then are forgotten, the others are as before.
        """
        ascending = sorted(slots, key=lambda slot: self.mapped[slot].range)
        places = [self.mapped[slot].range for slot in ascending]
        left = iter(ascending)
        for run, count in runs(places, join=self.driver.capabilities.unmap_spans_mappings):
            self.driver.unmap(run.address, run.size)
            for slot in islice(left, count):
                del self.mapped[slot]

    def unmap_all(self) -> None:
        """Unmap slot by slot whatever is mapped. What the driver refuses is kept."""
        for slot in tuple(self.mapped):
            with suppress(DriverError):
                self.unmap((slot,))


def runs(ascending: Iterable[Range], *, join: bool) -> Iterator[tuple[Range, int]]:
    """The ranges, those that touch as one if ``join``, and of how many each was made."""
    run, count = Range(0, 0), 0
    for place in ascending:
        if count and join and run.end == place.address:
            run, count = Range(run.address, run.size + place.size), count + 1
            continue
        if count:
            yield run, count
        run, count = place, 1
    if count:
        yield run, count
