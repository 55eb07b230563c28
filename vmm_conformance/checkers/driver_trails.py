"""What each mapping has been through, so that a finding names the call that did it.

A mapping's rights and bytes stay as they are until a call changes them. Every call that might wrongly
change them (an unmap next to it, a refused map onto it) leaves a `Suspect` on its trail, with the
invariants that forbid it to. The next look that finds all in order proves the suspects innocent, a
witness each; a look that does not blames one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Memory, Reservation, State

Tags = tuple[str, ...]
"""Ids of invariants."""

FAILED_CALL: Final = "DRIVER-78"
LIFE_CYCLE: Final = "DRIVER-1"
OTHER_DEVICES: Final = ("DRIVER-56",)
PART: Final = ("DRIVER-53",)
MANY: Final = 8
"""From how many mappings of one memory at one address on DRIVER-46 counts."""


class Suspect:
    """A call that may have changed what it must not. ``tags`` are the invariants it would break.

    For a set_access ``named`` holds the devices it named; what it did to others, or outside of ``low``
    to ``high``, has tags of its own.
    """

    __slots__ = ("event", "high", "low", "named", "proven", "shown", "tags")

    def __init__(
        self, event: Event, tags: Tags, named: frozenset[int] | None = None, low: int = 0, high: int = 0
    ) -> None:
        self.event = event
        self.tags = tags
        self.named = named
        self.low = low
        self.high = high
        self.proven = False
        self.shown: set[Tags] = set()

    def tags_for(self, device: int, address: int) -> Tags:
        """The invariants that it breaks if the rights of ``device`` at ``address`` are wrong."""
        if self.named is None:
            return self.tags
        if not self.low <= address < self.high:
            return PART
        return self.tags if device in self.named else OTHER_DEVICES


class Trail:
    """The suspects of one mapping, latest last. Of those proven innocent only the latest is kept."""

    __slots__ = ("suspects",)

    def __init__(self) -> None:
        self.suspects: list[Suspect] = []

    def add(self, suspect: Suspect) -> None:
        """One more call that may have done harm."""
        self.suspects = [s for s in self.suspects[-3:] if not s.proven]
        self.suspects.append(suspect)

    @property
    def culprit(self) -> Suspect | None:
        """The call to blame: the latest, but of several that nothing was seen of since, one that was accepted."""
        for suspect in reversed(self.suspects):
            if not suspect.proven and suspect.event.status == 0:
                return suspect
        return self.suspects[-1] if self.suspects else None


class View:
    """A live mapping with its rights and its two trails.

    ``rights`` is by device, one number a granule. ``replaced`` holds what was mapped at its addresses
    before. ``moved`` says that its memory was mapped somewhere before.
    """

    __slots__ = ("access", "bytes", "granule", "mapping", "moved", "replaced", "rights")

    def __init__(self, mapping: Mapping, granule: int, replaced: list[View], moved: bool) -> None:
        self.mapping = mapping
        self.granule = granule
        self.replaced = replaced
        self.moved = moved
        self.access = Trail()
        self.bytes = Trail()
        self.rights: dict[int, list[int]] = {}

    def right(self, device: int, address: int) -> int:
        """The rights of ``device`` at an address in the mapping."""
        granules = self.rights.get(device)
        return granules[(address - self.mapping.address) // self.granule] if granules else 0

    def least(self, device: int, low: int, high: int) -> int:
        """The rights of ``device`` on all of the addresses from ``low`` to ``high``."""
        granules = self.rights.get(device)
        if not granules:
            return 0
        start = (low - self.mapping.address) // self.granule
        end = (high - 1 - self.mapping.address) // self.granule
        return min(granules[start : end + 1])

    def grant(self, device: int, access: int, low: int, high: int) -> None:
        """Set the rights of ``device`` between the addresses ``low`` and ``high``."""
        count = -(-self.mapping.size // self.granule)
        granules = self.rights.setdefault(device, [0] * count)
        start, end = low - self.mapping.address, high - self.mapping.address
        for index in range(start // self.granule, -(-end // self.granule)):
            granules[index] = access

    def believe(self, device: int, access: int, address: int) -> None:
        """The driver was found to grant something else: judge it by that from now on."""
        mapping, granules = self.mapping, self.rights.get(device, [0])
        whole = granules.count(granules[0]) == len(granules)
        low = mapping.address if whole else address - (address - mapping.address) % self.granule
        self.grant(device, access, low, mapping.address + mapping.size if whole else low + self.granule)

    def replaced_right(self, device: int, address: int) -> int:
        """The rights that ``device`` had at ``address`` in the mapping that was there before."""
        for view in self.replaced:
            mapping = view.mapping
            if mapping.address <= address < mapping.address + mapping.size:
                return view.right(device, address)
        return 0


class Past:
    """What a physical memory has been through."""

    __slots__ = ("aliased", "failed_map", "mapped", "released", "retained")

    def __init__(self) -> None:
        self.mapped = False
        self.aliased = False
        self.retained = False
        self.released = False
        self.failed_map = False


class Trails:
    """All views, pasts and trails of one history. `follow` takes each judged call into account."""

    def __init__(self, state: State, judge: Judge, granule: int) -> None:
        self.state = state
        self.views: dict[Mapping, View] = {}
        self.pasts: dict[Memory, Past] = {}
        self.ended: list[View] = []
        self.unmapped: dict[int, Tags] = {}
        self.spanned: set[Reservation] = set()
        self.refused_frees: dict[Reservation, str] = {}
        self.freed: set[int] = set()
        self.times: dict[tuple[int, Memory], int] = {}
        self._judge = judge
        self._granule = granule

    # -- questions

    def past(self, memory: Memory) -> Past:
        """What ``memory`` has been through."""
        found = self.pasts.get(memory)
        if found is None:
            found = self.pasts[memory] = Past()
        return found

    def of_memory(self, memory: Memory) -> Iterable[View]:
        """The views of ``memory``."""
        return [view for view in self.views.values() if view.mapping.memory is memory]

    def view_at(self, address: int) -> View | None:
        """The view that covers ``address``."""
        mapping = self.state.mapping_at(address)
        return self.views.get(mapping) if mapping else None

    def replaced(self, address: int, size: int) -> list[View]:
        """The views that were at these addresses last."""
        end = address + size
        return [
            view
            for view in self.ended
            if view.mapping.address < end and address < view.mapping.address + view.mapping.size
        ]

    # -- looks

    def prove_rights(self, trail: Trail, device: int, address: int) -> None:
        """The rights of ``device`` at ``address`` are right: a witness for each suspect."""
        for suspect in trail.suspects:
            self._prove(suspect, suspect.tags_for(device, address))

    def prove_bytes(self, trail: Trail, since: int) -> None:
        """Bytes that were known at event ``since`` are right: a witness for each later suspect."""
        for suspect in trail.suspects:
            if suspect.event.seq > since:
                self._prove(suspect, suspect.tags)

    def _prove(self, suspect: Suspect, tags: Tags) -> None:
        suspect.proven = True
        if tags not in suspect.shown:
            suspect.shown.add(tags)
            for tag in tags:
                self._judge.witness(tag)

    # -- calls

    def touched(self, event: Event) -> list[Mapping]:
        """The mappings that a call with a range names."""
        size = event.args[1] if isinstance(event.args[1], int) else len(event.args[1])
        return self.state.mappings_in(event.args[0], max(size, 1))

    def refused(self, event: Event, tags: Tags) -> None:
        """A refused call leaves everything it named as it was."""
        tags = (*tags, FAILED_CALL)
        for mapping in self.touched(event):
            view = self.views.get(mapping)
            if view is not None:
                view.access.add(Suspect(event, tags))
                view.bytes.add(Suspect(event, tags))

    def mapped(self, event: Event) -> None:
        """A new mapping, at addresses and of a memory that may both have a past."""
        mapping = self.state.mapping_at(event.args[0])
        if mapping is None or mapping.made != event.seq:
            return
        past = self.past(mapping.memory)
        replaced = self.replaced(mapping.address, mapping.size)
        view = View(mapping, self._granule, replaced, past.mapped)
        tags = map_tags(view)
        view.access.add(Suspect(event, ("DRIVER-48",)))
        if tags:
            view.bytes.add(Suspect(event, tags))
        past.mapped = True
        past.aliased |= mapping.memory.mappings > 1
        place = (mapping.address, mapping.memory)
        self.times[place] = self.times.get(place, 0) + 1
        self.views[mapping] = view

    def unmapped_now(self, event: Event) -> None:
        """Mappings went. Their neighbours and the other mappings of their memory stay."""
        gone = [m for m in self.state.ended if isinstance(m, Mapping)]
        tags: Tags = ("DRIVER-40",) if len(gone) == 1 else ("DRIVER-41",)
        for mapping in gone:
            view = self.views.pop(mapping, None)
            if view is not None:
                self.ended = [v for v in self.ended[-20:] if not _overlap(v.mapping, mapping)] + [view]
            self.unmapped[mapping.address] = tags
        reservation = gone[0].reservation if gone else None
        if reservation is not None and len(gone) > 1:
            self.spanned.add(reservation)
        memories = {mapping.memory for mapping in gone}
        for view in self.views.values():
            beside = tags if view.mapping.reservation is reservation else ()
            broken = (*beside, "DRIVER-61") if view.mapping.memory in memories else beside
            if broken:
                view.access.add(Suspect(event, broken))
                view.bytes.add(Suspect(event, broken))

    def granted(self, event: Event, tags: Tags) -> None:
        """Rights changed, of the devices and on the addresses that the call named and nowhere else."""
        address, size, rights = event.args
        named = frozenset(device for device, _ in rights)
        memories = set()
        for mapping in self.touched(event):
            view = self.views.get(mapping)
            if view is None:
                continue
            memories.add(mapping.memory)
            low, high = max(address, mapping.address), min(address + size, mapping.address + mapping.size)
            for device, access in rights:
                view.grant(device, access, low, high)
            view.access.add(Suspect(event, tags, named, low, high))
        for memory in memories:
            if memory.mappings > 1:
                for other in self.of_memory(memory):
                    if not address <= other.mapping.address < address + size:
                        other.access.add(Suspect(event, ("DRIVER-59",)))

    def released(self, event: Event) -> None:
        """A reference went. What is mapped of the memory stays."""
        memory = self.state.handles.get(event.args[0])
        if memory is not None:
            self.past(memory).released = True
            for view in self.of_memory(memory):
                view.bytes.add(Suspect(event, ("DRIVER-24",)))

    def address_freed(self, event: Event) -> None:
        """A reservation went."""
        low, size = event.args
        self.freed.add(low)
        self.ended = [view for view in self.ended if not low <= view.mapping.address < low + size]


def later(one: Suspect | None, other: Suspect | None) -> Suspect | None:
    """The later of two."""
    return max((s for s in (one, other) if s is not None), key=lambda s: s.event.seq, default=None)


def map_tags(view: View) -> Tags:
    """Which invariants the bytes behind a fresh mapping put to the test."""
    if view.mapping.memory.mappings > 1:
        return ("DRIVER-60",)
    tags = ("DRIVER-45",) if view.moved else ()
    return (*tags, "DRIVER-44") if view.replaced else tags


def _overlap(one: Mapping, other: Mapping) -> bool:
    return one.address < other.address + other.size and other.address < one.address + one.size
