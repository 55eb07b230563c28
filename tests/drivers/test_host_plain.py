"""Plain allocations, discovery and options."""

from __future__ import annotations

import pytest
from host_world import G, Make, now, refused, unchanged

from vmm_conformance.contracts import DriverOptions, Granularity, Live, SpaceSpec, Status
from vmm_conformance.drivers.host import HostDriver

BAD = Status.INVALID_VALUE


@pytest.mark.parametrize("size", [1, 255, 256, 257, 3840, G - 1, G, G + 1, 10 * G + 3])
@pytest.mark.parametrize("space", [0, 1, 5])
def test_alloc_write_read_free(driver: HostDriver, size: int, space: int) -> None:
    address = driver.alloc(size, space=space)
    data = bytes(index % 251 for index in range(size))
    assert now(driver, address, size) == b"\xcb" * size
    driver.write(address, data)
    assert now(driver, address, size) == data
    assert driver.live() == Live(0, 0, 0, 1, size)
    assert driver.mem_info().total - driver.mem_info().free == size
    driver.free(address)
    assert driver.live() == Live(0, 0, 0, 0, 0)


@pytest.mark.parametrize(("space", "alignment"), [(0, 256), (1, 1024), (5, 4096)])
def test_aligned_for_the_space_and_no_better(driver: HostDriver, space: int, alignment: int) -> None:
    assert driver.space_alignment(0, space) == alignment
    addresses = [driver.alloc(size, space=space) for size in (1, 5000, 77)]
    assert [address % alignment for address in addresses] == [0, 0, 0]
    assert any(address % (2 * alignment) for address in addresses)


def test_large_alignments(make: Make) -> None:
    driver = make(spaces={0: SpaceSpec(1), 2: SpaceSpec(1 << 21)})
    assert driver.alloc(3, space=2) % (1 << 21) == 0
    driver.alloc(3)


def test_memory_ends_where_it_ends(driver: HostDriver) -> None:
    address = driver.alloc(100)
    for start, size in ((address + 100, 1), (address, 101), (address - 1, 2)):
        with refused(Status.ILLEGAL_ADDRESS):
            driver.read(start, size)


def test_adjacent_allocations_are_not_one_range(driver: HostDriver) -> None:
    first = driver.alloc(G, space=5)
    second = driver.alloc(G, space=5)
    assert second == first + G
    with refused(Status.ILLEGAL_ADDRESS):
        driver.read(first, 2 * G)


@pytest.mark.parametrize("size", [0, -1])
def test_alloc_wants_a_positive_size(driver: HostDriver, size: int) -> None:
    with unchanged(driver, BAD, "must be positive"):
        driver.alloc(size)


def test_alloc_wants_a_known_device_and_space(driver: HostDriver) -> None:
    with unchanged(driver, Status.INVALID_DEVICE):
        driver.alloc(1, device=1)
    with unchanged(driver, BAD, "memory space 9 is unknown"):
        driver.alloc(1, space=9)


def test_alloc_counts_in_the_capacity(make: Make) -> None:
    driver = make(capacity=2 * G, devices=2)
    driver.alloc(G + 1)
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.alloc(G)
    with unchanged(driver, Status.OUT_OF_MEMORY):
        driver.create(G)
    driver.alloc(G - 1)
    driver.alloc(2 * G, device=1)


def test_free_wants_a_live_allocation(driver: HostDriver) -> None:
    address = driver.alloc(3 * G)
    reserved = driver.reserve(G)
    driver.map(reserved, G, driver.create(G))
    for wrong in (address + 1, address - 1, 0, reserved):
        with unchanged(driver, BAD, "no allocation begins at"):
            driver.free(wrong)
    driver.free(address)
    with unchanged(driver, BAD, "is freed already"):
        driver.free(address)


def test_a_freed_address_comes_back_with_fresh_memory(driver: HostDriver) -> None:
    address = driver.alloc(64)
    driver.write(address, b"secret")
    driver.free(address)
    with refused(Status.ILLEGAL_ADDRESS):
        driver.read(address, 1)
    assert driver.alloc(64) == address
    assert now(driver, address, 6) == b"\xcb" * 6


def test_plain_memory_is_reached_by_peers_alone_where_there_are_any(make: Make) -> None:
    for peers in (True, False):
        driver = make(devices=2, peers=peers)
        address = driver.alloc(8, device=1)
        work = driver.read(address, 8, stream=driver.stream_create(0))
        driver.device_synchronize(0)
        assert (work.fault is None) == peers


# -- discovery


def test_discovery(make: Make) -> None:
    driver = make(devices=2, granularity=Granularity(G, 4 * G))
    assert (driver.name, driver.real, driver.device_count) == ("host", False, 2)
    assert driver.granularity() == driver.granularity(1, 5) == Granularity(G, 4 * G)
    for device in (-1, 2):
        with refused(BAD):
            driver.granularity(device)
        with refused(Status.INVALID_DEVICE):
            driver.space_alignment(device)
        with refused(Status.INVALID_DEVICE):
            driver.can_access_peer(0, device)
        with refused(Status.INVALID_DEVICE):
            driver.stream_create(device)
        with refused(Status.INVALID_DEVICE):
            driver.event_create(device)
        with refused(Status.INVALID_DEVICE):
            driver.device_synchronize(device)
    with refused(BAD):
        driver.granularity(0, 3)
    with refused(BAD):
        driver.space_alignment(0, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices": 0}, "devices is 0, and must be at least 1"),
        ({"capacity": -1}, "capacity is -1 bytes, and must not be negative"),
        ({"granularity": Granularity(3 * G, 4 * G)}, "granularity 12288 must be a power of two"),
        ({"granularity": Granularity(64, G)}, "at least this system's page"),
        ({"granularity": Granularity(2 * G, G)}, "recommended granularity 4096 is below the minimum, 8192"),
        ({"schedule": "soon"}, "schedule 'soon' is unknown; choose 'late' or 'eager'"),
        ({"spaces": {4: SpaceSpec(24)}}, "alignment 24 of memory space 4 must be a power of two"),
    ],
)
def test_impossible_options(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HostDriver(DriverOptions(**changes))  # type: ignore[arg-type]
