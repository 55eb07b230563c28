"""The reference's allocator of expandable segments itself, over the host driver that refuses now and then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vmm_conformance.contracts import (
    Access,
    Block,
    Code,
    Driver,
    DriverError,
    DriverOptions,
    Live,
    Status,
    SubjectError,
)
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

    def fail(self, kind: str, k: int = 1, status: Status = Status.UNKNOWN) -> None:
        self.recorder.faults.inject(kind, k, status)

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
    grow = lambda: world.allocator.grow(block, 2 * G, stream=world.stream)  # noqa: E731 - one call of several
    for call in (world.allocate, lambda: world.free(block), grow, world.allocator.trim, world.allocator.statistics):
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


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.INVALID_VALUE])
def test_another_error_than_short_memory_takes_nothing_from_anybody(world: World, status: Status) -> None:
    world.free(world.allocate(2))
    world.host.stream_synchronize(world.stream)
    before = world.committed()
    world.fail("create", status=status)
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


# -- growing


def grow(world: World, block: Block, granules: int) -> Block:
    return world.allocator.grow(block, granules * G, stream=world.stream)


def bytes_of(world: World, block: Block, size: int) -> bytes:
    world.host.stream_synchronize(world.stream)
    return world.host.read(block.address, size).data[0]


def test_a_block_grows_where_it_stands_while_nothing_stands_behind_it(world: World) -> None:
    block = world.allocate()
    world.host.fill(block.address, 7, G, stream=world.stream)
    grown = grow(world, block, 3)
    assert (grown.address, grown.size, grown.committed) == (block.address, 3 * G, 3 * G)
    assert bytes_of(world, grown, G) == b"\7" * G
    other = world.allocate()
    assert other.address == grown.address + 3 * G
    assert world.allocator.taken() == {"grow/in place": 1, "grow/moved": 0}


def test_a_block_between_others_moves_and_its_contents_are_copied(world: World) -> None:
    block, other = world.allocate(), world.allocate()
    world.host.fill(block.address, 7, G, stream=world.stream)
    grown = grow(world, block, 2)
    assert grown.address == other.address + G
    assert bytes_of(world, grown, G) == b"\7" * G
    assert world.allocator.taken() == {"grow/in place": 0, "grow/moved": 1}
    with pytest.raises(SubjectError, match="no live block begins"):
        grow(world, block, 4)
    assert world.allocate().address == block.address


def test_a_block_grows_over_exactly_the_bytes_between_two_others(world: World) -> None:
    first, block, freed, _ = (world.allocate() for _ in range(4))
    world.free(freed)
    assert grow(world, block, 2).address == block.address == first.address + G


@pytest.mark.parametrize("older", [False, True])
def test_bytes_behind_that_another_stream_may_still_use_are_not_grown_over(world: World, older: bool) -> None:
    """Which of two streams was made first says nothing about their work."""
    streams = [world.stream, world.host.stream_create()]
    other, world.stream = streams if older else reversed(streams)
    block, freed = world.allocate(), world.allocate()
    for _ in range(9):
        world.host.launch(world.stream)
    world.free(freed)
    grown = world.allocator.grow(block, 2 * G, stream=other)
    assert grown.address != block.address
    assert grow(world, world.allocator.allocate(10, stream=other), 1).committed == G


def test_bytes_that_a_stream_has_freed_are_used_again_on_it_at_once(world: World) -> None:
    block = world.allocate()
    for _ in range(9):
        world.host.launch(world.stream)
    world.free(block)
    assert world.allocate().address == block.address


def test_the_last_bytes_of_a_segment_are_used(world: World) -> None:
    assert world.allocate(4).address + 4 * G == world.allocate(4).address
    assert world.allocator.statistics().reserved == 8 * G


@pytest.mark.parametrize("owner", [0, 1])
def test_peers_that_reach_the_memory_may_use_it(owner: int) -> None:
    host = HostDriver(DriverOptions(devices=2))
    allocator = ExpandableAllocator(host, owner)
    block = allocator.allocate(G, stream=host.stream_create(owner))
    assert [host.get_access(block.address, device) for device in (0, 1)] == [Access.READ_WRITE] * 2
    allocator.close()
    host.close()


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("kind", ["create", "map", "set_access", "event_create", "copy"])
def test_a_growth_that_fails_changes_nothing(world: World, kind: str, elsewhere: bool) -> None:
    """Not what is idle either, and no event is kept; on another stream it would have a segment of its own."""
    freed, block, _ = (world.allocate() for _ in range(3))
    world.free(freed)
    world.host.stream_synchronize(world.stream)
    before = world.host.live(), world.allocator.statistics()
    if elsewhere:
        world.stream = world.host.stream_create()
    world.fail(kind)
    with pytest.raises(DriverError, match=kind):
        grow(world, block, 3)
    assert (world.host.live(), world.allocator.statistics()) == before
    made = [(event.kind, event.status) for event in world.recorder.history]
    assert made.count(("event_create", 0)) == made.count(("event_destroy", 0))
    assert grow(world, block, 3).size == 3 * G


def test_a_moved_block_whose_old_bytes_cannot_be_marked_is_there_all_the_same(world: World) -> None:
    block, _ = world.allocate(), world.allocate()
    for _ in range(9):
        world.host.launch(world.stream)
    world.fail("event_record")
    grown = grow(world, block, 2)
    assert [freed.marked for freed in world.allocator.freed] == [False]
    assert world.allocate().address != grown.address
    assert [freed.marked for freed in world.allocator.freed] == [True]


def test_a_smaller_size_is_no_growth(world: World) -> None:
    with pytest.raises(SubjectError, match="size is 4096 bytes, less than the 8192 of the block"):
        grow(world, world.allocate(2), 1)


def test_address_space_has_an_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments in which nothing stands make room; then a request is refused."""
    monkeypatch.setattr("vmm_reference.expandable.ADDRESSES", 2)
    streams = [world.host.stream_create() for _ in range(3)]
    first, _ = (world.allocator.allocate(G, stream=stream) for stream in streams[:2])
    with pytest.raises(SubjectError, match=rf"{8 * G} bytes of address space beside {16 * G} are more than {16 * G}"):
        world.allocator.allocate(G, stream=streams[2])
    for _ in range(9):
        world.host.launch(streams[0])
    world.allocator.deallocate(first, stream=streams[0])
    with pytest.raises(SubjectError, match="bytes of address space beside"):
        world.allocator.allocate(G, stream=streams[2])
    world.host.stream_synchronize(streams[0])
    assert world.allocator.allocate(G, stream=streams[2]).size == G
    assert world.allocator.statistics().reserved == 16 * G


def test_address_space_is_used_to_the_last_byte(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmm_reference.expandable.ADDRESSES", 2)
    world.free(world.allocate())
    world.host.stream_synchronize(world.stream)
    world.allocator.allocate(G, stream=world.host.stream_create())
    assert world.allocator.statistics().reserved == 16 * G


def test_an_event_that_could_not_be_recorded_is_destroyed_at_once(world: World) -> None:
    block = world.allocate()
    world.fail("event_record")
    with pytest.raises(DriverError, match="event_record"):
        world.free(block)
    assert [event.kind for event in world.recorder.history][-2:] == ["event_record", "event_destroy"]
