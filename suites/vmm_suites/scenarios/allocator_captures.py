"""Scenarios of captures, for subjects of the contract ``allocator`` that are told of them."""

from __future__ import annotations

from typing import Final

from vmm_conformance.programs.allocator import (
    Allocate,
    Capture,
    Check,
    Close,
    Configuration,
    Deallocate,
    DropCapture,
    EndCapture,
    Fail,
    Grow,
    Operation,
    Replay,
    Shrink,
    Statistics,
    Synchronize,
    Trim,
    Use,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario

G: Final = 4096
STREAMS: Final = Configuration(streams=2)
SMALL: Final = Configuration(streams=2, capacity=8 * G)


def _scenario(
    name: str, configuration: Configuration, operations: tuple[Operation, ...], numbers: tuple[int, ...], note: str
) -> Scenario:
    program = Program("allocator", configuration, operations)
    return Scenario(f"allocator-{name}", program, tuple(f"ALLOCATOR-{number}" for number in numbers), note)


CAPTURES: Final = (
    _scenario(
        "capture-frees-nothing", STREAMS,
        (
            *(Allocate(G, 1), Allocate(2 * G, 1), Deallocate(0, 1), Synchronize(1), Capture(0), Allocate(G), Use(1)),
            *(Trim(), Allocate(3 * G, 1), Deallocate(2, 1), Synchronize(1), Trim(), Deallocate(0, 1), EndCapture()),
            *(Replay(), Trim(), Check(0), DropCapture(), Close()),
        ), (5, 8, 19),
        "what was freed before a capture and is over by then stays until its end, whatever is asked for meanwhile",
    ),
    _scenario(
        "capture-keeps-freed", STREAMS,
        (
            *(Capture(0), Allocate(G), Use(0), Deallocate(0), Allocate(G), Use(0), EndCapture(), Allocate(G, 1)),
            *(Use(1, 1), Replay(), Synchronize(0), Trim(), Replay(), Deallocate(0), Allocate(G), DropCapture(), Trim()),
            *(Synchronize(0), Trim(), Close()),
        ), (8, 19, 20),
        "a block that comes and goes while it is captured is nobody else's until the capture is dropped",
    ),
    _scenario(
        "capture-freed-later", STREAMS,
        (
            *(Capture(0), Allocate(G), Use(0), EndCapture(), Replay(), Use(0), Deallocate(0, 1), Synchronize(1)),
            *(Synchronize(0), Trim(), Allocate(G, 1), Use(0, 1), Replay(), Check(0, 1), DropCapture(), Statistics()),
            *(Synchronize(0), Trim(), Close()),
        ), (4, 8, 19, 20),
        "a block that was made under capture is freed after it, and its work launched again",
    ),
    _scenario(
        "capture-grown", STREAMS,
        (
            *(Allocate(G), Use(0), Capture(0), Grow(0, 2 * G), Use(0), Grow(0, 3 * G), Use(0), EndCapture(), Replay()),
            *(Grow(0, 4 * G, 1), Synchronize(0), Synchronize(1), Trim(), Replay(), Use(0), Check(0), DropCapture()),
            *(Check(0), Close()),
        ), (4, 6, 8, 19, 20),
        "a block grows twice under capture and once behind it; each launch uses it where it was",
    ),
    _scenario(
        "capture-shrunk", STREAMS,
        (
            *(Allocate(G), Grow(0, 3 * G), Capture(0), Use(0), Shrink(0, G), EndCapture(), Synchronize(0), Trim()),
            *(Replay(), Allocate(3 * G), Replay(), Check(0), DropCapture(), Synchronize(0), Trim(), Close()),
        ), (8, 11, 19, 20),
        "the tail of a block is cut off under capture, and used by what was captured",
    ),
    _scenario(
        "capture-short", SMALL,
        (
            *(Allocate(4 * G, 1), Deallocate(0, 1), Capture(0), Allocate(8 * G), Allocate(2 * G), Use(0), EndCapture()),
            *(Replay(), Allocate(6 * G), Use(1), Deallocate(0), Allocate(2 * G), DropCapture(), Allocate(2 * G)),
            Close(),
        ), (8, 9, 19, 20),
        "memory is short under capture, where nothing may be given back for it; after it there is enough",
    ),
    _scenario(
        "capture-fails", STREAMS,
        (
            *(Capture(0), Fail("map"), Allocate(G), Use(0), Fail("event_record"), Deallocate(0, 1), EndCapture()),
            *(Replay(), Fail("event_create"), DropCapture(), Allocate(G), Close()),
        ), (7, 8, 19, 20),
        "calls fail under capture, and when it is dropped; what they had taken goes, what is planned stays",
    ),
)  # fmt: skip
