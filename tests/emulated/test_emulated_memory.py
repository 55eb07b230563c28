"""The memory calls of the emulated libraries, as a C program makes them."""

from __future__ import annotations

import ctypes
import os

import pytest
from emulated_world import G, MakeWorld, World

from vmm_conformance.contracts import DriverCapabilities, Live, Status

IV = Status.INVALID_VALUE


def test_the_life_cycle_and_everything_given_back(world: World) -> None:
    address, handle = world.mapped()
    assert world.write(address, b"hello") == 0
    assert world.read(address, 5) == b"hello"
    assert world.get("cuMemRetainAllocationHandle", address + 5) == handle
    assert world.driver.live() == Live(1, 1, 1, 0, G)
    assert world.call("cuMemUnmap", address, G) == 0
    assert [world.call("cuMemRelease", handle) for _ in range(3)] == [0, 0, Status.INVALID_HANDLE]
    assert world.call("cuMemAddressFree", address, G) == 0
    assert world.driver.live() == Live(0, 0, 0, 0, 0)


def test_what_the_driver_refuses_comes_back_as_its_status(world: World) -> None:
    address, _ = world.mapped()
    assert world.call("cuMemAddressFree", address, G) == IV  # mapped
    assert world.call("cuMemUnmap", address, G // 2) == IV
    assert world.call("cuMemUnmap", 0, 0) == IV
    out = ctypes.c_size_t(77)
    assert world.call("cuMemCreate", ctypes.byref(out), 1 << 60, world.properties(), 0) == Status.OUT_OF_MEMORY
    assert world.call("cuMemCreate", ctypes.byref(out), G, world.properties(device=9), 0) == Status.INVALID_DEVICE
    assert world.call("cuMemAddressReserve", ctypes.byref(out), G - 1, 0, 0, 0) == IV
    assert out.value == 77


def test_what_only_the_interface_can_get_wrong(world: World) -> None:
    address, handle = world.mapped()
    out = ctypes.byref(ctypes.c_size_t())
    assert world.call("cuMemAddressReserve", None, G, 0, 0, 0) == IV
    assert world.call("cuMemAddressReserve", out, G, 0, 0, 1) == IV
    assert world.call("cuMemCreate", None, G, world.properties(), 0) == IV
    assert world.call("cuMemCreate", out, G, None, 0) == IV
    assert world.call("cuMemCreate", out, G, world.properties(), 1) == IV
    assert world.call("cuMemCreate", out, G, world.properties(kind=7), 0) == IV
    assert world.call("cuMemCreate", out, G, world.properties(location=9), 0) == IV
    assert world.call("cuMemCreate", out, G, world.properties(location=2), 0) == Status.NOT_SUPPORTED
    assert world.call("cuMemMap", address, G, 0, 0, 0) == IV
    assert world.call("cuMemMap", address, G, 0, handle, 1) == IV
    assert world.call("cuMemSetAccess", address, G, None, 1) == IV
    assert world.call("cuMemSetAccess", address, G, world.rights((0, 3)), 0) == IV
    assert world.call("cuMemSetAccess", address, G, world.rights((0, -1)), 1) == IV
    assert world.call("cuMemSetAccess", address, G, world.rights((-1, 3)), 1) == IV
    assert world.call("cuMemGetAccess", None, world.properties(), address) == IV
    assert world.call("cuMemRetainAllocationHandle", None, address) == IV
    assert world.call("cuMemGetAllocationGranularity", out, world.properties(), 5) == IV
    assert world.call("cuMemGetAllocationGranularity", None, world.properties(), 0) == IV


def test_granularity_access_and_properties_can_be_asked_for(world: World) -> None:
    address, handle = world.mapped(flags=1)
    assert world.get("cuMemGetAllocationGranularity", world.properties(), 0) == G
    assert world.get("cuMemGetAllocationGranularity", world.properties(), 1) == 2 * G
    location = (ctypes.c_int * 2)(1, 0)
    assert world.get("cuMemGetAccess", location, address + G - 1) == 1
    found = (ctypes.c_int * 8)(*range(8))
    assert world.call("cuMemGetAllocationPropertiesFromHandle", found, handle) == 0
    assert list(found) == [1, 0, 1, 0, 0, 0, 0, 0]
    assert world.call("cuMemGetAllocationPropertiesFromHandle", found, 99) == Status.INVALID_HANDLE
    assert world.call("cuMemGetAllocationPropertiesFromHandle", found, 0) == IV


def test_host_access_to_a_devices_memory_is_hips_alone(world: World) -> None:
    address, _ = world.mapped()
    host = (ctypes.c_int * 3)(2, 0, 3)
    expected = 0 if world.vendor == "hip" else Status.NOT_SUPPORTED
    assert world.call("cuMemSetAccess", address, G, host, 1) == expected


def test_the_upper_half_of_an_int_is_no_part_of_it(world: World) -> None:
    """A C int is 32 bits of a register; callers leave anything in the rest."""
    dirt = 0xDEAD_0000_0000_0000
    assert world.get("cuMemGetAllocationGranularity", world.properties(), dirt) == G
    assert world.get("cuDeviceGetAttribute", dirt | {"cuda": 102, "hip": 89}[world.vendor], dirt) & 0xFFFF_FFFF == 1


def test_plain_memory_its_range_and_free_memory(world: World) -> None:
    free = [ctypes.c_size_t(), ctypes.c_size_t()]
    ask = [ctypes.byref(number) for number in free]
    assert world.call("cuMemGetInfo_v2", *ask, hip="hipMemGetInfo") == 0
    assert [number.value for number in free] == [64 * G, 64 * G]
    address = world.get("cuMemAlloc_v2", 1000, hip="hipMalloc")
    assert world.call("cuMemGetAddressRange_v2", *ask, address + 999, hip="hipMemGetAddressRange") == 0
    assert [number.value for number in free] == [address, 1000]
    assert world.call("cuMemGetInfo_v2", *ask, hip="hipMemGetInfo") == 0
    assert free[0].value == 64 * G - 1000
    assert world.write(address, b"x" * 1000) == 0
    assert world.call("cuMemFree_v2", address, hip="hipFree") == 0
    assert world.call("cuMemFree_v2", address, hip="hipFree") == IV


def test_host_memory_is_allocated_registered_and_found(world: World) -> None:
    pinned = world.get("cuMemHostAlloc", 100, 0, hip="hipHostMalloc")
    assert world.get("cuMemHostGetDevicePointer_v2", pinned + 5, 0, hip="hipHostGetDevicePointer") == pinned + 5
    own = ctypes.create_string_buffer(b"own memory")
    where = ctypes.addressof(own)
    register = [world.call("cuMemHostRegister_v2", where, 10, 0, hip="hipHostRegister") for _ in range(2)]
    assert register == [0, 712]
    unregister = [world.call("cuMemHostUnregister", where, hip="hipHostUnregister") for _ in range(2)]
    assert unregister == [0, 713]
    free = [world.call("cuMemFreeHost", pinned, hip="hipHostFree") for _ in range(2)]
    assert free == [0, IV]


def test_pointer_attributes_tell_device_memory_from_the_hosts(world: World) -> None:
    address, _ = world.mapped()
    pinned = world.get("cuMemHostAlloc", 100, 0, hip="hipHostMalloc")
    out = ctypes.c_size_t()

    def fact(attribute: int, where: int) -> tuple[int, int]:
        out.value = 0
        return world.call("cuPointerGetAttribute", ctypes.byref(out), attribute, where), out.value

    assert [fact(2, address), fact(9, address), fact(11, address + 9), fact(12, address)] == [
        (0, 2), (0, 0), (0, address), (0, G),
    ]  # fmt: skip
    assert fact(2, pinned + 1) == (0, 1)
    assert fact(2, 4096)[0] == IV


def test_hips_struct_of_pointer_attributes(make_world: MakeWorld) -> None:
    world = make_world("hip")
    address, _ = world.mapped()
    found = (ctypes.c_uint * 8)()
    assert world.call("hipPointerGetAttributes", found, address) == 0
    assert (found[0], found[1], found[2] | found[3] << 32, found[6]) == (2, 0, address, 0)
    assert world.call("hipPointerGetAttributes", found, 4096) == IV


def test_memory_goes_out_as_a_descriptor_and_comes_back_as_a_handle(world: World) -> None:
    handle = world.get("cuMemCreate", G, world.properties(handles=1), 0)
    out = ctypes.c_int()
    assert world.call("cuMemExportToShareableHandle", ctypes.byref(out), handle, 1, 0) == 0
    imported = world.get("cuMemImportFromShareableHandle", out.value, 1)
    os.close(out.value)
    assert imported != handle
    told = (ctypes.c_int * 8)()
    assert world.call("cuMemGetAllocationPropertiesFromHandle", told, imported) == 0
    assert list(told[:4]) == list(world.properties(handles=1)[:4])


def test_memory_is_shared_as_what_it_was_created_for(world: World) -> None:
    _, handle = world.mapped()
    out = ctypes.byref(ctypes.c_int())
    assert world.call("cuMemExportToShareableHandle", out, handle, 1, 0) == IV
    assert world.call("cuMemImportFromShareableHandle", ctypes.byref(ctypes.c_size_t()), 99, 2) == IV


def test_only_plain_memory_has_a_legacy_handle(world: World) -> None:
    out = ctypes.create_string_buffer(64)
    plain = world.get("cuMemAlloc_v2", G, hip="hipMalloc")
    assert world.call("cuIpcGetMemHandle", out, plain) == 0
    assert world.call("cuIpcGetMemHandle", out, world.mapped()[0]) == IV


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_what_its_driver_does_not_share_is_not_supported_and_remembered(make_world: MakeWorld, vendor: str) -> None:
    world = make_world(vendor, capabilities=DriverCapabilities(sharing=False))
    _, handle = world.mapped()
    out = ctypes.byref(ctypes.c_size_t())
    assert world.call("cuMemExportToShareableHandle", out, handle, 1, 0) == Status.NOT_SUPPORTED
    assert world.call("cuMemExportToShareableHandle", None, handle, 1, 0) == IV
    prefix = "cu" if world.vendor == "cuda" else "hip"
    assert world.library.missing[f"{prefix}MemExportToShareableHandle"] >= 1


@pytest.mark.parametrize("direction", ["in", "out"])
def test_the_host_is_refused_what_no_device_may_touch(world: World, direction: str) -> None:
    address = world.get("cuMemAddressReserve", G, 0, 0, 0)
    data = ctypes.create_string_buffer(8)
    if direction == "in":
        assert world.write(address, b"12345678") == IV
    else:
        assert world.call("cuMemcpyDtoH_v2", data, address, 8, hip="hipMemcpyDtoH") == IV
