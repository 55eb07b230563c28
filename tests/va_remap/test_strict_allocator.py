"""The allocator that scopes are tested over: it gives what the contract says, and refuses the rest with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from vmm_conformance.contracts import HOST_SPACE, NULL, Code, DeviceConfig, DriverError, DriverOptions, Range
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.running.strict_allocator import Refused, StrictAllocator

G = 4096


class World:
    def __init__(self, budget: int = 64 * G, exempt: tuple[int, ...] = ()) -> None:
        self.driver = HostDriver(DriverOptions(devices=2))
        self.streams = [self.driver.stream_create(device) for device in range(2)]
        configs = [DeviceConfig(device, self.streams[device], budget, exempt) for device in range(2)]
        self.memory = StrictAllocator(self.driver, configs)
        self.place = self.memory.create_reservation(0, 4 * G)

    def mapped(self, offset: int = 0, size: int = G, space: int = 0) -> Range:
        return self.memory.allocate_mapped(
            0, size, reservation=self.place, offset=offset, map_size=size, space=space
        )

    def live(self) -> tuple[int, int]:
        live = self.driver.live()
        return live.handles, live.mappings


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.memory.close()
    made.place.release()
    assert made.driver.live()[:3] == (0, 0, 0)
    made.driver.close()


def refused(action: Callable[[], object], code: Code, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        action()
    assert (caught.value.code, caught.value.reason) == (code, reason)


def test_sizes_are_logical_outside_and_whole_granules_inside(world: World) -> None:
    made = world.memory.allocate(0, 100)
    raw = world.memory.raw_allocation(0, made)
    assert made.size == 100
    assert raw is not None
    assert raw.size == G
    assert world.memory.reservation_of(0, made) == Range(made.address, G)
    assert world.memory.allocate(0, 0) == NULL


def test_what_is_freed_comes_back_as_it_is(world: World) -> None:
    first = world.memory.allocate(0, 100)
    raw, calls = world.memory.raw_allocation(0, first), world.memory.calls
    world.memory.deallocate(0, first)
    second = world.memory.allocate(0, 200)
    assert (second.address, second.size) == (first.address, 200)
    assert world.memory.raw_allocation(0, second) == raw
    assert world.memory.calls == calls
    world.memory.deallocate(0, second)
    assert world.memory.allocate(0, 100, space=1).address != first.address, "another space"
    with world.memory.device_tag(True):
        assert world.memory.allocate(0, 100).address != first.address, "another program"
    assert world.memory.allocate(0, 2 * G).address != first.address, "another size"


def test_a_slice_keeps_its_memory(world: World) -> None:
    made = world.mapped(G)
    assert made == Range(world.place.range.address + G, G)
    raw = world.memory.raw_allocation(0, made)
    world.memory.deallocate(0, made)
    assert world.mapped(G) == made
    assert world.memory.raw_allocation(0, made) == raw
    world.memory.deallocate(0, made)
    assert world.mapped(G, space=1) == made
    assert world.memory.raw_allocation(0, made) != raw


def test_an_alias_is_taken_up_again(world: World) -> None:
    source = world.memory.allocate(0, 100)
    world.memory.map(0, source, world.place, 0, G)
    raw = world.memory.raw_allocation(0, Range(world.place.range.address, G))
    assert raw == world.memory.raw_allocation(0, source)
    world.memory.unmap(0, world.place, 0, G)
    assert world.memory.raw_allocation(0, Range(world.place.range.address, G)) is None
    calls = world.memory.calls
    world.memory.map(0, source, world.place, 0, G)
    assert world.memory.calls == calls


def test_conflicts_wait_for_what_is_in_the_way(world: World) -> None:
    one, other = world.memory.allocate(0, G), world.memory.allocate(0, G)
    world.memory.map(0, one, world.place, 0, G)
    world.memory.map(0, other, world.place, G, G)
    world.memory.unmap(0, world.place, 0, G)
    world.memory.unmap(0, world.place, G, G)
    world.memory.map(0, other, world.place, 0, G)  # the slice shows one, and other is shown elsewhere
    shown = world.memory.raw_allocation(0, Range(world.place.range.address, G))
    assert shown == world.memory.raw_allocation(0, other)
    assert not world.memory.devices[0].pending


def test_memory_goes_when_it_is_waited_for(world: World) -> None:
    before = world.live()
    made, slice_ = world.memory.allocate(0, G), world.mapped()
    world.memory.deallocate(0, made)
    world.memory.deallocate(0, slice_)
    assert world.memory.raw_allocation(0, made) is not None
    assert world.live() != before
    world.memory.synchronize_pending_operations(0)
    assert world.memory.raw_allocation(0, made) is None
    assert world.live() == before


def test_budgets_are_kept_by_taking_back_what_is_stale() -> None:
    world = World(budget=2 * G, exempt=(1,))
    made = [world.memory.allocate(0, G), world.memory.allocate(0, G, space=1)]
    raws = [world.memory.raw_allocation(0, range_) for range_ in made]
    for range_ in made:
        world.memory.deallocate(0, range_)
    assert world.memory.allocate(0, G, space=5)
    refused(lambda: world.memory.allocate(0, G, space=5), Code.RESOURCE_EXHAUSTED, "budget")
    left = {record.handle for record in world.memory.devices[0].records.values()}
    assert [raw is not None and raw.handle in left for raw in raws] == [False, True], "the exempt one stays"


def test_what_others_have_left_is_told_apart() -> None:
    owner = [1]
    world = World(budget=2 * G)
    world.memory.owner = lambda: owner[0]
    world.memory.entitled = {0, 2}
    left = world.memory.allocate(0, G)
    owner[0] = 2
    refused(lambda: world.memory.allocate(0, 2 * G), Code.RESOURCE_EXHAUSTED, "leak")
    world.memory.adopt(0, left)
    refused(lambda: world.memory.allocate(0, 2 * G), Code.RESOURCE_EXHAUSTED, "budget")


def test_refusals_say_why(world: World) -> None:
    memory, place = world.memory, world.place
    made, slice_ = memory.allocate(0, 100), world.mapped(2 * G)
    memory.map(0, made, place, 0, G)
    refused(lambda: memory.map(0, made, place, G, G), Code.ALREADY_EXISTS, "source-aliased")
    refused(lambda: memory.map(0, slice_, place, 0, G), Code.ALREADY_EXISTS, "active")
    refused(lambda: memory.map(0, slice_, place, 0, 2 * G), Code.INVALID_ARGUMENT, "too-large")
    refused(lambda: memory.map(0, NULL, place, 0, G), Code.INVALID_ARGUMENT, "null")
    refused(lambda: memory.map(0, Range(made.address, 99), place, G, G), Code.NOT_FOUND, "unknown")
    refused(lambda: memory.map(0, made, place, G, 100), Code.INVALID_ARGUMENT, "unaligned")
    refused(lambda: memory.map(0, made, place, 4 * G, G), Code.INVALID_ARGUMENT, "outside")
    refused(lambda: memory.map(0, made, None, 0, G), Code.INVALID_ARGUMENT, "outside")
    refused(lambda: world.mapped(0, 2 * G), Code.FAILED_PRECONDITION, "overlap")
    refused(lambda: world.mapped(0, G, HOST_SPACE), Code.INVALID_ARGUMENT, "host")
    refused(lambda: memory.deallocate(0, made), Code.FAILED_PRECONDITION, "aliased")
    refused(lambda: memory.deallocate(0, Range(slice_.address, 100)), Code.NOT_FOUND, "unknown")
    refused(lambda: memory.unmap(0, place, G, G), Code.NOT_FOUND, "no-alias")
    refused(lambda: memory.unmap(0, place, 0, 2 * G), Code.INVALID_ARGUMENT, "size")
    memory.unmap(0, place, 0, G)
    refused(lambda: memory.unmap(0, place, 0, G), Code.FAILED_PRECONDITION, "pending")
    refused(lambda: memory.allocate(7, G), Code.NOT_FOUND, "ordinal")
    memory.deallocate(7, NULL)


def test_a_reservation_is_released_when_nothing_is_there(world: World) -> None:
    place = world.memory.create_reservation(0, 100)
    source = world.memory.allocate(0, 100)
    world.memory.map(0, source, place, 0, G)
    world.memory.unmap(0, place, 0, G)
    with pytest.raises(DriverError):
        place.release()
    world.memory.synchronize_pending_operations(0)
    place.release()


def test_granularity_can_be_coarsened(world: World) -> None:
    world.memory.factor = 2
    assert world.memory.granularity(0) == 2 * G
    made = world.memory.allocate(0, 100)
    assert world.memory.reservation_of(0, made) == Range(made.address, 2 * G)
    assert world.memory.granularity(7) == 0
