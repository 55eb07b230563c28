"""Reserve and address_free: V07 to V18."""

from __future__ import annotations

from itertools import pairwise

import pytest
from host_world import G, Make, mapped, now, refused, row, unchanged

from vmm_conformance.contracts import Granularity, Status
from vmm_conformance.drivers.host import HostDriver

BAD = Status.INVALID_VALUE


@pytest.mark.parametrize("granules", [1, 2, 7, 63, 100_000])
def test_reserves_whole_granules_at_a_granule(driver: HostDriver, granules: int) -> None:
    assert driver.reserve(granules * G) % G == 0


def test_bases_are_multiples_of_a_large_granularity(make: Make) -> None:
    driver = make(granularity=Granularity(1 << 21, 1 << 21))
    assert [driver.reserve(1 << 21) % (1 << 21) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("shift", [0, 1, 12, 13, 16, 22, 30, 32])
def test_alignment_is_honoured_above_the_granularity(driver: HostDriver, shift: int) -> None:
    driver.reserve(3 * G)
    for _ in range(2):
        assert driver.reserve(G, alignment=1 << shift) % (1 << shift) == 0


def test_no_address_is_better_aligned_than_asked_for(driver: HostDriver) -> None:
    assert driver.reserve(G) % (2 * G) == G


def test_live_reservations_do_not_overlap(driver: HostDriver) -> None:
    sizes = [(1 + 7 * i % 5) * G for i in range(40)]
    ranges = sorted((driver.reserve(size, alignment=G << (i % 4)), size) for i, size in enumerate(sizes))
    for (a, size), (b, _) in pairwise(ranges):
        assert a + size <= b


@pytest.mark.parametrize("size", [0, -G, 1, G - 1, G + 1])
def test_bad_sizes_are_refused(driver: HostDriver, size: int) -> None:
    with unchanged(driver, BAD, f"size {size} must be a positive multiple"):
        driver.reserve(size)


@pytest.mark.parametrize("alignment", [3, -1, G + 1, 3 * G])
def test_bad_alignments_are_refused(driver: HostDriver, alignment: int) -> None:
    with unchanged(driver, BAD, "power of two"):
        driver.reserve(G, alignment=alignment)


def test_more_than_the_arena_is_out_of_memory(driver: HostDriver) -> None:
    with unchanged(driver, Status.OUT_OF_MEMORY, "no .* bytes of address space"):
        driver.reserve(1 << 50)
    driver.reserve(G)


def test_a_free_hint_is_taken_and_an_occupied_one_moves(driver: HostDriver) -> None:
    base = driver.reserve(4 * G)
    hint = base + (1 << 20)
    assert driver.reserve(2 * G, hint=hint) == hint
    for occupied in (hint, hint + G, base, base + 3 * G):
        other = driver.reserve(2 * G, hint=occupied)
        assert other != occupied
        driver.address_free(other, 2 * G)


@pytest.mark.parametrize("hint", [1, G - 1, 1 << 60, 7 * G])
def test_a_hint_that_cannot_be_met_is_only_a_hint(driver: HostDriver, hint: int) -> None:
    address = driver.reserve(G, hint=hint)
    assert address % G == 0
    assert address != hint


def test_a_hint_below_the_alignment_moves(driver: HostDriver) -> None:
    base = driver.reserve(G)
    assert driver.reserve(G, alignment=1 << 16, hint=base + G) % (1 << 16) == 0


def test_reserving_takes_no_memory(driver: HostDriver) -> None:
    before = driver.mem_info()
    driver.reserve(1 << 35)
    assert driver.mem_info() == before
    assert driver.live().bytes == 0


def test_free_wants_the_exact_base(driver: HostDriver) -> None:
    address = driver.reserve(4 * G)
    for wrong in (address + G, address + 1, address - G, address + 4 * G, 0):
        with unchanged(driver, BAD, "no reservation begins at"):
            driver.address_free(wrong, 4 * G)
    driver.map(address, G, driver.create(G))


@pytest.mark.parametrize("size", [0, -4 * G, G, 3 * G, 5 * G, 4 * G - 1])
def test_free_wants_the_exact_size(driver: HostDriver, size: int) -> None:
    address = driver.reserve(4 * G)
    with unchanged(driver, BAD, f"free all {4 * G} bytes"):
        driver.address_free(address, size)
    driver.map(address, G, driver.create(G))


def test_free_refuses_a_range_with_a_mapping(driver: HostDriver) -> None:
    address, _ = mapped(driver, 2)
    driver.write(address, b"kept")
    with unchanged(driver, BAD, r"1 mapping\(s\) are left"):
        driver.address_free(address, 2 * G)
    assert now(driver, address, 4) == b"kept"
    driver.unmap(address, 2 * G)
    driver.address_free(address, 2 * G)


def test_free_twice_is_an_error(driver: HostDriver) -> None:
    address = driver.reserve(G)
    driver.address_free(address, G)
    with unchanged(driver, BAD):
        driver.address_free(address, G)


def test_one_free_takes_one_reservation(driver: HostDriver) -> None:
    first = driver.reserve(2 * G)
    second = driver.reserve(2 * G, hint=first + 2 * G)
    assert second == first + 2 * G
    with unchanged(driver, BAD):
        driver.address_free(first, 4 * G)


def test_a_freed_address_comes_back_first(driver: HostDriver) -> None:
    ranges = [driver.reserve(2 * G) for _ in range(5)]
    for index in (3, 1):
        driver.address_free(ranges[index], 2 * G)
    assert [driver.reserve(2 * G) for _ in range(2)] == [ranges[1], ranges[3]], "last freed, first used"
    driver.address_free(ranges[2], 2 * G)
    assert driver.reserve(G) == ranges[2], "another size takes the lowest place that fits"


def test_addresses_are_the_same_in_every_run(make: Make) -> None:
    def addresses() -> list[int]:
        driver = make()
        base = driver.reserve(G)
        found = [driver.reserve(G * (1 + i % 3)) for i in range(9)]
        driver.address_free(found[4], 2 * G)
        found += [driver.reserve(2 * G), driver.reserve(5 * G), driver.alloc(100)]
        driver.close()
        return [address - base for address in found]

    assert addresses() == addresses()


def test_freed_neighbours_are_one_range_again(driver: HostDriver) -> None:
    low = driver.reserve(G)
    ranges = [driver.reserve(G) for _ in range(4)]
    driver.reserve(G)
    for address in (ranges[2], ranges[0], ranges[3], ranges[1]):
        driver.address_free(address, G)
    assert driver.reserve(4 * G) == low + G


def test_many_cycles_use_no_more_addresses(driver: HostDriver) -> None:
    first = driver.reserve(G)
    driver.address_free(first, G)
    for granules in [1, 2, 3, 5] * 500:
        address = driver.reserve(granules * G)
        driver.address_free(address, granules * G)
    assert address == first
    assert driver._space.high <= first + 5 * G


def test_one_mapping_of_many_is_enough_to_refuse_free(driver: HostDriver) -> None:
    base, _ = row(driver, 3)
    for address in (base, base + 2 * G):
        driver.unmap(address, G)
    with refused(BAD):
        driver.address_free(base, 3 * G)
