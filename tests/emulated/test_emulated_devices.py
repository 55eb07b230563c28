"""Devices, contexts, errors and functions by name."""

from __future__ import annotations

import ctypes
import threading

from emulated_world import G, MakeWorld, World

from vmm_conformance.contracts import Status


def test_devices_are_counted_named_and_described(make_world: MakeWorld) -> None:
    world = make_world("cuda", devices=2)
    assert world.get("cuDeviceGetCount") == 2
    assert world.get("cuDeviceGet", 1) == 1
    assert world.call("cuDeviceGet", ctypes.byref(ctypes.c_int()), 2) == Status.INVALID_DEVICE
    name = ctypes.create_string_buffer(100)
    assert world.call("cuDeviceGetName", name, 100, 1) == 0
    assert name.value == b"vmm-conformance emulated device 1"
    assert world.call("cuDeviceGetName", name, 5, 1) == 0
    assert name.value == b"vmm-"
    uuids = [ctypes.create_string_buffer(16) for _ in range(2)]
    assert [world.call("cuDeviceGetUuid_v2", uuid, n) for n, uuid in enumerate(uuids)] == [0, 0]
    assert uuids[0].raw != uuids[1].raw
    assert world.get("cuDeviceTotalMem_v2", 1) == 64 * G
    assert world.get("cuDeviceCanAccessPeer", 0, 1) & 0xFFFFFFFF == 1
    assert world.get("cuDeviceCanAccessPeer", 0, 0) & 0xFFFFFFFF == 0


def test_hip_has_a_current_device_in_each_thread(make_world: MakeWorld) -> None:
    world = make_world("hip", devices=2)
    assert world.call("hipSetDevice", 1) == 0
    assert world.get("hipGetDevice") == 1
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(world.get("hipGetDevice")))
    thread.start()
    thread.join()
    assert seen == [0]
    assert world.call("hipSetDevice", 2) == Status.INVALID_DEVICE


def test_cuda_needs_a_context_for_a_devices_calls(make_world: MakeWorld) -> None:
    world = make_world("cuda", devices=2)
    second = world.get("cuDevicePrimaryCtxRetain", 1)
    assert world.call("cuCtxPushCurrent_v2", second) == 0
    assert world.get("cuCtxGetDevice") == 1
    assert world.get("cuCtxPopCurrent_v2") == second
    assert world.get("cuCtxGetDevice") == 0
    assert world.call("cuCtxSetCurrent", 0) == 0
    assert world.get("cuCtxGetCurrent") == 0
    assert world.call("cuMemAlloc_v2", ctypes.byref(ctypes.c_size_t()), 8) == Status.INVALID_CONTEXT
    assert world.call("cuCtxSetCurrent", 12345) == Status.INVALID_CONTEXT
    made = world.get("cuCtxCreate_v2", 0, 1)
    assert world.get("cuCtxGetCurrent") == made
    assert world.call("cuCtxDestroy_v2", made) == 0
    assert world.call("cuCtxSetCurrent", made) == Status.INVALID_CONTEXT
    assert [world.call("cuDevicePrimaryCtxRelease_v2", 1) for _ in range(2)] == [0, Status.INVALID_CONTEXT]


def test_peer_access_is_given_once(make_world: MakeWorld) -> None:
    world = make_world("hip", devices=2)
    assert [world.call("hipDeviceEnablePeerAccess", 1, 0) for _ in range(2)] == [0, 704]
    assert [world.call("hipDeviceDisablePeerAccess", 1) for _ in range(2)] == [0, 705]
    assert make_world("hip", devices=2, peers=False).call("hipDeviceEnablePeerAccess", 1, 0) == Status.INVALID_VALUE


