"""The checker of the contract ``driver`` on hand-made histories: good, bad and vacuous ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from driver_stories import (
    NONE,
    READ,
    RW,
    A,
    B,
    G,
    Line,
    all_of,
    attach,
    both,
    call,
    copied,
    crashed,
    create,
    detach,
    free,
    got,
    grant,
    mapped,
    memory,
    note,
    put,
    refused,
    release,
    reserve,
    retain,
    row,
    story,
    told,
    untold,
)

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.driver import judge
from vmm_conformance.contracts import Fault

X, Y, Z = b"xxxxxxxx", b"yyyyyyyy", b"zzzzzzzz"
FAULT = Fault(A, 8, "no access")
NOTHING = both()


@dataclass
class Case:
    """After ``before``, a driver that keeps rule ``id`` goes on with ``good``, another with ``bad``."""

    id: int
    name: str
    before: Line
    good: Line
    bad: Line
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.id}-{self.name}"


def granule(minimum: int, recommended: int) -> Line:
    return note("granularity", device=0, space=1, minimum=minimum, recommended=recommended)


def shared(about: str, wanted: str, got: str) -> Line:
    return note("share", twist="any", facts=((about, "what was asked", wanted, got),))


def left(before: str, behind: str) -> Line:
    return note("left", device=0, before=before, behind=behind)


def turned(*, done: int = 600, failed: str = "", slower: int = 1) -> Line:
    return note("turnover", size=1 << 30, times=600, done=done, failed=failed, slower=slower)


def threads(*wrong: str) -> Line:
    return note("threads", threads=4, shared=True, wrong=wrong)


def cycles(count: int) -> Line:
    """A mapping that is taken away and put back; two granules are in use after each call."""
    return all_of(both(detach(A, 2), memory(2), attach(A, 1, 2), memory(2), grant(A, 2)) for _ in range(count))


def end(used: int = 0, *, complete: bool = True, live: tuple[int, ...] | None = (0, 0, 0, 0, 0)) -> Line:
    return both(memory(used), note("teardown", complete=complete, live=live))


ONE = mapped()
TWO = row(1, 1)
SPARE = both(mapped(room=3), create(2, 2))
STREAM = call("stream_create", 0, result=77)
HOLE = both(reserve(A, 3), create(1), create(2), attach(A, 1), attach(A + 2 * G, 2), grant(A), grant(A + 2 * G))
ALIAS = both(mapped(), reserve(B, 1), attach(B, 1), grant(B))
BRIDGE = both(mapped(), mapped(A + G, 2))
BRIDGES = {"copy_spans_reservations": True}
DECLARED_WAIT = {"unmap_waits": True}

CASES = [
    Case(1, "map", both(reserve(A, 1), create(1)), attach(A, 1), refused(attach(A, 1))),
    Case(1, "copy", both(ONE, told(A, RW)), put(A, X), refused(call("write", A, X, None))),
    Case(1, "bytes", both(ONE, told(A, RW), put(A, X)), got(A, X), got(A, Y)),
    Case(1, "free", both(ONE, detach(A)), free(A, 1), refused(free(A, 1))),
    Case(2, "zero", NOTHING, granule(4096, 4096), granule(0, 4096)),
    Case(2, "odd", NOTHING, granule(4096, 4096), granule(3 * 4096, 3 * 4096)),
    Case(2, "two-bits", NOTHING, granule(4096, 4096), granule(5 * 4096, 5 * 4096)),
    Case(2, "no-answer", NOTHING, granule(4096, 4096), note("granularity", device=0, space=1, status=2)),
    Case(3, "swapped", NOTHING, granule(4096, 8192), granule(8192, 4096)),
    Case(4, "changes", granule(4096, 8192), granule(4096, 8192), granule(4096, 4096)),
    Case(5, "taken", NOTHING, shared("option", "INVALID_VALUE", "INVALID_VALUE"),
         shared("option", "INVALID_VALUE", "success, 4096")),
    Case(6, "same", NOTHING, granule(4096, 8192), granule(4096, 4096), {"larger": 8192}),
    Case(6, "no-answer", NOTHING, granule(4096, 8192), note("granularity", device=0, space=1, status=2),
         {"larger": 8192}),
    Case(6, "not-asked-for", NOTHING, granule(4096, 4096), granule(4096, 8192), {"larger": G}),
    Case(7, "refused", NOTHING, reserve(A, 3), refused(reserve(A, 3))),
    Case(7, "base", NOTHING, reserve(A, 3), reserve(A + 8, 3)),
    Case(7, "null", NOTHING, reserve(A, 3), reserve(0, 3)),
    Case(7, "aligned", NOTHING, reserve(A, 3, alignment=G), reserve(A + 8, 3, alignment=G)),
    Case(7, "aligned-refused", NOTHING, reserve(A, 3, alignment=G), refused(reserve(A, 3, alignment=G))),
    Case(7, "to-a-byte", NOTHING, reserve(A, 3, alignment=1), refused(reserve(A, 3, alignment=1))),
    Case(8, "base", NOTHING, reserve(A, 1, alignment=8 * G), reserve(A + G, 1, alignment=8 * G)),
    Case(8, "refused", NOTHING, reserve(A, 1, alignment=8 * G), refused(reserve(A, 1, alignment=8 * G))),
    Case(9, "overlap", reserve(A, 4), reserve(A + 4 * G, 1), reserve(A + 3 * G, 1)),
    Case(9, "same", reserve(A + G, 1), reserve(A + 2 * G, 1), reserve(A + G, 1)),
    Case(9, "plain", call("alloc", 100, 0, 0, result=B), reserve(A, 1), reserve(B, 1)),
    Case(10, "rounds", NOTHING, refused(reserve(A, 0, size=G - 1)), reserve(A, 0, size=G - 1)),
    Case(10, "empty", NOTHING, refused(reserve(A, 0)), reserve(A, 0)),
    Case(10, "alignment", NOTHING, refused(reserve(A, 1, alignment=3)), reserve(A, 1, alignment=3)),
    Case(10, "two-bits", NOTHING, refused(reserve(A, 1, alignment=5 * G)), reserve(A, 1, alignment=5 * G)),
    Case(10, "negative", NOTHING, refused(reserve(A, 1, alignment=-G)), reserve(A, 1, alignment=-G)),
    Case(10, "code", NOTHING, refused(reserve(A, 0)), refused(reserve(A, 0), 2)),
    Case(10, "old-code", NOTHING, refused(reserve(A, 0), 2), refused(reserve(A, 0), 101), {"old_codes": True}),
    Case(11, "demand", reserve(A, 1), reserve(B, 1, hint=A), refused(reserve(B, 1, hint=A))),
    Case(12, "reserve", memory(0), both(reserve(A, 4), memory(0)), both(reserve(A, 4), memory(4))),
    Case(12, "free", both(reserve(A, 4), memory(4)), both(free(A, 4), memory(4)), both(free(A, 4), memory(0))),
    Case(13, "interior", reserve(A, 4), refused(free(A + G, 3)), free(A + G, 3)),
    Case(13, "usable", both(reserve(A, 4), refused(free(A + G, 3))), free(A, 4), refused(free(A, 4))),
    Case(14, "size", reserve(A, 4), refused(free(A, 3)), free(A, 3)),
    Case(14, "empty", reserve(A, 4), refused(free(A, 0)), free(A, 0)),
    Case(15, "mapped", ONE, refused(free(A, 1)), free(A, 1)),
    Case(15, "intact", both(ONE, told(A, RW), refused(free(A, 1))), told(A, RW), told(A, NONE)),
    Case(15, "bytes", both(ONE, put(A, X), refused(free(A, 1))), got(A, X), got(A, Z)),
    Case(16, "twice", both(reserve(A, 1), free(A, 1)), refused(free(A, 1)), free(A, 1)),
    Case(16, "crash", both(reserve(A, 1), free(A, 1)), refused(free(A, 1)), crashed(free(A, 1))),
    Case(17, "both", both(reserve(A, 1), reserve(A + G, 2)), refused(free(A, 3)), free(A, 3)),
    Case(18, "runs-out", NOTHING, turned(), turned(done=7, failed="reserve")),
    Case(18, "slows-down", NOTHING, turned(), turned(slower=2)),
    Case(18, "slows-down-more", NOTHING, turned(), turned(slower=3)),
    Case(19, "create", memory(0), both(create(1, 3), memory(3)), both(create(1, 3), memory(0))),
    Case(19, "release", both(memory(0), create(1, 3), memory(3)), both(release(1), memory(0)),
         both(release(1), memory(3))),
    Case(19, "device", both(memory(0), memory(0, 1)), both(create(1, device=1), memory(0), memory(1, 1)),
         both(create(1, device=1), memory(1)), {"devices": 2}),
    Case(20, "rounds", memory(0), refused(create(1, 1.5)), create(1, 1.5)),
    Case(20, "empty", memory(0), refused(create(1, 0)), create(1, 0)),
    Case(20, "whole", memory(0), create(1, 63), refused(create(1, 63))),
    Case(21, "device", memory(0), refused(create(1, device=1)), create(1, device=1)),
    Case(21, "beyond", memory(0), refused(create(1, device=2)), create(1, device=2)),
    Case(21, "negative", memory(0), refused(create(1, device=-1)), create(1, device=-1)),
    Case(21, "space", memory(0), refused(create(1, space=77)), create(1, space=77)),
    Case(21, "code", NOTHING, refused(create(1, device=-1), 101), refused(create(1, device=-1), 2)),
    Case(22, "too-much", memory(60), refused(create(1, 5), 2), create(1, 5)),
    Case(22, "after", both(memory(60), refused(create(1, 5), 2)), create(1, 1), refused(create(1, 1), 2)),
    Case(22, "costs", both(memory(60), refused(create(1, 5), 2)), memory(60), memory(61)),
    Case(22, "code", memory(60), refused(create(1, 5), 2), refused(create(1, 5), 1)),
    Case(23, "defaults", NOTHING, shared("properties", "device 1", "device 1"),
         shared("properties", "device 1", "device 0")),
    Case(24, "refused", ONE, release(1), refused(release(1))),
    Case(24, "bytes", both(ONE, put(A, X), release(1)), got(A, X), got(A, Z)),
    Case(25, "early", both(memory(0), ONE, memory(1)), both(release(1), memory(1)), both(release(1), memory(0))),
    Case(25, "late", both(memory(0), ONE, release(1), memory(1)), both(detach(A), memory(0)),
         both(detach(A), memory(1))),
    Case(26, "twice", both(memory(0), ONE, detach(A), memory(1)), both(release(1), memory(0)),
         both(release(1), memory(-1))),
    Case(26, "unmap", both(memory(0), ONE, memory(1)), both(detach(A), memory(1)), both(detach(A), memory(0))),
    Case(27, "null", NOTHING, refused(release(0)), release(0)),
    Case(27, "stale", both(create(1), create(2), release(1)), refused(release(1), 400), release(1)),
    Case(27, "another", both(memory(0), create(1), create(2), release(1), memory(1)),
         both(refused(release(1)), memory(1)), both(refused(release(1)), memory(0))),
    Case(27, "while-mapped", both(ONE, release(1)), refused(release(1)), release(1)),
    Case(28, "inside", ONE, retain(A + 9, 1), refused(retain(A + 9, 1))),
    Case(28, "other", both(create(9), ONE), retain(A, 1), retain(A, 9)),
    Case(28, "older", both(create(1), mapped(handle=2)), retain(A, 2), retain(A, 1)),
    Case(29, "count", both(memory(0), create(1), reserve(A, 1), attach(A, 1), retain(A, 1), memory(1)),
         both(release(1), memory(1), detach(A), memory(1), release(1), memory(0)),
         both(release(1), detach(A), memory(0))),
    Case(30, "reserved", reserve(A, 1), refused(retain(A, 1)), retain(A, 1)),
    Case(30, "plain", call("alloc", 100, 0, 0, result=B), refused(retain(B, 1)), retain(B, 1)),
    Case(31, "nowhere", create(1), refused(attach(A, 1)), attach(A, 1)),
    Case(31, "freed", both(create(1), reserve(A, 1), free(A, 1)), refused(attach(A, 1)), attach(A, 1)),
    Case(32, "past", both(create(1, 2), reserve(A, 4)), refused(attach(A + 3 * G, 1, 2)), attach(A + 3 * G, 1, 2)),
    Case(32, "across", both(create(1, 2), reserve(A, 4), reserve(A + 4 * G, 4)), refused(attach(A + 3 * G, 1, 2)),
         attach(A + 3 * G, 1, 2)),
    Case(33, "onto", SPARE, refused(attach(A, 2, 2)), attach(A, 2, 2)),
    Case(33, "bytes", both(SPARE, put(A, X), refused(attach(A, 2, 2))), got(A, X), got(A, Z)),
    Case(33, "rights", both(SPARE, told(A, RW), refused(attach(A, 2, 2))), told(A, RW), told(A, NONE)),
    Case(34, "address", SPARE, refused(attach(A + G + 1, 2, 2)), attach(A + G + 1, 2, 2)),
    Case(34, "size", SPARE, refused(attach(A + G, 2, 1.5)), attach(A + G, 2, 1.5)),
    Case(34, "empty", SPARE, refused(attach(A + G, 2, 0)), attach(A + G, 2, 0)),
    Case(35, "undeclared", SPARE, refused(attach(A + G, 2, 1, offset=G)), attach(A + G, 2, 1, offset=G)),
    Case(35, "declared", SPARE, attach(A + G, 2, 1, offset=G), refused(attach(A + G, 2, 1, offset=G)),
         {"map_offset": True}),
    Case(35, "far", both(create(1, 4), reserve(A, 1)), attach(A, 1, 1, offset=2 * G),
         refused(attach(A, 1, 1, offset=2 * G)), {"map_offset": True}),
    Case(36, "larger", both(create(1), reserve(A, 4)), refused(attach(A, 1, 2)), attach(A, 1, 2)),
    Case(36, "offset", both(create(1, 3), reserve(A, 4)), refused(attach(A, 1, 3, offset=G)),
         attach(A, 1, 3, offset=G), {"map_offset": True}),
    Case(37, "declared", SPARE, attach(A + G, 2, 1), refused(attach(A + G, 2, 1))),
    Case(37, "undeclared", SPARE, refused(attach(A + G, 2, 1)), attach(A + G, 2, 1), {"partial_map": False}),
    Case(38, "reference", both(memory(0), reserve(A, 1), create(1, 2), refused(attach(A, 1, 2)), memory(2)),
         both(release(1), memory(0)), both(release(1), memory(2))),
    Case(39, "written", both(TWO, put(A, X), put(A + G, Y)), got(A, X), got(A, Y)),
    Case(39, "fresh", both(TWO, put(A, X), put(A + G + 8, Y), got(A, X)), got(A + G, Z), got(A + G, X)),
    Case(39, "inside", both(TWO, put(A, X)), got(A + G, Y + Z), got(A + G, Y + X)),
    Case(39, "handle", both(TWO, put(A, X)), both(create(3), put(A + G, Y), got(A, X)), create(1)),
    Case(40, "refused", TWO, detach(A), refused(detach(A))),
    Case(40, "still-there", both(TWO, detach(A)), untold(A), told(A, RW)),
    Case(40, "neighbour", both(TWO, told(A + G, RW), detach(A)), told(A + G, RW), untold(A + G)),
    Case(40, "neighbour-bytes", both(TWO, put(A + G, X), detach(A)), got(A + G, X), got(A + G, Z)),
    Case(41, "refused", TWO, detach(A, 2), refused(detach(A, 2))),
    Case(41, "first-only", both(TWO, detach(A, 2)), untold(A + G), told(A + G, RW)),
    Case(41, "free", both(TWO, detach(A, 2)), free(A, 2), refused(free(A, 2))),
    Case(41, "undeclared", TWO, refused(detach(A, 2)), detach(A, 2), {"unmap_spans_mappings": False}),
    Case(42, "part", row(2, 1), refused(detach(A)), detach(A)),
    Case(42, "skew", row(2, 2), refused(detach(A, 3)), detach(A, 3)),
    Case(42, "skew-in-front", row(2, 2), refused(detach(A + G, 3)), detach(A + G, 3)),
    Case(42, "bytes", both(row(2), put(A, X), refused(detach(A + G))), got(A, X), got(A, Z)),
    Case(43, "hole", HOLE, refused(detach(A, 3)), detach(A, 3)),
    Case(43, "reserved", reserve(A, 1), refused(detach(A)), detach(A)),
    Case(43, "twice", both(ONE, detach(A)), refused(detach(A)), detach(A)),
    Case(43, "rights", both(HOLE, told(A, RW), refused(detach(A, 3))), told(A, RW), untold(A)),
    Case(44, "refused", both(ONE, detach(A), create(2)), attach(A, 2), refused(attach(A, 2))),
    Case(44, "old", both(ONE, put(A, X), mapped(B, 2), put(B, Y), detach(A), detach(B), attach(A, 2), grant(A)),
         got(A, Y), got(A, X)),
    Case(45, "kept", both(ONE, put(A, X), detach(A), reserve(B, 1), attach(B, 1), grant(B)), got(B, X), got(B, Z)),
    Case(46, "cost", both(memory(0), mapped(granules=2), memory(2), cycles(9)), both(detach(A, 2), memory(2)),
         both(detach(A, 2), memory(3))),
    Case(46, "refused", both(mapped(granules=2), cycles(9), detach(A, 2)), attach(A, 1, 2), refused(attach(A, 1, 2))),
    Case(47, "differ", NOTHING, note("pieces", handles=3, size=3 * G, differ=-1),
         note("pieces", handles=3, size=3 * G, differ=G)),
    Case(47, "first", NOTHING, note("pieces", handles=3, size=3 * G, differ=-1),
         note("pieces", handles=3, size=3 * G, differ=0)),
    Case(48, "default", both(reserve(A, 1), create(1), attach(A, 1)), told(A, NONE), told(A, RW)),
    Case(49, "read", both(reserve(A, 1), create(1), attach(A, 1)), refused(call("read", A, 8, None)), got(A, X)),
    Case(49, "write", both(ONE, grant(A, 1, NONE)), refused(call("write", A, X, None)), put(A, X)),
    Case(49, "bytes", both(ONE, put(A, X), grant(A, 1, NONE), refused(call("write", A, Y, None)), grant(A)),
         got(A, X), got(A, Y)),
    Case(49, "unmapped", reserve(A, 1), refused(call("read", A, 8, None)), got(A, X)),
    Case(49, "half", mapped(room=1), refused(call("read", A + G - 4, 8, None)), got(A + G - 4, X)),
    Case(49, "queued", both(STREAM, ONE, grant(A, 1, NONE)), put(A, X, 77, fault=FAULT), put(A, X, 77)),
    Case(50, "enforced", mapped(right=READ), refused(call("write", A, X, None)), put(A, X)),
    Case(50, "queued", both(STREAM, mapped(right=READ)), put(A, X, 77, fault=FAULT), put(A, X, 77)),
    Case(50, "advice", mapped(right=READ), put(A, X), refused(call("write", A, X, None)),
         {"read_only_enforced": False}),
    Case(51, "refused", TWO, grant(A, 2), refused(grant(A, 2))),
    Case(51, "first-only", both(TWO, grant(A, 2, READ)), told(A + G, READ), told(A + G, RW)),
    Case(51, "undeclared", TWO, refused(grant(A, 2)), grant(A, 2), {"set_access_spans_mappings": False}),
    Case(52, "tail", TWO, grant(A + G), refused(grant(A + G))),
    Case(53, "refused", mapped(granules=2), refused(grant(A)), grant(A)),
    Case(53, "unaligned", mapped(granules=2), refused(grant(A, 1.5)), grant(A, 1.5),
         {"set_access_part_of_mapping": True}),
    Case(53, "declared", mapped(granules=2), grant(A), refused(grant(A)), {"set_access_part_of_mapping": True}),
    Case(53, "widens", both(mapped(granules=2), grant(A, 1, READ)), told(A + G, RW), told(A + G, READ),
         {"set_access_part_of_mapping": True}),
    Case(54, "hole", HOLE, refused(grant(A, 3)), grant(A, 3)),
    Case(54, "half", both(HOLE, told(A, RW), refused(grant(A, 3, READ))), told(A, RW), told(A, READ)),
    Case(54, "reserved", reserve(A, 1), refused(grant(A)), grant(A)),
    Case(55, "flag", ONE, refused(grant(A, 1, 2)), grant(A, 1, 2)),
    Case(55, "device", ONE, refused(grant(A, 1, RW, 1)), grant(A, 1, RW, 1)),
    Case(55, "nobody", ONE, refused(call("set_access", A, G, ())), call("set_access", A, G, ())),
    Case(55, "empty", ONE, refused(grant(A, 0)), grant(A, 0)),
    Case(55, "half", both(ONE, told(A, RW), refused(grant(A, 1, READ, 0, 9))), told(A, RW), told(A, READ)),
    Case(56, "others", both(ONE, grant(A, 1, READ, 1)), told(A, RW), told(A, NONE), {"devices": 2}),
    Case(57, "sticky", both(ONE, told(A, RW), detach(A), attach(A, 1)), told(A, NONE), told(A, RW)),
    Case(58, "last", ONE, told(A + G - 1, RW), told(A + G - 1, NONE)),
    Case(58, "end", both(ONE, told(A, RW)), untold(A + G), told(A + G, RW)),
    Case(58, "refused", ONE, told(A, RW), untold(A)),
    Case(59, "shared", both(ALIAS, told(A, RW), grant(B, 1, READ)), told(A, RW), told(A, READ)),
    Case(60, "refused", both(ONE, reserve(B, 1)), attach(B, 1), refused(attach(B, 1))),
    Case(60, "copy", both(ALIAS, put(A, X)), got(B, X), got(B, Z)),
    Case(61, "bytes", both(ALIAS, put(A, X), got(B, X), release(1), detach(A)), got(B, X), got(B, Z)),
    Case(61, "rights", both(ALIAS, told(B, RW), detach(A)), told(B, RW), untold(B)),
    Case(61, "early", both(memory(0), ALIAS, release(1), memory(1)), both(detach(A), memory(1)),
         both(detach(A), memory(0))),
    Case(62, "refused", TWO, put(A + G - 4, X), refused(call("write", A + G - 4, X, None))),
    Case(62, "bytes", both(TWO, put(A + G - 4, X)), got(A + G - 4, X), got(A + G - 4, b"xxxxzzzz")),
    Case(63, "refused", BRIDGE, refused(call("write", A + G - 4, X, None)), put(A + G - 4, X)),
    Case(63, "declared", BRIDGE, put(A + G - 4, X), refused(call("write", A + G - 4, X, None)), BRIDGES),
    Case(63, "bytes", both(BRIDGE, put(A + G - 4, X)), got(A + G - 4, X), got(A + G - 4, b"xxxxzzzz"), BRIDGES),
    Case(64, "reservation", mapped(room=2), call("address_range", A + 9, result=(A, G)),
         call("address_range", A + 9, result=(A, 3 * G))),
    Case(64, "granule", mapped(granules=2), call("address_range", A + 9, result=(A, 2 * G)),
         call("address_range", A + 9, result=(A, G))),
    Case(64, "refused", ONE, call("address_range", A, result=(A, G)),
         refused(call("address_range", A, result=(A, G)))),
    Case(65, "given", NOTHING, shared("legacy", "any error", "NOT_SUPPORTED"),
         shared("legacy", "any error", "success, b''")),
    Case(66, "flags", NOTHING, shared("export", "INVALID_VALUE", "INVALID_VALUE"),
         shared("export", "INVALID_VALUE", "NOT_SUPPORTED")),
    Case(67, "copy", NOTHING, shared("import", "aa", "aa"), shared("import", "aa", "bb")),
    Case(68, "gone", NOTHING, shared("outlives", "aa", "aa"), shared("outlives", "success", "DriverError: no")),
    Case(69, "same", NOTHING, shared("apart", "True", "True"), shared("apart", "True", "False")),
    Case(70, "foreign", NOTHING, shared("imported", "device 1", "device 1"),
         shared("imported", "device 1", "device 0")),
    Case(71, "drift", memory(0), end(0), end(1)),
    Case(71, "live", memory(0), end(0), end(0, live=(1, 0, 0, 0, 0))),
    Case(71, "close", memory(0), end(0), note("unclosed", error="no")),
    Case(72, "held", both(memory(0), ONE, release(1), memory(1)), both(detach(A), memory(0)),
         both(detach(A), memory(1))),
    Case(73, "one-each", NOTHING, note("descriptors", handles=32, more=1, left=0),
         note("descriptors", handles=32, more=32, left=0)),
    Case(73, "half", NOTHING, note("descriptors", handles=33, more=15, left=15),
         note("descriptors", handles=33, more=16, left=15)),
    Case(73, "stay", NOTHING, note("descriptors", handles=32, more=1, left=0),
         note("descriptors", handles=32, more=1, left=32)),
    Case(74, "fault", both(STREAM, ONE), put(A, X, 77), put(A, X, 77, fault=FAULT)),
    Case(74, "lost", both(STREAM, ONE, put(A, X, 77)), got(A, X, 77), got(A, Z, 77)),
    Case(75, "waits", both(STREAM, ONE, call("write", A, X, 77, result=5)),
         both(call("ran", 5, (), None, who="device"), detach(A)), detach(A), DECLARED_WAIT),
    Case(76, "refused", both(note("held", stream=77), reserve(A, 1), create(1)),
         both(attach(A, 1), note("let_go", stream=77, in_time=True)), refused(attach(A, 1), 600)),
    Case(76, "waits", both(note("held", stream=77), ONE), note("let_go", stream=77, in_time=True),
         note("let_go", stream=77, in_time=False)),
    Case(77, "races", NOTHING, threads(), threads("thread 0: map: no")),
    Case(78, "rights", both(ONE, told(A, RW), refused(free(A, 1))), told(A, RW), told(A, READ)),
    Case(78, "bytes", both(ONE, put(A, X), refused(grant(A, 1, 7))), got(A, X), got(A, Z)),
    Case(78, "memory", both(memory(0), refused(create(1, 1.5))), memory(0), memory(2)),
    Case(79, "sticky", both(memory(0), refused(create(1, 1.5))), memory(0), refused(memory(0))),
    Case(80, "refused", call("graph_begin", 9), reserve(A, 1), refused(reserve(A, 1), 900)),
    Case(80, "spoiled", both(call("graph_begin", 9), reserve(A, 1)), call("graph_end", 9, result=3),
         refused(call("graph_end", 9), 901)),
    Case(81, "lost", NOTHING, left("8192", "8192"), left("8192", "4096")),
    Case(81, "nothing-heard", NOTHING, left("8192", "8192"), left("failed: nothing", "8192")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_driver_that_keeps_the_rule_is_seen_to_keep_it(case: Case) -> None:
    before = judge(story(case.before, **case.options))
    after = judge(story(case.before, case.good, **case.options))
    assert before.findings == []
    assert after.findings == []
    assert after.witnesses[f"DRIVER-{case.id}"] > before.witnesses[f"DRIVER-{case.id}"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_driver_that_breaks_the_rule_is_found(case: Case) -> None:
    found = judge(story(case.before, case.bad, **case.options)).findings
    assert f"DRIVER-{case.id}" in {finding.invariant for finding in found}
    for finding in found:
        assert finding.message
        assert finding.expected
        assert finding.actual


def test_every_invariant_has_a_case() -> None:
    ids = {entry.id for entry in catalogue().of("driver")}
    assert {f"DRIVER-{case.id}" for case in CASES} == ids


def test_nothing_done_is_nothing_shown() -> None:
    """The vacuous history: a driver was opened, and asked for its granularity alone."""
    result = judge(story())
    assert result.findings == []
    assert set(result.witnesses) <= {"DRIVER-2", "DRIVER-3"}


def test_a_real_device_does_not_tell_its_page_sizes() -> None:
    result = judge(story(granule(4096, 4096), real=True, larger=8192))
    assert result.findings == []
    assert not result.witnesses["DRIVER-6"]


def test_what_threads_have_broken_is_not_judged_any_more() -> None:
    assert [f.invariant for f in judge(story(ONE, threads("no"), told(A, READ), memory(9))).findings] == ["DRIVER-77"]


@pytest.mark.parametrize("status", [2, 999])
def test_a_call_refused_beside_a_held_stream_for_another_reason_is_judged_by_its_own_rule(status: int) -> None:
    found = judge(story(note("held", stream=77), refused(reserve(A, 1), status))).findings
    assert [finding.invariant for finding in found] == ["DRIVER-7"]


def test_an_empty_history_says_nothing() -> None:
    history = story()
    history.events.clear()
    assert judge(history).findings == []
    assert not judge(history).witnesses


def test_nothing_is_judged_behind_a_wrong_answer() -> None:
    """Once a refusal is missing, nobody knows what the driver holds."""
    found = judge(story(ONE, free(A, 1), told(A, NONE), refused(detach(A)), memory(9))).findings
    assert [finding.invariant for finding in found] == ["DRIVER-15"]


def test_a_crash_is_the_fault_of_what_was_asked() -> None:
    found = judge(story(ONE, crashed(detach(A)))).findings
    assert [finding.invariant for finding in found] == ["DRIVER-40"]
    assert "neither returned nor refused" in found[0].actual


def test_a_driver_that_cannot_be_opened_fails_its_life_cycle() -> None:
    history = story()
    history.events.clear()
    note("unusable", error="no such device")(history)
    assert [finding.invariant for finding in judge(history).findings] == ["DRIVER-1"]


def test_calls_that_are_wrong_in_two_ways_prove_no_single_rule() -> None:
    before = judge(story(ONE, create(2)))
    result = judge(story(ONE, create(2), refused(attach(A + 1, 2))))  # unaligned, past the end, and onto a mapping
    assert result.findings == []
    assert all(result.witnesses[f"DRIVER-{n}"] == before.witnesses[f"DRIVER-{n}"] for n in (32, 33, 34))


def test_any_error_is_a_refusal() -> None:
    for status in (1, 2, 208, 999, 12345):
        assert judge(story(ONE, refused(free(A, 1), status))).findings == []


def test_free_memory_of_a_real_device_may_be_a_little_off() -> None:
    def later(taken: int) -> Line:
        begin, end = (call("mem_info", 0, result=((1 << 30) - some, 1 << 30)) for some in (0, taken))
        return both(begin, create(1), end)

    for taken in (100, G + (4 << 20)):
        result = judge(story(later(taken), real=True))
        assert result.findings == []
        assert not result.witnesses["DRIVER-19"]
        assert judge(story(later(taken))).findings
    assert judge(story(later(G + (4 << 20) + 1), real=True)).findings


def test_peers_that_cannot_reach_each_other_are_not_judged() -> None:
    given = grant(A, 1, RW, 1)
    for line in (given, refused(given), both(given, told(A, NONE, 1))):
        history = story(ONE, line, devices=2)
        history.header["peers"] = ()
        assert judge(history).findings == []


def test_rights_of_another_device_let_the_host_in_or_not() -> None:
    """Drivers differ in whose rights a copy by the host goes by, also where it touches other memory too."""
    before = both(row(1, 1), grant(A + G, 1, NONE), grant(A + G, 1, RW, 1))
    for address in (A + G, A + G - 4):
        for line in (put(address, X), refused(call("write", address, X, None))):
            assert judge(story(before, line, devices=2)).findings == []


def test_bytes_that_a_copy_moved_are_known_where_they_went() -> None:
    before = both(TWO, put(A, X), copied(A + G + 4, A, 8))
    assert judge(story(before, got(A + G + 4, X))).findings == []
    assert judge(story(before, got(A + G + 4, Z))).findings


def test_work_in_no_order_leaves_bytes_unknown() -> None:
    other = call("stream_create", 0, result=78)
    first, second = call("write", A, X, 77, result=5), call("write", A, Y, 78, result=6)
    runs = [call("ran", work, (), None, who="device") for work in (6, 5)]
    before = both(STREAM, other, ONE, first, second, *runs)
    for data in (X, Y):
        assert judge(story(before, got(A, data))).findings == []


def test_work_that_ran_before_its_submission_was_recorded_counts() -> None:
    early = both(call("ran", 5, (), None, who="device"), call("write", A, X, 77, result=5))
    assert judge(story(STREAM, ONE, early, got(A, X))).findings == []
    assert judge(story(STREAM, ONE, early, got(A, Y))).findings
