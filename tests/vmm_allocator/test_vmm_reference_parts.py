"""Parts of the reference VMM allocator by themselves, and what they do when the driver refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from vmm_world import G, World, at, make, refusal

from vmm_conformance.contracts import Access, Code, DriverError, DriverOptions, Range, Status
from vmm_conformance.drivers.host import HostDriver
from vmm_reference.timeline import Timeline
from vmm_reference.vmm_allocator import WAITS
from vmm_reference.vmm_ranges import Reserved, slice_of
from vmm_reference.vmm_records import Allocation, Key, Table

KEY = Key(False, False, 0, G)


@pytest.fixture
def world() -> Iterator[World]:
    yield from make()


@pytest.fixture
def short() -> Iterator[World]:
    yield from make(budget=12 * G)


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    made = HostDriver(DriverOptions())
    yield made
    made.close()


# -- ranges and records


@pytest.mark.parametrize(("offset", "size"), [(0, 0), (0, 4 * G), (G, 3 * G), (4 * G, 0), (3 * G, G)])
def test_a_slice_lies_in_its_reservation(driver: HostDriver, offset: int, size: int) -> None:
    assert slice_of("map", Reserved(driver, Range(8 * G, 4 * G)), offset, size) == (8 * G + offset, size)


@pytest.mark.parametrize(("offset", "size"), [(-1, G), (-1, 1), (0, -1), (0, 4 * G + 1), (G, 4 * G), (5 * G, 0)])
def test_no_slice_leaves_its_reservation(driver: HostDriver, offset: int, size: int) -> None:
    code, message = refusal(lambda: slice_of("map", Reserved(driver, Range(8 * G, 4 * G)), offset, size))
    assert (code, message) == (
        Code.INVALID_ARGUMENT, f"map: {size} bytes from {offset} are not in the reservation's {4 * G}",
    )  # fmt: skip


def test_nothing_is_kept_of_a_key_without_stale_allocations() -> None:
    table, made = Table(), Allocation(Range(G, G), G, KEY)
    table.defer(made)
    assert table.reusable(KEY) is made
    table.take_back(made)
    assert (table.reusable(KEY), table._by_key) == (None, {})


# -- timelines


@pytest.mark.parametrize(("limit", "marked"), [(2 * G, 0), (2 * G - 1, 1)])
def test_a_batch_is_full_to_the_byte(driver: HostDriver, limit: int, marked: int) -> None:
    timeline = Timeline(driver, 0, driver.stream_create(), batched=True, limits=(9, limit))
    for address in (G, 2 * G):
        timeline.defer(Allocation(Range(address, G), G, KEY), G)
    assert len(timeline.marked) == marked


def test_a_batch_without_a_marker_has_not_passed(driver: HostDriver) -> None:
    timeline = Timeline(driver, 0, driver.stream_create(), batched=True, limits=(9, 9 * G))
    assert not timeline.has_passed(timeline.open)
    timeline.defer(Allocation(Range(G, G), G, KEY), G)
    batch = timeline.open
    timeline.flush()
    assert timeline.has_passed(batch)


def test_what_has_passed_is_not_asked_again_nor_what_came_before_it(world: World) -> None:
    timeline = Timeline(world.driver, 0, world.streams[0], batched=True, limits=(1, 9 * G))  # type: ignore[arg-type]
    for number in (1, 2):
        timeline.defer(Allocation(Range(number * G, G), G, KEY), G)
    earlier, later = timeline.marked.values()
    world.driver.driver.stream_synchronize(world.streams[0])
    assert timeline.has_passed(later)
    count = len(world.calls)
    assert timeline.has_passed(earlier)
    assert timeline.has_passed(later)
    assert world.driver.since(count) == []


def test_a_batch_that_nobody_needs_gives_its_event_once(driver: HostDriver) -> None:
    timeline, made = Timeline(driver, 0, driver.stream_create(), batched=True, limits=(9, 9 * G)), Range(G, G)
    timeline.defer(record := Allocation(made, G, KEY), G)
    batch = timeline.open
    timeline.flush()
    timeline.remove(record)
    timeline.settle(batch)
    assert len(timeline.spare) == 1


# -- when the driver refuses


def test_an_event_that_cannot_be_destroyed_is_tried_again(world: World) -> None:
    world.allocator.deallocate(0, world.allocator.allocate(0, G))
    world.allocator.synchronize_pending_operations(0)
    world.driver.failing.append("event_destroy")
    with pytest.raises(DriverError, match="on purpose"):
        world.allocator.close()
    world.allocator.close()
    assert world.calls.count("event_destroy") == 2


def test_memory_that_could_not_be_released_is_had_when_it_is_needed(short: World) -> None:
    made = short.allocator.allocate(0, 12 * G)
    short.allocator.deallocate(0, made)
    short.driver.failing.append("release")
    with pytest.raises(DriverError, match="on purpose"):
        short.allocator.synchronize_pending_operations(0)
    assert short.allocator.allocate(0, 8 * G).size == 8 * G


def test_a_slice_is_free_where_only_its_memory_could_not_be_given_back(world: World) -> None:
    reservation = world.reservation()
    world.driver.failing += ["set_access", "release"]
    with pytest.raises(DriverError, match="on purpose"):
        at(world, reservation, 0, 2)
    world.driver.failing.append("release")
    assert at(world, reservation, 0, 2) == (reservation.range.address, 2 * G)
    world.driver.failing.clear()
    world.allocator.allocate(0, G)
    world.allocator.devices[0].retry_dying()
    assert not world.allocator.devices[0].dying


# -- memory is short


def test_reclaim_frees_eleven_tenths_and_no_more(short: World) -> None:
    made = [short.allocator.allocate(0, G) for _ in range(12)]
    for each in made:
        short.work(each)
        short.allocator.deallocate(0, each)
    assert short.allocator.allocate(0, 10 * G).size == 10 * G
    assert [short.allocator.raw_allocation(0, each) is not None for each in made] == [False] * 11 + [True]


def test_an_error_that_is_not_short_memory_reclaims_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world.allocator.allocate(0, G)
    world.allocator.deallocate(0, made)

    def refuse(*_: object, **__: object) -> int:
        raise DriverError(Status.INVALID_VALUE, "create", "on purpose")

    monkeypatch.setattr(world.driver.driver, "create", refuse)
    with pytest.raises(DriverError, match="on purpose"):
        world.allocator.allocate(0, 2 * G)
    assert world.allocator.raw_allocation(0, made) is not None


def test_peers_that_reach_the_memory_may_use_it(world: World) -> None:
    for made in (world.allocator.allocate(0, G), world.allocator.allocate(1, G)):
        for device in (0, 1):
            assert world.driver.driver.get_access(made.address, device) is Access.READ_WRITE


# -- and besides


@pytest.mark.parametrize("size", [-1, -G])
def test_less_than_no_bytes_are_no_bytes_to_nobody(world: World, size: int) -> None:
    with pytest.raises(DriverError):
        world.allocator.allocate(0, size)


def test_of_several_refusals_at_the_end_the_first_is_told(world: World) -> None:
    for device in (0, 1):
        world.allocator.allocate(device, G)
    world.driver.failing += ["unmap", "address_free"]
    world.driver.calls.clear()
    with pytest.raises(DriverError, match="unmap"):
        world.allocator.close()
    assert world.calls.count("address_free") == 1


def test_what_is_always_in_the_way_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reservation, waits = world.reservation(), []
    world.allocator.deallocate(0, at(world, reservation, 0))
    monkeypatch.setattr(world.allocator, "clear", lambda device, record: waits.append(record))
    code, message = refusal(lambda: at(world, reservation, 0, space=1))
    assert code is Code.ABORTED
    assert f"gave up after waiting {WAITS} times" in message
    assert len(waits) == WAITS


def test_what_was_deferred_anew_during_a_wait_is_not_completed_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread has taken it back meanwhile, and given it up again: that is behind another marker (80)."""
    reservation = world.reservation()
    world.allocator.deallocate(0, at(world, reservation, 0))
    device = world.allocator.devices[0]
    (record,) = device.table.stale
    first = record.batch

    def wait(batch: object) -> None:
        device.timeline.flush()
        world.allocator.deallocate(0, at(world, reservation, 0))

    monkeypatch.setattr(device, "wait", wait)
    world.allocator.clear(device, record)
    assert record.batch is not first
    assert [*device.table.stale] == [record]
