"""Hand-made histories of the contract ``driver``: each line is one event, as a driver would have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from vmm_conformance.contracts import Access, DriverCapabilities, DriverOptions, Fault, Granularity
from vmm_conformance.history.events import CRASHED, DEVICE, HARNESS, SUBJECT, Event, History

G = 4096
A = 0x10_0000_0000
B = 0x20_0000_0000
NONE, READ, RW = Access.NONE, Access.READ, Access.READ_WRITE
TOTAL = 64 * G

Line = Callable[[History], None]
"""Adds its events to a history."""


def story(
    *lines: Line, devices: int = 1, real: bool = False, minimum: int = G, larger: int = 0, **capabilities: bool
) -> History:
    """The history that ``lines`` tell, of a driver with these capabilities, and ``larger`` pages if it has some."""
    peers = tuple((a, b) for a in range(devices) for b in range(devices) if a != b)
    history = History(
        {
            "contract": "driver",
            "capabilities": DriverCapabilities(**capabilities),
            "devices": devices,
            "real": real,
            "options": DriverOptions(granularity=Granularity(G, larger)) if larger else None,
            "peers": peers,
        }
    )
    for device in range(devices):
        note("granularity", device=device, space=0, minimum=minimum, recommended=larger or minimum)(history)
    for line in lines:
        line(history)
    return history


def call(kind: str, *args: Any, result: Any = None, who: str = SUBJECT, status: int = 0) -> Line:
    """One driver call."""

    def tell(history: History) -> None:
        history.events.append(Event(len(history), 0, 0, who, kind, args, status, result))

    return tell


def refused(line: Line, status: int = 1) -> Line:
    """The same call, refused."""

    def tell(history: History) -> None:
        line(history)
        history.events[-1].status = status
        history.events[-1].result = None

    return tell


def crashed(line: Line) -> Line:
    """The same call, which neither returned nor refused."""
    return refused(line, CRASHED)


def note(what: str, **details: Any) -> Line:
    """Something that the harness says."""
    return call("note", what, details, who=HARNESS)


def reserve(address: int, granules: int, *, alignment: int = 0, hint: int = 0, size: int | None = None) -> Line:
    return call("reserve", granules * G if size is None else size, alignment, hint, result=address)


def free(address: int, granules: float) -> Line:
    return call("address_free", address, int(granules * G))


def create(handle: int, granules: float = 1, *, device: int = 0, space: int = 0) -> Line:
    return call("create", int(granules * G), device, space, result=handle)


def retain(address: int, handle: int) -> Line:
    return call("retain", address, result=handle)


def release(handle: int) -> Line:
    return call("release", handle)


def attach(address: int, handle: int, granules: float = 1, *, offset: int = 0) -> Line:
    return call("map", address, int(granules * G), handle, offset)


def detach(address: int, granules: float = 1) -> Line:
    return call("unmap", address, int(granules * G))


def grant(address: int, granules: float = 1, right: Any = RW, *devices: int) -> Line:
    return call("set_access", address, int(granules * G), tuple((device, right) for device in devices or (0,)))


def told(address: int, right: int, device: int = 0) -> Line:
    return call("get_access", address, device, result=right, who=HARNESS)


def untold(address: int, device: int = 0) -> Line:
    return refused(told(address, 0, device))


def memory(used: float, device: int = 0) -> Line:
    """mem_info says that so many granules are in use."""
    return call("mem_info", device, result=(TOTAL - int(used * G), TOTAL), who=HARNESS)


_ids = iter(range(1000, 1_000_000))


def put(address: int, data: bytes, stream: int | None = None, *, fault: Fault | None = None) -> Line:
    """A write that ran, or met a fault."""
    work = next(_ids)
    return both(call("write", address, data, stream, result=work), ran(work, (), fault))


def got(address: int, data: bytes, stream: int | None = None, *, fault: Fault | None = None) -> Line:
    """A read that saw ``data``."""
    work = next(_ids)
    seen = () if fault else (data,)
    return both(call("read", address, len(data), stream, result=work), ran(work, seen, fault))


def copied(target: int, source: int, size: int) -> Line:
    """A copy by the host."""
    work = next(_ids)
    return both(call("copy", target, source, size, None, result=work), ran(work, (), None))


def ran(work: int, data: tuple[bytes, ...], fault: Fault | None) -> Line:
    return call("ran", work, data, fault, who=DEVICE)


def both(*lines: Line) -> Line:
    """Several lines as one."""

    def tell(history: History) -> None:
        for line in lines:
            line(history)

    return tell


def mapped(
    address: int = A, handle: int = 1, granules: int = 1, *, right: Access = RW, device: int = 0, room: int = 0
) -> Line:
    """A reservation with one mapping and ``room`` more granules."""
    return both(
        reserve(address, granules + room),
        create(handle, granules, device=device),
        attach(address, handle, granules),
        grant(address, granules, right, device),
    )


def row(*granules: int, address: int = A, right: Access = RW) -> Line:
    """A reservation filled with mappings of handles 1, 2, and so on."""
    lines: list[Line] = [reserve(address, sum(granules))]
    for handle, count in enumerate(granules, 1):
        lines += [create(handle, count), attach(address, handle, count), grant(address, count, right)]
        address += count * G
    return both(*lines)


def all_of(lines: Iterable[Line]) -> Line:
    return both(*lines)
