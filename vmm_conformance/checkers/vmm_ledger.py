"""What a VMM allocator holds, as far as its answers and its driver calls tell: the judge's own book.

It is kept from the answers of calls and the endings of mappings, and asks nobody. A call is entered when it
has returned; what it ended is entered just before that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Memory, Part, Reservation

WAITING: Final = frozenset({"event_synchronize", "stream_synchronize", "device_synchronize"})
"""The driver calls that wait for a device."""


class State(Enum):
    """Of an entity: in use, deferred, or completed."""

    ACTIVE = "active"
    STALE = "stale"
    GONE = "completed"


class Entity:
    """Something at ``extent`` on a device. ``tick``: how much work the stream had when it was deferred.

    ``since`` is the number of the event at which it was deferred; ``marker_failed``: a marker for it was
    refused. ``revived``: it has been taken back. ``damaged``: what it is cannot be told any more, since a
    failure was injected or something was accepted that must not be; nothing is said about it.
    """

    __slots__ = (
        "damaged", "extent", "mapping", "marker_failed", "memory", "ordinal", "revived", "since", "state", "tick",
    )  # fmt: skip

    def __init__(self, ordinal: int, extent: Range) -> None:
        self.ordinal = ordinal
        self.extent = extent
        self.state = State.ACTIVE
        self.mapping: Mapping | None = None
        self.memory: Memory | None = None
        self.tick = self.since = 0
        self.marker_failed = self.revived = self.damaged = False


class Allocation(Entity):
    """An allocator address. ``range`` is what its owner knows; ``origin`` how it came to its place."""

    __slots__ = ("alias", "committed", "mapped", "range", "space", "tag")

    def __init__(self, ordinal: int, range: Range, committed: int, space: int, tag: bool, mapped: bool) -> None:
        super().__init__(ordinal, range if mapped else Range(range.address, committed))
        self.range = range
        self.committed = committed
        self.space = space
        self.tag = tag
        self.mapped = mapped
        self.alias: Alias | None = None

    def __str__(self) -> str:
        where = "mapped allocation" if self.mapped else "allocation"
        return f"the {self.state.value} {where} of {self.range.size} bytes at {self.range.address:#x}"


class Alias(Entity):
    """A slice that shows ``source``. ``by``: the invariant that its making was about."""

    __slots__ = ("by", "source")

    def __init__(self, ordinal: int, extent: Range, source: Allocation, by: str) -> None:
        super().__init__(ordinal, extent)
        self.source = source
        self.by = by

    def __str__(self) -> str:
        return f"the {self.state.value} alias at {self.extent.address:#x}+{self.extent.size}"


class Ending:
    """``entity``'s own mapping ended. ``reached``: the host knew that the work before its deferral was over."""

    __slots__ = ("entity", "event", "reached")

    def __init__(self, entity: Entity, event: Event, reached: bool) -> None:
        self.entity = entity
        self.event = event
        self.reached = reached


class Call:
    """One call on the subject, from its ``call`` note to its ``return`` note.

    ``live`` is what was committed on each device when it began, ``tick`` how much work its device's stream had.
    ``made`` is what it took from the driver; ``parts`` what stood behind its answer (or its slice) when it
    returned. ``alone``: no other call was going on meanwhile; otherwise ``in_way`` is what
    it had to wait for when both began.
    """

    __slots__ = (
        "alone", "answer", "calls", "code", "damaged", "details", "endings", "event", "failures", "in_way", "live",
        "made", "message", "name", "ordinal", "parts", "returned", "status", "struck", "tick",
    )  # fmt: skip

    def __init__(self, event: Event, details: dict[str, Any], live: Counter[int], tick: int) -> None:
        self.event = self.returned = event
        self.name: str = details["name"]
        self.details = details
        self.ordinal: int = details.get("ordinal", 0)
        self.live = live
        self.tick = tick
        self.calls: list[Event] = []
        self.failures: list[Event] = []
        self.endings: list[Ending] = []
        self.damaged: list[Entity] = []
        self.in_way: list[Entity] = []
        self.made: list[Memory | Mapping | Reservation] = []
        self.parts: list[Part] = []
        self.struck = False
        self.alone = True
        self.status = self.code = self.message = ""
        self.answer: Any = None

    @property
    def good(self) -> bool:
        """Whether the subject did what it was asked to."""
        return self.status == "ok"

    @property
    def waited(self) -> Event | None:
        """The first driver call in which it waited for a device."""
        return next((event for event in self.calls if event.kind in WAITING and not event.status), None)

    def __getitem__(self, name: str) -> Any:
        return self.details[name]

    def __str__(self) -> str:
        hidden = ("name", "restored", "retry", "reservation", "offset")
        shown = (f"{name}={told(value)}" for name, value in self.details.items() if name not in hidden)
        return f"{self.name}({', '.join(shown)})"


