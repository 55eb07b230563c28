"""Create, release, retain and the account of memory: V19 to V30, V71, V72."""

from __future__ import annotations

import pytest
from host_world import G, Make, mapped, now, refused, row, unchanged

from vmm_conformance.contracts import Granularity, Live, Status
from vmm_conformance.drivers.host import HostDriver

BAD = Status.INVALID_VALUE


def used(driver: HostDriver, device: int = 0) -> int:
    info = driver.mem_info(device)
    return info.total - info.free


def test_create_takes_memory_and_release_returns_it(driver: HostDriver) -> None:
    handle = driver.create(3 * G)
    assert used(driver) == 3 * G
    driver.release(handle)
    assert used(driver) == 0
    assert driver.live() == Live(0, 0, 0, 0, 0)


@pytest.mark.parametrize("size", [0, -G, 1, G - 1, G + 1])
def test_create_does_not_round(driver: HostDriver, size: int) -> None:
    with unchanged(driver, BAD, "multiple of the granularity"):
        driver.create(size)


def test_create_wants_the_minimum_granularity(make: Make) -> None:
    driver = make(granularity=Granularity(1 << 16, 1 << 21))
    with unchanged(driver, BAD):
        driver.create(G)
    driver.create(1 << 16)


@pytest.mark.parametrize("device", [-1, 2])
def test_create_wants_a_known_device(make: Make, device: int) -> None:
    driver = make(devices=2)
    with unchanged(driver, Status.INVALID_DEVICE, f"device {device} is none of the 2"):
        driver.create(G, device=device)


def test_create_wants_a_known_space(driver: HostDriver) -> None:
    with unchanged(driver, BAD, "memory space 3 is unknown; there are 0, 1, 5"):
        driver.create(G, space=3)


def test_capacity_is_per_device_and_refusal_leaves_it(make: Make) -> None:
    driver = make(devices=2, capacity=4 * G)
    driver.create(3 * G, device=1)
    with unchanged(driver, Status.OUT_OF_MEMORY, f"{2 * G} bytes asked for on device 1, which has {G} bytes free"):
        driver.create(2 * G, device=1)
    driver.create(G, device=1)
    driver.create(4 * G, device=0)
    assert [driver.mem_info(device).free for device in (0, 1)] == [0, 0]


def test_ids_are_never_used_again(driver: HostDriver) -> None:
    seen = []
    for _ in range(20):
        seen.append(driver.create(G))
        driver.release(seen[-1])
        stream = driver.stream_create()
        event = driver.event_create()
        seen += [stream, event]
        driver.stream_destroy(stream)
        driver.event_destroy(event)
    assert len(set(seen)) == len(seen)


def test_released_while_mapped_stays_until_the_last_unmap(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    driver.write(address, b"data")
    driver.release(handle)
    assert now(driver, address, 4) == b"data"
    assert used(driver) == G
    driver.unmap(address, G)
    assert used(driver) == 0, "returned although the reservation lives"
    driver.address_free(address, G)


def test_the_order_of_release_and_unmap_does_not_matter(driver: HostDriver) -> None:
    for release_first in (True, False):
        address, handle = mapped(driver)
        for call in (1, 2) if release_first else (2, 1):
            driver.release(handle) if call == 1 else driver.unmap(address, G)
        assert used(driver) == 0
        driver.address_free(address, G)
    assert driver.live() == Live(0, 0, 0, 0, 0)


def test_null_is_no_handle(driver: HostDriver) -> None:
    address = driver.reserve(G)
    with unchanged(driver, BAD, "handle 0 is no handle"):
        driver.release(0)
    with unchanged(driver, BAD):
        driver.map(address, G, 0)


def test_a_stale_handle_never_frees_another(driver: HostDriver) -> None:
    stale = driver.create(G)
    driver.release(stale)
    driver.create(G)
    with unchanged(driver, Status.INVALID_HANDLE, "its last reference is released"):
        driver.release(stale)
    address = driver.reserve(G)
    with unchanged(driver, Status.INVALID_HANDLE):
        driver.map(address, G, stale)


def test_a_released_handle_that_is_still_mapped_is_stale(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    driver.release(handle)
    with unchanged(driver, Status.INVALID_HANDLE):
        driver.release(handle)
    other = driver.reserve(G)
    with unchanged(driver, Status.INVALID_HANDLE):
        driver.map(other, G, handle)
    assert driver.retain(address) == handle, "but its mapping still leads to it"
    driver.release(handle)


@pytest.mark.parametrize("offset", [0, 1, G, 2 * G - 1])
def test_retain_finds_the_handle_from_any_address(driver: HostDriver, offset: int) -> None:
    address, handle = mapped(driver, 2)
    assert driver.retain(address + offset) == handle


def test_retain_adds_one_reference(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    assert driver.retain(address) == handle
    driver.release(handle)
    driver.unmap(address, G)
    assert used(driver) == G
    driver.map(address, G, handle)
    driver.unmap(address, G)
    driver.release(handle)
    assert used(driver) == 0


def test_retain_wants_a_mapping(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    reserved = driver.reserve(G)
    plain = driver.alloc(G)
    for wrong in (reserved, address + G, plain, 0):
        with unchanged(driver, BAD, "no handle is mapped at"):
            driver.retain(wrong)
    driver.unmap(address, G)
    with unchanged(driver, BAD):
        driver.retain(address)


def test_retain_tells_adjacent_mappings_apart(driver: HostDriver) -> None:
    base, handles = row(driver, 3)
    assert [driver.retain(base + index * G + 7) for index in range(3)] == handles


def test_nothing_drifts_over_many_cycles(driver: HostDriver) -> None:
    for granules in [1, 3, 2] * 100:
        address, handle = mapped(driver, granules)
        driver.write(address, b"x")
        driver.unmap(address, granules * G)
        driver.release(handle)
        driver.address_free(address, granules * G)
    assert driver.live() == Live(0, 0, 0, 0, 0)
    assert used(driver) == 0


def test_mem_info_wants_a_known_device(driver: HostDriver) -> None:
    with refused(Status.INVALID_DEVICE):
        driver.mem_info(1)
