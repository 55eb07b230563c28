"""The reference VMM allocator on the host driver, without a harness."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from vmm_world import MIB, G, World, at, make, refusal

from vmm_conformance.contracts import (
    NULL,
    Code,
    DeviceConfig,
    DriverError,
    DriverOptions,
    Granularity,
    Range,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_reference.subject import reference


@pytest.fixture
def world() -> Iterator[World]:
    yield from make()


@pytest.fixture
def short() -> Iterator[World]:
    yield from make(budget=8 * G, exempt=(1,))


def test_deferred_operations_make_no_driver_call(world: World) -> None:
    made, reservation = world.allocator.allocate(0, 100), world.reservation()
    world.allocator.map(0, made, reservation, 0, G)
    count = len(world.calls)
    world.allocator.unmap(0, reservation, 0, G)
    world.allocator.deallocate(0, made)
    assert world.allocator.allocate(0, 200) == (made.address, 200)
    world.allocator.map(0, Range(made.address, 200), reservation, 0, G)
    assert world.driver.since(count) == []


def test_synchronize_marks_once_waits_once_and_completes(world: World) -> None:
    made = [world.allocator.allocate(0, size * G) for size in (1, 2, 3)]
    for each in made:
        world.work(each)
        world.allocator.deallocate(0, each)
    count = len(world.calls)
    world.allocator.synchronize_pending_operations(0)
    calls = world.driver.since(count)
    assert calls[:3] == ["event_create", "event_record", "event_synchronize"]
    assert calls[3:] == ["unmap", "address_free", "release"] * 3
    assert world.driver.driver.live().handles == 0


def test_events_are_used_again(world: World) -> None:
    for _ in range(5):
        world.allocator.deallocate(0, world.allocator.allocate(0, G))
        world.allocator.synchronize_pending_operations(0)
    assert world.calls.count("event_create") == 1


def test_64_operations_share_a_marker(world: World) -> None:
    made = [world.allocator.allocate(0, G) for _ in range(129)]
    markers = []
    for each in made:
        count = len(world.calls)
        world.allocator.deallocate(0, each)
        markers.append("event_record" in world.driver.since(count))
    assert [number for number, marked in enumerate(markers) if marked] == [64, 128]


@pytest.mark.parametrize(
    ("sizes", "markers"), [((33, 33), 1), ((32, 32), 0), ((64,), 0), ((65,), 1), ((1, 65), 2), ((65, 1), 1)]
)
def test_64_mib_share_a_marker(world: World, sizes: tuple[int, ...], markers: int) -> None:
    made = [world.allocator.allocate(0, size * MIB) for size in sizes]
    for each in made:
        world.allocator.deallocate(0, each)
    assert world.calls.count("event_record") == markers


def test_limits_are_parameters() -> None:
    for world in make(limits=(2, 4 * G)):
        made = [world.allocator.allocate(0, G) for _ in range(5)]
        for each in made:
            world.allocator.deallocate(0, each)
        assert world.calls.count("event_record") == 2


def test_marker_for_each_operation() -> None:
    for world in make(markers="per-operation", second_alias="FAILED_PRECONDITION"):
        made, reservation = world.allocator.allocate(0, G), world.reservation()
        world.allocator.map(0, made, reservation, 0, G)
        code, message = refusal(lambda: world.allocator.map(0, made, reservation, G, G))  # noqa: B023 - called at once
        assert code is Code.FAILED_PRECONDITION
        assert message == (
            f"map: {made.address:#x}+4096 has an alias at {reservation.range.address:#x}+4096; unmap that first"
        )
        world.allocator.unmap(0, reservation, 0, G)
        world.allocator.deallocate(0, made)
        assert world.calls.count("event_record") == 2


def test_refused_marker_leaves_everything_as_it_was(world: World) -> None:
    made = [world.allocator.allocate(0, G) for _ in range(65)]
    for each in made[:64]:
        world.allocator.deallocate(0, each)
    world.driver.failing.append("event_record")
    with pytest.raises(DriverError, match="on purpose"):
        world.allocator.deallocate(0, made[64])
    assert world.allocator.reservation_of(0, made[64]) == made[64]
    world.allocator.deallocate(0, made[64])
    world.allocator.synchronize_pending_operations(0)
    assert world.driver.driver.live().handles == 0


def test_what_the_driver_does_not_take_back_is_tried_again(world: World) -> None:
    made = world.allocator.allocate(0, G)
    world.allocator.deallocate(0, made)
    world.driver.failing.append("address_free")
    with pytest.raises(DriverError, match="on purpose"):
        world.allocator.synchronize_pending_operations(0)
    assert world.allocator.raw_allocation(0, made) is None
    world.allocator.synchronize_pending_operations(0)
    assert world.driver.driver.live().handles == 0


def test_slice_that_could_not_be_unmapped_is_cleared_by_whoever_wants_it(world: World) -> None:
    reservation = world.reservation()
    world.driver.failing += ["set_access", "unmap"]
    with pytest.raises(DriverError, match="on purpose"):
        at(world, reservation, 0, 2)
    assert at(world, reservation, 1, 2) == (reservation.range.address + G, 2 * G)


@pytest.mark.parametrize("failing", ["create", "reserve", "map", "set_access"])
def test_failed_allocation_leaves_nothing(short: World, failing: str) -> None:
    live = short.driver.driver.live()
    for _ in range(3):
        short.driver.failing.append(failing)
        with pytest.raises(DriverError, match="on purpose"):
            short.allocator.allocate(0, 8 * G)
    assert short.driver.driver.live() == live
    assert short.allocator.allocate(0, 8 * G).size == 8 * G


def test_budget_counts_granules(short: World) -> None:
    made = [short.allocator.allocate(0, 1) for _ in range(8)]
    code, message = refusal(lambda: short.allocator.allocate(0, 1))
    assert code is Code.RESOURCE_EXHAUSTED
    assert message == (
        "allocate: 4096 bytes, with 32768 committed on device 0, exceed its budget of 32768; free something, or wait "
        "for what is in use"
    )
    assert short.allocator.allocate(1, 8 * G).size == 8 * G, "the other device has its own"
    short.allocator.deallocate(0, made[0])
    assert short.allocator.allocate(0, G, retry=False).size == G


def test_reclaim_takes_the_oldest_that_suffice_and_no_alias(short: World) -> None:
    reservation = short.reservation()
    made = [short.allocator.allocate(0, size * G) for size in (2, 2, 1, 3)]
    short.allocator.map(0, made[3], reservation, 0, G)
    short.allocator.unmap(0, reservation, 0, G)
    for each in made[:3]:
        short.work(each)
        short.allocator.deallocate(0, each)
    assert at(short, reservation, 4, 2).size == 2 * G
    found = [short.allocator.raw_allocation(0, each) is not None for each in made]
    assert found == [False, False, True, True]
    count = len(short.calls)
    short.allocator.map(0, made[3], reservation, 0, G)
    assert short.driver.since(count) == [], "the stale alias was left alone"


def test_exempt_space_is_not_reclaimed(short: World) -> None:
    exempt = short.allocator.allocate(0, 4 * G, space=1)
    other = short.allocator.allocate(0, 4 * G)
    short.allocator.deallocate(0, exempt)
    code, _ = refusal(lambda: short.allocator.allocate(0, G))
    assert code is Code.RESOURCE_EXHAUSTED
    short.allocator.deallocate(0, other)
    assert short.allocator.allocate(0, 2 * G).size == 2 * G
    assert short.allocator.allocate(0, 4 * G, space=1) == exempt


def test_memory_that_has_passed_needs_no_wait(short: World) -> None:
    made = short.allocator.allocate(0, 8 * G)
    short.allocator.deallocate(0, made)
    short.driver.driver.stream_synchronize(short.streams[0])
    short.allocator.allocate(0, 4 * G)
    assert "event_synchronize" not in short.calls


@pytest.mark.parametrize("other", [{"space": 1}, {"size": 2 * G}, {"tag": True}, {"mapped": True}])
def test_stale_memory_is_taken_back_by_an_equal_key_only(world: World, other: dict[str, Any]) -> None:
    made = world.allocator.allocate(0, G)
    world.allocator.deallocate(0, made)
    with world.allocator.device_tag(other.get("tag", False)):
        if "mapped" in other:
            found = at(world, world.reservation(), 0)
        else:
            found = world.allocator.allocate(0, other.get("size", G), space=other.get("space", 0))
    assert found.address != made.address
    assert world.allocator.allocate(0, G) == made


def test_tags_nest(world: World) -> None:
    allocator = world.allocator
    seen = [allocator.tag]
    with allocator.device_tag(True):
        with suppress(KeyError), allocator.device_tag(False):
            seen.append(allocator.tag)
            raise KeyError
        seen.append(allocator.tag)
    assert [*seen, allocator.tag] == [False, False, True, False]


def test_mapped_allocation_is_the_slice_and_keeps_its_memory(world: World) -> None:
    reservation = world.reservation()
    made = at(world, reservation, 3, 2)
    raw = world.allocator.raw_allocation(0, made)
    assert made == (reservation.range.address + 3 * G, 2 * G)
    count = len(world.calls)
    for _ in range(4):
        world.allocator.deallocate(0, made)
        assert at(world, reservation, 3, 2) == made
    assert world.driver.since(count) == []
    assert world.allocator.raw_allocation(0, made) == raw
    assert world.allocator.reservation_of(0, made) is None


def test_slice_in_the_way_is_waited_for_alone(world: World) -> None:
    reservation = world.reservation()
    made = [world.allocator.allocate(0, G) for _ in range(3)]
    for number, each in enumerate(made[:2]):
        world.allocator.map(0, each, reservation, number * G, G)
        world.work(reservation.range)
        world.allocator.unmap(0, reservation, number * G, G)
    count = len(world.calls)
    world.allocator.map(0, made[2], reservation, 0, G)
    calls = world.driver.since(count)
    assert calls == ["event_create", "event_record", "event_synchronize", "unmap", "map", "set_access"]


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (1, 2), (0, 1), (-2, 6), (1, 1)])
@pytest.mark.parametrize("state", ["active", "stale"])
def test_overlap_in_part_is_refused(world: World, offset: int, size: int, state: str) -> None:
    reservation = world.reservation()
    made = at(world, reservation, 4, 2)
    if state == "stale":
        world.allocator.deallocate(0, made)
    code, message = refusal(lambda: at(world, reservation, 4 + offset, size))
    assert code is Code.FAILED_PRECONDITION
    assert f"overlaps {state}" in message
    assert at(world, reservation, 6).size == at(world, reservation, 3).size == G


def test_offsets_and_sizes_do_not_overflow(world: World) -> None:
    reservation = world.reservation()
    for offset in ((1 << 64) - G, -G, 16 * G, 15 * G + 1):
        code, message = refusal(lambda offset=offset: world.allocator.unmap(0, reservation, offset, G))  # type: ignore[misc] # bound now
        assert code is Code.INVALID_ARGUMENT
        assert message == f"unmap: 4096 bytes from {offset} are not in the reservation's 65536"


def test_unknown_device(world: World) -> None:
    code, message = refusal(lambda: world.allocator.allocate(7, G))
    assert (code, message) == (Code.NOT_FOUND, "allocate: device 7 is not one of the allocator's: [0, 1]")
    assert world.allocator.allocate(7, 0) == NULL
    assert world.allocator.deallocate(7, NULL) is None
    assert world.allocator.granularity(7) == 0
    assert world.allocator.raw_allocation(7, NULL) is world.allocator.reservation_of(7, NULL) is None


def test_closed_allocator_refuses(world: World) -> None:
    world.allocator.close()
    code, message = refusal(lambda: world.allocator.allocate(0, G))
    assert (code, message) == (Code.FAILED_PRECONDITION, "allocate: this allocator is closed")


def test_close_waits_for_all_devices_first(world: World) -> None:
    for device in (0, 1):
        world.work(world.allocator.allocate(device, G), device)
    for stream in world.streams:
        world.driver.driver.stream_destroy(stream)
    count = len(world.calls)
    world.allocator.close()
    assert world.driver.since(count)[:2] == ["device_synchronize", "device_synchronize"]
    assert "device_synchronize" not in world.driver.since(count + 2)


def test_close_that_cannot_wait_gives_nothing_back(world: World) -> None:
    world.allocator.allocate(0, G)
    world.driver.failing.append("device_synchronize")
    with pytest.raises(DriverError, match="on purpose"):
        world.allocator.close()
    assert world.driver.driver.live().handles == 1


def test_rounds_to_the_recommended_granularity() -> None:
    for world in make(granularity=Granularity(G, 4 * G)):
        made = world.allocator.allocate(0, G + 1)
        raw = world.allocator.raw_allocation(0, made)
        assert raw is not None
        assert raw.size == world.allocator.granularity(0) == 4 * G


def test_reference_offers_the_contract() -> None:
    assert reference.capabilities["markers"] == "batched"
    driver = HostDriver(DriverOptions())
    allocator = reference.vmm_allocator(driver, [DeviceConfig(0, driver.stream_create())])
    assert allocator.stream(0)
    allocator.close()
    driver.close()
