"""Programs for the contract ``allocator``: blocks that come, are used, grow and go, on several streams.

Every operation means something under every configuration: streams, memory spaces and blocks are taken
modulo what there is, so a program stays a program when operations are removed. An operation on a block
does nothing while there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from vmm_conformance.contracts import Status, capability
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program

CONTRACT: Final = "allocator"

PARTS: Final = ("shrink", "trim", "backup", "discard", "late_peers", "statistics", "captures", "holds")
"""The optional parts of the contract that programs may make use of. `backup` and `discard` are ways to pause; ``holds``
is no part of a subject, but something that its caller does."""


@dataclass(frozen=True, slots=True)
class SpacePlan:
    """One memory space of every device: its number, and its alignment in bytes."""

    number: int
    alignment: int = 256


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program runs under. Granularities, alignments and capacity (per device) in bytes.

    ``streams`` is per device; there is one allocator per device. ``peers``: devices reach each other's
    memory. ``eager``: queued work runs at once. ``unmap_spans``, ``access_spans`` and ``partial_map``
    are the driver's capabilities. ``parts`` are those of `PARTS` whose operations were drawn. ``rounds``: the program
    is run so many times in one life of the allocators, and after each time the caller frees all that it has.
    """

    devices: int = 1
    streams: int = 2
    minimum: int = 4096
    recommended: int = 4096
    capacity: int = 1 << 20
    spaces: tuple[SpacePlan, ...] = (SpacePlan(0), SpacePlan(1, 1024), SpacePlan(5, 16384))
    peers: bool = True
    eager: bool = False
    unmap_spans: bool = True
    access_spans: bool = True
    partial_map: bool = True
    parts: tuple[str, ...] = ()
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate ``size`` bytes in the ``space``-th memory space that the subject serves.

    ``stream`` counts the streams of all devices and so chooses the device. Tokens are written to the
    block's start and end by work queued on that stream. An allocator that is closed, or not open yet,
    is opened first.
    """

    size: int
    stream: int = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Read the block's tokens back in queued work, and free it in that work's order.

    ``stream`` counts the streams of the block's device, here and below. Where the program has not
    ordered that stream behind the block's last use, the stream of the last use takes its place: the
    caller's duty, which is not what is tested.
    """

    block: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Grow:
    """Grow a block to ``size`` bytes, read back what it held, and write a token to its new end.

    A size that is no growth is added to the block's own. Not done on a subject without ``grow``.
    """

    block: int
    size: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Shrink:
    """Shrink a block to ``size`` bytes, modulo its own, and read back what is left of what it held."""

    block: int
    size: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Trim:
    """Let a device's allocator give back what it holds for no live block."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause a device's allocator with whatever is live and queued; with ``backup`` contents must come back.

    While it is paused blocks are not used, and what needs their memory resumes it first. A way of pausing
    that the subject does not declare is replaced by the one that it does.
    """

    device: int = 0
    backup: bool = True


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume a device's allocator, paused or not, and read back what was backed up."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class EnablePeer:
    """Let the ``peer``-th other device use the blocks of a device's allocator."""

    device: int = 0
    peer: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Ask a device's allocator for its numbers."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """Capture what is submitted to ``stream`` (of all devices) from now on; an earlier capture is dropped first.

    Reads of blocks are captured there, and no writes. Blocks that were live before stay the caller's to keep: what
    captured work reads of them is freed, grown and shrunk only while the capture is under way, or when it is dropped.
    """

    stream: int = 0


@dataclass(frozen=True, slots=True)
class EndCapture:
    """End the capture on a device."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """Launch what was captured on a device, on its stream, behind all that the device's streams were given."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class DropCapture:
    """What was captured on a device will not be launched again; launches may still be queued."""

    device: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """Queue work on ``stream`` (of all devices) that does not end before the caller's next wait, pause or close.

    So does a collective whose peer the caller has yet to start. Not done where the subject declares that its caller
    waits for work, and on drivers that would really hang.
    """

    stream: int = 0


@dataclass(frozen=True, slots=True)
class Use:
    """Queue work that reads the block's tokens and writes new ones to its start and end."""

    block: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Queue work that reads the block's tokens."""

    block: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """Let stream ``then`` wait for all that stream ``first`` has been given (streams of all devices)."""

    first: int
    then: int


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The host waits for a stream (of all devices)."""

    stream: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Let a stream (of all devices) run ``count`` items of its queue."""

    stream: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Fail:
    """Let the ``k``-th driver call of ``kind`` that the subject makes from now on fail with ``status``.

    An allocation, deallocation or growth that this makes fail is asked for once more at once.
    """

    kind: str
    k: int = 1
    status: int = Status.OUT_OF_MEMORY.value


@dataclass(frozen=True, slots=True)
class Close:
    """Close a device's allocator with whatever is live and queued, and once more.

    A first close that an injected failure stopped is repeated, with the remaining injections forgotten.
    """

    device: int = 0


