"""Streams, events, copies in order, capture and graphs of the emulated libraries."""

from __future__ import annotations

import ctypes

from emulated_world import G, MakeWorld, World

from vmm_conformance.contracts import Status

LEGACY = 0
BLOCKING, NON_BLOCKING = 0, 1


def _stream(world: World, flags: int = NON_BLOCKING) -> int:
    return world.get("cuStreamCreate", flags, hip="hipStreamCreateWithFlags")


def _event(world: World, flags: int = 2) -> int:
    return world.get("cuEventCreate", flags, hip="hipEventCreateWithFlags")


def _fill(world: World, address: int, value: int, count: int, stream: int) -> int:
    return world.call("cuMemsetD8Async", address, value, count, stream, hip="hipMemsetD8Async")


def _read_later(world: World, target: ctypes.Array[ctypes.c_char], address: int, size: int, stream: int) -> int:
    return world.call("cuMemcpyDtoHAsync_v2", target, address, size, stream, hip="hipMemcpyDtoHAsync")


def test_work_runs_when_it_is_waited_for_and_in_order(world: World) -> None:
    address, _ = world.mapped()
    stream = _stream(world)
    seen = ctypes.create_string_buffer(b"....")
    assert _fill(world, address, 65, 4, stream) == 0
    assert _read_later(world, seen, address, 2, stream) == 0
    assert _fill(world, address, 66, 4, stream) == 0
    assert (seen.raw[:4], world.call("cuStreamQuery", stream)) == (b"....", Status.NOT_READY)
    assert world.call("cuStreamSynchronize", stream) == 0
    assert (seen.raw[:4], world.read(address, 4)) == (b"AA..", b"BBBB")
    assert world.call("cuStreamQuery", stream) == 0
    assert world.call("cuStreamDestroy_v2", stream, hip="hipStreamDestroy") == 0
    assert world.call("cuStreamSynchronize", stream) == Status.INVALID_HANDLE


def test_an_event_is_the_moment_it_was_recorded_at(world: World) -> None:
    address, _ = world.mapped()
    first, second, event = _stream(world), _stream(world), _event(world, 0)
    assert world.call("cuEventQuery", event) == 0
    _fill(world, address, 65, 1, first)
    assert world.call("cuEventRecord", event, first) == 0
    assert world.call("cuStreamWaitEvent", second, event, 0) == 0
    _fill(world, address + 1, 66, 1, second)
    assert world.call("cuEventQuery", event) == Status.NOT_READY
    assert world.call("cuStreamSynchronize", second) == 0
    assert world.read(address, 2) == b"AB"
    assert world.call("cuEventSynchronize", event) == 0
    elapsed = ctypes.c_float(-1)
    assert world.call("cuEventElapsedTime", ctypes.byref(elapsed), event, event) == 0
    assert elapsed.value == 0
    assert world.call("cuEventDestroy_v2", event, hip="hipEventDestroy") == 0
    assert world.call("cuEventQuery", event) == Status.INVALID_HANDLE


def test_the_default_stream_and_blocking_ones_wait_for_each_other(world: World) -> None:
    address, _ = world.mapped()
    blocking, apart = _stream(world, BLOCKING), _stream(world)
    seen = ctypes.create_string_buffer(4)
    _fill(world, address, 65, 4, blocking)
    _fill(world, address, 66, 2, LEGACY)  # behind the blocking stream's work
    _fill(world, address, 67, 1, blocking)  # behind the default stream's
    _fill(world, address + 3, 68, 1, apart)
    _read_later(world, seen, address, 4, blocking)
    assert world.call("cuStreamSynchronize", blocking) == 0
    assert seen.raw == b"CBAA"
    assert world.call("cuStreamQuery", apart) == 0  # its only work ran now
    assert world.read(address, 4) == b"CBAD"


def test_a_copy_without_a_stream_waits_for_the_default_one(world: World) -> None:
    address, _ = world.mapped()
    target = world.get("cuMemAlloc_v2", 8, hip="hipMalloc")
    world.write(address, b"original")
    assert world.call("cuMemcpyDtoD_v2", target, address, 8, hip="hipMemcpyDtoD") == 0
    assert _fill(world, target, 65, 1, LEGACY) == 0
    assert world.read(target, 8) == b"Ariginal"


def test_copies_find_their_direction(make_world: MakeWorld) -> None:
    cuda, hip = make_world("cuda"), make_world("hip")
    for world in (cuda, hip):
        address, _ = world.mapped()
        one, two = ctypes.create_string_buffer(b"by itself"), ctypes.create_string_buffer(9)
        anywhere = (4,) if world is hip else ()
        assert world.call("cuMemcpy", address, one, 9, *anywhere) == 0
        assert world.call("cuMemcpy", address + 9, address, 9, *anywhere) == 0
        assert world.call("cuMemcpy", two, address + 9, 9, *anywhere) == 0
        assert two.raw == b"by itself"
        assert world.call("cuMemcpy", two, ctypes.c_char_p(b"the hosts"), 9, *anywhere) == 0
        assert two.raw == b"the hosts"
    assert hip.call("hipMemcpy", two, one, 9, 9) == Status.INVALID_VALUE


