"""What a history of the contract ``reservation`` tells: calls on the subject, and who owns what by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay
from vmm_conformance.history.state import Mapping, Memory
from vmm_conformance.history.state import Reservation as Addresses

MAPPING: Final = frozenset({"map_to", "map_one"})
"""The calls that map something where nothing is mapped."""

RANGED: Final = frozenset({"map", "unmap", "set_access", "address_free"})
"""The driver calls that concern an address range."""

View = tuple[bool | None, Range | None]
"""Whether a mapping is null, and where it lies if it is not."""
NOT_SEEN: Final[View] = (None, None)
"""Nobody could tell."""

NULL: Final = 0
FOREIGN: Final = -1


class Slice(NamedTuple):
    """One descriptor. ``memory`` is an allocation's number, `NULL` or `FOREIGN`."""

    offset: int
    skip: int
    size: int
    memory: int
    required: bool = True

    @property
    def end(self) -> int:
        """The first offset behind it."""
        return self.offset + self.size


class Allocation:
    """Memory that the subject has handed out; ``held`` until it was released.

    ``number`` is its identity, and ``memory`` what the driver's record has under it, if that can be seen.
    """

    __slots__ = ("held", "id", "memory", "number", "size")

    def __init__(self, identity: int, address: Range, memory: Memory | None) -> None:
        self.id = identity
        self.number, self.size = address
        self.memory = memory
        self.held = True


class Piece(NamedTuple):
    """``size`` bytes of ``allocation`` from ``skip``, shown at ``offset`` of a reservation."""

    offset: int
    skip: int
    size: int
    allocation: Allocation

    @property
    def end(self) -> int:
        """The first offset behind it."""
        return self.offset + self.size


class Reserved:
    """A reservation. ``used`` once something was mapped in it.

    ``failed``: places of remaps that have failed, where nothing was asked to be mapped since.
    """

    __slots__ = ("base", "device", "failed", "id", "open", "size", "used")

    def __init__(self, identity: int, device: int, address: Range) -> None:
        self.id = identity
        self.device = device
        self.base, self.size = address
        self.open = True
        self.used = False
        self.failed: list[Range] = []

    @property
    def range(self) -> Range:
        """All of it."""
        return Range(self.base, self.size)

    def at(self, offset: int, size: int) -> Range:
        """A place in it, as addresses."""
        return Range(self.base + offset, size)

    def __str__(self) -> str:
        return f"reservation {self.id} ({self.base:#x}+{self.size})"


class Owned(NamedTuple):
    """What a mapping that is not null owns: ``size`` bytes from ``offset``, shown piece by piece."""

    reserved: Reserved
    offset: int
    size: int
    pieces: tuple[Piece, ...]

    @property
    def range(self) -> Range:
        """Where it lies."""
        return self.reserved.at(self.offset, self.size)


class Wrong(NamedTuple):
    """A rule that a request breaks for what it says, and the code that must say so."""

    invariant: str
    code: str
    why: str


class Step:
    """One driver call of the subject. ``touched`` was mapped in its range before, ``made`` is what it mapped."""

    __slots__ = ("event", "made", "touched")

    def __init__(self, event: Event, touched: Sequence[Mapping]) -> None:
        self.event = event
        self.touched = touched
        self.made: Mapping | None = None

    @property
    def injected(self) -> bool:
        """Whether it was made to fail."""
        return bool(self.event.result == "injected")

    @property
    def refused(self) -> bool:
        """Whether the driver itself has refused it."""
        return self.event.status != 0 and not self.injected

    @property
    def range(self) -> Range:
        """The range of one of the `RANGED` calls."""
        return Range(self.event.args[0], self.event.args[1])


