"""Programs for the contract ``driver``, and how flat bytes become one.

The operations are those of `driver_operations`. Every program opens with memory that is mapped and can
be written; about a third of what follows is one deliberate mistake each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from vmm_conformance.contracts import Access
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.driver_operations import CONTRACT, OPERATIONS, Configuration
from vmm_conformance.programs.program import Program

__all__ = ["CONTRACT", "OPERATIONS", "Configuration", "decode"]

_GRANULES: Final = (1, 2, 1, 3, 2, 4, 1, 6)
_ROOMS: Final = (4, 8, 2, 12, 16, 1, 6, 3)
_SIZES: Final = (8, 1, 16, 24, 7, 64, 13)
_COUNTS: Final = (1, 2, 1, 3, 2, 1)
_RIGHTS: Final = (Access.READ_WRITE, Access.READ_WRITE, Access.READ, Access.READ_WRITE, Access.NONE)
_WHERE: Final = get_args(ops.Where)

Make = Callable[[Choices, Any], Any]


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for. ``pins`` fixes fields of the configuration."""
    choices = Choices(data)
    configuration = replace(_configuration(choices), **(pins or {}))
    wanted = 28 + choices.below(20)
    operations = _opening(choices)
    kinds = _swarm(choices)
    mistakes = choices.pick((100, 140, 170, 120))
    while len(operations) < wanted and not choices.exhausted:
        operations.extend(_operations(choices, choices.pick(kinds), mistakes))
    return Program(CONTRACT, configuration, tuple(operations))


def _configuration(choices: Choices) -> Configuration:
    minimum = choices.pick((4096, 4096, 65536, 16384))
    return Configuration(
        devices=choices.pick((1, 2, 1, 3)),
        minimum=minimum,
        recommended=minimum << choices.pick((0, 0, 1, 4)),
        capacity=choices.pick((64, 24, 64, 10)),
        peers=not choices.chance(48),
        eager=choices.chance(80),
        unmap_spans=not choices.chance(64),
        access_spans=not choices.chance(64),
        access_part=choices.chance(64),
        partial_map=not choices.chance(64),
        map_offset=choices.chance(64),
        read_only=not choices.chance(48),
        unmap_waits=choices.chance(64),
        copy_across=choices.chance(96),
        sharing=not choices.chance(32),
        old_codes=choices.chance(32),
    )


def _opening(choices: Choices) -> list[Any]:
    """Two mappings side by side with rights, so that there is something to lose from the start."""
    first, second = choices.pick(_GRANULES), choices.pick(_GRANULES)
    return [
        ops.Reserve(first + second + choices.below(6)),
        ops.Create(first, choices.below(2)),
        ops.Create(second, choices.below(2)),
        ops.Map(handle=0),
        ops.Map(handle=1),
        ops.SetAccess(mapping=0),
        ops.SetAccess(mapping=1, devices=1 + choices.below(3)),
    ]


def _swarm(choices: Choices) -> tuple[type, ...]:
    """The kinds of operations one program draws from, each as often as its weight says."""
    optional = choices.subset(tuple(kind for kind in _TABLE if kind not in _ALWAYS))
    return tuple(kind for kind, row in _TABLE.items() if kind in _ALWAYS or kind in optional for _ in range(row[0]))


def _operations(choices: Choices, kind: type, mistakes: int) -> list[Any]:
    """One operation, among those that it needs and that would rarely be there by chance."""
    _, twists, make = _TABLE[kind]
    twist = choices.pick(twists) if twists and choices.chance(mistakes) else ops.EXACT
    prepare, follow = _PREPARATIONS.get((kind, twist)), _SEQUELS.get((kind, twist))
    before = prepare(choices) if prepare else []
    return [*before, make(choices, twist), *(follow(choices) if follow else ())]


def _two_reservations(c: Choices) -> list[Any]:
    return [ops.Reserve(c.pick(_ROOMS)), ops.Reserve(c.pick(_ROOMS), twist="hint-free")]


def _freed(c: Choices) -> list[Any]:
    return [ops.Reserve(c.pick(_ROOMS)), ops.AddressFree(c.below(4))]


def _read_only(c: Choices) -> list[Any]:
    return [ops.SetAccess(c.below(8), access=Access.READ)]


def _bridge(c: Choices) -> list[Any]:
    """The last granule of one reservation and the first of the next, both with rights."""
    ends = [ops.Reserve(1), ops.Reserve(1, twist="hint-free"), ops.Create(1), ops.Create(1)]
    for n in (-2, -1):
        ends += [ops.Map(reservation=n, handle=n), ops.SetAccess(twist="latest")]
    return ends


def _reserve(c: Choices, twist: Any) -> Any:
    return ops.Reserve(c.pick(_ROOMS), c.pick((0, 0, 1, 2, 0, 6, 9, 12)), twist)


def _create(c: Choices, twist: Any) -> Any:
    return ops.Create(c.pick(_GRANULES), c.below(3), c.pick((0, 0, 1, 5)), twist)


def _map(c: Choices, twist: Any) -> Any:
    return ops.Map(c.below(6), c.pick((0, 0, 1, 0, 2, 3, 7, 255)), c.below(8), twist)


def _set_access(c: Choices, twist: Any) -> Any:
    return ops.SetAccess(c.below(8), c.pick(_COUNTS), c.pick((1, 3, 2, 1, 7)), c.pick(_RIGHTS), twist)