Optional = Shrink | Trim | Pause | Resume | EnablePeer | Statistics | Capture | EndCapture | Replay | DropCapture | Hold
Operation = Allocate | Deallocate | Grow | Use | Check | Order | Synchronize | Progress | Fail | Close | Optional
OPERATIONS: Final[tuple[type, ...]] = (
    Allocate, Deallocate, Grow, Use, Check, Order, Synchronize, Progress, Fail, Close,
    Shrink, Trim, Pause, Resume, EnablePeer, Statistics, Capture, EndCapture, Replay, DropCapture, Hold,
)  # fmt: skip

ON_BLOCK: Final = frozenset({Deallocate, Grow, Shrink, Use, Check})
"""The operations that need a live block."""

WHILE_HELD: Final = frozenset(
    {Allocate, Deallocate, Grow, Shrink, Trim, Statistics, EnablePeer, Use, Check, Order, Fail, Hold}
)
"""The operations that a caller can do while it holds work back; any other ends the hold first."""

FAILING: Final = (
    *("create", "map", "set_access", "reserve", "event_record", "event_create", "unmap", "release"),
    *("address_free", "event_query", "event_destroy", "event_synchronize", "alloc", "copy", "create", "map"),
)
"""Kinds of driver call that are made to fail: those that every VMM allocator needs come first, or twice."""

STATUSES: Final = (Status.OUT_OF_MEMORY, Status.UNKNOWN, Status.OUT_OF_MEMORY, Status.INVALID_VALUE)
"""What they fail with."""

WEIGHTS: Final[tuple[tuple[type, int], ...]] = (
    (Deallocate, 5), (Grow, 4), (Use, 4), (Fail, 3), (Order, 3), (Synchronize, 2), (Check, 2), (Progress, 2),
    (Close, 1),
)  # fmt: skip
"""How often each kind is drawn, `Allocate` aside: that comes once for every other operation or so."""

PART_WEIGHTS: Final[Mapping[str, tuple[tuple[type, int], ...]]] = {
    "shrink": ((Shrink, 4),),
    "trim": ((Trim, 3),),
    "backup": ((Pause, 3), (Resume, 1)),
    "discard": ((Pause, 3), (Resume, 1)),
    "late_peers": ((EnablePeer, 2),),
    "statistics": ((Statistics, 2),),
    "captures": ((Capture, 3), (EndCapture, 2), (Replay, 3), (DropCapture, 1)),
    "holds": ((Hold, 3),),
}
"""The operations of each optional part, drawn where the configuration names it."""

WHILE_PAUSED: Final = (Resume, Resume, Resume, Deallocate, Allocate, Pause, Close, Trim, Statistics)
"""What may come next behind a pause."""

_OPTIONAL: Final = frozenset(kind for weights in PART_WEIGHTS.values() for kind, _ in weights)

