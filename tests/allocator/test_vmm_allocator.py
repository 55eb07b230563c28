"""The reference allocator itself, over the host driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vmm_conformance.contracts import (
    Access,
    Block,
    Code,
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    Live,
    SpaceSpec,
    Status,
    SubjectError,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.running.recorder import Recorder
from vmm_reference.allocator import VmmAllocator

G = 4096
NOTHING = Live(0, 0, 0, 0, 0)


class World:
    """A driver that can be made to fail, an allocator on device 0 and two streams."""

    def __init__(self, **options: object) -> None:
        strict = DriverCapabilities(
            unmap_spans_mappings=False, set_access_spans_mappings=False, partial_map=False
        )
        self.host = HostDriver(DriverOptions(**{"capacity": 16 * G, "capabilities": strict, **options}))  # type: ignore[arg-type]
        self.recorder = Recorder(self.host, History())
        self.driver: Driver = self.recorder.subject
        self.allocator = VmmAllocator(self.driver, 0)
        self.first, self.second = self.host.stream_create(), self.host.stream_create()

    def fail(self, kind: str, k: int = 1, status: int = Status.UNKNOWN) -> None:
        self.recorder.faults.inject(kind, k, status)

    def calls(self) -> list[str]:
        return [event.kind for event in self.recorder.history]

    def live(self) -> Live:
        return self.host.live()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.recorder.faults.clear()
    world.allocator.close()
    assert world.live() == NOTHING
    world.host.close()


@pytest.mark.parametrize(("size", "committed"), [(1, G), (G - 1, G), (G, G), (G + 1, 2 * G), (3 * G, 3 * G)])
def test_sizes_are_rounded_up_to_the_granularity(world: World, size: int, committed: int) -> None:
    block = world.allocator.allocate(size, stream=world.first)
    assert (block.size, block.committed) == (size, committed)
    assert world.live() == Live(1, 1, 1, 0, committed)


def test_the_recommended_granularity_is_the_one_that_counts() -> None:
    world = World(granularity=Granularity(G, 4 * G))
    assert world.allocator.allocate(1, stream=world.first).committed == 4 * G


@pytest.mark.parametrize("size", [0, -1])
def test_no_bytes_are_no_block(world: World, size: int) -> None:
    with pytest.raises(SubjectError, match=f"allocate: size is {size} bytes, and must be positive") as error:
        world.allocator.allocate(size, stream=world.first)
    assert error.value.code is Code.INVALID_ARGUMENT
    assert world.calls() == []


def test_a_block_is_aligned_to_its_memory_space() -> None:
    world = World(spaces={0: SpaceSpec(256), 7: SpaceSpec(8 * G)})
    world.allocator.allocate(1, stream=world.first)
    block = world.allocator.allocate(1, stream=world.first, space=7)
    assert block.address % (8 * G) == 0
    create = [event for event in world.recorder.history if event.kind == "create"][-1]
    assert create["space"] == 7


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize(("peers", "rights"), [(True, Access.READ_WRITE), (False, Access.NONE)])
def test_peers_that_reach_the_memory_get_rights_and_no_others(device: int, peers: bool, rights: Access) -> None:
    world = World(devices=2, peers=peers)
    allocator, stream = VmmAllocator(world.driver, device), world.host.stream_create(device)
    block = allocator.grow(allocator.allocate(G, stream=stream), 2 * G, stream=stream)
    for offset in (0, G):
        assert world.host.get_access(block.address + offset, device) is Access.READ_WRITE
        assert world.host.get_access(block.address + offset, 1 - device) is rights


FAILURES = [("reserve", 1), ("create", 1), ("map", 1), ("set_access", 1)]


@pytest.mark.parametrize(("kind", "k"), FAILURES)
def test_a_failed_allocation_changes_nothing(world: World, kind: str, k: int) -> None:
    other = world.allocator.allocate(G, stream=world.first)
    world.host.write(other.address, b"kept")
    before = world.live()
    world.fail(kind, k)
    with pytest.raises(DriverError) as error:
        world.allocator.allocate(3 * G, stream=world.first)
    assert error.value.status == Status.UNKNOWN
    assert world.live() == before
    assert world.host.read(other.address, 4).data == (b"kept",)
    again = world.allocator.allocate(3 * G, stream=world.first)
    for page in range(3):
        world.host.write(again.address + page * G, b"page")


GROWTH_FAILURES = [*FAILURES, ("map", 2), ("set_access", 2), ("event_create", 1), ("event_record", 1)]


@pytest.mark.parametrize(("kind", "k"), GROWTH_FAILURES)
def test_a_failed_growth_changes_nothing(world: World, kind: str, k: int) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    world.host.write(block.address, b"kept")
    before = world.live()
    world.fail(kind, k)
    with pytest.raises(DriverError):
        world.allocator.grow(block, 2 * G, stream=world.first)
    assert world.live() == before
    assert world.host.read(block.address, 4).data == (b"kept",)
    grown = world.allocator.grow(block, 2 * G, stream=world.first)
    assert world.host.read(grown.address, 4).data == (b"kept",)


@pytest.mark.parametrize("undo", ["release", "unmap", "address_free"])
def test_the_first_error_is_reported_and_a_failed_undo_is_made_up_for(world: World, undo: str) -> None:
    world.fail("set_access", 1, Status.OUT_OF_MEMORY)
    world.fail(undo)
    with pytest.raises(DriverError) as error:
        world.allocator.allocate(G, stream=world.first)
    assert error.value.call == "set_access"
    assert world.live() != NOTHING
    block = world.allocator.allocate(G, stream=world.first)
    assert world.live() == Live(1, 1, 1, 0, G)
    world.allocator.deallocate(block, stream=world.first)


def test_freed_memory_stays_until_its_stream_has_passed(world: World) -> None:
    block = world.allocator.allocate(2 * G, stream=world.first)
    works = [world.host.write(block.address, b"late", stream=world.first) for _ in range(5)]
    world.allocator.deallocate(block, stream=world.first)
    assert world.live().mappings == 1
    world.host.stream_synchronize(world.first)
    assert [work.fault for work in works] == [None] * 5
    world.allocator.allocate(G, stream=world.second)
    assert world.live() == Live(1, 1, 1, 0, G)


@pytest.mark.parametrize("call", ["deallocate", "grow"])
def test_every_call_gives_back_what_has_passed(world: World, call: str) -> None:
    freed, live = (world.allocator.allocate(n * G, stream=world.first) for n in (3, 1))
    for block, stream in ((freed, world.first), (live, world.second)):
        for _ in range(5):
            world.host.write(block.address, b"late", stream=stream)
    world.allocator.deallocate(freed, stream=world.first)
    assert world.live().handles == 2
    world.host.stream_synchronize(world.first)
    if call == "deallocate":
        world.allocator.deallocate(live, stream=world.second)
        assert world.live() == Live(1, 1, 1, 0, G)
    else:
        world.allocator.grow(live, 2 * G, stream=world.second)
        assert world.live() == Live(2, 2, 3, 0, 2 * G)


def test_nothing_is_kept_of_what_was_given_back(world: World) -> None:
    for _ in range(3):
        world.allocator.deallocate(world.allocator.allocate(G, stream=world.first), stream=world.first)
        world.host.stream_synchronize(world.first)
    world.allocator.allocate(2 * G, stream=world.first)
    assert world.allocator.leftover == []


def test_freed_memory_is_used_again_on_its_stream_as_it_is(world: World) -> None:
    block = world.allocator.allocate(2 * G, stream=world.first)
    for _ in range(5):
        world.host.write(block.address, b"late", stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    before = world.calls().count("create")
    assert world.allocator.allocate(G + 1, stream=world.first) == Block(block.address, G + 1, 2 * G)
    assert world.calls().count("create") == before


@pytest.mark.parametrize(("size", "space", "same"), [(G, 0, True), (2 * G, 1, True), (2 * G, 0, False)])
def test_freed_memory_of_another_shape_or_stream_is_not_used_again(
    world: World, size: int, space: int, same: bool
) -> None:
    block = world.allocator.allocate(2 * G, stream=world.first)
    for _ in range(5):
        world.host.write(block.address, b"late", stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    other = world.allocator.allocate(size, stream=world.first if same else world.second, space=space)
    assert other.address != block.address


def test_when_memory_is_short_freed_memory_is_waited_for(world: World) -> None:
    blocks = [world.allocator.allocate(8 * G, stream=world.first) for _ in range(2)]
    works = [world.host.write(block.address, b"late", stream=world.first) for block in blocks for _ in range(5)]
    for block in blocks:
        world.allocator.deallocate(block, stream=world.first)
    world.allocator.allocate(16 * G, stream=world.second)
    assert all(work.done and work.fault is None for work in works)


def test_memory_that_is_short_for_good_is_the_error(world: World) -> None:
    world.allocator.allocate(9 * G, stream=world.first)
    before = world.live()
    with pytest.raises(DriverError) as error:
        world.allocator.allocate(8 * G, stream=world.first)
    assert error.value.status == Status.OUT_OF_MEMORY
    assert world.live() == before


def test_shortage_is_the_error_even_if_reclaiming_fails(world: World) -> None:
    block = world.allocator.allocate(16 * G, stream=world.first)
    for _ in range(5):
        world.host.write(block.address, b"late", stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    world.fail("event_synchronize")
    with pytest.raises(DriverError) as error:
        world.allocator.allocate(G, stream=world.second)
    assert error.value.status == Status.OUT_OF_MEMORY
    world.allocator.allocate(G, stream=world.second)


@pytest.mark.parametrize("status", [Status.INVALID_VALUE, Status.UNKNOWN])
def test_only_a_shortage_is_waited_for(world: World, status: Status) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    for _ in range(5):
        world.host.write(block.address, b"late", stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    world.fail("create", 1, status)
    with pytest.raises(DriverError) as error:
        world.allocator.allocate(2 * G, stream=world.second)
    assert error.value.status == status
    assert "event_synchronize" not in world.calls()


def test_growth_keeps_bytes_and_shares_memory_until_the_stream_has_passed(world: World) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    late = [world.host.write(block.address, bytes([n]) * 8, stream=world.first) for n in range(5)]
    grown = world.allocator.grow(block, G + 1, stream=world.first)
    assert (grown.size, grown.committed) == (G + 1, 2 * G)
    assert grown.address != block.address
    assert world.live() == Live(2, 2, 3, 0, 2 * G)
    read = world.host.read(grown.address, 8, stream=world.first)
    world.host.stream_synchronize(world.first)
    assert [work.fault for work in late] == [None] * 5
    assert read.data == (b"\4" * 8,)
    third = world.allocator.grow(grown, 3 * G, stream=world.first)
    world.host.stream_synchronize(world.first)
    world.allocator.deallocate(third, stream=world.first)
    world.host.stream_synchronize(world.first)


def test_growth_within_what_is_committed_makes_no_driver_call(world: World) -> None:
    block = world.allocator.allocate(1, stream=world.first)
    before = len(world.calls())
    assert world.allocator.grow(block, G, stream=world.first) == Block(block.address, G, G)
    assert len(world.calls()) == before


def test_a_block_does_not_shrink(world: World) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    with pytest.raises(SubjectError, match="grow: size is 1 bytes, less than the 4096 of the block"):
        world.allocator.grow(block, 1, stream=world.first)


@pytest.mark.parametrize("call", ["deallocate", "grow"])
def test_a_block_that_is_not_live_is_refused(world: World, call: str) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    arguments = (block, G) if call == "grow" else (block,)
    with pytest.raises(SubjectError, match=f"{call}: no live block begins at {block.address:#x}") as error:
        getattr(world.allocator, call)(*arguments, stream=world.first)
    assert error.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", ["event_create", "event_record"])
def test_a_failed_deallocation_leaves_the_block_live(world: World, kind: str) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    world.fail(kind)
    with pytest.raises(DriverError):
        world.allocator.deallocate(block, stream=world.first)
    world.host.write(block.address, b"live")
    world.allocator.deallocate(block, stream=world.first)


def test_close_waits_and_gives_everything_back_and_is_harmless_again(world: World) -> None:
    blocks = [world.allocator.allocate(n * G, stream=world.first) for n in (1, 2, 3)]
    works = [world.host.write(block.address, b"late", stream=world.first) for block in blocks]
    world.allocator.deallocate(blocks[0], stream=world.first)
    world.allocator.grow(blocks[1], 3 * G, stream=world.first)
    world.allocator.close()
    assert [work.fault for work in works] == [None] * 3
    assert world.live() == NOTHING
    before = len(world.calls())
    world.allocator.close()
    assert len(world.calls()) == before
    with pytest.raises(SubjectError, match="allocate: this allocator is closed") as error:
        world.allocator.allocate(G, stream=world.first)
    assert error.value.code is Code.FAILED_PRECONDITION


@pytest.mark.parametrize("call", ["deallocate", "grow"])
def test_a_closed_allocator_says_so_before_it_looks_at_the_block(world: World, call: str) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    world.allocator.close()
    arguments = (block, G) if call == "grow" else (block,)
    with pytest.raises(SubjectError, match=f"{call}: this allocator is closed") as error:
        getattr(world.allocator, call)(*arguments, stream=world.first)
    assert error.value.code is Code.FAILED_PRECONDITION


def test_of_several_refusals_at_close_the_first_is_raised(world: World) -> None:
    for n in (1, 2):
        world.allocator.allocate(n * G, stream=world.first)
    world.fail("unmap")
    world.fail("release", 2, Status.INVALID_VALUE)
    with pytest.raises(DriverError) as error:
        world.allocator.close()
    assert error.value.call == "unmap"


@pytest.mark.parametrize("kind", ["device_synchronize", "unmap", "address_free", "release"])
def test_a_close_that_failed_can_be_repeated(world: World, kind: str) -> None:
    for n in (1, 2):
        world.allocator.allocate(n * G, stream=world.first)
    world.fail(kind)
    with pytest.raises(DriverError) as error:
        world.allocator.close()
    assert error.value.call == kind
    world.allocator.close()
    assert world.live() == NOTHING


def test_housekeeping_errors_are_not_the_callers(world: World) -> None:
    block = world.allocator.allocate(G, stream=world.first)
    world.allocator.deallocate(block, stream=world.first)
    world.host.stream_synchronize(world.first)
    for kind in ("event_query", "unmap", "event_destroy", "release"):
        world.fail(kind)
    for _ in range(5):
        world.allocator.deallocate(world.allocator.allocate(2 * G, stream=world.second), stream=world.second)
    world.host.stream_synchronize(world.second)
    world.allocator.allocate(3 * G, stream=world.first)
    assert world.live() == Live(1, 1, 1, 0, 3 * G)