def _data(kind: type) -> Make:
    def make(c: Choices, twist: Any) -> Any:
        stream = c.below(4) if c.chance(80) else None
        return kind(c.below(8), c.pick(_WHERE), c.pick(_SIZES), stream, twist)

    return make


def _copy(c: Choices, _: Any) -> Any:
    stream = c.below(4) if c.chance(80) else None
    return ops.Copy(c.below(8), c.below(8), c.pick(_WHERE), c.pick((16, 8, 64, 4096, 5000)), stream)


def _course(c: Choices) -> Any:
    """Now and then one of the courses, which take as long as many other operations."""
    return c.pick(_COURSES)(c) if c.chance(128) else None


def _twists(type_: Any) -> tuple[str, ...]:
    """The twists of ``type_`` but for `EXACT`."""
    return tuple(name for name in get_args(type_) if name not in (ops.EXACT, "latest"))


_COURSES: Final[tuple[Callable[[Choices], Any], ...]] = (
    lambda c: ops.Turnover(c.pick((600, 5, 800))),
    lambda c: ops.Pieces(c.pick((3, 2, 5)), c.below(2)),
    lambda c: ops.Hoard(c.pick((32, 16, 48))),
    lambda c: ops.Threads(c.pick((4, 2, 3)), c.pick((2, 1)), c.chance(128)),
    lambda c: ops.Held(c.below(2)),
    lambda c: ops.Share(c.below(2), c.pick(("child", "import", "grandchild", "outlive"))),
    lambda c: ops.Leave(c.below(2)) if c.chance(128) else ops.Held(c.below(2)),
)

_TABLE: Final[dict[type, tuple[int, tuple[str, ...], Make]]] = {
    ops.Reserve: (2, _twists(ops.ReserveTwist), _reserve),
    ops.Create: (3, _twists(ops.CreateTwist), _create),
    ops.Map: (6, _twists(ops.MapTwist), _map),
    ops.SetAccess: (6, _twists(ops.AccessTwist), _set_access),
    ops.Write: (2, _twists(ops.DataTwist), _data(ops.Write)),
    ops.Unmap: (5, _twists(ops.UnmapTwist), lambda c, t: ops.Unmap(c.below(8), c.pick(_COUNTS), t)),
    ops.AddressFree: (2, _twists(ops.FreeTwist), lambda c, t: ops.AddressFree(c.below(6), t)),
    ops.Release: (3, _twists(ops.ReleaseTwist), lambda c, t: ops.Release(c.below(8), t)),
    ops.Retain: (2, _twists(ops.RetainTwist), lambda c, t: ops.Retain(c.below(8), c.pick(_WHERE), t)),
    ops.GetAccess: (
        1, _twists(ops.QueryTwist), lambda c, t: ops.GetAccess(c.below(8), c.pick(_WHERE), c.below(3), t)
    ),
    ops.AddressRange: (1, (), lambda c, t: ops.AddressRange(c.below(8), c.pick(_WHERE))),
    ops.Read: (1, _twists(ops.DataTwist), _data(ops.Read)),
    ops.Copy: (1, (), _copy),
    ops.Synchronize: (1, (), lambda c, t: ops.Synchronize(c.below(4))),
    ops.Capture: (1, (), lambda c, t: ops.Capture()),
    ops.Alloc: (1, (), lambda c, t: ops.Alloc(c.pick((100, 1, 4096, 5000)), c.below(3), c.pick((0, 1, 5)))),
    ops.Free: (1, (), lambda c, t: ops.Free(c.below(4))),
    ops.Cycle: (1, (), lambda c, t: ops.Cycle(c.below(8), c.pick((3, 1, 12, 2, 9)))),
    ops.Share: (
        1, (), lambda c, t: ops.Share(c.below(2), c.pick(("facts", "export", "import", "outlive")))
    ),
    ops.Inspect: (1, (), lambda c, t: _course(c) or ops.Inspect(c.below(3), c.pick((0, 1, 5)))),
}  # fmt: skip
"""Kind to how often it is drawn, the mistakes it may make, and how one is made."""

_PREPARATIONS: Final[dict[tuple[type, str], Callable[[Choices], list[Any]]]] = {
    (ops.AddressFree, "exact"): lambda c: [ops.Reserve(c.pick(_ROOMS))] if c.chance(128) else [],
    (ops.AddressFree, "both"): _two_reservations,
    (ops.AddressFree, "stale"): _freed,
    (ops.Map, "exact"): lambda c: [ops.Unmap(c.below(8))] if c.chance(56) else [],
    (ops.Map, "across"): _two_reservations,
    (ops.Unmap, "exact"): lambda c: [ops.Write(c.below(8), stream=c.below(4))] if c.chance(64) else [],
    (ops.Write, "read-only"): _read_only,
    (ops.Write, "across"): _bridge,
    (ops.Read, "across"): _bridge,
}
"""What comes before a mistake that would otherwise find nothing to be about."""

_SEQUELS: Final[dict[tuple[type, str], Callable[[Choices], list[Any]]]] = {
    (ops.Map, "exact"): lambda c: [ops.SetAccess(twist="latest")] if c.chance(128) else [],
}
"""What comes after an operation, so that it shows what it did."""

_ALWAYS: Final = frozenset({ops.Reserve, ops.Create, ops.Map, ops.SetAccess, ops.Write})
