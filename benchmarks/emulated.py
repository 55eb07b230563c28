"""What a call costs through a vendor's binding over its emulated library, beside the same library with bodies that do
nothing, and beside C functions that return at once, which is what the binding itself takes.

``python benchmarks/emulated.py [--json]``. Needs hip-python or cuda-bindings, and a C compiler once. Each library is
measured in a process of its own, since a process has one of a name; the best of many rounds counts.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from measuring import Result, command, table

GRANULE = 2 << 20
ROUNDS, CALLS = 40, 500
BINDINGS = {"hip": "hip", "cuda": "cuda.bindings.driver"}
SYSTEM = ("create+release", "map+access+unmap", "write 8", "read 8")
"""What makes system calls, or moves bytes."""

Calls = dict[str, tuple[int, Callable[[], object]]]


def hip_calls() -> Calls:
    from hip import hip as h

    h.hipInit(0)
    properties = h.hipMemAllocationProp()
    properties.type, properties.location.type = h.hipMemAllocationType(1), h.hipMemLocationType(1)
    address = int(h.hipMemAddressReserve(GRANULE, 0, None, 0)[1] or 0)
    handle = h.hipMemCreate(GRANULE, properties, 0)[1]
    shown = int(h.hipMemAddressReserve(GRANULE, 0, None, 0)[1] or 0)
    rights, data = bytearray(struct.pack("iii", 1, 0, 3)), bytearray(8)
    h.hipMemMap(shown, GRANULE, 0, handle, 0)
    h.hipMemSetAccess(shown, GRANULE, rights, 1)
    stream, event = h.hipStreamCreateWithFlags(1)[1], h.hipEventCreateWithFlags(2)[1]

    def reserve_free() -> None:
        h.hipMemAddressFree(h.hipMemAddressReserve(GRANULE, 0, None, 0)[1], GRANULE)

    def map_access_unmap() -> None:
        h.hipMemMap(address, GRANULE, 0, handle, 0)
        h.hipMemSetAccess(address, GRANULE, rights, 1)
        h.hipMemUnmap(address, GRANULE)

    return {
        "current device": (1, h.hipGetDevice),
        "memory info": (1, h.hipMemGetInfo),
        "get_access": (1, lambda: h.hipMemGetAccess(properties.location, shown)),
        "reserve+free": (2, reserve_free),
        "retain+release": (2, lambda: h.hipMemRelease(h.hipMemRetainAllocationHandle(shown)[1])),
        "map+unmap": (2, lambda: (h.hipMemMap(address, GRANULE, 0, handle, 0), h.hipMemUnmap(address, GRANULE))),
        "record+wait": (2, lambda: (h.hipEventRecord(event, stream), h.hipEventSynchronize(event))),
        "create+release": (2, lambda: h.hipMemRelease(h.hipMemCreate(GRANULE, properties, 0)[1])),
        "map+access+unmap": (3, map_access_unmap),
        "write 8": (1, lambda: h.hipMemcpyHtoD(shown, data, 8)),
        "read 8": (1, lambda: h.hipMemcpyDtoH(data, shown, 8)),
    }


def cuda_calls() -> Calls:
    from cuda.bindings import driver as d

    d.cuInit(0)
    d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
    properties = d.CUmemAllocationProp()
    properties.type, properties.location.type = d.CUmemAllocationType(1), d.CUmemLocationType(1)
    address = d.cuMemAddressReserve(GRANULE, 0, 0, 0)[1]
    handle = d.cuMemCreate(GRANULE, properties, 0)[1]
    shown = d.cuMemAddressReserve(GRANULE, 0, 0, 0)[1]
    rights, data = d.CUmemAccessDesc(), bytearray(8)
    rights.location.type, rights.flags = d.CUmemLocationType(1), d.CUmemAccess_flags(3)
    d.cuMemMap(shown, GRANULE, 0, handle, 0)
    d.cuMemSetAccess(shown, GRANULE, [rights], 1)
    stream, event = d.cuStreamCreate(1)[1], d.cuEventCreate(2)[1]

    def reserve_free() -> None:
        d.cuMemAddressFree(d.cuMemAddressReserve(GRANULE, 0, 0, 0)[1], GRANULE)

    def map_access_unmap() -> None:
        d.cuMemMap(address, GRANULE, 0, handle, 0)
        d.cuMemSetAccess(address, GRANULE, [rights], 1)
        d.cuMemUnmap(address, GRANULE)

    return {
        "current device": (1, d.cuCtxGetDevice),
        "memory info": (1, d.cuMemGetInfo),
        "get_access": (1, lambda: d.cuMemGetAccess(rights.location, shown)),
        "reserve+free": (2, reserve_free),
        "retain+release": (2, lambda: d.cuMemRelease(d.cuMemRetainAllocationHandle(shown)[1])),
        "map+unmap": (2, lambda: (d.cuMemMap(address, GRANULE, 0, handle, 0), d.cuMemUnmap(address, GRANULE))),
        "record+wait": (2, lambda: (d.cuEventRecord(event, stream), d.cuEventSynchronize(event))),
        "create+release": (2, lambda: d.cuMemRelease(d.cuMemCreate(GRANULE, properties, 0)[1])),
        "map+access+unmap": (3, map_access_unmap),
        "write 8": (1, lambda: d.cuMemcpyHtoD(shown, data, 8)),
        "read 8": (1, lambda: d.cuMemcpyDtoH(data, shown, 8)),
    }


def microseconds(calls: Calls) -> dict[str, float]:
    """Of one call each, the best round."""
    found = {}
    for name, (number, call) in calls.items():
        best = 1e9
        for _ in range(ROUNDS):
            start = perf_counter()
            for _ in range(CALLS):
                call()
            best = min(best, perf_counter() - start)
        found[name] = 1e6 * best / CALLS / number
    return found


def inside(vendor: str, kind: str) -> None:
    """In a process of its own: load one library, and print what the calls cost."""
    start = perf_counter()
    from vmm_conformance.drivers.emulated import build, load

    if kind == "empty":
        path = build.library_path(vendor, empty=True)
        kept = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        assert kept
    else:
        library = load(vendor)
        if kind == "silent":
            silence(vendor, library.path)
    loaded = perf_counter() - start
    calls = (hip_calls if vendor == "hip" else cuda_calls)()
    print(json.dumps({"load": 1000 * loaded, "us": microseconds(calls)}))


def silence(vendor: str, path: Path) -> None:
    """Have every body answer success, and do nothing."""
    from vmm_conformance.drivers.emulated import build
    from vmm_conformance.drivers.emulated.entries import entries

    ffi = build.load_module(vendor, path).ffi
    for entry in entries(vendor):
        ffi.def_extern(name=f"body_{entry.body}")(lambda *_: 0)


def _measured(vendor: str, kind: str) -> dict[str, Any]:
    words = [sys.executable, __file__, "--inside", vendor, kind]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(parsed: argparse.Namespace) -> Result:
    from vmm_conformance.drivers.opening import facts

    found: Result = {}
    for vendor, module in BINDINGS.items():
        if find_spec(module.partition(".")[0]) and not facts(f"emulated-{vendor}").missing:
            both = {kind: _measured(vendor, kind) for kind in ("empty", "silent", "full")}
            found[vendor] = {**both, "versions": facts(f"emulated-{vendor}").versions}
    return found


def lines(result: Result) -> list[str]:
    text: list[str] = []
    for vendor in BINDINGS:
        found = result.get(vendor)
        if found is None:
            text.append(f"{vendor}: its binding, or a C compiler, is missing here")
            continue
        empty, silent, full = (found[kind]["us"] for kind in ("empty", "silent", "full"))
        rows = [
            [name + (" *" if name in SYSTEM else ""), empty[name], silent[name], full[name], full[name] / silent[name]]
            for name in full
        ]
        text += [", ".join(f"{name} {version}" for name, version in found["versions"].items())]
        text += [f"import and load: {found['full']['load']:.0f} ms"]
        text += table(["call, us each", "empty C", "silent bodies", "emulated", "times silent"], rows)
    return [*text, "* makes system calls, or moves bytes"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:4])
    else:
        command(__doc__ or "", measure, lines)