class Call:
    """One call on the subject, from its ``call`` note to its ``return`` note.

    ``reserved`` is the reservation it is about, ``owned`` what its mapping owned before it, None if that
    was null; ``other`` the same of the mapping that is assigned. ``excused`` is what was excused then.
    ``wrong`` and ``unserved`` say what stands against it, see `reservation_requests`.
    """

    def __init__(self, about: dict[str, Any], ledger: Ledger) -> None:
        self.name: str = about["name"]
        self.about = about
        self.slices = tuple(Slice(*one) for one in about.get("slices", ()))
        self.owned = ledger.owners.get(about.get("mapping", about.get("target", 0)))
        self.other = ledger.owners.get(about.get("source", 0))
        reserved = ledger.reserved.get(about.get("reservation", 0))
        self.reserved = self.owned.reserved if reserved is None and self.owned else reserved
        self.wrong: Sequence[Wrong] = ()
        self.unserved = ""
        self.steps: list[Step] = []
        self.excused = frozenset(ledger.excused)
        self.status = self.code = self.message = ""
        self.address: Range | None = None
        self.views: dict[int, View] = {}
        self._text = ""

    @property
    def good(self) -> bool:
        """Whether the subject did what it was asked to."""
        return self.status == "ok"

    @property
    def sound(self) -> bool:
        """Whether nothing stands against the request itself."""
        return not self.wrong and not self.unserved

    @property
    def struck(self) -> bool:
        """Whether a failure was injected into it."""
        return any(step.injected for step in self.steps)

    @property
    def cause(self) -> Step | None:
        """The first driver call in it that failed. To give memory back is none: that is never what a call is for."""
        return next((step for step in self.steps if step.event.status and step.event.kind != "release"), None)

    def before(self, cause: Step | None) -> list[Step]:
        """The driver calls before ``cause``; all if there is none."""
        return self.steps if cause is None else self.steps[: self.steps.index(cause)]

    def behind(self, cause: Step) -> list[Step]:
        """The driver calls after ``cause``."""
        return self.steps[self.steps.index(cause) + 1 :]

    def of(self, kind: str, steps: Iterable[Step] | None = None) -> Iterator[Step]:
        """The driver calls of one kind."""
        return (step for step in (self.steps if steps is None else steps) if step.event.kind == kind)

    @property
    def place(self) -> Range:
        """The place that its slices make up, as offset and size."""
        first = self.slices[0].offset
        return Range(first, self.slices[-1].end - first)

    def lies(self, one: Slice) -> bool:
        """Whether a slice that stays names other memory than it shows."""
        if one.required or self.owned is None:
            return False
        return any(
            (one.memory, one.skip) != (piece.allocation.id, piece.skip + one.offset - piece.offset)
            for piece in self.owned.pieces
            if piece.offset <= one.offset < piece.end
        )

    @property
    def answer(self) -> str:
        """What came back, for a message."""
        return ": ".join(text for text in (self.status, self.code, self.message) if text)

    def is_null(self, mapping: str) -> bool | None:
        """Whether the mapping called so was null by the end; None if nobody could tell."""
        return self.views.get(self.about[mapping], NOT_SEEN)[0]

    def __str__(self) -> str:
        if not self._text:  # asked for at every turn
            about = {k: v for k, v in self.about.items() if k not in ("name", "slices", "made")}
            slices = f", {len(self.slices)} slices" if "slices" in self.about else ""
            self._text = f"{self.name}({', '.join(f'{k} {v}' for k, v in about.items())}{slices})"
        return self._text


class Ledger:
    """Allocations and reservations by number, and what each mapping owns; one that is null is not there.

    ``excused``: what an injected failure has kept the subject from giving back.
    """

    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self.traced: bool = header["traced"]
        self.minimum, self.recommended = header["granularity"]
        self.reach: dict[int, tuple[int, ...]] = header["reach"]
        self.takes = header["takes"]
        self.allocations: dict[int, Allocation] = {}
        self.reserved: dict[int, Reserved] = {}
        self.owners: dict[int, Owned] = {}
        self.excused: set[Mapping | Memory | Addresses] = set()
        self.call: Call | None = None

    def live(self, reserved: Reserved) -> list[Owned]:
        """What the mappings into a reservation own."""
        return [owned for owned in self.owners.values() if owned.reserved is reserved]

    def owner_at(self, address: int) -> tuple[int, Owned] | None:
        """The mapping that ``address`` lies in; the last one, should a subject have mapped over another."""
        for number, owned in reversed(self.owners.items()):
            offset = address - owned.reserved.base - owned.offset
            if 0 <= offset < owned.size:
                return number, owned
        return None


class Family:
    """One family of checks. It is told of what concerns the layer, and judges what it likes."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        self.state = replay.state
        self.ledger = ledger
        self.judge = judge

    def step(self, step: Step, call: Call) -> None:
        """The subject made a driver call."""

    def caller(self, event: Event) -> None:
        """The caller submitted work, or asked for rights."""

    def ran(self, event: Event) -> None:
        """Queued work ran, or faulted."""

    def returned(self, call: Call, event: Event) -> None:
        """The call has returned; the ledger shows what came of it, the call what was before."""

    def done(self, event: Event) -> None:
        """Everything has been given up."""

    def left(self, mappings: Iterable[Mapping | None]) -> list[Mapping]:
        """Those that are still mapped without an excuse."""
        return [m for m in mappings if m is not None and m.ended < 0 and m not in self.ledger.excused]