LENGTHS: Final = (25, 37)
"""Fewest and most operations of a drawn program whose bytes do not run out."""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for; ``pins`` fixes fields of its configuration.

    About 200 bytes make 30 operations. The kinds of operation are a swarm subset, drawn per program.
    """
    choices = Choices(data)
    configuration = replace(_configuration(choices), **(pins or {}))
    draw = _Draw(choices, configuration)
    shortest, longest = LENGTHS
    length = shortest + choices.below(longest - shortest + 1)
    operations: list[Operation] = []
    while len(operations) < length and not choices.exhausted:
        operations.append(draw.operation(operations[-1] if operations else None))
    return Program(CONTRACT, configuration, tuple(operations))


def declared(pins: Mapping[str, Any], subject: object) -> Mapping[str, Any]:
    """``pins`` without the parts that ``subject`` does not declare: their operations are then not drawn."""
    ways: Any = capability(subject, "pause")
    has = {part: part in ways if part in ("backup", "discard") else capability(subject, part) for part in PARTS[:-1]}
    has["holds"] = True
    return {**pins, "parts": tuple(part for part in pins["parts"] if has[part])} if "parts" in pins else pins


def _configuration(choices: Choices) -> Configuration:
    shape, switches = choices.byte(), choices.byte()
    minimum = 4096
    recommended = minimum << (0, 0, 2, 4)[shape & 3]
    return Configuration(
        devices=1 if shape & 12 else 2,
        streams=(2, 1, 2, 3)[shape >> 4 & 3],
        minimum=minimum,
        recommended=recommended,
        capacity=recommended * (12, 24, 48, 192)[shape >> 6],
        spaces=(SpacePlan(0), SpacePlan(1, 1024), SpacePlan(5, 4 * recommended)),
        peers=switches & 3 != 3,
        eager=switches & 12 == 12,
        unmap_spans=switches & 16 == 0,
        access_spans=switches & 32 == 0,
        partial_map=switches & 64 == 0,
    )


class _Draw:
    """Draws operations under one configuration."""

    def __init__(self, choices: Choices, configuration: Configuration) -> None:
        self._choices = choices
        self._devices = configuration.devices
        self._streams = configuration.streams * configuration.devices
        self._sizes = _sizes(configuration)
        self._live = 0
        self._parts = configuration.parts
        left_out = {*((Order,) if self._streams < 2 else ()), *((Fail,) if configuration.rounds > 1 else ())}
        weights = tuple(entry for entry in WEIGHTS if entry[0] not in left_out)
        optional = dict(entry for part in self._parts for entry in PART_WEIGHTS[part])
        kept = choices.subset((*weights, *optional.items()), keep=176)
        wheel = [kind for kind, weight in kept for _ in range(weight)]
        self._wheel = [*wheel, *[Allocate] * max(3, len(wheel) // 2)]
        self._next = self._behind(optional)
        self._makers: dict[type, Callable[[], Operation]] = {
            Allocate: self._allocate,
            Deallocate: lambda: Deallocate(choices.byte() & 7, self._stream()),
            Grow: lambda: Grow(choices.byte() & 7, self._size(), self._stream()),
            Shrink: lambda: Shrink(choices.byte() & 7, self._size(), self._stream()),
            Trim: lambda: Trim(choices.below(configuration.devices)),
            Pause: self._pause,
            Resume: lambda: Resume(choices.below(configuration.devices)),
            EnablePeer: lambda: EnablePeer(choices.below(configuration.devices), choices.below(2)),
            Statistics: lambda: Statistics(choices.below(configuration.devices)),
            Capture: lambda: Capture(self._stream()),
            EndCapture: lambda: EndCapture(choices.below(configuration.devices)),
            Replay: lambda: Replay(choices.below(configuration.devices)),
            DropCapture: lambda: DropCapture(choices.below(configuration.devices)),
            Hold: lambda: Hold(self._stream()),
            Use: lambda: Use(choices.byte() & 7, self._stream()),
            Check: lambda: Check(choices.byte() & 7, self._stream()),
            Order: self._order,
            Synchronize: lambda: Synchronize(self._stream()),
            Progress: lambda: Progress(self._stream(), 1 + choices.below(4)),
            Fail: self._fail,
            Close: lambda: Close(choices.below(configuration.devices)),
        }

    def _behind(self, optional: Mapping[type, int]) -> dict[type, Sequence[type]]:
        """What is drawn behind some kinds of operation: what a failure may strike, what may meet a pause or a trim."""
        behind: dict[type, Sequence[type]] = {
            Fail: (Allocate, Allocate, Grow, Deallocate, *optional),
            Pause: tuple(kind for kind in WHILE_PAUSED if kind in optional or kind not in _OPTIONAL),
        }
        if Capture in optional:
            behind[Capture] = (Allocate, Allocate, Use, Grow)
            behind[EndCapture] = (Deallocate, Deallocate, Grow, Replay, Synchronize)
        if Hold in optional:
            drawn = (kind for kind in (Shrink, Trim) if kind in optional)
            behind[Hold] = (Deallocate, Deallocate, Grow, Allocate, *drawn)
        if Trim in optional:
            behind[Deallocate] = [*self._wheel, *[Synchronize] * len(self._wheel)]
            behind[Synchronize] = [*self._wheel, *[Trim] * len(self._wheel)]
        return behind

    def operation(self, before: Operation | None) -> Operation:
        """The next operation. After a `Fail` comes what it may strike: failures are for something.

        Where no block seems to be live, an operation on one becomes an allocation.
        """
        wheel = self._next.get(type(before), self._wheel)
        kind = self._choices.pick(wheel)
        if kind in ON_BLOCK and self._live <= 0:
            kind = Allocate
        self._live = 0 if kind is Close else self._live + (kind is Allocate) - (kind is Deallocate)
        return self._makers[kind]()

    def _stream(self) -> int:
        return self._choices.below(self._streams)

    def _size(self) -> int:
        return self._choices.pick(self._sizes)

    def _allocate(self) -> Allocate:
        place = self._choices.byte()
        return Allocate(self._size(), place % self._streams, (0, 0, 1, 2)[place >> 6])

    def _pause(self) -> Pause:
        how = self._choices.byte()
        ways = [part == "backup" for part in self._parts if part in ("backup", "discard")]
        return Pause((how >> 1) % self._devices, ways[how % len(ways)])

    def _order(self) -> Order:
        first = self._stream()
        return Order(first, (first + 1 + self._choices.below(self._streams - 1)) % self._streams)

    def _fail(self) -> Fail:
        kind = self._choices.pick(FAILING)
        how = self._choices.byte()
        return Fail(kind, 1 + (0, 0, 1, 2)[how & 3], STATUSES[how >> 2 & 3].value)


def _sizes(configuration: Configuration) -> tuple[int, ...]:
    """Sizes in bytes, boundaries first; the large ones are rare, for capacity is small."""
    small, large = configuration.minimum, configuration.recommended
    boundary = (1, small - 1, small, small + 1, large - 1, large, large + 1, 2 * large, 3 * large, 8, 100)
    odd = (0, 2 * large + 1, 5 * large - 7, configuration.capacity // 3, configuration.capacity + 1)
    return (*boundary, *boundary[1:9], *boundary[3:7], *odd)
