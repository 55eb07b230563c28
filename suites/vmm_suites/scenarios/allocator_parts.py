"""Scenarios of the optional parts of the contract ``allocator``; what a subject does not declare is left out."""

from __future__ import annotations

from typing import Final

from vmm_conformance.programs.allocator import (
    Allocate,
    Check,
    Close,
    Configuration,
    Deallocate,
    EnablePeer,
    Fail,
    Grow,
    Hold,
    Operation,
    Order,
    Pause,
    Resume,
    Shrink,
    Statistics,
    Synchronize,
    Trim,
    Use,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario

G: Final = 4096
PLAIN: Final = Configuration(streams=1)
STREAMS: Final = Configuration(streams=2)
STRICT: Final = Configuration(streams=1, unmap_spans=False, access_spans=False, partial_map=False)
SMALL: Final = Configuration(streams=2, capacity=8 * G)
PAIR: Final = Configuration(devices=2, streams=1)
APART: Final = Configuration(devices=2, streams=1, peers=False)


def _scenario(
    name: str, configuration: Configuration, operations: tuple[Operation, ...], numbers: tuple[int, ...], note: str
) -> Scenario:
    program = Program("allocator", configuration, operations)
    return Scenario(f"allocator-{name}", program, tuple(f"ALLOCATOR-{number}" for number in numbers), note)


def _pause_fails(kind: str) -> Scenario:
    operations = (
        *(Allocate(G), Grow(0, 2 * G), Allocate(G), Synchronize(), Trim(), Fail(kind), Pause(), Resume()),
        *(Use(0), Use(1), Check(0), Check(1), Close()),
    )
    note = f"{kind} fails while the allocator pauses or resumes; afterwards everything works"
    numbers = (4, 8, 14) if kind == "release" else (4, 7, 8, 14)  # what is not released is released later
    return _scenario(f"pause-{kind.replace('_', '-')}-fails", PLAIN, operations, numbers, note)


PARTS: Final = (
    _scenario(
        "held-back", STREAMS,
        (
            *(Allocate(G), Allocate(G), Allocate(G), Synchronize(0), Use(0), Hold(0), Deallocate(0), Grow(0, 2 * G)),
            *(Allocate(G, 1), Allocate(3 * G), Shrink(0, G), Trim(), Use(0), Check(0), Synchronize(0), Close()),
        ), (4, 5, 21),
        "work is held back on a stream while blocks are freed, grown, shrunk and allocated, and trimmed",
    ),
    _scenario(
        "shrink-queued-tail", STREAMS,
        (
            *(Allocate(G), Grow(0, 3 * G), Use(0), Order(0, 1), Use(0, 1), Shrink(0, G, 1), Synchronize(0)),
            *(Allocate(3 * G), Use(0, 1), Check(0, 1), Close()),
        ), (4, 5, 8, 11),
        "a block that has grown shrinks with work on its tail queued; only another stream is over",
    ),
    _scenario(
        "shrink-and-grow", STRICT,
        (
            *(Allocate(1), Grow(0, G + 1), Grow(0, 4 * G), Shrink(0, G + 1), Shrink(0, 1), Grow(0, 2 * G), Use(0)),
            *(Check(0), Synchronize(), Trim(), Check(0), Deallocate(0), Close()),
        ), (4, 6, 8, 11),
        "a block grows and shrinks by odd sizes, on a driver that takes one mapping at a time",
    ),
    _scenario(
        "trim-beside-live", STREAMS,
        (
            *(Allocate(G), Allocate(2 * G), Allocate(G, 1), Deallocate(1), Trim(), Deallocate(1, 1), Synchronize(0)),
            *(Synchronize(1), Trim(), Use(0), Check(0), Allocate(2 * G), Deallocate(1), Deallocate(0)),
            *(Synchronize(0), Trim(), Trim(), Close()),
        ), (4, 5, 8, 12),
        "freed blocks of two streams are trimmed, before and after their work is over; a live one stays",
    ),
    _scenario(
        "pause-with-backup", STREAMS,
        (Allocate(G), Grow(0, 3 * G), Allocate(100, 1), Use(0), Pause(), Resume(), Check(0), Check(1), Close()),
        (4, 5, 8, 13, 14),
        "a pause meets queued work; everything is there again after it, also behind a block of two pieces",
    ),
    _scenario(
        "pause-without-backup", PLAIN,
        (Allocate(G), Use(0), Pause(0, False), Resume(), Use(0), Check(0), Close()), (4, 13, 14),
        "memory that comes back without a backup is written again before it is read",
    ),
    _scenario(
        "pause-twice", PLAIN,
        (Allocate(G), Resume(), Pause(), Pause(0, False), Resume(), Resume(), Check(0), Close()), (4, 13, 14, 15),
        "a second pause does not undo the backup of the first; resumes beside it do nothing",
    ),
    _scenario(
        "free-while-paused", PLAIN,
        (
            *(Allocate(G), Allocate(G), Pause(), Deallocate(0), Statistics(), Trim(), Resume(), Check(0)),
            *(Allocate(G), Pause(), Close()),
        ), (4, 8, 13, 14),
        "a block is freed while its allocator is paused, the other comes back; then a paused allocator is closed",
    ),
    *(_pause_fails(kind) for kind in ("unmap", "release", "create", "map", "set_access")),
    _scenario(
        "pause-keeps-peers", PAIR,
        (Allocate(G), EnablePeer(), Grow(0, 2 * G), Pause(), Resume(), Check(0), Shrink(0, 1), Close()), (6, 14, 16),
        "a peer that was enabled can use a block after it has grown, after a pause, and after it has shrunk",
    ),
    _scenario(
        "late-peer", PAIR,
        (
            *(Allocate(G), Allocate(2 * G), EnablePeer(), Allocate(G), Deallocate(0), Allocate(G), Use(0), Check(1)),
            *(EnablePeer(), Pause(0, False), EnablePeer(), Resume(), Close()),
        ), (2, 8, 16),
        "a peer is enabled between allocations, and again, and while the allocator is paused",
    ),
    _scenario(
        "late-peer-fails", PAIR,
        (Allocate(G), Allocate(G), Fail("set_access", 2), EnablePeer(), Use(0), Allocate(G), Check(0), Close()),
        (7, 16),
        "granting rights to a late peer fails at the second block, and then succeeds",
    ),
    _scenario(
        "pause-undo-fails", SMALL,
        (
            *(Allocate(G), Allocate(G), Fail("unmap", 2), Fail("map"), Pause(0, False), Use(0), Check(1), Close()),
        ), (7, 8),
        "the second block cannot be unmapped to pause, nor the first one mapped again: the first error is reported",
    ),
    _scenario(
        "impossible-peer", APART, (Allocate(G), EnablePeer(), Use(0), Allocate(G), Check(0), Close()), (4, 16),
        "a device that cannot reach the memory is refused, and no rights are asked for it",
    ),
    _scenario(
        "statistics", SMALL,
        (
            *(Statistics(), Allocate(100), Allocate(G + 1), Statistics(), Deallocate(0), Statistics(), Grow(0, 3 * G)),
            *(Statistics(), Pause(), Statistics(), Resume(), Synchronize(0), Trim(), Statistics(), Close()),
        ), (8, 17),
        "the numbers before and after every kind of call",
    ),
)  # fmt: skip
