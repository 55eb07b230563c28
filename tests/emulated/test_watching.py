"""Calls that reach an emulated library from anywhere, recorded with the stack that made them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import pytest
from emulated_world import G, World, need_library

from vmm_conformance.checkers.client import ACCESS, CALL, LEAK, ORDER, complaints
from vmm_conformance.contracts import DriverOptions, Granularity, Status, Work
from vmm_conformance.drivers.host.quirks import quirky
from vmm_conformance.history.events import SUBJECT
from vmm_conformance.running.watching import Watch

OPTIONS = DriverOptions(granularity=Granularity(G, G), capacity=64 * G)


@pytest.fixture
def watch() -> Iterator[Watch]:
    need_library("cuda")
    made = Watch("cuda", OPTIONS)
    yield made
    made.library.stop()
    made.close()


@pytest.fixture
def world(watch: Watch) -> World:
    found = World("cuda", watch.library, watch.under)  # type: ignore[arg-type]
    found.call("cuInit", 0)
    found.call("cuCtxSetCurrent", found.get("cuDevicePrimaryCtxRetain", 0))
    return found


def _kinds(watch: Watch) -> list[tuple[str, str]]:
    return [(complaint.kind, complaint.finding.invariant) for complaint in complaints(watch.finish())]


def _give_back(world: World, address: int, handle: int) -> None:
    world.call("cuMemUnmap", address, G)
    world.call("cuMemRelease", handle)
    world.call("cuMemAddressFree", address, G)


def test_a_watch_finishes_while_another_thread_goes_on(watch: Watch, world: World) -> None:
    """Work that is run at the end is recorded, while that thread's call waits for the driver."""
    address, _ = world.mapped()
    stream = watch.under.stream_create()
    for _ in range(2):
        watch.under.fill(address, 1, 8, stream=stream)
    calls = threading.Thread(target=watch.recorder.subject.mem_info, daemon=True)
    finish = threading.Thread(target=watch.finish, daemon=True)

    def ran(work: Work) -> None:
        if not calls.ident:
            calls.start()
            calls.join(0.05)

    watch.recorder.hear_too(ran)
    for thread in (finish, calls):
        if thread is finish:
            thread.start()
        thread.join(5)
        assert not thread.is_alive()
    assert [event.kind for event in watch.history][-3:] == ["ran", "ran", "mem_info"]


def test_calls_are_in_the_history_with_their_stacks(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    _give_back(world, address, handle)
    mine = [event for event in watch.history if event.who == SUBJECT]
    assert [event.kind for event in mine] == [
        "reserve", "create", "map", "set_access", "unmap", "release", "address_free",
    ]  # fmt: skip
    functions = [place.function for place in watch.recorder.places(mine[-1].seq)]
    assert functions[:4] == [
        "World.call", "_give_back", "test_calls_are_in_the_history_with_their_stacks", "pytest_pyfunc_call",
    ]  # fmt: skip
    assert watch.recorder.places(mine[-1].seq)[1].file == __file__
    assert _kinds(watch) == []


def test_what_is_left_is_a_leak(watch: Watch, world: World) -> None:
    address, _ = world.mapped()
    plain = world.get("cuMemAlloc_v2", 100)
    world.call("cuMemUnmap", address, G)
    found = complaints(watch.finish())
    assert [(c.kind, c.finding.message) for c in found] == [
        (LEAK, f"handle 1 of {G} bytes: 1 reference(s), not mapped"),
        (LEAK, f"100 bytes of plain memory at {plain:#x}"),
        (LEAK, f"the reservation {address:#x}+{G}"),
    ]


def test_a_refused_call_names_the_rule_it_breaks(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    world.call("cuMemAddressFree", address, 2 * G)
    world.call("cuMemUnmap", address, G // 2)
    world.call("cuMemMap", address, G, 0, handle, 9)  # refused by the library, and never the driver's
    world.call("cuMemCreate", ctypes.byref(ctypes.c_size_t()), 1 << 50, world.properties(), 0)  # no fault of anybody's
    _give_back(world, address, handle)
    assert _kinds(watch) == [(CALL, "DRIVER-14"), (CALL, "DRIVER-42"), (CALL, "")]


def test_access_after_an_unmap_tells_of_both(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    _give_back(world, address, handle)
    world.write(address, b"too late")
    (found,) = complaints(watch.finish())
    assert (found.kind, found.finding.invariant) == (ACCESS, "DRIVER-49")
    assert found.finding.message == f"write of {address:#x}+8 after it was unmapped"
    assert [place.function for place in watch.recorder.places(found.finding.seq)][:2] == ["World.call", "World.write"]
    assert found.cause is not None
    assert watch.history.events[found.cause].kind == "unmap"


def test_queued_work_that_finds_nothing_is_blamed_on_what_took_it(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    stream = world.get("cuStreamCreate", 1)
    world.call("cuMemsetD8Async", address, 1, 8, stream)
    _give_back(world, address, handle)
    assert world.call("cuStreamSynchronize", stream) == Status.ILLEGAL_ADDRESS
    found = complaints(watch.finish())
    assert [(c.kind, c.finding.invariant) for c in found] == [(ORDER, "ALLOCATOR-5"), (ACCESS, "ALLOCATOR-5")]
    events = watch.history.events
    kinds = [(events[c.finding.seq].kind, events[c.cause or 0].kind) for c in found]
    assert kinds == [("unmap", "fill"), ("fill", "unmap")]


def test_an_unmap_behind_a_wait_is_in_order(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    stream, event = world.get("cuStreamCreate", 1), world.get("cuEventCreate", 2)
    world.call("cuMemsetD8Async", address, 1, 8, stream)
    world.call("cuEventRecord", event, stream)
    world.call("cuEventSynchronize", event)
    _give_back(world, address, handle)
    assert _kinds(watch) == []


def test_work_that_is_still_queued_at_the_end_is_judged_too(watch: Watch, world: World) -> None:
    address, handle = world.mapped()
    world.call("cuMemsetD8Async", address + G, 1, 8, world.get("cuStreamCreate", 1))
    _give_back(world, address, handle)
    assert _kinds(watch) == [(ACCESS, "DRIVER-49")]


def test_failures_can_be_injected(watch: Watch, world: World) -> None:
    watch.recorder.faults.inject("create", 2, 12345)
    handle = world.get("cuMemCreate", G, world.properties(), 0)
    assert world.call("cuMemCreate", ctypes.byref(ctypes.c_size_t()), G, world.properties(), 0) == 12345
    assert world.call("cuMemRelease", handle) == 0


def test_quirks_work_through_a_library() -> None:
    need_library("cuda")
    watch = Watch("cuda", OPTIONS, quirky(("Q-27",)))
    world = World("cuda", watch.library, watch.under)  # type: ignore[arg-type]
    address = world.get("cuMemAddressReserve", G, 0, 0, 0)
    hinted = world.call("cuMemAddressReserve", ctypes.byref(ctypes.c_size_t()), G, 0, address, 0)
    assert hinted == Status.OUT_OF_MEMORY
    watch.finish()
    watch.close()