def test_errors_have_names(make_world: MakeWorld) -> None:
    cuda, hip = make_world("cuda"), make_world("hip")
    out = ctypes.c_char_p()
    assert cuda.call("cuGetErrorName", 1, ctypes.byref(out)) == 0
    assert out.value == b"CUDA_ERROR_INVALID_VALUE"
    assert cuda.call("cuGetErrorString", 2, ctypes.byref(out)) == 0
    assert out.value == b"out of memory"
    assert cuda.call("cuGetErrorName", 4711, ctypes.byref(out)) == Status.INVALID_VALUE
    assert out.value is None
    hip.c.hipGetErrorName.restype = ctypes.c_char_p
    assert hip.c.hipGetErrorName(700) == b"hipErrorIllegalAddress"
    assert hip.c.hipGetErrorName(4711) == b"unknown error code"


def test_hip_remembers_the_last_error_of_a_thread(make_world: MakeWorld) -> None:
    world = make_world("hip")
    assert world.call("hipMemUnmap", 4096, 4096) == 1
    assert world.get("hipGetDevice") == 0
    assert [world.c.hipPeekAtLastError(), world.c.hipGetLastError(), world.c.hipGetLastError()] == [1, 1, 0]


def test_what_is_not_emulated_says_so_and_is_counted(world: World) -> None:
    world.library.missing.clear()
    name = {"cuda": "cuArrayCreate_v2", "hip": "hipArrayCreate"}[world.vendor].removesuffix("_v2")
    assert [world.call(name, hip=name) for _ in range(2)] == [Status.NOT_SUPPORTED] * 2
    assert world.library.missing == {name: 2}


def _asked(world: World, name: bytes, version: int) -> tuple[int, int, int]:
    out, found = ctypes.c_size_t(), ctypes.c_int(9)
    flags = ctypes.c_uint64()
    ask = world.c.cuGetProcAddress_v2 if world.vendor == "cuda" else world.c.hipGetProcAddress
    status = ask(name, ctypes.byref(out), version, flags, ctypes.byref(found))
    return status, out.value, found.value


def _address(world: World, name: str) -> int:
    return ctypes.cast(getattr(world.c, name), ctypes.c_void_p).value or 0


def test_functions_are_found_by_name_and_version(make_world: MakeWorld) -> None:
    world = make_world("cuda")
    assert _asked(world, b"cuMemcpyHtoD", 3020) == (0, _address(world, "cuMemcpyHtoD_v2"), 0)
    assert _asked(world, b"cuMemCreate", 10020) == (0, _address(world, "cuMemCreate"), 0)
    assert _asked(world, b"cuCtxCreate", 3020)[1] == _address(world, "cuCtxCreate_v2")
    assert _asked(world, b"cuCtxCreate", 12000)[1] == _address(world, "cuCtxCreate_v3")
    assert _asked(world, b"cuCtxCreate", 13000)[1] == _address(world, "cuCtxCreate_v4")
    assert _asked(world, b"cuCtxSynchronize", 12000)[1] == _address(world, "cuCtxSynchronize")
    assert _asked(world, b"cuCtxSynchronize", 13000)[1] == _address(world, "cuCtxSynchronize_v2")
    assert _asked(world, b"cuNobodyKnowsThis", 13000) == (0, 0, 1)
    assert world.c.cuGetProcAddress(b"cuNobodyKnowsThis", ctypes.byref(ctypes.c_size_t()), 13000, 0) == 500
    assert _asked(make_world("hip"), b"hipMemMap", 0)[2] == 0


def test_nothing_is_answered_without_a_driver(world: World) -> None:
    world.library.stop()
    assert world.call("cuMemUnmap", 4096, 4096) == Status.NOT_INITIALIZED
    world.library.start(world.driver)
    assert world.call("cuMemUnmap", 4096, 4096) == Status.INVALID_VALUE


def test_cuda_wants_to_be_initialized_first(make_world: MakeWorld) -> None:
    world = make_world("cuda")
    world.library.start(world.driver)
    assert world.call("cuDeviceGetCount", ctypes.byref(ctypes.c_int())) == Status.NOT_INITIALIZED
