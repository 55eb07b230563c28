"""Executors that are right in other ways than the reference: a judge that knows one way only would fail them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from vmm_conformance.contracts import Buffer, Copy, DriverError
from vmm_reference.in_flight import InFlight
from vmm_reference.layout import Layout
from vmm_reference.mapping import MappedRange, SlotMappings
from vmm_reference.mutants.registry import StepSubject, assembled
from vmm_reference.shadows import Shadows
from vmm_reference.va_ranges import VaRanges


class WaitsForStreams(InFlight):
    """Records no event: before it unmaps it waits for every stream that a step has run on."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.streams: set[int] = set()

    def prepare(self, stream: int) -> None:
        pass

    def record(self, stream: int) -> None:
        self.streams.add(stream)
        self.last_stream = stream

    def wait(self) -> None:
        for stream in sorted(self.streams):
            self.driver.stream_synchronize(stream)
            self.streams.discard(stream)

    def order_behind_last_step(self, stream: int) -> None:
        if self.streams - {stream}:
            self.wait()


class AsksFirst(InFlight):
    """Asks each event whether it is over before it waits for it."""

    def wait(self) -> None:
        for event in self.events.values():
            self.driver.event_query(event)
        super().wait()


class WaitsForTheDevice(InFlight):
    """Waits for everything on the device before it unmaps."""

    def wait(self) -> None:
        if self.events or self.unrecorded:
            self.driver.device_synchronize(self.device)
            self._forget_all()


class OneLaunch(Shadows):
    """Submits the copies of a step in one launch for each direction."""

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        used = [i for i in self.addresses if buffers[i].size]
        self.together([Copy(self.addresses[i], buffers[i].address, buffers[i].size) for i in used], stream)

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        used = [i for i in written if buffers[i].size]
        self.together([Copy(buffers[i].address, self.addresses[i], buffers[i].size) for i in used], stream)

    def together(self, copies: list[Copy], stream: int) -> None:
        if copies:
            self.driver.launch(stream, copies=copies)


class CopiesBothWays(Shadows):
    """Copies every small slot back, read or written, but for buffers that are shared or read-only."""

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        bound = [buffer.allocation for buffer in buffers]
        alone = [i for i in self.addresses if bound.count(bound[i]) == 1]
        alone = [i for i in alone if buffers[i].size and self.writable(buffers[i])]
        return sorted({*alone, *super().written(buffers)})


class KeepsReferences(SlotMappings):
    """Holds a reference to the memory of everything that it has mapped."""

    def map(self, wanted: Mapping[int, MappedRange]) -> None:
        super().map(wanted)
        for slot, (place, _) in wanted.items():
            try:
                self.mapped[slot] = MappedRange(place, self.driver.retain(place.address))
            except DriverError:
                self.unmap_unheld(slot)
                raise

    def unmap_unheld(self, slot: int) -> None:
        super().unmap((slot,))

    def unmap(self, slots: Iterable[int]) -> None:
        held = {slot: self.mapped[slot].handle for slot in slots}
        try:
            super().unmap(held)
        finally:
            for slot, handle in held.items():
                if slot not in self.mapped and handle:
                    with suppress(DriverError):
                        self.driver.release(handle)


class GrantsOneByOne(SlotMappings):
    """Grants rights mapping by mapping."""

    def grant(self, places: Iterable[Any]) -> None:
        for place in places:
            self.driver.set_access(place.address, place.size, self.rights())


class ReservesBeforeItLooks(VaRanges):
    """Acquires what the step would need before it checks the buffers, and gives it back if they are wrong."""

    def check_fit(self, layout: Layout, buffers: Sequence[Buffer]) -> None:
        if self.layout is None and layout.reserved:
            address = self.driver.reserve(layout.reserved)
            self.driver.address_free(address, layout.reserved)
        super().check_fit(layout, buffers)


class NeedsNoHandleForSmallSlots(VaRanges):
    """Takes small slots as they come: a copy needs an address and nothing else."""

    def check_memory(self, buffers: Sequence[Buffer]) -> None:
        limit = self.settings.copy_threshold
        frozen = {slot for slot, _ in self.layout.small} if self.layout else set()
        small = {i for i in self.selection.remapped if (i in frozen if self.layout else 0 < buffers[i].size <= limit)}
        judged = [b._replace(handle=b.handle or -1) if i in small else b for i, b in enumerate(buffers)]
        super().check_memory(judged)


def subject(*parts: type) -> StepSubject:
    return StepSubject("-".join(part.__name__ for part in parts), assembled(*parts))


CORRECT = tuple(
    subject(*parts)
    for parts in (
        (WaitsForStreams,), (AsksFirst,), (WaitsForTheDevice,), (OneLaunch,), (CopiesBothWays,),
        (KeepsReferences,), (GrantsOneByOne,), (ReservesBeforeItLooks,),
        (NeedsNoHandleForSmallSlots,), (OneLaunch, WaitsForStreams, KeepsReferences),
    )
)  # fmt: skip
