"""Each known-bad host driver breaks the rule it was made to break, and does not crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from host_world import NONE, READ, RW, G, mapped, now, row

from vmm_conformance.contracts import Access, DriverError, DriverOptions, Live, Mutant, contracts_of
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.host.known_bad import MUTANTS


def refuses(call: Callable[..., object], *arguments: Any) -> bool:
    try:
        call(*arguments)
    except DriverError:
        return True
    return False


def free_interior(driver: HostDriver) -> bool:
    address = driver.reserve(4 * G)
    return refuses(lambda: driver.address_free(address + G, 4 * G)) and driver.live().reservations == 1


def free_wrong_size(driver: HostDriver) -> bool:
    address = driver.reserve(4 * G)
    return refuses(lambda: driver.address_free(address, 2 * G)) and driver.live().reservations == 1


def free_mapped(driver: HostDriver) -> bool:
    address, _ = mapped(driver)
    return refuses(lambda: driver.address_free(address, G)) and driver.live().mappings == 1


def free_twice(driver: HostDriver) -> bool:
    address = driver.reserve(G)
    driver.address_free(address, G)
    return refuses(lambda: driver.address_free(address, G))


def free_two(driver: HostDriver) -> bool:
    first = driver.reserve(G)
    driver.reserve(G, hint=first + G)
    return refuses(lambda: driver.address_free(first, 2 * G))


def create_odd(driver: HostDriver) -> bool:
    return all(refuses(driver.create, size) for size in (0, G - 1, G + 1))


def map_nowhere(driver: HostDriver) -> bool:
    address, handle = mapped(driver)
    return refuses(lambda: driver.map(address + 8 * G, G, handle))


def map_over_the_end(driver: HostDriver) -> bool:
    address = driver.reserve(2 * G)
    handle = driver.create(2 * G)
    return refuses(lambda: driver.map(address + G, 2 * G, handle))


def map_onto_mapped(driver: HostDriver) -> bool:
    address, _ = mapped(driver, 2)
    driver.write(address, b"old")
    other = driver.create(G)
    good = all(refuses(driver.map, address + at * G, G, other) for at in (1, 0))
    return good and now(driver, address, 3) == b"old"


def map_unaligned(driver: HostDriver) -> bool:
    address = driver.reserve(4 * G)
    handle = driver.create(2 * G)
    calls = ((address + 1, G), (address, G - 1), (address + 2 * G, G + 1))
    return all(refuses(driver.map, at, size, handle) for at, size in calls)


def map_offset(driver: HostDriver) -> bool:
    address = driver.reserve(G)
    handle = driver.create(2 * G)
    return refuses(lambda: driver.map(address, G, handle, offset=G))


def map_too_much(driver: HostDriver) -> bool:
    address = driver.reserve(2 * G)
    handle = driver.create(G)
    if not refuses(lambda: driver.map(address, 2 * G, handle)):
        driver.set_access(address, 2 * G, {0: RW})
        driver.fill(address, 1, 2 * G)
        return False
    return True


def unmap_one(driver: HostDriver) -> bool:
    base, _ = row(driver, 3)
    driver.set_access(base, 3 * G, {0: RW})
    driver.unmap(base, G)
    return driver.live().mappings == 2 and now(driver, base + G, 1) == b"\xcb"


def unmap_several(driver: HostDriver) -> bool:
    base, _ = row(driver, 3)
    driver.unmap(base, 3 * G)
    return driver.live().mappings == 0


def unmap_part(driver: HostDriver) -> bool:
    address, _ = mapped(driver, 3)
    driver.write(address, b"old")
    good = all(refuses(driver.unmap, address + at * G, G) for at in range(3))
    return good and now(driver, address, 3) == b"old"


def unmap_hole(driver: HostDriver) -> bool:
    base, _ = row(driver, 3)
    driver.unmap(base + G, G)
    return refuses(lambda: driver.unmap(base, 3 * G)) and driver.live().mappings == 2


def fresh_rights(driver: HostDriver) -> bool:
    address, _ = mapped(driver, rights=None)
    return driver.get_access(address, 0) is NONE


def use_without_rights(driver: HostDriver) -> bool:
    address, handle = mapped(driver, rights=None)
    good = refuses(lambda: driver.write(address, b"x")) and refuses(lambda: driver.read(address, 1))
    driver.set_access(address, G, {0: READ})
    good = good and now(driver, address, 1) == b"\xcb"
    driver.unmap(address, G)
    driver.release(handle)
    mapped(driver)
    return good


def set_over_hole(driver: HostDriver) -> bool:
    base, _ = row(driver, 3)
    driver.unmap(base + G, G)
    return refuses(lambda: driver.set_access(base, 3 * G, {0: RW})) and driver.get_access(base, 0) is NONE


def set_odd_right(driver: HostDriver) -> bool:
    address, _ = mapped(driver, rights=None)
    odd: Any = {0: -1}
    return refuses(lambda: driver.set_access(address, G, odd)) and driver.get_access(address, 0) is NONE


def set_others(driver: HostDriver) -> bool:
    address, _ = mapped(driver)
    driver.set_access(address, G, {1: READ})
    return driver.get_access(address, 0) is RW


def rights_after_remap(driver: HostDriver) -> bool:
    address, handle = mapped(driver)
    driver.unmap(address, G)
    driver.map(address, G, handle)
    return driver.get_access(address, 0) is NONE


def aliases(driver: HostDriver) -> bool:
    address, handle = mapped(driver)
    other = driver.reserve(G)
    driver.map(other, G, handle)
    driver.set_access(other, G, {0: RW})
    driver.write(address, b"seen")
    return now(driver, other, 4) == b"seen"


def alias_outlives(driver: HostDriver) -> bool:
    address, handle = mapped(driver)
    other = driver.reserve(G)
    driver.map(other, G, handle)
    driver.set_access(other, G, {0: RW})
    driver.write(address, b"kept")
    driver.release(handle)
    driver.unmap(address, G)
    good = now(driver, other, 4) == b"kept" and driver.live().bytes == G
    driver.unmap(other, G)
    return good and driver.live() == Live(2, 0, 0, 0, 0)


CHECKS: dict[int, Callable[[HostDriver], bool]] = {
    13: free_interior,
    14: free_wrong_size,
    15: free_mapped,
    16: free_twice,
    17: free_two,
    20: create_odd,
    31: map_nowhere,
    32: map_over_the_end,
    33: map_onto_mapped,
    34: map_unaligned,
    35: map_offset,
    36: map_too_much,
    40: unmap_one,
    41: unmap_several,
    42: unmap_part,
    43: unmap_hole,
    48: fresh_rights,
    49: use_without_rights,
    54: set_over_hole,
    55: set_odd_right,
    56: set_others,
    57: rights_after_remap,
    60: aliases,
    61: alias_outlives,
}


def rule(mutant: Mutant) -> int:
    return int(mutant.breaks[0].removeprefix("DRIVER-"))


def open_driver(mutant: Mutant) -> HostDriver:
    subject: Any = mutant.subject
    driver = subject.driver(DriverOptions(devices=2))
    assert isinstance(driver, HostDriver)
    return driver


def test_there_is_one_for_each_rule() -> None:
    assert sorted(map(rule, MUTANTS)) == sorted(CHECKS)
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert contracts_of(mutant.subject) == ("driver",)
        assert mutant.contract == "driver"
        assert mutant.note.endswith(".")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_known_bad_driver_breaks_its_rule(mutant: Mutant) -> None:
    driver = open_driver(mutant)
    assert not CHECKS[rule(mutant)](driver)
    driver.close()


@pytest.mark.parametrize("number", CHECKS)
def test_the_host_driver_keeps_the_rule(number: int) -> None:
    driver = HostDriver(DriverOptions(devices=2))
    assert CHECKS[number](driver)
    driver.close()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_known_bad_driver_survives_everything(mutant: Mutant) -> None:
    """Every check in turn on one driver: answers may be wrong, but nothing but `DriverError` comes out."""
    driver = open_driver(mutant)
    for check in CHECKS.values():
        try:
            check(driver)
        except DriverError as error:
            assert error.status  # noqa: PT017 - the refusal of a wrong driver, not the outcome under test
    driver.close()
    healthy = HostDriver(DriverOptions())
    address, _ = mapped(healthy, rights=Access.READ_WRITE)
    assert now(healthy, address, G) == b"\xcb" * G
    healthy.close()
