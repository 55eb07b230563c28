"""Access rights: V48 to V59."""

from __future__ import annotations

from typing import Any

import pytest
from host_world import NONE, READ, RW, G, Make, mapped, now, refused, row, unchanged

from vmm_conformance.contracts import Access, Status
from vmm_conformance.drivers.host import HostDriver

BAD = Status.INVALID_VALUE


def test_a_fresh_mapping_has_no_rights(make: Make) -> None:
    driver = make(devices=3)
    address, _ = mapped(driver, rights=None)
    assert [driver.get_access(address, device) for device in range(3)] == [NONE] * 3


def test_without_rights_nothing_can_be_read_or_written(driver: HostDriver) -> None:
    address, _ = mapped(driver, rights=None)
    other, _ = mapped(driver)
    calls: list[Any] = [
        lambda: driver.read(address, 1),
        lambda: driver.write(address, b"x"),
        lambda: driver.fill(address, 1, G),
        lambda: driver.copy(other, address, 1),
        lambda: driver.copy(address, other, 1),
    ]
    for call in calls:
        with unchanged(driver, Status.ILLEGAL_ADDRESS, "no access"):
            call()


def test_a_read_only_mapping_is_read_only(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"kept")
    driver.set_access(address, G, {0: READ})
    assert now(driver, address, 4) == b"kept"
    with unchanged(driver, Status.ILLEGAL_ADDRESS, "cannot write .* read only"):
        driver.write(address, b"lost")
    assert now(driver, address, 4) == b"kept"


def test_a_driver_that_does_not_enforce_read_only(make: Make) -> None:
    driver = make(capabilities={"read_only_enforced": False})
    address, _ = mapped(driver, rights=READ)
    driver.write(address, b"written")
    assert now(driver, address, 7) == b"written"
    assert driver.get_access(address, 0) is READ


def test_fresh_memory_can_be_read_through_a_read_only_mapping(driver: HostDriver) -> None:
    address, _ = mapped(driver, rights=READ)
    assert now(driver, address, G) == b"\xcb" * G


@pytest.mark.parametrize("right", list(Access))
def test_get_access_at_first_and_last_byte(driver: HostDriver, right: Access) -> None:
    address, _ = mapped(driver, 2, rights=right)
    assert [driver.get_access(address + at, 0) for at in (0, 1, 2 * G - 1)] == [right] * 3
    assert type(driver.get_access(address, 0)) is Access


def test_get_access_elsewhere(make: Make) -> None:
    driver = make(devices=2)
    address, _ = mapped(driver)
    for wrong in (address + G, address - 1, driver.reserve(G), 0, driver.alloc(8)):
        with refused(BAD, "nothing is mapped at"):
            driver.get_access(wrong, 0)
    for device in (-1, 2):
        with refused(BAD, f"device {device} is none"):
            driver.get_access(address, device)
    driver.unmap(address, G)
    with refused(BAD):
        driver.get_access(address, 0)


