"""Scenarios of the contract ``allocator``: what random programs rarely reach.

Sizes are in granules of `G` bytes where no configuration says otherwise.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import Status
from vmm_conformance.programs.allocator import (
    Allocate,
    Check,
    Close,
    Configuration,
    Deallocate,
    Fail,
    Grow,
    Operation,
    Order,
    Progress,
    SpacePlan,
    Synchronize,
    Use,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_suites.scenarios.allocator_captures import CAPTURES
from vmm_suites.scenarios.allocator_parts import PARTS

G: Final = 4096
UNKNOWN: Final = Status.UNKNOWN.value
PLAIN: Final = Configuration(streams=1)
STRICT: Final = Configuration(streams=1, unmap_spans=False, access_spans=False, partial_map=False)
STREAMS: Final = Configuration(streams=2)
SMALL: Final = Configuration(streams=2, capacity=8 * G)
PAIR: Final = Configuration(devices=2, streams=1)
APART: Final = Configuration(devices=2, streams=1, peers=False)
COARSE: Final = Configuration(
    streams=1, recommended=16 * G, capacity=256 * G, spaces=(SpacePlan(0), SpacePlan(1, 1024), SpacePlan(5, 64 * G))
)


def _scenario(
    name: str, configuration: Configuration, operations: tuple[Operation, ...], numbers: tuple[int, ...], note: str
) -> Scenario:
    program = Program("allocator", configuration, operations)
    return Scenario(f"allocator-{name}", program, tuple(f"ALLOCATOR-{number}" for number in numbers), note)


def _failure(kind: str, k: int) -> Scenario:
    """A call of three that allocating and growing need fails; all is as before, and works after."""
    failing = Fail(kind, k)
    first = (failing,) if k == 1 else ()  # an allocation may need but one such call
    operations = (Allocate(G), *first, Allocate(3 * G), failing, Grow(0, 2 * G), Use(0), Use(1), Check(0), Check(1))
    note = f"{kind} fails at its call {k} while a block is allocated (call 1 only), and while another one grows"
    return _scenario(f"{kind.replace('_', '-')}-{k}-fails", PLAIN, (*operations, Close()), (4, 6, 7, 8), note)


def _failed_free(kind: str) -> Scenario:
    operations = (
        *(Allocate(G), Allocate(G), Fail(kind), Deallocate(0), Check(0), Synchronize()),
        *(Allocate(2 * G), Use(0), Use(1), Check(0), Check(1), Close()),
    )
    note = f"{kind} fails when a block is freed or soon after; another block lives on and a third is allocated"
    return _scenario(f"free-{kind.replace('_', '-')}-fails", PLAIN, operations, (4, 5, 8), note)


def _undo_fails(cause: str, undo: str) -> Scenario:
    """the undo fails too; the first error is the one to report, and allocations go on."""
    operations = (Allocate(G), Fail(undo, 1, UNKNOWN), Fail(cause, 1), Allocate(2 * G), Use(0), Use(1), Check(0))
    note = f"{cause} fails, and {undo} fails while that is undone: the first error is reported, and work goes on"
    name = f"undo-{undo.replace('_', '-')}-after-{cause.replace('_', '-')}"
    return _scenario(name, PLAIN, (*operations, Close()), (4, 7, 8), note)


FAILURES: Final = (
    _scenario(
        "create-3-fails", PLAIN,
        (Fail("create", 3), Allocate(3 * G), Allocate(G), Allocate(G), Use(0), Check(0), Close()), (4, 7, 8),
        "the third piece of memory is refused: that of one block, or of the third",
    ),
    *(_failure(kind, 1) for kind in ("reserve", "create", "map", "set_access")),
    *(_failure(kind, 2) for kind in ("map", "set_access")),
    *(_failed_free(kind) for kind in ("event_create", "event_record", "event_query", "unmap", "release")),
    *(_failed_free(kind) for kind in ("address_free", "event_destroy")),
    _undo_fails("map", "release"),
    _undo_fails("map", "address_free"),
    _undo_fails("set_access", "unmap"),
)  # fmt: skip

GROWTH: Final = (
    _scenario(
        "grow-to-odd-size", PLAIN,
        (Allocate(1), Grow(0, G + 1), Grow(0, 0), Use(0), Check(0), Close()), (2, 4, 6, 8),
        "one byte grows to a granule and one byte, then to the size it has, and is closed on",
    ),
    _scenario(
        "grow-between-neighbours", STRICT,
        (
            *(Allocate(G), Allocate(G), Allocate(G), Grow(1, 2 * G), Grow(1, 5 * G), Use(1), Check(0), Check(2)),
            *(Deallocate(1), Synchronize(), Check(0), Check(1), Close()),
        ), (1, 2, 4, 5, 6, 8),
        "a block between two others grows twice and is freed, on a driver that takes one mapping at a time",
    ),
    _scenario(
        "grow-last-of-memory", SMALL,
        (Allocate(3 * G), Grow(0, 4 * G), Use(0), Check(0), Deallocate(0), Allocate(8 * G), Close()), (6, 9),
        "a block grows while half of memory is free; freed, it makes room for a block of all memory",
    ),
    _scenario(
        "grow-behind-other-stream", STREAMS,
        (Allocate(G), Order(0, 1), Use(0, 1), Grow(0, 2 * G, 1), Synchronize(0), Allocate(G), Check(0, 1), Close()),
        (5, 6),
        "a block that another stream uses by now grows on that stream; the first stream is over, the other not",
    ),
    _scenario(
        "grow-keeps-peers", PAIR,
        (Allocate(G), Grow(0, 2 * G), Allocate(G, stream=1), Grow(1, 3 * G), Check(0), Check(1), Close()), (2, 3, 6),
        "a block grows on each of two devices that reach each other's memory",
    ),
    _scenario(
        "grow-without-peers", APART,
        (Allocate(G), Grow(0, 2 * G), Allocate(G, stream=1), Grow(1, 3 * G), Check(0), Check(1), Close()), (2, 3, 6, 9),
        "the same where the devices do not reach each other; no rights may be asked for",
    ),
)  # fmt: skip

STREAM_ORDER: Final = (
    _scenario(
        "free-before-work-ran", STREAMS,
        (Allocate(2 * G), Use(0), Deallocate(0), Allocate(2 * G, stream=1), Use(0, 1), Close()), (4, 5, 8),
        "a block is freed with its work still queued, and a block of its size allocated on another stream",
    ),
    _scenario(
        "free-on-last-stream", STREAMS,
        (
            *(Allocate(G), Order(0, 1), Use(0, 1), Deallocate(0, 1), Synchronize(0), Allocate(3 * G), Use(0)),
            *(Synchronize(1), Allocate(G), Close()),
        ), (4, 5, 8),
        "a block is allocated on one stream and freed on another; the first stream is over, the other is not",
    ),
    _scenario(
        "frees-on-two-streams", STREAMS,
        (
            *(Allocate(G, 0), Allocate(2 * G, 1), Deallocate(0, 0), Deallocate(0, 1), Synchronize(1)),
            *(Allocate(3 * G, 1), Use(0, 1), Progress(0, 2), Allocate(G, 1), Close()),
        ), (4, 5, 8),
        "two blocks are freed on two streams, and only the later stream is over",
    ),
    _scenario(
        "freed-memory-is-short", SMALL,
        (Allocate(8 * G), Use(0), Deallocate(0), Allocate(8 * G, stream=1), Use(0, 1), Check(0, 1), Close()), (4, 5, 9),
        "all of memory is freed with work queued, and asked for again on another stream",
    ),
    _scenario(
        "memory-really-short", SMALL,
        (Allocate(5 * G), Allocate(4 * G), Grow(0, 9 * G), Allocate(3 * G), Use(0), Use(1), Check(0), Close()),
        (4, 7, 9),
        "requests beyond capacity are refused, change nothing, and smaller ones succeed behind them",
    ),
    _scenario(
        "same-stream-again", PLAIN,
        (
            *(Allocate(G), Allocate(G), Deallocate(0), Allocate(G), Use(0), Use(1), Check(0), Check(1)),
            *(Deallocate(0), Deallocate(0), Allocate(G), Allocate(G), Use(0), Use(1), Check(0), Check(1), Close()),
        ), (1, 4, 5),
        "blocks of one size are freed and allocated on one stream, so that memory may be handed on as it is",
    ),
    _scenario(
        "close-on-queued-work", STREAMS,
        (Allocate(G), Allocate(2 * G, 1), Use(0), Use(1, 1), Order(0, 1), Use(0, 1), Deallocate(1, 1), Close()), (5, 8),
        "close meets queued work on a live block, a freed one and one that has changed its stream",
    ),
    _scenario(
        "work-that-ran-at-once", Configuration(streams=2, eager=True),
        (Allocate(G), Use(0), Deallocate(0), Allocate(G, 1), Use(0, 1), Deallocate(0, 1), Close()), (5, 8),
        "queued work runs at once, yet the allocator cannot know that it has",
    ),
)  # fmt: skip

KINDS: Final = (
    _scenario(
        "spaces", COARSE,
        (
            *(Allocate(100, space=1), Allocate(100, space=1), Allocate(100, space=2), Allocate(100, space=2)),
            *(Allocate(100), Deallocate(0), Deallocate(0), Allocate(100, space=2), Use(0), Use(1), Use(2), Close()),
        ), (1, 2, 3, 4),
        "small blocks in every memory space, one aligned to four granules; one is freed and taken elsewhere",
    ),
    _scenario(
        "boundary-sizes", COARSE,
        (
            *(Allocate(size) for size in (1, G - 1, G, G + 1, 16 * G - 1, 16 * G, 16 * G + 1)),
            *(Check(block) for block in range(7)), *(Use(block) for block in range(7)), Close(),
        ), (1, 2, 3, 4, 8),
        "sizes around both granularities, live at once",
    ),
    _scenario(
        "no-bytes", PLAIN,
        (Allocate(0), Allocate(G), Allocate(0, space=1), Allocate(0, space=2), Use(0), Check(0), Close()), (4, 10),
        "requests for no bytes, before and between others",
    ),
    _scenario(
        "two-devices", PAIR,
        (
            *(Allocate(G, 0), Allocate(G, 1), Use(0), Use(1), Deallocate(0), Allocate(2 * G, 1), Close(0)),
            *(Use(0), Check(1), Close(1), Allocate(G, 1), Use(0), Close(1)),
        ), (1, 2, 3, 4, 8),
        "an allocator on each device; one closes while the other lives on, then is opened anew",
    ),
    _scenario(
        "series", PLAIN,
        (*((Allocate(3 * G), Deallocate(0), Allocate(G), Grow(0, 2 * G), Deallocate(0), Synchronize()) * 40), Close()),
        (5, 6, 8),
        "the same allocations and growths forty times over; nothing has piled up at the end",
    ),
    _scenario(
        "closed-and-opened", STREAMS,
        (
            *(Close(), Allocate(G), Close(), Allocate(2 * G, 1), Grow(0, 3 * G), Close()),
            *(Allocate(G), Deallocate(0), Close()),
        ), (6, 8),
        "allocators that are opened and closed on one driver, one after another",
    ),
)  # fmt: skip

DECLARED: Final = (
    _scenario(
        "addresses-come-back", SMALL,
        (*((Allocate(8 * G), Deallocate(0), Synchronize()) * 20), Allocate(G), *((Grow(0, G),) * 6), Close()),
        (5, 8, 22),
        "all of memory is allocated and freed over and over, and a block grows step by step",
    ),
    _scenario(
        "grow-in-place-and-moving", STREAMS,
        (
            *(Allocate(100), Grow(0, 200), Allocate(G), Grow(0, 3 * G), Grow(1, 5 * G), Use(0), Use(1), Check(0)),
            *(Order(0, 1), Use(0, 1), Grow(0, 6 * G, 1), Allocate(G), Use(2), Check(0, 1), Check(2), Close()),
        ), (1, 4, 6, 8, 23),
        "blocks grow where they are, between others, and on another stream",
    ),
)  # fmt: skip

SERIES: Final = (
    _scenario(
        "repeated", Configuration(rounds=8),
        (
            *(Allocate(100), Allocate(G, 1), Grow(0, 3 * G), Use(0), Deallocate(1, 1), Allocate(G, 1)),
            *(Synchronize(0), Synchronize(1), Deallocate(0), Allocate(2 * G)),
        ), (8, 18),
        "the same eight times over: what is held for later does not grow",
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *FAILURES, *GROWTH, *STREAM_ORDER, *KINDS, *PARTS, *SERIES, *DECLARED, *CAPTURES,
)  # fmt: skip
