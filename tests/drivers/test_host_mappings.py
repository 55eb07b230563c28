"""Map and unmap: V31 to V47, V59 to V61, V64."""

from __future__ import annotations

from ctypes import string_at

import pytest
from host_world import NONE, RW, G, Make, mapped, now, refused, row, unchanged

from vmm_conformance.contracts import Granularity, Live, Range, Status
from vmm_conformance.drivers.host import HostDriver

BAD = Status.INVALID_VALUE


# -- map


def test_map_outside_every_reservation(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    for wrong in (address + G, address - G, 0, G, -G):
        with unchanged(driver, BAD, "lies in no reservation"):
            driver.map(wrong, G, handle)


def test_map_must_not_leave_its_reservation(driver: HostDriver) -> None:
    first = driver.reserve(2 * G)
    assert driver.reserve(2 * G) == first + 2 * G
    handle = driver.create(2 * G)
    with unchanged(driver, BAD, "leaves its reservation"):
        driver.map(first + G, 2 * G, handle)
    driver.map(first, 2 * G, handle)


@pytest.mark.parametrize(("at", "granules"), [(1, 2), (0, 2), (2, 2), (1, 1), (0, 4), (2, 1)])
def test_map_onto_mapped_is_refused(driver: HostDriver, at: int, granules: int) -> None:
    base = driver.reserve(4 * G)
    driver.map(base + G, 2 * G, driver.create(2 * G))
    driver.set_access(base + G, 2 * G, {0: RW})
    driver.write(base + G, b"old data")
    handle = driver.create(granules * G)
    with unchanged(driver, BAD, "unmap that first"):
        driver.map(base + at * G, granules * G, handle)
    assert now(driver, base + G, 8) == b"old data"


def test_a_refused_map_takes_no_reference(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    other = driver.create(G)
    with refused(BAD):
        driver.map(address, G, other)
    before = driver.mem_info().free
    driver.release(other)
    assert driver.mem_info().free == before + G


@pytest.mark.parametrize(("shift", "size"), [(1, G), (G // 2, G), (0, G - 1), (0, G + 1), (0, 0), (0, -G), (1, G - 1)])
def test_map_wants_whole_granules(driver: HostDriver, shift: int, size: int) -> None:
    base = driver.reserve(4 * G)
    handle = driver.create(4 * G)
    with unchanged(driver, BAD, f"must be multiples of {G}"):
        driver.map(base + shift, size, handle)


def test_map_is_aligned_to_the_minimum_granularity(make: Make) -> None:
    driver = make(granularity=Granularity(1 << 16, 1 << 21))
    base = driver.reserve(1 << 18)
    handle = driver.create(1 << 16)
    with unchanged(driver, BAD):
        driver.map(base + G, 1 << 16, handle)
    driver.map(base + (1 << 16), 1 << 16, handle)


@pytest.mark.parametrize("offset", [G, 1, -G])
def test_offset_must_be_zero(driver: HostDriver, offset: int) -> None:
    base = driver.reserve(G)
    handle = driver.create(4 * G)
    with unchanged(driver, BAD, "must be 0"):
        driver.map(base, G, handle, offset=offset)


def test_offset_where_declared_shows_the_bytes_from_there(make: Make) -> None:
    driver = make(capabilities={"map_offset": True})
    whole, handle = mapped(driver, 4)
    driver.write(whole + 2 * G, b"third granule")
    part = driver.reserve(2 * G)
    for bad in (1, -G, 3 * G, 4 * G):
        with unchanged(driver, BAD):
            driver.map(part, 2 * G, handle, offset=bad)
    driver.map(part, 2 * G, handle, offset=2 * G)
    driver.set_access(part, 2 * G, {0: RW})
    assert now(driver, part, 13) == b"third granule"
    assert string_at(part, 13) == b"third granule"


def test_more_than_the_handle_is_refused(driver: HostDriver) -> None:
    base = driver.reserve(2 * G)
    handle = driver.create(G)
    with unchanged(driver, BAD, "exceed handle"):
        driver.map(base, 2 * G, handle)


@pytest.mark.parametrize("declared", [True, False])
def test_less_than_the_handle_is_a_capability(make: Make, declared: bool) -> None:
    driver = make(capabilities={"partial_map": declared})
    base = driver.reserve(2 * G)
    handle = driver.create(2 * G)
    if not declared:
        with unchanged(driver, BAD, "this driver maps whole handles"):
            driver.map(base, G, handle)
        return
    driver.map(base, G, handle)
    driver.set_access(base, G, {0: RW})
    driver.write(base, b"a" * G)
    with refused(Status.ILLEGAL_ADDRESS):
        driver.read(base, G + 1)


def test_distinct_handles_share_nothing(driver: HostDriver) -> None:
    base, _ = row(driver, 8)
    driver.set_access(base, 8 * G, {0: RW})
    for index in range(8):
        driver.fill(base + index * G, index, G)
    assert [now(driver, base + index * G, G) for index in range(8)] == [bytes([i]) * G for i in range(8)]


# -- unmap


def test_unmap_of_one_leaves_the_neighbours(driver: HostDriver) -> None:
    base, _ = row(driver, 3)
    driver.set_access(base, 3 * G, {0: RW})
    for index in range(3):
        driver.fill(base + index * G, index, G)
    driver.unmap(base + G, G)
    assert (now(driver, base, G), now(driver, base + 2 * G, G)) == (b"\0" * G, b"\2" * G)
    assert driver.get_access(base + 2 * G, 0) is RW
    with refused(BAD):
        driver.get_access(base + G, 0)
    assert string_at(base, G) == b"\0" * G


def test_unmap_of_several_whole_mappings(driver: HostDriver) -> None:
    base, handles = row(driver, 4)
    driver.set_access(base + G, G, {0: RW})
    driver.unmap(base, 3 * G)
    assert driver.live().mappings == 1
    driver.unmap(base + 3 * G, G)
    driver.address_free(base, 4 * G)
    for handle in handles:
        driver.release(handle)
    assert driver.live() == Live(0, 0, 0, 0, 0)


def test_unmap_of_several_where_the_driver_takes_one(make: Make) -> None:
    driver = make(capabilities={"unmap_spans_mappings": False})
    base, _ = row(driver, 2)
    with unchanged(driver, BAD, "unmaps one at a time"):
        driver.unmap(base, 2 * G)
    driver.unmap(base, G)


@pytest.mark.parametrize(("at", "granules"), [(0, 1), (1, 1), (3, 1), (1, 3), (0, 3), (-1, 5), (0, 5), (1, 5)])
def test_unmap_of_a_part_is_refused(driver: HostDriver, at: int, granules: int) -> None:
    base = driver.reserve(8 * G) + G
    driver.map(base, 4 * G, driver.create(4 * G))
    with unchanged(driver, BAD, "must be whole adjacent mappings"):
        driver.unmap(base + at * G, granules * G)


@pytest.mark.parametrize("size", [0, -G, 1, G - 1, G + 1])
def test_unmap_sizes(driver: HostDriver, size: int) -> None:
    address, _ = mapped(driver)
    with unchanged(driver, BAD):
        driver.unmap(address, size)


def test_unmap_over_a_hole_or_nothing_or_twice(driver: HostDriver) -> None:
    base, _ = row(driver, 3)
    driver.unmap(base + G, G)
    for address, size in ((base, 3 * G), (base + G, G), (base + G, 2 * G), (driver.reserve(G), G), (0, G)):
        with unchanged(driver, BAD, "nothing is mapped at"):
            driver.unmap(address, size)


def test_unmap_does_not_cross_reservations(driver: HostDriver) -> None:
    first, _ = mapped(driver)
    second, _ = mapped(driver)
    assert second == first + G
    with unchanged(driver, BAD, "belongs to another reservation"):
        driver.unmap(first, 2 * G)


def test_unmap_does_not_take_plain_memory(driver: HostDriver) -> None:
    address = driver.alloc(G, space=5)
    with unchanged(driver, BAD):
        driver.unmap(address, G)


def test_a_new_map_shows_the_new_handle(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"first")
    driver.unmap(address, G)
    second = driver.create(G)
    driver.map(address, G, second)
    driver.set_access(address, G, {0: RW})
    assert now(driver, address, 5) == b"\xcb" * 5
    driver.write(address, b"second")
    assert string_at(address, 6) == b"second"


def test_bytes_move_with_their_handle(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    driver.write(address, b"moved")
    driver.unmap(address, G)
    elsewhere = driver.reserve(8 * G) + 5 * G
    driver.map(elsewhere, G, handle)
    driver.set_access(elsewhere, G, {0: RW})
    assert (now(driver, elsewhere, 5), string_at(elsewhere, 5)) == (b"moved", b"moved")


def test_growth_keeps_the_old_bytes(driver: HostDriver) -> None:
    address, handle = mapped(driver, 2)
    driver.fill(address, 7, 2 * G)
    driver.unmap(address, 2 * G)
    driver.address_free(address, 2 * G)
    larger = driver.reserve(4 * G)
    driver.map(larger, 2 * G, handle)
    driver.map(larger + 2 * G, 2 * G, driver.create(2 * G))
    driver.set_access(larger, 4 * G, {0: RW})
    assert now(driver, larger, 2 * G) == b"\7" * 2 * G


# -- aliases


def test_aliases_show_one_memory_with_rights_of_their_own(driver: HostDriver) -> None:
    first, handle = mapped(driver)
    second = driver.reserve(G)
    driver.map(second, G, handle)
    assert driver.get_access(second, 0) is NONE
    driver.set_access(second, G, {0: RW})
    driver.write(first, b"through one")
    assert now(driver, second, 11) == b"through one"
    assert string_at(second, 11) == b"through one"
    driver.set_access(first, G, {0: NONE})
    assert driver.get_access(second, 0) is RW
    driver.write(second, b"other")


def test_an_alias_outlives_the_other(driver: HostDriver) -> None:
    first, handle = mapped(driver)
    second = driver.reserve(G)
    driver.map(second, G, handle)
    driver.set_access(second, G, {0: RW})
    driver.write(first, b"shared")
    driver.release(handle)
    driver.unmap(first, G)
    assert now(driver, second, 6) == b"shared"
    assert driver.live().bytes == G
    driver.unmap(second, G)
    assert driver.live().bytes == 0


def test_aliases_inside_one_reservation(driver: HostDriver) -> None:
    base = driver.reserve(3 * G)
    handle = driver.create(G)
    for index in range(3):
        driver.map(base + index * G, G, handle)
    driver.set_access(base, 3 * G, {0: RW})
    driver.write(base + G, b"!")
    assert now(driver, base, 3 * G)[::G] == b"!!!"


# -- queries


def test_address_range_is_the_mapping(driver: HostDriver) -> None:
    base, _ = row(driver, 2, granules=2)
    for address in (base, base + 1, base + 2 * G - 1):
        assert driver.address_range(address) == Range(base, 2 * G)
    assert driver.address_range(base + 2 * G) == Range(base + 2 * G, 2 * G)
    for address in (base + 4 * G, base - 1, 0, driver.reserve(G)):
        with refused(BAD, "nothing is mapped or allocated"):
            driver.address_range(address)


def test_address_range_of_plain_memory(driver: HostDriver) -> None:
    address = driver.alloc(100)
    assert driver.address_range(address + 99) == Range(address, 100)
    with refused(BAD):
        driver.address_range(address + 100)
