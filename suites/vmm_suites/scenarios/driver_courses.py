"""Scenarios of the contract ``driver`` about many calls at once, several threads, and streams that stand still."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.programs.driver_operations import (
    AddressFree,
    Configuration,
    Create,
    Held,
    Hoard,
    Inspect,
    Leave,
    Map,
    Pieces,
    Read,
    Reserve,
    SetAccess,
    Share,
    Synchronize,
    Threads,
    Turnover,
    Unmap,
    Write,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario


def _scenario(name: str, note: str, exercises: tuple[int, ...], *operations: Any, **configuration: Any) -> Scenario:
    ids = tuple(f"DRIVER-{number}" for number in exercises)
    return Scenario(name, Program("driver", Configuration(**configuration), operations), ids, note)


_BRIDGE: Final = (
    Reserve(1), Reserve(1, twist="hint-free"), Create(), Create(), Map(), SetAccess(), Map(reservation=1, handle=1),
    SetAccess(mapping=1),
)  # fmt: skip
"""A mapping at the end of one reservation, and one at the start of the next."""

COURSES: Final[tuple[Scenario, ...]] = (
    _scenario(
        "large-pages", "a device with pages of two sizes recommends the larger one",
        (3, 6), Inspect(), recommended=65536,
    ),
    _scenario(
        "ten-thousand-reservations", "one large range is reserved and freed ten thousand times",
        (18,), Turnover(10_000), Reserve(2), AddressFree(),
    ),
    _scenario(
        "pieces", "a range of six handles and a range of one show the same bytes",
        (47, 62), Pieces(2), Pieces(6),
    ),
    _scenario(
        "many-handles", "descriptors are counted while there are many handles, and behind them",
        (73,), Hoard(48),
    ),
    _scenario(
        "no-bridge", "a driver that copies inside one reservation says so, and refuses to leave it",
        (63,), *_BRIDGE, Write(twist="across", size=16), Read(twist="across"), Read(where="last"),
    ),
    _scenario(
        "bridge", "a driver that copies from reservation to reservation says so, and does",
        (63,), *_BRIDGE, Write(twist="across", size=16), Read(twist="across", size=16),
        Write(twist="across", size=9, stream=0), Synchronize(0), Read(twist="across", size=9),
        copy_across=True,
    ),
    _scenario(
        "held", "memory is made, mapped, unmapped and released while a stream stands still",
        (76,), Held(), Reserve(1), Create(), Map(), SetAccess(), Write(stream=0), Held(), Synchronize(0), Read(),
        Unmap(),
    ),
    _scenario(
        "held-where-work-runs-at-once", "the same where streams run ahead as far as they can",
        (76,), Held(), Reserve(1), Create(), Map(), SetAccess(), Write(stream=0), Held(), Read(), eager=True,
    ),
    _scenario(
        "held-where-unmap-waits", "unmap may wait for streams where it is declared to, and nothing else may",
        (76,), Held(), unmap_waits=True,
    ),
    _scenario(
        "threads", "four threads with ranges of their own, and four in one range",
        (77,), Threads(4, 6), Threads(4, 6, shared=True), Reserve(1), Create(), Map(),
    ),
    _scenario(
        "threads-on-devices", "the same on two devices",
        (77,), Threads(4, 3), Threads(2, 3, shared=True), devices=2,
    ),
    # -- what handles tell, and memory that is shared
    _scenario(
        "what-handles-tell", "granularities by number, properties, and no legacy handle for mapped memory",
        (5, 23, 65), Share(), Share(1), devices=2,
    ),
    _scenario(
        "export", "memory goes out as what it was created for, as often as is asked for",
        (66, 69), Share(twist="export"), Share(1, twist="export"), devices=2,
    ),
    _scenario(
        "import", "an imported handle is the same memory, and tells the same of itself",
        (67, 70), Share(twist="import"), Share(1, twist="import"), devices=2,
    ),
    _scenario(
        "shared-with-others", "a child process and a child of it see what was written, and are seen",
        (67,), Share(twist="child"), Share(twist="grandchild"),
    ),
    _scenario(
        "outlives", "descriptor, exporter and handles go one after the other, and the bytes stay until the last",
        (68,), Share(twist="outlive"), Share(1, twist="outlive"), devices=2,
    ),
    _scenario(
        "left-behind", "a process ends with memory mapped, and the next one finds as much free as it did",
        (81,), Leave(), Leave(1), devices=2,
    ),
    _scenario(
        "old-codes", "a driver that refuses with the codes of another year says so",
        (10, 21, 22), Reserve(1, twist="empty"), Reserve(1, twist="odd-alignment"), Create(1, twist="bad-device"),
        Create(1, twist="over-free"),
        old_codes=True,
    ),
)  # fmt: skip