def test_rights_change_in_every_direction(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.write(address, b"data")
    for right in (READ, RW, NONE, RW, NONE, READ, NONE, NONE, READ, READ, RW):
        driver.set_access(address, G, {0: right})
        assert driver.get_access(address, 0) is right
        if right:
            assert now(driver, address, 4) == b"data"


@pytest.mark.parametrize("right", [-1, 2, 4, 7])
def test_rights_must_exist(driver: HostDriver, right: int) -> None:
    address, _ = mapped(driver)
    with unchanged(driver, BAD, f"{right} is no access right"):
        driver.set_access(address, G, {0: right})  # type: ignore[dict-item]


def test_plain_numbers_are_taken_for_rights(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    driver.set_access(address, G, {0: 1})  # type: ignore[dict-item]
    assert driver.get_access(address, 0) is READ


@pytest.mark.parametrize("device", [-1, 2])
def test_devices_must_exist(make: Make, device: int) -> None:
    driver = make(devices=2)
    address, _ = mapped(driver)
    with unchanged(driver, BAD, f"device {device} is none"):
        driver.set_access(address, G, {0: READ, device: READ})


def test_somebody_must_be_named(driver: HostDriver) -> None:
    address, _ = mapped(driver)
    with unchanged(driver, BAD, "no device is named"):
        driver.set_access(address, G, {})


def test_devices_not_named_keep_their_rights(make: Make) -> None:
    driver = make(devices=3)
    address, _ = mapped(driver)
    driver.set_access(address, G, {1: READ, 2: RW})
    driver.set_access(address, G, {2: NONE})
    assert [driver.get_access(address, device) for device in range(3)] == [RW, READ, NONE]


def test_rights_die_at_unmap(driver: HostDriver) -> None:
    address, handle = mapped(driver)
    driver.unmap(address, G)
    driver.map(address, G, handle)
    assert driver.get_access(address, 0) is NONE
    with refused(Status.ILLEGAL_ADDRESS):
        driver.read(address, 1)


# -- shapes


def test_several_whole_mappings_at_once(driver: HostDriver) -> None:
    base, _ = row(driver, 4)
    driver.set_access(base + G, 2 * G, {0: RW})
    assert [driver.get_access(base + index * G, 0) for index in range(4)] == [NONE, RW, RW, NONE]


def test_several_at_once_where_the_driver_takes_one(make: Make) -> None:
    driver = make(capabilities={"set_access_spans_mappings": False})
    base, _ = row(driver, 2)
    with unchanged(driver, BAD, "takes one at a time"):
        driver.set_access(base, 2 * G, {0: RW})
    driver.set_access(base + G, G, {0: RW})


def test_the_last_of_several_with_other_reservations_around(driver: HostDriver) -> None:
    for _ in range(5):
        base, _ = row(driver, 3)
        driver.reserve(7 * G)
        driver.set_access(base + 2 * G, G, {0: RW})
        assert driver.get_access(base + 2 * G, 0) is RW


@pytest.mark.parametrize(("at", "granules"), [(0, 1), (1, 1), (1, 3), (0, 3), (2, 3), (0, 5), (-1, 2)])
def test_a_part_of_a_mapping_is_refused(driver: HostDriver, at: int, granules: int) -> None:
    base = driver.reserve(8 * G) + G
    driver.map(base, 2 * G, driver.create(2 * G))
    driver.map(base + 2 * G, 2 * G, driver.create(2 * G))
    with unchanged(driver, BAD, "whole adjacent mappings"):
        driver.set_access(base + at * G, granules * G, {0: RW})


@pytest.mark.parametrize("size", [0, -G, 1, G - 1, G + 1])
@pytest.mark.parametrize("part", [False, True])
def test_odd_sizes_are_refused(make: Make, size: int, part: bool) -> None:
    driver = make(capabilities={"set_access_part_of_mapping": part})
    base, _ = row(driver, 2)
    with unchanged(driver, BAD):
        driver.set_access(base, size, {0: RW})


@pytest.mark.parametrize("part", [False, True])
def test_over_a_hole_nothing_changes(make: Make, part: bool) -> None:
    driver = make(capabilities={"set_access_part_of_mapping": part})
    base, _ = row(driver, 3)
    driver.unmap(base + G, G)
    for address, size in ((base, 3 * G), (base, 2 * G), (base + G, G), (base + G, 2 * G), (driver.reserve(G), G)):
        with unchanged(driver, BAD):
            driver.set_access(address, size, {0: RW})


def test_over_two_reservations_nothing_changes(make: Make) -> None:
    for part in (False, True):
        driver = make(capabilities={"set_access_part_of_mapping": part})
        first, _ = mapped(driver, rights=None)
        second, _ = mapped(driver, rights=None)
        assert second == first + G
        with unchanged(driver, BAD):
            driver.set_access(first, 2 * G, {0: RW})


# -- parts, where declared


@pytest.fixture
def parts(make: Make) -> HostDriver:
    return make(devices=2, capabilities={"set_access_part_of_mapping": True})


def test_a_part_keeps_to_itself(parts: HostDriver) -> None:
    base, _ = mapped(parts, 4)
    parts.fill(base, 9, 4 * G)
    parts.set_access(base + G, G, {0: READ, 1: RW})
    parts.set_access(base + 2 * G, G, {0: NONE})
    assert [parts.get_access(base + at, 0) for at in (0, G - 1, G, 2 * G - 1, 2 * G, 3 * G)] == [
        *(RW, RW),
        *(READ, READ),
        *(NONE, RW),
    ]
    assert [parts.get_access(base + at * G, 1) for at in range(4)] == [NONE, RW, NONE, NONE]
    assert now(parts, base, 2 * G) == b"\x09" * (2 * G)
    with refused(Status.ILLEGAL_ADDRESS, "no access"):
        parts.read(base, 3 * G)
    parts.write(base + 3 * G, b"x")


def test_a_part_may_reach_over_several_mappings(parts: HostDriver) -> None:
    base, _ = row(parts, 3, granules=2)
    parts.set_access(base + G, 4 * G, {0: RW})
    assert [parts.get_access(base + at * G, 0) for at in range(6)] == [NONE, RW, RW, RW, RW, NONE]
    parts.set_access(base, 6 * G, {0: READ})
    assert [parts.get_access(base + at * G, 0) for at in range(6)] == [READ] * 6
    assert now(parts, base, 6 * G) == b"\xcb" * (6 * G)
    parts.unmap(base, 6 * G)
    assert parts.live().mappings == 0


def test_a_part_must_be_whole_granules(parts: HostDriver) -> None:
    base, _ = mapped(parts, 4)
    for address, size in ((base + 1, G), (base, G + 1), (base + G, 4 * G)):
        with unchanged(parts, BAD, "mapped throughout"):
            parts.set_access(address, size, {0: RW})


# -- peers


def test_without_peers_only_the_owner_is_granted_anything(make: Make) -> None:
    driver = make(devices=2, peers=False)
    address, _ = mapped(driver, device=1)
    with unchanged(driver, Status.NOT_SUPPORTED, "device 0 cannot reach memory of device 1"):
        driver.set_access(address, G, {0: READ})
    with unchanged(driver, Status.NOT_SUPPORTED):
        driver.set_access(address, G, {1: READ, 0: READ})
    driver.set_access(address, G, {0: NONE, 1: READ})
    assert not driver.can_access_peer(0, 1)


def test_with_peers_each_device_has_its_own_rights(make: Make) -> None:
    driver = make(devices=2)
    assert driver.can_access_peer(0, 1)
    assert not driver.can_access_peer(0, 0)
    address, _ = mapped(driver, device=1)
    driver.set_access(address, G, {0: READ})
    streams = [driver.stream_create(device) for device in (0, 1)]
    works = [driver.write(address, b"x", stream=stream) for stream in streams]
    for stream in streams:
        driver.stream_synchronize(stream)
    assert [work.fault and work.fault.reason for work in works] == ["read only", None]