def test_fills_of_all_widths(world: World) -> None:
    address, _ = world.mapped()
    assert world.call("cuMemsetD32_v2", address, 0x44434241, 2, hip="hipMemsetD32") == 0
    assert world.call("cuMemsetD16_v2", address + 2, 0x5A59, 1, hip="hipMemsetD16") == 0
    assert world.call("cuMemsetD8_v2", address + 7, 0x121, 1, hip="hipMemsetD8") == 0
    assert world.read(address, 8) == b"ABYZABC!"
    assert world.call("cuMemsetD32_v2", address + 2, 1, 1, hip="hipMemsetD32") == Status.INVALID_VALUE


def test_a_fault_is_told_once_by_whatever_waits_for_its_stream(world: World) -> None:
    address, _ = world.mapped()
    good, bad = _stream(world), _stream(world)
    _fill(world, address, 65, 4, good)
    _fill(world, address + G, 65, 4, bad)  # nothing is there
    assert world.call("cuStreamSynchronize", good) == 0
    assert [world.call("cuStreamSynchronize", bad) for _ in range(2)] == [Status.ILLEGAL_ADDRESS, 0]
    assert world.write(address, b"goes on") == 0


def test_freeing_plain_memory_waits_for_work(world: World) -> None:
    address = world.get("cuMemAlloc_v2", 64, hip="hipMalloc")
    stream = _stream(world)
    _fill(world, address, 65, 64, stream)
    assert world.call("cuMemFree_v2", address, hip="hipFree") == 0
    assert world.call("cuStreamSynchronize", stream) == 0
    queued = world.get("cuMemAllocAsync", 64, stream, hip="hipMallocAsync")
    assert world.call("cuMemFreeAsync", queued, stream, hip="hipFreeAsync") == 0
    assert world.driver.live().allocations == 0


def test_host_functions_run_in_the_streams_order(world: World) -> None:
    address, _ = world.mapped()
    stream = _stream(world)
    seen = ctypes.create_string_buffer(1)
    order: list[bytes] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: order.append(seen.raw + str(data).encode()))
    _fill(world, address, 65, 1, stream)
    _read_later(world, seen, address, 1, stream)
    assert world.call("cuLaunchHostFunc", stream, call, 7) == 0
    _fill(world, address, 66, 1, stream)
    _read_later(world, seen, address, 1, stream)
    assert order == []
    world.call("cuStreamSynchronize", stream)
    assert (order, seen.raw) == ([b"A7"], b"B")


def _captured(world: World, stream: int, seen: ctypes.Array[ctypes.c_char], address: int) -> int:
    assert world.call("cuStreamBeginCapture_v2", stream, 0, hip="hipStreamBeginCapture") == 0
    assert world.get("cuThreadExchangeStreamCaptureMode") == 0
    state = ctypes.c_int()
    assert world.call("cuStreamIsCapturing", stream, ctypes.byref(state)) == 0
    assert state.value == 1
    _fill(world, address, 65, 1, stream)
    _read_later(world, seen, address, 2, stream)
    graph = ctypes.c_size_t()
    assert world.call("cuStreamEndCapture", stream, ctypes.byref(graph)) == 0
    return graph.value


def test_a_graph_is_launched_again_and_again(world: World) -> None:
    address, _ = world.mapped()
    stream, seen = _stream(world), ctypes.create_string_buffer(2)
    graph = _captured(world, stream, seen, address)
    executable = world.get("cuGraphInstantiateWithFlags", graph, 0)
    for last in (b"x", b"y"):
        world.write(address, b"?" + last)
        assert world.call("cuGraphLaunch", executable, stream) == 0
        assert world.call("cuStreamSynchronize", stream) == 0
        assert seen.raw == b"A" + last
    assert world.call("cuGraphExecDestroy", executable) == 0
    assert world.call("cuGraphDestroy", graph) == 0
    assert world.call("cuGraphLaunch", executable, stream) == Status.INVALID_HANDLE


def test_waiting_spoils_a_capture(world: World) -> None:
    stream = _stream(world)
    assert world.call("cuStreamBeginCapture_v2", stream, 0, hip="hipStreamBeginCapture") == 0
    assert world.call("cuStreamSynchronize", stream) == Status.STREAM_CAPTURE_UNSUPPORTED
    graph = ctypes.byref(ctypes.c_size_t())
    assert world.call("cuStreamEndCapture", stream, graph) == Status.STREAM_CAPTURE_INVALIDATED


def test_streams_tell_what_they_are(make_world: MakeWorld) -> None:
    world = make_world("cuda", devices=2)
    out = ctypes.c_size_t()
    stream = _stream(world)
    assert world.call("cuStreamGetFlags", stream, ctypes.byref(out)) == 0
    assert out.value == NON_BLOCKING
    assert world.call("cuStreamGetCtx", stream, ctypes.byref(out)) == 0
    assert out.value == world.get("cuCtxGetCurrent")
    assert world.call("cuStreamGetCtx", 2, ctypes.byref(out)) == 0  # the thread's own default stream
    assert world.call("cuStreamDestroy_v2", 1) == Status.INVALID_HANDLE


def test_an_eager_driver_has_run_everything_at_once(make_world: MakeWorld) -> None:
    world = make_world("cuda", schedule="eager")
    address, _ = world.mapped()
    stream, seen = _stream(world), ctypes.create_string_buffer(2)
    _fill(world, address, 65, 2, stream)
    _read_later(world, seen, address, 2, stream)
    assert seen.raw == b"AA"
    _fill(world, address + G, 65, 2, stream)
    assert world.call("cuStreamQuery", stream) == Status.ILLEGAL_ADDRESS