def told(value: Any) -> str:
    """A value in a message: ranges by their addresses in hexadecimal."""
    return f"{value.address:#x}+{value.size}" if isinstance(value, Range) else str(value)


class Ledger:
    """All entities that are not gone, by device and address. ``header`` is the history's."""

    def __init__(self, header: dict[str, Any]) -> None:
        configuration, options = header["configuration"], header["options"]
        self.header = header
        self.traced: bool = header["traced"]
        self.streams: dict[int, int] = dict(enumerate(header["streams"]))
        self.granule: int = options.granularity.recommended
        self.limit: int = min(configuration.budget, options.capacity)
        self.budget: int = configuration.budget
        self.exempt: tuple[int, ...] = configuration.exempt
        self.allocations: dict[tuple[int, int], Allocation] = {}
        self.aliases: dict[tuple[int, int], Alias] = {}
        self.of_mapping: dict[Mapping, Entity] = {}
        self.over: set[Mapping | None] = set()
        """Mappings of entities that are gone."""
        self.reservations: set[int] = set()

    def rounded(self, size: int) -> int:
        """``size`` in whole granules, in bytes."""
        return -(-size // self.granule) * self.granule

    def entities(self, ordinal: int) -> Iterator[Entity]:
        """All that is there on a device."""
        for table in (self.allocations, self.aliases):
            for (device, _), entity in table.items():
                if device == ordinal:
                    yield entity

    def stale(self, ordinal: int) -> list[Entity]:
        """What is deferred on a device, the longest deferred first."""
        found = [entity for entity in self.entities(ordinal) if entity.state is State.STALE]
        return sorted(found, key=lambda entity: entity.since)

    def reclaimable(self, ordinal: int) -> list[Allocation]:
        """The deferred allocations that reclaim may take, the longest deferred first (ALLOC-71)."""
        return [
            entity
            for entity in self.stale(ordinal)
            if isinstance(entity, Allocation) and entity.space not in self.exempt and not entity.damaged
        ]

    def overlapping(self, ordinal: int, extent: Range) -> list[Entity]:
        """What has an address in common with ``extent``."""
        return [e for e in self.entities(ordinal) if e.extent.address < extent.end and extent.address < e.extent.end]

    def touching(self, ordinal: int, extent: Range) -> bool:
        """Whether something begins just where ``extent`` ends, or the other way round."""
        return any(extent.end == e.extent.address or extent.address == e.extent.end for e in self.entities(ordinal))

    def allocation(self, ordinal: int, address: Range) -> Allocation | None:
        """The allocation that its owner knows by exactly this range."""
        found = self.allocations.get((ordinal, address.address))
        return found if found is not None and found.range == address else None

    def add(self, entity: Entity) -> None:
        """Enter a new entity."""
        key = entity.ordinal, entity.extent.address
        if isinstance(entity, Allocation):
            self.allocations[key] = entity
        elif isinstance(entity, Alias):
            self.aliases[key] = entity

    def remove(self, entity: Entity) -> None:
        """``entity`` is gone."""
        entity.state = State.GONE
        if entity.mapping is not None:
            self.over.add(entity.mapping)
        key = entity.ordinal, entity.extent.address
        if isinstance(entity, Allocation) and self.allocations.get(key) is entity:
            del self.allocations[key]
        elif isinstance(entity, Alias):
            if self.aliases.get(key) is entity:
                del self.aliases[key]
            if entity.source.alias is entity:
                entity.source.alias = None

    # -- trying things out

    def save(self) -> tuple[Any, ...]:
        """All that a call may change; see `restore`."""
        there = (*self.allocations.values(), *self.aliases.values())
        held = [(entity, *(getattr(entity, name) for name in _slots(entity))) for entity in there]
        return dict(self.allocations), dict(self.aliases), dict(self.of_mapping), set(self.over), held

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Everything as it was when it was saved."""
        allocations, aliases, of_mapping, over, held = saved
        self.over = set(over)
        self.allocations, self.aliases, self.of_mapping = dict(allocations), dict(aliases), dict(of_mapping)
        for entity, *values in held:
            for name, value in zip(_slots(entity), values, strict=True):
                setattr(entity, name, value)


def _slots(entity: Entity) -> tuple[str, ...]:
    return (*Entity.__slots__, *type(entity).__slots__)
