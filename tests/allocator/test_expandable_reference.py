"""The reference's allocator of expandable segments itself, over the host driver that refuses now and then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vmm_conformance.contracts import Block, Code, Driver, DriverError, DriverOptions, Live, Status, SubjectError
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.running.recorder import Recorder
from vmm_reference.expandable import ExpandableAllocator

G = 4096


class World:
    """An allocator on a driver of eight granules, and a stream."""

    def __init__(self) -> None:
        self.host = HostDriver(DriverOptions(capacity=8 * G))
        self.recorder = Recorder(self.host, History())
        self.driver: Driver = self.recorder.subject
        self.allocator = ExpandableAllocator(self.driver, 0)
        self.stream = self.host.stream_create()

    def fail(self, kind: str, k: int = 1) -> None:
        self.recorder.faults.inject(kind, k, Status.UNKNOWN)

    def allocate(self, granules: int = 1) -> Block:
        return self.allocator.allocate(granules * G, stream=self.stream)

    def free(self, block: Block) -> None:
        self.allocator.deallocate(block, stream=self.stream)

    def committed(self) -> int:
        return self.allocator.statistics().committed // G


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.recorder.faults.clear()
    made.allocator.close()
    assert made.host.live() == Live(0, 0, 0, 0, 0)
    made.host.close()


def test_a_closed_allocator_refuses(world: World) -> None:
    block = world.allocate()
    world.allocator.close()
    for call in (world.allocate, lambda: world.free(block), world.allocator.trim, world.allocator.statistics):
        with pytest.raises(SubjectError, match="this allocator is closed") as caught:
            call()
        assert caught.value.code is Code.FAILED_PRECONDITION


@pytest.mark.parametrize("kind", ["unmap", "release", "address_free", "event_destroy"])
def test_what_the_driver_does_not_take_back_at_the_end_is_told_and_tried_again(world: World, kind: str) -> None:
    """Everything else is given back all the same."""
    kept, freed = world.allocate(), world.allocate()
    for _ in range(9):
        world.host.launch(world.stream)
    world.free(freed)
    world.fail(kind)
    with pytest.raises(DriverError, match=kind):
        world.allocator.close()
    assert world.host.live() != Live(0, 0, 0, 0, 0) or kind == "event_destroy"
    assert kept.address != freed.address
    world.recorder.history.events.clear()
    world.allocator.close()
    assert kind in [event.kind for event in world.recorder.history]
    assert world.host.live() == Live(0, 0, 0, 0, 0)


def test_memory_that_could_not_be_released_is_released_with_the_next_call(world: World) -> None:
    world.free(world.allocate())
    world.host.stream_synchronize(world.stream)
    world.fail("release")
    with pytest.raises(DriverError, match="release"):
        world.allocator.trim()
    assert world.host.live().handles == 1
    world.allocate(2)
    assert world.host.live().handles == world.committed() == 2


def test_memory_is_taken_from_idle_granules_and_then_from_what_was_freed_first(world: World) -> None:
    blocks = [world.allocate(2) for _ in range(4)]
    for block in (blocks[1], blocks[2]):
        for _ in range(9):
            world.host.launch(world.stream)
        world.free(block)
    other = world.host.stream_create()
    assert world.allocator.allocate(3 * G, stream=other).size == 3 * G
    assert world.committed() == 8
    with pytest.raises(DriverError, match="create"):
        world.allocator.allocate(2 * G, stream=other)
    assert world.allocator.allocate(G, stream=other).size == G


def test_memory_that_was_refused_before_is_released_at_the_end(world: World) -> None:
    world.free(world.allocate())
    world.host.stream_synchronize(world.stream)
    world.fail("release")
    with pytest.raises(DriverError, match="release"):
        world.allocator.trim()
    world.allocator.close()
    assert world.host.live() == Live(0, 0, 0, 0, 0)


def test_of_several_refusals_at_the_end_the_first_is_told(world: World) -> None:
    freed = world.allocate()
    world.allocate()
    for _ in range(9):
        world.host.launch(world.stream)
    world.free(freed)
    world.fail("unmap")
    world.fail("event_destroy")
    with pytest.raises(DriverError, match="unmap"):
        world.allocator.close()


def test_what_was_freed_first_is_waited_for_and_nothing_else(world: World) -> None:
    streams = [world.stream, world.host.stream_create(), world.host.stream_create()]
    blocks = [world.allocator.allocate(4 * G, stream=stream) for stream in streams[:2]]
    for block, stream in zip(blocks, streams, strict=False):
        for _ in range(9):
            world.host.launch(stream)
        world.allocator.deallocate(block, stream=stream)
    world.allocator.allocate(G, stream=streams[2])
    assert [freed.stream for freed in world.allocator.freed] == [streams[1]]


def test_another_error_than_short_memory_takes_nothing_from_anybody(world: World) -> None:
    world.free(world.allocate(2))
    world.host.stream_synchronize(world.stream)
    before = world.committed()
    world.fail("create")
    with pytest.raises(DriverError, match="create"):
        world.allocator.allocate(G, stream=world.host.stream_create())
    assert world.committed() == before == 2


def test_idle_granules_behind_the_wanted_ones_are_taken_too(world: World) -> None:
    """All of one segment: its first two granules were given back, the four behind them are idle."""
    first, behind = world.allocate(2), world.allocate(4)
    world.free(first)
    world.host.stream_synchronize(world.stream)
    world.allocator.trim()
    world.free(behind)
    world.allocator.allocate(4 * G, stream=world.host.stream_create())
    assert world.allocate(2).address == first.address
    assert world.committed() == 8


def test_what_another_stream_has_freed_is_not_used_before_its_event_has_passed(world: World) -> None:
    """The other stream is older: its number is less than that of the segment's."""
    later = world.host.stream_create()
    block = world.allocator.allocate(G, stream=later)
    for _ in range(9):
        world.host.launch(world.stream)
    world.free(block)
    assert world.allocator.allocate(G, stream=later).address != block.address


def test_a_segment_that_has_memory_keeps_its_addresses_when_it_cannot_get_more(world: World) -> None:
    world.free(world.allocate())
    world.host.stream_synchronize(world.stream)
    world.fail("create")
    with pytest.raises(DriverError, match="create"):
        world.allocate(2)
    assert "address_free" not in [event.kind for event in world.recorder.history]
